#include "fake_server.h"
#include "http/client.h"
#include "lib/test.h"

#include <stdio.h>
#include <unistd.h>

#define GET(path_url) (&(struct http_request){.method = "GET", .url = (path_url)})

static const struct fake_answer HELLO = {
	.status = 200, .body = "{\"hello\":1}", .headers = "X-Request-Id: req_1\r\n"};

static void test_get_and_post(void **state)
{
	const struct fake_answer answers[] = {HELLO, {.status = 409, .body = "no"}};
	struct fake_server *server = fake_server_start(answers, 2);
	struct http_client *client = http_client_create(&(struct http_options){.bearer = "bck_x"});
	CLEANUP(http_answer) struct http_answer answer = {0};
	struct error error = {0};
	char url[128];

	(void)state;
	snprintf(url, sizeof url, "%s/v1/pools", fake_server_url(server));
	expect_ok(http_request(client, GET(url), &answer, &error), &error);
	assert_int_equal(answer.status, 200);
	assert_string_equal(buf_text(&answer.body), "{\"hello\":1}");
	assert_string_equal(answer.request_id, "req_1");

	struct http_request post = {.method = "POST", .url = url, .body = "{}", .body_length = 2};
	expect_ok(http_request(client, &post, &answer, &error), &error);
	assert_int_equal(answer.status, 409);
	assert_string_equal(buf_text(&answer.body), "no");
	assert_string_equal(answer.request_id, "");

	const char *seen = fake_server_finish(server);
	assert_non_null(strstr(seen, "GET /v1/pools HTTP/1.1\r\n"));
	assert_non_null(strstr(seen, "Authorization: Bearer bck_x\r\n"));
	const char *second = strstr(seen, "POST /v1/pools HTTP/1.1\r\n");
	assert_non_null(second);
	assert_non_null(strstr(second, "Content-Type: application/json\r\n"));
	assert_true(str_ends(second, "\r\n\r\n{}"));
	http_client_destroy(client);
	fake_server_destroy(server);
}

static void test_patch_and_empty_post(void **state)
{
	struct fake_server *server = fake_server_start(&HELLO, 1);
	struct http_client *client = http_client_create(&(struct http_options){0});
	CLEANUP(http_answer) struct http_answer answer = {0};
	struct http_request request = {
		.method = "PATCH", .url = fake_server_url(server), .body = "{}", .body_length = 2};
	struct error error = {0};

	(void)state;
	expect_ok(http_request(client, &request, &answer, &error), &error);
	request = (struct http_request){.method = "POST", .url = fake_server_url(server)};
	expect_ok(http_request(client, &request, &answer, &error), &error);
	const char *seen = fake_server_finish(server);
	assert_non_null(strstr(seen, "PATCH / HTTP/1.1"));
	assert_non_null(strstr(seen, "POST / HTTP/1.1"));
	assert_non_null(strstr(strstr(seen, "POST /"), "Content-Length: 0\r\n"));
	assert_null(strstr(seen, "Authorization"));
	assert_null(strstr(strstr(seen, "POST /"), "Content-Type"));
	http_client_destroy(client);
	fake_server_destroy(server);
}

static void test_bounds(void **state)
{
	struct fake_server *server = fake_server_start(&HELLO, 1);
	CLEANUP(http_answer) struct http_answer answer = {0};
	const struct http_options options = {0};
	struct error error = {0};

	(void)state;
	expect_ok(http_get(&options, fake_server_url(server), 11, 0, &answer, &error), &error);
	expect_error(http_get(&options, fake_server_url(server), 10, 0, &answer, &error), &error,
		     ERROR_RESOURCES_EXHAUSTED, "larger than 10 bytes");
	assert_string_equal(buf_text(&answer.body), "{\"hello\":1}"); /* untouched by a failure */
	fake_server_destroy(server);
}

static void test_redirects(void **state)
{
	const struct fake_answer within[] = {
		{.status = 302, .body = "", .headers = "Location: /v2\r\n"}, HELLO};
	const struct fake_answer away = {
		.status = 302, .body = "", .headers = "Location: http://127.0.0.2:1/steal\r\n"};
	const struct fake_answer circle = {.status = 302, .body = "", .headers = "Location: /\r\n"};
	const struct fake_answer *all[] = {within, &away, &circle};
	struct fake_server *servers[3];
	struct http_client *client = http_client_create(&(struct http_options){.bearer = "bck_x"});
	CLEANUP(http_answer) struct http_answer answer = {0};
	struct error error = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		servers[i] = fake_server_start(all[i], i == 0 ? 2 : 1);
	expect_ok(http_request(client, GET(fake_server_url(servers[0])), &answer, &error), &error);
	assert_int_equal(answer.status, 200);
	assert_non_null(strstr(fake_server_finish(servers[0]), "GET /v2 "));
	expect_error(http_request(client, GET(fake_server_url(servers[1])), &answer, &error),
		     &error, ERROR_FORBIDDEN, "another host, 'http://127.0.0.2:1/steal'");
	expect_error(http_request(client, GET(fake_server_url(servers[2])), &answer, &error),
		     &error, ERROR_UNAVAILABLE, "more than 3 times");
	struct http_request post = {.method = "POST",
				    .url = fake_server_url(servers[2]),
				    .body = "{}",
				    .body_length = 2};
	expect_error(http_request(client, &post, &answer, &error), &error, ERROR_UNAVAILABLE,
		     "redirects a POST");
	for (size_t i = 0; i < 3; i++)
		fake_server_destroy(servers[i]);
	http_client_destroy(client);
}

static void test_unreachable(void **state)
{
	const struct fake_answer slow = {.status = 200, .body = "late", .delay_ms = 300};
	const struct fake_answer cut = {.status = 200, .body = "half", .cut = true};
	struct fake_server *slow_server = fake_server_start(&slow, 1);
	struct fake_server *cut_server = fake_server_start(&cut, 1);
	CLEANUP(http_answer) struct http_answer answer = {0};
	const struct http_options options = {0};
	struct error error = {0};

	(void)state;
	expect_error(http_get(&options, fake_server_url(slow_server), 0, 50, &answer, &error),
		     &error, ERROR_UNAVAILABLE, "timed out");
	expect_error(http_get(&options, fake_server_url(cut_server), 0, 0, &answer, &error), &error,
		     ERROR_UNAVAILABLE, "reach 'http://127.0.0.1:");
	expect_error(http_get(&options, "http://127.0.0.1:1/", 0, 0, &answer, &error), &error,
		     ERROR_UNAVAILABLE, "127.0.0.1");
	fake_server_destroy(slow_server);
	fake_server_destroy(cut_server);
}

static void test_addresses_refused(void **state)
{
	const struct http_options plain = {0}, with_key = {.bearer = "bck_x"},
				  https = {.https_only = true};
	const struct {
		const char *url, *text;
		const struct http_options *options;
	} cases[] = {
		{"127.0.0.1", "URL '127.0.0.1'", &plain},
		{"ftp://127.0.0.1/", "neither http nor https", &plain},
		{"file:///etc/passwd", "URL", &plain},
		{"http://me:secret@127.0.0.1/", "user name", &plain},
		{"http:// /", "URL", &plain},
		{"http://example.com/", "would carry the key unencrypted", &with_key},
		{"http://127.0.0.1.example.com/", "would carry the key unencrypted", &with_key},
		{"http://127.0.0.1:1/", "is not https", &https},
	};
	CLEANUP(http_answer) struct http_answer answer = {0};
	CLEANUP(buf) struct buf huge = {0};
	struct error error = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		error = (struct error){0};
		expect_error(http_get(cases[i].options, cases[i].url, 0, 100, &answer, &error),
			     &error, ERROR_INVALID_INPUT, cases[i].text);
		assert_null(strstr(error.what, "secret"));
	}
	buf_add_text(&huge, "http://127.0.0.1/");
	memset(buf_extend(&huge, HTTP_URL_SIZE), 'a', HTTP_URL_SIZE);
	buf_add_char(&huge, 'a');
	expect_error(http_get(&plain, buf_text(&huge), 0, 100, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "longer than");
}

static void test_bad_authority_file(void **state)
{
	const struct http_options options = {.ca_file = "/nonexistent/ca.pem"};
	struct fake_server *server = fake_server_start(&HELLO, 1);
	CLEANUP(http_answer) struct http_answer answer = {0};
	struct error error = {0};
	char url[128];

	(void)state;
	snprintf(url, sizeof url, "https%s", fake_server_url(server) + 4);
	expect_error(http_get(&options, url, 0, 2000, &answer, &error), &error,
		     ERROR_INVALID_CONFIG, "/nonexistent/ca.pem");
	fake_server_destroy(server);
}

/* What isn't HTTP, or is HTTP of thirty years ago, is nobody to speak to. */
static void test_garbage_is_no_answer(void **state UNUSED)
{
	static const char *const GARBAGE[] = {"hello\n", "<html>\n", "SSH-2.0-x\r\n", ""};

	for (size_t i = 0; i < ARRAY_SIZE(GARBAGE); i++) {
		const struct fake_answer raw = {.raw = GARBAGE[i]};
		struct fake_server *server = fake_server_start(&raw, 1);
		CLEANUP(http_answer) struct http_answer answer = {0};
		struct error error;

		expect_error(http_get(&(struct http_options){0}, fake_server_url(server), 0, 0,
				      &answer, &error),
			     &error, ERROR_UNAVAILABLE, "reach");
		fake_server_destroy(server);
	}
}

/* --- streams --- */

struct taken {
	struct buf text;
	bool enough;
};

static bool take(void *arg, const char *data, size_t length, struct error *error)
{
	struct taken *taken = arg;

	buf_add(&taken->text, data, length);
	return !taken->enough || error_set(error, ERROR_INVALID_STATE, "enough");
}

static void test_a_stream_is_given_as_it_comes(void **state UNUSED)
{
	const struct fake_answer answers[] = {{.status = 200, .body = "data: a\n\n"},
					      {.status = 401, .body = "no"},
					      {.status = 200, .body = "data: b\n\n"}};
	struct fake_server *server = fake_server_start(answers, ARRAY_SIZE(answers));
	struct http_client *client = http_client_create(&(struct http_options){0});
	CLEANUP(http_answer) struct http_answer answer = {0};
	struct taken taken = {0};
	struct http_request request = {.method = "GET",
				       .url = fake_server_url(server),
				       .take = take,
				       .arg = &taken,
				       .accept = "text/event-stream",
				       .last_event_id = "41"};
	struct error error;

	expect_ok(http_request(client, &request, &answer, &error), &error);
	assert_int_equal(answer.status, 200);
	assert_int_equal(answer.body.length, 0);
	assert_string_equal(buf_text(&taken.text), "data: a\n\n");
	expect_ok(http_request(client, &request, &answer, &error), &error);
	assert_int_equal(answer.status, 401);
	assert_string_equal(buf_text(&answer.body), "no"); /* what isn't the stream is collected */
	taken.enough = true;
	expect_error(http_request(client, &request, &answer, &error), &error, ERROR_INVALID_STATE,
		     "enough");
	const char *seen = fake_server_finish(server);
	assert_non_null(strstr(seen, "Accept: text/event-stream\r\n"));
	assert_non_null(strstr(seen, "Last-Event-ID: 41\r\n"));
	buf_deinit(&taken.text);
	http_client_destroy(client);
	fake_server_destroy(server);
}

static void test_a_stream_may_not_fall_silent(void **state UNUSED)
{
	const struct fake_answer slow = {.status = 200, .body = "x", .delay_ms = 1500};
	struct fake_server *server = fake_server_start(&slow, 1);
	struct http_client *client = http_client_create(&(struct http_options){0});
	CLEANUP(http_answer) struct http_answer answer = {0};
	struct taken taken = {0};
	struct http_request request = {.method = "GET",
				       .url = fake_server_url(server),
				       .take = take,
				       .arg = &taken,
				       .timeout_ms = 500};
	struct error error;

	expect_error(http_request(client, &request, &answer, &error), &error, ERROR_UNAVAILABLE,
		     "fell silent");
	http_client_destroy(client);
	fake_server_destroy(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get_and_post),
		cmocka_unit_test(test_patch_and_empty_post),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_redirects),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_addresses_refused),
		cmocka_unit_test(test_bad_authority_file),
		cmocka_unit_test(test_garbage_is_no_answer),
		cmocka_unit_test(test_a_stream_is_given_as_it_comes),
		cmocka_unit_test(test_a_stream_may_not_fall_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
