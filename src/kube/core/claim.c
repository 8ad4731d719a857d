#include "kube/core/claim.h"

static bool is(const json_t *object, const char *key, const char *value)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && str_equal(text, value);
}

bool kube_claim_is(const json_t *claim, const char *uid)
{
	return is(json_object_get(claim, "metadata"), "uid", uid);
}

bool kube_claim_has(const json_t *claim, const char *driver, const char *device)
{
	const json_t *allocation = json_object_get(json_object_get(claim, "status"), "allocation");
	const json_t *results = json_object_get(json_object_get(allocation, "devices"), "results");

	for (size_t i = 0; i < json_array_size(results); i++) {
		const json_t *result = json_array_get(results, i);

		if (is(result, "driver", driver) && is(result, "device", device))
			return true;
	}
	return false;
}
