#include "cli/table.h"
#include "lib/test.h"

static const struct table_column COLUMNS[] = {{"ID", TABLE_ID},
					      {"STATE", 0},
					      {"N", TABLE_RIGHT},
					      {"WHERE", TABLE_WIDE},
					      {"NOTE", TABLE_FLEX}};

static void fill(struct table *table)
{
	table_init(table, COLUMNS, ARRAY_SIZE(COLUMNS));
	const char *const rows[][5] = {
		{"rsv_01kb7aaaaaaaaaaaaaaaaaaaaa1", "active", "2", "here", ""},
		{"rsv_01kb7aaaaaaaaaaaaaaaaaaaaa2", "released", "16", "there",
		 "DevicesHeld: pod train/worker-3 holds 2 GPUs"},
	};
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < 5; k++)
			table_cell(table, rows[i][k]);
	}
}

static void assert_rendered(const struct table *table, size_t width, bool wide, const char *wanted)
{
	CLEANUP(buf) struct buf text = {0};

	table_render(table, width, wide, &text);
	assert_string_equal(buf_text(&text), wanted);
}

static void test_whole_without_a_terminal(void **state)
{
	CLEANUP(table) struct table table;

	(void)state;
	fill(&table);
	assert_rendered(&table, 0, false,
			"ID                               STATE      N  NOTE\n"
			"rsv_01kb7aaaaaaaaaaaaaaaaaaaaa1  active     2  -\n"
			"rsv_01kb7aaaaaaaaaaaaaaaaaaaaa2  released  16  DevicesHeld: pod "
			"train/worker-3 holds 2 GPUs\n");
}

static void test_wide_shows_all_columns_uncut(void **state)
{
	CLEANUP(table) struct table table;

	(void)state;
	fill(&table);
	assert_rendered(&table, 20, true,
			"ID                               STATE      N  WHERE  NOTE\n"
			"rsv_01kb7aaaaaaaaaaaaaaaaaaaaa1  active     2  here   -\n"
			"rsv_01kb7aaaaaaaaaaaaaaaaaaaaa2  released  16  there  DevicesHeld: pod "
			"train/worker-3 holds 2 GPUs\n");
}

static void test_fits_the_terminal(void **state)
{
	CLEANUP(table) struct table table;

	(void)state;
	fill(&table);
	for (size_t width = 20; width <= 120; width++) {
		CLEANUP(buf) struct buf text = {0};
		table_render(&table, width, false, &text);
		for (char *line = (char *)text.data; line && *line;) {
			char *end = strchr(line, '\n');
			*end = '\0';
			assert_true(table_text_width(line) <= width);
			line = end + 1;
		}
	}
}

static void test_a_narrow_terminal_shows_blocks(void **state)
{
	CLEANUP(table) struct table table;

	(void)state;
	fill(&table);
	assert_rendered(&table, 26, false,
			"ID     rsv_01kb7aaaaaaaaa…\n"
			"STATE  active\n"
			"N      2\n"
			"\n"
			"ID     rsv_01kb7aaaaaaaaa…\n"
			"STATE  released\n"
			"N      16\n"
			"NOTE   DevicesHeld: pod\n"
			"       train/worker-3\n"
			"       holds 2 GPUs\n");
}

static void test_a_column_of_one_text_says_nothing(void **state)
{
	static const struct table_column columns[] = {{"A", 0}, {"B", TABLE_ALIKE}};
	CLEANUP(table) struct table table;

	(void)state;
	table_init(&table, columns, 2);
	table_cell(&table, "1");
	table_cell(&table, "x");
	table_cell(&table, "2");
	table_cell(&table, "x");
	assert_rendered(&table, 0, false, "A\n1\n2\n");
	assert_rendered(&table, 0, true, "A  B\n1  x\n2  x\n");
	table_cell(&table, "3");
	table_cell(&table, "y");
	assert_rendered(&table, 0, false, "A  B\n1  x\n2  x\n3  y\n");
}

/* What tells the parts of a GPU apart is never what is cut. */
static void test_devices_stay_apart(void **state)
{
	static const struct table_column columns[] = {{"GPU", TABLE_RIGHT},
						      {"DEVICE", TABLE_DEVICE},
						      {"NUMA", TABLE_RIGHT | TABLE_SPARE}};
	static const char *const CELLS[] = {
		"6", "gpu/1eb2b987-75ef-4a5d-aff6-229b29039109/s0", "1",
		"6", "gpu/1eb2b987-75ef-4a5d-aff6-229b29039109/s1", "1",
		"7", "gpu/5e1fbc90-b12b-469b-bd94-6f52210982f3",    "1"};
	CLEANUP(table) struct table table;

	(void)state;
	table_init(&table, columns, 3);
	for (size_t i = 0; i < ARRAY_SIZE(CELLS); i++)
		table_cell(&table, CELLS[i]);
	assert_rendered(&table, 56, false,
			"GPU  DEVICE                                       NUMA\n"
			"  6  gpu/1eb2b987-75ef-4a5d-aff6-229b29039109/s0     1\n"
			"  6  gpu/1eb2b987-75ef-4a5d-aff6-229b29039109/s1     1\n"
			"  7  gpu/5e1fbc90-b12b-469b-bd94-6f52210982f3        1\n");
	assert_rendered(&table, 30, false,
			"GPU  DEVICE            NUMA\n"
			"  6  gpu/1eb2b987…/s0     1\n"
			"  6  gpu/1eb2b987…/s1     1\n"
			"  7  gpu/5e1fbc90…        1\n");
	assert_rendered(&table, 22, false,
			"GPU  DEVICE\n"
			"  6  gpu/1eb2b987…/s0\n"
			"  6  gpu/1eb2b987…/s1\n"
			"  7  gpu/5e1fbc90…\n");
}

/* A word longer than the line is broken where the line ends. */
static void test_blocks_lose_nothing(void **state)
{
	static const struct table_column columns[] = {{"A", TABLE_FLEX}, {"B", 0}};
	CLEANUP(table) struct table table;

	(void)state;
	table_init(&table, columns, 2);
	table_cell(&table, "gpu/1eb2b987-75ef-4a5d-aff6-229b29039109/s0");
	table_cell(&table, "größer als acht Zeichen");
	assert_rendered(&table, 23, false,
			"A  gpu/1eb2b987-75ef-4a\n"
			"   5d-aff6-229b29039109\n"
			"   /s0\n"
			"B  größer als acht\n"
			"   Zeichen\n");
}

static void test_a_sparse_column_shows_when_it_says_something(void **state)
{
	static const struct table_column columns[] = {{"A", 0}, {"B", TABLE_SPARSE}};
	CLEANUP(table) struct table table;

	(void)state;
	table_init(&table, columns, 2);
	table_cell(&table, "1");
	table_cell(&table, NULL);
	assert_rendered(&table, 0, false, "A\n1\n");
	assert_rendered(&table, 0, true, "A  B\n1  -\n");
	table_cell(&table, "2");
	table_cell(&table, "x");
	assert_rendered(&table, 0, false, "A  B\n1  -\n2  x\n");
}

static void test_ids_stay_distinct_when_cut(void **state)
{
	static const struct table_column ids[] = {{"ID", TABLE_ID}, {"X", 0}};
	CLEANUP(table) struct table table;

	(void)state;
	table_init(&table, ids, 2);
	table_cell(&table, "rsv_01kb7aaaaaaaaaaaaaaaaaaaaa");
	table_cell(&table, "long enough to need the room");
	table_cell(&table, "rsv_01kb7aaaaaazzzzzzzzzzzzzzz");
	table_cell(&table, "b");
	assert_rendered(&table, 47, false,
			"ID                 X\n"
			"rsv_01kb7aaaaaaa…  long enough to need the room\n"
			"rsv_01kb7aaaaaaz…  b\n");
}

static void test_flexible_text_is_cut_with_a_mark(void **state)
{
	static const struct table_column flex[] = {{"A", TABLE_FLEX}};
	CLEANUP(table) struct table table;

	(void)state;
	table_init(&table, flex, 1);
	table_cell(&table, "größer als gedacht");
	assert_rendered(&table, 10, false, "A\ngrößer al…\n");
}

static void test_foreign_text_cannot_move_the_cursor(void **state)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
		{"a\033[31mb", "a?[31mb"},
		{"a\nb\tc", "a?b?c"},
		{"\x7f", "?"},
		{"\xc2\x9b"
		 "31m",
		 "?31m"},
		{"a\u202eb\u2066c\u200f", "a?b?c?"}, /* what turns the writing's direction */
		{"a\u200bb\u2028c\ufeff", "a?b?c?"},
		{"\xe0\x80\x8a", "???"}, /* overlong */
		{"\xff\xfe", "??"},
		{"\xe2\x82", "??"},
		{"gr\xc3\xb6\xc3\x9f"
		 "er",
		 "größer"},
		{"…×·", "…×·"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = mem_strdup(cases[i].text);
		table_sanitize(text);
		assert_string_equal(text, cases[i].shown);
		free(text);
	}
	char lines[] = "a\nb\033\u202e\n";
	table_sanitize_lines(lines);
	assert_string_equal(lines, "a\nb??\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_without_a_terminal),
		cmocka_unit_test(test_wide_shows_all_columns_uncut),
		cmocka_unit_test(test_fits_the_terminal),
		cmocka_unit_test(test_a_narrow_terminal_shows_blocks),
		cmocka_unit_test(test_a_column_of_one_text_says_nothing),
		cmocka_unit_test(test_devices_stay_apart),
		cmocka_unit_test(test_blocks_lose_nothing),
		cmocka_unit_test(test_a_sparse_column_shows_when_it_says_something),
		cmocka_unit_test(test_ids_stay_distinct_when_cut),
		cmocka_unit_test(test_flexible_text_is_cut_with_a_mark),
		cmocka_unit_test(test_foreign_text_cannot_move_the_cursor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
