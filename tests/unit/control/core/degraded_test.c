#include "control/core/degraded.h"

#include "control/core/stuck.h"
#include "lib/test.h"

#define NOW ((struct wall){600000})

static const char *text_at(const json_t *conditions, size_t index, const char *field)
{
	return json_string_value(json_object_get(json_array_get(conditions, index), field));
}

static const char *cause_at(const json_t *conditions, size_t index, const char *field)
{
	const json_t *causes = json_object_get(json_array_get(conditions, 0), "causes");

	return json_string_value(json_object_get(json_array_get(causes, index), field));
}

static void test_nothing_wrong_is_no_condition(void **state)
{
	struct degraded_device device = {"gpu/a", true, "", 0};
	struct degraded_allocation allocation = {
		.node = "node_1", .bound = true, .devices = &device, .devices_count = 1};
	json_t *conditions = degraded_conditions(&allocation, 1, NOW);

	(void)state;
	assert_int_equal(json_array_size(conditions), 0);
	json_decref(conditions);
	/* Nor is trouble on a node where nothing is bound any more. */
	allocation.bound = false;
	allocation.unreachable = allocation.foreign_exposure = true;
	device.healthy = false;
	conditions = degraded_conditions(&allocation, 1, NOW);
	assert_int_equal(json_array_size(conditions), 0);
	json_decref(conditions);
}

/* proves: RES-21 */
static void test_held_devices_name_their_nodes_since_the_release(void **state)
{
	struct degraded_allocation allocations[] = {
		{.id = "alc_1", .node = "node_1", .releasing = true, .releasing_since_ms = 2000},
		{.id = "alc_2", .node = "node_2", .releasing = true, .releasing_since_ms = 1000},
		{.node = "node_3"},
	};
	json_t *conditions = degraded_conditions(allocations, 3, NOW);

	(void)state;
	assert_int_equal(json_array_size(conditions), 1);
	assert_string_equal(text_at(conditions, 0, "type"), "DevicesHeld");
	assert_string_equal(text_at(conditions, 0, "reason"), "PodsHoldDevices");
	assert_string_equal(text_at(conditions, 0, "since"), "1970-01-01T00:00:01.000Z");
	assert_non_null(strstr(text_at(conditions, 0, "message"), "node_1 has yet to say"));
	assert_non_null(strstr(text_at(conditions, 0, "message"), " node_2 has yet to say"));
	assert_null(strstr(text_at(conditions, 0, "message"), "node_3"));
	json_decref(conditions);
}

/* Who holds them, since when, and what ends it when nobody says anything. proves: RES-21 */
static void test_held_devices_say_what_happens_next(void **state)
{
	static const char latest[] =
		"Should node_1 never say that nobody holds the devices, they are free at "
		"1970-01-02 00:10 UTC, a day after the booking's own end.";
	static const struct {
		const char *message, *next;
	} expected[] = {
		{"node_1 has yet to say that no pod holds a device.", latest},
		{"node_1 says: pod a/b holds it.", latest},
		{"node_1 says: pod a/b holds it. Somebody has the devices next: they are handed on "
		 "at 1970-01-01 00:16 UTC whatever the node says.",
		 NULL},
		{"node_1 has not been heard of since 1970-01-01 00:05 UTC. The devices stay booked "
		 "until it is back, or declared lost: better-compute nodes retire node_1 --lost.",
		 NULL},
		{"node_1 has yet to say that no pod holds a device. It never said that it bound "
		 "them: they are free once it has heard of the end, at the earliest at "
		 "1970-01-01 00:11 UTC.",
		 NULL},
		/* somebody has them next, but later than that */
		{"node_1 has yet to say that no pod holds a device. It never said that it bound "
		 "them: they are free once it has heard of the end, at the earliest at "
		 "1970-01-01 00:11 UTC.",
		 NULL},
	};
	struct degraded_allocation one = {.id = "alc_1",
					  .node = "node_1",
					  .releasing = true,
					  .releasing_since_ms = 60000,
					  .was_bound = true,
					  .own_end_ms = 600000,
					  .unreachable_since_ms = 300000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct degraded_allocation told = one;
		json_t *conditions;

		told.stuck = i == 1 || i == 2 ? "pod a/b holds it" : NULL;
		told.handover_ms = i == 2 || i == 5 ? 960000 : 0;
		told.unreachable = i == 3;
		told.was_bound = i < 4;
		conditions = degraded_conditions(&told, 1, NOW);
		assert_string_equal(text_at(conditions, 0, "message"), expected[i].message);
		if (expected[i].next)
			assert_string_equal(text_at(conditions, 0, "next"), expected[i].next);
		else
			assert_null(text_at(conditions, 0, "next"));
		json_decref(conditions);
	}
}

/* A node tells of all its releases: a reservation hears of its own, and not of another's pods.
 * proves: RES-21 */
static void test_held_devices_are_told_of_their_own(void **state)
{
	static const struct {
		const char *said, *told;
	} cases[] = {
		{"alc_1: held by a/b (gpu/x)", "node_1 says: held by a/b (gpu/x)."},
		{"alc_2: held by c/d; alc_1: held by a/b; alc_3: held by e/f",
		 "node_1 says: held by a/b."},
		{"alc_2: held by c/d; and 3 more", "node_1 has yet to say "},
		{"alc_11: held by c/d", "node_1 has yet to say "},
		{"the kubelet doesn't answer", "node_1 says: the kubelet doesn't answer."},
	};
	struct degraded_allocation one = {
		.id = "alc_1", .node = "node_1", .releasing = true, .was_bound = true};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *conditions;
		const char *message;

		one.stuck = cases[i].said;
		conditions = degraded_conditions(&one, 1, NOW);
		message = text_at(conditions, 0, "message");
		assert_int_equal(strncmp(message, cases[i].told, strlen(cases[i].told)), 0);
		json_decref(conditions);
	}
}

/* Of the fourth on the names alone. */
static void test_many_nodes_are_named(void **state)
{
	struct degraded_allocation many[5] = {0};
	static const char *const NODES[] = {"node_1", "node_2", "node_3", "node_4", "node_5"};
	json_t *conditions;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct degraded_allocation){
			.id = "alc_1", .node = NODES[i], .releasing = true};
	conditions = degraded_conditions(many, ARRAY_SIZE(many), NOW);
	assert_non_null(strstr(text_at(conditions, 0, "message"), ". Likewise: node_4, node_5."));
	json_decref(conditions);
}

/* It is no trouble that anybody knows of: Degraded is something else. */
static void test_what_no_kubelet_confirms_is_said_so(void **state)
{
	struct degraded_device device = {"gpu/a", false, "XID 48", 40};
	struct degraded_allocation allocations[] = {
		{.node = "node_1",
		 .bound = true,
		 .unconfirmed = true,
		 .unconfirmed_since_ms = 3000},
		{.node = "node_2", .bound = true, .devices = &device, .devices_count = 1},
		{.id = "alc_3", .node = "node_3", .releasing = true, .unconfirmed = true},
	};
	json_t *conditions = degraded_conditions(allocations, 3, NOW);

	(void)state;
	assert_int_equal(json_array_size(conditions), 3);
	assert_string_equal(text_at(conditions, 1, "type"), "Degraded");
	assert_string_equal(text_at(conditions, 1, "reason"), "AtomUnhealthy");
	assert_string_equal(text_at(conditions, 2, "type"), "Unconfirmed");
	assert_string_equal(text_at(conditions, 2, "reason"), "PodResourcesUnavailable");
	assert_string_equal(text_at(conditions, 2, "since"), "1970-01-01T00:00:03.000Z");
	assert_non_null(strstr(text_at(conditions, 2, "message"), "bound on node_1"));
	assert_null(strstr(text_at(conditions, 2, "message"), "node_3"));
	json_decref(conditions);
}

/* proves: RES-37 RES-38 RES-47 */
static void test_causes_come_in_their_order(void **state)
{
	struct degraded_device devices[] = {{"gpu/b", false, "XID 48", 40},
					    {"gpu/a", false, "", 50}};
	struct degraded_allocation allocations[] = {
		{.node = "node_2",
		 .bound = true,
		 .unreachable = true,
		 .unreachable_since_ms = 30,
		 .devices = devices,
		 .devices_count = 2},
		{.node = "node_1",
		 .bound = true,
		 .foreign_exposure = true,
		 .foreign_since_ms = 20,
		 .devices = devices,
		 .devices_count = 1},
		{.node = "node_3",
		 .bound = true,
		 .lost_reason = "unknown-device",
		 .lost_since_ms = 10},
	};
	static const struct {
		const char *reason, *node, *device;
	} wanted[] = {
		{"BindingLost", "node_3", NULL},      {"ForeignGpuExposure", "node_1", NULL},
		{"NodeUnreachable", "node_2", NULL},  {"AtomUnhealthy", "node_1", "gpu/b"},
		{"AtomUnhealthy", "node_2", "gpu/a"}, {"AtomUnhealthy", "node_2", "gpu/b"},
	};
	json_t *conditions = degraded_conditions(allocations, 3, NOW);

	(void)state;
	assert_int_equal(json_array_size(conditions), 1);
	assert_string_equal(text_at(conditions, 0, "type"), "Degraded");
	assert_string_equal(text_at(conditions, 0, "reason"), "BindingLost");
	assert_string_equal(text_at(conditions, 0, "since"), "1970-01-01T00:00:00.010Z");
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		assert_string_equal(cause_at(conditions, i, "reason"), wanted[i].reason);
		assert_string_equal(cause_at(conditions, i, "node"), wanted[i].node);
		if (wanted[i].device)
			assert_string_equal(cause_at(conditions, i, "device"), wanted[i].device);
		else
			assert_null(cause_at(conditions, i, "device"));
	}
	assert_null(cause_at(conditions, ARRAY_SIZE(wanted), "reason"));
	assert_string_equal(cause_at(conditions, 1, "message"),
			    "GPUs exposed outside bcd on node_1");
	assert_string_equal(cause_at(conditions, 5, "message"), "gpu/b on node_2: XID 48");
	json_decref(conditions);
}

/* Whoever reads the headline reads of every device it is about. proves: RES-35 */
static void test_all_lost_devices_are_named(void **state)
{
	struct degraded_device devices[] = {{"gpu/d", false, "gone", 40},
					    {"gpu/a", false, "gone", 40},
					    {"gpu/c", false, "gone", 40},
					    {"gpu/b", false, "XID 48", 50},
					    {"gpu/e", true, "", 0}};
	struct degraded_allocation one = {
		.node = "node_1", .bound = true, .devices = devices, .devices_count = 2};
	json_t *conditions = degraded_conditions(&one, 1, NOW);

	(void)state;
	assert_string_equal(text_at(conditions, 0, "message"),
			    "gpu/a on node_1: gone; gpu/d on node_1: gone");
	json_decref(conditions);
	one.devices_count = ARRAY_SIZE(devices);
	one.foreign_exposure = true;
	conditions = degraded_conditions(&one, 1, NOW);
	assert_string_equal(text_at(conditions, 0, "message"),
			    "GPUs exposed outside bcd on node_1");
	json_decref(conditions);
	one.foreign_exposure = false;
	conditions = degraded_conditions(&one, 1, NOW);
	assert_string_equal(text_at(conditions, 0, "message"),
			    "gpu/a on node_1: gone; gpu/b on node_1: XID 48; "
			    "gpu/c on node_1: gone; and 1 more");
	json_decref(conditions);
}

/* Over, and yet nobody knows whether the devices are free: it is no release like another. */
static void test_release_without_the_nodes_word_is_said_so(void **state)
{
	struct degraded_allocation many[] = {
		{.node = "node_1", .given_up = STUCK_BOOKED_NEXT, .given_up_ms = 5000},
		{.node = "node_2"},
		{.node = "node_3", .given_up = STUCK_BOOKED_NEXT, .given_up_ms = 6000},
	};
	struct degraded_allocation late = {
		.node = "node_1", .given_up = STUCK_CARRIED_TOO_LONG, .given_up_ms = 5000};
	json_t *conditions = degraded_conditions(many, ARRAY_SIZE(many), NOW);

	(void)state;
	assert_int_equal(json_array_size(conditions), 1);
	assert_string_equal(text_at(conditions, 0, "type"), "ReleaseUnconfirmed");
	assert_string_equal(text_at(conditions, 0, "reason"), "BookedNext");
	assert_string_equal(text_at(conditions, 0, "since"), "1970-01-01T00:00:05.000Z");
	assert_string_equal(text_at(conditions, 0, "message"),
			    "node_1, node_3 never said that no pod holds the devices: the release "
			    "was ended because somebody had booked them next");
	json_decref(conditions);
	conditions = degraded_conditions(&late, 1, NOW);
	assert_string_equal(
		text_at(conditions, 0, "message"),
		"node_1 never said that no pod holds the devices: the release was ended "
		"a day after the booking's own end");
	json_decref(conditions);
}

/* Of a booking whose time has come it is told what keeps it waiting. */
static void test_placed_past_its_start_says_why(void **state)
{
	static const struct {
		int64_t due_ms;
		bool taken, unreachable;
		const char *unready, *reason, *message;
	} cases[] = {
		{600001, true, false, NULL, NULL, NULL},
		{600000 - DEGRADED_BIND_MS + 1, false, true, "x", NULL, NULL},
		{600000, true, false, "alc_1: held by a/b", "DevicesHeld",
		 "node_1 hasn't got the devices back from the booking before (it says: alc_1: "
		 "held by a/b)"},
		{600000, true, true, NULL, "DevicesHeld",
		 "node_1 hasn't got the devices back from the booking before, and has not been "
		 "heard of since 1970-01-01 00:05 UTC"},
		{600000 - DEGRADED_BIND_MS, false, true, "x", "NodeUnreachable",
		 "node_1 has not been heard of since 1970-01-01 00:05 UTC"},
		{600000 - DEGRADED_BIND_MS, false, false, "no kubelet", "NodeNotBound",
		 "node_1 has yet to bind the devices (it says: no kubelet)"},
		{600000 - DEGRADED_BIND_MS, false, false, NULL, "NodeNotBound",
		 "node_1 has yet to bind the devices"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct degraded_allocation one = {.node = "node_1",
						  .due_ms = cases[i].due_ms,
						  .taken = cases[i].taken,
						  .unreachable = cases[i].unreachable,
						  .unreachable_since_ms = 300000,
						  .unready = cases[i].unready};
		json_t *conditions = degraded_conditions(&one, 1, NOW);

		assert_int_equal(json_array_size(conditions), cases[i].reason ? 1 : 0);
		if (cases[i].reason) {
			assert_string_equal(text_at(conditions, 0, "type"), "Waiting");
			assert_string_equal(text_at(conditions, 0, "reason"), cases[i].reason);
			assert_string_equal(text_at(conditions, 0, "message"), cases[i].message);
		}
		json_decref(conditions);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_wrong_is_no_condition),
		cmocka_unit_test(test_held_devices_name_their_nodes_since_the_release),
		cmocka_unit_test(test_held_devices_say_what_happens_next),
		cmocka_unit_test(test_held_devices_are_told_of_their_own),
		cmocka_unit_test(test_many_nodes_are_named),
		cmocka_unit_test(test_what_no_kubelet_confirms_is_said_so),
		cmocka_unit_test(test_causes_come_in_their_order),
		cmocka_unit_test(test_all_lost_devices_are_named),
		cmocka_unit_test(test_release_without_the_nodes_word_is_said_so),
		cmocka_unit_test(test_placed_past_its_start_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
