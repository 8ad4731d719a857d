#include "manifest/core/chart.h"
#include "manifest/core/objects.h"
#include "sample.h"

/* Helm itself renders it in tests/peer/manifest. */
static void test_what_is_left_to_values(void **state UNUSED)
{
	CLEANUP(settings) struct settings settings = {0};
	CLEANUP(chart) struct chart chart = {0};
	CLEANUP(tree) json_t *objects = NULL;
	const char *template;

	sample_read("{}", &settings);
	objects = objects_make(&settings, "a = \"{{ x }}\"\n", "abc");
	chart_make(&settings, objects, "1.2.3", &chart);
	assert_string_equal(chart.files[0].name, "Chart.yaml");
	assert_non_null(strstr(buf_text(&chart.files[0].text), "version: \"1.2.3\"\n"));
	assert_non_null(strstr(buf_text(&chart.files[1].text), "image: \"" SAMPLE_IMAGE "\"\n"));
	assert_non_null(strstr(buf_text(&chart.files[1].text), "createNamespace: false\n"));
	template = buf_text(&chart.files[2].text);
	assert_int_equal(strncmp(template, "{{- if .Values.createNamespace }}\n", 34), 0);
	assert_non_null(strstr(template, "image: {{ toJson .Values.image }}\n"));
	assert_non_null(strstr(template, "nodeSelector: {{ toJson .Values.nodeSelector }}\n"));
	assert_non_null(strstr(template, "a = \"{{ \"{{\" }} x }}\""));
	assert_null(strstr(template, SAMPLE_IMAGE));
	assert_null(strstr(template, "@@"));
}

/* What looks like a mark, or would be one, stays as it is. */
static void test_what_looks_like_a_mark_is_text(void **state UNUSED)
{
	static const char *const CONFIGS[] = {"a = \"@@x\"\n", "\"@@image@@\"", "@@@@ @@@@@@",
					      "\"@@@@image@@@@\""};

	for (size_t i = 0; i < ARRAY_SIZE(CONFIGS); i++) {
		CLEANUP(settings) struct settings settings = {0};
		CLEANUP(chart) struct chart chart = {0};
		CLEANUP(tree) json_t *objects = NULL;
		const char *template;
		size_t marks = 0;

		sample_read("{}", &settings);
		objects = objects_make(&settings, CONFIGS[i], "\"@@resources@@\"");
		chart_make(&settings, objects, "1.2.3", &chart);
		template = buf_text(&chart.files[2].text);
		assert_non_null(strstr(template, "image: {{ toJson .Values.image }}\n"));
		for (const char *at = template; (at = strstr(at, "{{ toJson")); at++)
			marks++;
		assert_int_equal(marks, 8); /* 4 of the pod, 2 of each container */
		assert_non_null(strstr(template, "\\\"@@resources@@\\\""));
		assert_null(strstr(template, "@@@@@@@@"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_left_to_values),
		cmocka_unit_test(test_what_looks_like_a_mark_is_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
