#include "kube/core/claim.h"

#include "lib/test.h"
#include "text/tree.h"

#define RESULTS(items)         "\"status\":{\"allocation\":{\"devices\":{\"results\":[" items "]}}}"
#define RESULT(driver, device) "{\"driver\":\"" driver "\",\"device\":\"" device "\"}"
#define NAMED                  "\"metadata\":{\"uid\":\"c-1\",\"name\":\"gpus\"}"

static json_t *parse(const char *text)
{
	json_t *tree = NULL;
	struct error error;

	expect_ok(tree_parse(text, strlen(text), 65536, "claim", &tree, &error), &error);
	return tree;
}

/* proves: REL-51 */
static void test_which_claim_it_is(void **state UNUSED)
{
	static const struct {
		const char *claim;
		bool is;
	} TABLE[] = {
		{"{" NAMED "}", true},
		{"{\"metadata\":{\"uid\":\"c-2\",\"name\":\"c-1\"}}", false},
		{"{\"metadata\":{\"uid\":7}}", false},
		{"{\"metadata\":[]}", false},
		{"{}", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(tree) json_t *tree = parse(TABLE[i].claim);

		assert_int_equal(kube_claim_is(tree, "c-1"), TABLE[i].is);
	}
	assert_false(kube_claim_is(NULL, "c-1"));
}

static void test_what_was_allocated_to_it(void **state UNUSED)
{
	static const struct {
		const char *claim;
		bool has;
	} TABLE[] = {
		{"{" RESULTS(RESULT("other.dev", "gpu-0") "," RESULT("gpu.bcd.dev", "gpu-0")) "}",
		 true},
		{"{" RESULTS(RESULT("other.dev", "gpu-0")) "}", false},
		{"{" RESULTS(RESULT("gpu.bcd.dev", "gpu-1")) "}", false},
		{"{" RESULTS("7,{\"driver\":7}") "}", false},
		{"{\"status\":{\"allocation\":null}}", false},
		{"{" NAMED "}", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(tree) json_t *tree = parse(TABLE[i].claim);

		assert_int_equal(kube_claim_has(tree, "gpu.bcd.dev", "gpu-0"), TABLE[i].has);
	}
	assert_false(kube_claim_has(NULL, "gpu.bcd.dev", "gpu-0"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_claim_it_is),
		cmocka_unit_test(test_what_was_allocated_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
