/*
 * clock: the two kinds of time, and which boot this is. Simulated by tests/sim.
 * Below a turn nobody reads a clock: `now` is passed down.
 */
#pragma once

#include "base/base.h"

struct mono clock_mono(void); /* CLOCK_BOOTTIME */
struct wall clock_wall(void); /* CLOCK_REALTIME, milliseconds UTC */
/* Of the first clock, in microseconds: only to measure how long something took. */
int64_t clock_us(void);

/* The kernel's boot id (/proc/sys/kernel/random/boot_id), 36 characters; "" if unreadable. */
#define CLOCK_BOOT_ID_SIZE 37
void clock_boot_id(char out[CLOCK_BOOT_ID_SIZE]);
