#include "node/core/given.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is taken can be used as a name in a folder and as an id. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(given_list) struct given_list list = {0};
	struct error error;

	if (!given_parse((const char *)data, size, &list, &error))
		return 0;
	for (size_t i = 0; i < list.items.count; i++)
		if (strchr(list.items.items[i].pod, '/') || strchr(list.items.items[i].pod, '.') ||
		    !*list.items.items[i].pod || !*list.items.items[i].id)
			abort();
	return 0;
}
