/* One side as raw frames: what a peer may send, rightly or wrongly, cut at every byte. */
#include "pair.h"

#include <stdio.h>

enum {
	DATA,
	HEADERS,
	RST_STREAM = 3,
	SETTINGS,
	END_STREAM = 1,
	END_HEADERS = 4,
};

static const struct mono now = {0};

static struct session *make_server(void)
{
	const struct session_options options = {
		.server = true, .methods = pair_methods, .methods_count = 3};
	return session_create(&options, now);
}

static void greet(struct buf *wire)
{
	buf_add_text(wire, PAIR_PREFACE);
	pair_frame(wire, SETTINGS, 0, 0, NULL, 0);
}

/* A request's headers; `extra` is NULL or one more field and its value. */
static void request(struct buf *wire, const char *method, const char *path, const char *type,
		    const char *extra, const char *value, bool end)
{
	CLEANUP(buf) struct buf block = {0};
	pair_field(&block, ":method", method);
	pair_field(&block, ":scheme", "http");
	pair_field(&block, ":path", path);
	pair_field(&block, ":authority", "%2Fvar%2Flib%2Fx.sock");
	pair_field(&block, "te", "trailers");
	if (type)
		pair_field(&block, "content-type", type);
	if (extra)
		pair_field(&block, extra, value);
	pair_frame(wire, HEADERS, (uint8_t)(END_HEADERS | (end ? END_STREAM : 0)), 1, block.data,
		   block.length);
}

static bool contains(const struct buf *bytes, const char *text)
{
	return memmem(bytes->data, bytes->length, text, strlen(text)) != NULL;
}

/* No cut matters: the same events for every two pieces. */
static void test_request_cut_at_every_byte(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf wire = {0};
	greet(&wire);
	request(&wire, "POST", PAIR_UNARY, "application/grpc", "x-a", "b", false);
	pair_frame(&wire, DATA, 0, 1, "\0\0\0", 3);
	pair_frame(&wire, DATA, END_STREAM, 1, "\0\3abc", 5);
	for (size_t cut = 0; cut <= wire.length; cut++) {
		struct error error;
		struct session *server = make_server();
		expect_ok(session_receive(server, wire.data, cut, now, &error), &error);
		expect_ok(session_receive(server, wire.data + cut, wire.length - cut, now, &error),
			  &error);
		pair_expect(server, SESSION_UP);
		pair_expect(server, SESSION_START);
		pair_expect_message(server, "abc");
		pair_expect_none(server);
		session_destroy(server);
	}
}

static void test_not_http2(void **state)
{
	(void)state;
	static const char *const words[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02",
					    "PRI * HTTP/2.0\r\n\r\nXX"};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		struct error error;
		struct session *server = make_server();
		expect_error(session_receive(server, (const uint8_t *)words[i], strlen(words[i]),
					     now, &error),
			     &error, ERROR_INVALID_INPUT, "does not speak HTTP/2");
		session_destroy(server);
	}
}

static void test_refusals_of_the_server(void **state)
{
	(void)state;
	static const struct {
		const char *method, *path, *type, *extra, *value, *answer;
	} cases[] = {
		{"POST", "/t/No", "application/grpc", NULL, NULL, "12"},
		{"POST", PAIR_UNARY, "application/grpc+proto", "grpc-timeout", "5x", "13"},
		{"POST", PAIR_UNARY, "application/grpc;x", "x-bin", "?", "13"},
		{"POST", PAIR_UNARY, "application/grpc", NULL, NULL, "no message in a unary call"},
		{"GET", PAIR_UNARY, "application/grpc", NULL, NULL, "405"},
		{"POST", PAIR_UNARY, "application/grpcx", NULL, NULL, "415"},
		{"POST", PAIR_UNARY, NULL, NULL, NULL, "415"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error error;
		struct session *server = make_server();
		CLEANUP(buf) struct buf wire = {0}, out = {0};
		greet(&wire);
		expect_ok(session_receive(server, wire.data, wire.length, now, &error), &error);
		expect_ok(session_send(server, SIZE_MAX, now, &out, &error), &error);
		buf_clear(&wire);
		buf_clear(&out);
		request(&wire, cases[i].method, cases[i].path, cases[i].type, cases[i].extra,
			cases[i].value, true);
		expect_ok(session_receive(server, wire.data, wire.length, now, &error), &error);
		expect_ok(session_send(server, SIZE_MAX, now, &out, &error), &error);
		/* The answer's texts are Huffman-coded: read it as a client would. */
		const struct session_options options = {.scheme = "http", .authority = "x"};
		struct session *client = session_create(&options, now);
		CLEANUP(buf) struct buf settings = {0}, asked = {0};
		pair_frame(&settings, SETTINGS, 0, 0, NULL, 0);
		expect_ok(session_receive(client, settings.data, settings.length, now, &error),
			  &error);
		session_request(client, "/x", (struct mono){INT64_MAX}, 10);
		expect_ok(session_send(client, SIZE_MAX, now, &asked, &error), &error);
		expect_ok(session_receive(client, out.data, out.length, now, &error), &error);
		pair_expect(client, SESSION_UP);
		struct session_event end = pair_expect(client, SESSION_END);
		char number[8];
		snprintf(number, sizeof number, "%d", (int)call_code(end.call));
		if (!str_equal(number, cases[i].answer) &&
		    !strstr(call_text(end.call), cases[i].answer))
			fail_msg("case %zu: %s '%s'", i, number, call_text(end.call));
		call_destroy(end.call);
		session_destroy(client);
		session_destroy(server);
	}
}

/* A broken rule is answered by a GOAWAY that names it, and then the session is over. */
static void test_broken_rules(void **state)
{
	(void)state;
	struct error error;
	struct session *server = make_server();
	CLEANUP(buf) struct buf wire = {0}, out = {0};
	greet(&wire);
	pair_frame(&wire, DATA, END_STREAM, 7, "x", 1);
	expect_ok(session_receive(server, wire.data, wire.length, now, &error), &error);
	expect_ok(session_send(server, SIZE_MAX, now, &out, &error), &error);
	assert_true(session_is_over(server));
	assert_true(session_reason(server, &error));
	assert_non_null(strstr(error.what, "the peer broke the rules of HTTP/2: PROTOCOL_ERROR"));
	assert_true(contains(&out, "DATA"));
	session_destroy(server);
}

/* --- a client, and a server of raw frames --- */

struct answer {
	struct session *client;
	struct buf wire;
};

static void answer_begin(struct answer *answer)
{
	struct error error;
	const struct session_options options = {.scheme = "http", .authority = "x"};
	*answer = (struct answer){.client = session_create(&options, now)};
	CLEANUP(buf) struct buf out = {0};
	pair_frame(&answer->wire, SETTINGS, 0, 0, NULL, 0);
	expect_ok(session_receive(answer->client, answer->wire.data, answer->wire.length, now,
				  &error),
		  &error);
	pair_expect(answer->client, SESSION_UP);
	session_request(answer->client, "/x", (struct mono){INT64_MAX}, 10);
	expect_ok(session_send(answer->client, SIZE_MAX, now, &out, &error), &error);
	buf_clear(&answer->wire);
}

static void answer_headers(struct answer *answer, const char *status, const char *type,
			   const char *grpc_status, bool end)
{
	CLEANUP(buf) struct buf block = {0};
	if (status)
		pair_field(&block, ":status", status);
	if (type)
		pair_field(&block, "content-type", type);
	if (grpc_status)
		pair_field(&block, "grpc-status", grpc_status);
	pair_frame(&answer->wire, HEADERS, (uint8_t)(END_HEADERS | (end ? END_STREAM : 0)), 1,
		   block.data, block.length);
}

/* Byte by byte; what the client has to say to it is sent away. */
static void answer_deliver(struct answer *answer)
{
	struct error error;
	CLEANUP(buf) struct buf out = {0};
	for (size_t i = 0; i < answer->wire.length; i++)
		expect_ok(session_receive(answer->client, answer->wire.data + i, 1, now, &error),
			  &error);
	expect_ok(session_send(answer->client, SIZE_MAX, now, &out, &error), &error);
}

static void answer_end(struct answer *answer)
{
	pair_expect_none(answer->client);
	session_destroy(answer->client);
	buf_deinit(&answer->wire);
}

#define GRPC "application/grpc"

static void test_good_answer(void **state)
{
	(void)state;
	struct answer answer;
	answer_begin(&answer);
	answer_headers(&answer, "103", NULL, NULL, false); /* an interim one is nothing yet */
	answer_headers(&answer, "200", GRPC, NULL, false);
	pair_frame(&answer.wire, DATA, 0, 1, "\0\0\0\0\2ok", 7);
	answer_headers(&answer, NULL, NULL, "0", true);
	answer_deliver(&answer);
	pair_expect_message(answer.client, "ok");
	pair_expect_end(answer.client, RPC_OK, "");
	answer_end(&answer);
}

static void test_bad_answers(void **state)
{
	(void)state;
	static const struct {
		const char *status, *type, *data;
		size_t length;
		const char *trailer; /* NULL: END_STREAM comes with the DATA */
		enum rpc_code code;
		const char *text;
	} cases[] = {
		{"200", GRPC, "", 0, NULL, RPC_INTERNAL, "the stream ended without a status"},
		{"200", GRPC, "\0\0\0\0\2o", 6, "0", RPC_INTERNAL, "a message is cut short"},
		{"200", GRPC, "\0\0\0\0\2o", 6, "8", RPC_RESOURCE_EXHAUSTED, ""},
		{"200", GRPC, "\0\0\0\0\13", 5, "0", RPC_RESOURCE_EXHAUSTED,
		 "a message of 11 bytes is larger than the 10 allowed"},
		{"200", GRPC, "\1\0\0\0\0", 5, "0", RPC_INTERNAL,
		 "a message is compressed, and no compression was agreed on"},
		{"200", GRPC, "\2\0\0\0\0", 5, "0", RPC_INTERNAL, "a message has an unknown flag"},
		{"503", NULL, "", 0, NULL, RPC_UNAVAILABLE,
		 "the server answered with HTTP status 503"},
		{"200", "text/html", "<p>", 3, NULL, RPC_UNKNOWN,
		 "the server's answer is not gRPC"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct answer answer;
		answer_begin(&answer);
		answer_headers(&answer, cases[i].status, cases[i].type, NULL, false);
		pair_frame(&answer.wire, DATA, cases[i].trailer ? 0 : END_STREAM, 1, cases[i].data,
			   cases[i].length);
		if (cases[i].trailer)
			answer_headers(&answer, NULL, NULL, cases[i].trailer, true);
		answer_deliver(&answer);
		pair_expect_end(answer.client, cases[i].code, cases[i].text);
		answer_end(&answer);
	}
}

static void test_reset_answers(void **state)
{
	(void)state;
	for (uint8_t code = 0; code < 14; code++) {
		struct answer answer;
		answer_begin(&answer);
		pair_frame(&answer.wire, RST_STREAM, 0, 1, (const uint8_t[]){0, 0, 0, code}, 4);
		answer_deliver(&answer);
		struct session_event end = pair_expect(answer.client, SESSION_END);
		assert_int_equal(call_code(end.call), status_from_reset(code));
		call_destroy(end.call);
		answer_end(&answer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_cut_at_every_byte),
		cmocka_unit_test(test_not_http2),
		cmocka_unit_test(test_refusals_of_the_server),
		cmocka_unit_test(test_broken_rules),
		cmocka_unit_test(test_good_answer),
		cmocka_unit_test(test_bad_answers),
		cmocka_unit_test(test_reset_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
