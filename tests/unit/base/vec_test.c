#include "base/vec.h"

#include "lib/enumerate.h"
#include "lib/test.h"

static int compare_ints(const void *a, const void *b)
{
	int left = *(const int *)a, right = *(const int *)b;

	return (left > right) - (left < right);
}

static void test_push_sort_remove(void **state UNUSED)
{
	VEC(int) numbers = {0};
	int last = -1, sum = 0;

	for (int i = 0; i < 100; i++)
		*vec_push(&numbers) = i * 37 % 100;
	assert_int_equal(numbers.count, 100);
	vec_sort(&numbers, compare_ints);
	vec_each (&numbers, int *number) {
		assert_true(*number > last);
		last = *number;
	}
	vec_remove(&numbers, 0);
	vec_remove(&numbers, numbers.count - 1);
	assert_int_equal(numbers.items[0], 1);
	assert_int_equal(numbers.items[numbers.count - 1], 98);
	vec_each (&numbers, int *number) {
		if (*number > 10)
			break;
		sum += *number;
	}
	assert_int_equal(sum, 55);
	vec_clear(&numbers);
	vec_each (&numbers, int *number)
		fail_msg("%d is still there", *number);
	vec_deinit(&numbers);
	assert_null(numbers.items);
}

static void test_new_items_are_zeroed(void **state UNUSED)
{
	VEC(struct {
		int a;
		const char *b;
	})
	items = {0};

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 20; i++) {
			vec_push(&items)->a = 7;
			items.items[items.count - 1].b = "x";
		}
		vec_clear(&items);
		assert_null(vec_push(&items)->b);
	}
	vec_deinit(&items);
}

/* Every sorted sequence of 0 to 2 each of the numbers 0, 2 and 4, and keys in, between and outside of them. */
static void test_lower(void **state UNUSED)
{
	struct enumerate all = {0};

	while (enumerate_next(&all)) {
		VEC(int) numbers = {0};
		size_t first = 0;
		int key;

		for (int number = 0; number <= 4; number += 2)
			for (unsigned times = enumerate_pick(&all, 3); times > 0; times--)
				*vec_push(&numbers) = number;
		key = (int)enumerate_pick(&all, 7) - 1;
		while (first < numbers.count && numbers.items[first] < key)
			first++;
		assert_int_equal(vec_lower(numbers.count, at, numbers.items[at] < key), first);
		vec_deinit(&numbers);
	}
	assert_int_equal(all.rounds, 3 * 3 * 3 * 7);
}

/* It halves: of a thousand it asks for ten at most. */
static void test_lower_asks_few(void **state UNUSED)
{
	for (size_t wanted = 0; wanted <= 1000; wanted++) {
		size_t asked = 0;

		assert_int_equal(vec_lower(1000, at, (asked++, at < wanted)), wanted);
		assert_true(asked <= 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push_sort_remove),
		cmocka_unit_test(test_new_items_are_zeroed),
		cmocka_unit_test(test_lower),
		cmocka_unit_test(test_lower_asks_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
