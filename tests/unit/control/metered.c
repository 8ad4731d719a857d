#include "unit/control/metered.h"

#include "control/core/timestamp.h"

/* A call with query texts; the caller's to decref. */
json_t *ask(struct world *world, world_call_fn *function, struct control_call call)
{
	json_t *answer = NULL;
	struct error error = {0};

	if (!call.principal)
		call.principal = &world->operator;
	if (!world_ask(world, function, &call, &answer, &error))
		fail_msg("%s: %s", error_code_name(error.code), error.what);
	return answer;
}

json_t *items_of(const json_t *answer)
{
	return json_object_get(answer, "items");
}

int64_t time_of(const json_t *json, const char *path)
{
	struct wall time;
	struct error error;

	expect_ok(timestamp_parse(world_text(json, path), path, &time, &error), &error);
	return time.ms;
}
