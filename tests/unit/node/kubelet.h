/*
 * kubelet: what a node under test sees of a kubelet, with every bad habit on request.
 *
 * Serves Registration and pod-resources on real sockets; on Register it dials the plugin as a
 * kubelet does and keeps a ListAndWatch stream. Everything runs on the test's loop.
 */
#pragma once

#include "base/vec.h"
#include "lib/test.h"
#include "rpc/rpc.h"
#include "sys/loop.h"

#define KUBELET_MAX_DEVICES 64

struct kubelet_plugin {
	char resource[64];
	char endpoint[128];
	struct rpc_client *client;
	struct rpc_call *stream;
	bool alive;
	size_t lists; /* received on this stream */
	size_t device_count;
	struct {
		char id[128];
		bool healthy;
		int numa; /* -1 none */
	} devices[KUBELET_MAX_DEVICES];
};

struct kubelet {
	struct loop *loop;
	char *folder; /* the kubelet's root */
	struct rpc_server *registration, *pod_resources;
	VEC(struct kubelet_plugin *) plugins; /* every registration, in order */
	bool refuse;                          /* Register answers an error */
	size_t register_calls;
	/* pod-resources */
	const char *held[8]; /* device ids that a pod holds; NULL-ended */
	bool pods_fail;
	size_t list_calls;
};

void kubelet_start(struct kubelet *kubelet, struct loop *loop, const char *root);
void kubelet_stop(struct kubelet *kubelet); /* streams end; its sockets go */
/* The newest live plugin of this resource, or NULL. */
struct kubelet_plugin *kubelet_find(const struct kubelet *kubelet, const char *resource);
size_t kubelet_alive(const struct kubelet *kubelet, const char *resource);

/* One Allocate of one container, run to its end; `names` gets the CDI names, comma-separated. */
enum rpc_code kubelet_allocate(struct kubelet *kubelet, struct kubelet_plugin *plugin,
			       const char *const *ids, size_t count, char *names, size_t size,
			       char *message, size_t message_size);

/* Runs the loop until fn is true; fails the test after `ms`. */
typedef bool kubelet_until_fn(void *arg);
void kubelet_until(struct loop *loop, kubelet_until_fn *fn, void *arg, int64_t ms,
		   const char *what);
void kubelet_run(struct loop *loop, int64_t ms);
