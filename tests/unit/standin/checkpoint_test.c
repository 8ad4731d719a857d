#include "standin/checkpoint.h"

#include "lib/test.h"

#include <stdio.h>

#define GPU "bcd.dev/gpu"

static const struct mono start = {1000};

static void manager_cleanup(struct manager *manager)
{
	manager_deinit(manager);
}

static void device_add(struct manager_devices *devices, const char *id, int64_t numa)
{
	struct manager_device *device = vec_push(devices);
	device->id = mem_strdup(id);
	device->healthy = true;
	if (numa >= 0)
		*vec_push(&device->numa) = numa;
}

/* A device id of 100 characters goes through as it is. */
static void test_round_trip(void **state UNUSED)
{
	CLEANUP(manager) struct manager manager = {0};
	CLEANUP(manager) struct manager back = {0};
	CLEANUP(manager_ids) struct manager_ids ids = {0};
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(buf) struct buf again = {0};
	struct manager_devices devices = {0};
	struct error error;
	char id[101];
	memset(id, 'g', 100);
	id[100] = '\0';
	device_add(&devices, id, 1);
	device_add(&devices, "b", -1);
	expect_ok(manager_connected(&manager, GPU, 1, "/one", &error), &error);
	manager_update(&manager, GPU, &devices);
	manager_ids_add(&ids, id);
	manager_ids_add(&ids, "b");
	manager_hold_add(&manager, "uid", "main", GPU, &ids, "\0\xff\x01", 3);
	checkpoint_format(&manager, &text);

	expect_ok(checkpoint_parse(text.data, text.length, start, &back, &error), &error);
	struct manager_hold *hold = manager_hold_find(&back, "uid", "main", GPU);
	assert_non_null(hold);
	assert_int_equal(hold->response.length, 3);
	assert_memory_equal(hold->response.data, "\0\xff\x01", 3);
	assert_int_equal(hold->devices.count, 2);
	for (size_t i = 0; i < 2; i++) {
		struct manager_device *device = &hold->devices.items[i];
		assert_int_equal(device->numa.count, str_equal(device->id, id));
	}
	/* No capacity until the plugin is back. */
	struct manager_counts counts = manager_counts(&back, manager_find(&back, GPU), start);
	assert_int_equal(counts.capacity, 0);
	assert_true(manager_find(&back, GPU)->stopped);

	/* What Go wrote with nothing in it. */
	CLEANUP(manager) struct manager empty = {0};
	static const char go[] = "{\"Data\":{\"PodDeviceEntries\":null,\"RegisteredDevices\":{}},"
				 "\"Checksum\":18446744073709551}";
	expect_ok(checkpoint_parse(go, sizeof go - 1, start, &empty, &error), &error);
	assert_int_equal(empty.holds.count, 0);
}

static void test_bad(void **state UNUSED)
{
#define ENTRY(ids, response)                                                                       \
	"{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"u\",\"ContainerName\":\"c\","              \
	"\"ResourceName\":\"r\",\"DeviceIDs\":" ids ",\"AllocResp\":" response                     \
	"}],\"RegisteredDevices\":{}},\"Checksum\":0}"
	static const char *const table[][2] = {
		{"", "checkpoint"},
		{"{\"Data\":", "checkpoint"},
		{"{}", "Data"},
		{"{\"Data\":{\"PodDeviceEntries\":[],\"RegisteredDevices\":[]}}",
		 "RegisteredDevices"},
		{"{\"Data\":{\"PodDeviceEntries\":7,\"RegisteredDevices\":{}}}",
		 "PodDeviceEntries"},
		{ENTRY("{\"x\":[]}", "\"\""), "DeviceIDs"},
		{ENTRY("{\"0\":7}", "\"\""), "DeviceIDs"},
		{ENTRY("{\"0\":[7]}", "\"\""), "DeviceIDs"},
		{ENTRY("{}", "\"%\""), "AllocResp"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct manager manager = {0};
		struct error error;
		expect_error(
			checkpoint_parse(table[i][0], strlen(table[i][0]), start, &manager, &error),
			&error, ERROR_INVALID_INPUT, table[i][1]);
		assert_int_equal(manager.holds.count + manager.resources.count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
