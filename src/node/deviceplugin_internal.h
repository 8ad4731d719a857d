/*
 * deviceplugin_internal: what the two files of deviceplugin share: registration and serving.
 */
#pragma once

#include "node/core/registration.h"
#include "node/deviceplugin.h"
#include "rpc/rpc.h"
#include "sys/durable.h"

/* Unsent bytes above which the kubelet isn't sent more lists, but the newest one later. */
#define DEVICEPLUGIN_MAX_QUEUED ((size_t)1 << 20)

struct deviceplugin_stream {
	struct rpc_call *call;
	bool behind; /* a newer list waits for the queue to empty */
};

struct deviceplugin {
	struct loop *loop;
	struct deviceplugin_options options;
	char *kubelet_path, *kubelet_address;
	char name[REGISTRATION_NAME_SIZE]; /* of our socket; "" without one */
	char *path;
	struct rpc_server *server;
	struct durable_stamp own;
	VEC(struct deviceplugin_stream) streams;
	struct mono streaming_since;
	struct wall registered_since;
	struct mono given; /* the last Allocate that was answered */
	/* the try under way, and how the last one went */
	struct rpc_client *client;
	bool calling, answered, accepted, ever_tried;
	struct durable_stamp kubelet; /* that it was made to */
	struct mono tried;
	uint32_t failures, jitter;
	char error[ERROR_WHAT_SIZE];
	char unseen[ERROR_WHAT_SIZE]; /* why a socket can't be looked at; "": it can */
	bool failing;                 /* one of the two, with a kubelet there */
	struct mono failing_since;
	const char *why;
};

extern const struct rpc_method deviceplugin_methods[];
extern const size_t deviceplugin_method_count;
