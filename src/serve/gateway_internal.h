/*
 * gateway_internal: what the parts of the gateway share. Private to it.
 *
 *   gateway_streams.c  the set of streams, their inboxes, and how one ends
 *   gateway_pump.c     a stream's jobs: which is next, and what becomes of it
 *   gateway_beats.c    heartbeats, all together in one transaction
 *   gateway.c          the calls as nodes make them, time, and what the rest of serve sees
 */
#pragma once

#include "base/vec.h"
#include "pki/cert.h"
#include "rpc/rpc.h"
#include "serve/gateway.h"
#include "serve/stream_job.h"

#define GATEWAY_NODE_BUCKETS 16384 /* GATEWAY_MAX_STREAMS: about one a bucket */

/* A message that waits for its turn. */
struct letter {
	struct letter *next;
	Bettercompute__V1__Up *up;
	size_t size;
};

struct inbox {
	struct letter *first, **last;
	size_t count, size;
};

/*
 * One call of Gateway.Connect. It outlives the call until its last job is done and the database
 * knows that it is gone.
 */
struct stream {
	uint64_t id;
	struct stream *next_of_bucket; /* of its node's */
	struct gateway *gateway;
	struct rpc_call *call; /* NULL: ended */
	struct cert_node node;
	struct mono started, heard;
	struct inbox inbox;
	int64_t epoch;           /* 0: no Welcome yet */
	int64_t spec_generation; /* sent last */
	int64_t beat_generation; /* a heartbeat said this, and it is committed; -1: none did */
	bool beat;               /* one came since that says the same: for the next round */
	bool hello;              /* has come */
	bool spec_wanted;
	bool working;  /* a job is under way */
	bool finished; /* we ended the call: what still comes is dropped */
	bool gone;     /* the database was told */
};

struct gateway {
	struct loop *loop;
	struct workers *workers;
	const struct pki_folder *pki;
	struct join_service *join;
	struct gateway_handlers handlers;
	struct rpc_server *server;
	struct loop_timer *sweep, *retry;
	VEC(struct stream *) streams; /* by id, which only grows */
	struct stream *by_node[GATEWAY_NODE_BUCKETS];
	bool beating; /* a round of heartbeats is under way */
	bool draining;
	loop_fn *on_drained;
	void *drained_arg;
};

/* --- the set of streams --- */

struct stream *gateway_find(const struct gateway *gateway, uint64_t id); /* NULL: there is none */
/* Where the streams of a node are found; others may be there too. */
struct stream **gateway_bucket_of(struct gateway *gateway, const char *node);
/* Calls on_drained once the last one is gone. */
void gateway_tell_drained(struct gateway *gateway);

/* --- inboxes --- */

void gateway_inbox_push(struct inbox *inbox, Bettercompute__V1__Up *up, size_t size);
/* The caller's to message_free(); NULL when empty. */
Bettercompute__V1__Up *gateway_inbox_pop(struct inbox *inbox);
void gateway_inbox_clear(struct inbox *inbox);

/* --- a stream's life --- */

void gateway_stream_open(struct gateway *gateway, struct rpc_call *call,
			 const struct cert_node *node);
void gateway_stream_destroy(struct stream *stream);
/* Ends the call from our side; the call's on_done follows. */
void gateway_stream_finish(struct stream *stream, enum rpc_code code, const char *why);
void gateway_stream_finish_error(struct stream *stream, const struct error *error);
/* Of two streams of one node the one with the newer epoch stays. */
void gateway_end_older(struct stream *newest);

/* --- jobs --- */

/* Starts the stream's next job, if it has one and may; the stream may be gone then. */
void gateway_stream_pump(struct stream *stream);
void gateway_pump_all(void *gateway); /* after the workers had no room */

/* Notes all heartbeats that have come since the last round, if that is over. */
void gateway_note_beats(struct gateway *gateway);
