#include "cli/booking.h"
#include "cli/noun.h"
#include "cli/pages.h"
#include "cli/view.h"
#include "lib/test.h"

#define ID_TAIL "01kb7s4x5n000000000000000a"

static json_t *tree(const char *text)
{
	struct error error = {0};
	json_t *root = NULL;

	expect_ok(tree_parse(text, strlen(text), 1 << 20, "test", &root, &error), &error);
	return root;
}

static void test_devices_and_gpus(void **state)
{
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(tree)
	json_t *devices = tree("[{\"class\":\"gpu\",\"count\":1},"
			       "{\"class\":\"gpu.mig\",\"profile\":\"1g.10gb\","
			       "\"count\":2}]");
	CLEANUP(tree)
	json_t *node = tree("{\"simulated\":true,\"gpus\":[{\"model\":\"NVIDIA H100 80GB HBM3\"},"
			    "{\"model\":\"A100\"},{\"model\":\"NVIDIA H100 80GB HBM3\"}]}");

	(void)state;
	assert_string_equal(view_devices(&arena, devices), "1 gpu + 2 gpu.mig 1g.10gb");
	assert_string_equal(view_gpus(&arena, node), "2 × H100, 1 × A100 simulated");
	assert_string_equal(view_atom(&arena, "gpu/6f1c0000-aaaa-bbbb-cccc-000000000001/gi3/ci0"),
			    "gpu/6f1c0000…/gi3/ci0");
}

static void test_what_is_over(void **state)
{
	static const struct {
		const char *item;
		bool over;
	} cases[] = {
		{"{}", false},
		{"{\"state\":\"active\"}", false},
		{"{\"state\":\"draining\"}", false},
		{"{\"state\":\"released\"}", true},
		{"{\"state\":\"archived\"}", true},
		{"{\"state\":\"retired\"}", true},
		{"{\"state\":\"revoked\"}", true},
		{"{\"revokedAt\":\"2026-11-30T02:00:00.000Z\"}", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(tree) json_t *item = tree(cases[i].item);

		assert_int_equal(view_over(item), cases[i].over);
	}
}

static void test_bookings(void **state)
{
	static const struct {
		const char *reservation, *text;
	} cases[] = {
		{"{\"devices\":[{\"class\":\"gpu\",\"count\":2}]}", "2 gpu"},
		{"{\"devices\":[{\"class\":\"gpu\",\"count\":8}],\"gang\":{\"nodes\":3}}",
		 "3 × 8 gpu"},
		{"{\"devices\":[{\"class\":\"gpu\",\"count\":1},{\"class\":\"gpu.slot\",\"count\":"
		 "2}],"
		 "\"gang\":{\"nodes\":2},\"spot\":true}",
		 "2 × (1 gpu + 2 gpu.slot), spot"},
		{"{\"devices\":[{\"class\":\"gpu\",\"count\":2}],\"spot\":false}", "2 gpu"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(arena) struct arena arena = {0};
		CLEANUP(tree) json_t *reservation = tree(cases[i].reservation);
		assert_string_equal(view_booking(&arena, reservation), cases[i].text);
	}
}

static void test_quotas_and_maps(void **state)
{
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(tree)
	json_t *quota = tree("{\"maxDevices\":16,\"used\":{\"devices\":6,\"gpuSeconds\":5400}}");
	CLEANUP(tree) json_t *hours = tree("{\"gpuHoursPerMonth\":100}");
	CLEANUP(tree) json_t *map = tree("{\"a\":\"1\",\"b\":\"2\"}");

	(void)state;
	assert_string_equal(view_quota_devices(&arena, quota), "6 of 16");
	assert_null(view_quota_hours(&arena, quota));
	assert_null(view_quota_devices(&arena, hours));
	assert_string_equal(view_quota_hours(&arena, hours), "0.00 of 100");
	assert_string_equal(view_hours(&arena, 5400), "1.50");
	assert_string_equal(view_map(&arena, map), "a=1, b=2");
	assert_null(view_map(&arena, json_object_get(map, "none")));
}

static void test_reasons_and_conditions(void **state)
{
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(tree)
	json_t *reasons = tree("[{\"reason\":\"DevicesBusy\",\"nodes\":9},"
			       "{\"reason\":\"Trust\",\"nodes\":[\"node_1\"]}]");
	CLEANUP(tree)
	json_t *held = tree("{\"state\":\"released\",\"conditions\":[{\"type\":"
			    "\"DevicesHeld\",\"message\":\"pod a/b holds 2\"}]}");
	CLEANUP(tree)
	json_t *hosted = tree("{\"conditions\":[{\"type\":\"HostUnsupported\"}]}");

	(void)state;
	CLEANUP(tree) json_t *asked = tree("[{\"class\":\"gpu\",\"count\":99}]");
	CLEANUP(tree)
	json_t *missing = tree("[{\"reason\":\"DeviceClassMissing\",\"nodes\":3,\"largest\":8}]");
	CLEANUP(tree)
	json_t *busy = tree("[{\"reason\":\"DevicesBusy\",\"nodes\":2,\"largest\":1}]");

	assert_string_equal(view_reasons(&arena, reasons, NULL),
			    "9 nodes: too few devices free in that time (DevicesBusy) · "
			    "1 node: Trust");
	assert_string_equal(view_reasons(&arena, missing, asked),
			    "no node has 99 GPUs; the largest has 8 (DeviceClassMissing)");
	assert_string_equal(view_reasons(&arena, busy, asked),
			    "2 nodes: too few devices free in that time, at most 1 on one node "
			    "(DevicesBusy)");
	CLEANUP(tree) json_t *spot = tree("[{\"reason\":\"SpotOnly\",\"nodes\":1}]");
	assert_string_equal(view_reasons(&arena, spot, asked),
			    "1 node: only for spot reservations, say --spot (SpotOnly)");
	assert_null(view_reasons(&arena, NULL, asked));
	assert_string_equal(view_conditions(&arena, json_object_get(held, "conditions")),
			    "DevicesHeld: pod a/b holds 2");
	assert_null(view_conditions(&arena, json_object_get(hosted, "conditions")));
	assert_true(view_has_condition(held, "DevicesHeld"));
	assert_false(view_has_condition(held, "Held"));
}

/* One booking may have been in several places; where it is, or was at last, is what counts. */
static void test_nodes_are_those_that_count(void **state)
{
	static const struct {
		const char *reservation, *nodes;
	} cases[] = {
		{"\"placed\",\"allocations\":[{\"state\":\"failed\",\"nodeId\":\"node_1\"},"
		 "{\"state\":\"placed\",\"nodeId\":\"node_1\"}]",
		 "node_1"},
		{"\"active\",\"allocations\":[{\"state\":\"failed\",\"nodeId\":\"node_1\"},"
		 "{\"state\":\"released\",\"nodeId\":\"node_2\"},"
		 "{\"state\":\"bound\",\"nodeId\":\"node_3\"},"
		 "{\"state\":\"bound\",\"nodeId\":\"node_3\"},"
		 "{\"state\":\"bound\",\"nodeId\":\"node_4\"}]",
		 "node_3 +1"},
		{"\"pending\",\"allocations\":[{\"state\":\"failed\",\"nodeId\":\"node_1\"}]",
		 NULL},
		{"\"released\",\"allocations\":[{\"state\":\"failed\",\"nodeId\":\"node_1\"},"
		 "{\"state\":\"released\",\"nodeId\":\"node_2\"}]",
		 "node_2"},
		{"\"failed\",\"allocations\":[{\"state\":\"failed\",\"nodeId\":\"node_1\"}]",
		 "node_1"},
		{"\"denied\",\"allocations\":[]", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(arena) struct arena arena = {0};
		CLEANUP(buf) struct buf text = {0};

		buf_printf(&text, "{\"state\":%s}", cases[i].reservation);
		CLEANUP(tree) json_t *reservation = tree(buf_text(&text));
		const char *nodes = view_nodes(&arena, reservation);

		if (cases[i].nodes)
			assert_string_equal(nodes, cases[i].nodes);
		else
			assert_null(nodes);
	}
}

static void test_starts_ends_and_sick_gpus(void **state)
{
	struct wall now = {INT64_C(1795995200000)}; /* 2026-11-29T23:33:20Z */
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(tree)
	json_t *later = tree("{\"state\":\"placed\",\"startAt\":\"2026-11-30T01:33:20.000Z\","
			     "\"endAt\":\"2026-11-30T03:33:20.000Z\"}");
	CLEANUP(tree)
	json_t *over = tree("{\"state\":\"released\",\"startAt\":\"2026-11-30T01:33:20.000Z\","
			    "\"releaseRequestedAt\":\"2026-11-29T23:32:00.000Z\","
			    "\"endAt\":\"2026-11-30T03:33:20.000Z\"}");
	CLEANUP(tree)
	json_t *node = tree("{\"gpus\":[{\"healthy\":true},{\"healthy\":false},"
			    "{\"healthy\":false}]}");

	(void)state;
	assert_string_equal(view_starts(&arena, later, now), "in 2 h");
	assert_string_equal(view_ends(&arena, later, now), "in 4 h");
	assert_string_equal(view_ends_exact(&arena, later), "2026-11-30 03:33 UTC");
	assert_null(view_starts(&arena, over, now));
	assert_true(view_start_is_ahead(later, now));
	assert_string_equal(view_ends_exact(&arena, over), "2026-11-29 23:32 UTC");
	assert_string_equal(view_sick_gpus(&arena, node), "2 GPUs unhealthy");
	assert_null(view_sick_gpus(&arena, later));
}

static void test_booked_devices_that_are_gone(void **state)
{
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(tree)
	json_t *node = tree("{\"devices\":[{\"healthy\":false,\"cause\":\"gone\","
			    "\"reservationId\":\"rsv_1\"},{\"healthy\":false,"
			    "\"cause\":\"XID 79\",\"reservationId\":\"rsv_1\"},"
			    "{\"healthy\":true}]}");

	(void)state;
	assert_string_equal(view_gone_devices(&arena, node), "1 booked device gone");
	json_array_remove(json_object_get(node, "devices"), 0);
	assert_null(view_gone_devices(&arena, node));
}

/* Placement stamps a start that is a moment later than the CLI's own start: that's no later booking. */
static void test_a_start_within_moments_is_now(void **state)
{
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(tree)
	json_t *placed = tree("{\"state\":\"placed\",\"startAt\":\"2026-11-29T23:33:20.000Z\"}");
	const struct wall start = {INT64_C(1795995200000)};

	(void)state;
	assert_null(view_starts(&arena, placed, start));
	assert_null(view_starts(&arena, placed, (struct wall){start.ms - 5000}));
	assert_string_equal(view_starts(&arena, placed, (struct wall){start.ms - 60000}),
			    "in 1 min");
}

static void test_when_waiting_is_over(void **state)
{
	static const struct {
		const char *reservation;
		bool active, released;
	} cases[] = {
		{"{\"state\":\"pending\"}", false, false},
		{"{\"state\":\"active\",\"allocations\":[{\"state\":\"bound\"}]}", true, false},
		{"{\"state\":\"released\",\"allocations\":[{\"state\":\"releasing\"}]}", false,
		 false},
		{"{\"state\":\"released\",\"allocations\":[{\"state\":\"released\"}],"
		 "\"conditions\":[{\"type\":\"DevicesHeld\"}]}",
		 false, false},
		{"{\"state\":\"released\",\"allocations\":[{\"state\":\"released\"},"
		 "{\"state\":\"failed\"}],\"conditions\":[]}",
		 false, true},
		{"{\"state\":\"expired\",\"allocations\":[]}", false, true},
		{"{\"state\":\"released\",\"allocations\":[{\"state\":\"released\"}],"
		 "\"conditions\":[{\"type\":\"ReleaseUnconfirmed\"}]}",
		 false, false},
		{"{}", false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(tree) json_t *reservation = tree(cases[i].reservation);
		assert_int_equal(booking_reached(reservation, BOOKING_ACTIVE), cases[i].active);
		assert_int_equal(booking_reached(reservation, BOOKING_RELEASED), cases[i].released);
	}
}

static void test_fields_lines(void **state)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree)
	json_t *object =
		tree("{\"id\":\"pool_1\",\"policy\":{\"kubernetes\":{\"gpuApi\":\"dra\"},"
		     "\"more\":{}},\"taints\":[\"a\",\"b\"],\"list\":[{\"x\":1},{\"x\":2}],"
		     "\"createdAt\":\"2026-11-29T23:33:20.000Z\",\"bad\":\"\\u001b[2J\"}");

	(void)state;
	view_fields(&text, object, (struct wall){INT64_C(1795995200000) + 60000}, 0);
	assert_string_equal(buf_text(&text),
			    "id                        pool_1\n"
			    "policy.kubernetes.gpuApi  dra\n"
			    "policy.more               {}\n"
			    "taints                    a, b\n"
			    "list[0].x                 1\n"
			    "list[1].x                 2\n"
			    "createdAt                 2026-11-29 23:33 UTC (1 min ago)\n"
			    "bad                       ?[2J\n");
}

static void test_names_and_prefixes(void **state)
{
	const struct noun *pools = noun_get(NOUN_POOL), *reservations = noun_get(NOUN_RESERVATION);
	CLEANUP(tree)
	json_t *items = tree("[{\"id\":\"pool_01kb7a\",\"name\":\"h100\"},"
			     "{\"id\":\"pool_01kb7b\",\"name\":\"a100\"},"
			     "{\"id\":\"pool_01kb8c\",\"name\":\"01kb7a\"}]");
	CLEANUP(tree) json_t *empty = tree("[]");
	struct error error = {0};
	const char *id;

	(void)state;
	expect_ok(noun_match(pools, items, "h100", &id, &error), &error);
	assert_string_equal(id, "pool_01kb7a");
	expect_ok(noun_match(pools, items, "pool_01kb8", &id, &error), &error);
	assert_string_equal(id, "pool_01kb8c");
	expect_ok(noun_match(pools, items, "pool_01kb8…", &id, &error), &error);
	expect_ok(noun_match(pools, items, "01kb7b", &id, &error), &error);
	assert_string_equal(id, "pool_01kb7b");
	/* A whole name wins over the beginning of another's id. */
	expect_ok(noun_match(pools, items, "01kb7a", &id, &error), &error);
	assert_string_equal(id, "pool_01kb8c");
	expect_error(noun_match(pools, items, "pool_01kb7", &id, &error), &error,
		     ERROR_INVALID_INPUT, "could be 2: pool_01kb7a, pool_01kb7b");
	expect_error(noun_match(pools, items, "h10", &id, &error), &error, ERROR_NOT_FOUND,
		     "pool 'h10' not found (did you mean 'h100'?)");
	/* A machine goes by its own name, and by that of its Node. */
	CLEANUP(tree)
	json_t *nodes = tree("[{\"id\":\"node_01kb7a\",\"hostname\":\"vm\","
			     "\"kubernetesNodeName\":\"gpu-17\"},"
			     "{\"id\":\"node_01kb7b\",\"hostname\":\"gpu-18\","
			     "\"kubernetesNodeName\":\"gpu-18\"}]");
	expect_ok(noun_match(noun_get(NOUN_NODE), nodes, "vm", &id, &error), &error);
	expect_ok(noun_match(noun_get(NOUN_NODE), nodes, "gpu-17", &id, &error), &error);
	assert_string_equal(id, "node_01kb7a");
	expect_ok(noun_match(noun_get(NOUN_NODE), nodes, "gpu-18", &id, &error), &error);
	assert_string_equal(id, "node_01kb7b");
	/* too little to mean anything, though it may fit one thing only */
	static const char *const slips[] = {"p", "pool", "pool_", "pool_01k", "01k", "0"};
	CLEANUP(tree) json_t *one = json_array();

	json_array_append(one, json_array_get(items, 0));
	for (size_t i = 0; i < ARRAY_SIZE(slips); i++)
		if (noun_match(pools, one, slips[i], &id, &error))
			fail_msg("'%s' was taken for %s", slips[i], id);
	/* which is said of what begins ids, and of nothing else */
	static const struct {
		const char *text;
		enum error_code code;
		const char *what;
	} shorts[] = {
		{"pool_01k", ERROR_INVALID_INPUT, "pool 'pool_01k' is too short to name one"},
		{"pool_0…", ERROR_INVALID_INPUT, "too short"},
		{"01k", ERROR_INVALID_INPUT, "too short"},
		{"pool_", ERROR_NOT_FOUND, "not found"},
		{"pool_02", ERROR_NOT_FOUND, "not found"},
		{"p", ERROR_NOT_FOUND, "not found"},
		{"h", ERROR_NOT_FOUND, "not found"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(shorts); i++)
		expect_error(noun_match(pools, items, shorts[i].text, &id, &error), &error,
			     shorts[i].code, shorts[i].what);
	expect_error(noun_match(pools, items, "01k", &id, &error), &error, ERROR_INVALID_INPUT, "");
	assert_string_equal(error.hint, "Give 4 characters or more after 'pool_', or its name. All "
					"pools: better-compute pools");
	expect_error(noun_match(pools, items, "", &id, &error), &error, ERROR_NOT_FOUND,
		     "not found");
	expect_error(noun_match(reservations, empty, "rsv_1", &id, &error), &error, ERROR_NOT_FOUND,
		     "reservation 'rsv_1' not found");
	assert_non_null(strstr(error.hint, "better-compute reserve"));
	expect_error(noun_match(pools, items, "nothing-like-it", &id, &error), &error,
		     ERROR_NOT_FOUND, "pool 'nothing-like-it' not found");
	assert_string_equal(error.hint, "All pools: better-compute pools");
	expect_error(noun_match(pools, items, "node_" ID_TAIL, &id, &error), &error,
		     ERROR_NOT_FOUND, "'node_" ID_TAIL "' is a node, not a pool");
}

/* What `pod-requests` says of the same reservation. */
static void test_what_pods_ask(void **state UNUSED)
{
	static const struct {
		const char *reservation, *text;
	} rows[] = {
		{"{\"resources\":{\"vcpu\":4,\"memoryGiB\":5,\"memoryMiB\":5514}}",
		 "bcd.dev/gpu: 2, cpu: 4, memory: 5514Mi}}"},
		{"{\"resources\":{\"memoryGiB\":5,\"memoryMiB\":5120}}",
		 "bcd.dev/gpu: 2, memory: 5Gi}}"},
		{"{\"state\":\"pending\",\"resources\":{}}",
		 "bcd.dev/gpu: 2}}; cpu and memory too, once it is placed"},
		{"{\"state\":\"active\",\"resources\":{}}", "bcd.dev/gpu: 2}}"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(arena) struct arena arena = {0};
		CLEANUP(tree) json_t *reservation = tree(rows[i].reservation);
		const char *text;

		tree_set(reservation, "devices", tree("[{\"class\":\"gpu\",\"count\":2}]"));
		text = page_pods_ask(&arena, reservation);
		if (!str_ends(text, rows[i].text))
			fail_msg("%s: %s", rows[i].reservation, text);
	}
}

/* A node that joined and never came can be told, and for how long that is so. */
static void test_when_a_node_was_heard_of(void **state UNUSED)
{
	static const struct {
		const char *node, *text;
	} rows[] = {
		{"{\"connected\":true,\"createdAt\":\"1970-01-01T00:00:00.000Z\"}", "connected"},
		{"{\"connected\":false,\"createdAt\":\"1970-01-01T00:00:00.000Z\","
		 "\"lastSeenAt\":\"1970-01-01T01:57:00.000Z\"}",
		 "seen 3 min ago"},
		{"{\"connected\":false,\"createdAt\":\"1970-01-01T00:00:00.000Z\"}",
		 "never connected, joined 2 h ago"},
		{"{}", "never connected"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(arena) struct arena arena = {0};
		CLEANUP(tree) json_t *node = tree(rows[i].node);

		assert_string_equal(view_contact(&arena, node, (struct wall){7200000}),
				    rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_devices_and_gpus),
		cmocka_unit_test(test_what_is_over),
		cmocka_unit_test(test_bookings),
		cmocka_unit_test(test_what_pods_ask),
		cmocka_unit_test(test_when_a_node_was_heard_of),
		cmocka_unit_test(test_quotas_and_maps),
		cmocka_unit_test(test_reasons_and_conditions),
		cmocka_unit_test(test_nodes_are_those_that_count),
		cmocka_unit_test(test_starts_ends_and_sick_gpus),
		cmocka_unit_test(test_booked_devices_that_are_gone),
		cmocka_unit_test(test_a_start_within_moments_is_now),
		cmocka_unit_test(test_when_waiting_is_over),
		cmocka_unit_test(test_fields_lines),
		cmocka_unit_test(test_names_and_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
