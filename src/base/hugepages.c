#include "base/hugepages.h"

static const struct {
	const char *name;
	int64_t page_bytes;
} SIZES[HUGEPAGES_SIZES] = {
	[HUGEPAGES_2MI] = {"2Mi", (int64_t)2 << 20},
	[HUGEPAGES_1GI] = {"1Gi", (int64_t)1 << 30},
};

const char *hugepages_name(enum hugepages_size size)
{
	return SIZES[size].name;
}

int64_t hugepages_page_bytes(enum hugepages_size size)
{
	return SIZES[size].page_bytes;
}

bool hugepages_find(int64_t page_bytes, enum hugepages_size *ret_size)
{
	for (int i = 0; i < HUGEPAGES_SIZES; i++) {
		if (SIZES[i].page_bytes != page_bytes)
			continue;
		*ret_size = (enum hugepages_size)i;
		return true;
	}
	return false;
}
