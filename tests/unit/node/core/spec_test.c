#include "fixture.h"

#include "node/core/spec.h"
#include "proto/message.h"

struct message {
	Bettercompute__V1__Spec spec;
	Bettercompute__V1__Assignment assignments[3], *assignment_list[3];
	Bettercompute__V1__AssignedDevice devices[3], *device_list[3][1];
	Bettercompute__V1__Limits limits;
};

#define UUID "6f1c0c2e-0d1a-4b5c-8e9f-001122334455"

static void message_init(struct message *message, size_t count)
{
	static const char *const allocations[] = {ALC_A, ALC_B, ALC_C};
	static const char *const atoms[] = {"gpu/" UUID, "gpu/" UUID "/s1", "gpu/" UUID "/gi1/ci0"};
	static const char *const classes[] = {"gpu", "gpu.slot", "gpu.mig"};

	bettercompute__v1__spec__init(&message->spec);
	message->spec.lineage = message_text("lineage-1");
	message->spec.generation = 7;
	message->spec.gpu_api = message_text("device-plugin");
	message->spec.n_assignments = count;
	message->spec.assignments = message->assignment_list;
	bettercompute__v1__limits__init(&message->limits);
	message->limits.vcpus = 4;
	message->limits.memory_bytes = 1 << 30;
	for (size_t i = 0; i < count; i++) {
		bettercompute__v1__assigned_device__init(&message->devices[i]);
		message->devices[i].atom = message_text(atoms[i]);
		message->devices[i].class_ = message_text(classes[i]);
		message->devices[i].visible_device = message_text("GPU-" UUID);
		message->device_list[i][0] = &message->devices[i];
		bettercompute__v1__assignment__init(&message->assignments[i]);
		message->assignments[i].allocation = message_text(allocations[i]);
		message->assignments[i].reservation = message_text(RSV_A);
		message->assignments[i].binding = BETTERCOMPUTE__V1__BINDING__BINDING_KUBERNETES;
		message->assignments[i].n_devices = 1;
		message->assignments[i].devices = message->device_list[i];
		message->assignments[i].limits = &message->limits;
		message->assignment_list[i] = &message->assignments[i];
	}
}

/* proves: GW-26 */
static void test_record_comes_back(void **state)
{
	struct message message;
	struct spec spec = {0}, back = {0};
	struct buf text = {0}, again = {0};
	struct error error;

	(void)state;
	message_init(&message, 3);
	message.assignments[0].end_ms = 1796083200000;
	message.assignments[1].end_ms = -1;
	expect_ok(spec_from_message(&message.spec, &spec, &error), &error);
	assert_int_equal(spec.assignments.count, 3);
	assert_int_equal(spec.assignments.items[0].end_ms, 1796083200000);
	assert_int_equal(spec.assignments.items[1].end_ms, 0);
	assert_int_equal(spec.assignments.items[1].share.vcpus, 4);
	spec_format(&spec, &text);
	expect_ok(spec_parse(buf_text(&text), text.length, &back, &error), &error);
	spec_format(&back, &again);
	assert_string_equal(buf_text(&text), buf_text(&again));
	for (size_t length = 0; length + 1 < text.length; length++) {
		struct spec cut = {0};

		if (spec_parse(buf_text(&text), length, &cut, &error))
			fail_msg("the first %zu bytes were taken", length);
	}
	spec_deinit(&spec);
	spec_deinit(&back);
	buf_deinit(&text);
	buf_deinit(&again);
}

/* What is booked counts, asked for or not; an older control plane tells only what was asked for.
 * proves: HOST-3 */
static void test_what_is_booked_of_the_host(void **state UNUSED)
{
	Bettercompute__V1__HugePages pages = BETTERCOMPUTE__V1__HUGE_PAGES__INIT;
	Bettercompute__V1__HugePages strange = BETTERCOMPUTE__V1__HUGE_PAGES__INIT;
	Bettercompute__V1__HugePages *list[] = {&pages, &strange};
	Bettercompute__V1__Limits booked = BETTERCOMPUTE__V1__LIMITS__INIT;
	struct spec spec = {0}, back = {0};
	CLEANUP(buf) struct buf text = {0};
	struct message message;
	struct error error;

	message_init(&message, 2);
	pages.page_bytes = strange.bytes = 2 << 20;
	pages.bytes = strange.page_bytes = 8 << 20;
	booked.vcpus = 16;
	booked.memory_bytes = 64 << 20;
	booked.huge_pages = list;
	booked.n_huge_pages = 2;
	message.assignments[0].limits = NULL;
	message.assignments[0].booked = &booked;
	expect_ok(spec_from_message(&message.spec, &spec, &error), &error);
	spec_format(&spec, &text);
	expect_ok(spec_parse(buf_text(&text), text.length, &back, &error), &error);
	assert_int_equal(back.assignments.items[0].share.vcpus, 16);
	assert_int_equal(back.assignments.items[0].share.memory_bytes, 64 << 20);
	assert_int_equal(back.assignments.items[0].share.hugepages.bytes[HUGEPAGES_2MI], 8 << 20);
	assert_int_equal(back.assignments.items[0].share.hugepages.bytes[HUGEPAGES_1GI], 0);
	assert_int_equal(back.assignments.items[1].share.vcpus, 4);
	spec_deinit(&spec);
	spec_deinit(&back);
}

/* What a bcd of before wrote has no end. */
static void test_record_without_an_end(void **state UNUSED)
{
	static const char TEXT[] =
		"{\"version\": 1, \"lineage\": \"lineage-1\", \"generation\": 7, \"gpuApi\": \"\", "
		"\"assignments\": [{\"allocation\": \"" ALC_A "\", \"reservation\": \"" RSV_A
		"\", \"binding\": \"kubernetes\", \"devices\": [{\"atom\": \"gpu/" UUID
		"\", \"visibleDevice\": \"GPU-" UUID "\"}], \"vcpus\": 0, \"memoryBytes\": 0, "
		"\"failed\": \"\", \"problem\": \"\"}]}";
	struct spec spec = {0};
	struct error error;

	expect_ok(spec_parse(TEXT, strlen(TEXT), &spec, &error), &error);
	assert_int_equal(spec.assignments.count, 1);
	assert_int_equal(spec.assignments.items[0].end_ms, 0);
	spec_deinit(&spec);
}

/* One bad assignment keeps its problem; the others live. */
static void test_one_bad_assignment_harms_no_other(void **state)
{
	struct message message;
	struct spec spec = {0};
	struct error error;

	(void)state;
	message_init(&message, 3);
	message.devices[0].atom = message_text("gpu/nonsense");
	message.assignments[1].binding = 9;
	expect_ok(spec_from_message(&message.spec, &spec, &error), &error);
	assert_non_null(strstr(spec.assignments.items[0].problem, "nonsense"));
	assert_non_null(strstr(spec.assignments.items[1].problem, "binding 9"));
	assert_string_equal(spec.assignments.items[2].problem, "");
	spec_deinit(&spec);
}

static void test_refuses_what_it_could_not_store(void **state)
{
	struct message message;
	struct spec spec = {0};
	struct error error;

	(void)state;
	message_init(&message, 2);
	message.assignments[0].allocation = message_text("../../etc/passwd");
	expect_error(spec_from_message(&message.spec, &spec, &error), &error, ERROR_INVALID_INPUT,
		     "allocation's id");
	message_init(&message, 2);
	message.assignments[1].allocation = message_text(ALC_A);
	expect_error(spec_from_message(&message.spec, &spec, &error), &error, ERROR_INVALID_INPUT,
		     "twice");
	message_init(&message, 1);
	message.spec.lineage = message_text("");
	expect_error(spec_from_message(&message.spec, &spec, &error), &error, ERROR_INVALID_INPUT,
		     "lineage");
	message_init(&message, 1);
	message.spec.generation = 0;
	expect_error(spec_from_message(&message.spec, &spec, &error), &error, ERROR_INVALID_INPUT,
		     "generation");
}

/* proves: GW-26 */
static void test_withdrawn_comes_with_the_message(void **state)
{
	static char *names[SPEC_MAX_WITHDRAWN + 1];
	static char ids[SPEC_MAX_WITHDRAWN + 1][ID_SIZE];
	struct message message;
	struct spec spec = {0};
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		snprintf(ids[i], ID_SIZE, "alc_%026zu", i);
		names[i] = ids[i];
	}
	message_init(&message, 1);
	message.spec.withdrawn = names;
	message.spec.n_withdrawn = 2;
	expect_ok(spec_from_message(&message.spec, &spec, &error), &error);
	assert_int_equal(spec.withdrawn.count, 2);
	assert_string_equal(spec.withdrawn.items[1].allocation, ids[1]);
	assert_int_equal(spec.assignments.count, 1);
	spec_deinit(&spec);
	spec = (struct spec){0};
	/* what is too many comes in a later Spec */
	message.spec.n_withdrawn = ARRAY_SIZE(names);
	expect_ok(spec_from_message(&message.spec, &spec, &error), &error);
	assert_int_equal(spec.withdrawn.count, SPEC_MAX_WITHDRAWN);
	spec_deinit(&spec);
	spec = (struct spec){0};
	message.spec.n_withdrawn = 2;
	names[1] = message_text("../../etc/passwd");
	expect_error(spec_from_message(&message.spec, &spec, &error), &error, ERROR_INVALID_INPUT,
		     "is no allocation");
	names[1] = message_text(ALC_A); /* which is assigned */
	expect_error(spec_from_message(&message.spec, &spec, &error), &error, ERROR_INVALID_INPUT,
		     "is wanted too");
}

/* A Spec that no restart could read again isn't taken. */
static void test_refuses_what_it_could_not_read_again(void **state)
{
	static char ids[64][ID_SIZE];
	static Bettercompute__V1__Assignment assignments[64], *list[64];
	static Bettercompute__V1__AssignedDevice *devices[HOLDS_MAX_DEVICES];
	struct message message;
	CLEANUP(spec) struct spec spec = {0}, back = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;
	size_t most = 1;

	(void)state;
	message_init(&message, 1);
	for (size_t i = 0; i < HOLDS_MAX_DEVICES; i++)
		devices[i] = &message.devices[0];
	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		snprintf(ids[i], ID_SIZE, "alc_%026zu", i);
		assignments[i] = message.assignments[0];
		assignments[i].allocation = ids[i];
		assignments[i].devices = devices;
		assignments[i].n_devices = HOLDS_MAX_DEVICES;
		list[i] = &assignments[i];
	}
	message.spec.assignments = list;
	message.spec.n_assignments = ARRAY_SIZE(list);
	expect_error(spec_from_message(&message.spec, &spec, &error), &error,
		     ERROR_RESOURCES_EXHAUSTED, "spec.json would have");
	for (size_t step = 16; step > 0; step /= 2) {
		message.spec.n_assignments = most + step;
		if (!spec_from_message(&message.spec, &back, &error))
			continue;
		most += step;
		spec_deinit(&back);
		back = (struct spec){0};
	}
	message.spec.n_assignments = most;
	expect_ok(spec_from_message(&message.spec, &spec, &error), &error);
	for (size_t i = 0; i < spec.assignments.count; i++)
		memset(spec.assignments.items[i].failed, 'x', SPEC_REASON_SIZE - 1);
	spec_format(&spec, &text);
	expect_ok(spec_parse(buf_text(&text), text.length, &back, &error), &error);
}

/* proves: GW-26 */
static void test_which_spec_counts(void **state)
{
	struct spec stored = {.lineage = "a", .generation = 5};
	struct spec next = {.lineage = "a"};

	(void)state;
	assert_true(spec_accepts(NULL, &stored));
	for (next.generation = 1; next.generation < 10; next.generation++)
		assert_int_equal(spec_accepts(&stored, &next), next.generation > 5);
	str_copy(next.lineage, sizeof next.lineage, "b");
	next.generation = 1;
	assert_true(spec_accepts(&stored, &next));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record_comes_back),
		cmocka_unit_test(test_what_is_booked_of_the_host),
		cmocka_unit_test(test_record_without_an_end),
		cmocka_unit_test(test_one_bad_assignment_harms_no_other),
		cmocka_unit_test(test_refuses_what_it_could_not_store),
		cmocka_unit_test(test_withdrawn_comes_with_the_message),
		cmocka_unit_test(test_refuses_what_it_could_not_read_again),
		cmocka_unit_test(test_which_spec_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
