/* What nodes say. */
#include "unit/control/world.h"

#include <fcntl.h>
#include <unistd.h>

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

/* It can give no number to what it says, and takes none from what waits. proves: GW-4 */
static void test_node_that_records_nothing_says_what_is_wrong(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_condition condition = {
		"RecordsUnwritable", "RecordFileFailing", "no space left", {1}};
	struct control_report report = {.kind = CONTROL_REPORT_CONDITIONS};
	struct control_report_result result;
	struct error error;

	world_ready(world, &node, 1);
	report.node = node.id;
	report.epoch = node.epoch;
	report.conditions.items = &condition;
	report.conditions.count = 1;
	expect_ok(control_node_report(&world->control, &report, &result, &error), &error);
	assert_int_equal(result.acknowledged, node.sequence);
	json_t *seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "conditions.0.message"), "no space left");
	assert_true(world_int(seen, "conditions.0.noSchedule"));
	world_conditions(world, &node, NULL, 0); /* by the next number */
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(json_array_size(json_object_get(seen, "conditions")), 0);
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

/* The database was put back as it was: the node has a Spec that nobody here knows, and takes only what is
 * numbered above it. What no bcd could have counted to is its own affair. */
static void test_node_that_is_ahead_is_numbered_above(void **state)
{
	struct world *world = *state;
	struct control_spec spec = {0};
	struct world_node node;
	int64_t sent;

	world_ready(world, &node, 2);
	world_store_spec(world, &node);
	sent = node.generation;
	node.generation = sent + 7;
	world_hello(world, &node, NULL);
	world_take_spec(world, &node, &spec);
	assert_int_equal(spec.generation, sent + 8);
	control_spec_deinit(&spec);
	/* It is said once, and one that has what it was sent changes nothing. */
	world_hello(world, &node, NULL);
	world_take_spec(world, &node, &spec);
	assert_int_equal(spec.generation, sent + 8);
	control_spec_deinit(&spec);
	node.generation = INT64_MAX;
	world_hello(world, &node, NULL);
	world_take_spec(world, &node, &spec);
	assert_int_equal(spec.generation, sent + 8);
	control_spec_deinit(&spec);
}

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
	reservation = world_reservation(world, world_text(reservation, "id"));
	assert_string_equal(world_text(reservation, "state"), "active");
	assert_string_equal(world_text(reservation, "conditions.0.type"), "Degraded");
	node.gpus = 2;
	world_inventory(world, &node);
	assert_false(
		world_has(world_reservation(world, world_text(reservation, "id")), "conditions.0"));
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_conditions_are_recorded_and_published_once_a_change),
		WORLD_TEST(test_unknown_condition_is_logged_once),
		WORLD_TEST(test_report_sent_again_has_its_effect_once),
		WORLD_TEST(test_node_that_records_nothing_says_what_is_wrong),
		WORLD_TEST(test_node_without_its_records_begins_again),
		WORLD_TEST(test_node_that_is_ahead_is_numbered_above),
		WORLD_TEST(test_wrong_inventory_is_refused_whole_and_shown),
		WORLD_TEST(test_booked_devices_that_are_gone_are_listed),
		WORLD_TEST(test_bytes_that_are_no_text_are_cleaned_and_cut),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
