#include "kube/core/watch.h"

#include "lib/test.h"
#include "text/tree.h"

#include <stdio.h>

#define POD(version)        "{\"metadata\":{\"name\":\"web\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define STATUS(code, more)                                                                         \
	EVENT("ERROR", "{\"kind\":\"Status\",\"code\":" code ",\"message\":\"why\"" more "}")

static struct {
	char log[256]; /* "A11 " an event */
	struct kube_answer end;
} said;

static void take(void *arg UNUSED, enum kube_watch_kind kind, json_t **object)
{
	CLEANUP(tree) json_t *own = TAKE(*object);
	const char *version = json_string_value(
		json_object_get(json_object_get(own, "metadata"), "resourceVersion"));
	size_t used = strlen(said.log);

	snprintf(said.log + used, sizeof said.log - used, "%c%s ", "AMD"[kind], version);
}

static bool feed(struct kube_watch_reader *reader, const char *text)
{
	kube_answer_deinit(&said.end);
	said.log[0] = '\0';
	return kube_watch_read(reader, text, strlen(text), take, NULL, &said.end);
}

static const char LIFE[] =
	EVENT("ADDED", POD("11")) EVENT("MODIFIED", POD("12")) EVENT("DELETED", POD("13"))
		EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"20\"}}");

static void test_events(void **state UNUSED)
{
	CLEANUP(kube_watch_reader) struct kube_watch_reader reader = {.resource = &KUBE_POD};

	assert_true(feed(&reader, LIFE));
	assert_string_equal(said.log, "A11 M12 D13 ");
	assert_string_equal(reader.version, "20");
	assert_true(feed(&reader, "\n\n" EVENT("ADDED", POD("a/opaque"))));
	assert_string_equal(reader.version, "a/opaque");
}

/* Those that an answer without a version begins with come in no order of time: no version of theirs is a place in it. */
static void test_the_first_ones_are_no_place(void **state UNUSED)
{
	static const char *const NEXT[] = {"MODIFIED", "DELETED", "BOOKMARK"};

	for (size_t i = 0; i < ARRAY_SIZE(NEXT); i++) {
		CLEANUP(kube_watch_reader)
		struct kube_watch_reader reader = {.resource = &KUBE_POD};
		char event[128];

		assert_true(feed(&reader, EVENT("ADDED", POD("90")) EVENT("ADDED", POD("12"))));
		assert_string_equal(said.log, "A90 A12 ");
		assert_string_equal(reader.version, "");
		snprintf(event, sizeof event, "{\"type\":\"%s\",\"object\":" POD("91") "}\n",
			 NEXT[i]);
		assert_true(feed(&reader, event));
		assert_string_equal(reader.version, "91");
		kube_watch_reader_begin(&reader);
		assert_true(feed(&reader, EVENT("ADDED", POD("92"))));
		assert_string_equal(reader.version, "92");
	}
}

/* Whatever is told shows that it isn't deaf, also what is too large to be read. */
static void test_what_is_heard(void **state UNUSED)
{
	static const char *const TEXTS[] = {EVENT("ADDED", POD("12")), EVENT("BOOKMARK", POD("12")),
					    "\n\n", STATUS("500", ""), "{\"type\":"};

	for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {
		CLEANUP(kube_watch_reader)
		struct kube_watch_reader reader = {.resource = &KUBE_POD, .version = "11"};

		assert_int_equal(feed(&reader, TEXTS[i]), i != 3);
		assert_int_equal(reader.heard, i < 2);
		kube_watch_reader_begin(&reader);
		assert_int_equal(reader.heard, i < 2); /* until the caller takes it back */
		kube_answer_deinit(&said.end);
	}
}

/* However the bytes come; and what is cut off isn't told, nor glued to the next answer. */
static void test_pieces(void **state UNUSED)
{
	for (size_t piece = 1; piece < sizeof LIFE; piece++) {
		CLEANUP(kube_watch_reader)
		struct kube_watch_reader reader = {.resource = &KUBE_POD};

		said.log[0] = '\0';
		for (size_t at = 0; at < sizeof LIFE - 1; at += piece) {
			size_t rest = sizeof LIFE - 1 - at;
			assert_true(kube_watch_read(&reader, LIFE + at, rest < piece ? rest : piece,
						    take, NULL, &said.end));
		}
		assert_string_equal(said.log, "A11 M12 D13 ");
		assert_string_equal(reader.version, "20");
		assert_true(feed(&reader, "{\"type\":\"ADDED\","));
		kube_watch_reader_begin(&reader);
		assert_true(feed(&reader, EVENT("ADDED", POD("21"))));
		assert_string_equal(said.log, "A21 ");
	}
}

static void test_errors(void **state UNUSED)
{
	static const struct {
		const char *text;
		enum kube_reason reason;
		enum error_code code;
		const char *message;
		const char *version; /* that is left of "11" */
	} TABLE[] = {
		{STATUS("410", ",\"reason\":\"Expired\""), KUBE_EXPIRED, ERROR_INVALID_STATE,
		 "watch pods: the API server says 410 (expired): why", ""},
		{STATUS("504",
			",\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}"),
		 KUBE_EXPIRED, ERROR_INVALID_STATE, "504 (expired): why", ""},
		{STATUS("504",
			",\"details\":{\"causes\":[{\"message\":\"Too large resource version\"}]}"),
		 KUBE_EXPIRED, ERROR_INVALID_STATE, "504 (expired): why", ""},
		{STATUS("504", ""), KUBE_UNAVAILABLE, ERROR_UNAVAILABLE, "504 (unavailable)", "11"},
		{STATUS("500", ""), KUBE_UNAVAILABLE, ERROR_UNAVAILABLE,
		 "watch pods: the API server says 500 (unavailable): why", "11"},
		{STATUS("429", ",\"details\":{\"retryAfterSeconds\":7}"), KUBE_BUSY,
		 ERROR_RATE_LIMITED, "429", "11"},
		{STATUS("403", ""), KUBE_FORBIDDEN, ERROR_FORBIDDEN, "403", "11"},
		{STATUS("200", ""), KUBE_STRANGE, ERROR_UNAVAILABLE, "0", "11"},
		{EVENT("ERROR", "{}"), KUBE_STRANGE, ERROR_UNAVAILABLE, "0", "11"},
		{"<html>\n", KUBE_STRANGE, ERROR_UNAVAILABLE,
		 "watch pods: what came is no event: event:1:1: ", ""},
		{"[]\n", KUBE_STRANGE, ERROR_UNAVAILABLE, "no event", ""},
		{EVENT("RENAMED", POD("12")), KUBE_STRANGE, ERROR_UNAVAILABLE, "type", ""},
		{"{\"type\":\"ADDED\"}\n", KUBE_STRANGE, ERROR_UNAVAILABLE, "object", ""},
		{EVENT("ADDED", "[]"), KUBE_STRANGE, ERROR_UNAVAILABLE, "object", ""},
		{EVENT("ADDED", "{}"), KUBE_STRANGE, ERROR_UNAVAILABLE, "metadata", ""},
		{EVENT("ADDED", POD("")), KUBE_STRANGE, ERROR_UNAVAILABLE, "resourceVersion", ""},
		{EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":12}}"), KUBE_STRANGE,
		 ERROR_UNAVAILABLE, "resourceVersion", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(kube_watch_reader)
		struct kube_watch_reader reader = {.resource = &KUBE_POD, .version = "11"};

		assert_false(feed(&reader, TABLE[i].text));
		assert_string_equal(kube_reason_name(said.end.reason),
				    kube_reason_name(TABLE[i].reason));
		assert_int_equal(said.end.error.code, TABLE[i].code);
		if (!strstr(said.end.error.what, TABLE[i].message))
			fail_msg("\"%s\" lacks \"%s\"", said.end.error.what, TABLE[i].message);
		assert_string_equal(reader.version, TABLE[i].version);
		assert_string_equal(said.log, "");
	}
}

/* What stands before it is told, what stands behind it isn't. */
static void test_an_error_ends_it(void **state UNUSED)
{
	CLEANUP(kube_watch_reader) struct kube_watch_reader reader = {.resource = &KUBE_POD};

	assert_false(feed(&reader, EVENT("MODIFIED", POD("11")) STATUS("429", "")
					   EVENT("ADDED", POD("12"))));
	assert_string_equal(said.log, "M11 ");
	assert_string_equal(reader.version, "11");
	kube_answer_deinit(&said.end);
}

/* The version itself may be what the API server stumbles over. */
static void test_the_second_error_starts_anew(void **state UNUSED)
{
	CLEANUP(kube_watch_reader)
	struct kube_watch_reader reader = {.resource = &KUBE_POD, .version = "11"};

	assert_false(feed(&reader, STATUS("500", "")));
	kube_watch_reader_begin(&reader);
	assert_false(feed(&reader, EVENT("ADDED", POD("12")) STATUS("500", "")));
	assert_string_equal(reader.version, "12");
	kube_watch_reader_begin(&reader);
	assert_false(feed(&reader, STATUS("500", "")));
	assert_string_equal(reader.version, "");
}

/* An ADDED of that many bytes, its newline not counted. */
static char *event_of(size_t length)
{
	static const char BEGIN[] = "{\"type\":\"ADDED\",\"object\":" POD("12") ",\"x\":\"";
	char *text = mem_alloc(length + 2);

	memset(text, 'x', length);
	memcpy(text, BEGIN, sizeof BEGIN - 1);
	memcpy(text + length - 2, "\"}\n", 4);
	return text;
}

#define PIECE ((size_t)1 << 20)

static void test_bounds(void **state UNUSED)
{
	CLEANUP(free) char *largest = event_of(KUBE_WATCH_MAX_EVENT);
	CLEANUP(free) char *larger = event_of(KUBE_WATCH_MAX_EVENT + 1);
	CLEANUP(free) char *largest_of_all = event_of(KUBE_WATCH_MAX_EVENT + 2 * PIECE);
	CLEANUP(kube_watch_reader) struct kube_watch_reader passed = {.resource = &KUBE_POD};
	char version[KUBE_WATCH_VERSION_SIZE + 1], text[512];

	for (int i = 0; i < 2; i++) {
		CLEANUP(kube_watch_reader)
		struct kube_watch_reader reader = {.resource = &KUBE_POD, .version = "11"};

		assert_true(feed(&reader, i ? larger : largest));
		assert_string_equal(said.log, i ? "" : "A12 ");
		assert_true(reader.heard);
		assert_true(reader.line.capacity <= 65536);
		assert_true(feed(&reader, EVENT("MODIFIED", POD("13"))));
		assert_string_equal(said.log, "M13 "); /* it goes on behind one that is too large */
	}
	for (size_t at = 0; at < strlen(largest_of_all); at += PIECE) {
		size_t rest = strlen(largest_of_all) - at;

		assert_true(kube_watch_read(&passed, largest_of_all + at,
					    rest < PIECE ? rest : PIECE, take, NULL, &said.end));
		assert_true(passed.line.length <= KUBE_WATCH_MAX_EVENT);
	}
	assert_true(feed(&passed, EVENT("MODIFIED", POD("13"))));
	for (size_t length = KUBE_WATCH_VERSION_SIZE - 1; length <= KUBE_WATCH_VERSION_SIZE;
	     length++) {
		CLEANUP(kube_watch_reader)
		struct kube_watch_reader reader = {.resource = &KUBE_POD};

		memset(version, '7', length);
		version[length] = '\0';
		snprintf(text, sizeof text,
			 "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":"
			 "\"%s\"}}}\n",
			 version);
		assert_int_equal(feed(&reader, text), length < KUBE_WATCH_VERSION_SIZE);
	}
	kube_answer_deinit(&said.end);
}

/* --- when to ask again --- */

#define MOST UINT64_MAX

static struct kube_watch_next decide(enum kube_reason reason, int64_t lasted_ms, int failures,
				     uint64_t random)
{
	return kube_watch_decide(&(struct kube_watch_end){.reason = reason,
							  .lasted_ms = lasted_ms,
							  .before = {.failures = failures},
							  .random = random});
}

static void test_a_steady_watch_goes_on(void **state UNUSED)
{
	struct kube_watch_next next = decide(KUBE_DONE, KUBE_WATCH_STEADY_MS, 7, MOST);

	assert_int_equal(next.delay_ms, 0);
	assert_int_equal(next.course.failures, 0);
	assert_false(next.anew || next.renew);
	next = decide(KUBE_UNREACHED, KUBE_WATCH_STEADY_MS, 7, 0);
	assert_int_equal(next.course.failures, 0);
	assert_in_range(next.delay_ms, 500, 1000);
	next = decide(KUBE_DONE, KUBE_WATCH_STEADY_MS - 1, 7, 0);
	assert_int_equal(next.course.failures, 8);
}

/* Each reason's pauses: never none but once for 401, never more than its bound. */
static void test_pauses(void **state UNUSED)
{
	for (enum kube_reason reason = KUBE_DONE; reason <= KUBE_UNREACHED; reason++) {
		struct kube_watch_course course = {0};
		bool refused = reason == KUBE_FORBIDDEN || reason == KUBE_NOT_FOUND ||
			       reason == KUBE_INVALID;
		int64_t floor = 500, ceiling = 1000;

		for (int i = 1; i < 20; i++) {
			struct kube_watch_end end = {.reason = reason, .before = course};
			struct kube_watch_next least = kube_watch_decide(&end), most;
			bool again = reason == KUBE_EXPIRED || reason == KUBE_INVALID;

			end.random = MOST - (uint64_t)i;
			most = kube_watch_decide(&end);
			course = least.course;
			assert_int_equal(course.failures, i);
			assert_int_equal(least.anew, again);
			assert_int_equal(least.renew, reason == KUBE_UNAUTHORIZED);
			if (reason == KUBE_UNAUTHORIZED && i == 1) {
				assert_int_equal(most.delay_ms, 0);
			} else if (refused && i >= KUBE_WATCH_REFUSALS) {
				assert_in_range(least.delay_ms, 300000, 330000);
				assert_in_range(most.delay_ms, 300000, 330000);
			} else {
				assert_in_range(least.delay_ms, floor, ceiling);
				assert_in_range(most.delay_ms, floor, ceiling);
			}
			floor = floor * 2 > 15000 ? 15000 : floor * 2;
			ceiling = ceiling * 2 > 30000 ? 30000 : ceiling * 2;
		}
	}
}

static void test_as_the_server_says(void **state UNUSED)
{
	struct kube_watch_end end = {.reason = KUBE_BUSY, .retry_after_s = 9};

	assert_int_equal(kube_watch_decide(&end).delay_ms, 9000);
	end.random = 999;
	assert_int_equal(kube_watch_decide(&end).delay_ms, 9999);
	end.reason = KUBE_UNAVAILABLE;
	end.retry_after_s = 86400;
	assert_in_range(kube_watch_decide(&end).delay_ms, 60000, 61000);
	end.before.failures = 20; /* the own pause is longer */
	end.retry_after_s = 1;
	assert_in_range(kube_watch_decide(&end).delay_ms, 15000, 30000);
}

/* A long outage's last failure is that the version has run out meanwhile: anew, and soon. */
static void test_expired_after_an_outage(void **state UNUSED)
{
	struct kube_watch_next next = decide(KUBE_EXPIRED, 0, 20, MOST);

	assert_true(next.anew);
	assert_in_range(next.delay_ms, 500, 1000);
}

/* What opens and tells nothing is asked with another version, whatever ends it. */
static void test_silence_starts_anew(void **state UNUSED)
{
	for (enum kube_reason reason = KUBE_DONE; reason <= KUBE_UNREACHED; reason++) {
		struct kube_watch_end end = {.reason = reason,
					     .lasted_ms = KUBE_WATCH_STEADY_MS,
					     .silent_ms = KUBE_WATCH_SILENT_MS};

		assert_true(kube_watch_decide(&end).anew);
		end.silent_ms--;
		assert_int_equal(kube_watch_decide(&end).anew,
				 reason == KUBE_EXPIRED || reason == KUBE_INVALID);
	}
}

/* Who was away may be back before the pause is over; who has refused, or said when, is left alone. */
static void test_who_may_hurry(void **state UNUSED)
{
	for (enum kube_reason reason = KUBE_DONE; reason <= KUBE_UNREACHED; reason++) {
		struct kube_watch_end end = {.reason = reason, .before = {.failures = 20}};
		bool refused = reason == KUBE_FORBIDDEN || reason == KUBE_NOT_FOUND ||
			       reason == KUBE_INVALID;

		assert_int_equal(kube_watch_decide(&end).hasty,
				 reason == KUBE_UNREACHED || reason == KUBE_UNAVAILABLE || refused);
		end.before.refusals = KUBE_WATCH_REFUSALS - 1;
		assert_int_equal(kube_watch_decide(&end).hasty,
				 reason == KUBE_UNREACHED || reason == KUBE_UNAVAILABLE);
		end.retry_after_s = 9;
		assert_int_equal(kube_watch_decide(&end).hasty, reason == KUBE_UNREACHED);
	}
}

/* An API server that starts again refuses at first: what had failed before is no refusal. */
static void test_refused_after_an_outage(void **state UNUSED)
{
	struct kube_watch_next next = decide(KUBE_FORBIDDEN, 0, 20, MOST);

	assert_in_range(next.delay_ms, 15000, 30000);
	for (int i = 1; i < KUBE_WATCH_REFUSALS; i++)
		next = kube_watch_decide(
			&(struct kube_watch_end){.reason = KUBE_FORBIDDEN, .before = next.course});
	assert_in_range(next.delay_ms, 300000, 330000);
	next = kube_watch_decide(
		&(struct kube_watch_end){.reason = KUBE_UNREACHED, .before = next.course});
	assert_int_equal(next.course.refusals, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_the_first_ones_are_no_place),
		cmocka_unit_test(test_what_is_heard),
		cmocka_unit_test(test_silence_starts_anew),
		cmocka_unit_test(test_who_may_hurry),
		cmocka_unit_test(test_refused_after_an_outage),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_an_error_ends_it),
		cmocka_unit_test(test_the_second_error_starts_anew),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_a_steady_watch_goes_on),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_as_the_server_says),
		cmocka_unit_test(test_expired_after_an_outage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
