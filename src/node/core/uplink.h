/*
 * uplink: bcd's half of the stream, as bytes and as waiting times.
 *
 * Owns      what Hello, reports, heartbeats and renewals look like (proto/gateway.proto), which
 *           address is tried next, and how long after a failure.
 * Pure.
 * Tests     tests/unit/node/core/uplink_test.c
 */
#pragma once

#include "base/arena.h"
#include "node/core/conditions.h"
#include "node/core/inventory_report.h"
#include "node/core/reports.h"
#include "node/core/spec.h"

#define UPLINK_BACKOFF_MIN_MS 1000
#define UPLINK_BACKOFF_MAX_MS 60000
#define UPLINK_HEARTBEAT_MS   10000
#define UPLINK_KEEPALIVE_MS   20000
#define UPLINK_WELCOME_MS     15000 /* from connecting to Welcome */
#define UPLINK_STEADY_MS      10000 /* a stream that stays so long ends what failed before */
#define UPLINK_MAX_MESSAGE    ((size_t)4 << 20)

#define UPLINK_CAPABILITY_BINDING "kubernetes-binding"
#define UPLINK_CAPABILITY_LIMITS  "assignment-limits"

/* 1 s doubling to 60 s, then half to all of it by jitter. */
int64_t uplink_backoff(uint32_t failures, uint32_t jitter);

struct uplink_hello {
	const char *boot_id, *hostname;
	const struct spec *spec; /* NULL: none is stored */
	int64_t last_sequence;
	bool unready;      /* what this node has stored isn't known yet: no stream is opened */
	int64_t opened_ms; /* by the boot's clock; later streams have more */
	/* A host without GPUs announces no capability (GW-1), nor does one whose kubelet isn't ours
	 * to serve: what it were given would reach no pod. One that holds some has them, though it
	 * may not see them now: without capabilities it would be told to give them back. */
	bool has_gpus, serves_kubelet, has_holds;
};
bool uplink_hello_is_capable(const struct uplink_hello *hello);
MUST_CHECK bool uplink_pack_hello(const struct uplink_hello *hello, struct buf *out,
				  struct error *error);
MUST_CHECK bool uplink_pack_heartbeat(int64_t generation, struct buf *out, struct error *error);
MUST_CHECK bool uplink_pack_renew(const struct buf *request_der, struct buf *out,
				  struct error *error);

/* What "to be told" reports tell. */
struct uplink_truth {
	const struct inventory_report *inventory;
	const struct conditions *conditions;
};
MUST_CHECK bool uplink_pack_report(const struct report *report, const struct uplink_truth *truth,
				   struct buf *out, struct error *error);
