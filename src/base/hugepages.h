/*
 * hugepages: the sizes of huge pages that can be booked, and how many bytes of each.
 *
 * Sizes     those of x86-64 Linux. Names are Kubernetes': "hugepages-2Mi" is the resource.
 * Pure.
 */
#pragma once

#include "base/base.h"

enum hugepages_size {
	HUGEPAGES_2MI,
	HUGEPAGES_1GI,
};
#define HUGEPAGES_SIZES 2

/* By size; `{0}` is none. */
struct hugepages {
	int64_t bytes[HUGEPAGES_SIZES];
};

const char *hugepages_name(enum hugepages_size size);                   /* "2Mi", "1Gi" */
int64_t hugepages_page_bytes(enum hugepages_size size);                 /* of one page */
bool hugepages_find(int64_t page_bytes, enum hugepages_size *ret_size); /* false: another size */
