#include "manifest/core/resources.h"
#include "sample.h"

/* proves: MAN-33 */
static void test_what_kubernetes_takes(void **state UNUSED)
{
	static const char *const ROWS[] = {
		"{}",
		"{\"limits\":{},\"requests\":{}}",
		"{\"requests\":{\"cpu\":\"100m\",\"memory\":\"128Mi\"},\"limits\":{\"memory\":"
		"\"512Mi\"}}",
		"{\"requests\":{\"cpu\":\"0.1\"},\"limits\":{\"cpu\":\"100m\"}}",
		"{\"requests\":{\"cpu\":\"100m\"},\"limits\":{\"cpu\":\".1\"}}",
		"{\"requests\":{\"memory\":\"1Gi\"},\"limits\":{\"memory\":\"1073741824\"}}",
		"{\"requests\":{\"memory\":\"1e3\"},\"limits\":{\"memory\":\"1k\"}}",
		"{\"requests\":{\"ephemeral-storage\":\"1G\"},\"limits\":{\"ephemeral-storage\":"
		"\"1Gi\"}}",
		"{\"limits\":{\"example.com/nic\":\"1\"}}",
		"{\"requests\":{\"example.com/nic\":\"1000m\"},\"limits\":{\"example.com/"
		"nic\":\"1\"}}",
		"{\"requests\":{\"cpu\":\"1\"},\"limits\":{\"hugepages-2Mi\":\"4Mi\"}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
		CLEANUP(tree) json_t *resources = sample_parse(ROWS[i]);
		struct error error;

		if (!resources_check(resources, &error))
			fail_msg("%s: %s", ROWS[i], error.what);
	}
}

/* proves: MAN-43 */
static void test_what_kubernetes_refuses(void **state UNUSED)
{
	static const struct {
		const char *json, *field, *text;
	} rows[] = {
		{"{\"claims\":[]}", "resources.claims", ""},
		{"{\"limits\":[]}", "resources.limits", "object"},
		{"{\"limits\":{\"memory\":\"512MB\"}}", "resources.limits", "no quantity"},
		{"{\"limits\":{\"memory\":\"-1\"}}", "resources.limits", "no quantity"},
		{"{\"requests\":{\"cpu\":1}}", "resources.requests", "no quantity"},
		{"{\"requests\":{\"c pu\":\"1\"}}", "resources.requests", "no resource"},
		{"{\"limits\":{\"yes\":\"1\"}}", "resources.limits", "'yes' is no resource of"},
		{"{\"limits\":{\"CPU\":\"1\"}}", "resources.limits", "'CPU'"},
		{"{\"limits\":{\"requests.example.com/nic\":\"1\"}}", "resources.limits",
		 "'requests."},
		{"{\"requests\":{\"cpu\":\"2\"},\"limits\":{\"cpu\":\"1999m\"}}",
		 "resources.requests", "cpu is '2', over its limit of '1999m'"},
		{"{\"requests\":{\"memory\":\"1Gi\"},\"limits\":{\"memory\":\"1G\"}}",
		 "resources.requests", "over its limit"},
		{"{\"requests\":{\"memory\":\"1E\"},\"limits\":{\"memory\":\"1e3\"}}",
		 "resources.requests", "over its limit"},
		{"{\"requests\":{\"example.com/nic\":\"1\"}}", "resources.limits",
		 "no example.com/nic"},
		{"{\"requests\":{\"example.com/nic\":\"1\"},\"limits\":{\"example.com/"
		 "nic\":\"2\"}}",
		 "resources.requests", "must be as its limit"},
		{"{\"limits\":{\"example.com/nic\":\"1500m\"}}", "resources.limits", "whole"},
		{"{\"requests\":{\"cpu\":\"1\",\"hugepages-2Mi\":\"4Mi\"}}", "resources.limits",
		 "no hugepages-2Mi"},
		{"{\"limits\":{\"hugepages-2Mi\":\"4Mi\"}}", "resources.limits",
		 "no cpu or memory"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(tree) json_t *resources = sample_parse(rows[i].json);
		struct error error;

		if (resources_check(resources, &error))
			fail_msg("taken: %s", rows[i].json);
		if (!str_equal(error.field, rows[i].field) || !strstr(error.what, rows[i].text))
			fail_msg("%s: %s, field '%s'", rows[i].json, error.what, error.field);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_kubernetes_takes),
		cmocka_unit_test(test_what_kubernetes_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
