#include "gpu/core/atom.h"
#include "lib/test.h"

#define UUID "6f1c0c2e-0d1a-4b5c-8e9f-001122334455"

/* proves: DP-51 DP-7 */
static void test_text_forms(void **state)
{
	static const struct {
		const char *text, *device;
		enum atom_class class;
	} rows[] = {
		{"gpu/" UUID, "gpu_" UUID, ATOM_GPU},
		{"gpu/" UUID "/gi1/ci0", "gpu_" UUID "_gi1_ci0", ATOM_MIG},
		{"gpu/" UUID "/gi0/ci0", "gpu_" UUID "_gi0_ci0", ATOM_MIG},
		{"gpu/" UUID "/gi999/ci999", "gpu_" UUID "_gi999_ci999", ATOM_MIG},
		{"gpu/" UUID "/s0", "gpu_" UUID "_s0", ATOM_SLOT},
		{"gpu/" UUID "/s15", "gpu_" UUID "_s15", ATOM_SLOT},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char out[ATOM_TEXT_SIZE];
		struct error error;
		struct atom atom;

		expect_ok(atom_parse(rows[i].text, &atom, &error), &error);
		assert_int_equal(atom.class, rows[i].class);
		atom_format(out, &atom);
		assert_string_equal(out, rows[i].text);
		atom_device_name(out, &atom);
		assert_string_equal(out, rows[i].device);
	}
}

/* proves: DP-51 */
static void test_refuses_other_text(void **state)
{
	static const char *const texts[] = {
		"",
		"gpu",
		"gpu/",
		"gpu/GPU-" UUID,
		"gpu/6F1C0C2E-0d1a-4b5c-8e9f-001122334455",
		"gpu/" UUID "/",
		"gpu/" UUID "/gi1",
		"gpu/" UUID "/gi1/ci",
		"gpu/" UUID "/gi01/ci0",
		"gpu/" UUID "/gi1000/ci0",
		"gpu/" UUID "/gi1/ci0/s1",
		"gpu/" UUID "/s",
		"gpu/" UUID "/s1 ",
		"gpu/" UUID "/s-1",
		"gpu/" UUID "x",
		"gpu/6f1c0c2e0d1a4b5c8e9f001122334455",
		"gpu/6f1c0c2e-0d1a-4b5c-8e9f-00112233445",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct error error;
		struct atom atom;

		expect_error(atom_parse(texts[i], &atom, &error), &error, ERROR_INVALID_INPUT,
			     "is not a device");
	}
}

static void test_uuid_edges(void **state)
{
	char out[ATOM_UUID_SIZE];
	struct atom_uuid uuid;

	(void)state;
	assert_true(atom_uuid_parse("GPU-" UUID, &uuid));
	atom_uuid_format(out, uuid);
	assert_string_equal(out, UUID);
	assert_false(atom_uuid_parse("GPU-GPU-" UUID, &uuid));
	assert_false(atom_uuid_parse("", &uuid));
}

/* The order is total and antisymmetric over every small atom. */
static void test_order_is_total(void **state)
{
	struct atom atoms[64];
	size_t count = 0;

	(void)state;
	for (int gpu = 0; gpu < 2; gpu++)
		for (int class = 0; class < ATOM_CLASSES; class ++)
			for (uint16_t a = 0; a < 3; a++)
				for (uint16_t b = 0; b < 3; b++) {
					struct atom atom = {.class = (enum atom_class) class};

					atom.gpu.bytes[3] = (uint8_t)gpu;
					if (class == ATOM_MIG) {
						atom.gi = a;
						atom.ci = b;
					} else if (class == ATOM_SLOT) {
						atom.slot = a;
					}
					if (class != ATOM_MIG && (b || (a && class == ATOM_GPU)))
						continue;
					atoms[count++] = atom;
				}
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++) {
			int order = atom_compare(&atoms[i], &atoms[j]);

			assert_int_equal(order == 0, i == j);
			assert_int_equal(order < 0, atom_compare(&atoms[j], &atoms[i]) > 0);
		}
}

/* Slots cover the GPU without a hole and never overlap each other; the whole overlaps all. */
static void test_ranges(void **state)
{
	struct atom_uuid a = {{1}}, b = {{2}};

	(void)state;
	for (int32_t slots = 1; slots <= 64; slots++) {
		int32_t at = 0;

		for (int32_t k = 0; k < slots; k++) {
			struct atom_range range = atom_slot_range(k, slots);

			assert_int_equal(range.lo, at);
			assert_true(range.hi > range.lo);
			assert_true(atom_overlap(a, range, a, atom_whole()));
			assert_false(atom_overlap(a, range, b, atom_whole()));
			if (k > 0)
				assert_false(
					atom_overlap(a, atom_slot_range(k - 1, slots), a, range));
			at = range.hi;
		}
		assert_int_equal(at, ATOM_LEAVES);
	}
	assert_int_equal(atom_mig_range(0, 8).hi, ATOM_LEAVES);
	assert_false(atom_overlap(a, atom_mig_range(0, 4), a, atom_mig_range(4, 4)));
	assert_true(atom_overlap(a, atom_mig_range(0, 4), a, atom_mig_range(3, 1)));
}

/* proves: DP-5 */
static void test_class_names(void **state)
{
	static const char *const names[] = {"gpu", "gpu.mig", "gpu.slot"};
	enum atom_class class;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_true(atom_class_parse(names[i], &class));
		assert_string_equal(atom_class_name(class), names[i]);
	}
	assert_false(atom_class_parse("gpu.vgpu", &class));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_forms), cmocka_unit_test(test_refuses_other_text),
		cmocka_unit_test(test_uuid_edges), cmocka_unit_test(test_order_is_total),
		cmocka_unit_test(test_ranges),     cmocka_unit_test(test_class_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
