#include "kube/core/event.h"

#include "lib/test.h"
#include "text/tree.h"

#include <stdio.h>

DEFINE_CLEANUP(memory, struct kube_event_memory *, kube_event_memory_destroy)

static const struct kube_event DELETED = {
	.regarding = {&KUBE_POD, "ns", "web"},
	.uid = "u-1",
	.warning = true,
	.reason = "DeviceReleased",
	.action = "Delete",
	.note = "it held gpu/1 of a reservation that has ended",
};

static struct kube_event_plan note_at(struct kube_event_memory *memory,
				      const struct kube_event *event, int64_t ms)
{
	return kube_event_note(memory, event, (struct mono){ms}, 0xabcdef);
}

static void test_repetitions_are_counted(void **state UNUSED)
{
	CLEANUP(memory) struct kube_event_memory *memory = kube_event_memory_create();
	struct kube_event_plan plan = note_at(memory, &DELETED, 1000);

	assert_int_equal(plan.step, KUBE_EVENT_MAKE);
	assert_string_equal(plan.namespace, "ns");
	assert_string_equal(plan.name, "web.0000000000abcdef");
	for (int i = 1; i < 60; i++)
		assert_int_equal(note_at(memory, &DELETED, 1000 + i * 1000).step, KUBE_EVENT_QUIET);
	plan = note_at(memory, &DELETED, 1000 + KUBE_EVENT_PAUSE_MS);
	assert_int_equal(plan.step, KUBE_EVENT_COUNT);
	assert_int_equal(plan.count, 61);
	assert_string_equal(plan.name, "web.0000000000abcdef");
	assert_int_equal(note_at(memory, &DELETED, 2000 + KUBE_EVENT_PAUSE_MS).step,
			 KUBE_EVENT_QUIET);
	/* Long silence, or a lost Event: a new one. */
	assert_int_equal(
		note_at(memory, &DELETED, 2000 + KUBE_EVENT_PAUSE_MS + KUBE_EVENT_FORGET_MS).step,
		KUBE_EVENT_MAKE);
	kube_event_forget(memory, "web.0000000000abcdef");
	assert_int_equal(note_at(memory, &DELETED, 1000000).step, KUBE_EVENT_MAKE);
}

static void test_kinds_are_apart(void **state UNUSED)
{
	CLEANUP(memory) struct kube_event_memory *memory = kube_event_memory_create();
	struct kube_event others[] = {DELETED, DELETED, DELETED, DELETED, DELETED, DELETED};

	others[1].reason = "Other";
	others[2].action = "Other";
	others[3].note = "other";
	others[4].uid = "u-2";
	others[5].regarding.name = "other";
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_int_equal(note_at(memory, &others[i], 0).step, KUBE_EVENT_MAKE);
		assert_int_equal(note_at(memory, &others[i], 1).step, KUBE_EVENT_QUIET);
	}
}

static void test_rate(void **state UNUSED)
{
	CLEANUP(memory) struct kube_event_memory *memory = kube_event_memory_create();
	struct kube_event event = DELETED;
	char note[32];
	int made = 0;

	event.note = note;
	for (int i = 0; i < 1000; i++) { /* in 10 s, each of its own kind */
		snprintf(note, sizeof note, "n %d", i);
		made += note_at(memory, &event, i * 10).step == KUBE_EVENT_MAKE;
	}
	assert_int_equal(made, KUBE_EVENT_BURST + 9990 / KUBE_EVENT_REFILL_MS);
	/* More kinds than are remembered: the longest unused goes. */
	for (int i = 0; i < 3 * KUBE_EVENT_MEMORY; i++) {
		snprintf(note, sizeof note, "m %d", i);
		assert_int_equal(
			note_at(memory, &event, 100000 + (int64_t)i * KUBE_EVENT_REFILL_MS).step,
			KUBE_EVENT_MAKE);
	}
}

static void test_form(void **state UNUSED)
{
	CLEANUP(memory) struct kube_event_memory *memory = kube_event_memory_create();
	const struct kube_reporter reporter = {"bcd", "n0"};
	struct kube_event_plan plan = note_at(memory, &DELETED, 0);
	struct kube_request request =
		kube_event_create(&plan, &DELETED, &reporter, (struct wall){1796090400123});

	assert_string_equal(buf_text(&request.path),
			    "/api/v1/namespaces/ns/events?fieldManager=bcd");
	assert_string_equal(buf_text(&request.body),
			    "{\"action\":\"Delete\",\"apiVersion\":\"v1\",\"count\":1,"
			    "\"firstTimestamp\":\"2026-12-01T"
			    "02:00:00Z\",\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":"
			    "\"Pod\",\"name\":\"web\","
			    "\"namespace\":\"ns\",\"uid\":\"u-1\"},\"kind\":\"Event\","
			    "\"lastTimestamp\":\"2026-12-01T02:"
			    "00:00Z\",\"message\":\"it held gpu/1 of a reservation that has "
			    "ended\",\"metadata\":{"
			    "\"name\":\"web.0000000000abcdef\",\"namespace\":\"ns\"},\"reason\":"
			    "\"DeviceReleased\","
			    "\"reportingComponent\":\"bcd\",\"reportingInstance\":\"n0\","
			    "\"source\":{\"component\":\"bcd\","
			    "\"host\":\"n0\"},\"type\":\"Warning\"}");
	kube_request_deinit(&request);
	plan = (struct kube_event_plan){
		.step = KUBE_EVENT_COUNT, .count = 3, .namespace = "ns", .name = "e"};
	request = kube_event_count(&plan, (struct wall){0});
	assert_string_equal(buf_text(&request.body),
			    "{\"count\":3,\"lastTimestamp\":\"1970-01-01T00:00:00Z\"}");
	assert_string_equal(request.method, "PATCH");
	kube_request_deinit(&request);
}

static void test_notes_are_cut_between_characters(void **state UNUSED)
{
	CLEANUP(memory) struct kube_event_memory *memory = kube_event_memory_create();
	CLEANUP(buf) struct buf note = {0};
	CLEANUP(tree) json_t *object = NULL;
	struct kube_event event = DELETED;
	struct error error;

	event.regarding = (struct kube_ref){&KUBE_NODE, "", "n0"};
	event.uid = "";
	buf_add_char(&note, 'x');
	for (int i = 0; i < 600; i++)
		buf_add_text(&note, "é");
	buf_add_text(&note, "\xff");
	event.note = buf_text(&note);
	struct kube_event_plan plan = note_at(memory, &event, 0);
	assert_string_equal(plan.namespace, "default");
	CLEANUP(kube_request)
	struct kube_request request = kube_event_create(
		&plan, &event, &(struct kube_reporter){"c", "i"}, (struct wall){0});
	expect_ok(
		tree_parse(request.body.data, request.body.length, 10000, "event", &object, &error),
		&error);
	assert_int_equal(json_string_length(json_object_get(object, "message")), 1023);
	assert_null(json_object_get(json_object_get(object, "involvedObject"), "uid"));
	assert_null(json_object_get(json_object_get(object, "involvedObject"), "namespace"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repetitions_are_counted),
		cmocka_unit_test(test_kinds_are_apart),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_notes_are_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
