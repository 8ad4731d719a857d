#include "fixture.h"
#include "node/core/uplink.h"
#include "proto/message.h"

MESSAGE_TYPE(up, Bettercompute__V1__Up, bettercompute__v1__up)

static Bettercompute__V1__Up *back(const struct buf *bytes)
{
	Bettercompute__V1__Up *up = NULL;
	struct error error;

	expect_ok(up_unpack(bytes->data, bytes->length, &up, &error), &error);
	return up;
}

/* proves: GW-1 */
static void test_hello(void **state)
{
	struct spec spec = {.lineage = "lineage-1", .generation = 7};
	struct uplink_hello hello = {
		.boot_id = "boot", .hostname = "host", .last_sequence = 3, .opened_ms = 9};

	(void)state;
	for (int gpus = 0; gpus < 4; gpus++)
		for (int stored = 0; stored < 2; stored++) {
			CLEANUP(buf) struct buf bytes = {0};
			CLEANUP(message) Bettercompute__V1__Up *up = NULL;
			struct error error;

			hello.has_gpus = gpus == 1 || gpus == 3;
			hello.serves_kubelet = gpus != 3; /* there, but for no pod */
			hello.has_holds = gpus == 2;      /* of GPUs that can't be seen now */
			hello.spec = stored ? &spec : NULL;
			expect_ok(uplink_pack_hello(&hello, &bytes, &error), &error);
			up = back(&bytes);
			assert_int_equal(up->body_case, BETTERCOMPUTE__V1__UP__BODY_HELLO);
			assert_int_equal(up->hello->n_capabilities, gpus == 1 || gpus == 2 ? 2 : 0);
			assert_int_equal(up->hello->spec_generation, stored ? 7 : 0);
			assert_string_equal(up->hello->lineage, stored ? "lineage-1" : "");
			assert_int_equal(up->hello->last_sequence, 3);
			assert_int_equal(up->hello->opened_ms, 9);
		}
}

/* proves: GW-17 GW-25 GW-28 */
static void test_every_kind_of_report(void **state)
{
	static const Bettercompute__V1__Report__BodyCase cases[REPORT_KINDS] = {
		[REPORT_INVENTORY] = BETTERCOMPUTE__V1__REPORT__BODY_INVENTORY,
		[REPORT_CONDITIONS] = BETTERCOMPUTE__V1__REPORT__BODY_CONDITIONS,
		[REPORT_BOUND] = BETTERCOMPUTE__V1__REPORT__BODY_BOUND,
		[REPORT_FAILED] = BETTERCOMPUTE__V1__REPORT__BODY_FAILED,
		[REPORT_RELEASED] = BETTERCOMPUTE__V1__REPORT__BODY_RELEASED,
		[REPORT_OPERATION] = BETTERCOMPUTE__V1__REPORT__BODY_OPERATION_RESULT,
	};
	CLEANUP(inventory) struct inventory inventory = {0};
	struct inventory_report machine = {.inventory = &inventory,
					   .node_name = "n",
					   .hostname = "h",
					   .kernel = "k",
					   .gpu_api = "dra"};
	struct conditions conditions = {0};
	const struct uplink_truth truth = {&machine, &conditions};
	struct reports reports = {0};

	(void)state;
	fixture_inventory(&inventory);
	str_copy(vec_push(&conditions)->type, CONDITIONS_TYPE_SIZE, CONDITION_RELEASE_STUCK);
	for (int kind = 0; kind < REPORT_KINDS; kind++) {
		CLEANUP(buf) struct buf bytes = {0};
		CLEANUP(message) Bettercompute__V1__Up *up = NULL;
		struct report *report = reports_add(&reports, (enum report_kind)kind, ALC_A, 9);
		struct error error;

		*vec_push(&report->atoms) = fixture_gpu(&inventory, 0);
		/* cut inside a character: one bad byte would fail the whole report */
		str_copy(report->message, sizeof report->message, "caf\xc3");
		expect_ok(uplink_pack_report(report, &truth, &bytes, &error), &error);
		up = back(&bytes);
		assert_int_equal(up->body_case, BETTERCOMPUTE__V1__UP__BODY_REPORT);
		assert_int_equal(up->report->body_case, cases[kind]);
		assert_int_equal(up->report->sequence, kind + 1);
		assert_int_equal(up->report->spec_generation, 9);
	}
	reports_deinit(&reports);
	vec_deinit(&conditions);
}

static void test_backoff(void **state)
{
	(void)state;
	for (uint32_t failures = 0; failures < 40; failures++)
		for (uint32_t jitter = 0; jitter < 70000; jitter += 997) {
			int64_t wait = uplink_backoff(failures, jitter);

			assert_true(wait >= 500 && wait <= 60000);
			if (failures <= 1)
				assert_true(wait <= 1000);
			if (failures >= 10)
				assert_true(wait >= 30000);
		}
}

static void test_small_messages(void **state)
{
	CLEANUP(buf) struct buf beat = {0}, renew = {0}, der = {0};
	CLEANUP(message) Bettercompute__V1__Up *one = NULL, *two = NULL;
	struct error error;

	(void)state;
	buf_add_text(&der, "request");
	expect_ok(uplink_pack_heartbeat(5, &beat, &error), &error);
	expect_ok(uplink_pack_renew(&der, &renew, &error), &error);
	one = back(&beat);
	two = back(&renew);
	assert_int_equal(one->heartbeat->spec_generation, 5);
	assert_int_equal(two->renew->certificate_request_der.len, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello),
		cmocka_unit_test(test_every_kind_of_report),
		cmocka_unit_test(test_backoff),
		cmocka_unit_test(test_small_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
