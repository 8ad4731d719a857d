#include "control/core/pod_requests.h"

#include "base/buf.h"
#include "lib/test.h"

#define GIB ((int64_t)1 << 30)

DEFINE_CLEANUP(json_ref, json_t *, json_decref)

static const char *asked_of(const json_t *answer, const char *block, const char *name)
{
	const json_t *resources = json_object_get(answer, "resources");

	return json_string_value(json_object_get(json_object_get(resources, block), name));
}

static void expect(const json_t *answer, const char *name, const char *amount)
{
	if (!amount) {
		assert_null(asked_of(answer, "requests", name));
		assert_null(asked_of(answer, "limits", name));
		return;
	}
	assert_non_null(asked_of(answer, "requests", name));
	assert_string_equal(asked_of(answer, "requests", name), amount);
	assert_string_equal(asked_of(answer, "limits", name), amount);
}

static int64_t number_of(const json_t *answer, const char *name)
{
	return json_integer_value(json_object_get(answer, name));
}

/* proves: HOST-6 HOST-13 */
static void test_what_is_booked_is_divided_over_the_devices(void **state)
{
	static const struct {
		int devices;
		const char *gpu, *cpu, *memory, *small, *large;
		int pods;
	} rows[] = {
		{0, "3", "32", "256Gi", "1Gi", "4Gi", 1},
		{3, "3", "32", "256Gi", "1Gi", "4Gi", 1},
		/* Down to whole pages, mebibytes and thousandths. */
		{1, "1", "10666m", "87381Mi", "340Mi", "1Gi", 3},
		{2, "2", "21333m", "174762Mi", "682Mi", "2Gi", 1},
	};
	struct pod_part part = {.devices = {[PLACEMENT_CLASS_GPU] = 3},
				.vcpus = 32,
				.memory_bytes = 256 * GIB,
				.hugepages = {{GIB, 4 * GIB}}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(json_ref) json_t *answer = NULL;
		struct error error;

		expect_ok(pod_requests_make(&part, 1,
					    (struct pod_asked){.devices = rows[i].devices}, &answer,
					    &error),
			  &error);
		expect(answer, "bcd.dev/gpu", rows[i].gpu);
		expect(answer, "bcd.dev/gpu.mig", NULL);
		expect(answer, "cpu", rows[i].cpu);
		expect(answer, "memory", rows[i].memory);
		expect(answer, "hugepages-2Mi", rows[i].small);
		expect(answer, "hugepages-1Gi", rows[i].large);
		assert_int_equal(number_of(answer, "pods"), rows[i].pods);
		assert_int_equal(number_of(answer, "devices"), atoi(rows[i].gpu));
	}
}

/* proves: HOST-13 */
static void test_several_classes(void **state)
{
	struct pod_part part = {.devices = {1, 4, 5}, .vcpus = 20, .memory_bytes = 10 * GIB};
	CLEANUP(json_ref) json_t *all = NULL;
	CLEANUP(json_ref) json_t *slots = NULL;
	struct error error;
	json_t *none = NULL;

	(void)state;
	expect_ok(pod_requests_make(&part, 1, (struct pod_asked){0}, &all, &error), &error);
	expect(all, "bcd.dev/gpu", "1");
	expect(all, "bcd.dev/gpu.mig", "4");
	expect(all, "bcd.dev/gpu.slot", "5");
	expect(all, "cpu", "20");
	assert_int_equal(number_of(all, "devices"), 10);
	expect_ok(pod_requests_make(&part, 1, (struct pod_asked){2, true, PLACEMENT_CLASS_SLOT},
				    &slots, &error),
		  &error);
	expect(slots, "bcd.dev/gpu", NULL);
	expect(slots, "bcd.dev/gpu.slot", "2");
	expect(slots, "cpu", "4");
	expect(slots, "memory", "2Gi");
	expect(slots, "hugepages-2Mi", NULL);
	assert_int_equal(number_of(slots, "pods"), 2);
	expect_error(pod_requests_make(&part, 1, (struct pod_asked){.devices = 2}, &none, &error),
		     &error, ERROR_INVALID_INPUT, "several classes");
	expect_error(pod_requests_make(&part, 1, (struct pod_asked){2, true, PLACEMENT_CLASS_GPU},
				       &none, &error),
		     &error, ERROR_INVALID_INPUT, "1 gpu are booked");
	part.devices[PLACEMENT_CLASS_MIG] = 0;
	expect_error(pod_requests_make(&part, 1, (struct pod_asked){0, true, PLACEMENT_CLASS_MIG},
				       &none, &error),
		     &error, ERROR_INVALID_INPUT, "no gpu.mig");
}

/* One template for all nodes of a gang.
 * proves: HOST-13 */
static void test_the_least_of_several_nodes(void **state)
{
	struct pod_part parts[] = {
		{.devices = {2}, .vcpus = 32, .memory_bytes = 8 * GIB, .hugepages = {{0, GIB}}},
		{.devices = {2}, .vcpus = 16, .memory_bytes = 16 * GIB, .hugepages = {{GIB, 0}}}};
	CLEANUP(json_ref) json_t *answer = NULL;
	struct error error;

	(void)state;
	expect_ok(pod_requests_make(parts, 2, (struct pod_asked){.devices = 1}, &answer, &error),
		  &error);
	expect(answer, "cpu", "8");
	expect(answer, "memory", "4Gi");
	expect(answer, "hugepages-2Mi", NULL);
	expect(answer, "hugepages-1Gi", NULL);
	assert_int_equal(number_of(answer, "pods"), 4);
}

/* Pods for all devices never ask for more than is booked, whatever the numbers.
 * proves: HOST-13 */
static void test_pods_together_ask_for_no_more(void **state)
{
	(void)state;
	for (int all = 1; all <= 16; all++) {
		for (int one = 1; one <= all; one++) {
			struct pod_part part = {
				.devices = {all}, .vcpus = 65536, .memory_bytes = INT64_MAX};
			CLEANUP(json_ref) json_t *answer = NULL;
			long long memory, cpu;
			struct error error;
			char unit[3];

			expect_ok(pod_requests_make(&part, 1, (struct pod_asked){.devices = one},
						    &answer, &error),
				  &error);
			assert_int_equal(sscanf(asked_of(answer, "limits", "memory"), "%lld%2s",
						&memory, unit),
					 2);
			memory *= str_equal(unit, "Gi") ? 1024 : 1;
			assert_true(memory > 0);
			assert_true(memory <= (INT64_MAX >> 20) / all * one + one);
			cpu = atoll(asked_of(answer, "limits", "cpu"));
			if (!strchr(asked_of(answer, "limits", "cpu"), 'm'))
				cpu *= 1000;
			assert_true(cpu * (all / one) <= 65536000 && cpu > 0);
		}
	}
}

/* What should not be there divides by nothing. proves: HOST-6 */
static void test_a_part_without_devices(void **state UNUSED)
{
	const struct pod_part parts[] = {
		{.devices = {[PLACEMENT_CLASS_GPU] = 2}, .vcpus = 8, .memory_bytes = GIB},
		{.vcpus = 8, .memory_bytes = GIB},
	};
	static const struct pod_asked ASKED[] = {
		{0}, {.devices = 1}, {.one_class = true, .class = PLACEMENT_CLASS_GPU}};

	for (size_t i = 0; i < ARRAY_SIZE(ASKED); i++)
		for (size_t first = 0; first < 2; first++) {
			json_t *answer = NULL;
			struct error error;

			expect_error(pod_requests_make(&parts[first], 2 - first, ASKED[i], &answer,
						       &error),
				     &error, ERROR_INVALID_STATE, "no device on a node");
			assert_null(answer);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_part_without_devices),
		cmocka_unit_test(test_what_is_booked_is_divided_over_the_devices),
		cmocka_unit_test(test_several_classes),
		cmocka_unit_test(test_the_least_of_several_nodes),
		cmocka_unit_test(test_pods_together_ask_for_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
