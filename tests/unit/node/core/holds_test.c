#include "fixture.h"

static void make(struct inventory *inventory, struct holds *holds)
{
	struct atom atoms[4];

	fixture_inventory(inventory);
	atoms[0] = fixture_gpu(inventory, 1);
	atoms[1] = fixture_mig(inventory, 1);
	atoms[2] = fixture_slot(inventory, 2);
	atoms[3] = fixture_gpu(inventory, 0);
	fixture_bind(holds, inventory, ALC_A, atoms, 4);
	holds->items[0].share.vcpus = 32;
	holds->items[0].share.memory_bytes = (int64_t)256 << 30;
	holds->items[0].share.hugepages.bytes[HUGEPAGES_1GI] = (int64_t)4 << 30;
	holds->items[0].devices.items[0].nodes.items[0].type = 'c';
	holds->items[0].devices.items[0].nodes.items[0].major = 4;
	holds->items[0].devices.items[0].nodes.items[0].minor = 20;
}

/* proves: DP-54 DP-55 */
static void test_same_hold_same_bytes(void **state)
{
	struct inventory inventory = {0};
	struct holds holds = {0};
	struct hold back = {0};
	struct buf text = {0}, again = {0};
	struct error error;

	(void)state;
	make(&inventory, &holds);
	holds_format(&holds.items[0], &text);
	expect_ok(
		holds_parse(buf_text(&text), text.length, "bcd.dev-" ALC_A ".json", &back, &error),
		&error);
	holds_format(&back, &again);
	assert_string_equal(buf_text(&text), buf_text(&again));
	assert_int_equal(back.devices.count, 4);
	assert_int_equal(back.share.vcpus, 32);
	assert_true(back.share.hugepages.bytes[HUGEPAGES_1GI] == (int64_t)4 << 30);
	assert_non_null(strstr(buf_text(&text), "\"bcd.dev/hugepages-1Gi\": \"4294967296\""));
	assert_null(strstr(buf_text(&text), "hugepages-2Mi"));
	assert_non_null(strstr(buf_text(&text), "\"kind\": \"bcd.dev/gpu\""));
	assert_non_null(strstr(buf_text(&text), "\"bcd.dev/allocation\": \"" ALC_A "\""));
	assert_non_null(strstr(buf_text(&text), "\"bcd.dev/class\": \"gpu.mig\""));
	assert_non_null(strstr(buf_text(&text), "\"path\": \"/dev/nvidiactl\""));
	assert_non_null(strstr(buf_text(&text), "\"path\": \"/dev/nvidia-uvm\""));
	assert_non_null(strstr(buf_text(&text), "\"path\": \"/dev/nvidia-uvm-tools\""));
	assert_non_null(strstr(buf_text(&text), "/dev/nvidia-caps/nvidia-cap"));
	assert_non_null(strstr(buf_text(&text), "\"hostPath\": \"/dev/tty2"));
	assert_null(strstr(buf_text(&text), "cgroup"));
	hold_deinit(&back);
	holds_deinit(&holds);
	inventory_deinit(&inventory);
	buf_deinit(&text);
	buf_deinit(&again);
}

/* proves: DP-54 */
static void test_no_damage_reads_as_a_hold(void **state)
{
	struct inventory inventory = {0};
	struct holds holds = {0};
	struct buf text = {0};
	struct error error;
	struct hold back = {0};

	(void)state;
	make(&inventory, &holds);
	holds_format(&holds.items[0], &text);
	for (size_t length = 0; length + 1 < text.length; length++)
		if (holds_parse(buf_text(&text), length, "bcd.dev-" ALC_A ".json", &back, &error))
			fail_msg("the first %zu bytes were taken for a hold", length);
	expect_error(
		holds_parse(buf_text(&text), text.length, "bcd.dev-" ALC_B ".json", &back, &error),
		&error, ERROR_INVALID_INPUT, "whose file would be");
	holds_deinit(&holds);
	inventory_deinit(&inventory);
	buf_deinit(&text);
}

/* Each row replaces one piece of a good spec. */
static void test_wrong_fields_are_named(void **state)
{
	static const struct {
		const char *from, *to, *message;
	} rows[] = {
		{"bcd.dev/gpu\"", "bcd.dev/gpx\"", "kind"},
		{"\"bcd.dev/form\": \"1\"", "\"bcd.dev/form\": \"2\"", "bcd.dev/form"},
		{"\"bcd.dev/class\": \"gpu.mig\"", "\"bcd.dev/class\": \"gpu.max\"", "disagree"},
		{"\"bcd.dev/range\": \"0-1024\"", "\"bcd.dev/range\": \"0-1025\"", "range"},
		{"\"bcd.dev/vcpus\": \"32\"", "\"bcd.dev/vcpus\": \"-2\"", "vcpus"},
		{"\"bcd.dev/atom\": \"gpu/", "\"bcd.dev/atom\": \"gpx/", "is not a device"},
		{"\"type\": \"c\"", "\"type\": \"cc\"", "type"},
		{"\"major\": 4", "\"major\": -4", "major"},
	};
	struct inventory inventory = {0};
	struct holds holds = {0};
	struct buf text = {0};

	(void)state;
	make(&inventory, &holds);
	holds_format(&holds.items[0], &text);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *at = strstr(buf_text(&text), rows[i].from);
		struct buf changed = {0};
		struct hold back = {0};
		struct error error;

		assert_non_null(at);
		buf_add(&changed, text.data, (size_t)(at - buf_text(&text)));
		buf_add_text(&changed, rows[i].to);
		buf_add_text(&changed, at + strlen(rows[i].from));
		expect_error(holds_parse(buf_text(&changed), changed.length,
					 "bcd.dev-" ALC_A ".json", &back, &error),
			     &error, ERROR_INVALID_INPUT, rows[i].message);
		buf_deinit(&changed);
	}
	holds_deinit(&holds);
	inventory_deinit(&inventory);
	buf_deinit(&text);
}

/* proves: DP-7 DP-8 */
static void test_kubelet_ids(void **state)
{
	struct inventory inventory = {0};
	struct holds holds = {0};
	const struct hold *hold;
	const struct hold_device *device;
	char id[HOLDS_ID_SIZE], other[HOLDS_ID_SIZE];

	(void)state;
	make(&inventory, &holds);
	fixture_id(id, fixture_mig(&inventory, 1), ALC_A);
	fixture_id(other, fixture_mig(&inventory, 1), ALC_B);
	assert_string_equal(holds_id_allocation(id), ALC_A);
	assert_string_not_equal(id, other);
	assert_true(strlen(id) < HOLDS_ID_SIZE);
	assert_true(holds_find_id(&holds, id, &hold, &device));
	assert_int_equal(device->atom.gi, 1);
	assert_false(holds_find_id(&holds, other, &hold, &device));
	assert_null(holds_id_allocation("gpu_1"));
	assert_null(holds_id_allocation("@a"));
	assert_null(holds_id_allocation("a@"));
	holds_deinit(&holds);
	inventory_deinit(&inventory);
}

static void add_node(struct hold_nodes *nodes)
{
	struct hold_node *node = vec_push(nodes);

	str_copy(node->path, sizeof node->path, "/dev/nvidia-caps/nvidia-cap1234");
	str_copy(node->host_path, sizeof node->host_path, node->path);
	node->type = 'c';
	node->major = node->minor = UINT32_MAX;
}

/* proves: DP-54 */
static void test_a_spec_that_could_not_be_read_is_not_written(void **state UNUSED)
{
	CLEANUP(buf) struct buf text = {0};
	struct holds holds = {0};
	struct hold *hold;
	size_t each = 0; /* nodes of a device */

	fixture_large_hold(&holds, 1, HOLDS_MAX_DEVICES);
	hold = &holds.items[0];
	for (; holds_fit_file(hold); each++)
		for (size_t i = 0; i < hold->devices.count; i++)
			add_node(&hold->devices.items[i].nodes);
	assert_in_range(each, 2, 4);
	for (size_t i = 0; !holds_fit_file(hold); i += 64)
		for (size_t k = i; k < i + 64; k++)
			vec_remove(&hold->devices.items[k].nodes, 0);
	holds_format(hold, &text); /* as the shell writes it */
	assert_in_range(text.length, HOLDS_MAX_FILE * 3 / 4, HOLDS_MAX_FILE);
	holds_deinit(&holds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_hold_same_bytes),
		cmocka_unit_test(test_no_damage_reads_as_a_hold),
		cmocka_unit_test(test_wrong_fields_are_named),
		cmocka_unit_test(test_kubelet_ids),
		cmocka_unit_test(test_a_spec_that_could_not_be_read_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
