/*
 * fleet_model: who has which GPU when, and what is billed for it: worked out from what was asked and what
 * nodes said, by rules of its own, beside the control plane and without looking into it.
 *
 * Learns    which devices a reservation was given from the answers of the API (a choice is a claim: it is
 *           held against what the model has free). All that follows it works out by itself: bindings,
 *           ends, releases, carries, who begins next, seconds on the meter.
 * Broken    whatever differs goes to sim_broken().
 */
#pragma once

#include "base/id.h"
#include "base/vec.h"

#include <jansson.h>

#define MODEL_GPUS        8 /* of a node */
#define MODEL_SLOTS       4 /* of a GPU that is cut */
#define MODEL_MAX_DEVICES 16

enum model_state {
	MODEL_PLACED,
	MODEL_BOUND,
	MODEL_RELEASING,
	MODEL_OVER,
};

/* What keeps new work away from a node. */
enum model_condition {
	MODEL_FOREIGN_EXPOSURE = 1,
	MODEL_PODS_UNKNOWN = 2,
	MODEL_RELEASE_STUCK = 4,
};

struct model_device {
	int gpu; /* of its node */
	int lo, hi;
};

struct model_allocation {
	char id[ID_SIZE];
	struct model_reservation *reservation;
	struct model_node *node;
	struct model_device devices[MODEL_MAX_DEVICES];
	int devices_count;
	bool slots;
	int64_t vcpus;
	enum model_state state;
	int64_t from_ms, to_ms;       /* its own time: what is billed ends with it */
	int64_t booked_to_ms;         /* with what it was carried */
	bool held;                    /* nobody else gets the devices, whatever the time */
	bool started, sent, told;     /* in the Spec; the node got that; and one without it since */
	bool binding_lost, node_lost; /* while it ran */
	int64_t bound_ms, asked_ms, over_ms;
	bool metered;
	struct model_allocation *next; /* by the hash of its id */
};
struct model_allocations VEC_BODY(struct model_allocation *);

struct model_reservation {
	char id[ID_SIZE];
	bool spot, active;
	bool shaken; /* a part failed before it ran: the others may have been given back */
	struct model_allocations parts;
	struct model_reservation *next;
};

struct model_node {
	char id[ID_SIZE];
	char uuids[MODEL_GPUS][40];
	bool cut; /* into slots */
	bool lost, draining, spot;
	bool connected, gone; /* one that falls silent isn't gone before its time is over */
	unsigned conditions;  /* enum model_condition */
	unsigned unhealthy;   /* by GPU */
	int64_t seen_ms, vcpus;
	struct model_allocations live;
	struct model_node *next;
};

struct model {
	VEC(struct model_node *) nodes;
	VEC(struct model_reservation *) reservations;
	struct model_allocations allocations; /* all there ever were */
	uint64_t carries, unilateral;         /* releases that ended without the node's word */
};
extern struct model model;

void model_begin(void);
void model_end(void);

struct model_node *model_node_add(const char *id);
struct model_node *model_node_find(const char *id);
struct model_allocation *model_find(const char *id);
struct model_reservation *model_reservation(const char *id); /* makes it */

/* --- what happens, at `now_ms` --- */

/* A reservation as the API shows it: new allocations are claims, known ones must be as they are here. */
void model_sync(const json_t *reservation, int64_t now_ms);
void model_withdraw(struct model_allocation *allocation, int64_t now_ms);
/* Its end was moved; parts that are being released keep theirs. */
void model_move_end(struct model_reservation *reservation, int64_t end_ms, int64_t now_ms);
void model_bound(struct model_allocation *allocation, int64_t now_ms);
void model_failed(struct model_allocation *allocation, int64_t now_ms);
void model_released(struct model_allocation *allocation, int64_t now_ms);
void model_node_lost(struct model_node *node, int64_t now_ms);
/* A pass of the leader. */
void model_tick(int64_t now_ms);

/* --- what must be equal --- */

bool model_share_devices(const struct model_allocation *a, const struct model_allocation *b);
bool model_reachable(const struct model_node *node, int64_t now_ms);
/* The Spec that the node gets: exactly these. */
void model_spec(struct model_node *node, const char *const *wanted, size_t wanted_count,
		const char *const *withdrawn, size_t withdrawn_count);
/* GPU-seconds of a class until now. */
int64_t model_seconds(bool slots, int64_t now_ms);
/* A row of the meter: each allocation that is over has one. */
void model_meter_row(const json_t *row);
void model_meter_end(void);

/* A device's part of its GPU, by the name that this node's inventory gives it. */
struct model_device model_device_of(const struct model_node *node, const char *atom);
