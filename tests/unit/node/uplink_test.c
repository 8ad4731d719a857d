/* The uplink's shell against a real gateway: streams that don't last, a renewal that doesn't help. */
#include "join_world.h"

#include "lib/nodecert.h"
#include "node/uplink_internal.h"
#include "proto/gateway.pb-c.h"
#include "proto/message.h"
#include "sys/clock.h"

static void on_wake(void *arg)
{
	loop_stop(arg);
}

/* One renewal from its begin to its end; when it is looked at again. */
static struct mono renew_once(struct uplink *uplink, struct loop *loop)
{
	const struct uplink_hello hello = {.boot_id = "boot", .hostname = "host"};
	struct mono again = uplink_step(uplink, &hello, loop_now(loop), &(bool){false});

	assert_int_equal(uplink_phase(uplink), UPLINK_RENEWING);
	while (uplink_phase(uplink) == UPLINK_RENEWING) {
		loop_run(loop);
		again = uplink_step(uplink, &hello, loop_now(loop), &(bool){false});
	}
	assert_int_equal(uplink_phase(uplink), UPLINK_WAITING);
	return again;
}

/* It waits as after any failure, writes nothing, and says what to do.  proves: JOIN-41 */
static void test_a_renewal_that_is_no_good_here_is_a_failure(void **state)
{
	struct world *world = *state;
	CLEANUP(identity) struct identity identity = {0};
	CLEANUP(buf) struct buf pem = {0};
	struct loop *loop = loop_create();
	struct uplink *uplink;
	struct mono again;

	nodecert_identity(&identity, NODE, 33);
	start_service(world, MODE_BEHIND);
	uplink = uplink_create(loop, &(struct uplink_options){.config = &world->config,
							      .identity = &identity,
							      .wake = on_wake,
							      .arg = loop});
	again = renew_once(uplink, loop);
	assert_true(mono_until(loop_now(loop), again) >= UPLINK_BACKOFF_MIN_MS / 4);
	assert_non_null(
		strstr(uplink_error(uplink), "clock and the control plane's differ by 40 days"));
	assert_non_null(strstr(uplink_error(uplink), "Set the clock"));
	assert_true(uplink_needs_somebody(uplink));
	uplink_take_certificate(uplink, &pem);
	assert_int_equal(pem.length, 0);
	stop_service(world);
	start_service(world, MODE_HONEST); /* somebody has set it */
	uplink_hurry(uplink);
	renew_once(uplink, loop);
	assert_false(uplink_needs_somebody(uplink));
	uplink_take_certificate(uplink, &pem);
	assert_true(pem.length > 0);
	uplink_destroy(uplink);
	loop_run(loop);
	loop_destroy(loop);
}

/* A stream that opens at `*now`, by the turn's clock, and ends `lasted` later: how long it waits then. */
static int64_t stream_once(struct uplink *uplink, struct loop *loop, struct mono *now,
			   int64_t lasted)
{
	const struct uplink_hello hello = {.boot_id = "boot", .hostname = "host"};
	struct mono opened = *now, again;
	struct uplink_welcome welcome;

	again = uplink_step(uplink, &hello, *now, &(bool){false});
	assert_int_equal(uplink_phase(uplink), UPLINK_CONNECTING);
	while (uplink_phase(uplink) != UPLINK_WAITING) {
		loop_run(loop);
		if (uplink_phase(uplink) == UPLINK_OPEN)
			*now = mono_after(opened, lasted);
		again = uplink_step(uplink, &hello, *now, &(bool){false});
	}
	assert_true(uplink_take_welcome(uplink, &welcome));
	lasted = mono_until(*now, again);
	*now = again;
	return lasted;
}

/* As of a machine whose disk was copied: two of one identity. One after the other they'd be heard. */
static void test_streams_that_end_at_once_come_slower(void **state)
{
	struct world *world = *state;
	CLEANUP(identity) struct identity identity = {0};
	struct loop *loop = loop_create();
	struct mono now = loop_now(loop);
	struct uplink *uplink;

	nodecert_identity(&identity, NODE, 3);
	start_service(world, MODE_HONEST);
	uplink = uplink_create(loop, &(struct uplink_options){.config = &world->config,
							      .identity = &identity,
							      .wake = on_wake,
							      .arg = loop});
	for (int i = 0; i < 6; i++)
		stream_once(uplink, loop, &now, 0);
	assert_true(stream_once(uplink, loop, &now, 0) >= UPLINK_BACKOFF_MAX_MS / 2);
	assert_true(stream_once(uplink, loop, &now, UPLINK_STEADY_MS) <= UPLINK_BACKOFF_MIN_MS);
	uplink_destroy(uplink);
	loop_run(loop);
	loop_destroy(loop);
}

static void hear(struct uplink *uplink, Bettercompute__V1__Down *down)
{
	CLEANUP(buf) struct buf message = {0};
	struct error error;

	expect_ok(message_pack(&down->base, &message, &error), &error);
	uplink_on_message(NULL, uplink, message.data, message.length);
}

static void hear_ack(struct uplink *uplink, int64_t sequence)
{
	Bettercompute__V1__Ack ack = BETTERCOMPUTE__V1__ACK__INIT;
	Bettercompute__V1__Down down = BETTERCOMPUTE__V1__DOWN__INIT;

	ack.sequence = sequence;
	down.body_case = BETTERCOMPUTE__V1__DOWN__BODY_ACK;
	down.ack = &ack;
	hear(uplink, &down);
}

static void hear_welcome(struct uplink *uplink, int64_t acknowledged)
{
	Bettercompute__V1__Welcome welcome = BETTERCOMPUTE__V1__WELCOME__INIT;
	Bettercompute__V1__Down down = BETTERCOMPUTE__V1__DOWN__INIT;

	welcome.lineage = (char *)(uintptr_t)"lineage-1";
	welcome.acknowledged = acknowledged;
	down.body_case = BETTERCOMPUTE__V1__DOWN__BODY_WELCOME;
	down.welcome = &welcome;
	hear(uplink, &down);
}

/* A control plane that is at fault: what it acknowledges is what this stream has named, or nothing.
 * proves: GW-25 */
static void test_only_what_was_sent_is_acknowledged(void **state)
{
	struct world *world = *state;
	const struct uplink_hello hello = {
		.boot_id = "boot", .hostname = "host", .last_sequence = 7};
	CLEANUP(identity) struct identity identity = {0};
	struct loop *loop = loop_create();
	struct uplink *uplink;

	nodecert_identity(&identity, NODE, 3);
	start_service(world, MODE_HONEST);
	uplink = uplink_create(loop, &(struct uplink_options){.config = &world->config,
							      .identity = &identity,
							      .wake = on_wake,
							      .arg = loop});
	while (uplink_phase(uplink) != UPLINK_OPEN) {
		uplink_step(uplink, &hello, loop_now(loop), &(bool){false});
		loop_run(loop);
	}
	hear_welcome(uplink, 5);
	assert_int_equal(uplink_acknowledged(uplink), 5);
	hear_ack(uplink, 8); /* as yet */
	hear_ack(uplink, INT64_MAX);
	assert_int_equal(uplink_acknowledged(uplink), 5);
	uplink->numbered = 9; /* as when a report is sent */
	hear_ack(uplink, 9);
	assert_int_equal(uplink_acknowledged(uplink), 9);
	hear_welcome(uplink, INT64_MAX);
	assert_int_equal(uplink_acknowledged(uplink), 0);
	uplink_destroy(uplink);
	loop_run(loop);
	loop_destroy(loop);
}

static void hear_spec(struct uplink *uplink, const char *lineage, int64_t generation)
{
	Bettercompute__V1__Spec spec = BETTERCOMPUTE__V1__SPEC__INIT;
	Bettercompute__V1__Down down = BETTERCOMPUTE__V1__DOWN__INIT;

	spec.lineage = (char *)(uintptr_t)lineage;
	spec.gpu_api = (char *)(uintptr_t)"device-plugin";
	spec.generation = generation;
	down.body_case = BETTERCOMPUTE__V1__DOWN__BODY_SPEC;
	down.spec = &spec;
	hear(uplink, &down);
}

static void expect_spec(struct uplink *uplink, int64_t generation)
{
	struct spec *spec = uplink_take_spec(uplink);

	assert_non_null(spec);
	assert_int_equal(spec->generation, generation);
	spec_deinit(spec);
	free(spec);
	assert_null(uplink_take_spec(uplink));
}

/* One that comes again, or late, doesn't take the place of a newer one that couldn't be stored yet: what that withdrew
 * was reported as released. proves: GW-25 REL-2 */
static void test_an_older_spec_takes_no_newer_one_s_place(void **state)
{
	struct world *world = *state;
	const struct uplink_hello hello = {.boot_id = "boot", .hostname = "host"};
	CLEANUP(identity) struct identity identity = {0};
	CLEANUP(buf) struct buf certificate = {0};
	struct loop *loop = loop_create();
	struct uplink *uplink;
	struct spec *taken;

	nodecert_identity(&identity, NODE, 3);
	start_service(world, MODE_HONEST);
	uplink = uplink_create(loop, &(struct uplink_options){.config = &world->config,
							      .identity = &identity,
							      .wake = on_wake,
							      .arg = loop});
	while (uplink_phase(uplink) != UPLINK_OPEN) {
		uplink_step(uplink, &hello, loop_now(loop), &(bool){false});
		loop_run(loop);
	}
	/* before anybody took it */
	hear_spec(uplink, "lineage-1", 4);
	hear_spec(uplink, "lineage-1", 3);
	expect_spec(uplink, 4);
	/* while it is being stored, which fails */
	hear_spec(uplink, "lineage-1", 4);
	taken = uplink_take_spec(uplink);
	hear_spec(uplink, "lineage-1", 3);
	uplink_return(uplink, taken, &certificate);
	expect_spec(uplink, 4);
	/* but a newer one does, and one of another database */
	hear_spec(uplink, "lineage-1", 4);
	taken = uplink_take_spec(uplink);
	hear_spec(uplink, "lineage-1", 5);
	uplink_return(uplink, taken, &certificate);
	expect_spec(uplink, 5);
	hear_spec(uplink, "lineage-1", 6);
	taken = uplink_take_spec(uplink);
	hear_spec(uplink, "lineage-2", 1);
	uplink_return(uplink, taken, &certificate);
	expect_spec(uplink, 1);
	uplink_destroy(uplink);
	loop_run(loop);
	loop_destroy(loop);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_WORLD(test_a_renewal_that_is_no_good_here_is_a_failure),
		WITH_WORLD(test_streams_that_end_at_once_come_slower),
		WITH_WORLD(test_only_what_was_sent_is_acknowledged),
		WITH_WORLD(test_an_older_spec_takes_no_newer_one_s_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
