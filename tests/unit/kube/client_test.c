/* When the client asks, in which order, and how often. */
#include "client_world.h"

#include "lib/folder.h"
#include "sys/clock.h"

static struct loop_timer *later;

static void test_later_and_later(void **state)
{
	const struct fake_api_answer answers[] = {
		{.status = 429, .body = "{}", .headers = "Retry-After: 1\r\n"},
		{.status = 503, .body = "{}"},
		{.slam = true},
		FINE,
	};
	struct mono start;

	begin(state, answers, 4);
	start = clock_mono();
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_DONE);
	assert_in_range(mono_until(start, clock_mono()), 1000, 5000);
	assert_int_equal(count_of(finish(), "GET "), 4);
	fake_api_destroy(world.api);
}

/* However a far time is written, nobody waits for it, nor asks before it. */
static void test_much_later(void **state)
{
	static const char *const HEADERS[] = {"Retry-After: 99999999999999999999\r\n",
					      "Retry-After: Fri, 31 Dec 2199 23:59:59 GMT\r\n",
					      "Retry-After: 86400\r\n"};

	for (size_t i = 0; i < ARRAY_SIZE(HEADERS); i++) {
		const struct fake_api_answer busy = {
			.status = 429, .body = "{}", .headers = HEADERS[i]};

		begin(state, &busy, 1);
		call(kube_get(NODE));
		assert_int_equal(world.reason, KUBE_BUSY);
		assert_int_equal(count_of(finish(), "GET "), 1);
		fake_api_destroy(world.api);
	}
}

/* Another's answer, whose length is a worker's. */
static void test_a_stranger_is_not_believed(void **state)
{
	static const struct fake_api_answer OTHER = {
		.status = 200,
		.body = "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n9\"}}",
		.padding = KUBE_INLINE_MAX};

	begin(state, &OTHER, 1);
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_STRANGE);
	finish();
	fake_api_destroy(world.api);
}

static void test_a_create_is_not_sent_twice(void **state)
{
	const struct fake_api_answer answers[] = {{.slam = true},
						  {.status = 500, .body = "{}"},
						  {.status = 200, .cut = true, .body = OK_BODY}};

	begin(state, answers, 3);
	call(create_slice());
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_true(world.unknown);
	call(create_slice());
	assert_int_equal(world.reason, KUBE_UNAVAILABLE);
	call(create_slice());
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_true(world.unknown);
	assert_int_equal(count_of(finish(), "POST "), 3);
	fake_api_destroy(world.api);
}

static void test_nobody_there(void **state)
{
	begin(state, &FINE, 1);
	fake_api_destroy(world.api); /* the port is closed now */
	send_as(create_slice(), KUBE_NORMAL, 700, NULL);
	loop_run(world.loop);
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_int_equal(world.error.code, ERROR_UNAVAILABLE);
	assert_false(world.unknown);
	assert_non_null(strstr(world.error.what, "reach 'https://127.0.0.1:"));
	kube_client_destroy(world.client);
	loop_destroy(world.loop);
}

static void test_too_much(void **state)
{
	const struct fake_api_answer answers[] = {
		{.status = 200, .body = OK_BODY, .padding = KUBE_MAX_ANSWER - sizeof OK_BODY + 1},
		{.status = 200, .body = OK_BODY, .padding = KUBE_MAX_ANSWER - sizeof OK_BODY + 2}};

	begin(state, answers, 2);
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_DONE);
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_int_equal(world.error.code, ERROR_RESOURCES_EXHAUSTED);
	assert_int_equal(count_of(finish(), "GET "), 2);
	fake_api_destroy(world.api);
}

/* While a worker reads it. */
static void test_ends_while_an_answer_is_read(void **state)
{
	static const struct fake_api_answer LARGE = {
		.status = 200, .body = OK_BODY, .padding = KUBE_INLINE_MAX};
	struct kube_call *calls[4];

	begin(state, &LARGE, 1);
	for (int ms = 1; ms < 40; ms += 3) {
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
			calls[i] = send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
		later = loop_timer_create(world.loop, stop, NULL);
		loop_timer_start(later, ms);
		loop_run(world.loop);
		loop_timer_destroy(later);
		if (world.told == 0)
			for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
				kube_call_cancel(calls[i]);
		loop_run(world.loop);
		world.told = 0;
	}
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_DONE);
	finish();
	fake_api_destroy(world.api);
}

static int ticks;

static void tick(void *arg UNUSED)
{
	ticks++;
	if (world.told < 12)
		loop_timer_start(later, 5);
}

/* The server takes its time; the loop keeps its own. */
static void test_a_slow_server_holds_up_nobody(void **state)
{
	static const struct fake_api_answer SLOW = {
		.status = 200, .body = OK_BODY, .delay_ms = 200};
	struct mono start;

	begin(state, &SLOW, 1);
	ticks = 0;
	later = loop_timer_create(world.loop, tick, NULL);
	loop_timer_start(later, 5);
	start = clock_mono();
	for (int i = 0; i < 12; i++) /* six at a time */
		send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, 12);
	assert_in_range(mono_until(start, clock_mono()), 400, 2000);
	assert_true(ticks > 30);
	loop_timer_destroy(later);
	finish();
	fake_api_destroy(world.api);
}

static void test_deadlines(void **state)
{
	static const struct fake_api_answer SLOW = {
		.status = 200, .body = OK_BODY, .delay_ms = 30000};
	struct mono start = clock_mono();

	begin(state, &SLOW, 1);
	for (int i = 0; i < KUBE_IN_FLIGHT + 1; i++)
		send_as(kube_get(NODE), KUBE_URGENT, 300, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, KUBE_IN_FLIGHT + 1);
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_in_range(mono_until(start, clock_mono()), 290, 25000);
	finish();
	fake_api_destroy(world.api);
}

static void send_three(void *arg UNUSED)
{
	send_as(kube_get(NODE), KUBE_LATER, 0, "e");
	send_as(kube_get(NODE), KUBE_NORMAL, 0, "n");
	send_as(kube_get(NODE), KUBE_URGENT, 0, "u");
}

static void test_the_urgent_goes_first(void **state)
{
	static const struct fake_api_answer SLOW = {
		.status = 200, .body = OK_BODY, .delay_ms = 2500};
	struct fake_api_answer answers[KUBE_IN_FLIGHT - 1];

	for (int i = 0; i < KUBE_IN_FLIGHT - 2; i++)
		answers[i] = SLOW;
	answers[KUBE_IN_FLIGHT - 2] = FINE;
	begin(state, answers, KUBE_IN_FLIGHT - 1);
	for (int i = 0; i < KUBE_IN_FLIGHT - 2; i++) /* all that others may have */
		send_as(kube_get(NODE), KUBE_NORMAL, 0, "x");
	later = loop_timer_create(world.loop, send_three, NULL);
	loop_timer_start(later, 150);
	loop_run(world.loop);
	/* The urgent one didn't wait; the others did, the one that can wait longest. */
	assert_int_equal(strlen(world.log), KUBE_IN_FLIGHT + 1);
	assert_int_equal(world.log[0], 'u');
	assert_true(strchr(world.log, 'x') < strchr(world.log, 'n'));
	assert_true(strchr(world.log, 'n') < strchr(world.log, 'e'));
	loop_timer_destroy(later);
	finish();
	fake_api_destroy(world.api);
}

static void test_too_many_wait(void **state)
{
	begin(state, &FINE, 1);
	for (int i = 0; i < KUBE_WAITING; i++)
		send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	send_as(kube_get(NODE), KUBE_NORMAL, 0, "z");
	loop_run(world.loop);
	assert_int_equal(world.told, KUBE_WAITING + 1);
	assert_string_equal(world.log, "z");
	assert_int_equal(count_of(finish(), "GET "), KUBE_WAITING);
	fake_api_destroy(world.api);
}

static void on_answer_destroys(void *arg UNUSED, struct kube_answer *answer UNUSED)
{
	world.told++;
	kube_client_destroy(TAKE(world.client));
}

static void test_ends_at_any_moment(void **state)
{
	static const struct fake_api_answer SLOW = {
		.status = 200, .body = OK_BODY, .delay_ms = 500};
	struct kube_request request = kube_get(NODE);
	struct kube_call *cancelled;

	begin(state, &SLOW, 1);
	cancelled = send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	kube_call_cancel(cancelled);
	kube_send(world.client, &request, (struct kube_call_options){.timeout_ms = 100},
		  on_answer_destroys, NULL);
	send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, 1);
	assert_null(world.client);
	finish();
	fake_api_destroy(world.api);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_later_and_later),
		IN_FOLDER(test_much_later),
		IN_FOLDER(test_a_stranger_is_not_believed),
		IN_FOLDER(test_a_create_is_not_sent_twice),
		IN_FOLDER(test_nobody_there),
		IN_FOLDER(test_too_much),
		IN_FOLDER(test_ends_while_an_answer_is_read),
		IN_FOLDER(test_a_slow_server_holds_up_nobody),
		IN_FOLDER(test_deadlines),
		IN_FOLDER(test_the_urgent_goes_first),
		IN_FOLDER(test_too_many_wait),
		IN_FOLDER(test_ends_at_any_moment),
	};

	return cmocka_run_group_tests(tests, make_world, drop_world);
}
