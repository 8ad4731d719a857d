#include "standin/checkpoint.h"
#include "standin/pods.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A checkpoint that is taken can be written and read again; the same bytes as a list of pods. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct mono now = {1};
	struct manager manager = {0}, again = {0};
	struct pods pods = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	if (checkpoint_parse(data, size, now, &manager, &error)) {
		checkpoint_format(&manager, &text);
		if (!checkpoint_parse(text.data, text.length, now, &again, &error) ||
		    again.holds.count != manager.holds.count)
			abort();
	}
	if (pods_parse(data, size, &pods, &error)) {
		buf_clear(&text);
		pods_format(&pods, &text);
	}
	manager_deinit(&manager);
	manager_deinit(&again);
	pods_deinit(&pods);
	return 0;
}
