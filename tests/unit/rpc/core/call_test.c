#include "rpc/core/call.h"

#include "pair.h"

#include <stdio.h>

static int setup(void **state)
{
	*state = pair_create();
	return 0;
}

static int teardown(void **state)
{
	pair_destroy(*state);
	return 0;
}

static struct call *expect_start(struct pair *pair)
{
	return pair_expect(pair->server, SESSION_START).call;
}

static void send_text(struct call *call, const char *text)
{
	call_send(call, text, strlen(text));
}

static void fill(struct buf *buf, size_t length)
{
	memset(buf_extend(buf, length), 'x', length);
}

/* --- the usual ways --- */

static void unary_once(struct pair *pair)
{
	struct call *call = pair_request(pair, PAIR_UNARY);
	call_add_metadata(call, false, "x-name", "value", 5);
	send_text(call, "question");
	call_half_close(call);
	pair_move(pair);
	struct call *served = expect_start(pair);
	assert_ptr_equal(call_method(served), &pair_methods[0]);
	assert_string_equal((char *)metadata_find(call_metadata(served), "x-name")->value, "value");
	pair_expect_message(pair->server, "question");
	pair_expect_none(pair->server);
	send_text(served, "answer");
	call_add_metadata(served, true, "x-trail-bin", "\0\1", 2);
	call_finish(served, RPC_OK, "");
	pair_move(pair);
	pair_expect_message(pair->client, "answer");
	struct session_event end = pair_expect(pair->client, SESSION_END);
	assert_int_equal(call_code(end.call), RPC_OK);
	assert_int_equal(metadata_find(call_metadata(end.call), "x-trail-bin")->length, 2);
	call_destroy(end.call);
	pair_expect_end(pair->server, RPC_OK, "");
	pair_expect_none(pair->client);
}

static void test_unary_in_pieces_of_any_size(void **state)
{
	struct pair *pair = *state;
	for (pair->piece = 1; pair->piece < 80; pair->piece++)
		unary_once(pair);
}

static void test_stream(void **state)
{
	struct pair *pair = *state;
	struct call *call = pair_request(pair, PAIR_STREAM);
	send_text(call, "one");
	send_text(call, "");
	pair_move(pair);
	struct call *served = expect_start(pair);
	pair_expect_message(pair->server, "one");
	pair_expect_message(pair->server, "");
	pair_expect_none(pair->server);
	pair_expect(pair->client, SESSION_DRAINED);
	send_text(served, "first");
	pair_move(pair);
	pair_expect_message(pair->client, "first");
	pair_expect(pair->server, SESSION_DRAINED);
	call_half_close(call);
	pair_move(pair);
	pair_expect(pair->server, SESSION_HALF_CLOSE);
	send_text(served, "last");
	call_finish(served, RPC_DATA_LOSS, "ünwell 100%");
	pair_move(pair);
	pair_expect_message(pair->client, "last");
	pair_expect_end(pair->client, RPC_DATA_LOSS, "ünwell 100%");
	pair_expect_end(pair->server, RPC_DATA_LOSS, "ünwell 100%");
}

/* Without a message the whole answer is one header block; metadata of both kinds is in it. */
static void test_trailers_only(void **state)
{
	struct pair *pair = *state;
	struct call *call = pair_request(pair, PAIR_STREAM);
	pair_move(pair);
	struct call *served = expect_start(pair);
	call_add_metadata(served, false, "x-a", "1", 1);
	call_add_metadata(served, true, "x-b", "2", 1);
	call_finish(served, RPC_NOT_FOUND, "no");
	pair_move(pair);
	struct session_event end = pair_expect(pair->client, SESSION_END);
	assert_ptr_equal(end.call, call);
	assert_int_equal(call_code(call), RPC_NOT_FOUND);
	assert_non_null(metadata_find(call_metadata(call), "x-a"));
	assert_non_null(metadata_find(call_metadata(call), "x-b"));
	call_destroy(call);
	/* The client had not half-closed: the stream is gone all the same. */
	pair_expect_end(pair->server, RPC_NOT_FOUND, "no");
}

static void test_after_finish_only_the_end_comes(void **state)
{
	struct pair *pair = *state;
	struct call *call = pair_request(pair, PAIR_STREAM);
	send_text(call, "one");
	send_text(call, "two");
	pair_move(pair);
	struct call *served = expect_start(pair);
	pair_expect_message(pair->server, "one");
	call_finish(served, RPC_ABORTED, "enough");
	call_finish(served, RPC_OK, "twice");
	send_text(served, "too late");
	pair_expect_none(pair->server); /* "two" was waiting */
	pair_move(pair);
	pair_expect_end(pair->server, RPC_ABORTED, "enough");
	pair_expect(pair->client, SESSION_DRAINED);
	pair_expect_end(pair->client, RPC_ABORTED, "enough");
}

static void test_cancel(void **state)
{
	struct pair *pair = *state;
	struct call *call = pair_request(pair, PAIR_STREAM);
	pair_move(pair);
	expect_start(pair);
	call_cancel(call);
	call_cancel(call);
	send_text(call, "nobody");
	pair_move(pair);
	pair_expect_end(pair->client, RPC_CANCELLED, "cancelled");
	pair_expect_end(pair->server, RPC_CANCELLED, "cancelled by the peer");

	call = pair_request(pair, PAIR_STREAM); /* before anything was sent */
	call_cancel(call);
	pair_expect_end(pair->client, RPC_CANCELLED, "cancelled");
	pair_move(pair);
	pair_expect_none(pair->server);

	pair_request(pair, PAIR_STREAM); /* by the server */
	pair_move(pair);
	call_cancel(expect_start(pair));
	pair_move(pair);
	pair_expect_end(pair->server, RPC_CANCELLED, "cancelled");
	pair_expect_end(pair->client, RPC_CANCELLED, "the stream was reset: CANCEL");
}

/* --- deadlines --- */

static void test_deadline_of_the_client(void **state)
{
	struct pair *pair = *state;
	session_request(pair->client, PAIR_STREAM, mono_after(pair->now, 100), 10);
	pair_move(pair);
	expect_start(pair);
	assert_int_equal(session_wake(pair->client).ms, pair->now.ms + 100);
	assert_int_equal(session_wake(pair->server).ms, pair->now.ms + 100);
	pair_wait(pair, 99);
	pair_expect_none(pair->client);
	pair_expect_none(pair->server);
	pair_wait(pair, 1);
	pair_expect_end(pair->client, RPC_DEADLINE_EXCEEDED, "deadline exceeded");
	pair_move(pair);
	pair_expect_end(pair->server, RPC_DEADLINE_EXCEEDED, "deadline exceeded");
	assert_int_equal(session_wake(pair->client).ms, INT64_MAX);
	assert_int_equal(session_wake(pair->server).ms, INT64_MAX);
}

/* A client that is slow to give up hears it from the server; what it had not read is dropped. */
static void test_deadline_of_the_server(void **state)
{
	struct pair *pair = *state;
	struct error error;
	CLEANUP(buf) struct buf large = {0};
	fill(&large, 1 << 20); /* more than the windows let through */
	session_request(pair->client, PAIR_STREAM, mono_after(pair->now, 100), 2 << 20);
	pair_move_up(pair);
	struct call *served = expect_start(pair);
	call_send(served, large.data, large.length);
	CLEANUP(buf) struct buf wire = {0}, rest = {0};
	expect_ok(session_send(pair->server, SIZE_MAX, pair->now, &wire, &error), &error);
	assert_true(call_queued(served) > 0);
	pair->now = mono_after(pair->now, 100);
	expect_ok(session_tick(pair->server, pair->now, &error), &error);
	assert_int_equal(call_queued(served), 0);
	expect_ok(session_send(pair->server, SIZE_MAX, pair->now, &rest, &error), &error);
	expect_ok(session_receive(pair->client, wire.data, wire.length, pair->now, &error), &error);
	expect_ok(session_receive(pair->client, rest.data, rest.length, pair->now, &error), &error);
	pair_expect_end(pair->client, RPC_DEADLINE_EXCEEDED, "deadline exceeded");
	pair_move(pair);
	pair_expect_end(pair->server, RPC_DEADLINE_EXCEEDED, "deadline exceeded");
}

/* A server that gives up first does so by a reset; it is the deadline all the same. */
static void test_deadline_told_by_a_reset(void **state)
{
	struct pair *pair = *state;
	session_request(pair->client, PAIR_STREAM, mono_after(pair->now, 100), 10);
	pair_move(pair);
	call_cancel(expect_start(pair));
	pair->now = mono_after(pair->now, 100);
	pair_move(pair);
	pair_expect_end(pair->client, RPC_DEADLINE_EXCEEDED, "deadline exceeded");
}

/* A call that had to wait for its connection sends what is left of its time. */
static void test_deadline_runs_while_waiting(void **state)
{
	(void)state;
	struct error error;
	struct mono now = {0};
	const struct session_options client_options = {.scheme = "http", .authority = "x"};
	const struct session_options server_options = {
		.server = true, .methods = pair_methods, .methods_count = 3};
	struct pair pair = {session_create(&client_options, now),
			    session_create(&server_options, now), now, SIZE_MAX};
	session_request(pair.client, PAIR_STREAM, (struct mono){1000}, 10);
	session_request(pair.client, PAIR_STREAM, (struct mono){300}, 10);
	expect_ok(session_tick(pair.client, (struct mono){400}, &error), &error);
	pair_expect_end(pair.client, RPC_DEADLINE_EXCEEDED, "deadline exceeded");
	pair.now.ms = 400;
	pair_move(&pair);
	pair_expect(pair.server, SESSION_UP);
	expect_start(&pair);
	pair_expect_none(pair.server);
	assert_int_equal(session_wake(pair.server).ms, 1000);
	session_destroy(pair.client);
	session_destroy(pair.server);
}

/* --- bounds, at the bound and one past it --- */

static void expect_unary(struct pair *pair, const char *path, size_t length, enum rpc_code code)
{
	CLEANUP(buf) struct buf message = {0};
	fill(&message, length);
	struct call *call = pair_request(pair, path);
	call_send(call, message.data, message.length);
	call_half_close(call);
	pair_move(pair);
	/* A call that failed before its start was taken is told by its end alone. */
	if (code == RPC_OK) {
		struct call *served = expect_start(pair);
		struct session_event event = pair_expect(pair->server, SESSION_MESSAGE);
		assert_int_equal(event.message.length, length);
		buf_deinit(&event.message);
		call_finish(served, RPC_OK, "");
		pair_move(pair);
	}
	struct session_event event = pair_expect(pair->server, SESSION_END);
	call_destroy(event.call);
	event = pair_expect(pair->client, SESSION_END);
	assert_string_equal(rpc_code_name(call_code(event.call)), rpc_code_name(code));
	call_destroy(event.call);
}

static void test_message_bound(void **state)
{
	expect_unary(*state, PAIR_SMALL, 8, RPC_OK);
	expect_unary(*state, PAIR_SMALL, 9, RPC_RESOURCE_EXHAUSTED);
	expect_unary(*state, PAIR_UNARY, (size_t)4 << 20, RPC_OK);
	expect_unary(*state, PAIR_UNARY, ((size_t)4 << 20) + 1, RPC_RESOURCE_EXHAUSTED);
}

static void test_message_bound_of_the_client(void **state)
{
	struct pair *pair = *state;
	for (size_t length = 10; length <= 11; length++) {
		CLEANUP(buf) struct buf message = {0};
		fill(&message, length);
		session_request(pair->client, PAIR_STREAM, (struct mono){INT64_MAX}, 10);
		pair_move(pair);
		struct call *served = expect_start(pair);
		call_send(served, message.data, length);
		pair_move(pair);
		struct session_event event;
		if (length == 10) {
			event = pair_expect(pair->client, SESSION_MESSAGE);
			buf_deinit(&event.message);
			call_finish(served, RPC_OK, "");
			pair_move(pair);
			pair_expect_end(pair->client, RPC_OK, "");
		} else {
			pair_expect_end(pair->client, RPC_RESOURCE_EXHAUSTED,
					"a message of 11 bytes is larger than the 10 allowed");
			pair_expect(pair->server, SESSION_DRAINED);
		}
		event = pair_expect(pair->server, SESSION_END);
		call_destroy(event.call);
	}
}

/* What each of our requests has in its headers, by the rule of names + values + 32. */
static size_t own_headers(const char *path)
{
	const char *const fields[] = {":method",      "POST",
				      ":path",        path,
				      ":authority",   "localhost",
				      ":scheme",      "http",
				      "te",           "trailers",
				      "content-type", "application/grpc",
				      "user-agent",   "better-compute/" BC_VERSION};
	size_t size = 0;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		size += strlen(fields[i]) + 16;
	return size;
}

static void test_header_bound(void **state)
{
	struct pair *pair = *state;
	size_t left = SESSION_MAX_HEADERS - own_headers(PAIR_STREAM) - strlen("x") - 32;
	for (size_t length = left; length <= left + 1; length++) {
		CLEANUP(buf) struct buf value = {0};
		fill(&value, length);
		struct call *call = pair_request(pair, PAIR_STREAM);
		call_add_metadata(call, false, "x", value.data, length);
		pair_move(pair);
		if (length == left) {
			struct call *served = expect_start(pair);
			call_finish(served, RPC_OK, "");
			pair_move(pair);
			pair_expect_end(pair->server, RPC_OK, "");
			pair_expect_end(pair->client, RPC_OK, "");
		} else {
			pair_expect_none(pair->server);
			pair_expect_end(pair->client, RPC_RESOURCE_EXHAUSTED,
					"the headers are larger than allowed");
		}
	}
}

static void test_header_bound_of_the_client(void **state)
{
	struct pair *pair = *state;
	CLEANUP(buf) struct buf value = {0};
	fill(&value, SESSION_MAX_HEADERS);
	pair_request(pair, PAIR_STREAM);
	pair_move(pair);
	struct call *served = expect_start(pair);
	call_add_metadata(served, false, "x", value.data, value.length);
	send_text(served, "never read");
	pair_move(pair);
	pair_expect_end(pair->client, RPC_RESOURCE_EXHAUSTED,
			"the headers are larger than allowed");
	pair_expect(pair->server, SESSION_DRAINED);
	pair_expect_end(pair->server, RPC_CANCELLED, "cancelled by the peer");
}

/* Requests that are held until their half-close, of four megabytes each, up to the connection's
 * bound. */
static void test_buffered_bound(void **state)
{
	struct pair *pair = *state;
	size_t each = (size_t)4 << 20, count = SESSION_MAX_BUFFERED / each;
	CLEANUP(buf) struct buf message = {0};
	fill(&message, each);
	struct call *calls[8];
	for (size_t i = 0; i < count; i++) {
		calls[i] = pair_request(pair, PAIR_UNARY);
		call_send(calls[i], message.data, each);
		pair_move(pair);
		expect_start(pair);
		pair_expect(pair->client, SESSION_DRAINED);
	}
	pair_expect_none(pair->server);
	pair_expect_none(pair->client);
	struct call *more = pair_request(pair, PAIR_UNARY);
	send_text(more, "1");
	pair_move(pair);
	pair_expect_end(pair->server, RPC_RESOURCE_EXHAUSTED,
			"the connection's unfinished messages are too large");
	pair_expect(pair->client, SESSION_DRAINED);
	pair_expect_end(pair->client, RPC_RESOURCE_EXHAUSTED,
			"the connection's unfinished messages are too large");
	/* The others go on, and there is room again. */
	call_half_close(calls[0]);
	pair_move(pair);
	struct session_event event = pair_expect(pair->server, SESSION_MESSAGE);
	assert_int_equal(event.message.length, each);
	buf_deinit(&event.message);
	more = pair_request(pair, PAIR_UNARY);
	send_text(more, "1");
	call_half_close(more);
	pair_move(pair);
	expect_start(pair);
	pair_expect_message(pair->server, "1");
}

/* One call more than a server takes at once: it waits on the client's side, and fails nobody. */
static void test_stream_bound(void **state)
{
	struct pair *pair = *state;
	struct call *first = NULL;
	for (unsigned i = 0; i < SESSION_MAX_STREAMS + 1; i++)
		pair_request(pair, PAIR_STREAM);
	pair_move(pair);
	for (unsigned i = 0; i < SESSION_MAX_STREAMS; i++) {
		struct call *served = expect_start(pair);
		first = first ? first : served;
	}
	pair_expect_none(pair->server);
	call_finish(first, RPC_OK, "");
	pair_move(pair);
	pair_expect_end(pair->server, RPC_OK, "");
	expect_start(pair);
	pair_expect_end(pair->client, RPC_OK, "");
}

/* What the server has for the client, but for its DATA: a peer that sends and never reads. */
static void deliver_all_but_data(struct pair *pair)
{
	struct error error;
	CLEANUP(buf) struct buf bytes = {0};
	expect_ok(session_send(pair->server, SIZE_MAX, pair->now, &bytes, &error), &error);
	for (size_t at = 0; at < bytes.length;) {
		const uint8_t *frame = bytes.data + at;
		size_t length = 9 + ((size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2]);
		if (frame[3] != 0)
			expect_ok(session_receive(pair->client, frame, length, pair->now, &error),
				  &error);
		at += length;
	}
}

static void test_who_never_reads_is_held_up(void **state)
{
	struct pair *pair = *state;
	CLEANUP(buf) struct buf piece = {0};
	fill(&piece, 16 << 10);
	struct call *call = pair_request(pair, PAIR_STREAM), *served = NULL;
	for (size_t i = 0; i < 1024; i++)
		call_send(call, piece.data, piece.length);
	for (size_t round = 0; round < 100; round++) {
		struct session_event event;
		pair_move_up(pair);
		while (session_next(pair->server, &event)) {
			if (event.kind == SESSION_START)
				served = event.call;
			if (event.kind == SESSION_MESSAGE)
				call_send(served, event.message.data, event.message.length);
			buf_deinit(&event.message);
		}
		deliver_all_but_data(pair);
	}
	/* A window that was open, and what came in one go before any of it was answered. */
	assert_in_range(call_queued(served), SESSION_QUEUE_HIGH,
			SESSION_QUEUE_HIGH + 2 * SESSION_STREAM_WINDOW);
	assert_true(call_queued(call) > ((size_t)8 << 20));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_unary_in_pieces_of_any_size),
		TEST(test_stream),
		TEST(test_trailers_only),
		TEST(test_after_finish_only_the_end_comes),
		TEST(test_cancel),
		TEST(test_deadline_of_the_client),
		TEST(test_deadline_of_the_server),
		TEST(test_deadline_told_by_a_reset),
		cmocka_unit_test(test_deadline_runs_while_waiting),
		TEST(test_message_bound),
		TEST(test_message_bound_of_the_client),
		TEST(test_header_bound),
		TEST(test_header_bound_of_the_client),
		TEST(test_buffered_bound),
		TEST(test_stream_bound),
		TEST(test_who_never_reads_is_held_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
