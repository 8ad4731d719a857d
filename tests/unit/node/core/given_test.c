#include "lib/test.h"
#include "node/core/given.h"

#define ENTRY(pod, resource, devices)                                                              \
	"{\"PodUID\":\"" pod "\",\"ContainerName\":\"main\",\"ResourceName\":\"" resource          \
	"\",\"DeviceIDs\":" devices ",\"AllocResp\":\"\"}"
#define FILE_OF(entries)                                                                           \
	"{\"Data\":{\"PodDeviceEntries\":" entries ",\"RegisteredDevices\":{}},\"Checksum\":1}"

static bool parse(const char *text, struct given_list *list, struct error *error)
{
	return given_parse(text, strlen(text), list, error);
}

/* proves: REL-7 REL-14 */
static void test_reads_who_has_what(void **state)
{
	CLEANUP(given_list) struct given_list list = {0};
	struct error error;

	(void)state;
	expect_ok(
		parse(FILE_OF("[" ENTRY(
			      "u-1", "bcd.dev/gpu",
			      "{\"0\":[\"a@x\"],\"1\":[\"b@x\"]}") "," ENTRY("u-2",
									     "example.com/other",
									     "7") "," ENTRY("u-3",
											    "bcd."
											    "dev/"
											    "gpu."
											    "mig",
											    "{\"-"
											    "1\":"
											    "[\"c"
											    "@y\""
											    "]}") "]"),
		      &list, &error),
		&error);
	assert_int_equal(list.items.count, 3);
	assert_string_equal(list.items.items[0].pod, "u-1");
	assert_string_equal(list.items.items[0].id, "a@x");
	assert_string_equal(list.items.items[1].id, "b@x");
	assert_string_equal(list.items.items[2].pod, "u-3");
	assert_string_equal(list.items.items[2].container, "main");
}

static void test_a_kubelet_that_gave_nothing(void **state)
{
	static const char *const texts[] = {FILE_OF("null"), FILE_OF("[]")};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(given_list) struct given_list list = {0};
		struct error error;

		expect_ok(parse(texts[i], &list, &error), &error);
		assert_int_equal(list.items.count, 0);
	}
}

/* What can't be read is an error, never "nothing". proves: REL-14 */
static void test_damage_is_an_error(void **state)
{
	static const char *const texts[] = {
		"",
		"{}",
		"{\"Data\":7}",
		"{\"Data\":{\"PodDeviceEntries\":{}}}",
		FILE_OF("[7]"),
		FILE_OF("[{}]"),
		FILE_OF("[" ENTRY("", "bcd.dev/gpu", "{}") "]"),
		FILE_OF("[" ENTRY("..", "bcd.dev/gpu", "{}") "]"),
		FILE_OF("[" ENTRY("a/b", "bcd.dev/gpu", "{}") "]"),
		FILE_OF("[" ENTRY("u", "bcd.dev/gpu", "[]") "]"),
		FILE_OF("[" ENTRY("u", "bcd.dev/gpu", "{\"0\":7}") "]"),
		FILE_OF("[" ENTRY("u", "bcd.dev/gpu", "{\"0\":[\"\"]}") "]"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct given_list list = {0};
		struct error error;

		if (parse(texts[i], &list, &error))
			fail_msg("%s was taken", texts[i]);
		assert_null(list.items.items);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_who_has_what),
		cmocka_unit_test(test_a_kubelet_that_gave_nothing),
		cmocka_unit_test(test_damage_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
