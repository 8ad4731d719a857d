/*
 * placement: which node and which devices a reservation gets, or why none.
 *
 * Owns      the order of the filters (RES-51), what excludes what on one GPU, and the choice among
 *           the nodes that pass (RES-52). Create, retry, repair and preview all ask here, so they
 *           never differ (RES-10, RES-50).
 * Pure      rows in, choice out; time is part of the request.
 * Parts     a device takes the part [leaf_lo, leaf_hi) of its GPU's [0, 1024). Two devices exclude
 *           each other when they overlap there: a whole GPU excludes its MIG instances and slots.
 * Exact     a request for whole GPUs and one kind of part is placed on a node whenever it can be;
 *           with several kinds of parts on GPUs that offer them all, a fit may be missed.
 * Tests     tests/unit/control/core/placement_test.c compares with an exhaustive search.
 */
#pragma once

#include "base/base.h"

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
};

/* Host share that is taken. */
struct placement_use {
	int64_t vcpus, memory_bytes;
	int64_t from_ms, to_ms;
};

struct placement_node {
	const char *id;
	bool tenant_controlled;
	bool ready;                          /* node state */
	bool connected;                      /* heard of lately */
	const char *no_schedule;             /* the condition that forbids new work; NULL if none */
	bool knows_kubernetes, knows_limits; /* announced by its bcd */
	bool refused; /* answered a try of this reservation with a failure, lately */
	int64_t vcpus, memory_bytes;
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
	bool limited;         /* host limits were asked for */
	int64_t vcpus;        /* -1: the node's share for these devices */
	int64_t memory_bytes; /* -1: the same */
	bool spread;          /* the pool's policy; else bin-pack */
};

/* Why nodes were passed over: each node counts once, under the first filter that stopped it. */
struct placement_reason {
	const char *reason; /* CamelCase; a condition's type for NoSchedule */
	int nodes;
	int largest; /* device filters: the most devices that one of these nodes could give; else -1
		      */
};
#define PLACEMENT_MAX_REASONS 32

struct placement_answer {
	const struct placement_node *node; /* NULL: none fits */
	size_t *atoms;                     /* indexes into node->atoms; heap */
	size_t atoms_count;
	int64_t vcpus, memory_bytes;
	struct placement_reason reasons[PLACEMENT_MAX_REASONS];
	size_t reasons_count;
};

/* `answer` must be `{0}` or hold an old answer. Ties go to the node with the smaller id. */
void placement_decide(const struct placement_request *request, const struct placement_node *nodes,
		      size_t nodes_count, struct placement_answer *answer);
void placement_answer_deinit(struct placement_answer *answer);

/* The earliest time at or after request->from_ms at which the same request would fit, judged by
 * what is booked now; false when there is none. Looks at no more than PLACEMENT_MAX_LOOKS ends of
 * bookings. */
#define PLACEMENT_MAX_LOOKS 2000
bool placement_first_fit(const struct placement_request *request,
			 const struct placement_node *nodes, size_t nodes_count, int64_t *ret_ms);

/* Is `model` found in `text` as whole words, whatever the case? */
bool placement_model_matches(const char *model, const char *text);

static inline void placement_answer_cleanup(struct placement_answer *answer)
{
	placement_answer_deinit(answer);
}
