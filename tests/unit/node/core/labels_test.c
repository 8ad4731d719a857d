#include "node/core/labels.h"

#include "fixture.h"
#include "text/tree.h"

#include <stdio.h>

static const char *document; /* docs/formats/labels.md; set once by main */

static void expect_label(const char *text, const char *value)
{
	char out[LABELS_VALUE_SIZE];

	labels_value(out, text);
	assert_string_equal(out, value);
}

/* What Kubernetes demands: (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])? of at most 63. */
static bool is_valid(const char *value)
{
	size_t length = strlen(value);

	return length <= 63 &&
	       strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			     "0123456789-_.") == length &&
	       (length == 0 || (!strchr("-_.", value[0]) && !strchr("-_.", value[length - 1])));
}

/* proves: HOSTED-43 */
static void test_values(void **state UNUSED)
{
	char long_text[200];

	expect_label("580.95.05", "580.95.05");
	expect_label("NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3");
	expect_label("a/b\tc,d=e", "a-b-c-d-e");
	expect_label("site München", "site-M-nchen"); /* one character, one dash */
	expect_label("  (x)  ", "x");
	expect_label("._-", "");
	expect_label("", "");
	memset(long_text, 'a', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = '\0';
	long_text[60] = long_text[61] = long_text[62] = ' ';
	expect_label(long_text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
}

/* proves: HOSTED-43 */
static void test_each_byte(void **state UNUSED)
{
	for (int a = 1; a < 256; a++)
		for (int b = 0; b < 256; b++) {
			char text[] = {(char)a, (char)b, 'x', (char)b, (char)a, '\0'};
			char out[LABELS_VALUE_SIZE];

			labels_value(out, text);
			assert_true(is_valid(out));
		}
}

static const char *label(const json_t *labels, const char *name)
{
	char key[128];

	snprintf(key, sizeof key, "bcd.dev/%s", name);
	return json_string_value(json_object_get(labels, key));
}

static json_t *wanted(const struct inventory *inventory)
{
	return labels_wanted(&(struct labels_view){.node_id = "node_01kb00000000000000000000aa",
						   .site = "frankfurt",
						   .pool = "h100",
						   .inventory = inventory});
}

/* proves: HOSTED-20 OBS-1 OBS-2 OBS-3 OBS-19 */
static void test_of_a_machine(void **state UNUSED)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(tree) json_t *labels = NULL;

	fixture_inventory(&inventory);
	labels = wanted(&inventory);
	assert_string_equal(label(labels, "node-id"), "node_01kb00000000000000000000aa");
	assert_string_equal(label(labels, "site"), "frankfurt");
	assert_string_equal(label(labels, "pool"), "h100");
	assert_string_equal(label(labels, "gpu.count"), "8");
	assert_string_equal(label(labels, "gpu.product"), "NVIDIA-H100-80GB-HBM3");
	assert_string_equal(label(labels, "gpu.driver"), "580.95.05");
	assert_string_equal(label(labels, "gpu.memory"), "81559");
	assert_string_equal(label(labels, "gpu.compute.major"), "9");
	assert_string_equal(label(labels, "gpu.compute.minor"), "0");
	assert_string_equal(label(labels, "gpu.mig.capable"), "true");
	assert_int_equal(json_object_size(labels), 10);
}

/* proves: HOSTED-43 */
static void test_of_a_mixed_machine(void **state UNUSED)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(tree) json_t *labels = NULL;
	struct inventory_gpu *gpus;

	fixture_inventory(&inventory);
	gpus = inventory.gpus.items;
	str_copy(gpus[0].model, sizeof gpus[0].model, "Tesla T4");
	gpus[0].memory_bytes = (int64_t)15360 << 20;
	gpus[0].compute_major = 7;
	gpus[0].compute_minor = 5;
	gpus[0].mig = INVENTORY_MIG_INCAPABLE;
	gpus[1].compute_major = 7;
	gpus[1].compute_minor = 6;
	gpus[2].compute_major = 0;
	gpus[3].memory_bytes = 0;
	labels = wanted(&inventory);
	assert_string_equal(label(labels, "gpu.product"), "NVIDIA-H100-80GB-HBM3.Tesla-T4");
	assert_string_equal(label(labels, "gpu.memory"), "15360");
	assert_string_equal(label(labels, "gpu.compute.major"), "7");
	assert_string_equal(label(labels, "gpu.compute.minor"), "5");
	assert_string_equal(label(labels, "gpu.mig.capable"), "false");
}

/* proves: HOSTED-43 */
static void test_what_is_unknown_is_left_out(void **state UNUSED)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(tree) json_t *labels = NULL, *none = NULL, *empty = NULL;

	fixture_inventory(&inventory);
	vec_each (&inventory.gpus, struct inventory_gpu * gpu) {
		gpu->model[0] = '\0';
		gpu->memory_bytes = 0;
		gpu->compute_major = 0;
	}
	inventory.gpus.items[3].mig = INVENTORY_MIG_UNKNOWN;
	inventory.driver[0] = '\0';
	labels = labels_wanted(&(struct labels_view){
		.node_id = "", .site = "", .pool = "", .inventory = &inventory});
	assert_int_equal(json_object_size(labels), 1);
	assert_string_equal(label(labels, "gpu.count"), "8");
	none = wanted(NULL);
	assert_int_equal(json_object_size(none), 3);
	assert_null(label(none, "gpu.count"));
	inventory.gpus.count = 0;
	empty = wanted(&inventory);
	assert_string_equal(label(empty, "gpu.count"), "0");
	assert_int_equal(json_object_size(empty), 4);
}

/* One that was retired has none, whatever is in the machine. */
static void test_a_stranger_has_none(void **state UNUSED)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(tree) json_t *labels = NULL;

	fixture_inventory(&inventory);
	labels = labels_wanted(&(struct labels_view){.stranger = true,
						     .node_id = "node_01kb00000000000000000000aa",
						     .site = "site_x",
						     .pool = "h100",
						     .inventory = &inventory});
	assert_int_equal(json_object_size(labels), 0);
}

/* proves: HOSTED-22 */
static void test_what_is_changed(void **state UNUSED)
{
	CLEANUP(tree)
	json_t *want = json_pack("{s:s, s:s}", "bcd.dev/pool", "b", "bcd.dev/site", "s");
	CLEANUP(tree)
	json_t *node = json_pack("{s:{s:{s:s, s:s, s:s, s:s}}}", "metadata", "labels",
				 "bcd.dev/pool", "a", "bcd.dev/old", "x", "bcd.device/mine", "y",
				 "kubernetes.io/hostname", "z");
	CLEANUP(tree) json_t *bare = json_object(), *same = NULL, *changes = NULL;

	changes = labels_changes(want, true, node);
	assert_int_equal(json_object_size(changes), 3);
	assert_string_equal(label(changes, "pool"), "b");
	assert_string_equal(label(changes, "site"), "s");
	assert_true(json_is_null(json_object_get(changes, "bcd.dev/old")));
	json_decref(changes);
	changes = labels_changes(want, true, bare);
	assert_int_equal(json_object_size(changes), 2);
	same = json_pack("{s:{s:O}}", "metadata", "labels", want);
	assert_null(labels_changes(want, true, same));
}

/* GPUs that can't be read for a moment are still those that the Node has; the rest is as ever.
 * proves: HOSTED-22 */
static void test_gpus_that_are_not_known_just_now(void **state UNUSED)
{
	CLEANUP(tree) json_t *want = json_pack("{s:s}", "bcd.dev/pool", "b");
	CLEANUP(tree)
	json_t *node = json_pack("{s:{s:{s:s, s:s, s:s}}}", "metadata", "labels", "bcd.dev/pool",
				 "b", "bcd.dev/gpu.count", "8", "bcd.dev/old", "x");
	CLEANUP(tree) json_t *kept = labels_changes(want, false, node);
	CLEANUP(tree) json_t *gone = labels_changes(want, true, node);

	assert_int_equal(json_object_size(kept), 1);
	assert_true(json_is_null(json_object_get(kept, "bcd.dev/old")));
	assert_int_equal(json_object_size(gone), 2);
	assert_true(json_is_null(json_object_get(gone, "bcd.dev/gpu.count")));
}

/* The table of docs/formats/labels.md is what is set. proves: OBS-19 */
static void test_the_document(void **state UNUSED)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(tree) json_t *labels = NULL;
	FILE *file = fopen(document, "re");
	char line[512], key[128];
	size_t rows = 0;

	fixture_inventory(&inventory);
	labels = wanted(&inventory);
	assert_non_null(file);
	while (fgets(line, sizeof line, file)) {
		if (sscanf(line, "| `%127[^`]` |", key) != 1)
			continue;
		rows++;
		if (!json_object_get(labels, key))
			fail_msg("'%s' is not set", key);
	}
	fclose(file);
	assert_int_equal(rows, json_object_size(labels));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_each_byte),
		cmocka_unit_test(test_of_a_machine),
		cmocka_unit_test(test_of_a_mixed_machine),
		cmocka_unit_test(test_what_is_unknown_is_left_out),
		cmocka_unit_test(test_a_stranger_has_none),
		cmocka_unit_test(test_what_is_changed),
		cmocka_unit_test(test_gpus_that_are_not_known_just_now),
		cmocka_unit_test(test_the_document),
	};

	assert(argc == 2);
	document = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
