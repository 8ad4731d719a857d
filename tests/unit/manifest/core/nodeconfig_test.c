#include "manifest/core/nodeconfig.h"
#include "sample.h"
#include "text/toml.h"

/* proves: HOSTED-17 MAN-18 MAN-34 */
static void test_what_is_written(void **state UNUSED)
{
	CLEANUP(settings) struct settings settings = {0}, other = {0};
	CLEANUP(buf) struct buf text = {0}, more = {0};

	sample_read("{}", &settings);
	nodeconfig_write(&settings, &text);
	assert_string_equal(buf_text(&text), "[gateway]\n"
					     "addresses = [\"gw.example.com:7443\"]\n"
					     "server_name = \"gw.example.com\"\n"
					     "ca_pins = \"" SAMPLE_PIN "\"\n"
					     "\n"
					     "[join]\n"
					     "server = \"https://compute.example.com\"\n"
					     "encryption_pins = \"" SAMPLE_PIN "\"\n"
					     "signing_pins = \"" SAMPLE_PIN "\"\n"
					     "\n"
					     "[host]\n"
					     "units = false\n"
					     "\n"
					     "[kubernetes]\n"
					     "site_id = \"" SAMPLE_SITE "\"\n"
					     "runtime_config = [\"/etc/containerd/config.toml\"]\n"
					     "toolkit_config = "
					     "[\"/usr/local/nvidia/toolkit/.config\"]\n");
	sample_read("{\"hostUnits\":true,\"gpuApi\":\"dra\"}", &other);
	nodeconfig_write(&other, &more);
	assert_null(strstr(buf_text(&more), "[host]"));
	assert_non_null(strstr(buf_text(&more), "\ngpu_api = \"dra\"\n"));
}

static void test_strings_come_back(void **state UNUSED)
{
	static const char *const TEXTS[] = {
		"",    "plain",  "\"",     "\\",      "a\"b\\c\n\t\r\x01\x7f",
		"'''", "\"\"\"", "grün 𝄞", "\\u0041", "a\nkey = \"x\"",
		"#",
	};

	for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {
		CLEANUP(buf) struct buf text = {0};
		CLEANUP(tree) json_t *tree = NULL;
		struct error error;

		buf_add_text(&text, "k = ");
		nodeconfig_quote(&text, TEXTS[i]);
		buf_add_char(&text, '\n');
		expect_ok(toml_parse(buf_text(&text), text.length, 1000, "a", &tree, &error),
			  &error);
		assert_int_equal(json_object_size(tree), 1);
		assert_string_equal(json_string_value(json_object_get(tree, "k")), TEXTS[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written),
		cmocka_unit_test(test_strings_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
