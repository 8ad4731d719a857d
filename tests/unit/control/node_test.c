/* How nodes come, stay and are heard: their streams, from joining to silence. */
#include "unit/control/world.h"

/* proves: GW-2 GW-18 GW-19 GW-20 GW-24 */
static void test_node_goes_from_joining_to_ready(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *seen;

	world_join(world, &node);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "state"), "joining");
	assert_string_equal(world_text(seen, "trust"), "tenant-owned");
	assert_false(world_int(seen, "connected"));

	world_hello(world, &node, NULL);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "state"), "adopting");
	assert_true(world_int(seen, "connected"));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(seen, "labels"),
						  "bc.dev/capability.kubernetes-binding")),
		"true");

	world_inventory(world, &node);
	assert_string_equal(world_text(world_call(world, control_node_get, node.id, NULL), "state"),
			    "adopting");
	world_conditions(world, &node, NULL, 0);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "state"), "ready");
	assert_string_equal(world_text(seen, "kubernetesNodeName"), "gpu-node");
	assert_int_equal(json_array_size(json_object_get(seen, "gpus")), WORLD_GPUS);
	assert_int_equal(world_int(seen, "gpus.4.numa"), 1);
	assert_string_equal(world_text(seen, "devices.0.class"), "gpu");
	assert_true(world_int(seen, "devices.0.healthy"));

	/* A downgrade takes the labels away. */
	world_hello(world, &node, (const char *const[]){"assignment-limits", NULL});
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(json_object_size(json_object_get(seen, "labels")), 1);
}

/* proves: GW-27 */
static void test_newer_hello_makes_the_older_stream_void(void **state)
{
	struct world *world = *state;
	struct world_node node, old;
	struct control other;
	struct control_report report = {.kind = CONTROL_REPORT_CONDITIONS};
	struct control_report_result result;
	struct control_spec spec = {0};
	struct error error;

	world_ready(world, &node, 1);
	old = node;
	world_connect(world, "replica-2", &other);
	struct control mine = world->control;

	world->control = other;
	world_hello(world, &node, NULL);
	world->control = mine;
	assert_true(node.epoch > old.epoch);
	expect_error(control_node_heartbeat(&world->control, node.id, old.epoch, 0, &error), &error,
		     ERROR_CONFLICT, "newer stream");
	report.node = node.id;
	report.epoch = old.epoch;
	report.sequence = node.sequence + 1;
	expect_error(control_node_report(&world->control, &report, &result, &error), &error,
		     ERROR_CONFLICT, "newer stream");
	expect_error(control_spec_load(&world->control, node.id, old.epoch, &spec, &error), &error,
		     ERROR_CONFLICT, "newer stream");
	/* The old one's end says nothing about the new one. */
	expect_ok(control_node_gone(&world->control, node.id, old.epoch, &error), &error);
	assert_true(world_int(world_call(world, control_node_get, node.id, NULL), "connected"));
	expect_ok(control_node_gone(&world->control, node.id, node.epoch, &error), &error);
	assert_false(world_int(world_call(world, control_node_get, node.id, NULL), "connected"));
	world_disconnect(&other);
}

/* What a retired node says on a stream that is open counts no more, and the stream is told.
 * proves: GW-27 */
static void test_a_retired_node_is_heard_no_more(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_outbox outbox = {0};
	struct control_beat beat = {.known = true};
	struct control_spec spec = {0};
	const char *seen;
	struct error error;

	world_ready(world, &node, 1);
	world_store_spec(world, &node);
	expect_ok(control_outbox_poll(&world->control, -1, &outbox, &error), &error);
	seen = world_text(world_call(world, control_node_get, node.id, NULL), "lastSeenAt");
	world_call(world, control_node_retire, node.id, NULL);
	database_advance(10000);
	expect_error(control_node_heartbeat(&world->control, node.id, node.epoch, 0, &error),
		     &error, ERROR_FORBIDDEN, "retired");
	str_copy(beat.node, sizeof beat.node, node.id);
	beat.epoch = node.epoch;
	expect_ok(control_nodes_seen(&world->control, &beat, 1, &error), &error);
	assert_false(beat.known);
	assert_string_equal(
		world_text(world_call(world, control_node_get, node.id, NULL), "lastSeenAt"), seen);
	/* It needn't speak first: whoever has its stream asks for its Spec. */
	expect_ok(control_outbox_poll(&world->control, outbox.last, &outbox, &error), &error);
	assert_int_equal(outbox.count, 1);
	assert_string_equal(outbox.items[0].node, node.id);
	control_outbox_deinit(&outbox);
	expect_error(control_spec_load(&world->control, node.id, node.epoch, &spec, &error), &error,
		     ERROR_FORBIDDEN, "retired");
}

/* A Hello as its stream says it, on this replica: the epoch, or 0 when a newer stream has the place. */
static int64_t say_hello(struct control *control, const char *node, const char *boot_id,
			 int64_t opened_ms, int64_t last_sequence)
{
	const char *const capabilities[] = {"kubernetes-binding", "assignment-limits"};
	const struct control_hello hello = {
		.node = node,
		.boot_id = boot_id,
		.version = "0.1.0",
		.hostname = "gpu-node",
		.capabilities = capabilities,
		.capabilities_count = last_sequence > 0 ? ARRAY_SIZE(capabilities) : 0,
		.lineage = "",
		.last_sequence = last_sequence,
		.opened_ms = opened_ms,
	};
	struct control_welcome welcome;
	struct error error;

	if (control_node_hello(control, &hello, &welcome, &error)) {
		assert_int_equal(welcome.acknowledged, last_sequence);
		assert_true(str_starts(welcome.site, "site_") && *welcome.pool);
		return welcome.epoch;
	}
	expect_error(false, &error, ERROR_CONFLICT, "newer stream");
	return 0;
}

/* A Hello may be held up until the node's next stream is open, here or on another replica: it takes
 * nothing from that one, and no number that is acknowledged comes to be open again.
 * proves: GW-25 GW-27 */
static void test_a_late_hello_changes_nothing(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_report report = {.kind = CONTROL_REPORT_CONDITIONS};
	struct control_report_result result;
	struct control other;
	struct error error;
	json_t *labels;

	world_ready(world, &node, 1);
	world_connect(world, "replica-2", &other);
	node.epoch = say_hello(&world->control, node.id, "boot-1", 2000, node.sequence);
	report.node = node.id;
	report.epoch = node.epoch;
	report.sequence = node.sequence + 1;
	expect_ok(control_node_report(&world->control, &report, &result, &error), &error);

	assert_int_equal(say_hello(&world->control, node.id, "boot-1", 1000, 0), 0);
	assert_int_equal(say_hello(&other, node.id, "boot-1", 1000, 0), 0);
	assert_int_equal(say_hello(&other, node.id, "boot-1", 2000, 0), 0);
	expect_ok(control_node_report(&world->control, &report, &result, &error), &error);
	assert_int_equal(result.acknowledged, report.sequence);
	expect_ok(control_node_heartbeat(&world->control, node.id, node.epoch, 0, &error), &error);
	labels = json_object_get(world_call(world, control_node_get, node.id, NULL), "labels");
	assert_int_equal(json_object_size(labels), 2);

	/* What was opened later counts, with whatever number: this node has lost its records. */
	assert_int_equal(say_hello(&other, node.id, "boot-1", 2001, 0), node.epoch + 1);
	/* A boot's clock begins anew, and a boot that ended is over. */
	assert_int_equal(say_hello(&other, node.id, "boot-2", 5, 0), node.epoch + 2);
	assert_int_equal(say_hello(&world->control, node.id, "boot-1", 3000, 0), 0);
	assert_int_equal(say_hello(&world->control, node.id, "boot-2", 4, 0), 0);
	/* Unless nobody has spoken for so long that nothing can be on its way any more: a machine
	 * that was put back to an earlier moment has its old clock. */
	database_advance(119999);
	assert_int_equal(say_hello(&world->control, node.id, "boot-2", 4, 0), 0);
	database_advance(1);
	assert_int_equal(say_hello(&world->control, node.id, "boot-2", 4, 0), node.epoch + 3);
	/* An older bcd doesn't say: the one heard last counts. */
	assert_int_equal(say_hello(&other, node.id, "boot-2", 0, 0), node.epoch + 4);
	assert_int_equal(say_hello(&other, node.id, "boot-2", 0, 0), node.epoch + 5);
	world_disconnect(&other);
}

/* proves: GW-27 GW-28 RES-48 */
static void test_silent_node_is_unreachable_and_its_conditions_stale(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_condition condition = {
		"PodResourcesUnavailable", "SocketMissing", "gone", {DATABASE_EPOCH_MS}};
	json_t *seen;

	world_ready(world, &node, 2);
	world_conditions(world, &node, &condition, 1);
	database_advance(29999);
	assert_true(world_int(world_call(world, control_node_get, node.id, NULL), "connected"));
	database_advance(1);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_false(world_int(seen, "connected"));
	assert_false(world_has(seen, "conditions.0.stale"));
	database_advance(30000);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_true(world_int(seen, "conditions.0.stale"));
	assert_string_equal(world_text(seen, "state"), "ready");
	world_heartbeat(world, &node);
	assert_true(world_int(world_call(world, control_node_get, node.id, NULL), "connected"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_node_goes_from_joining_to_ready),
		WORLD_TEST(test_newer_hello_makes_the_older_stream_void),
		WORLD_TEST(test_a_retired_node_is_heard_no_more),
		WORLD_TEST(test_a_late_hello_changes_nothing),
		WORLD_TEST(test_silent_node_is_unreachable_and_its_conditions_stale),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
