/*
 * source: where this machine's GPUs come from; here, the simulated machine's file.
 *
 * Watches   the file and tells when the inventory changed: at once by inotify, and at each
 *           source_look(). A file that can't be read leaves the last inventory with every GPU
 *           unhealthy, and says why: unknown is not healthy.
 * Threads   the loop's.
 */
#pragma once

#include "base/error.h"
#include "gpu/core/reading.h"
#include "sys/loop.h"

struct source;

struct source_options {
	const char *file;   /* the scenario */
	const char *reason; /* why GPUs are simulated, for people */
	int32_t slots;      /* of GPUs that don't say */
};

/* `on_change` comes from the loop, never from inside a call. Reads the file once; a failure is in
 * source_error(). */
struct source *source_create(struct loop *loop, const struct source_options *options,
			     loop_fn *on_change, void *arg);
void source_destroy(struct source *source);

/* Looks at the file again if it changed. True when the inventory is another now. */
bool source_look(struct source *source);
const struct inventory *source_inventory(const struct source *source); /* until the next look */
const struct error *source_error(const struct source *source);         /* NULL: readable */
/* What the driver said last, for metrics; NULL: the GPUs are simulated, or nothing was read yet.
 * Until the next look. */
const struct reading *source_reading(const struct source *source);
