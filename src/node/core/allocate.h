/*
 * allocate: what a container gets for the devices that the kubelet picked.
 *
 * Owns      DP-19..27, 42, 50: every id must be bound at this moment, healthy, and in nobody else's
 *           hands, as far as the kubelet has said (strays.h), else the whole call fails with a text that names the device and why; CDI names, NVIDIA_VISIBLE_DEVICES,
 *           BCD_ALLOCATION_IDS and the annotation.
 * Pure. Decided from the holds as just read from disk, never from what was advertised.
 * Tests     tests/unit/node/core/allocate_test.c
 */
#pragma once

#include "gpu/core/field.h"
#include "node/core/offer.h"
#include "node/core/strays.h"

#define ALLOCATE_ENV_VISIBLE     "NVIDIA_VISIBLE_DEVICES"
#define ALLOCATE_ENV_ALLOCATIONS "BCD_ALLOCATION_IDS"
#define ALLOCATE_ANNOTATION      "bcd.dev/allocation-ids"
#define ALLOCATE_CDI_NAME_SIZE   96

/* The device names that NVIDIA's own CDI specs define (kind nvidia.com/gpu), sorted. */
struct allocate_nvidia VEC_BODY(char *);

struct allocate_view {
	const struct holds *holds; /* as on disk now */
	const struct inventory *inventory;
	const struct strays *strays; /* who has what isn't bound here; NULL: nobody */
	const struct allocate_nvidia *nvidia;
	enum atom_class class; /* of the plugin that was asked */
};

/* For one container. Owned; `{0}` is empty. */
struct allocate_answer {
	VEC(char *) cdi_names;  /* "bcd.dev/gpu=…", then "nvidia.com/gpu=…" where known */
	struct buf visible;     /* text: UUIDs, comma-separated, each once */
	struct buf allocations; /* text: ids, comma-separated, each once */
};
void allocate_answer_deinit(struct allocate_answer *answer);

MUST_CHECK bool allocate_decide(const struct allocate_view *view, const char *const *ids,
				size_t count, struct allocate_answer *ret_answer,
				struct error *error);

/* Adds the names that one CDI spec of kind nvidia.com/gpu defines; other kinds add none. A spec
 * that isn't one is an error. */
MUST_CHECK bool allocate_nvidia_add(struct allocate_nvidia *nvidia, json_t *spec,
				    struct error *error);
void allocate_nvidia_sort(struct allocate_nvidia *nvidia);
void allocate_nvidia_deinit(struct allocate_nvidia *nvidia);
