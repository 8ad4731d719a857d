#include "control/core/pool_policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct pool_policy policy;
	struct error error = {0};

	if (pool_policy_parse(json, &policy, &error)) {
		assert(policy.joins == (policy.api_server != NULL));
		assert(policy.joins == (policy.join_token_ref != NULL));
		assert(policy.gpu_api);
	} else {
		assert(error.code == ERROR_INVALID_INPUT);
		assert(error.field[0] != '\0');
	}
	json_decref(json);
	return 0;
}
