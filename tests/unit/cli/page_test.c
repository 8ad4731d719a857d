#include "cli/page.h"
#include "lib/test.h"

static void test_labels_in_one_column(void **state)
{
	CLEANUP(page) struct page page = {0};
	CLEANUP(buf) struct buf text = {0};

	(void)state;
	page_line(&page, "id", "rsv_1");
	page_line(&page, "nothing", NULL);
	page_line(&page, "nothing", "");
	page_linef(&page, "größe", "%d GPUs\033[2J", 2);
	page_line(&page, "", "more of it");
	page_render(&page, 2, 0, &text);
	assert_string_equal(buf_text(&text), "  id     rsv_1\n"
					     "  größe  2 GPUs?[2J\n"
					     "         more of it\n");
}

static void test_long_texts_go_on_below(void **state)
{
	CLEANUP(page) struct page page = {0};
	CLEANUP(buf) struct buf text = {0};

	(void)state;
	page_line(&page, "why", "too few devices  free in that time");
	page_line(&page, "id", "a-word-that-is-longer-than-any-line");
	page_render(&page, 0, 28, &text);
	assert_string_equal(buf_text(&text), "why  too few devices  free\n"
					     "     in that time\n"
					     "id   a-word-that-is-longer-than-any-line\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels_in_one_column),
		cmocka_unit_test(test_long_texts_go_on_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
