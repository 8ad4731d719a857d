#include "node/core/admission.h"

#include "lib/enumerate.h"
#include "lib/test.h"

#define GIB ((int64_t)1 << 30)
#define MIB ((int64_t)1 << 20)

/* proves: HOST-12 */
static void test_what_is_kept_for_the_system(void **state)
{
	const struct admission_share machine = {
		.vcpus = 64, .memory_bytes = 512 * GIB, .hugepages = {{8 * GIB, 32 * GIB}}};
	const struct admission_share reserved = {.vcpus = 1, .memory_bytes = 2 * GIB};
	const struct admission_share all = {.vcpus = 64, .memory_bytes = 480 * GIB};
	struct admission_share host = admission_bookable(&machine, &reserved);

	(void)state;
	assert_int_equal(host.vcpus, 63);
	assert_int_equal(host.memory_bytes, (512 - 2 - 8 - 32) * GIB);
	assert_int_equal(host.hugepages.bytes[HUGEPAGES_2MI], 8 * GIB);
	assert_int_equal(host.hugepages.bytes[HUGEPAGES_1GI], 32 * GIB);
	/* Never "unknown". */
	host = admission_bookable(&machine, &all);
	assert_int_equal(host.vcpus, 1);
	assert_int_equal(host.memory_bytes, 1);
}

static void check_one(struct enumerate *choices)
{
	struct admission_share host = {.vcpus = 1 + enumerate_pick(choices, 2),
				       .memory_bytes = enumerate_pick(choices, 3)};
	struct admission_share taken = {.vcpus = enumerate_pick(choices, 3),
					.memory_bytes = enumerate_pick(choices, 3)};
	struct admission_share wanted = {.vcpus = enumerate_pick(choices, 3),
					 .memory_bytes = enumerate_pick(choices, 3)};
	CLEANUP(buf) struct buf why = {0};
	CLEANUP(buf) struct buf over = {0};
	bool cpu, memory, pages;

	for (int i = 0; i < HUGEPAGES_SIZES; i++) {
		host.hugepages.bytes[i] = enumerate_pick(choices, 2);
		taken.hugepages.bytes[i] = enumerate_pick(choices, 2);
		wanted.hugepages.bytes[i] = enumerate_pick(choices, 2);
	}
	cpu = wanted.vcpus == 0 || taken.vcpus + wanted.vcpus <= host.vcpus;
	memory = wanted.memory_bytes == 0 ||
		 taken.memory_bytes + wanted.memory_bytes <= host.memory_bytes;
	pages = true;
	for (int i = 0; i < HUGEPAGES_SIZES; i++)
		pages = pages && (wanted.hugepages.bytes[i] == 0 ||
				  taken.hugepages.bytes[i] + wanted.hugepages.bytes[i] <=
					  host.hugepages.bytes[i]);
	assert_int_equal(admission_fits(&host, &taken, &wanted, &why), cpu && memory && pages);
	assert_int_equal(strstr(buf_text(&why), "vCPU") != NULL, !cpu);
	assert_int_equal(strstr(buf_text(&why), "memory") != NULL, !memory);
	assert_int_equal(strstr(buf_text(&why), "huge pages") != NULL, !pages);
	assert_int_equal(admission_overbooked(&host, &taken, &over),
			 taken.vcpus > host.vcpus || taken.memory_bytes > host.memory_bytes ||
				 taken.hugepages.bytes[0] > host.hugepages.bytes[0] ||
				 taken.hugepages.bytes[1] > host.hugepages.bytes[1]);
	assert_int_equal(over.length > 0, admission_overbooked(&host, &taken, &over));
}

/* Every machine, use and wish of a few units of each kind, against plain arithmetic.
 * proves: HOST-3 HOST-4 HOST-12 */
static void test_every_sum(void **state)
{
	struct enumerate all = {0};

	(void)state;
	while (enumerate_next(&all))
		check_one(&all);
	assert_true(all.rounds == 2 * 3 * 3 * 3 * 3 * 3 * 64);
}

/* proves: HOST-4 */
static void test_what_is_short_and_by_how_much(void **state)
{
	const struct admission_share host = {
		.vcpus = 8, .memory_bytes = 64 * MIB, .hugepages = {{0, GIB}}};
	const struct admission_share taken = {.vcpus = 5, .memory_bytes = 60 * MIB};
	struct admission_share wanted = {.vcpus = 4, .memory_bytes = 4 * MIB};
	const struct admission_share unknown = {0};
	CLEANUP(buf) struct buf why = {0};

	(void)state;
	assert_false(admission_fits(&host, &taken, &wanted, &why));
	assert_string_equal(buf_text(&why), "vCPU short by 1: 4 asked for, 5 of 8 are booked");
	buf_clear(&why);
	wanted = (struct admission_share){.memory_bytes = 4 * MIB + 1,
					  .hugepages = {{2 * MIB, 2 * GIB}}};
	assert_false(admission_fits(&host, &taken, &wanted, &why));
	assert_string_equal(
		buf_text(&why),
		"memory short by 1 MiB: 5 MiB asked for, 60 of 64 MiB are booked; "
		"huge pages of 2Mi short by 2 MiB: 2 MiB asked for, 0 of 0 MiB are booked; "
		"huge pages of 1Gi short by 1024 MiB: 2048 MiB asked for, 0 of 1024 MiB are "
		"booked");
	buf_clear(&why);
	assert_true(admission_fits(&unknown, &taken, &wanted, &why));
	assert_false(admission_overbooked(&unknown, &taken, &why));
	assert_true(admission_overbooked(&taken, &host, &why));
	assert_string_equal(buf_text(&why),
			    "vCPU short by 3: 8 booked, 5 there; memory short by 4 "
			    "MiB: 64 MiB booked, 60 there; huge pages of 1Gi short by 1024 MiB: "
			    "1024 MiB booked, 0 there");
}

static void test_no_sum_wraps_round(void **state)
{
	const struct admission_share most = {.vcpus = 1, .memory_bytes = INT64_MAX};
	const struct admission_share host = {.vcpus = 8, .memory_bytes = INT64_MAX};
	struct admission_share sum = {0};
	CLEANUP(buf) struct buf why = {0};

	(void)state;
	admission_add(&sum, &most);
	admission_add(&sum, &most);
	assert_int_equal(sum.vcpus, 2);
	assert_true(sum.memory_bytes == INT64_MAX);
	assert_false(admission_fits(&host, &sum, &most, &why));
}

static void test_records(void **state)
{
	const struct admission_share share = {
		.vcpus = 4, .memory_bytes = GIB, .hugepages = {{2 * MIB, GIB}}};
	static const struct {
		const char *text, *error;
	} wrong[] = {
		{"{}", "vcpus"},
		{"{\"vcpus\": 1}", "memoryBytes"},
		{"{\"vcpus\": -1, \"memoryBytes\": 0}", "vcpus"},
		{"{\"vcpus\": 1, \"memoryBytes\": 0, \"hugePages\": 7}", "hugePages"},
		{"{\"vcpus\": 1, \"memoryBytes\": 0, \"hugePages\": {\"64Ki\": 1}}", "64Ki"},
		{"{\"vcpus\": 1, \"memoryBytes\": 0, \"hugePages\": {\"2Mi\": -1}}", "2Mi"},
	};
	CLEANUP(tree) json_t *object = json_object();
	CLEANUP(tree) json_t *nothing = json_object();
	struct admission_share back = {0}, none = {0};
	struct error error;

	(void)state;
	admission_set(object, &share);
	expect_ok(admission_parse(object, "", true, &back, &error), &error);
	assert_memory_equal(&back, &share, sizeof share);
	/* As an older bcd wrote it. */
	expect_ok(admission_parse(nothing, "", false, &back, &error), &error);
	assert_memory_equal(&back, &none, sizeof none);
	admission_set(nothing, &none);
	assert_null(json_object_get(nothing, "hugePages"));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		CLEANUP(tree) json_t *tree = json_loads(wrong[i].text, 0, NULL);

		expect_error(admission_parse(tree, "", true, &back, &error), &error,
			     ERROR_INVALID_INPUT, wrong[i].error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_kept_for_the_system),
		cmocka_unit_test(test_every_sum),
		cmocka_unit_test(test_what_is_short_and_by_how_much),
		cmocka_unit_test(test_no_sum_wraps_round),
		cmocka_unit_test(test_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
