/*
 * allocate: answers one container's Allocate from what is on disk at this moment (DP-26).
 *
 * Reads     the holds' folder at each call, and what changed in it; NVIDIA's CDI specs in /etc/cdi
 *           and /var/run/cdi again when they changed. One of NVIDIA's that can't be read names no device, and is logged once.
 * Threads   the loop's. Blocks on disk: a few small files.
 */
#pragma once

#include "base/error.h"
#include "node/core/allocate.h"

struct allocator;

struct allocator *allocator_create(const char *cdi_folder, const char *run_cdi_folder);
void allocator_destroy(struct allocator *allocator);

/* `*ret_answer` must be empty. */
MUST_CHECK bool allocator_allocate(struct allocator *allocator, const struct inventory *inventory,
				   const struct strays *strays, enum atom_class class,
				   const char *const *ids, size_t count,
				   struct allocate_answer *ret_answer, struct error *error);
