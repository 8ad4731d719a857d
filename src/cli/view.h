/*
 * view: parts of the API's objects as short text for people. Pure but for nothing: now is an
 * argument.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <jansson.h>

const char *view_text(const json_t *object, const char *key); /* NULL when absent or no string */
int64_t view_number(const json_t *object, const char *key);   /* 0 when absent */

/* "in 7 h 59 min"; NULL when absent. In the arena. */
const char *view_relative(struct arena *arena, const json_t *object, const char *key,
			  struct wall now);
/* "2026-11-30 00:12 UTC"; NULL when absent. */
const char *view_exact(struct arena *arena, const json_t *object, const char *key);

/* "2026-11-30 00:12:07 UTC"; NULL when absent. */
const char *view_second(struct arena *arena, const json_t *object, const char *key);

/* "connected", "seen 3 min ago", "never connected, joined 2 h ago": when a node was heard of. */
const char *view_contact(struct arena *arena, const json_t *node, struct wall now);

/* "2 gpu", "1 gpu + 2 gpu.mig 1g.10gb": a reservation's devices. */
const char *view_devices(struct arena *arena, const json_t *devices);
/* "2 gpu", "3 × 8 gpu" of a gang, "2 gpu, spot": what a reservation or a request books. */
const char *view_booking(struct arena *arena, const json_t *reservation);
/* "8 × H100 simulated": a node's GPUs. */
const char *view_gpus(struct arena *arena, const json_t *node);
/* "node_01kb…" or "node_01kb… +1": where a reservation has devices, or had when it is over. */
const char *view_nodes(struct arena *arena, const json_t *reservation);
/* Is its allocation of this index one of those, and the first on its node? */
bool view_is_place(const json_t *reservation, size_t index);
/* "no node has 99 GPUs; the largest has 8 (DeviceClassMissing)": why the devices asked for were not
 * given; NULL without reasons. A reason that is not known here stands as its name. */
const char *view_reasons(struct arena *arena, const json_t *reasons, const json_t *devices);
/* One of them. */
const char *view_reason(struct arena *arena, const json_t *reasons, size_t index,
			const json_t *devices);
/* "DevicesHeld: pod train/worker-3 ..." of all conditions that are worth a look; NULL without. */
const char *view_conditions(struct arena *arena, const json_t *conditions);
/* When a reservation ends or ended. */
const char *view_ends(struct arena *arena, const json_t *reservation, struct wall now);
/* Whether its start is still to come, or was when it ended. */
bool view_start_is_ahead(const json_t *reservation, struct wall now);
/* "in 2 h": of one that waits for its start; NULL for others. */
const char *view_starts(struct arena *arena, const json_t *reservation, struct wall now);
/* "in 2 h (2026-11-30 00:12 UTC)"; NULL when absent. */
const char *view_when(struct arena *arena, const json_t *object, const char *key, struct wall now);
/* When it ends, or when an early release was asked for, exactly. */
/* For people: "releasing" while the API says released and the nodes haven't said so, and "released,
 * unconfirmed" when they never did. */
const char *view_state(const json_t *reservation);
const char *view_ends_exact(struct arena *arena, const json_t *reservation);
/* "2 GPUs unhealthy"; NULL when all are well. */
const char *view_sick_gpus(struct arena *arena, const json_t *node);
/* "1 booked device gone": booked here, and the machine has it no more; NULL for none. */
const char *view_gone_devices(struct arena *arena, const json_t *node);
/* Its message alone; NULL without the condition. */
const char *view_condition(struct arena *arena, const json_t *object, const char *type);
bool view_has_condition(const json_t *object, const char *type);
bool view_terminal(const char *reservation_state); /* no state follows */
/* Is there nothing left to change: a key, a token, a reservation or anything that is archived? */
bool view_over(const json_t *item);

/* "gpu/6f1c…" : an atom short enough for a line, still telling GPUs apart. */
const char *view_atom(struct arena *arena, const char *atom);

/* "12.5": GPU-seconds as hours. */
const char *view_hours(struct arena *arena, int64_t seconds);
/* "6 of 16": what a quota allows and what is used of it; NULL without that limit. */
const char *view_quota_devices(struct arena *arena, const json_t *quota);
const char *view_quota_hours(struct arena *arena, const json_t *quota);

/* "active", "created", "GpusUnreadable: no such file": what an event says; NULL for nothing. What is
 * not known here stands as "name=value". */
const char *view_event(struct arena *arena, const json_t *event);

/* "a=1, b=2" of an object of texts; NULL when empty. */
const char *view_map(struct arena *arena, const json_t *map);

/* Every field as "name  value" lines, nested names with dots; times relative and exact. `width` 0:
 * no limit. */
void view_fields(struct buf *out, const json_t *object, struct wall now, size_t width);
