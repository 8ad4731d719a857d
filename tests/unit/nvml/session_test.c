#include "session_world.h"

#include "lib/seed.h"

static const char *newest, *oldest;

/* The reading of one GPU as text, to compare. */
static char *gpu_text(const struct reading_gpu *gpu)
{
	struct reading one = {.source = "nvml"};
	CLEANUP(tree) json_t *object = NULL;
	struct buf text = {0};

	*vec_push(&one.gpus) = *gpu;
	object = reading_json(&one);
	tree_dump_canonical(&text, object);
	vec_deinit(&one.gpus);
	return buf_take_text(&text);
}

static void test_all_that_a_gpu_tells(void **state UNUSED)
{
	static const int64_t gauges[GAUGES] = {
		[GAUGE_GPU_UTIL_PERCENT] = 41,
		[GAUGE_MEMORY_UTIL_PERCENT] = 7,
		[GAUGE_MEMORY_USED_BYTES] = 1073741824,
		[GAUGE_MEMORY_FREE_BYTES] = 85520809984 - 1073741824 - 629145600,
		[GAUGE_TEMPERATURE_C] = 44,
		[GAUGE_MEMORY_TEMPERATURE_C] = 51,
		[GAUGE_POWER_MW] = 310250,
		[GAUGE_ENERGY_MJ] = 123456789012,
		[GAUGE_SM_CLOCK_MHZ] = 1980,
		[GAUGE_MEMORY_CLOCK_MHZ] = 2619,
		[GAUGE_ECC_CORRECTED_VOLATILE] = 4,
		[GAUGE_ECC_UNCORRECTED_VOLATILE] = 0,
		[GAUGE_ECC_CORRECTED_AGGREGATE] = 9,
		[GAUGE_ECC_UNCORRECTED_AGGREGATE] = 1,
		[GAUGE_REMAPPED_CORRECTABLE_ROWS] = 2,
		[GAUGE_REMAPPED_UNCORRECTABLE_ROWS] = 1,
		[GAUGE_PCIE_REPLAYS] = 5,
	};
	const struct reading *reading;
	const struct reading_gpu *gpu;
	struct atom_uuid uuid;

	open_driver(newest);
	reading = read_scene();
	assert_string_equal(reading->source, "nvml");
	assert_string_equal(reading->driver, "570.124.06");
	assert_int_equal(reading->gpus.count, 2);
	gpu = &reading->gpus.items[1];
	assert_true(atom_uuid_parse("GPU-5a1c0de0-0000-4000-8000-000000000001", &uuid));
	assert_true(gpu->has_uuid);
	assert_memory_equal(&gpu->uuid, &uuid, sizeof uuid);
	assert_string_equal(gpu->pci, "0000:11:00.0");
	assert_string_equal(gpu->model, "NVIDIA H100 80GB HBM3");
	assert_int_equal(gpu->minor, 1);
	assert_int_equal(gpu->memory_bytes, 85520809984);
	assert_false(gpu->mig_enabled || gpu->lost || gpu->needs_reset || *gpu->error);
	assert_int_equal(gpu->row_remap, HEALTH_REMAP_NONE);
	assert_int_equal(gpu->ecc_uncorrectable, 0);
	assert_int_equal(gpu->recovery, HEALTH_RECOVERY_NONE);
	for (int i = 0; i < GAUGES; i++)
		assert_int_equal(gpu->gauges[i], gauges[i]);
}

/* Below zero, and in whatever type a field comes. */
static void test_odd_numbers(void **state UNUSED)
{
	open_driver(newest);
	set(0, "temperature_c", json_integer(-12));
	set(0, "energy_mj", json_integer(-1)); /* 2^64 - 1: no number that we can hold */
	read_scene();
	assert_int_equal(world.reading.gpus.items[0].gauges[GAUGE_TEMPERATURE_C], -12);
	assert_int_equal(world.reading.gpus.items[0].gauges[GAUGE_ENERGY_MJ], READING_UNKNOWN);
}

static void test_faults(void **state UNUSED)
{
	const struct reading_gpu *gpu;

	open_driver(newest);
	set(0, "remap_pending", json_integer(1));
	set(0, "ecc_uncorrected_volatile", json_integer(3));
	gpu = &read_scene()->gpus.items[0];
	assert_int_equal(gpu->row_remap, HEALTH_REMAP_PENDING);
	assert_int_equal(gpu->ecc_uncorrectable, 3);
	set(0, "remap_failure", json_integer(1));
	gpu = &read_scene()->gpus.items[0];
	assert_int_equal(gpu->row_remap, HEALTH_REMAP_FAILED);
	assert_int_equal(world.reading.gpus.items[1].row_remap, HEALTH_REMAP_NONE);
}

static void test_advice_of_each_kind(void **state UNUSED)
{
	static const enum health_recovery wanted[] = {
		HEALTH_RECOVERY_NONE,      HEALTH_RECOVERY_RESET,       HEALTH_RECOVERY_REBOOT,
		HEALTH_RECOVERY_DRAIN_P2P, HEALTH_RECOVERY_DRAIN_RESET, HEALTH_RECOVERY_DRAIN_P2P,
		HEALTH_RECOVERY_RESET,     HEALTH_RECOVERY_REBOOT,      HEALTH_RECOVERY_RESET,
	};

	open_driver(newest);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		set(0, "recovery", json_integer((json_int_t)i));
		assert_int_equal(read_scene()->gpus.items[0].recovery, wanted[i]);
	}
	unset(0, "recovery");
	assert_int_equal(read_scene()->gpus.items[0].recovery, HEALTH_RECOVERY_UNKNOWN);
}

/* What may stand in a field's place, and what it means for the GPU: N05. */
static const struct {
	const char *status;
	bool lost, needs_reset, error;
} stands_for[] = {
	{"NOT_SUPPORTED", .error = false},
	{"NO_PERMISSION", .error = false},
	{"NOT_FOUND", .error = false},
	{"NO_DATA", .error = false},
	{"INVALID_ARGUMENT", .error = false},
	{"TIMEOUT", .error = true},
	{"IRQ_ISSUE", .error = true},
	{"CORRUPTED_INFOROM", .error = true},
	{"UNKNOWN", .error = false}, /* but of what is vital, below */
	{"RESET_REQUIRED", .needs_reset = true, .error = true},
	{"GPU_IS_LOST", .lost = true, .error = true},
	{"GPU_NOT_FOUND", .lost = true, .error = true},
};

/* nvidia-smi's ERR! */
static void test_vital_fields_are_never_unknown(void **state UNUSED)
{
	static const char *const fields[] = {"power_mw", "sm_clock_mhz", "memory_clock_mhz"};

	open_driver(newest);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		json_t *before =
			json_incref(json_object_get(fakedriver_gpu(world.scene, 1), fields[i]));

		set(1, fields[i], json_string("UNKNOWN"));
		read_scene();
		assert_true(world.reading.gpus.items[1].needs_reset);
		assert_true(*world.reading.gpus.items[1].error);
		assert_false(world.reading.gpus.items[0].needs_reset);
		set(1, fields[i], before);
	}
}

/* Each field of one GPU in each of its ways to be absent or wrong; the other GPU stays as it was. */
static void test_one_field_never_touches_another_gpu(void **state UNUSED)
{
	static const char *const fields[] = {
		"memory_total_bytes",
		"mig_mode",
		"ecc_corrected_volatile",
		"ecc_uncorrected_volatile",
		"ecc_corrected_aggregate",
		"ecc_uncorrected_aggregate",
		"remapped_correctable_rows",
		"recovery",
		"gpu_util_percent",
		"temperature_c",
		"memory_temperature_c",
		"power_mw",
		"energy_mj",
		"sm_clock_mhz",
		"memory_clock_mhz",
		"pcie_replays",
		"minor",
		"name",
	};
	CLEANUP(free) char *other = NULL;

	open_driver(newest);
	other = gpu_text(&read_scene()->gpus.items[0]);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		json_t *before =
			json_incref(json_object_get(fakedriver_gpu(world.scene, 1), fields[i]));

		for (size_t j = 0; j < ARRAY_SIZE(stands_for); j++) {
			CLEANUP(free) char *same = NULL;
			const struct reading_gpu *gpu;

			if (str_equal(stands_for[j].status, "UNKNOWN") &&
			    (strstr(fields[i], "power") || strstr(fields[i], "clock")))
				continue;
			set(1, fields[i], json_string(stands_for[j].status));
			gpu = &read_scene()->gpus.items[1];
			same = gpu_text(&world.reading.gpus.items[0]);
			assert_string_equal(same, other);
			if (gpu->lost != stands_for[j].lost ||
			    gpu->needs_reset != stands_for[j].needs_reset ||
			    (*gpu->error != '\0') != stands_for[j].error)
				fail_msg("%s %s: lost %d, needs reset %d, '%s'", fields[i],
					 stands_for[j].status, gpu->lost, gpu->needs_reset,
					 gpu->error);
			assert_true(gpu->has_uuid);
			assert_string_equal(gpu->pci, "0000:11:00.0");
			assert_int_equal(gpu->ecc_uncorrectable, 0);
		}
		set(1, fields[i], before);
	}
}

/* A GPU that tells nothing but who it is (GB10, old and small ones) is a good GPU. */
static void test_nothing_but_identity(void **state UNUSED)
{
	json_t *gpu = json_pack("{s:s, s:s, s:i, s:s}", "uuid",
				"GPU-5a1c0de0-0000-4000-8000-0000000000ff", "pci",
				"0000000F:01:00.0", "minor", 0, "name", "NVIDIA GB10");
	const struct reading_gpu *read;

	json_array_set_new(json_object_get(world.scene, "gpus"), 0, gpu);
	open_driver(newest);
	read = &read_scene()->gpus.items[0];
	assert_string_equal(read->pci, "000f:01:00.0");
	assert_int_equal(read->memory_bytes, READING_UNKNOWN);
	assert_false(read->mig_enabled || read->lost || read->needs_reset || *read->error);
	assert_int_equal(read->ecc_uncorrectable, 0);
	assert_int_equal(read->row_remap, HEALTH_REMAP_NONE);
	assert_int_equal(read->recovery, HEALTH_RECOVERY_UNKNOWN);
	for (int i = 0; i < GAUGES; i++)
		assert_int_equal(read->gauges[i], READING_UNKNOWN);
}

/* N01 */
static void test_a_lost_gpu_is_still_named(void **state UNUSED)
{
	const struct reading_gpu *gpu;

	open_driver(newest);
	read_scene();
	set(0, "handle", json_string("GPU_IS_LOST"));
	gpu = &read_scene()->gpus.items[0];
	assert_true(gpu->lost && gpu->has_uuid);
	assert_string_equal(gpu->pci, "0000:10:00.0");
	assert_int_equal(gpu->minor, 0);
	assert_string_equal(gpu->error, "handle: GPU is lost");
	assert_false(world.reading.gpus.items[1].lost);
	unset(0, "handle");
	gpu = &read_scene()->gpus.items[0];
	assert_false(gpu->lost || *gpu->error);
}

static void test_a_gpu_lost_from_the_beginning_has_no_name(void **state UNUSED)
{
	static const char *const statuses[] = {"GPU_IS_LOST", "NO_PERMISSION", "UNKNOWN",
					       "INSUFFICIENT_RESOURCES"};

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		const struct reading_gpu *gpu;

		set(0, "handle", json_string(statuses[i]));
		open_driver(newest);
		gpu = &read_scene()->gpus.items[0];
		assert_false(gpu->has_uuid);
		assert_int_equal(gpu->lost, i == 0);
		assert_true(str_starts(gpu->error, "handle: "));
		assert_true(world.reading.gpus.items[1].has_uuid);
		assert_false(*world.reading.gpus.items[1].error);
	}
}

static void test_a_gpu_that_requires_a_reset(void **state UNUSED)
{
	const struct reading_gpu *gpu;

	open_driver(newest);
	set(1, "calls", json_string("RESET_REQUIRED"));
	gpu = &read_scene()->gpus.items[1];
	assert_true(gpu->needs_reset && gpu->has_uuid && !gpu->lost);
	assert_true(strstr(gpu->error, "GPU requires reset") != NULL);
	assert_false(world.reading.gpus.items[0].needs_reset);
}

/* One that was pulled, and came back elsewhere: an index isn't a GPU. */
static void test_gpus_that_go_and_come(void **state UNUSED)
{
	json_t *gpus = json_object_get(world.scene, "gpus");
	json_t *first = json_incref(json_array_get(gpus, 0));

	open_driver(newest);
	read_scene();
	json_array_remove(gpus, 0);
	read_scene();
	assert_int_equal(world.reading.gpus.count, 1);
	assert_string_equal(world.reading.gpus.items[0].pci, "0000:11:00.0");
	json_array_append_new(gpus, first);
	set(0, "handle", json_string("GPU_IS_LOST"));
	read_scene();
	assert_string_equal(world.reading.gpus.items[0].pci, "0000:11:00.0");
	assert_true(world.reading.gpus.items[0].lost);
	assert_string_equal(world.reading.gpus.items[1].pci, "0000:10:00.0");
	/* the one that was at index 0 is elsewhere now: its name isn't given to another */
	unset(0, "handle");
	json_array_insert(gpus, 0, first);
	json_array_remove(gpus, 2);
	read_scene();
	json_array_insert(gpus, 0, json_array_get(gpus, 1));
	json_array_remove(gpus, 2);
	set(1, "handle", json_string("GPU_IS_LOST"));
	read_scene();
	assert_string_equal(world.reading.gpus.items[0].pci, "0000:11:00.0");
	assert_false(world.reading.gpus.items[1].has_uuid);
}

static void test_many_in_any_order(void **state UNUSED)
{
	struct error error;

	json_decref(world.scene);
	world.scene = fakedriver_new(INVENTORY_MAX_GPUS);
	for (int i = 0; i < INVENTORY_MAX_GPUS; i++)
		set((size_t)i, "minor", json_integer(INVENTORY_MAX_GPUS - 1 - i));
	open_driver(newest);
	assert_int_equal(read_scene()->gpus.count, INVENTORY_MAX_GPUS);
	for (int i = 0; i < INVENTORY_MAX_GPUS; i++)
		assert_int_equal(world.reading.gpus.items[i].minor, INVENTORY_MAX_GPUS - 1 - i);
	json_array_append_new(json_object_get(world.scene, "gpus"),
			      fakedriver_new_gpu(INVENTORY_MAX_GPUS));
	fakedriver_write(world.scene);
	reading_deinit(&world.reading);
	expect_error(session_read(&world.session, &world.reading, &error), &error,
		     ERROR_RESOURCES_EXHAUSTED, "65 GPUs");
	json_array_clear(json_object_get(world.scene, "gpus"));
	assert_int_equal(read_scene()->gpus.count, 0);
}

/* --- whatever it says --- */

static json_t *random_value(struct seed *seed)
{
	static const json_int_t numbers[] = {
		0, 1, 2, 7, 8, 100, -1, INT32_MAX, (json_int_t)UINT32_MAX, INT64_MAX, INT64_MIN,
	};
	static const char *const texts[] = {
		"",
		"NOT_SUPPORTED",
		"UNKNOWN",
		"RESET_REQUIRED",
		"NOT_FOUND",
		"TIMEOUT",
		"NO_PERMISSION",
		"IRQ_ISSUE",
		"GPU_IS_LOST",
		"GPU_NOT_FOUND",
		"  odd \t\n",
		"\u00e9\u20ac",
		"1c.9g.999gb",
		"MIG-",
		"00000000:ZZ:00.0",
		"ffffffff:ff:ff.0",
		"GPU-5a1c0de0-0000-4000-8000-000000000000",
		"a name that is longer than what there is room for in most of the places where it "
		"may go",
	};

	if (seed_below(seed, 2))
		return json_integer(numbers[seed_below(seed, ARRAY_SIZE(numbers))]);
	return json_string(texts[seed_below(seed, ARRAY_SIZE(texts))]);
}

/* Some members become something else; `uuid` stays a text, as the fake knows GPUs by it. */
static void disturb(struct seed *seed, json_t *object)
{
	CLEANUP(tree) json_t *before = json_copy(object);

	for (void *at = json_object_iter(before); at; at = json_object_iter_next(before, at)) {
		const char *name = json_object_iter_key(at);

		if (!str_equal(name, "uuid") && !str_equal(name, "mig") && !seed_below(seed, 6))
			json_object_set_new(object, name, random_value(seed));
	}
	if (seed_below(seed, 20) == 0)
		json_object_set_new(object, "uuid", json_string("no UUID at all"));
}

/* bcd understands every reading, and each is of as many GPUs as there are. */
static void expect_understood(size_t gpus)
{
	CLEANUP(tree) json_t *object = reading_json(&world.reading);
	CLEANUP(reading) struct reading again = {0};
	struct error error;

	assert_int_equal(world.reading.gpus.count, gpus);
	expect_ok(reading_read(object, &again, &error), &error);
	vec_each (&world.reading.gpus, const struct reading_gpu *gpu) {
		assert_true(gpu->ecc_uncorrectable >= 0);
		assert_true(*gpu->error || !(gpu->lost || gpu->needs_reset));
		expect_consistent(gpu);
	}
}

static void test_whatever_it_says(void **state UNUSED)
{
	struct seed seed;

	seed_init(&seed);
	open_driver(newest);
	for (int i = 0; i < 1000; i++) {
		size_t gpus = seed_below(&seed, 4);

		json_decref(world.scene);
		world.scene = fakedriver_new((int)gpus);
		for (size_t j = 0; j < gpus; j++) {
			json_t *gpu = fakedriver_gpu(world.scene, j);

			fakedriver_split(gpu, (int)seed_below(&seed, 8));
			for (size_t k = 0; k < json_array_size(json_object_get(gpu, "mig")); k++)
				disturb(&seed, json_array_get(json_object_get(gpu, "mig"), k));
			disturb(&seed, gpu);
		}
		read_scene();
		expect_understood(gpus);
	}
}

/* --- drivers --- */

/* What was made before MIG, row remap and fields were: less is known, nothing is wrong. */
static void test_an_old_driver(void **state UNUSED)
{
	const struct reading_gpu *gpu;

	fakedriver_split(fakedriver_gpu(world.scene, 0), 2);
	set(1, "pci", json_string("0000000F:01:00.0"));
	open_driver(oldest);
	gpu = &read_scene()->gpus.items[1];
	assert_true(gpu->has_uuid);
	assert_string_equal(gpu->pci, "000f:01:00.0");
	assert_int_equal(gpu->memory_bytes, 85520809984);
	assert_int_equal(gpu->gauges[GAUGE_POWER_MW], 310250);
	assert_int_equal(gpu->gauges[GAUGE_ECC_CORRECTED_VOLATILE], 4);
	assert_int_equal(gpu->recovery, HEALTH_RECOVERY_UNKNOWN);
	assert_int_equal(gpu->gauges[GAUGE_MEMORY_TEMPERATURE_C], READING_UNKNOWN);
	assert_false(gpu->lost || gpu->needs_reset || *gpu->error);
	assert_false(world.reading.gpus.items[0].mig_enabled);
}

/* In any call: the whole reading is none. */
static void test_a_driver_that_is_gone(void **state UNUSED)
{
	static const char *const statuses[] = {"UNINITIALIZED", "DRIVER_NOT_LOADED",
					       "LIB_RM_VERSION_MISMATCH"};
	struct error error;

	open_driver(newest);
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		set(1, "power_mw", json_string(statuses[i]));
		fakedriver_write(world.scene);
		reading_deinit(&world.reading);
		expect_error(session_read(&world.session, &world.reading, &error), &error,
			     ERROR_UNAVAILABLE, "read the GPUs: ");
		set(1, "power_mw", json_integer(1));
	}
	json_object_set_new(world.scene, "generation", json_integer(7));
	fakedriver_write(world.scene);
	expect_error(session_read(&world.session, &world.reading, &error), &error,
		     ERROR_UNAVAILABLE, "count the GPUs: the driver was loaded anew");
	open_driver(newest);
	read_scene();
	assert_int_equal(world.reading.gpus.count, 2);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, make, drop)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ROW(test_all_that_a_gpu_tells),
		ROW(test_odd_numbers),
		ROW(test_faults),
		ROW(test_advice_of_each_kind),
		ROW(test_one_field_never_touches_another_gpu),
		ROW(test_vital_fields_are_never_unknown),
		ROW(test_nothing_but_identity),
		ROW(test_a_lost_gpu_is_still_named),
		ROW(test_a_gpu_lost_from_the_beginning_has_no_name),
		ROW(test_a_gpu_that_requires_a_reset),
		ROW(test_gpus_that_go_and_come),
		ROW(test_many_in_any_order),
		ROW(test_whatever_it_says),
		ROW(test_an_old_driver),
		ROW(test_a_driver_that_is_gone),
	};

	assert(argc == 3);
	newest = argv[1];
	oldest = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
