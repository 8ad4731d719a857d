/*
 * source_internal: what the two sources have in common; for source.c, simulated.c and driver.c.
 */
#pragma once

#include "gpu/source.h"

/* Each as the function of source.h that calls it. */
struct source_ops {
	void (*destroy)(struct source *source); /* frees the whole, source_deinit() included */
	bool (*look)(struct source *source);    /* the only one that may put another inventory */
	int32_t (*last_xid)(const struct source *source, struct atom_uuid gpu);
	const struct health_facts *(*facts)(const struct source *source, struct atom_uuid gpu);
};

/* Stands first in each of them. */
struct source {
	const struct source_ops *ops;
	struct loop *loop;
	loop_fn *on_change;
	void *arg;
	int32_t slots;

	struct inventory inventory;
	struct reading reading;
	struct mono read_at;
	const char *name;
	bool settled, has_reading;
	struct error error; /* code NONE: readable */
	const struct error *log_error, *record_error;
	const char *marker, *strangers;
	uint64_t log_lost, failures;
};

struct source *simulated_create(struct loop *loop, const struct source_options *options,
				loop_fn *on_change, void *arg);
struct source *driver_create(struct loop *loop, const struct source_options *options,
			     loop_fn *on_change, void *arg);

void source_init(struct source *source, const struct source_ops *ops, struct loop *loop,
		 const struct source_options *options, loop_fn *on_change, void *arg);
void source_deinit(struct source *source);
/* Takes over what it is given. */
void source_put_inventory(struct source *source, struct inventory *inventory);
void source_put_reading(struct source *source, struct reading *reading);
