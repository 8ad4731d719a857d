#include "node/core/operation.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With the releases unreadable nothing that touches a GPU may be done; and whatever is refused, why is said. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char reason[REPORTS_REASON_SIZE] = "", message[REPORTS_MESSAGE_SIZE] = "";
	struct inventory inventory = {0};
	struct releases releases = {0};
	struct holds holds = {0};
	const struct converge_view claims = {.holds = &holds,
					     .releases = &releases,
					     .releases_unreadable = true,
					     .inventory = &inventory};
	CLEANUP(buf) struct buf text = {0};

	vec_push(&inventory.gpus);
	buf_add(&text, data, size);
	if (operation_may(&claims, "gpu.reset", buf_text(&text), reason, message) || !*reason ||
	    !*message)
		abort();
	*reason = *message = '\0';
	operation_refuse(&claims, size % 2, buf_text(&text), "", reason, message);
	if (!*reason || !*message)
		abort();
	inventory_deinit(&inventory);
	return 0;
}
