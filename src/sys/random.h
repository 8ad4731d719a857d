/* random: unpredictable bytes (getrandom). Cannot fail: aborts when the kernel has none.
 * Simulated by tests/sim from the seed. */
#pragma once

#include "base/base.h"
#include "base/id.h"

void random_bytes(void *out, size_t length);
uint64_t random_below(uint64_t bound); /* uniform in [0, bound); bound > 0 */
void random_id(char out[ID_SIZE], const char *prefix, struct wall now); /* a fresh id */
