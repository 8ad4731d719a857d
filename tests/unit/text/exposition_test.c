/* Figures as Prometheus reads them. */
#include "text/exposition.h"

#include "lib/test.h"

static void test_families_and_samples(void **state UNUSED)
{
	CLEANUP(buf) struct buf text = {0};
	struct exposition out = {.text = &text, .prefix = "x_"};

	exposition_gauge(&out, "up", "Is it?", 1);
	exposition_family(&out, "never", "gauge", "Nobody knows.");
	exposition_counter(&out, "tries_total", "How often.", 0);
	exposition_family(&out, "heat_celsius", "gauge", "How warm.");
	exposition_add(&out, "gpu=\"0\"", 40);
	exposition_add(&out, "gpu=\"1\"", -5);
	assert_string_equal(buf_text(&text),
			    "# HELP x_up Is it?\n# TYPE x_up gauge\nx_up 1\n"
			    "# HELP x_tries_total How often.\n# TYPE x_tries_total counter\n"
			    "x_tries_total 0\n"
			    "# HELP x_heat_celsius How warm.\n# TYPE x_heat_celsius gauge\n"
			    "x_heat_celsius{gpu=\"0\"} 40\nx_heat_celsius{gpu=\"1\"} -5\n");
}

static void test_numbers_are_never_rounded(void **state UNUSED)
{
	static const struct {
		int64_t value;
		int exponent;
		const char *text;
	} rows[] = {
		{0, 0, "0"},
		{0, -3, "0.000"},
		{0, 6, "0"},
		{97, -2, "0.97"},
		{100, -2, "1.00"},
		{699123, -3, "699.123"},
		{-5, -3, "-0.005"},
		{1980, 6, "1980000000"},
		{INT64_MAX, -3, "9223372036854775.807"},
		{INT64_MAX, 6, "9223372036854775807000000"},
		{INT64_MIN, 0, "-9223372036854775808"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(buf) struct buf text = {0};
		struct exposition out = {.text = &text, .prefix = "", .begun = true, .name = "n"};

		exposition_add_scaled(&out, NULL, rows[i].value, rows[i].exponent);
		assert_memory_equal(buf_text(&text), "n ", 2);
		assert_int_equal(text.length, 2 + strlen(rows[i].text) + 1);
		assert_memory_equal(buf_text(&text) + 2, rows[i].text, strlen(rows[i].text));
	}
}

static void test_labels_are_escaped(void **state UNUSED)
{
	CLEANUP(buf) struct buf labels = {0};

	exposition_label(&labels, "a", "say \"hi\"\\\nthere");
	exposition_label(&labels, "b", "");
	exposition_label(&labels, "c", "caf\xc3\xa9 \xff");
	exposition_label_number(&labels, "d", -1);
	assert_string_equal(buf_text(&labels), "a=\"say \\\"hi\\\"\\\\\\nthere\",b=\"\","
					       "c=\"caf\xc3\xa9 \xef\xbf\xbd\",d=\"-1\"");
}

static void test_histograms(void **state UNUSED)
{
	CLEANUP(buf) struct buf text = {0};
	struct exposition out = {.text = &text, .prefix = "x_"};
	struct histogram took = {0};

	histogram_add(&took, 3000000);
	histogram_add(&took, 1);
	exposition_family(&out, "took_seconds", "histogram", "How long.");
	exposition_add_histogram(&out, "a=\"b\"", &took);
	exposition_add_histogram(&out, NULL, &took);
	assert_non_null(strstr(buf_text(&text), "x_took_seconds_bucket{a=\"b\",le=\"+Inf\"} 2\n"
						"x_took_seconds_sum{a=\"b\"} 3.000001\n"
						"x_took_seconds_count{a=\"b\"} 2\n"));
	assert_non_null(strstr(buf_text(&text), "x_took_seconds_bucket{le=\"+Inf\"} 2\n"
						"x_took_seconds_sum 3.000001\n"
						"x_took_seconds_count 2\n"));
	assert_null(strstr(strstr(buf_text(&text), "# TYPE") + 1, "# TYPE"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_families_and_samples),
		cmocka_unit_test(test_numbers_are_never_rounded),
		cmocka_unit_test(test_labels_are_escaped),
		cmocka_unit_test(test_histograms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
