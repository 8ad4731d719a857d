#include "http/sse.h"
#include "lib/test.h"

#include <stdio.h>

/* What was heard: "id=data|" an event. */
struct heard {
	struct sse sse;
	struct buf text;
	size_t stop_after; /* events; 0: never */
	size_t count;
};

static bool on_event(void *arg, const char *data, size_t length, struct error *error)
{
	struct heard *heard = arg;

	assert_int_equal(strlen(data), length);
	buf_printf(&heard->text, "%s=%s|", heard->sse.id, data);
	heard->count++;
	return heard->count != heard->stop_after ||
	       error_set(error, ERROR_INVALID_STATE, "that's enough");
}

static void heard_cleanup(struct heard *heard)
{
	sse_deinit(&heard->sse);
	buf_deinit(&heard->text);
}

static const struct {
	const char *text, *heard;
} STREAMS[] = {
	{"id: 41\nevent: x\ndata: {}\n\nid: 42\ndata: b\n\n", "41={}|42=b|"},
	{"retry: 1000\n\n: heartbeat\n\nid: 1\ndata: a\n\n: heartbeat\n\n", "1=a|"},
	{"data: one\r\ndata: two\r\rdata:  indented\n\n", "=one\ntwo|= indented|"},
	{"\xef\xbb\xbf"
	 "data: a\n\n\xef\xbb\xbf"
	 "data: b\n\n",
	 "=a|"},
	{"id: 7\n\ndata: a\n\nid\ndata: b\n\n", "7=a|=b|"}, /* an id stays until there is another */
	{"data\n\ndata:\ndata:\n\ndatum: x\n\n", "=|=\n|"},
	{"data: never ended\n", ""},
	{"id: 0123456789012345678901234567890123456789012345678901234567890123456789\ndata: a\n\n",
	 "=a|"}, /* too long to be sent back */
};

static void test_the_same_however_it_comes(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_SIZE(STREAMS); i++) {
		size_t length = strlen(STREAMS[i].text);

		for (size_t piece = 1; piece <= length; piece++) {
			CLEANUP(heard) struct heard heard = {0};
			struct error error;

			for (size_t at = 0; at < length; at += piece) {
				size_t rest = length - at;
				expect_ok(sse_read(&heard.sse, STREAMS[i].text + at,
						   rest < piece ? rest : piece, on_event, &heard,
						   &error),
					  &error);
			}
			assert_string_equal(buf_text(&heard.text), STREAMS[i].heard);
		}
	}
}

static void test_whoever_listens_may_stop(void **state UNUSED)
{
	CLEANUP(heard) struct heard heard = {.stop_after = 2};
	static const char TEXT[] = "data: a\n\ndata: b\n\ndata: c\n\n";
	struct error error;

	expect_error(sse_read(&heard.sse, TEXT, strlen(TEXT), on_event, &heard, &error), &error,
		     ERROR_INVALID_STATE, "enough");
	assert_string_equal(buf_text(&heard.text), "=a|=b|");
}

static void test_an_event_has_a_bound(void **state UNUSED)
{
	CLEANUP(free) char *text = mem_alloc(SSE_MAX_EVENT);
	CLEANUP(heard) struct heard heard = {0};
	struct error error;

	memset(text, 'x', SSE_MAX_EVENT);
	expect_ok(sse_read(&heard.sse, text, SSE_MAX_EVENT, on_event, &heard, &error), &error);
	expect_error(sse_read(&heard.sse, "x", 1, on_event, &heard, &error), &error,
		     ERROR_RESOURCES_EXHAUSTED, "larger than");
	sse_deinit(&heard.sse);
	heard.sse = (struct sse){0};
	memcpy(text, "data:", 5);
	text[SSE_MAX_EVENT / 2] = '\n';
	memcpy(text + SSE_MAX_EVENT / 2 + 1, "data:", 5);
	expect_ok(sse_read(&heard.sse, text, SSE_MAX_EVENT, on_event, &heard, &error), &error);
	expect_error(sse_read(&heard.sse, "\ndata:12345678901\n", 18, on_event, &heard, &error),
		     &error, ERROR_RESOURCES_EXHAUSTED, "larger than");
	assert_int_equal(heard.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_however_it_comes),
		cmocka_unit_test(test_whoever_listens_may_stop),
		cmocka_unit_test(test_an_event_has_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
