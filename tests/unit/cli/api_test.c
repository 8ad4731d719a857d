#include "cli/api.h"
#include "fake_server.h"
#include "lib/test.h"

#include <stdio.h>

static struct context context_for(const char *url)
{
	struct context context = {.key = "bck_secret"};

	context.values[CONTEXT_API] = (struct context_value){url, "--api"};
	return context;
}

static void test_list_follows_pages(void **state)
{
	const struct fake_answer answers[] = {
		{.status = 200, .body = "{\"items\":[{\"id\":\"a\"}],\"nextCursor\":\"x+/=\"}"},
		{.status = 200, .body = "{\"items\":[],\"nextCursor\":\"y\"}"},
		{.status = 200, .body = "{\"items\":[{\"id\":\"b\"},{\"id\":\"c\"}]}"},
	};
	struct fake_server *server = fake_server_start(answers, 3);
	struct context context = context_for(fake_server_url(server));
	struct api *api = api_create(&context);
	CLEANUP(tree) json_t *items = NULL;
	struct error error = {0};

	(void)state;
	expect_ok(api_list(api, "/v1/pools", "state=active", &items, &error), &error);
	assert_int_equal(json_array_size(items), 3);
	const char *seen = fake_server_finish(server);
	assert_non_null(strstr(seen, "GET /v1/pools?state=active&limit=1000 HTTP"));
	assert_non_null(strstr(seen, "&cursor=x%2B%2F%3D HTTP"));
	assert_non_null(strstr(seen, "&cursor=y HTTP"));
	api_destroy(api);
	fake_server_destroy(server);
}

/* What the API says to whoever writes HTTP helps nobody who types commands. */
static void test_a_key_that_does_not_open(void **state)
{
	static const char body[] = "{\"error\":{\"code\":\"UNAUTHENTICATED\",\"message\":\"no\","
				   "\"hint\":\"Send 'Authorization: Bearer bck_…'.\"}}";
	struct error error = {0};

	(void)state;
	expect_error(api_error_parse(401, body, strlen(body), &error), &error,
		     ERROR_UNAUTHENTICATED, "no");
	assert_non_null(strstr(error.hint, "--key-file"));
	assert_null(strstr(error.hint, "Bearer"));
}

static void test_errors_of_the_api(void **state)
{
	static const struct {
		int status;
		const char *body;
		enum error_code code;
		const char *what;
	} cases[] = {
		{409,
		 "{\"error\":{\"code\":\"RESOURCES_EXHAUSTED\",\"message\":\"16 GPUs on one "
		 "node\",\"requestId\":\"req_1\"}}",
		 ERROR_RESOURCES_EXHAUSTED, "16 GPUs on one node"},
		{400,
		 "{\"error\":{\"code\":\"INVALID_INPUT\",\"message\":\"devices[0].count: "
		 "0\",\"field\":\"devices[0].count\"}}",
		 ERROR_INVALID_INPUT, "devices[0].count: 0"},
		{403, "{\"error\":{\"code\":\"FORBIDDEN\",\"message\":\"no\\u001b[2J\"}}",
		 ERROR_FORBIDDEN, "no?[2J"},
		{500, "<html>", ERROR_INTERNAL, "the server answered 500"},
		{503, "", ERROR_UNAVAILABLE, "the server answered 503"},
		{404, "{\"error\":\"x\"}", ERROR_UNAVAILABLE, "the server answered 404"},
		{409, "{\"error\":{\"code\":\"NEW_CODE\",\"message\":\"later\"}}", ERROR_CONFLICT,
		 "later"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error error = {0};
		expect_error(api_error_parse(cases[i].status, cases[i].body, strlen(cases[i].body),
					     &error),
			     &error, cases[i].code, cases[i].what);
	}
}

static void test_answers_that_are_no_json(void **state)
{
	const struct fake_answer answers[] = {{.status = 200, .body = "<html>"},
					      {.status = 200, .body = "{\"items\":7}"}};
	struct fake_server *server = fake_server_start(answers, 2);
	struct context context = context_for(fake_server_url(server));
	struct api *api = api_create(&context);
	json_t *answer = NULL;
	struct error error = {0};

	(void)state;
	expect_error(api_call(api, "GET", "/v1/whoami", NULL, &answer, &error), &error,
		     ERROR_UNAVAILABLE, "/v1/whoami' answered");
	expect_error(api_list(api, "/v1/pools", NULL, &answer, &error), &error, ERROR_UNAVAILABLE,
		     "has no items");
	assert_null(answer);
	api_destroy(api);
	fake_server_destroy(server);
}

/* A proxy's word is none about what became of the call, whatever its status. */
static void test_whose_refusal_it_is(void **state)
{
	const struct fake_answer answers[] = {
		{.status = 403, .body = "{\"error\":{\"code\":\"FORBIDDEN\",\"message\":\"no\"}}"},
		{.status = 403, .body = "<html>"},
		{.status = 429, .body = ""},
		{.status = 413, .body = "{\"error\":{\"code\":413,\"message\":\"no\"}}"},
		{.status = 403,
		 .body = "{\"error\":{\"code\":\"AccessDenied\",\"message\":\"no\"}}"},
		{.status = 404, .body = "{\"error\":{\"code\":\"NOT_FOUND\",\"message\":\"no\"}}"},
		{.status = 200, .body = "{}"},
	};
	static const bool own[ARRAY_SIZE(answers)] = {[0] = true, [5] = true};
	struct fake_server *server = fake_server_start(answers, ARRAY_SIZE(answers));
	struct context context = context_for(fake_server_url(server));
	struct api *api = api_create(&context);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		json_t *answer = NULL;
		struct error error;

		assert_int_equal(api_call(api, "GET", "/v1/whoami", NULL, &answer, &error),
				 answers[i].status == 200);
		assert_int_equal(api_was_refused(api), own[i]);
		json_decref(answer);
	}
	api_destroy(api);
	fake_server_destroy(server);
}

static bool on_event(void *arg, const json_t *event, struct error *error)
{
	struct buf *heard = arg;

	(void)error;
	buf_printf(heard, "%lld ", (long long)json_integer_value(json_object_get(event, "seq")));
	return true;
}

static void test_events_are_followed_from_a_number(void **state)
{
	const struct fake_answer answers[] = {
		{.status = 200, .body = "retry: 1\n\nid: 8\ndata: {\"seq\":8}\n\n: x\n\n"},
		{.status = 401, .body = "{\"error\":{\"code\":\"UNAUTHENTICATED\"}}"},
		{.status = 200, .body = "data: {\n\n"},
	};
	struct fake_server *server = fake_server_start(answers, ARRAY_SIZE(answers));
	struct context context = context_for(fake_server_url(server));
	struct api *api = api_create(&context);
	CLEANUP(buf) struct buf heard = {0};
	struct error error = {0};

	(void)state;
	expect_ok(api_follow(api, 7, on_event, &heard, &error), &error);
	assert_string_equal(buf_text(&heard), "8 ");
	expect_error(api_follow(api, 8, on_event, &heard, &error), &error, ERROR_UNAUTHENTICATED,
		     "401");
	expect_error(api_follow(api, 8, on_event, &heard, &error), &error, ERROR_UNAVAILABLE,
		     "event");
	assert_non_null(strstr(fake_server_finish(server), "Last-Event-ID: 7\r\n"));
	api_destroy(api);
	fake_server_destroy(server);
}

/* The file that a key came from is what can be put right. */
static void test_a_key_that_is_not_known(void **state)
{
	const struct fake_answer answers[] = {
		{.status = 401, .body = "{\"error\":{\"code\":\"UNAUTHENTICATED\"}}"}};
	struct fake_server *server = fake_server_start(answers, ARRAY_SIZE(answers));
	struct context context = context_for(fake_server_url(server));
	struct api *api;
	json_t *answer = NULL;
	struct error error = {0};

	(void)state;
	context.key = "bck_old";
	context.values[CONTEXT_KEY_FILE] = (struct context_value){"old.key", "--key-file"};
	api = api_create(&context);
	expect_error(api_call(api, "GET", "/v1/whoami", NULL, &answer, &error), &error,
		     ERROR_UNAUTHENTICATED, "401");
	assert_non_null(strstr(error.hint, "'old.key' (from --key-file)"));
	assert_null(strstr(error.hint, "bck_"));
	api_destroy(api);
	fake_server_destroy(server);
}

static void test_an_address_without_a_scheme(void **state)
{
	struct context context = context_for("127.0.0.1:1");
	struct api *api = api_create(&context);
	json_t *answer = NULL;
	struct error error = {0};

	(void)state;
	expect_error(api_call(api, "GET", "/v1/whoami", NULL, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "127.0.0.1:1/v1/whoami");
	assert_non_null(strstr(error.hint, "http://127.0.0.1:1 or https://127.0.0.1:1"));
	api_destroy(api);
}

static void test_nobody_there(void **state)
{
	struct context context = context_for("http://127.0.0.1:1/");
	struct api *api = api_create(&context);
	json_t *answer = NULL;
	struct error error = {0};

	(void)state;
	expect_error(api_call(api, "GET", "/v1/whoami", NULL, &answer, &error), &error,
		     ERROR_UNAVAILABLE, "http://127.0.0.1:1/v1/whoami");
	assert_non_null(strstr(error.hint, "--api"));
	assert_null(strstr(error.what, "bck_"));
	api_destroy(api);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list_follows_pages),
		cmocka_unit_test(test_a_key_that_does_not_open),
		cmocka_unit_test(test_errors_of_the_api),
		cmocka_unit_test(test_answers_that_are_no_json),
		cmocka_unit_test(test_whose_refusal_it_is),
		cmocka_unit_test(test_events_are_followed_from_a_number),
		cmocka_unit_test(test_a_key_that_is_not_known),
		cmocka_unit_test(test_an_address_without_a_scheme),
		cmocka_unit_test(test_nobody_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
