#include "gpu/core/cut.h"
#include "lib/test.h"

#include <stdio.h>

#define H100 ((int64_t)81559 << 20)

/* "uuid gi ci profile start size": start -1 and size 0 are what nvidia-smi leaves open. */
static void add(struct cuts *cuts, const char *uuid, int32_t gi, int32_t ci, const char *profile,
		int32_t start, int32_t size)
{
	struct cut *cut = vec_push(cuts);

	cut->told = (struct reading_mig){.gi = gi, .ci = ci, .start = start, .size = size};
	str_copy(cut->told.uuid, sizeof cut->told.uuid, uuid);
	str_copy(cut->told.profile, sizeof cut->told.profile, profile);
}

static void expect_range(const struct cuts *cuts, const char *uuid, int32_t lo, int32_t hi)
{
	for (size_t i = 0; i < cuts->count; i++) {
		if (!str_equal(cuts->items[i].told.uuid, uuid))
			continue;
		if (cuts->items[i].range.lo != lo || cuts->items[i].range.hi != hi)
			fail_msg("%s takes [%d, %d), not [%d, %d)", uuid,
				 (int)cuts->items[i].range.lo, (int)cuts->items[i].range.hi,
				 (int)lo, (int)hi);
		return;
	}
	fail_msg("no %s", uuid);
}

static void expect_apart(const struct cuts *cuts)
{
	for (size_t i = 0; i < cuts->count; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(cuts->items[i].range.hi <= cuts->items[j].range.lo ||
				    cuts->items[j].range.hi <= cuts->items[i].range.lo);
}

static void test_what_is_told_stands(void **state)
{
	struct cuts cuts = {0}, none = {0};

	(void)state;
	add(&cuts, "MIG-a", 9, 0, "1g.10gb", 6, 1);
	add(&cuts, "MIG-b", 1, 0, "3g.40gb", 0, 4);
	add(&cuts, "MIG-c", 3, 0, "2g.20gb", -1, 0);
	cut_place(&cuts, &none, H100);
	expect_range(&cuts, "MIG-a", 768, 896);
	expect_range(&cuts, "MIG-b", 0, 512);
	expect_range(&cuts, "MIG-c", 512, 768);
	vec_deinit(&cuts);
}

/* A source that can't tell where they lie: none meets another, and none moves while others come and
 * go. proves: DP-51 */
static void test_untold_places_stay(void **state)
{
	struct cuts first = {0}, second = {0}, none = {0};

	(void)state;
	add(&first, "MIG-a", 7, 0, "1g.10gb", -1, 0);
	add(&first, "MIG-b", 8, 0, "1g.10gb", -1, 0);
	add(&first, "MIG-c", 9, 0, "1g.10gb+me", -1, 0);
	add(&first, "MIG-d", 2, 0, "3g.40gb", -1, 0);
	cut_place(&first, &none, H100);
	expect_apart(&first);
	expect_range(&first, "MIG-d", 0, 512);
	expect_range(&first, "MIG-b", 640, 768);
	/* a goes, and e comes before all others */
	add(&second, "MIG-e", 1, 0, "1g.20gb", -1, 0);
	for (size_t i = 1; i < first.count; i++)
		*vec_push(&second) = (struct cut){.told = first.items[i].told};
	cut_place(&second, &first, H100);
	expect_range(&second, "MIG-b", 640, 768);
	expect_range(&second, "MIG-c", 768, 896);
	expect_range(&second, "MIG-d", 0, 512);
	/* its two eighths fit nowhere in a row: it excludes all others */
	expect_range(&second, "MIG-e", 0, 1024);
	vec_deinit(&first);
	vec_deinit(&second);
}

static void test_parts_of_one_instance(void **state)
{
	struct cuts first = {0}, second = {0}, none = {0};

	(void)state;
	add(&first, "MIG-a", 2, 0, "1c.3g.40gb", 4, 4);
	add(&first, "MIG-b", 2, 1, "1c.3g.40gb", 4, 4);
	add(&first, "MIG-c", 1, 0, "1c.2g.20gb", 0, 2);
	cut_place(&first, &none, H100);
	expect_apart(&first);
	expect_range(&first, "MIG-a", 512, 682);
	expect_range(&first, "MIG-b", 682, 852);
	expect_range(&first, "MIG-c", 0, 128);
	add(&second, "MIG-n", 2, 0, "1c.3g.40gb", -1, 0);
	add(&second, "MIG-b", 2, 1, "1c.3g.40gb", -1, 0);
	cut_place(&second, &first, H100);
	expect_range(&second, "MIG-b", 682, 852);
	expect_range(&second, "MIG-n", 512, 682);
	vec_deinit(&first);
	vec_deinit(&second);
}

static void test_names_that_say_nothing(void **state)
{
	static const char *const profiles[] = {"", "g", "9g.1gb", "0g.10gb", "3c.1g.10gb", "1g.x"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		struct cuts cuts = {0}, none = {0};

		add(&cuts, "MIG-a", 1, 0, profiles[i], -1, 0);
		cut_place(&cuts, &none, 0);
		expect_range(&cuts, "MIG-a", 0, 1024);
		vec_deinit(&cuts);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_told_stands),
		cmocka_unit_test(test_untold_places_stay),
		cmocka_unit_test(test_parts_of_one_instance),
		cmocka_unit_test(test_names_that_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
