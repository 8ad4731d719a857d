#include "proto/hugepages.h"

void hugepages_pack(const struct hugepages *pages, struct arena *arena,
		    Bettercompute__V1__HugePages ***ret_items, size_t *ret_count)
{
	Bettercompute__V1__HugePages **items = arena_alloc(arena, HUGEPAGES_SIZES * sizeof *items);
	size_t count = 0;

	for (int i = 0; i < HUGEPAGES_SIZES; i++) {
		if (pages->bytes[i] == 0)
			continue;
		items[count] = arena_alloc(arena, sizeof **items);
		bettercompute__v1__huge_pages__init(items[count]);
		items[count]->page_bytes = hugepages_page_bytes((enum hugepages_size)i);
		items[count++]->bytes = pages->bytes[i];
	}
	*ret_items = items;
	*ret_count = count;
}

struct hugepages hugepages_unpack(Bettercompute__V1__HugePages *const *items, size_t count)
{
	struct hugepages pages = {0};

	for (size_t i = 0; i < count; i++) {
		enum hugepages_size size;

		if (hugepages_find(items[i]->page_bytes, &size) && items[i]->bytes > 0)
			pages.bytes[size] = items[i]->bytes;
	}
	return pages;
}
