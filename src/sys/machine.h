/*
 * machine: what this machine is: its name, kernel, size, and what a device node stands for.
 *
 * Threads   any. Simulated by tests/sim.
 */
#pragma once

#include "base/base.h"
#include "base/hugepages.h"

#define MACHINE_TEXT_SIZE 256

struct machine {
	char hostname[MACHINE_TEXT_SIZE];
	char kernel[MACHINE_TEXT_SIZE]; /* release, such as "6.1.0-40-amd64" */
	int32_t vcpus;                  /* online */
	int64_t memory_bytes;           /* huge pages included */
	struct hugepages hugepages;     /* in the pools, of all NUMA nodes; free or not */
};
/* Huge pages as the kernel has them now: what changes later is seen at the next start, as it is by
 * the kubelet. */
void machine_read(struct machine *ret_machine);

/* The pools in a folder such as MACHINE_HUGEPAGES; a size that the kernel lacks, or that can't be
 * read, has none. */
#define MACHINE_HUGEPAGES "/sys/kernel/mm/hugepages"
void machine_hugepages(const char *folder, struct hugepages *ret_pages);

struct machine_device {
	char type; /* 'c' or 'b' */
	uint32_t major, minor;
};
/* What kind of device node `path` is (links are followed); false when it is none. */
bool machine_device(const char *path, struct machine_device *ret_device);
