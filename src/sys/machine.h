/*
 * machine: what this machine is: its name, kernel, size, and what a device node stands for.
 *
 * Threads   any. Simulated by tests/sim.
 */
#pragma once

#include "base/base.h"

#define MACHINE_TEXT_SIZE 256

struct machine {
	char hostname[MACHINE_TEXT_SIZE];
	char kernel[MACHINE_TEXT_SIZE]; /* release, such as "6.1.0-40-amd64" */
	int32_t vcpus;                  /* online */
	int64_t memory_bytes;
};
void machine_read(struct machine *ret_machine);

struct machine_device {
	char type; /* 'c' or 'b' */
	uint32_t major, minor;
};
/* What kind of device node `path` is (links are followed); false when it is none. */
bool machine_device(const char *path, struct machine_device *ret_device);
