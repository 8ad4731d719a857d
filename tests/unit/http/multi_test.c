#include "http/multi.h"

#include "fake_server.h"
#include "lib/test.h"
#include "sys/clock.h"

#include <stdio.h>

static const struct http_identity NOBODY = {0};

static struct outcome {
	struct http_multi *multi;
	int told;
	enum http_way way;
	int status;
	int64_t retry_after_s;
	char body[64];
	struct error error;
	bool destroy;
} outcome;

static struct loop *loop;

static int setup(void **state UNUSED)
{
	loop = loop_create();
	outcome = (struct outcome){.multi = http_multi_create(loop)};
	return 0;
}

static int teardown(void **state UNUSED)
{
	http_multi_destroy(outcome.multi);
	loop_destroy(loop);
	return 0;
}

static void on_done(void *arg UNUSED, enum http_way way, struct http_answer *answer,
		    const struct error *error)
{
	assert_true(!answer == (way != HTTP_ANSWERED) && !error == (way == HTTP_ANSWERED));
	outcome.told++;
	outcome.way = way;
	if (answer) {
		outcome.status = answer->status;
		outcome.retry_after_s = answer->retry_after_s;
		str_copy(outcome.body, sizeof outcome.body, buf_text(&answer->body));
	} else {
		outcome.error = *error;
	}
	if (outcome.destroy)
		http_multi_destroy(TAKE(outcome.multi));
}

static struct http_call *start(const struct http_identity *identity, const char *method,
			       const char *url, const char *body, int64_t timeout_ms)
{
	const struct http_request request = {
		.method = method,
		.url = url,
		.body = body,
		.body_length = body ? strlen(body) : 0,
		.content_type = body ? "application/merge-patch+json" : NULL,
		.max_answer = 16,
		.timeout_ms = timeout_ms,
	};

	return http_multi_start(outcome.multi, identity, &request, on_done, NULL);
}

static void run(const struct http_identity *identity, const char *method, const char *url,
		const char *body)
{
	outcome.told = 0;
	start(identity, method, url, body, 0);
	assert_int_equal(outcome.told, 0); /* never from inside */
	loop_run(loop);
	assert_int_equal(outcome.told, 1);
}

static void test_answers(void **state UNUSED)
{
	const struct fake_answer answers[] = {
		{.status = 200, .body = "one"},
		{.status = 429, .body = "two", .headers = "Retry-After: 7\r\n"},
		{.status = 302, .body = "", .headers = "Location: http://127.0.0.1:1/\r\n"},
		{.status = 200, .body = ""},
	};
	struct fake_server *server = fake_server_start(answers, 4);
	const struct http_identity key = {.bearer = "tok"};

	run(&key, "GET", fake_server_url(server), NULL);
	assert_int_equal(outcome.status, 200);
	assert_string_equal(outcome.body, "one");
	run(&key, "PATCH", fake_server_url(server), "{}");
	assert_int_equal(outcome.status, 429);
	assert_int_equal(outcome.retry_after_s, 7);
	run(&key, "GET", fake_server_url(server), NULL); /* a redirect is an answer */
	assert_int_equal(outcome.status, 302);
	run(&NOBODY, "DELETE", fake_server_url(server), NULL);
	assert_int_equal(outcome.retry_after_s, 0);
	const char *seen = fake_server_finish(server);
	assert_non_null(strstr(seen, "GET / HTTP/1.1\r\n"));
	assert_non_null(strstr(seen, "\r\nAuthorization: Bearer tok\r\n"));
	assert_non_null(strstr(seen, "\r\nContent-Type: application/merge-patch+json\r\n"));
	const char *last = strstr(seen, "DELETE / HTTP/1.1\r\n");
	assert_non_null(last);
	assert_null(strstr(last, "Authorization"));
	fake_server_destroy(server);
}

/* A time that is longer than a number can be is no reason to come back at once. */
static void test_retry_after(void **state UNUSED)
{
	static const struct {
		const char *header;
		int64_t at_least, at_most;
	} TABLE[] = {
		{"Retry-After: 0\r\n", 0, 0},
		{"Retry-After: 007\r\n", 7, 7},
		{"Retry-After: -5\r\n", 0, 0},
		{"Retry-After: soon\r\n", 0, 0},
		{"retry-after:  99999999999999999999\r\n", 3600, HTTP_RETRY_AFTER_MAX_S},
		{"Retry-After: 9223372036854775808\r\n", 3600, HTTP_RETRY_AFTER_MAX_S},
		{"Retry-After: 9223372036854775807\r\n", 3600, HTTP_RETRY_AFTER_MAX_S},
		{"Retry-After: 999999999999999999\r\n", 3600, HTTP_RETRY_AFTER_MAX_S},
		{"Retry-After: Fri, 31 Dec 2199 23:59:59 GMT\r\n", 3600, HTTP_RETRY_AFTER_MAX_S},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		const struct fake_answer answer = {
			.status = 429, .body = "", .headers = TABLE[i].header};
		struct fake_server *server = fake_server_start(&answer, 1);

		run(&NOBODY, "GET", fake_server_url(server), NULL);
		assert_int_equal(outcome.status, 429);
		if (outcome.retry_after_s < TABLE[i].at_least ||
		    outcome.retry_after_s > TABLE[i].at_most)
			fail_msg("%s is %lld s", TABLE[i].header, (long long)outcome.retry_after_s);
		fake_server_destroy(server);
	}
}

/* libcurl quotes what it can't read. */
static void test_no_proxy_is_quoted(void **state UNUSED)
{
	static const char *const PROXIES[] = {
		"http://bob:s3cr3t#WORD9@proxy.invalid:3128",
		"http://bob:s3cr3t@proxy.invalid:999999",
		"bob:s3cr3t#x@proxy.invalid",
		"ftp://bob:s3cr3t@proxy.invalid",
		"nonsense://bob:s3cr3t@proxy.invalid",
		"http://bob:s3cr3t@proxy.invalid:3128",
		"http://bob:s3cr3t@127.0.0.1:1",
		"http://bob:s3cr3t@@127.0.0.1:1",
		"http://bob:s3cr3t%00@127.0.0.1:1",
		"socks5h://bob:s3cr3t@127.0.0.1:1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(PROXIES); i++)
		for (int by_environment = 0; by_environment < 2; by_environment++) {
			const struct http_identity who = {.proxy = by_environment ? NULL
										  : PROXIES[i]};

			if (by_environment)
				assert_int_equal(setenv("https_proxy", PROXIES[i], 1), 0);
			run(&who, "GET", "https://192.0.2.1/", NULL);
			assert_int_equal(unsetenv("https_proxy"), 0);
			assert_true(outcome.way != HTTP_ANSWERED);
			if (strstr(outcome.error.what, "s3cr3t") ||
			    strstr(outcome.error.what, "WORD9") ||
			    strstr(outcome.error.what, "bob") ||
			    strstr(outcome.error.hint, "s3cr3t"))
				fail_msg("%s", outcome.error.what);
			if (i < 3) {
				assert_non_null(strstr(outcome.error.what,
						       "the proxy's URL can't be read"));
				assert_non_null(strstr(outcome.error.hint, "https_proxy"));
			}
		}
}

static void test_how_far_it_came(void **state UNUSED)
{
	const struct fake_answer cut = {.status = 200, .body = "cut off", .cut = true};
	const struct fake_answer large = {.status = 200, .body = "seventeen bytes.."};
	const struct fake_answer *all[] = {&cut, &large};
	const enum http_way wanted[] = {HTTP_BROKEN, HTTP_HOPELESS};

	for (size_t i = 0; i < 2; i++) {
		struct fake_server *server = fake_server_start(all[i], 1);

		run(&NOBODY, "GET", fake_server_url(server), NULL);
		assert_int_equal(outcome.way, wanted[i]);
		fake_server_destroy(server);
	}
	assert_int_equal(outcome.error.code, ERROR_RESOURCES_EXHAUSTED);
	run(&NOBODY, "POST", "http://127.0.0.1:1/", "{}");
	assert_int_equal(outcome.way, HTTP_UNSENT);
	assert_int_equal(outcome.error.code, ERROR_UNAVAILABLE);
}

static void test_what_never_leaves(void **state UNUSED)
{
	static const struct {
		struct http_identity identity;
		const char *url, *message;
	} TABLE[] = {
		{{.bearer = "s3cr3t"}, "http://192.0.2.1/", "unencrypted"},
		{{.https_only = true}, "http://127.0.0.1/", "is not https"},
		{{0}, "ftp://127.0.0.1/", "neither http nor https"},
		{{0}, "nonsense://", "nonsense"},
		{{0}, "https://user@127.0.0.1/", "user name"},
		{{.server_name = "a b"}, "https://127.0.0.1:1/", "server name 'a b'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		run(&TABLE[i].identity, "GET", TABLE[i].url, NULL);
		assert_int_equal(outcome.way, HTTP_HOPELESS);
		if (!strstr(outcome.error.what, TABLE[i].message))
			fail_msg("\"%s\" lacks \"%s\"", outcome.error.what, TABLE[i].message);
		assert_null(strstr(outcome.error.what, "s3cr3t"));
	}
}

static void test_certificates_that_are_none(void **state UNUSED)
{
	const struct http_identity none = {.certificate_pem = "no", .key_pem = "PEM s3cr3t"};

	run(&none, "GET", "https://127.0.0.1:1/", NULL);
	/* Nobody listens there, or the pair can't be used: in either case nothing has left. */
	assert_true(outcome.way == HTTP_CREDENTIALS || outcome.way == HTTP_UNSENT);
	assert_null(strstr(outcome.error.what, "s3cr3t"));
}

static void test_time_runs_out(void **state UNUSED)
{
	const struct fake_answer slow = {.status = 200, .body = "late", .delay_ms = 400};
	struct fake_server *server = fake_server_start(&slow, 1);
	struct mono begun = clock_mono();

	start(&NOBODY, "GET", fake_server_url(server), NULL, 100);
	loop_run(loop);
	assert_int_equal(outcome.way, HTTP_BROKEN);
	assert_in_range(mono_until(begun, clock_mono()), 100, 350);
	fake_server_destroy(server);
}

static void test_ends_at_any_moment(void **state UNUSED)
{
	const struct fake_answer slow = {.status = 200, .body = "late", .delay_ms = 50};
	struct fake_server *server = fake_server_start(&slow, 1);

	http_call_cancel(start(&NOBODY, "GET", fake_server_url(server), NULL, 0));
	http_call_cancel(start(&NOBODY, "GET", "bad", NULL, 0));
	loop_run(loop);
	assert_int_equal(outcome.told, 0);
	outcome.destroy = true;
	for (int i = 0; i < HTTP_MULTI_CONNECTIONS + 2; i++)
		start(&NOBODY, "GET", fake_server_url(server), NULL, 0);
	loop_run(loop);
	assert_int_equal(outcome.told, 1); /* the first one's callback ended the others */
	assert_null(outcome.multi);
	fake_server_destroy(server);
}

/* --- streams --- */

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static struct stream {
	struct buf data;
	int begun;
	const char *stop_at; /* what has come: then `end` */
	enum {
		STOP,
		CANCEL,
		DESTROY
	} end;
	struct http_call *call;
} stream;

static bool on_data(void *arg UNUSED, const char *data, size_t length, struct error *error)
{
	assert_int_equal(outcome.told, 0);
	stream.begun += length == 0;
	assert_int_equal(stream.begun, 1); /* before all bytes, once */
	buf_add(&stream.data, data, length);
	if (!stream.stop_at || !str_equal(buf_text(&stream.data), stream.stop_at))
		return true;
	if (stream.end == CANCEL)
		http_call_cancel(stream.call);
	if (stream.end == DESTROY)
		http_multi_destroy(TAKE(outcome.multi));
	return error_set(error, ERROR_INVALID_INPUT, "enough");
}

static void start_stream(const char *url, int64_t timeout_ms)
{
	const struct http_request request = {
		.method = "GET", .url = url, .max_answer = 16, .timeout_ms = timeout_ms};

	stream.call = http_multi_stream(outcome.multi, &NOBODY, &request, on_data, on_done, NULL);
}

static void run_stream(const struct fake_answer *answer, const char *stop_at, int end)
{
	struct fake_server *server = fake_server_start(answer, 1);

	buf_clear(&stream.data);
	stream.begun = outcome.told = 0;
	stream.stop_at = stop_at;
	stream.end = end;
	start_stream(fake_server_url(server), 0);
	assert_int_equal(stream.begun + outcome.told, 0); /* never from inside */
	loop_run(loop);
	fake_server_destroy(server);
}

static int teardown_stream(void **state)
{
	buf_deinit(&stream.data);
	stream = (struct stream){0};
	return teardown(state);
}

static void test_a_stream_comes_to_its_end(void **state UNUSED)
{
	const struct fake_answer all = {.raw = CHUNKED "14\r\nmore than 16 bytes..\r\n"
						       "1\r\n!\r\n0\r\n\r\n"};
	const struct fake_answer cut = {.raw = CHUNKED "4\r\nhalf\r\n"};
	const struct fake_answer refused = {
		.status = 403, .body = "no", .headers = "Retry-After: 7\r\n"};
	const struct fake_answer large = {.status = 500, .body = "seventeen bytes.."};

	run_stream(&all, NULL, STOP);
	assert_int_equal(outcome.told, 1);
	assert_int_equal(outcome.way, HTTP_ANSWERED);
	assert_int_equal(outcome.status, 200);
	assert_string_equal(outcome.body, "");
	assert_string_equal(buf_text(&stream.data), "more than 16 bytes..!");
	run_stream(&cut, NULL, STOP);
	assert_int_equal(outcome.told, 1);
	assert_int_equal(outcome.way, HTTP_BROKEN);
	assert_string_equal(buf_text(&stream.data), "half");
	run_stream(&refused, NULL, STOP);
	assert_int_equal(outcome.way, HTTP_ANSWERED);
	assert_int_equal(outcome.status, 403);
	assert_int_equal(outcome.retry_after_s, 7);
	assert_string_equal(outcome.body, "no");
	assert_int_equal(stream.begun, 0);
	run_stream(&large, NULL, STOP);
	assert_int_equal(outcome.way, HTTP_HOPELESS);
	assert_int_equal(outcome.error.code, ERROR_RESOURCES_EXHAUSTED);
}

/* The server says nothing after it: so what has come is handed on before the end. */
static void test_a_stream_is_ended(void **state UNUSED)
{
	const struct fake_answer held = {.raw = CHUNKED "4\r\nhalf\r\n", .hold = true};
	const struct fake_answer silent = {.raw = CHUNKED, .hold = true};

	run_stream(&held, "half", STOP);
	assert_int_equal(outcome.told, 1);
	assert_int_equal(outcome.way, HTTP_BROKEN);
	assert_string_equal(outcome.error.what, "enough");
	run_stream(&silent, "", CANCEL); /* when it has begun */
	assert_int_equal(outcome.told, 0);
	assert_int_equal(stream.begun, 1);
	run_stream(&held, "half", CANCEL);
	assert_int_equal(outcome.told, 0);
	run_stream(&held, "half", DESTROY);
	assert_int_equal(outcome.told, 0);
	assert_null(outcome.multi);
}

static void test_a_stream_has_a_deadline(void **state UNUSED)
{
	const struct fake_answer silent = {.raw = CHUNKED, .hold = true};
	struct fake_server *server = fake_server_start(&silent, 1);

	start_stream(fake_server_url(server), 100);
	loop_run(loop);
	assert_int_equal(stream.begun, 1);
	assert_int_equal(outcome.told, 1);
	assert_int_equal(outcome.way, HTTP_BROKEN);
	outcome.told = 0;
	start_stream("nonsense://", 100);
	assert_int_equal(outcome.told, 0);
	loop_run(loop);
	assert_int_equal(outcome.told, 1);
	assert_int_equal(outcome.way, HTTP_HOPELESS);
	fake_server_destroy(server);
}

static void test_streams_take_nobodys_place(void **state UNUSED)
{
	const struct fake_answer silent = {.raw = CHUNKED, .hold = true};
	const struct fake_answer quick = {.status = 200, .body = "quick"};
	struct fake_server *slow = fake_server_start(&silent, 1);
	struct fake_server *server = fake_server_start(&quick, 1);

	for (int i = 0; i < HTTP_MULTI_CONNECTIONS; i++)
		start_stream(fake_server_url(slow), 10000);
	outcome.destroy = true; /* once that one is told */
	start(&NOBODY, "GET", fake_server_url(server), NULL, 5000);
	loop_run(loop);
	assert_int_equal(outcome.told, 1);
	assert_string_equal(outcome.body, "quick");
	fake_server_destroy(slow);
	fake_server_destroy(server);
}

/* The timer of our end of the connection to that port, as Linux tells it: 2 is the keepalive's. */
static bool is_kept_alive(unsigned port, unsigned *ret_ticks)
{
	FILE *file = fopen("/proc/self/net/tcp", "re");
	char line[512];
	bool found = false;

	assert_non_null(file);
	while (!found && fgets(line, sizeof line, file)) {
		unsigned remote, state, timer;

		found = sscanf(line, " %*u: %*x:%*x %*x:%x %x %*x:%*x %x:%x", &remote, &state,
			       &timer, ret_ticks) == 4 &&
			remote == port && state == 1 && timer == 2;
	}
	fclose(file);
	return found;
}

static bool on_begun(void *arg, const char *data UNUSED, size_t length UNUSED, struct error *error)
{
	unsigned port, ticks = 0;

	assert_int_equal(sscanf(arg, "http://127.0.0.1:%u", &port), 1);
	assert_true(is_kept_alive(port, &ticks));
	assert_in_range(ticks, 1, HTTP_MULTI_SILENCE_S * 100);
	return error_set(error, ERROR_INTERNAL, "seen");
}

static void test_a_silent_server_is_asked(void **state UNUSED)
{
	const struct fake_answer silent = {.raw = CHUNKED, .hold = true};
	struct fake_server *server = fake_server_start(&silent, 1);
	const struct http_request request = {.method = "GET", .url = fake_server_url(server)};

	http_multi_stream(outcome.multi, &NOBODY, &request, on_begun, on_done, (void *)request.url);
	loop_run(loop);
	assert_string_equal(outcome.error.what, "seen");
	fake_server_destroy(server);
}

#define STREAM(name) cmocka_unit_test_setup_teardown(name, setup, teardown_stream)
#define TEST(name)   cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_answers),
		TEST(test_retry_after),
		TEST(test_no_proxy_is_quoted),
		TEST(test_how_far_it_came),
		TEST(test_what_never_leaves),
		TEST(test_certificates_that_are_none),
		TEST(test_time_runs_out),
		TEST(test_ends_at_any_moment),
		STREAM(test_a_stream_comes_to_its_end),
		STREAM(test_a_stream_is_ended),
		STREAM(test_a_stream_has_a_deadline),
		STREAM(test_streams_take_nobodys_place),
		STREAM(test_a_silent_server_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
