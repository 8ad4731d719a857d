/*
 * reserve_request: what a reservation asks for, read from its JSON (RES-1, RES-49). Pure.
 */
#pragma once

#include "base/error.h"
#include "control/core/placement.h"

#include <jansson.h>

#define RESERVE_MIN_MS      ((int64_t)60 * 1000)
#define RESERVE_MAX_MS      ((int64_t)366 * 24 * 60 * 60 * 1000)
#define RESERVE_MAX_DEVICES 1024
#define RESERVE_MAX_NEEDS   16
#define RESERVE_MAX_VCPU    65536
#define RESERVE_MAX_GIB     1048576
/* Of "resources": GiB of huge pages of each size. */
#define RESERVE_HUGEPAGES_2MI "hugepages2MiGiB"
#define RESERVE_HUGEPAGES_1GI "hugepages1GiGiB"
/* A start that lies further back was meant as something else; a little is the network's. */
#define RESERVE_LATE_MS 60000

struct reserve_request {
	const char *tenant, *pool; /* belong to the JSON, as all texts */
	struct placement_need needs[RESERVE_MAX_NEEDS];
	size_t needs_count;
	int64_t duration_ms;
	int64_t start_ms;     /* 0: counts from placement */
	int64_t vcpus;        /* -1: the node's share */
	int64_t memory_bytes; /* -1: the node's share */
	struct hugepages hugepages;
	bool limited;   /* something of the host was asked for */
	bool spot;      /* may be interrupted */
	int gang_nodes; /* 0: no gang; else the devices are for each of so many nodes */
	enum placement_same gang_same;
	const char *idempotency_key; /* NULL if none */
};

/* `preview`: idempotencyKey is not known. */
MUST_CHECK bool reserve_request_parse(const json_t *body, bool preview, struct wall now,
				      struct reserve_request *ret_request, struct error *error);

/* A change of one (PATCH): what is to be, -1 or 0 where nothing was said. */
struct reserve_change {
	int64_t duration_ms; /* 0: not said; counts from its beginning */
	int64_t end_ms;      /* 0: not said */
	int64_t start_ms;    /* 0: not said */
};
MUST_CHECK bool reserve_change_parse(const json_t *body, struct wall now,
				     struct reserve_change *ret_change, struct error *error);

/* A gang as asked and answered: {"nodes", "topology"?: {"same"}}. */
json_t *reserve_gang_pack(int64_t nodes, enum placement_same same);

/* The devices as stored, [{"class","profile"?,"count"}], back into needs. False: not such a list.
 */
json_t *reserve_needs_pack(const struct placement_need *needs, size_t count);
bool reserve_needs_unpack(const json_t *devices, struct placement_need needs[RESERVE_MAX_NEEDS],
			  size_t *ret_count);
