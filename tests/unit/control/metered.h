/* metered: what tests of the meter ask. */
#pragma once

#include "unit/control/world.h"

#define SECOND_MS ((int64_t)1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)

/* A call with query texts; the caller's to decref. */
json_t *ask(struct world *world, world_call_fn *function, struct control_call call);

json_t *items_of(const json_t *answer);
int64_t time_of(const json_t *json, const char *path);
