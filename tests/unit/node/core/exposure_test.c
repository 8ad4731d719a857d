#include "node/core/exposure.h"

#include "lib/test.h"

#include <stdio.h>

/* proves: HOSTED-26 */
static void test_nothing_is_open(void **state UNUSED)
{
	struct exposure_view view = {0};
	char text[CONDITIONS_MESSAGE_SIZE] = "x";

	exposure_decide(&view, text);
	assert_string_equal(text, "");
}

/* proves: HOSTED-26 */
static void test_each_is_named_with_what_to_do(void **state UNUSED)
{
	struct exposure_unread items[] = {
		{"open '/etc/containerd/config.toml': no such file", false},
		{"open '/usr/local/nvidia/toolkit/.config': permission denied", true},
	};
	struct exposure_view view = {.items = items, .count = 2};
	char text[CONDITIONS_MESSAGE_SIZE];

	exposure_decide(&view, text);
	assert_string_equal(
		text,
		"the container runtime's configuration can't be read · open "
		"'/etc/containerd/config.toml': no such file · show it to bcd there, or name what "
		"it is in runtime_config (of manifests: containerRuntime); the NVIDIA toolkit's "
		"configuration can't be read · open '/usr/local/nvidia/toolkit/.config': "
		"permission "
		"denied · show it to bcd there, or name what it is in toolkit_config (of "
		"manifests: nvidiaToolkit)");
}

/* What has no room is counted, and one is always told of. */
static void test_a_message_has_its_bound(void **state UNUSED)
{
	char path[CONFIG_MAX_PATH + 1], text[CONDITIONS_MESSAGE_SIZE];

	for (size_t length = 1; length <= CONFIG_MAX_PATH; length++) {
		struct exposure_unread items[8];
		struct exposure_view view = {.items = items, .count = 8};

		memset(path, 'a', length);
		path[0] = '/';
		path[length] = '\0';
		for (size_t i = 0; i < 8; i++)
			items[i] = (struct exposure_unread){path, false};
		exposure_decide(&view, text);
		assert_non_null(strstr(text, "can't be read · /"));
		if (!strstr(text, " more"))
			assert_true(length > 700); /* the one that fills it */
		else
			assert_string_equal(strstr(text, " more"), " more");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_open),
		cmocka_unit_test(test_each_is_named_with_what_to_do),
		cmocka_unit_test(test_a_message_has_its_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
