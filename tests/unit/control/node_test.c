/* What nodes say, and what they are told. */
#include "unit/control/world.h"

#include <fcntl.h>
#include <unistd.h>

/* --- from joining to ready --- */

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

/* --- reports --- */

/* proves: GW-4 GW-5 GW-6 GW-13 GW-30 */
static void test_conditions_are_recorded_and_published_once_a_change(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_condition conditions[] = {
		{"ForeignGpuExposure", "OtherGpuPath", "close /etc/x", {DATABASE_EPOCH_MS - 5}},
		{"FlubberDetected", "Newer", "of a newer bcd", {DATABASE_EPOCH_MS}},
	};
	json_t *seen;

	world_ready(world, &node, 1);
	world_conditions(world, &node, conditions, 2);
	assert_int_equal(world_count_events(world, "node.condition.changed", node.id), 2);
	world_conditions(world, &node, conditions, 2);
	assert_int_equal(world_count_events(world, "node.condition.changed", node.id), 2);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "conditions.0.type"), "FlubberDetected");
	assert_false(world_int(seen, "conditions.0.noSchedule"));
	assert_string_equal(world_text(seen, "conditions.1.reason"), "OtherGpuPath");
	assert_string_equal(world_text(seen, "conditions.1.message"), "close /etc/x");
	assert_true(world_int(seen, "conditions.1.noSchedule"));
	assert_string_equal(world_text(seen, "conditions.1.since"), "2027-01-15T07:59:59.995Z");

	conditions[0].message = "close /etc/y";
	world_conditions(world, &node, conditions, 2);
	assert_int_equal(world_count_events(world, "node.condition.changed", node.id), 3);
	world_conditions(world, &node, NULL, 0);
	assert_int_equal(world_count_events(world, "node.condition.changed", node.id), 5);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(json_array_size(json_object_get(seen, "conditions")), 0);
}

/* Logged when it comes, and not again while it stays. proves: GW-30 */
static void test_unknown_condition_is_logged_once(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_condition condition = {"FlubberDetected", "Newer", "", {1}};
	int captured = open("/tmp", O_TMPFILE | O_RDWR, 0600), saved = dup(STDERR_FILENO);
	char text[4096];
	ssize_t length;
	const char *at;

	world_ready(world, &node, 1);
	assert_true(captured >= 0 && saved >= 0);
	dup2(captured, STDERR_FILENO);
	world_conditions(world, &node, &condition, 1);
	condition.message = "other words";
	world_conditions(world, &node, &condition, 1);
	dup2(saved, STDERR_FILENO);
	length = pread(captured, text, sizeof text - 1, 0);
	close(saved);
	close(captured);
	assert_true(length >= 0);
	text[length] = '\0';
	at = strstr(text, "FlubberDetected");
	assert_non_null(at);
	assert_null(strstr(at + 1, "FlubberDetected"));
	assert_non_null(strstr(text, node.id));
}

/* proves: GW-17 GW-25 */
static void test_report_sent_again_has_its_effect_once(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_report report = {.kind = CONTROL_REPORT_CONDITIONS};
	struct control_condition condition = {"ForeignGpuExposure", "OtherGpuPath", "x", {1}};
	struct control_report_result result;
	struct error error;

	world_ready(world, &node, 1);
	report.node = node.id;
	report.epoch = node.epoch;
	report.sequence = node.sequence; /* acknowledged long ago */
	report.conditions.items = &condition;
	report.conditions.count = 1;
	expect_ok(control_node_report(&world->control, &report, &result, &error), &error);
	assert_int_equal(result.acknowledged, node.sequence);
	assert_false(result.look_again);
	assert_int_equal(world_count_events(world, "node.condition.changed", node.id), 0);
}

/* A node that lost its records counts from where it says it is, not from where we are. */
static void test_node_without_its_records_begins_again(void **state)
{
	struct world *world = *state;
	struct world_node node;

	world_ready(world, &node, 2);
	node.sequence = 0;
	node.generation = 0;
	world_hello(world, &node, NULL);
	node.gpus = 1;
	world_inventory(world, &node);
	assert_int_equal(json_array_size(json_object_get(
				 world_call(world, control_node_get, node.id, NULL), "gpus")),
			 1);
}

/* proves: RES-13 */
static void test_wrong_inventory_is_refused_whole_and_shown(void **state)
{
	static const struct {
		const char *uuid, *gpu, *atom, *class;
		int lo, hi, vcpus;
		const char *why;
	} wrong[] = {
		{"ffff", "ffff", "gpu/ffff", "gpu", 0, 1025, 0, "[0, 1025) is no part"},
		{"ffff", "ffff", "gpu/ffff", "gpu", 1024, 1024, 0, "[1024, 1024) is no part"},
		{"ffff", "ffff", "gpu/ffff", "gpu", -1, 1024, 0, "[-1, 1024) is no part"},
		{"ffff", "ffff", "gpu/ffff", "gpu", 0, 512, 0, "less than a whole GPU"},
		{"ffff", "ffff", "gpu/ffff", "gpu", 1, 1024, 0, "less than a whole GPU"},
		{"ffff", "ffff", "gpu/ffff", "gpu.whole", 0, 1024, 0, "unknown class"},
		{"ffff", "eeee", "gpu/eeee", "gpu", 0, 1024, 0, "isn't listed"},
		{"ffff", "ffff", "ffff", "gpu", 0, 1024, 0, "is no gpu of GPU 'ffff'"},
		{"ffff", "ffff", "gpu/ffffffff", "gpu", 0, 1024, 0, "is no gpu of GPU"},
		{"ffff", "ffff", "gpu/ffff/s1", "gpu", 0, 1024, 0, "is no gpu of GPU"},
		{"ffff", "ffff", "gpu/ffff", "gpu.slot", 0, 256, 0, "is no gpu.slot of GPU"},
		{"ffff", "ffff", "gpu/ffffa/s1", "gpu.slot", 0, 256, 0, "is no gpu.slot of GPU"},
		{"ffff", "ffff", "gpu/ffff/s1", "gpu.mig", 0, 256, 0, "is no gpu.mig of GPU"},
		{"FFFF\n", "ffff", "gpu/ffff", "gpu", 0, 1024, 0, "is no GPU's uuid"},
		{"ffff", "ffff", "gpu/ffff", "gpu", 0, 1024, -1, "negative vCPUs"},
	};
	struct world *world = *state;
	struct world_node node;
	json_t *seen;

	world_ready(world, &node, 2);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct control_gpu gpu = {
			.uuid = wrong[i].uuid, .model = "H100", .pci = "", .health = {true, ""}};
		struct control_atom atom = {
			.atom = wrong[i].atom,
			.class = wrong[i].class,
			.gpu = wrong[i].gpu,
			.profile = "",
			.visible_device = "GPU-ffff",
			.leaf_lo = wrong[i].lo,
			.leaf_hi = wrong[i].hi,
			.health = {true, ""},
		};
		struct control_report report = {
			.kind = CONTROL_REPORT_INVENTORY,
			.inventory = {.vcpus = wrong[i].vcpus,
				      .gpus = &gpu,
				      .gpus_count = 1,
				      .atoms = &atom,
				      .atoms_count = 1},
		};

		world_report(world, &node, report);
		seen = world_call(world, control_node_get, node.id, NULL);
		assert_string_equal(world_text(seen, "conditions.0.type"), "InventoryRefused");
		if (!strstr(world_text(seen, "conditions.0.message"), wrong[i].why))
			fail_msg("%s: not '%s'", world_text(seen, "conditions.0.message"),
				 wrong[i].why);
		assert_int_equal(json_array_size(json_object_get(seen, "gpus")), 2);
		assert_int_equal(json_array_size(json_object_get(seen, "devices")), 2);
	}
	/* The next set of conditions leaves it, the next good inventory clears it. */
	world_conditions(world, &node, NULL, 0);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(json_array_size(json_object_get(seen, "conditions")), 1);
	world_inventory(world, &node);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(json_array_size(json_object_get(seen, "conditions")), 0);
}

/* A card that fell off the bus is still booked, and shows.
 * proves: RES-39 */
static void test_booked_devices_that_are_gone_are_listed(void **state)
{
	struct world *world = *state;
	struct world_node node;
	const char *allocation;
	json_t *reservation, *seen;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 2);
	allocation = world_text(reservation, "allocations.0.id");
	world_bind(world, &node, allocation);
	node.gpus = 1;
	world_inventory(world, &node);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(json_array_size(json_object_get(seen, "gpus")), 1);
	assert_int_equal(json_array_size(json_object_get(seen, "devices")), 2);
	assert_false(world_has(seen, "devices.0.cause"));
	assert_string_equal(world_text(seen, "devices.1.cause"), "gone");
	assert_string_equal(world_text(seen, "devices.1.gpu"), node.uuids[1]);
	assert_string_equal(world_text(seen, "devices.1.allocationId"), allocation);
	node.gpus = 2;
	world_inventory(world, &node);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(json_array_size(json_object_get(seen, "devices")), 2);
	assert_false(world_has(seen, "devices.1.cause"));
}

static void test_bytes_that_are_no_text_are_cleaned_and_cut(void **state)
{
	struct world *world = *state;
	struct world_node node;
	char message[3000];
	struct control_condition condition = {"Odd\xff", "Reason", message, {1}};
	json_t *seen;

	memset(message, 'x', sizeof message - 1);
	message[sizeof message - 1] = '\0';
	memcpy(message + 1022, "\xe2\x80\xa6", 3); /* across the bound */
	world_ready(world, &node, 1);
	world_conditions(world, &node, &condition, 1);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "conditions.0.type"), "Odd\xef\xbf\xbd");
	assert_in_range(strlen(world_text(seen, "conditions.0.message")), 1020, 1030);
}

/* --- what nodes are told --- */

/* proves: RES-8 RES-9 RES-10 RES-11 RES-44 GW-3 */
static void test_old_bcd_never_gets_what_it_does_not_know(void **state)
{
	static const char *const none[] = {NULL};
	static const char *const binding_only[] = {"kubernetes-binding", NULL};
	struct world *world = *state;
	struct world_node old, new;
	struct control_spec spec;
	json_t *reservation, *limited;

	world_ready(world, &old, 2);
	world_hello(world, &old, none);
	reservation = world_reserve(world, 2);
	assert_string_equal(world_text(reservation, "state"), "pending");
	assert_string_equal(world_text(reservation, "reasons.0.reason"),
			    "KubernetesBindingUnsupported");
	world_ready(world, &new, 2);
	world_hello(world, &new, binding_only);
	world_tick(world);
	reservation = world_reservation(world, world_text(reservation, "id"));
	assert_string_equal(world_text(reservation, "allocations.0.nodeId"), new.id);
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);

	limited = world_call(world, control_reservation_create, NULL,
			     "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
			     "\"gpu\",\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\","
			     "\"resources\":{\"vcpu\":10,\"memoryGiB\":20}}",
			     world->tenant, world->pool);
	assert_string_equal(world_text(limited, "state"), "pending");
	assert_true(world_has(limited, "reasons.1"));
	world_hello(world, &new, NULL);
	world_tick(world);
	limited = world_reservation(world, world_text(limited, "id"));
	assert_string_equal(world_text(limited, "state"), "placed");
	assert_int_equal(world_int(limited, "resources.vcpu"), 10);
	world_take_spec(world, &new, &spec);
	assert_int_equal(spec.assignments_count, 1);
	assert_true(spec.assignments[0].limited);
	assert_int_equal(spec.assignments[0].vcpus, 10);
	assert_true(spec.assignments[0].memory_bytes == (int64_t)20 << 30);
	control_spec_deinit(&spec);
	/* Downgraded, it is sent neither. */
	world_hello(world, &new, binding_only);
	world_take_spec(world, &new, &spec);
	assert_int_equal(spec.assignments_count, 0);
	control_spec_deinit(&spec);
}

/* proves: RES-14 GW-12 */
static void test_conditions_keep_work_away(void **state)
{
	static const char *const types[] = {"ForeignGpuExposure", "KubernetesReleaseStuck",
					    "PodResourcesUnavailable",
					    "KubernetesReleasesUnreadable"};
	struct world *world = *state;
	struct world_node node;

	world_ready(world, &node, 2);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct control_condition condition = {types[i], "Reason", "", {1}};
		json_t *reservation;

		world_conditions(world, &node, &condition, 1);
		reservation = world_reserve(world, 1);
		assert_string_equal(world_text(reservation, "state"), "pending");
		assert_string_equal(world_text(reservation, "reasons.0.reason"), types[i]);
		world_call(world, control_reservation_cancel, world_text(reservation, "id"), NULL);
	}
	world_conditions(world, &node, NULL, 0);
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "placed");
}

/* The outbox tells of each change, in order, to whoever asks, whichever replica made it. */
static void test_outbox_tells_every_replica(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control other;
	struct control_outbox outbox = {0};
	json_t *reservation;
	int64_t generation;
	struct error error;

	world_ready(world, &node, 2);
	world_connect(world, "replica-2", &other);
	expect_ok(control_outbox_poll(&other, -1, &outbox, &error), &error);
	assert_int_equal(outbox.count, 0);
	reservation = world_reserve(world, 1);
	int64_t after = outbox.last;

	expect_ok(control_outbox_poll(&other, after, &outbox, &error), &error);
	assert_int_equal(outbox.count, 1);
	assert_string_equal(outbox.items[0].node, node.id);
	assert_int_equal(outbox.last, outbox.items[0].seq);
	generation = outbox.items[0].generation;
	after = outbox.last;
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	expect_ok(control_outbox_poll(&other, after, &outbox, &error), &error);
	assert_int_equal(outbox.count, 1);
	assert_true(outbox.items[0].generation > generation);
	expect_ok(control_outbox_poll(&other, outbox.last, &outbox, &error), &error);
	assert_int_equal(outbox.count, 0);
	control_outbox_deinit(&outbox);
	world_disconnect(&other);
}

/* A change of the pool's API is a new Spec for each of its nodes. */
static void test_policy_reaches_the_nodes(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_spec spec;
	int64_t before;

	world_ready(world, &node, 1);
	world_take_spec(world, &node, &spec);
	before = spec.generation;
	control_spec_deinit(&spec);
	world_call(world, control_pool_patch, world->pool,
		   "{\"policy\":{\"kubernetes\":{\"gpuApi\":\"dra\"}}}");
	world_take_spec(world, &node, &spec);
	assert_string_equal(spec.gpu_api, "dra");
	assert_true(spec.generation > before);
	control_spec_deinit(&spec);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_node_goes_from_joining_to_ready),
		WORLD_TEST(test_newer_hello_makes_the_older_stream_void),
		WORLD_TEST(test_a_late_hello_changes_nothing),
		WORLD_TEST(test_silent_node_is_unreachable_and_its_conditions_stale),
		WORLD_TEST(test_conditions_are_recorded_and_published_once_a_change),
		WORLD_TEST(test_unknown_condition_is_logged_once),
		WORLD_TEST(test_report_sent_again_has_its_effect_once),
		WORLD_TEST(test_node_without_its_records_begins_again),
		WORLD_TEST(test_wrong_inventory_is_refused_whole_and_shown),
		WORLD_TEST(test_booked_devices_that_are_gone_are_listed),
		WORLD_TEST(test_bytes_that_are_no_text_are_cleaned_and_cut),
		WORLD_TEST(test_old_bcd_never_gets_what_it_does_not_know),
		WORLD_TEST(test_conditions_keep_work_away),
		WORLD_TEST(test_outbox_tells_every_replica),
		WORLD_TEST(test_policy_reaches_the_nodes),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
