#include "rpc/core/session.h"

#include "pair.h"

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

/* Moves one side's bytes to nowhere. */
static void lose(struct session *from, struct mono now)
{
	struct error error;
	CLEANUP(buf) struct buf bytes = {0};
	expect_ok(session_send(from, SIZE_MAX, now, &bytes, &error), &error);
}

/* --- opening --- */

static void test_a_silent_peer_is_given_up(void **state)
{
	(void)state;
	struct error error;
	const struct session_options both[] = {
		{.scheme = "http", .authority = "x"},
		{.server = true, .methods = pair_methods, .methods_count = 3}};
	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		struct session *session = session_create(&both[i], (struct mono){500});
		lose(session, (struct mono){500});
		assert_int_equal(session_wake(session).ms, 500 + SESSION_OPEN_MS);
		expect_ok(session_tick(session, (struct mono){499 + SESSION_OPEN_MS}, &error),
			  &error);
		expect_error(session_tick(session, (struct mono){500 + SESSION_OPEN_MS}, &error),
			     &error, ERROR_UNAVAILABLE, "the peer said nothing for 20 s");
		session_destroy(session);
	}
}

static void test_bytes_out_in_small_helpings(void **state)
{
	struct pair *pair = *state;
	struct error error;
	CLEANUP(free) uint8_t *large = mem_alloc(200000);
	CLEANUP(buf) struct buf out = {0};
	call_send(pair_request(pair, PAIR_STREAM), large, 200000);
	size_t before;
	do {
		before = out.length;
		/* One frame beyond `enough` at most. */
		expect_ok(session_send(pair->client, before + 1, pair->now, &out, &error), &error);
		assert_true(out.length - before <= 9 + 16384);
	} while (out.length > before);
	expect_ok(session_receive(pair->server, out.data, out.length, pair->now, &error), &error);
	pair_expect(pair->server, SESSION_START);
	struct session_event event = pair_expect(pair->server, SESSION_MESSAGE);
	assert_int_equal(event.message.length, 200000);
	buf_deinit(&event.message);
}

/* --- keepalive --- */

static struct session *client_with_keepalive(struct pair *pair, int64_t ms)
{
	const struct session_options options = {
		.scheme = "http", .authority = "x", .keepalive_ms = ms};
	session_destroy(pair->client);
	session_destroy(pair->server);
	pair->client = session_create(&options, pair->now);
	pair->server = session_create(&(struct session_options){.server = true,
								.methods = pair_methods,
								.methods_count = 3},
				      pair->now);
	pair_move(pair);
	pair_expect(pair->client, SESSION_UP);
	pair_expect(pair->server, SESSION_UP);
	return pair->client;
}

static void test_keepalive_answered(void **state)
{
	struct pair *pair = *state;
	struct session *client = client_with_keepalive(pair, 7000);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(session_wake(client).ms, pair->now.ms + 7000);
		pair_wait(pair, 7000);
		assert_int_equal(session_wake(client).ms, pair->now.ms + SESSION_PING_ANSWER_MS);
		pair_move(pair);
	}
	assert_false(session_is_over(client));
}

static void test_keepalive_unanswered(void **state)
{
	struct pair *pair = *state;
	struct error error;
	struct session *client = client_with_keepalive(pair, 7000);
	pair_wait(pair, 7000);
	lose(client, pair->now);
	pair_wait(pair, SESSION_PING_ANSWER_MS - 1);
	pair->now.ms++;
	expect_error(session_tick(client, pair->now, &error), &error, ERROR_UNAVAILABLE,
		     "no answer to a ping for 20 s");
}

/* --- pings of the peer --- */

static bool ping(struct pair *pair, struct error *error)
{
	CLEANUP(buf) struct buf frame = {0};
	pair_frame(&frame, 6, 0, 0, "12345678", 8);
	return session_receive(pair->server, frame.data, frame.length, pair->now, error);
}

static void test_pings_at_a_fair_pace(void **state)
{
	struct pair *pair = *state;
	struct error error;
	for (unsigned i = 0; i < 50; i++) {
		expect_ok(ping(pair, &error), &error);
		pair->now.ms += SESSION_PING_MIN_MS;
	}
}

static void test_too_many_pings(void **state)
{
	struct pair *pair = *state;
	struct error error;
	for (unsigned i = 0; i <= SESSION_PING_STRIKES; i++) {
		expect_ok(ping(pair, &error), &error);
		pair->now.ms += SESSION_PING_MIN_MS - 1;
	}
	expect_error(ping(pair, &error), &error, ERROR_RATE_LIMITED, "pings too often");
	/* The client learns why. */
	CLEANUP(buf) struct buf out = {0};
	expect_ok(session_send(pair->server, SIZE_MAX, pair->now, &out, &error), &error);
	expect_ok(session_receive(pair->client, out.data, out.length, pair->now, &error), &error);
	assert_true(session_reason(pair->client, &error));
	assert_string_equal(error.what, "the server ended the connection: ENHANCE_YOUR_CALM, "
					"too_many_pings");
	assert_true(session_is_over(pair->client));
}

static void test_pings_between_answers_are_free(void **state)
{
	struct pair *pair = *state;
	struct error error;
	struct call *call = pair_request(pair, PAIR_STREAM);
	pair_move(pair);
	struct call *served = pair_expect(pair->server, SESSION_START).call;
	for (unsigned i = 0; i < 20; i++) {
		call_send(served, "x", 1);
		pair_move(pair);
		pair_expect(pair->server, SESSION_DRAINED);
		pair_expect_message(pair->client, "x");
		expect_ok(ping(pair, &error), &error);
	}
	call_cancel(call);
}

/* --- the way to the end --- */

static void test_drain_idle(void **state)
{
	struct pair *pair = *state;
	session_drain(pair->server, pair->now);
	session_drain(pair->server, pair->now);
	pair_move(pair);
	assert_true(session_is_over(pair->server));
	assert_true(session_is_over(pair->client));
	struct error error;
	assert_false(session_reason(pair->client, &error)); /* nothing was wrong */
	pair_request(pair, PAIR_UNARY);
	pair_expect_end(pair->client, RPC_UNAVAILABLE,
			"the server takes no new calls on this connection");
}

static void test_drain_lets_running_calls_end(void **state)
{
	struct pair *pair = *state;
	struct call *call = pair_request(pair, PAIR_STREAM);
	pair_move(pair);
	struct call *served = pair_expect(pair->server, SESSION_START).call;
	session_drain(pair->server, pair->now);
	pair_move(pair);
	assert_false(session_is_over(pair->server));
	pair_request(pair, PAIR_STREAM);
	pair_expect_end(pair->client, RPC_UNAVAILABLE,
			"the server takes no new calls on this connection");
	call_send(call, "still", 5);
	pair_move(pair);
	pair_expect_message(pair->server, "still");
	pair_expect(pair->client, SESSION_DRAINED);
	call_finish(served, RPC_OK, "");
	pair_move(pair);
	pair_expect_end(pair->client, RPC_OK, "");
	pair_expect_end(pair->server, RPC_OK, "");
	assert_true(session_is_over(pair->server));
	assert_true(session_is_over(pair->client));
}

/* A call that was on its way when the drain began is served; one after the last GOAWAY is not. */
static void test_drain_and_a_call_on_its_way(void **state)
{
	struct pair *pair = *state;
	struct call *call = pair_request(pair, PAIR_STREAM);
	session_drain(pair->server, pair->now);
	pair_move_up(pair);
	struct call *served = pair_expect(pair->server, SESSION_START).call;
	call_finish(served, RPC_OK, "");
	pair_move(pair);
	pair_expect_end(pair->server, RPC_OK, "");
	pair_expect_end(pair->client, RPC_OK, "");
	(void)call;
}

static void test_drain_of_a_peer_that_says_nothing(void **state)
{
	struct pair *pair = *state;
	session_drain(pair->server, pair->now);
	lose(pair->server, pair->now);
	assert_int_equal(session_wake(pair->server).ms, pair->now.ms + SESSION_DRAIN_MS);
	pair_wait(pair, SESSION_DRAIN_MS - 1);
	lose(pair->server, pair->now);
	assert_false(session_is_over(pair->server));
	pair_wait(pair, 1);
	lose(pair->server, pair->now);
	assert_true(session_is_over(pair->server));
}

static void test_close_ends_all_calls(void **state)
{
	struct pair *pair = *state;
	for (unsigned i = 0; i < 3; i++)
		pair_request(pair, PAIR_STREAM);
	pair_move(pair);
	pair_request(pair, PAIR_STREAM); /* not sent yet */
	session_close(pair->client, RPC_UNAVAILABLE, "cable cut");
	for (unsigned i = 0; i < 4; i++)
		pair_expect_end(pair->client, RPC_UNAVAILABLE, "cable cut");
	pair_request(pair, PAIR_STREAM); /* later ones end at once */
	pair_expect_end(pair->client, RPC_UNAVAILABLE, "cable cut");
	pair_expect_none(pair->client);
	session_close(pair->server, RPC_CANCELLED, "cable cut");
	for (unsigned i = 0; i < 3; i++)
		pair_expect(pair->server, SESSION_START);
	for (unsigned i = 0; i < 3; i++)
		pair_expect_end(pair->server, RPC_CANCELLED, "cable cut");
	pair_expect_none(pair->server);
}

/* With calls under way, events untaken and bytes unsent: nothing leaks (ASan sees). */
static void test_destroy_in_the_middle(void **state)
{
	struct pair *pair = *state;
	for (unsigned i = 0; i < 3; i++) {
		struct call *call = pair_request(pair, i ? PAIR_STREAM : PAIR_UNARY);
		call_add_metadata(call, false, "x-a", "b", 1);
		call_send(call, "message", 7);
	}
	pair->piece = 7;
	pair_move_up(pair);
	pair_request(pair, PAIR_STREAM);
	session_destroy(NULL);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_silent_peer_is_given_up),
		TEST(test_bytes_out_in_small_helpings),
		TEST(test_keepalive_answered),
		TEST(test_keepalive_unanswered),
		TEST(test_pings_at_a_fair_pace),
		TEST(test_too_many_pings),
		TEST(test_pings_between_answers_are_free),
		TEST(test_drain_idle),
		TEST(test_drain_lets_running_calls_end),
		TEST(test_drain_and_a_call_on_its_way),
		TEST(test_drain_of_a_peer_that_says_nothing),
		TEST(test_close_ends_all_calls),
		TEST(test_destroy_in_the_middle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
