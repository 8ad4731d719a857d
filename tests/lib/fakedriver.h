/*
 * fakedriver: scenes of the fake driver (tests/fakedriver/README.md), made and changed by a test.
 */
#pragma once

#include "lib/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* GPU i's UUID is "GPU-5a1c0de0-0000-4000-8000-00000000000<i in hex>", its place <10 + i>:00.0. */
static inline json_t *fakedriver_new_gpu(int i)
{
	char uuid[64], pci[32];
	json_t *gpu;

	snprintf(uuid, sizeof uuid, "GPU-5a1c0de0-0000-4000-8000-%012x", (unsigned)i);
	snprintf(pci, sizeof pci, "00000000:%02X:00.0", 0x10u + (unsigned)i);
	gpu = json_pack("{s:s, s:s, s:i, s:s, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i}",
			"uuid", uuid, "pci", pci, "minor", i, "name", "NVIDIA H100 80GB HBM3",
			"memory_total_bytes", (json_int_t)85520809984, "memory_reserved_bytes",
			(json_int_t)629145600, "memory_used_bytes", (json_int_t)1073741824,
			"mig_mode", 0, "ecc_mode", 1, "ecc_corrected_volatile", 4,
			"ecc_uncorrected_volatile", 0, "ecc_corrected_aggregate", 9,
			"ecc_uncorrected_aggregate", 1, "remap_pending", 0);
	json_object_update_new(
		gpu,
		json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:i, s:i, s:i}",
			  "remapped_correctable_rows", 2, "remapped_uncorrectable_rows", 1,
			  "remap_failure", 0, "recovery", 0, "gpu_util_percent", 41,
			  "memory_util_percent", 7, "temperature_c", 44, "memory_temperature_c", 51,
			  "power_mw", 310250, "energy_mj", (json_int_t)123456789012, "sm_clock_mhz",
			  1980, "memory_clock_mhz", 2619, "pcie_replays", 5));
	return gpu;
}

static inline json_t *fakedriver_new(int gpus)
{
	json_t *scene =
		json_pack("{s:s, s:s, s:[]}", "driver", "570.124.06", "cuda", "12.8", "gpus");

	for (int i = 0; i < gpus; i++)
		json_array_append_new(json_object_get(scene, "gpus"), fakedriver_new_gpu(i));
	return scene;
}

static inline json_t *fakedriver_gpu(json_t *scene, size_t i)
{
	json_t *gpu = json_array_get(json_object_get(scene, "gpus"), i);

	assert_non_null(gpu);
	return gpu;
}

/* Instances of one slice each, "1g.10gb". */
static inline void fakedriver_split(json_t *gpu, int instances)
{
	json_t *list = json_array();
	char uuid[64];

	for (int i = 0; i < instances; i++) {
		snprintf(uuid, sizeof uuid, "MIG-%.8s-%04x-4000-8000-%012x",
			 json_string_value(json_object_get(gpu, "uuid")) + 4,
			 (unsigned)json_integer_value(json_object_get(gpu, "minor")), (unsigned)i);
		json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:s, s:i, s:i, s:I}", "uuid",
						      uuid, "gi", 7 + i, "ci", 0, "profile",
						      "1g.10gb", "start", i, "size", 1,
						      "memory_bytes", (json_int_t)10468982784));
	}
	json_object_set_new(gpu, "mig_mode", json_integer(1));
	json_object_set_new(gpu, "mig", list);
}

/* To $FAKE_DRIVER, at once for everybody who reads it. */
static inline void fakedriver_write(const json_t *scene)
{
	const char *path = getenv("FAKE_DRIVER");
	char fresh[512];

	assert_non_null(path);
	snprintf(fresh, sizeof fresh, "%s.new", path);
	assert_int_equal(json_dump_file(scene, fresh, 0), 0);
	assert_int_equal(rename(fresh, path), 0);
}

/* One line for those who wait for events: "79 00000000:1A:00.0". */
static inline void fakedriver_event(const char *line)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof path, "%s.events", getenv("FAKE_DRIVER"));
	file = fopen(path, "ae");
	assert_non_null(file);
	fprintf(file, "%s\n", line);
	assert_int_equal(fclose(file), 0);
}
