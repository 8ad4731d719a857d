/* A watch over several answers of a scripted server. */
#include "client_world.h"

#include "kube/watch.h"
#include "lib/folder.h"
#include "lib/leap.h"

#define POD(version, more)                                                                         \
	"{\"metadata\":{\"name\":\"web\",\"resourceVersion\":\"" version "\"}" more "}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define ADDED(version)      EVENT("ADDED", POD(version, ""))
#define MODIFIED(version)   EVENT("MODIFIED", POD(version, ""))
#define DELETED(version)    EVENT("DELETED", POD(version, ""))
#define BOOKMARK(version)   EVENT("BOOKMARK", POD(version, ""))
#define OLD                                                                                        \
	EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","                 \
		       "\"message\":\"too old resource version\"}")

static struct {
	struct kube_watch *watch;
	char log[256];   /* "A11 " an event */
	const char *end; /* at this event the watch is stopped */
	int states;
	struct error state;
	bool was_live;
} seen;

static void on_event(void *arg, enum kube_watch_kind kind, json_t *object)
{
	const char *version = json_string_value(
		json_object_get(json_object_get(object, "metadata"), "resourceVersion"));
	char event[64];

	assert_ptr_equal(arg, &seen);
	snprintf(event, sizeof event, "%c%s ", "AMD"[kind], version);
	strncat(seen.log, event, sizeof seen.log - strlen(seen.log) - 1);
	seen.was_live = kube_watch_live(seen.watch);
	if (seen.end && str_equal(event, seen.end))
		kube_watch_stop(TAKE(seen.watch));
}

static void on_state(void *arg UNUSED, const struct error *error)
{
	seen.states++;
	seen.state = error ? *error : (struct error){0};
	kube_watch_stop(TAKE(seen.watch));
}

/* Until that event, or without one until there is something to say of the state. */
static void start(const char *end)
{
	memset(&seen, 0, sizeof seen);
	seen.end = end;
	seen.watch =
		kube_watch_start(world.client, &KUBE_POD,
				 &(struct kube_list_options){.field_selector = "spec.nodeName=n0"},
				 on_event, end ? NULL : on_state, &seen);
	assert_false(kube_watch_live(seen.watch));
}

/* Its query for versions: "11,,13," and so on, one for each request. */
static const char *versions(const char *text)
{
	static char out[256];

	out[0] = '\0';
	for (const char *at = text;
	     (at = strstr(at, "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn0&watch=true&"
			      "allowWatchBookmarks=true&timeoutSeconds="));
	     at++) {
		const char *version = strstr(at, "&resourceVersion="), *end = strstr(at, " HTTP/");

		if (version && version < end) {
			version = strchr(version, '=') + 1;
			strncat(out, version, (size_t)(end - version));
		}
		strncat(out, ",", 2);
	}
	return out;
}

static void test_it_goes_on_where_it_was(void **state)
{
	const struct fake_api_answer answers[] = {
		{200, .body = ADDED("11") MODIFIED("12") BOOKMARK("15"), .stream = FAKE_API_ENDS},
		{200, .body = MODIFIED("16") "{\"type\":\"DELE", .stream = FAKE_API_BREAKS},
		{200, .body = DELETED("17") ADDED("18") ADDED("19"), .stream = FAKE_API_HOLDS},
	};

	begin(state, answers, 3);
	start("A18 ");
	loop_run(world.loop);
	assert_string_equal(seen.log, "A11 M12 M16 D17 A18 ");
	assert_int_equal(seen.states, 0);
	assert_true(seen.was_live);
	assert_false(kube_watch_live(seen.watch));
	assert_string_equal(versions(finish()), ",15,16,");
	fake_api_destroy(world.api);
}

static void test_it_starts_anew(void **state)
{
	const struct fake_api_answer answers[] = {
		{200, .body = ADDED("11") OLD ADDED("12"), .stream = FAKE_API_HOLDS},
		{200, .body = ADDED("21") "<html>\n", .stream = FAKE_API_HOLDS},
		{200, .body = ADDED("31"), .stream = FAKE_API_HOLDS},
	};

	begin(state, answers, 3);
	start("A31 ");
	loop_run(world.loop);
	assert_string_equal(seen.log, "A11 A21 A31 ");
	assert_string_equal(versions(finish()), ",,,");
	fake_api_destroy(world.api);
}

static void test_it_starts_anew_after_a_status(void **state)
{
	const struct fake_api_answer answers[] = {
		{200, .body = MODIFIED("11"), .stream = FAKE_API_ENDS},
		{410, .body = "{\"reason\":\"Expired\"}"},
		{200, .body = ADDED("21"), .stream = FAKE_API_HOLDS},
	};

	begin(state, answers, 3);
	start("A21 ");
	loop_run(world.loop);
	assert_string_equal(versions(finish()), ",11,,");
	fake_api_destroy(world.api);
}

/* What was there as it began isn't all told yet: no version of it is one to go on from. */
static void test_it_breaks_in_the_beginning(void **state)
{
	const struct fake_api_answer answers[] = {
		{200, .body = ADDED("90") ADDED("11"), .stream = FAKE_API_BREAKS},
		{200, .body = ADDED("90") ADDED("11") ADDED("91"), .stream = FAKE_API_HOLDS},
	};

	begin(state, answers, 2);
	start("A91 ");
	loop_run(world.loop);
	assert_string_equal(seen.log, "A90 A11 A90 A11 A91 ");
	assert_string_equal(versions(finish()), ",,");
	fake_api_destroy(world.api);
}

/* --- what comes in time --- */

struct until {
	bool (*fn)(void);
	struct loop_timer *timer;
};

static void on_look(void *arg)
{
	struct until *until = arg;

	if (until->fn())
		loop_stop(world.loop);
	else
		loop_timer_start(until->timer, 5);
}

static void run_until(bool (*fn)(void))
{
	struct until until = {.fn = fn};

	until.timer = loop_timer_create(world.loop, on_look, &until);
	loop_timer_start(until.timer, 0);
	loop_run(world.loop);
	loop_timer_destroy(until.timer);
}

static bool is_live(void)
{
	return kube_watch_live(seen.watch);
}

static bool is_live_again(void)
{
	return strstr(seen.log, "M12 ") && is_live() && fake_api_requests(world.api) == 2;
}

static bool has_turned;
static bool is_next_turn(void)
{
	bool turned = has_turned;

	has_turned = true;
	return turned;
}

static void leap(int64_t ms)
{
	leapt_ms += ms;
	has_turned = false;
	run_until(is_next_turn);
}

/* A version that the API server has yet to come to: it opens, tells nothing, and ends in its time. */
static void test_a_deaf_watch(void **state)
{
	const struct fake_api_answer answers[] = {
		{200, .body = ADDED("11") MODIFIED("12"), .stream = FAKE_API_ENDS},
		{200, .body = "", .stream = FAKE_API_ENDS, .after = 3},
		FINE,
		{200, .body = ADDED("5"), .stream = FAKE_API_HOLDS},
	};

	begin(state, answers, 4);
	start("A5 ");
	run_until(is_live_again);
	leap(KUBE_WATCH_SILENT_MS - 20000);
	assert_true(is_live());
	leap(20000);
	assert_false(is_live());
	send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	loop_run(world.loop);
	assert_string_equal(versions(finish()), ",12,,");
	fake_api_destroy(world.api);
}

/* Whoever cuts it off before its time, again and again, keeps nobody from noticing. */
static void test_a_deaf_watch_that_is_cut(void **state)
{
	const struct fake_api_answer answers[] = {
		{200, .body = ADDED("11") MODIFIED("12"), .stream = FAKE_API_ENDS},
		{200, .body = "", .stream = FAKE_API_BREAKS, .after = 3},
		FINE,
		{200, .body = "", .stream = FAKE_API_HOLDS},
	};

	begin(state, answers, 4);
	start("A5 ");
	run_until(is_live_again);
	leap(KUBE_WATCH_SILENT_MS / 2);
	send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	while (fake_api_requests(world.api) < 4 || !is_live())
		leap(20);
	leap(KUBE_WATCH_SILENT_MS / 2);
	assert_false(is_live());
	kube_watch_stop(TAKE(seen.watch));
	loop_run(world.loop);
	assert_string_equal(versions(finish()), ",12,12,");
	fake_api_destroy(world.api);
}

/* A bookmark is enough. */
static void test_bookmarks_keep_it_live(void **state)
{
	const struct fake_api_answer answers[] = {
		{200, .body = ADDED("11") MODIFIED("12"), .stream = FAKE_API_ENDS},
		{200, .body = BOOKMARK("13"), .stream = FAKE_API_HOLDS, .after = 3},
		FINE,
	};

	begin(state, answers, 3);
	start("A5 ");
	run_until(is_live_again);
	leap(KUBE_WATCH_SILENT_MS);
	assert_false(is_live());
	send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	run_until(is_live);
	leap(KUBE_WATCH_SILENT_MS / 2); /* the answer's deadline is later */
	assert_true(is_live());
	kube_watch_stop(TAKE(seen.watch));
	loop_run(world.loop);
	finish();
	fake_api_destroy(world.api);
}

static bool was_tried(size_t times)
{
	return fake_api_requests(world.api) == times;
}

static bool was_tried_six_times(void)
{
	if (!was_tried(6))
		leapt_ms += 200;
	return was_tried(6);
}

/* Lists come all the while. */
static bool was_tried_once_more(void)
{
	kube_watch_hurry(seen.watch);
	return was_tried(7);
}

static bool was_tried_twice_more(void)
{
	kube_watch_hurry(seen.watch);
	return was_tried(8);
}

static bool was_tried_once(void)
{
	return was_tried(1);
}

/* Without a leap: what was asked is answered meanwhile. */
static void pass(void)
{
	struct loop_timer *later = loop_timer_create(world.loop, stop, NULL);

	loop_timer_start(later, 200);
	loop_run(world.loop);
	loop_timer_destroy(later);
}

/* Once the server is known to be there a long pause is over, but not more often than each few seconds. */
static void test_hurry(void **state)
{
	const struct fake_api_answer answer = {.slam = true};
	struct mono tried;

	begin(state, &answer, 1);
	start("A5 ");
	run_until(was_tried_six_times); /* the pause is 15 s or more now */
	tried = loop_now(world.loop);
	pass();
	kube_watch_hurry(seen.watch);
	kube_watch_hurry(seen.watch);
	leap(KUBE_WATCH_HURRY_MS - 1000);
	assert_true(was_tried(6));
	leapt_ms += 1000;
	run_until(was_tried_once_more);
	assert_true(mono_until(tried, loop_now(world.loop)) < 2 * KUBE_WATCH_HURRY_MS);
	leap(KUBE_WATCH_HURRY_MS);
	run_until(was_tried_twice_more); /* at once */
	assert_true(mono_until(tried, loop_now(world.loop)) < 3 * KUBE_WATCH_HURRY_MS);
	kube_watch_stop(TAKE(seen.watch));
	kube_watch_hurry(NULL);
	loop_run(world.loop);
	finish();
	fake_api_destroy(world.api);
}

/* Who says when to come back, or is open, isn't hurried. */
static void test_no_hurry(void **state)
{
	const struct fake_api_answer answers[] = {
		{429, .headers = "Retry-After: 50\r\n", .body = "{}"},
		{200, .body = ADDED("11"), .stream = FAKE_API_HOLDS},
	};

	begin(state, answers, 2);
	start("A5 ");
	run_until(was_tried_once);
	pass();
	leap(40000);
	kube_watch_hurry(seen.watch);
	leap(KUBE_WATCH_HURRY_MS);
	assert_true(was_tried(1));
	leap(6000);
	run_until(is_live);
	kube_watch_hurry(seen.watch);
	leap(KUBE_WATCH_HURRY_MS);
	assert_true(is_live());
	assert_true(was_tried(2));
	kube_watch_stop(TAKE(seen.watch));
	loop_run(world.loop);
	finish();
	fake_api_destroy(world.api);
}

/* With what the files say now, on a new connection, and at once. */
static void test_unknown_once(void **state)
{
	const struct fake_api_answer answers[] = {
		{401, .body = "{}"},
		{200, .body = ADDED("11"), .stream = FAKE_API_HOLDS},
	};

	begin(state, answers, 2);
	start("A11 ");
	loop_run(world.loop);
	const char *asked = finish();
	assert_int_equal(count_of(asked, "#0 CN=system:node:first"), 1);
	assert_int_equal(count_of(asked, "#1 CN=system:node:first"), 1);
	fake_api_destroy(world.api);
}

/* What isn't allowed is told once, at its second time; lists aren't disturbed by it. */
static void test_refused(void **state)
{
	const struct fake_api_answer answers[] = {
		{403, .body = "{\"message\":\"pods is forbidden\"}"}};

	begin(state, answers, 1);
	start(NULL);
	loop_run(world.loop);
	assert_int_equal(seen.states, 1);
	assert_int_equal(seen.state.code, ERROR_FORBIDDEN);
	if (!strstr(seen.state.what, ": watch pods: the API server says 403 (forbidden): pods is"))
		fail_msg("%s", seen.state.what);
	assert_string_equal(versions(finish()), ",,");
	fake_api_destroy(world.api);
}

/* The version has run out after an outage: that isn't told, what comes next is. */
static void test_expired_is_no_trouble(void **state)
{
	const struct fake_api_answer answers[] = {
		{.slam = true}, {410, .body = "{}"}, {503, .body = "{}"}, {503, .body = "{}"}};

	begin(state, answers, 4);
	start(NULL);
	loop_run(world.loop);
	assert_int_equal(seen.states, 1);
	assert_int_equal(seen.state.code, ERROR_UNAVAILABLE);
	assert_string_equal(versions(finish()), ",,,");
	fake_api_destroy(world.api);
}

static void test_nobody_there(void **state)
{
	begin(state, &FINE, 1);
	fake_api_destroy(world.api); /* the port is closed now */
	start(NULL);
	loop_run(world.loop);
	assert_int_equal(seen.states, 1);
	if (!strstr(seen.state.what, "watch pods: reach 'https://127.0.0.1:"))
		fail_msg("%s", seen.state.what);
	remove(folder_path(world.folder, "kubeconfig"));
	start(NULL);
	loop_run(world.loop);
	assert_int_equal(seen.state.code, ERROR_NOT_FOUND);
	kube_client_destroy(world.client);
	loop_destroy(world.loop);
}

/* A pod of more than a worker's share between two small ones: the order stays. */
static void large_body(struct buf *body)
{
	buf_add_text(body, ADDED("11"));
	buf_add_text(body, "{\"type\":\"MODIFIED\",\"x\":\"");
	memset(buf_extend(body, 1 << 20), 'x', 1 << 20);
	buf_add_text(body, "\",\"object\":" POD("12", "") "}\n" DELETED("13"));
}

static void test_large_events(void **state)
{
	CLEANUP(buf) struct buf body = {0};

	large_body(&body);
	const struct fake_api_answer answers[] = {
		{200, .body = buf_text(&body), .stream = FAKE_API_ENDS},
		{200, .body = DELETED("14"), .stream = FAKE_API_HOLDS},
	};
	begin(state, answers, 2);
	start("D14 ");
	loop_run(world.loop);
	assert_string_equal(seen.log, "A11 M12 D13 D14 ");
	assert_string_equal(versions(finish()), ",13,");
	fake_api_destroy(world.api);
}

/* At any moment, also while a worker reads. */
static void test_stops(void **state)
{
	CLEANUP(buf) struct buf body = {0};
	struct loop_timer *later;

	large_body(&body);
	const struct fake_api_answer answer = {200, .body = buf_text(&body),
					       .stream = FAKE_API_HOLDS};
	begin(state, &answer, 1);
	later = loop_timer_create(world.loop, stop, NULL);
	start(NULL);
	kube_watch_stop(seen.watch);
	kube_watch_stop(NULL);
	for (int ms = 1; ms < 40; ms += 3) {
		start(NULL);
		loop_timer_start(later, ms);
		loop_run(world.loop);
		kube_watch_stop(seen.watch);
	}
	loop_timer_destroy(later);
	loop_run(world.loop);
	finish();
	fake_api_destroy(world.api);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_it_goes_on_where_it_was),
		IN_FOLDER(test_it_starts_anew),
		IN_FOLDER(test_it_starts_anew_after_a_status),
		IN_FOLDER(test_it_breaks_in_the_beginning),
		IN_FOLDER(test_a_deaf_watch),
		IN_FOLDER(test_a_deaf_watch_that_is_cut),
		IN_FOLDER(test_bookmarks_keep_it_live),
		IN_FOLDER(test_hurry),
		IN_FOLDER(test_no_hurry),
		IN_FOLDER(test_unknown_once),
		IN_FOLDER(test_refused),
		IN_FOLDER(test_expired_is_no_trouble),
		IN_FOLDER(test_nobody_there),
		IN_FOLDER(test_large_events),
		IN_FOLDER(test_stops),
	};

	return cmocka_run_group_tests(tests, make_world, drop_world);
}
