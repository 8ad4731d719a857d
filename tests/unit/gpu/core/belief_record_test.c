#include "gpu/core/belief.h"
#include "lib/test.h"
#include "text/tree.h"

#define BOOT  "6c9bd5a5-1f2b-4a3e-9d5e-000000000001"
#define OTHER "6c9bd5a5-1f2b-4a3e-9d5e-000000000002"

static const char whole[] =
	"{'version': 1, 'bootId': '" BOOT "', 'driver': 7, 'logSequence': 1205, 'later': true,"
	" 'gpus': [{'uuid': '5ca1ab1e-0000-4000-8000-000000000001', 'pci': '0000:1a:00.0',"
	" 'model': 'H100', 'minor': 3, 'numa': 1, 'memoryBytes': 85899345920, 'migEnabled': true,"
	" 'mig': [{'uuid': 'MIG-a', 'gi': 7, 'ci': 0, 'profile': '1g.10gb', 'lo': 128, 'hi': 256}],"
	" 'xids': [79, 48], 'asked': true, 'energyMj': 99}],"
	" 'strays': [{'pci': '0000:c1:00.0', 'xid': 79}]}";

static json_t *parse(const char *text)
{
	json_t *tree = NULL;
	struct error error;
	char quoted[4096];

	assert_true(str_copy(quoted, sizeof quoted, text));
	for (char *at = quoted; *at; at++)
		if (*at == '\'')
			*at = '"';
	expect_ok(tree_parse(quoted, strlen(quoted), sizeof quoted, "health.json", &tree, &error),
		  &error);
	return tree;
}

static bool load(const char *text, const char *boot, struct belief *belief, struct error *error)
{
	CLEANUP(tree) json_t *tree = parse(text);

	str_copy(belief->boot_id, sizeof belief->boot_id, boot);
	return belief_read_record(belief, tree, error);
}

/* Sick stays sick over a restart of bcd, also for a GPU that isn't listed. proves: DP-52 */
static void test_there_and_back(void **state)
{
	CLEANUP(belief) struct belief belief = {0}, again = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(tree) json_t *tree = NULL, *same = NULL;
	struct error error;

	(void)state;
	expect_ok(load(whole, BOOT, &belief, &error), &error);
	tree = belief_json(&belief);
	str_copy(again.boot_id, sizeof again.boot_id, BOOT);
	expect_ok(belief_read_record(&again, tree, &error), &error);
	same = belief_json(&again);
	assert_true(json_equal(tree, same));
	assert_int_equal(again.log_sequence, 1205);
	assert_int_equal(again.driver, 7);
	assert_int_equal(again.strays.count, 1);
	assert_string_equal(again.strays.items[0].pci, "0000:c1:00.0");
	belief_inventory(&again, 0, &inventory);
	assert_int_equal(inventory.atoms.count, 1);
	assert_int_equal(inventory.atoms.items[0].range.lo, 128);
	assert_string_equal(inventory.atoms.items[0].health.cause, "XID 79: fell off the bus");
	again.gpus.items[0].facts.xid_count = 0;
	inventory_deinit(&inventory);
	inventory = (struct inventory){0};
	belief_inventory(&again, 0, &inventory);
	assert_string_equal(inventory.atoms.items[0].health.cause,
			    "unknown: the driver has not been read yet");
	assert_int_equal(belief_find(&again, inventory.gpus.items[0].uuid)->facts.xids[0], 79);
}

/* proves: DP-52 */
static void test_a_new_boot_knows_nothing(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	struct error error;

	(void)state;
	expect_ok(load(whole, OTHER, &belief, &error), &error);
	assert_int_equal(belief.gpus.count, 0);
	assert_int_equal(belief.log_sequence, 0);
}

static void test_a_new_driver_in_the_same_boot(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	struct error error;

	(void)state;
	expect_ok(load(whole, BOOT, &belief, &error), &error);
	belief_driver(&belief, 8);
	assert_int_equal(belief.gpus.items[0].facts.xid_count, 0);
}

/* A record that can be read again after all says who is sick. proves: DP-52 */
static void test_a_record_that_is_read_late(void **state)
{
	static const char good[] =
		"{'version': 1, 'bootId': '" BOOT "', 'driver': 7, 'logSequence': 1, 'gpus': [{"
		"'uuid': '5ca1ab1e-0000-4000-8000-000000000001', 'pci': '0000:1a:00.0', 'model': "
		"'H100', 'minor': 3, 'numa': 1, 'memoryBytes': 0, 'migEnabled': false, 'mig': [], "
		"'xids': [31], 'asked': true}]}";
	struct error error;

	(void)state;
	for (uint64_t driver = 6; driver < 8; driver++) {
		CLEANUP(belief) struct belief belief = {0}, record = {0}, known = {0};

		belief.driver = known.driver = driver;
		expect_ok(load(whole, BOOT, &record, &error), &error);
		belief_merge(&belief, &record);
		assert_int_equal(record.gpus.count, 0);
		assert_int_equal(belief.gpus.count, 1);
		assert_int_equal(belief.gpus.items[0].facts.xid_count, driver == 7 ? 2 : 0);
		assert_int_equal(belief.strays.count, driver == 7);
		/* one that was read meanwhile is the same GPU */
		expect_ok(load(good, BOOT, &known, &error), &error);
		known.driver = driver;
		expect_ok(load(whole, BOOT, &record, &error), &error);
		belief_merge(&known, &record);
		assert_int_equal(known.gpus.count, 1);
		assert_int_equal(known.gpus.items[0].facts.xid_count, driver == 7 ? 3 : 1);
	}
}

static void test_what_is_no_record(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{"[]", "object"},
		{"{}", "version"},
		{"{'version': 2}", "this bcd reads version 1"},
		{"{'version': 1, 'bootId': '" BOOT "', 'driver': 7}", "logSequence"},
		{"{'version': 1, 'bootId': '" BOOT "', 'driver': 7, 'logSequence': -1}",
		 "logSequence"},
		{"{'version': 1, 'bootId': '" BOOT "', 'driver': 7, 'logSequence': 1}", "gpus"},
		{"{'version': 1, 'bootId': '" BOOT
		 "', 'driver': 7, 'logSequence': 1, 'gpus': [{'uuid': 'x'}]}",
		 "gpus[0]"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(belief) struct belief belief = {0};
		struct error error;

		expect_error(load(rows[i].text, BOOT, &belief, &error), &error, ERROR_INVALID_INPUT,
			     rows[i].message);
		assert_int_equal(belief.gpus.count, 0);
	}
}

/* Each member is needed, and each wrong kind of it is named. */
static void test_members_of_a_gpu(void **state)
{
	static const char *const needed[] = {"uuid", "pci",         "model",      "minor", "numa",
					     "mig",  "memoryBytes", "migEnabled", "xids",  "asked"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		for (int wrong = 0; wrong < 2; wrong++) {
			CLEANUP(belief) struct belief belief = {0};
			CLEANUP(tree) json_t *tree = parse(whole);
			json_t *gpu = json_array_get(json_object_get(tree, "gpus"), 0);
			struct error error;

			if (wrong)
				json_object_set_new(gpu, needed[i], json_real(0.5));
			else
				json_object_del(gpu, needed[i]);
			str_copy(belief.boot_id, sizeof belief.boot_id, BOOT);
			expect_error(belief_read_record(&belief, tree, &error), &error,
				     ERROR_INVALID_INPUT, needed[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_a_new_boot_knows_nothing),
		cmocka_unit_test(test_a_new_driver_in_the_same_boot),
		cmocka_unit_test(test_a_record_that_is_read_late),
		cmocka_unit_test(test_what_is_no_record),
		cmocka_unit_test(test_members_of_a_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
