#include "serve/router.h"

#include "fake_control.h"
#include "lib/test.h"
#include "serve/routes.h"
#include "text/tree.h"

#include <stdio.h>

static struct router router = {.well_known = "{\"version\":1}\n"};

struct answer {
	struct response response;
	json_t *json; /* NULL when the body is none */
};

static void answer_cleanup(struct answer *answer)
{
	response_deinit(&answer->response);
	json_decref(answer->json);
}

static struct answer ask(const char *method, const char *target, const char *body)
{
	struct control control = {0};
	struct request request = {
		.method = method,
		.target = target,
		.authorization = "Bearer " FAKE_KEY,
		.content_type = "application/json",
		.body = body,
		.body_length = body ? strlen(body) : 0,
		.id = "req_1",
	};
	struct answer answer = {0};

	router_answer(&router, &control, &request, &answer.response);
	answer.json = json_loads(buf_text(&answer.response.body), 0, NULL);
	return answer;
}

static const char *error_text(const struct answer *answer, const char *name)
{
	const json_t *error = json_object_get(answer->json, "error");
	const char *text = json_string_value(json_object_get(error, name));

	return text ? text : "";
}

static int reset(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

/* Each row of the table is reached by what it says of itself, and by nothing else. */
static void test_every_route(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROUTES_COUNT; i++) {
		const struct route *route = &ROUTES[i];
		CLEANUP(answer) struct answer answer = {0};
		char target[128];
		const char *id = strstr(route->path, "{id}");

		if (id)
			snprintf(target, sizeof target, "%.*sx_1%s", (int)(id - route->path),
				 route->path, id + strlen("{id}"));
		else
			snprintf(target, sizeof target, "%s", route->path);
		answer = ask(route->method, target, str_equal(route->method, "GET") ? NULL : "{}");
		assert_int_equal(answer.response.status, 200);
		assert_int_equal(fake.calls, i + 1);
		assert_non_null(strstr(fake.last_call, "\"request\":\"req_1\""));
		assert_int_equal(strstr(fake.last_call, "\"id\":\"x_1\"") != NULL, id != NULL);
		for (size_t j = 0; j < i; j++)
			assert_false(str_equal(route->method, ROUTES[j].method) &&
				     str_equal(route->path, ROUTES[j].path));
	}
}

/* proves: POOL-4 */
static void test_bearer(void **state)
{
	static const struct {
		const char *authorization;
		int status;
	} cases[] = {
		{NULL, 401},
		{"", 401},
		{FAKE_KEY, 401},
		{"Basic " FAKE_KEY, 401},
		{"Bearer", 401},
		{"Bearer ", 401},
		{"Bearer " FAKE_KEY "x", 401},
		{"Bearer " FAKE_KEY, 200},
		{"bearer   " FAKE_KEY, 200},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct control control = {0};
		/* a body that would be refused: who isn't known hears of nothing else */
		struct request request = {
			.method = "GET",
			.target = cases[i].status == 200 ? "/v1/pools" : "/v1/pools?nonsense=1",
			.authorization = cases[i].authorization,
			.id = "req_1",
		};
		CLEANUP(answer) struct answer answer = {0};

		router_answer(&router, &control, &request, &answer.response);
		assert_int_equal(answer.response.status, cases[i].status);
		assert_int_equal(fake.calls, i < 7 ? 0 : i - 6);
	}
}

/* proves: POOL-25 */
static void test_error_codes(void **state)
{
	static const struct {
		enum error_code code;
		const char *name;
		int status;
	} cases[] = {
		{ERROR_INVALID_INPUT, "INVALID_INPUT", 400},
		{ERROR_INVALID_CONFIG, "INVALID_CONFIG", 400},
		{ERROR_UNAUTHENTICATED, "UNAUTHENTICATED", 401},
		{ERROR_FORBIDDEN, "FORBIDDEN", 403},
		{ERROR_NOT_FOUND, "NOT_FOUND", 404},
		{ERROR_CONFLICT, "CONFLICT", 409},
		{ERROR_INVALID_STATE, "INVALID_STATE", 409},
		{ERROR_RESOURCES_EXHAUSTED, "RESOURCES_EXHAUSTED", 409},
		{ERROR_RATE_LIMITED, "RATE_LIMITED", 429},
		{ERROR_UNAVAILABLE, "UNAVAILABLE", 503},
		{ERROR_INTERNAL, "INTERNAL", 500},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(answer) struct answer answer = {0};

		fake.call_code = cases[i].code;
		fake.call_field = "devices[0].count";
		answer = ask("POST", "/v1/reservations", "{}");
		assert_int_equal(answer.response.status, cases[i].status);
		assert_string_equal(error_text(&answer, "code"), cases[i].name);
		assert_string_equal(error_text(&answer, "field"), "devices[0].count");
		assert_string_equal(error_text(&answer, "requestId"), "req_1");
		assert_string_not_equal(error_text(&answer, "message"), "");
		assert_int_equal(answer.response.retry_after_s > 0,
				 cases[i].status == 429 || cases[i].status == 503);
	}
	fake.call_field = NULL;
	CLEANUP(answer) struct answer answer = ask("POST", "/v1/reservations", "{}");
	assert_null(json_object_get(json_object_get(answer.json, "error"), "field"));
}

struct bad {
	const char *method, *target, *body;
	int status;
	const char *message, *field;
};

static void test_bad_requests(void **state)
{
	static const struct bad cases[] = {
		{"GET", "/", NULL, 404, "nothing at '/'", ""},
		{"GET", "/v1/pool", NULL, 404, "nothing at", ""},
		{"GET", "/v1/pools/", NULL, 404, "nothing at", ""},
		{"GET", "/v1/pools//archive", NULL, 404, "nothing at", ""},
		{"GET", "/v1/pools/a/b", NULL, 404, "nothing at", ""},
		{"GET", "/v1/pools/%zz", NULL, 404, "nothing at", ""},
		{"GET", "/v1/pools/%00", NULL, 404, "nothing at", ""},
		{"GET", "/v1/pools/%4", NULL, 404, "nothing at", ""},
		{"GET", "/V1/pools", NULL, 404, "nothing at", ""},
		{"DELETE", "/v1/pools", NULL, 405, "takes POST, GET, not DELETE", ""},
		{"PUT", "/v1/pools/p", NULL, 405, "takes GET, PATCH", ""},
		{"GET", "/v1/pools/p/archive", NULL, 405, "takes POST", ""},
		{"GET", "/v1/pools?limits=1", NULL, 400, "no query parameter", "limits"},
		{"GET", "/v1/pools?poolId=p", NULL, 400, "no query parameter", "poolId"},
		{"GET", "/v1/pools?limit=1&limit=2", NULL, 400, "given twice", "limit"},
		{"GET", "/v1/pools?limit=%f", NULL, 400, "can't be decoded", "limit"},
		{"GET", "/v1/pools?%ff%", NULL, 400, "can't be decoded", ""},
		{"GET", "/v1/pools?a&b&c&d&e&f&g&h&i", NULL, 400, "no query parameter", "a"},
		{"GET", "/v1/whoami?limit=1", NULL, 400, "no query parameter", "limit"},
		{"POST", "/v1/pools", NULL, 400, "body is missing", ""},
		{"POST", "/v1/pools", "[]", 400, "not a JSON object", ""},
		{"POST", "/v1/pools", "1", 400, "request body", ""},
		{"POST", "/v1/pools", "{", 400, "request body:1:1", ""},
		{"POST", "/v1/pools", "{} {}", 400, "request body:1:4", ""},
		{"POST", "/v1/pools", "{\"name\":\"a\",\"name\":\"b\"}", 400, "name", ""},
		{"POST", "/v1/pools", "{\"a\":{\"b\":1,\"b\":1}}", 400, "\"b\" is there twice", ""},
		{"POST", "/v1/pools", "{\"a\":99999999999999999999}", 400, "request body", ""},
		{"POST", "/v1/pools", "{\"a\":\"\\u0000\"}", 400, "request body", ""},
		{"POST", "/v1/pools", "{\"a\":\"\xff\"}", 400, "request body", ""},
		{"POST", "/v1/pools/p/archive", "{\"force\":true}", 400, "force", "force"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(answer)
		struct answer answer = ask(cases[i].method, cases[i].target, cases[i].body);

		if (answer.response.status != cases[i].status ||
		    !strstr(error_text(&answer, "message"), cases[i].message) ||
		    !str_equal(error_text(&answer, "field"), cases[i].field))
			fail_msg("%s %s %s: %d %s", cases[i].method, cases[i].target,
				 cases[i].body ? cases[i].body : "", answer.response.status,
				 buf_text(&answer.response.body));
		assert_int_equal(fake.calls, 0);
	}
}

static void test_allow(void **state)
{
	CLEANUP(answer) struct answer answer = ask("DELETE", "/v1/pools/p", NULL);

	(void)state;
	assert_int_equal(answer.response.status, 405);
	assert_string_equal(answer.response.allow, "GET, PATCH");
}

static void test_deep_and_large(void **state)
{
	CLEANUP(buf) struct buf body = {0};
	CLEANUP(answer) struct answer deep = {0};
	CLEANUP(answer) struct answer fits = {0};
	CLEANUP(answer) struct answer large = {0};

	(void)state;
	buf_add_text(&body, "{\"a\":");
	for (int i = 0; i < 100000; i++)
		buf_add_char(&body, '[');
	deep = ask("POST", "/v1/pools", buf_text(&body));
	assert_int_equal(deep.response.status, 400);
	assert_non_null(strstr(error_text(&deep, "message"), "nested deeper"));

	buf_clear(&body);
	buf_add_text(&body, "{}");
	while (body.length < ROUTER_MAX_BODY)
		buf_add_char(&body, ' ');
	fits = ask("POST", "/v1/pools", buf_text(&body));
	assert_int_equal(fits.response.status, 200);
	buf_add_char(&body, ' ');
	large = ask("POST", "/v1/pools", buf_text(&body));
	assert_int_equal(large.response.status, 413);
	assert_int_equal(fake.calls, 1);
}

static void test_content_types(void **state)
{
	static const struct {
		const char *type;
		int status;
	} cases[] = {
		{NULL, 415},
		{"", 415},
		{"text/plain", 415},
		{"application/x-www-form-urlencoded", 415},
		{"application/jsonp", 415},
		{"application/json", 200},
		{"Application/JSON", 200},
		{"application/json; charset=utf-8", 200},
		{"application/json;charset=utf-8", 200},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct control control = {0};
		struct request request = {
			.method = "POST",
			.target = "/v1/pools",
			.authorization = "Bearer " FAKE_KEY,
			.content_type = cases[i].type,
			.body = "{}",
			.body_length = 2,
		};
		CLEANUP(answer) struct answer answer = {0};

		router_answer(&router, &control, &request, &answer.response);
		assert_int_equal(answer.response.status, cases[i].status);
	}
}

static void test_queries(void **state)
{
	static const struct {
		const char *target, *seen;
	} cases[] = {
		{"/v1/"
		 "reservations?limit=5&cursor=a%2Fb&state=active&poolId=pool_"
		 "01jd4z5x9f0123456789abcdef",
		 "\"cursor\":\"a/"
		 "b\",\"limit\":\"5\",\"poolId\":\"pool_01jd4z5x9f0123456789abcdef\""},
		{"/v1/audit?action=a+b&&", "\"action\":\"a b\""},
		{"/v1/reservations?", "\"call\":\"reservation_list\""},
		{"/v1/reservations/rsv%5F1", "\"id\":\"rsv_1\""},
		{"/v1/events?after=7&limit=2",
		 "\"after\":\"7\",\"call\":\"event_list\",\"limit\":"},
	};

	/* What the document says of a parameter is held before the call is made. */
	static const char *const refused[] = {
		"/v1/reservations?limit=",      "/v1/reservations?limit",
		"/v1/reservations?poolId=",     "/v1/reservations?poolId=rsv_1",
		"/v1/reservations?state=ready", "/v1/reservations?state=placed%7Cactive",
		"/v1/audit?tenantId=acme",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		CLEANUP(answer) struct answer answer = ask("GET", refused[i], NULL);

		assert_int_equal(answer.response.status, 400);
		assert_string_not_equal(error_text(&answer, "field"), "");
	}
	assert_int_equal(fake.calls, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(answer) struct answer answer = ask("GET", cases[i].target, NULL);

		assert_int_equal(answer.response.status, 200);
		if (!strstr(fake.last_call, cases[i].seen))
			fail_msg("%s: %s", cases[i].target, fake.last_call);
	}
}

static void test_without_a_key(void **state)
{
	static const struct {
		const char *target;
		enum error_code ping;
		int status;
		const char *body;
	} cases[] = {
		{"/healthz", ERROR_UNAVAILABLE, 200,
		 "ok\n"}, /* alive, whatever the database says */
		{"/readyz", ERROR_NONE, 200, "ok\n"},
		{"/readyz", ERROR_UNAVAILABLE, 503, "does not answer"},
		{"/.well-known/better-compute", ERROR_NONE, 200, "\"version\":1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct control control = {0};
		struct request request = {.method = "GET", .target = cases[i].target};
		CLEANUP(answer) struct answer answer = {0};

		fake.ping_code = cases[i].ping;
		router_answer(&router, &control, &request, &answer.response);
		assert_int_equal(answer.response.status, cases[i].status);
		assert_non_null(strstr(buf_text(&answer.response.body), cases[i].body));
	}
}

/* proves: ADM-10 */
static void test_readiness(void **state)
{
	const struct {
		enum router_state state;
		const char *target;
		int status;
		const char *body;
	} cases[] = {
		{ROUTER_STARTING, "/healthz", 200, "ok\n"},
		{ROUTER_STARTING, "/readyz", 503, "database isn't ready yet"},
		{ROUTER_STARTING, "/v1/pools", 503, "UNAVAILABLE"},
		{ROUTER_STARTING, "/metrics", 503, "UNAVAILABLE"},
		{ROUTER_STARTING, "/.well-known/better-compute", 503, "UNAVAILABLE"},
		{ROUTER_DRAINING, "/healthz", 200, "ok\n"},
		{ROUTER_DRAINING, "/readyz", 503, "stopping"},
		{ROUTER_DRAINING, "/v1/pools", 200, "pool_list"},
		{ROUTER_READY, "/readyz", 200, "ok\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(answer) struct answer answer = {0};

		router.state = cases[i].state;
		answer = ask("GET", cases[i].target, NULL);
		assert_int_equal(answer.response.status, cases[i].status);
		assert_non_null(strstr(buf_text(&answer.response.body), cases[i].body));
		if (cases[i].status == 503)
			assert_int_equal(answer.response.retry_after_s, 1);
	}
	router.state = ROUTER_READY;
}

static void test_who_reads_metrics(void **state)
{
	const struct {
		bool loopback;
		const char *authorization;
		int status;
	} cases[] = {
		{true, NULL, 200},
		{false, NULL, 401},
		{false, "Bearer " FAKE_KEY, 200},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct control control = {0};
		struct request request = {.method = "GET",
					  .target = "/metrics",
					  .authorization = cases[i].authorization,
					  .loopback = cases[i].loopback};
		CLEANUP(answer) struct answer answer = {0};

		router_answer(&router, &control, &request, &answer.response);
		assert_int_equal(answer.response.status, cases[i].status);
		assert_int_equal(answer.response.metrics, cases[i].status == 200);
	}
}

static void test_metrics_without_a_database(void **state)
{
	struct control control = {0};
	struct request request = {.method = "GET", .target = "/metrics", .loopback = true};
	CLEANUP(answer) struct answer answer = {0};

	(void)state;
	fake.ping_code = ERROR_UNAVAILABLE;
	router_answer(&router, &control, &request, &answer.response);
	assert_int_equal(answer.response.status, 200);
	assert_non_null(strstr(buf_text(&answer.response.body), "better_compute_database_up 0\n"));
}

static void test_labels(void **state)
{
	const struct {
		const char *method, *target, *label, *route;
	} cases[] = {
		{"GET", "/v1/pools/pool_1?x=1", "GET", "/v1/pools/{id}"},
		{"HEAD", "/v1/pools", "GET", "/v1/pools"},
		{"GET", "/readyz", "GET", "/readyz"},
		{"GET", "/v1/nothing/here", NULL, NULL},
		{"BREW", "/v1/pools", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct request request = {.method = cases[i].method,
						.target = cases[i].target};
		const char *method, *route;

		router_label(&request, &method, &route);
		assert_true(!method == !cases[i].label);
		if (method)
			assert_string_equal(method, cases[i].label);
		if (route)
			assert_string_equal(route, cases[i].route);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_every_route, reset),
		cmocka_unit_test_setup(test_bearer, reset),
		cmocka_unit_test_setup(test_error_codes, reset),
		cmocka_unit_test_setup(test_bad_requests, reset),
		cmocka_unit_test_setup(test_allow, reset),
		cmocka_unit_test_setup(test_deep_and_large, reset),
		cmocka_unit_test_setup(test_content_types, reset),
		cmocka_unit_test_setup(test_queries, reset),
		cmocka_unit_test_setup(test_without_a_key, reset),
		cmocka_unit_test_setup(test_readiness, reset),
		cmocka_unit_test_setup(test_who_reads_metrics, reset),
		cmocka_unit_test_setup(test_metrics_without_a_database, reset),
		cmocka_unit_test_setup(test_labels, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
