#include "kube/core/answer.h"

#include "lib/enumerate.h"
#include "lib/test.h"
#include "text/tree.h"
#include <stdio.h>

#define SAYS(status, reason, more)                                                                 \
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"" status          \
	"\",\"reason\":\"" reason "\"" more "}"
#define FAILS(reason, more) SAYS("Failure", reason, more)
#define OF(kind, name)      ",\"details\":{\"name\":\"" name "\",\"kind\":\"" kind "\"}"
#define OBJECT(kind, version, name)                                                                \
	"{\"kind\":\"" kind "\",\"apiVersion\":\"" version "\",\"metadata\":{" name "}}"
#define NAMED(name)         "\"name\":\"" name "\""
#define IN(namespace, name) NAMED(name) ",\"namespace\":\"" namespace "\""
#define WEB                 OBJECT("Pod", "v1", IN("ns", "web"))

static const struct kube_ref POD = {&KUBE_POD, "ns", "web"};

/* Frees the request. */
static struct kube_answer read_answer_to(struct kube_request request, int status,
					 int64_t retry_after_s, const char *body)
{
	struct kube_answer answer = {0};

	kube_answer_read(&request, status, retry_after_s, body, strlen(body), &answer);
	kube_request_deinit(&request);
	return answer;
}

static struct kube_answer read_answer(int status, int64_t retry_after_s, const char *body)
{
	return read_answer_to(kube_get(POD), status, retry_after_s, body);
}

static void test_what_a_status_means(void **state UNUSED)
{
	static const struct {
		int status;
		const char *body;
		enum kube_reason reason;
		enum error_code code;
		const char *message;
	} TABLE[] = {
		{400, "{\"message\":\"no\"}", KUBE_INVALID, ERROR_INVALID_INPUT,
		 "get pod 'ns/web': the API server says 400 (invalid): no"},
		{422, "{}", KUBE_INVALID, ERROR_INVALID_INPUT, "422 (invalid)"},
		{401, "{\"message\":\"Unauthorized\"}", KUBE_UNAUTHORIZED, ERROR_UNAUTHENTICATED,
		 "401 (unauthorized): Unauthorized"},
		{403, "{\"message\":\"pods \\\"web\\\" is forbidden\"}", KUBE_FORBIDDEN,
		 ERROR_FORBIDDEN, "403 (forbidden): pods \"web\" is forbidden"},
		{404, FAILS("NotFound", OF("pods", "web")), KUBE_NOT_FOUND, ERROR_NOT_FOUND,
		 "404 (not found)"},
		{404, FAILS("NotFound", OF("pod", "web")), KUBE_NOT_FOUND, ERROR_NOT_FOUND,
		 "404 (not found)"},
		{404, FAILS("NotFound", ""), KUBE_STRANGE, ERROR_UNAVAILABLE, "404"},
		{404, FAILS("NotFound", OF("namespaces", "ns")), KUBE_NOT_FOUND, ERROR_NOT_FOUND,
		 "404 (not found)"},
		{404, "404 page not found\n", KUBE_STRANGE, ERROR_UNAVAILABLE,
		 "404 (no answer of an API server): 404 page not found"},
		{404, "default backend - 404", KUBE_STRANGE, ERROR_UNAVAILABLE,
		 "no answer of an API server"},
		{404, "{\"reason\":\"NotFound\"}", KUBE_STRANGE, ERROR_UNAVAILABLE, "404"},
		{404, FAILS("NotFound", OF("pods", "other")), KUBE_STRANGE, ERROR_UNAVAILABLE,
		 "404"},
		{404, FAILS("NotFound", OF("nodes", "web")), KUBE_STRANGE, ERROR_UNAVAILABLE,
		 "404"},
		{404, FAILS("NotFound", OF("namespaces", "other")), KUBE_STRANGE, ERROR_UNAVAILABLE,
		 "404"},
		{404, FAILS("Unknown", ""), KUBE_STRANGE, ERROR_UNAVAILABLE, "404"},
		{404, SAYS("Success", "NotFound", ""), KUBE_STRANGE, ERROR_UNAVAILABLE, "404"},
		{409, FAILS("AlreadyExists", OF("pods", "web")), KUBE_ALREADY_EXISTS,
		 ERROR_CONFLICT, "already exists"},
		{409, FAILS("Conflict", OF("pods", "web")), KUBE_CONFLICT, ERROR_CONFLICT,
		 "(conflict)"},
		{409, FAILS("Conflict", ""), KUBE_CONFLICT, ERROR_CONFLICT, "(conflict)"},
		{409, "", KUBE_STRANGE, ERROR_UNAVAILABLE, "no answer of an API server"},
		{409, "{\"reason\":\"Conflict\"}", KUBE_STRANGE, ERROR_UNAVAILABLE, "409"},
		{409, FAILS("Conflict", OF("pods", "other")), KUBE_STRANGE, ERROR_UNAVAILABLE,
		 "409"},
		{410, "{\"reason\":\"Expired\"}", KUBE_EXPIRED, ERROR_INVALID_STATE,
		 "410 (expired)"},
		{429, "{}", KUBE_BUSY, ERROR_RATE_LIMITED, "too many requests"},
		{500, "{}", KUBE_UNAVAILABLE, ERROR_UNAVAILABLE, "500 (unavailable)"},
		{503, "<html>\r\n<b>busy</b>\x1b[2J</html>", KUBE_UNAVAILABLE, ERROR_UNAVAILABLE,
		 "503 (unavailable): <html> <b>busy</b> [2J</html>"},
		{301, "", KUBE_STRANGE, ERROR_UNAVAILABLE, "no answer of an API server"},
		{200, "<html>", KUBE_STRANGE, ERROR_UNAVAILABLE,
		 "200 (no answer of an API server): <html>"},
		{200, "", KUBE_STRANGE, ERROR_UNAVAILABLE, "no answer of an API server"},
		{200, "[1]", KUBE_STRANGE, ERROR_UNAVAILABLE, "no answer of an API server"},
		{200, "{\"a\":1,\"a\":2}", KUBE_STRANGE, ERROR_UNAVAILABLE, "no answer"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(kube_answer)
		struct kube_answer answer = read_answer(TABLE[i].status, 0, TABLE[i].body);

		assert_string_equal(kube_reason_name(answer.reason),
				    kube_reason_name(TABLE[i].reason));
		assert_int_equal(answer.error.code, TABLE[i].code);
		if (!strstr(answer.error.what, TABLE[i].message))
			fail_msg("\"%s\" lacks \"%s\"", answer.error.what, TABLE[i].message);
		assert_null(answer.body);
	}
}

static void test_an_object(void **state UNUSED)
{
	CLEANUP(kube_answer)
	struct kube_answer answer = read_answer(
		201, 0,
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{" IN(
			"ns", "web") ",\"managedFields\":[1]},"
				     "\"items\":[{\"metadata\":{\"managedFields\":[]}},7,{}]}");

	assert_int_equal(answer.reason, KUBE_DONE);
	assert_int_equal(answer.error.code, ERROR_NONE);
	CLEANUP(buf) struct buf out = {0};
	tree_dump_canonical(&out, answer.body);
	assert_string_equal(buf_text(&out),
			    "{\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{}},7,{}],"
			    "\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\","
			    "\"namespace\":\"ns\"}}");
}

static void test_an_eviction_that_a_budget_refuses(void **state UNUSED)
{
	CLEANUP(kube_answer)
	struct kube_answer answer = read_answer(
		429, 10,
		"{\"message\":\"Cannot evict pod\",\"reason\":\"TooManyRequests\",\"details\":{"
		"\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption budget "
		"db "
		"needs 2 healthy pods\\nand has 2\"},{\"message\":\"\"},{\"message\":\"more\"}]}}");
	struct kube_try outcome = {.way = KUBE_WAY_ANSWERED,
				   .answer = &answer,
				   .repeatable = true,
				   .tries = 1,
				   .left_ms = 100000};

	assert_int_equal(answer.reason, KUBE_DISRUPTION);
	assert_string_equal(answer.causes,
			    "The disruption budget db needs 2 healthy pods and has 2; more");
	assert_int_equal(kube_try_decide(&outcome).step, KUBE_GIVE_UP);
}

/* proves: REL-51 */
static void test_deleted(void **state UNUSED)
{
	static const struct {
		int status;
		const char *body;
		bool deleted;
	} TABLE[] = {
		{200, WEB, true},
		{202, WEB, true},
		{200, SAYS("Success", "", ""), true},
		{200, SAYS("Success", "", OF("pods", "web")), true},
		{404, FAILS("NotFound", OF("pods", "web")), true},
		{409, FAILS("Conflict", OF("pods", "web")), true},
		{404, "default backend - 404", false},
		{404, "{}", false},
		{404, FAILS("NotFound", OF("pods", "other")), false},
		{409, "", false},
		{409, "{}", false},
		{409, FAILS("AlreadyExists", ""), false},
		{200, "{}", false},
		{200, "{\"status\":\"ok\"}", false},
		{200, FAILS("InternalError", ""), false},
		{200, SAYS("Success", "", OF("pods", "other")), false},
		{200, OBJECT("Pod", "v1", IN("ns", "other")), false},
		{403, FAILS("Forbidden", ""), false},
		{401, "{}", false},
		{429, "{}", false},
		{500, "{}", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(kube_answer)
		struct kube_answer answer =
			read_answer_to(kube_delete(POD, &(struct kube_delete_options){.uid = "u"}),
				       TABLE[i].status, 0, TABLE[i].body);

		if (kube_answer_deleted(&answer) != TABLE[i].deleted)
			fail_msg("%d %s", TABLE[i].status, TABLE[i].body);
	}
}

/* Each request's answers that are its own, and what else a 200 may bring. */
static void test_what_was_asked_for(void **state UNUSED)
{
	static const struct kube_ref NODE = {&KUBE_NODE, "", "n1"};
	static const struct kube_ref SLICE = {&KUBE_RESOURCE_SLICE, "", "s"};
	static const char VERSION[] = "{\"major\":\"1\"}";
	static const char *const BODIES[] = {
		WEB,
		OBJECT("Node", "v1", NAMED("n1")),
		OBJECT("ResourceSlice", "resource.k8s.io/v1", NAMED("s")),
		OBJECT("PodList", "v1", ""),
		OBJECT("ResourceSliceList", "resource.k8s.io/v1", ""),
		SAYS("Success", "", ""),
		/* nobody's */
		FAILS("InternalError", ",\"code\":500,\"message\":\"oh\""),
		"{\"kind\":\"Status\"}",
		OBJECT("Pod", "v1", IN("other", "web")),
		OBJECT("Pod", "v1", NAMED("web")),
		OBJECT("Pod", "v2", IN("ns", "web")),
		OBJECT("Pods", "v1", IN("ns", "web")),
		OBJECT("Node", "v1", IN("ns", "n1")),
		OBJECT("Node", "v1", NAMED("n2")),
		OBJECT("ResourceSlice", "v1", NAMED("s")),
		OBJECT("ResourceSlice", "resource.k8s.io/v1beta1", NAMED("s")),
		OBJECT("ResourceSlice", "resource.k8s.iov1", NAMED("s")),
		OBJECT("PodList", "v2", ""),
		OBJECT("List", "v1", ""),
		"{\"items\":[],\"metadata\":{}}",
		"{\"kind\":\"Pod\",\"metadata\":{" IN("ns", "web") "}}",
		"{\"kind\":1,\"apiVersion\":\"v1\"}",
	};
	CLEANUP(tree) json_t *slice = json_pack("{s:{s:s}}", "metadata", "name", "s");

	for (size_t own = 0; own < 6; own++)
		for (size_t i = 0; i < ARRAY_SIZE(BODIES); i++) {
			struct kube_delete_options deletion = {.uid = "u"};
			struct kube_request requests[] = {
				kube_get(POD),
				kube_node_cordon("n1", true),
				kube_apply(SLICE, slice, true),
				kube_list(&KUBE_POD, &(struct kube_list_options){0}),
				kube_list(&KUBE_RESOURCE_SLICE, &(struct kube_list_options){0}),
				kube_evict(POD, &deletion),
			};
			CLEANUP(kube_answer)
			struct kube_answer answer =
				read_answer_to(requests[own], 200, 0, BODIES[i]);

			for (size_t j = 0; j < ARRAY_SIZE(requests); j++)
				if (j != own)
					kube_request_deinit(&requests[j]);
			if ((answer.reason == KUBE_DONE) != (i == own))
				fail_msg("%zu: %s", own, BODIES[i]);
			if (i == own)
				continue;
			assert_int_equal(answer.reason, KUBE_STRANGE);
			assert_int_equal(answer.error.code, ERROR_UNAVAILABLE);
			assert_non_null(strstr(answer.error.what, "that was asked for"));
		}
	CLEANUP(kube_answer)
	struct kube_answer version = read_answer_to(kube_get_path("/version"), 200, 0, VERSION);
	CLEANUP(kube_answer)
	struct kube_answer failed =
		read_answer_to(kube_get_path("/version"), 200, 0, FAILS("InternalError", ""));
	CLEANUP(kube_answer)
	struct kube_answer told = read_answer_to(
		kube_list(&KUBE_POD, &(struct kube_list_options){0}), 200, 0, BODIES[6]);
	CLEANUP(kube_answer)
	struct kube_answer other =
		read_answer_to(kube_get(NODE), 200, 0, OBJECT("Node", "v1", NAMED("n2")));
	assert_int_equal(version.reason, KUBE_DONE);
	assert_int_equal(failed.reason, KUBE_STRANGE);
	assert_string_equal(told.error.what,
			    "list pods: the API server says 200 (no answer of an API server): it "
			    "is a Status, not the PodList that was asked for: oh");
	assert_non_null(strstr(other.error.what, "it is a Node 'n2', not the Node that was asked"));
}

static void test_long_words_are_cut(void **state UNUSED)
{
	char body[4096];
	int length = snprintf(body, sizeof body, "{\"message\":\"");

	memset(body + length, 'x', 3000);
	strcpy(body + length + 3000, "\"}");
	CLEANUP(kube_answer) struct kube_answer answer = read_answer(403, 0, body);
	assert_true(strlen(answer.error.what) < 400);
}

static void test_how_long_to_wait(void **state UNUSED)
{
	static const struct {
		int status;
		int64_t header;
		const char *body;
		int64_t at_least, at_most; /* -1: give up */
	} TABLE[] = {
		{429, 2, "{}", 2000, 2250},
		{429, 0, "{\"details\":{\"retryAfterSeconds\":3}}", 3000, 3250},
		{429, 1, "{\"details\":{\"retryAfterSeconds\":3}}", 1000, 1250},
		{429, 61, "{}", -1, -1},
		{429, 0, "{}", 100, 200},
		{503, 5, "{}", 5000, 5250},
		{504, 0, "{}", 100, 200},
		{404, 0, "{}", -1, -1},
		{403, 0, "{}", -1, -1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++)
		for (uint64_t random = 0; random < 1000; random += 37) {
			CLEANUP(kube_answer)
			struct kube_answer answer =
				read_answer(TABLE[i].status, TABLE[i].header, TABLE[i].body);
			struct kube_try outcome = {.way = KUBE_WAY_ANSWERED,
						   .answer = &answer,
						   .repeatable = true,
						   .tries = 1,
						   .left_ms = 100000,
						   .random = random};
			struct kube_next next = kube_try_decide(&outcome);

			assert_int_equal(next.step,
					 TABLE[i].at_least < 0 ? KUBE_GIVE_UP : KUBE_AGAIN);
			if (next.step == KUBE_AGAIN)
				assert_in_range(next.delay_ms, TABLE[i].at_least, TABLE[i].at_most);
		}
}

/* Every outcome: bounded tries, never past the deadline, nothing done twice that mustn't be. */
static void test_every_outcome(void **state UNUSED)
{
	static const int STATUS[] = {200, 400, 401, 403, 404, 409, 410, 429, 500, 503};
	struct enumerate all = {0};

	while (enumerate_next(&all)) {
		struct kube_try outcome = {
			.way = (enum kube_way)enumerate_pick(&all, 5),
			.repeatable = enumerate_pick(&all, 2),
			.tries = 1 + (int)enumerate_pick(&all, KUBE_TRIES + 1),
			.renewed = enumerate_pick(&all, 2),
			.left_ms = enumerate_pick(&all, 2) ? 60000 : 1,
			.random = 7,
		};
		int status = outcome.way == KUBE_WAY_ANSWERED
				     ? STATUS[enumerate_pick(&all, ARRAY_SIZE(STATUS))]
				     : 0;
		CLEANUP(kube_answer) struct kube_answer answer = {0};
		if (status)
			answer = read_answer(status, 0, "{}");
		outcome.answer = &answer;
		struct kube_next next = kube_try_decide(&outcome);

		if (outcome.tries >= KUBE_TRIES)
			assert_int_equal(next.step, KUBE_GIVE_UP);
		if (next.step == KUBE_GIVE_UP)
			continue;
		assert_true(next.delay_ms < outcome.left_ms);
		assert_true(next.delay_ms <= KUBE_BACKOFF_MAX_MS);
		if (next.step == KUBE_AGAIN_RENEWED)
			assert_true(status == 401 && !outcome.renewed);
		if (!outcome.repeatable)
			assert_true(outcome.way == KUBE_WAY_UNSENT ||
				    outcome.way == KUBE_WAY_CREDENTIALS || status == 401 ||
				    status == 429);
	}
	assert_true(all.rounds > 500);
}

static void test_pauses_grow(void **state UNUSED)
{
	int64_t before = 0;

	for (int tries = 1; tries < KUBE_TRIES; tries++) {
		struct kube_try outcome = {
			.way = KUBE_WAY_UNSENT, .tries = tries, .left_ms = 60000};
		int64_t delay = kube_try_decide(&outcome).delay_ms;

		assert_true(delay > before);
		before = delay;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_status_means),
		cmocka_unit_test(test_an_object),
		cmocka_unit_test(test_an_eviction_that_a_budget_refuses),
		cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_what_was_asked_for),
		cmocka_unit_test(test_long_words_are_cut),
		cmocka_unit_test(test_how_long_to_wait),
		cmocka_unit_test(test_every_outcome),
		cmocka_unit_test(test_pauses_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
