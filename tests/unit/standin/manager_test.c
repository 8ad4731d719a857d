#include "standin/manager.h"

#include "lib/test.h"

#define GPU "bcd.dev/gpu"

static const struct mono start = {1000};

static void manager_cleanup(struct manager *manager)
{
	manager_deinit(manager);
}

/* "a b !c": devices a, b healthy, c not. */
static void offer(struct manager *manager, const char *ids)
{
	struct manager_devices devices = {0};
	for (; *ids; ids++) {
		if (*ids == ' ' || *ids == '!')
			continue;
		struct manager_device *device = vec_push(&devices);
		device->id = mem_strdup((char[]){*ids, '\0'});
		device->healthy = ids[-1] != '!';
		*vec_push(&device->numa) = *ids == 'a' ? 0 : 1;
	}
	manager_update(manager, GPU, &devices);
	assert_int_equal(devices.count, 0);
}

static void connect_plugin(struct manager *manager, uint64_t plugin, const char *path)
{
	struct error error;
	expect_ok(manager_connected(manager, GPU, plugin, path, &error), &error);
}

static void expect_counts(struct manager *manager, struct mono now, size_t capacity,
			  size_t allocatable)
{
	struct manager_counts counts = manager_counts(manager, manager_find(manager, GPU), now);
	assert_int_equal(counts.capacity, capacity);
	assert_int_equal(counts.allocatable, allocatable);
}

static void give(struct manager *manager, const char *pod, const char *id)
{
	CLEANUP(manager_ids) struct manager_ids ids = {0};
	manager_ids_add(&ids, id);
	manager_hold_add(manager, pod, "main", GPU, &ids, "answer", 6);
}

static void test_counts(void **state UNUSED)
{
	CLEANUP(manager) struct manager manager = {0};
	connect_plugin(&manager, 1, "/one");
	expect_counts(&manager, start, 0, 0);
	offer(&manager, " a b !c");
	expect_counts(&manager, start, 3, 2);
	offer(&manager, " a a b");
	expect_counts(&manager, start, 2, 2);
	offer(&manager, "");
	expect_counts(&manager, start, 0, 0);
}

/* The last plugin's end makes everything unhealthy at once; after the grace period the resource is
 * gone; a plugin that comes back brings it back. */
static void test_plugin_ends(void **state UNUSED)
{
	CLEANUP(manager) struct manager manager = {0};
	struct error error;
	CLEANUP(manager_ids) struct manager_ids available = {0};
	connect_plugin(&manager, 1, "/one");
	offer(&manager, " a b");
	manager_disconnected(&manager, GPU, "/one", start);
	expect_counts(&manager, start, 2, 0);
	expect_counts(&manager, mono_after(start, MANAGER_STOP_GRACE_MS), 2, 0);
	expect_counts(&manager, mono_after(start, MANAGER_STOP_GRACE_MS + 1), 0, 0);
	expect_error(manager_available(&manager, GPU, 1, &available, &error), &error,
		     ERROR_INVALID_STATE, "no device plugin registered 'bcd.dev/gpu'");
	connect_plugin(&manager, 2, "/one");
	offer(&manager, " a");
	expect_counts(&manager, mono_after(start, MANAGER_STOP_GRACE_MS + 1), 1, 1);
}

static void test_second_plugin_takes_over(void **state UNUSED)
{
	CLEANUP(manager) struct manager manager = {0};
	connect_plugin(&manager, 1, "/one");
	connect_plugin(&manager, 2, "/two");
	offer(&manager, " a");
	assert_int_equal(manager_find(&manager, GPU)->primary, 2);
	manager_disconnected(&manager, GPU, "/two", start);
	assert_int_equal(manager_find(&manager, GPU)->primary, 1);
	expect_counts(&manager, start, 1, 1);
	manager_disconnected(&manager, GPU, "/one", start);
	expect_counts(&manager, start, 1, 0);
}

static void test_path_on_record_is_refused(void **state UNUSED)
{
	CLEANUP(manager) struct manager manager = {0};
	struct error error;
	connect_plugin(&manager, 1, "/one");
	expect_error(manager_connected(&manager, GPU, 2, "/one", &error), &error, ERROR_CONFLICT,
		     "device plugin already connected: /one");
	manager_disconnected(&manager, GPU, "/one", start);
	connect_plugin(&manager, 3, "/one");
}

static void test_available(void **state UNUSED)
{
	CLEANUP(manager) struct manager manager = {0};
	CLEANUP(manager_ids) struct manager_ids available = {0};
	struct error error;
	expect_error(manager_available(&manager, GPU, 1, &available, &error), &error,
		     ERROR_INVALID_STATE, "no device plugin");
	connect_plugin(&manager, 1, "/one");
	offer(&manager, "!a");
	expect_error(manager_available(&manager, GPU, 1, &available, &error), &error,
		     ERROR_INVALID_STATE, "healthy");
	offer(&manager, " b a !c d");
	give(&manager, "pod-1", "b");
	expect_error(manager_available(&manager, GPU, 3, &available, &error), &error,
		     ERROR_INVALID_STATE, "3 of 'bcd.dev/gpu' requested, 2 available");
	expect_ok(manager_available(&manager, GPU, 2, &available, &error), &error);
	assert_int_equal(available.count, 2);
	assert_string_equal(available.items[0], "a");
	assert_string_equal(available.items[1], "d");
	manager_pod_remove(&manager, "pod-1");
	expect_ok(manager_available(&manager, GPU, 3, &available, &error), &error);
}

static void test_choose(void **state UNUSED)
{
	CLEANUP(manager_ids) struct manager_ids available = {0};
	CLEANUP(manager_ids) struct manager_ids preferred = {0};
	CLEANUP(manager_ids) struct manager_ids chosen = {0};
	static const char *const has[] = {"a", "b", "c", "d"}, *const wants[] = {"x", "c", "c"};
	for (size_t i = 0; i < ARRAY_SIZE(has); i++)
		manager_ids_add(&available, has[i]);
	for (size_t i = 0; i < ARRAY_SIZE(wants); i++)
		manager_ids_add(&preferred, wants[i]);
	/* The preferred that is available, once; then in order. */
	manager_choose(&available, &preferred, 3, &chosen);
	assert_string_equal(chosen.items[0], "c");
	assert_string_equal(chosen.items[1], "a");
	assert_string_equal(chosen.items[2], "b");
}

static void test_hold_keeps_numa(void **state UNUSED)
{
	CLEANUP(manager) struct manager manager = {0};
	connect_plugin(&manager, 1, "/one");
	offer(&manager, " a b");
	give(&manager, "pod-1", "b");
	offer(&manager, "");
	struct manager_hold *hold = manager_hold_find(&manager, "pod-1", "main", GPU);
	assert_non_null(hold);
	assert_int_equal(hold->devices.items[0].numa.items[0], 1);
	assert_null(manager_hold_find(&manager, "pod-1", "other", GPU));
	assert_null(manager_hold_find(&manager, "pod-2", "main", GPU));
	assert_null(manager_hold_find(&manager, "pod-1", "main", "bcd.dev/gpu.mig"));
}

static void test_names(void **state UNUSED)
{
	static const char *const good[] = {GPU, "bcd.dev/gpu.mig", "a/b", "example.com/A_b-c.1"};
	static const char *const bad[] = {"",
					  "gpu",
					  "/gpu",
					  "bcd.dev/",
					  "kubernetes.io/gpu",
					  "x.kubernetes.io/gpu",
					  "requests.bcd.dev/gpu",
					  "Bcd.dev/gpu",
					  "bcd.dev/-gpu",
					  "bcd.dev/gpu-",
					  "bcd.dev/g pu",
					  "bcd.dev/a/b",
					  "bcd_dev/gpu"};
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (!manager_resource_name_valid(good[i]))
			fail_msg("'%s' was refused", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (manager_resource_name_valid(bad[i]))
			fail_msg("'%s' was taken", bad[i]);
	char name[80] = "a/";
	memset(name + 2, 'x', 63);
	assert_true(manager_resource_name_valid(name));
	name[65] = 'x';
	assert_false(manager_resource_name_valid(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_plugin_ends),
		cmocka_unit_test(test_second_plugin_takes_over),
		cmocka_unit_test(test_path_on_record_is_refused),
		cmocka_unit_test(test_available),
		cmocka_unit_test(test_choose),
		cmocka_unit_test(test_hold_keeps_numa),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
