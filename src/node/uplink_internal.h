/*
 * uplink_internal: what the two files of uplink share: the stream with its connection, and its inbox.
 */
#pragma once

#include "node/renew.h"
#include "node/uplink.h"
#include "rpc/rpc.h"
#include "rpc/tls.h"

struct uplink {
	struct loop *loop;
	struct uplink_options options;
	enum uplink_phase phase;
	struct rpc_tls *tls;
	struct rpc_client *client;
	struct rpc_call *stream;
	size_t address; /* index of the one in use, or tried next */
	uint32_t failures, jitter;
	struct mono retry_at, connected_at, heartbeat_at;
	int64_t opened_ms;       /* of the newest stream */
	struct mono renew_after; /* before that no new certificate is asked for on the stream */
	struct wall since;
	bool up, ended;     /* noted by callbacks, for the turn */
	bool capable;       /* as the Hello of the stream said */
	bool again;         /* another stream is wanted */
	bool heard, member; /* the control plane said what this node is to it; and then what */
	char error[ERROR_WHAT_SIZE + ERROR_HINT_SIZE];
	/* the certificate's end */
	struct renewal *renewal; /* under way */
	bool unknown;            /* the control plane says that it doesn't take the certificate */
	bool renewal_over;       /* noted by its callback, for the turn */
	enum join_exit renewal_exit;
	struct error renewal_error; /* why not */
	bool clocks_differ;         /* what the control plane issues isn't valid by ours */
	char renewal_told[ERROR_WHAT_SIZE];
	/* inbox */
	bool welcomed;
	struct uplink_welcome welcome; /* of the newest stream */
	struct spec *spec;
	char spec_error[ERROR_WHAT_SIZE];
	int64_t numbered; /* the highest number that this stream has named; what is acknowledged of it */
	int64_t acknowledged;
	struct buf certificate; /* as told, until the turn stores it */
	VEC(struct uplink_operation) operations;
};

/* rpc.h's on_message; `arg` is the uplink. */
void uplink_on_message(struct rpc_call *call, void *arg, const uint8_t *data, size_t length);
void uplink_inbox_deinit(struct uplink *uplink);
