#include "control/core/reserve_request.h"

#include "lib/test.h"

#include <stdio.h>

#define NOW    ((int64_t)1796004000000) /* 2026-11-30T02:00:00Z */
#define TENANT "ten_01jd4z5x9f0123456789abcdef"
#define POOL   "pool_01jd4z5x9f0123456789abcdef"

/* A right request with some fields replaced: `more` comes last, so the base leaves those out. */
static bool parse(const char *devices, const char *more, bool preview,
		  struct reserve_request *request, json_t **ret_json, struct error *error)
{
	char text[8192];

	snprintf(text, sizeof text,
		 "{\"tenantId\":\"" TENANT "\",\"poolId\":\"" POOL "\",\"devices\":%s%s}", devices,
		 more);
	*ret_json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	if (!*ret_json)
		fail_msg("not JSON: %s", text);
	return reserve_request_parse(*ret_json, preview, (struct wall){NOW}, request, error);
}

#define GPU  "[{\"class\":\"gpu\",\"count\":2}]"
#define REST ",\"duration\":\"1h\",\"binding\":\"kubernetes\""

/* proves: RES-1 RES-5 */
static void test_request_is_read(void **state)
{
	struct reserve_request request;
	struct error error;
	json_t *json;

	(void)state;
	expect_ok(parse("[{\"class\":\"gpu\",\"count\":2},{\"class\":\"gpu.mig\",\"profile\":"
			"\"1g.10gb\",\"count\":3},{\"class\":\"gpu.slot\",\"count\":4}]",
			REST ",\"startAt\":\"2026-11-30T03:00:00Z\",\"resources\":{\"vcpu\":8,"
			     "\"memoryGiB\":64,\"hugepages2MiGiB\":3},\"idempotencyKey\":\"k\"",
			false, &request, &json, &error),
		  &error);
	assert_string_equal(request.tenant, TENANT);
	assert_int_equal(request.needs_count, 3);
	assert_int_equal(request.needs[1].class, PLACEMENT_CLASS_MIG);
	assert_string_equal(request.needs[1].profile, "1g.10gb");
	assert_int_equal(request.needs[2].count, 4);
	assert_int_equal(request.duration_ms, 3600000);
	assert_true(request.start_ms == NOW + 3600000);
	assert_int_equal(request.vcpus, 8);
	assert_true(request.limited);
	assert_true(request.hugepages.bytes[HUGEPAGES_2MI] == (int64_t)3 << 30);
	assert_int_equal(request.hugepages.bytes[HUGEPAGES_1GI], 0);
	assert_true(request.memory_bytes == (int64_t)64 << 30);
	assert_string_equal(request.idempotency_key, "k");
	json_decref(json);
	expect_ok(parse(GPU, REST, true, &request, &json, &error), &error);
	assert_int_equal(request.start_ms, 0);
	assert_int_equal(request.vcpus, -1);
	assert_int_equal(request.memory_bytes, -1);
	json_decref(json);
}

/* proves: RES-1 RES-5 RES-49 */
static void test_wrong_requests_name_their_field(void **state)
{
	static const struct {
		const char *devices, *more, *field;
	} rows[] = {
		{"{}", REST, "devices"},
		{"[]", REST, "devices"},
		{"[1]", REST, "devices[0]"},
		{"[{\"class\":\"gpu\"}]", REST, "devices[0].count"},
		{"[{\"count\":1}]", REST, "devices[0].class"},
		{"[{\"class\":\"cpu\",\"count\":1}]", REST, "devices[0].class"},
		{"[{\"class\":\"gpu\",\"count\":0}]", REST, "devices[0].count"},
		{"[{\"class\":\"gpu\",\"count\":-1}]", REST, "devices[0].count"},
		{"[{\"class\":\"gpu\",\"count\":1025}]", REST, "devices[0].count"},
		{"[{\"class\":\"gpu\",\"count\":\"2\"}]", REST, "devices[0].count"},
		{"[{\"class\":\"gpu\",\"count\":2.5}]", REST, "devices[0].count"},
		{"[{\"class\":\"gpu\",\"count\":600},{\"class\":\"gpu.slot\",\"count\":425}]", REST,
		 "devices"},
		{"[{\"class\":\"gpu\",\"count\":1,\"profile\":\"1g.10gb\"}]", REST,
		 "devices[0].profile"},
		{"[{\"class\":\"gpu.mig\",\"count\":1,\"profile\":\"1G\"}]", REST,
		 "devices[0].profile"},
		{"[{\"class\":\"gpu\",\"count\":1,\"kind\":1}]", REST, "devices[0].kind"},
		{GPU, ",\"binding\":\"kubernetes\"", "duration"},
		{GPU, ",\"duration\":\"59s\",\"binding\":\"kubernetes\"", "duration"},
		{GPU, ",\"duration\":\"367d\",\"binding\":\"kubernetes\"", "duration"},
		{GPU, ",\"duration\":3600,\"binding\":\"kubernetes\"", "duration"},
		{GPU, ",\"duration\":\"1h\"", "binding"},
		{GPU, ",\"duration\":\"1h\",\"binding\":\"vm\"", "binding"},
		{GPU, REST ",\"startAt\":\"2026-11-30\"", "startAt"},
		{GPU, REST ",\"startAt\":\"2026-11-30T01:58:59.999Z\"", "startAt"},
		{GPU, REST ",\"startAt\":\"2027-12-01T02:00:00.001Z\"", "startAt"},
		{GPU, REST ",\"resources\":[]", "resources"},
		{GPU, REST ",\"resources\":{\"vcpu\":0}", "resources.vcpu"},
		{GPU, REST ",\"resources\":{\"hugepages1GiGiB\":0}", "resources.hugepages1GiGiB"},
		{GPU, REST ",\"resources\":{\"memoryGiB\":1048577}", "resources.memoryGiB"},
		{GPU, REST ",\"resources\":{\"memory\":1}", "resources.memory"},
		{GPU, REST ",\"spot\":1", "spot"},
		{GPU, REST ",\"gang\":3", "gang"},
		{GPU, REST ",\"gang\":{}", "gang.nodes"},
		{GPU, REST ",\"gang\":{\"nodes\":0}", "gang.nodes"},
		{GPU, REST ",\"gang\":{\"nodes\":1025}", "gang.nodes"},
		{GPU, REST ",\"gang\":{\"nodes\":2,\"same\":\"rack\"}", "gang.same"},
		{GPU, REST ",\"gang\":{\"nodes\":2,\"topology\":{}}", "gang.topology.same"},
		{GPU, REST ",\"gang\":{\"nodes\":2,\"topology\":{\"same\":\"row\"}}",
		 "gang.topology.same"},
		{"[{\"class\":\"gpu\",\"count\":8}]", REST ",\"gang\":{\"nodes\":129}",
		 "gang.nodes"},
		{GPU, REST ",\"cores\":2", "cores"},
	};
	struct reserve_request request;
	struct error error;
	json_t *json;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (parse(rows[i].devices, rows[i].more, false, &request, &json, &error))
			fail_msg("row %zu was taken", i);
		assert_int_equal(error.code, ERROR_INVALID_INPUT);
		if (!str_equal(error.field, rows[i].field))
			fail_msg("row %zu: field %s, not %s", i, error.field, rows[i].field);
		json_decref(json);
	}
	/* Right at the bounds. */
	static const char *const right[] = {
		",\"duration\":\"1m\",\"binding\":\"kubernetes\"",
		",\"duration\":\"366d\",\"binding\":\"kubernetes\"",
		REST ",\"startAt\":\"2026-11-30T01:59:00Z\"",
		REST ",\"startAt\":\"2027-12-01T02:00:00Z\"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		expect_ok(parse(GPU, right[i], false, &request, &json, &error), &error);
		json_decref(json);
	}
	assert_false(parse(GPU, REST ",\"idempotencyKey\":\"k\"", true, &request, &json, &error));
	assert_string_equal(error.field, "idempotencyKey");
	json_decref(json);
}

/* proves: GANG-8 RES-42 */
static void test_gangs_and_spot_are_read(void **state)
{
	struct reserve_request request;
	struct error error;
	json_t *json, *gang;

	(void)state;
	expect_ok(parse("[{\"class\":\"gpu\",\"count\":8}]",
			REST ",\"spot\":true,\"gang\":{\"nodes\":128,\"topology\":{\"same\":"
			     "\"nvlinkDomain\"}}",
			true, &request, &json, &error),
		  &error);
	assert_true(request.spot);
	assert_int_equal(request.gang_nodes, 128);
	assert_int_equal(request.gang_same, PLACEMENT_SAME_NVLINK_DOMAIN);
	gang = reserve_gang_pack(request.gang_nodes, request.gang_same);
	assert_true(json_equal(gang, json_object_get(json, "gang")));
	json_decref(gang);
	json_decref(json);
}

static bool parse_change(const char *text, struct reserve_change *change, struct error *error)
{
	json_t *json = json_loads(text, 0, NULL);
	bool done = reserve_change_parse(json, (struct wall){NOW}, change, error);

	json_decref(json);
	return done;
}

static void test_changes_are_read(void **state)
{
	static const struct {
		const char *body, *field;
	} wrong[] = {
		{"{}", "duration"},
		{"{\"duration\":\"30s\"}", "duration"},
		{"{\"duration\":\"1h\",\"endAt\":\"2026-12-01T02:00:00Z\"}", "endAt"},
		{"{\"endAt\":\"2026-11-30T02:00:00Z\"}", "endAt"},
		{"{\"endAt\":\"soon\"}", "endAt"},
		{"{\"startAt\":\"2026-11-30T01:58:59Z\"}", "startAt"},
		{"{\"count\":2}", "count"},
	};
	struct reserve_change change;
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (parse_change(wrong[i].body, &change, &error))
			fail_msg("row %zu was taken", i);
		assert_string_equal(error.field, wrong[i].field);
	}
	expect_ok(parse_change("{\"duration\":\"90m\"}", &change, &error), &error);
	assert_int_equal(change.duration_ms, 90 * 60000);
	assert_int_equal(change.end_ms, 0);
	expect_ok(parse_change("{\"endAt\":\"2026-11-30T03:00:00Z\"}", &change, &error), &error);
	assert_int_equal(change.end_ms, NOW + 3600000);
}

static void test_needs_survive_being_stored(void **state)
{
	static const struct placement_need needs[] = {{PLACEMENT_CLASS_GPU, NULL, 2},
						      {PLACEMENT_CLASS_MIG, "1g.10gb", 1},
						      {PLACEMENT_CLASS_MIG, NULL, 3}};
	struct placement_need back[RESERVE_MAX_NEEDS];
	json_t *json = reserve_needs_pack(needs, ARRAY_SIZE(needs));
	size_t count;

	(void)state;
	assert_true(reserve_needs_unpack(json, back, &count));
	assert_int_equal(count, 3);
	assert_string_equal(back[1].profile, "1g.10gb");
	assert_null(back[2].profile);
	assert_int_equal(back[2].count, 3);
	json_decref(json);
	json = json_array();
	assert_false(reserve_needs_unpack(json, back, &count));
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_is_read),
		cmocka_unit_test(test_wrong_requests_name_their_field),
		cmocka_unit_test(test_gangs_and_spot_are_read),
		cmocka_unit_test(test_changes_are_read),
		cmocka_unit_test(test_needs_survive_being_stored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
