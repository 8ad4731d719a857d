/* sys/clock.h and sys/random.h from the queue's time and the seed. */
#include "sim/sim.h"
#include "sys/clock.h"
#include "sys/random.h"

#include <stdio.h>

/* The world begins here, 2026-11-29T00:00:00Z. */
#define WALL_START_MS INT64_C(1795910400000)

struct mono clock_mono(void)
{
	/* CLOCK_BOOTTIME begins with the boot: a time of an earlier boot means nothing. */
	int64_t booted_ms = sim.current ? sim.current->machine->booted_ms : 0;
	return (struct mono){sim.now_ms - booted_ms + 1};
}

struct wall sim_true_wall(void)
{
	return (struct wall){WALL_START_MS + sim.now_ms};
}

struct wall clock_wall(void)
{
	const struct sim_machine *machine = sim.current ? sim.current->machine : sim.clock;
	return (struct wall){sim_true_wall().ms + (machine ? machine->wrong_ms : 0)};
}

int64_t clock_us(void)
{
	return clock_mono().ms * 1000;
}

void clock_boot_id(char out[CLOCK_BOOT_ID_SIZE])
{
	uint64_t boot = sim.current ? sim.current->machine->boot : 0;
	snprintf(out, CLOCK_BOOT_ID_SIZE, "00000000-0000-4000-8000-%012llx",
		 (unsigned long long)boot & 0xffffffffffff);
}

void random_bytes(void *out, size_t length)
{
	uint8_t *bytes = out;
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)sim_below(256);
}

uint64_t random_below(uint64_t bound)
{
	return sim_below(bound);
}

void random_id(char out[ID_SIZE], const char *prefix, struct wall now)
{
	uint8_t bytes[ID_RANDOM_SIZE];
	random_bytes(bytes, sizeof bytes);
	id_format(out, prefix, now, bytes);
}
