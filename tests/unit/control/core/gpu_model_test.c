#include "control/core/gpu_model.h"

#include "lib/test.h"

static void test_models_match_as_whole_words(void **state)
{
	static const struct {
		const char *model, *text;
		bool matches;
	} rows[] = {
		{"H100", "NVIDIA H100 80GB HBM3", true},
		{"h100", "NVIDIA H100 80GB HBM3", true},
		{"H100", "H100", true},
		{"H10", "NVIDIA H100 80GB HBM3", false},
		{"100", "NVIDIA H100", false},
		{"A100", "NVIDIA A100-SXM4-40GB", true},
		{"A100-SXM4", "NVIDIA A100-SXM4", true},
		{"NVIDIA H100", "NVIDIA H100 NVL", true},
		{"H100 80GB", "NVIDIA H100 80GB", true},
		{"", "NVIDIA H100", false},
		{"H100", "", false},
		{"H100", "GH100 H100", true},
		{"H200", "NVIDIA H100", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (gpu_model_matches(rows[i].model, rows[i].text) != rows[i].matches)
			fail_msg("'%s' in '%s'", rows[i].model, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models_match_as_whole_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
