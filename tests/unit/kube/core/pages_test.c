#include "kube/core/pages.h"

#include "lib/test.h"
#include "text/tree.h"

#include <stdio.h>

#define LIST_OF(metadata, items)                                                                   \
	"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{" metadata "},\"items\":" items \
	"}"
#define LIST(continue_token, items) LIST_OF("\"continue\":\"" continue_token "\"", items)

static enum kube_pages_step take(struct kube_pages *pages, int status, const char *body,
				 struct error *error)
{
	CLEANUP(kube_request)
	struct kube_request request = kube_list(&KUBE_POD, &(struct kube_list_options){0});
	CLEANUP(kube_answer) struct kube_answer answer = {0};

	kube_answer_read(&request, status, 0, body, strlen(body), &answer);
	return kube_pages_take(pages, &answer, error);
}

static void expect_items(const struct kube_pages *pages, const char *wanted)
{
	CLEANUP(buf) struct buf out = {0};

	tree_dump_canonical(&out, pages->items);
	assert_string_equal(buf_text(&out), wanted);
}

static void test_pages_are_one_list(void **state UNUSED)
{
	CLEANUP(kube_pages) struct kube_pages pages = {0};
	struct error error;

	/* An empty page with a token is not the end. */
	assert_int_equal(take(&pages, 200, LIST("a", "[]"), &error), KUBE_PAGES_MORE);
	assert_string_equal(pages.continue_token, "a");
	assert_int_equal(take(&pages, 200, LIST("b", "[1,2]"), &error), KUBE_PAGES_MORE);
	assert_int_equal(take(&pages, 200, LIST("", "[3]"), &error), KUBE_PAGES_DONE);
	expect_items(&pages, "[1,2,3]");
}

static void test_no_items(void **state UNUSED)
{
	static const char *const BODIES[] = {LIST_OF("", "null"), LIST_OF("", "[]"),
					     LIST("", "null")};

	for (size_t i = 0; i < ARRAY_SIZE(BODIES); i++) {
		CLEANUP(kube_pages) struct kube_pages pages = {0};
		struct error error;

		assert_int_equal(take(&pages, 200, BODIES[i], &error), KUBE_PAGES_DONE);
		expect_items(&pages, "[]");
	}
}

static void test_a_token_that_has_run_out(void **state UNUSED)
{
	static const char FIRST[] = LIST("a", "[1]");
	CLEANUP(kube_pages) struct kube_pages pages = {0};
	struct error error;

	for (int i = 0; i < KUBE_PAGES_RESTARTS; i++) {
		assert_int_equal(take(&pages, 200, FIRST, &error), KUBE_PAGES_MORE);
		assert_int_equal(take(&pages, 410, "{}", &error), KUBE_PAGES_MORE);
		assert_null(pages.continue_token); /* from the start, with nothing kept */
		assert_null(pages.items);
	}
	assert_int_equal(take(&pages, 200, FIRST, &error), KUBE_PAGES_MORE);
	assert_int_equal(take(&pages, 410, "{}", &error), KUBE_PAGES_FAILED);
	assert_non_null(strstr(error.what, "the list ran out 4 times"));
}

static void test_failures(void **state UNUSED)
{
	CLEANUP(kube_pages) struct kube_pages pages = {0};
	struct error error;

	assert_int_equal(take(&pages, 410, "{}", &error), KUBE_PAGES_FAILED); /* of a first page */
	assert_int_equal(take(&pages, 403, "{}", &error), KUBE_PAGES_FAILED);
	assert_int_equal(error.code, ERROR_FORBIDDEN);
	assert_int_equal(take(&pages, 200, LIST("a", "[]"), &error), KUBE_PAGES_MORE);
	assert_int_equal(take(&pages, 200, LIST("a", "[]"), &error), KUBE_PAGES_FAILED);
	assert_non_null(strstr(error.what, "circle"));
}

/* Who isn't on a list counts as gone: so what is no whole list is none. proves: REL-14 REL-46 */
static void test_what_is_no_list(void **state UNUSED)
{
	static const char *const BODIES[] = {
		"{}",
		"{\"status\":\"ok\"}",
		"{\"items\":null}",
		"{\"items\":[],\"metadata\":{}}",
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":500,"
		"\"metadata\":{},\"items\":[]}",
		"{\"kind\":\"ServiceList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}",
		"{\"kind\":\"PodList\",\"metadata\":{},\"items\":[]}",
		"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{}}",
		"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[]}",
		LIST_OF("", "{}"),
		LIST_OF("", "0"),
		LIST_OF("\"continue\":1", "[]"),
		LIST_OF("\"continue\":null", "[]"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(BODIES); i++) {
		CLEANUP(kube_pages) struct kube_pages pages = {0};
		struct error error = {0};

		if (take(&pages, 200, BODIES[i], &error) != KUBE_PAGES_FAILED)
			fail_msg("taken as a list: %s", BODIES[i]);
		assert_int_equal(error.code, ERROR_UNAVAILABLE);
		assert_true(*error.hint);
		assert_null(pages.items);
	}
}

static void test_bounds(void **state UNUSED)
{
	CLEANUP(kube_pages) struct kube_pages pages = {0}, many = {0};
	CLEANUP(buf) struct buf body = {0};
	struct error error;
	char page[120];

	for (int i = 1; i < KUBE_PAGES_MAX; i++) {
		snprintf(page, sizeof page, LIST("%d", "[]"), i);
		assert_int_equal(take(&pages, 200, page, &error), KUBE_PAGES_MORE);
	}
	assert_int_equal(take(&pages, 200, LIST("x", "[]"), &error), KUBE_PAGES_FAILED);
	assert_int_equal(error.code, ERROR_RESOURCES_EXHAUSTED);

	buf_add_text(&body,
		     "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[0");
	for (int i = 0; i < KUBE_PAGES_MAX_ITEMS; i++)
		buf_add_text(&body, ",0");
	buf_add_text(&body, "]}");
	assert_int_equal(take(&many, 200, buf_text(&body), &error), KUBE_PAGES_FAILED);
	assert_int_equal(error.code, ERROR_RESOURCES_EXHAUSTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages_are_one_list),       cmocka_unit_test(test_no_items),
		cmocka_unit_test(test_a_token_that_has_run_out), cmocka_unit_test(test_failures),
		cmocka_unit_test(test_what_is_no_list),          cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
