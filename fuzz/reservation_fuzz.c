#include "control/core/body.h"
#include "control/core/reserve_request.h"

#define NOW_MS ((int64_t)1796004000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct placement_need needs[RESERVE_MAX_NEEDS];
	struct reserve_request request;
	struct error error = {0};
	json_t *devices;
	size_t count;
	int total = 0;

	if (reserve_request_parse(json, false, (struct wall){NOW_MS}, &request, &error)) {
		/* What was taken is within its bounds, and survives being stored. */
		for (size_t i = 0; i < request.needs_count; i++)
			total += request.needs[i].count;
		assert(total >= 1 && total <= RESERVE_MAX_DEVICES);
		assert(request.duration_ms >= RESERVE_MIN_MS);
		assert(request.duration_ms <= RESERVE_MAX_MS);
		devices = reserve_needs_pack(request.needs, request.needs_count);
		if (!reserve_needs_unpack(devices, needs, &count))
			abort();
		assert(count == request.needs_count);
		json_decref(devices);
		free(body_canonical(json));
	} else {
		assert(error.code == ERROR_INVALID_INPUT);
	}
	json_decref(json);
	return 0;
}
