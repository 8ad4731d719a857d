/*
 * placement: which nodes and which devices a reservation gets, or why none.
 *
 * Owns      the choice among the nodes that pass (RES-52), why the others don't, and that a gang gets
 *           all its nodes or none (GANG-1). Create, retry, repair and preview all ask here, so they
 *           never differ (RES-10, RES-50). One node is judged by node_filter, its devices by
 *           device_choice, its host by host_share; first_fit looks for a time.
 * Pure      rows in, choice out; time is part of the request.
 * Parts     a device takes the part [leaf_lo, leaf_hi) of its GPU's [0, 1024). Two devices exclude
 *           each other when they overlap there: a whole GPU excludes its MIG instances and slots.
 * Exact     a request for whole GPUs and one kind of part is placed on a node whenever it can be;
 *           with several kinds of parts on GPUs that offer them all, a fit may be missed.
 * Tests     tests/unit/control/core/placement_test.c compares with an exhaustive search.
 */
#pragma once

#include "base/base.h"
#include "base/hugepages.h"

#include <limits.h>

enum placement_class {
	PLACEMENT_CLASS_GPU,
	PLACEMENT_CLASS_MIG,
	PLACEMENT_CLASS_SLOT,
};
#define PLACEMENT_CLASSES 3
const char *placement_class_name(enum placement_class class); /* "gpu.mig" ... */
bool placement_class_parse(const char *name, enum placement_class *ret_class);

#define PLACEMENT_LEAVES 1024

/* What all nodes of a gang must have in common. */
enum placement_same {
	PLACEMENT_SAME_NOTHING,
	PLACEMENT_SAME_RACK,
	PLACEMENT_SAME_BLOCK,
	PLACEMENT_SAME_NVLINK_DOMAIN,
};
#define PLACEMENT_SAMES 4
const char *placement_same_name(enum placement_same same); /* "" "rack" "block" "nvlinkDomain" */
bool placement_same_parse(const char *name, enum placement_same *ret_same);

struct placement_gpu {
	const char *uuid, *model;
	bool healthy;
	int numa; /* -1 unknown */
};

struct placement_atom {
	const char *atom, *profile, *visible_device;
	enum placement_class class;
	size_t gpu; /* index into the node's gpus */
	int leaf_lo, leaf_hi;
	bool healthy;
};

/* A part of a GPU that is taken from `from_ms` until `to_ms` (INT64_MAX: nobody knows). */
struct placement_busy {
	size_t gpu;
	int leaf_lo, leaf_hi;
	int64_t from_ms, to_ms;
	bool planned; /* for a gang that waits, which has nothing yet: the last of a node's */
};

/* Host share that is taken. */
struct placement_use {
	int64_t vcpus, memory_bytes;
	struct hugepages hugepages;
	int64_t from_ms, to_ms;
	bool planned;
};

/*
 * What is known of a kind of device on a node without looking at the devices: how many there are of
 * the pool's model, how many of them are healthy, how many of those nobody has booked for whatever
 * time; and between which moments the node's bookings lie.
 */
struct placement_room {
	int total, healthy, idle;
	int64_t first_end_ms; /* INT64_MAX: no booking */
	int64_t last_from_ms; /* 0: no booking */
};

struct placement_node {
	const char *id;
	/* A row without devices that says why may stand for this many nodes; 0 is 1. */
	int alike;
	bool tenant_controlled;
	bool ready;                          /* node state */
	bool connected;                      /* heard of lately */
	const char *no_schedule;             /* the condition that forbids new work; NULL if none */
	bool knows_kubernetes, knows_limits; /* announced by its bcd */
	bool knows_dra;                      /* the same */
	bool dra; /* its own configuration says that it offers GPUs by DRA; else by device plugins */
	bool spot;    /* takes only reservations that may be interrupted */
	bool refused; /* answered a try of this reservation with a failure, lately */
	bool member;  /* has another part of this gang */
	const char *labels[PLACEMENT_SAMES]; /* of the topology, by enum; NULL: none */
	int64_t vcpus, memory_bytes;
	struct hugepages hugepages;
	/* Of the one kind that is asked for; NULL: look at the devices. Where it says that a
	 * request doesn't fit, the devices may be missing. */
	const struct placement_room *room;
	const struct placement_gpu *gpus;
	size_t gpus_count;
	const struct placement_atom *atoms;
	size_t atoms_count;
	const struct placement_busy *busy;
	size_t busy_count;
	const struct placement_use *uses;
	size_t uses_count;
};

struct placement_need {
	enum placement_class class;
	const char *profile; /* MIG; NULL: any */
	int count;
};

struct placement_request {
	const struct placement_need *needs;
	size_t needs_count;
	const char *model; /* of the pool; matches as whole words of a GPU's model, any case */
	int64_t from_ms, to_ms;
	bool limited;               /* host limits were asked for */
	int64_t vcpus;              /* -1: the node's share for these devices */
	int64_t memory_bytes;       /* -1: the same */
	struct hugepages hugepages; /* nobody's share: what wasn't asked for isn't given */
	bool spread;                /* the pool's policy; else bin-pack */
	bool dra;                   /* the pool's gpuApi; else device plugins */
	bool spot;                  /* may be interrupted */
	int nodes;                  /* so many nodes, the needs on each; 0 is 1 */
	enum placement_same same;
	const char *domain; /* the one to be in, for `same`; NULL: any */
	/* First fits of the gangs that came first. Who isn't gone by then may not begin before
	 * (GANG-10); the plans of these gangs stand in the view as busy. */
	const int64_t *waits;
	size_t waits_count;
};

/* More of its host than a node has at all: processors, or bytes. */
struct placement_lack {
	int64_t asked, has; /* asked 0: it has enough, or that isn't known */
};

/* Why nodes were passed over: each node counts once, under the first filter that stopped it. */
struct placement_reason {
	const char *reason; /* CamelCase; a condition's type for NoSchedule */
	int nodes;
	int largest; /* device filters: the most devices that one of these nodes could give; else -1
		      */
	struct placement_lack
		lack; /* host filters: what the largest of them has, when all lack it */
};
#define PLACEMENT_MAX_REASONS 32

/* What one node gives. */
struct placement_member {
	const struct placement_node *node;
	size_t *atoms; /* indexes into node->atoms; heap */
	size_t atoms_count;
	int64_t vcpus, memory_bytes;
	struct hugepages hugepages;
};

struct placement_answer {
	struct placement_member *members; /* as many as nodes were asked for; heap */
	size_t members_count;             /* 0: it doesn't fit */
	bool never; /* it doesn't fit, and too few nodes could take a part even when all were free */
	size_t wanted, could; /* never: nodes asked for, and nodes that could take a part */
	struct placement_reason reasons[PLACEMENT_MAX_REASONS];
	size_t reasons_count;
};

/* `answer` must be `{0}` or hold an old answer. Ties go to the node with the smaller id. */
void placement_decide(const struct placement_request *request, const struct placement_node *nodes,
		      size_t nodes_count, struct placement_answer *answer);
void placement_answer_deinit(struct placement_answer *answer);

/* The earliest time at or after request->from_ms at which the same request would fit, judged by
 * what is booked now and by nothing else; false when there is none. */
bool placement_first_fit(const struct placement_request *request,
			 const struct placement_node *nodes, size_t nodes_count, int64_t *ret_ms);

static inline void placement_answer_cleanup(struct placement_answer *answer)
{
	placement_answer_deinit(answer);
}
