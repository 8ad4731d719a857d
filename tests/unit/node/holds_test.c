/* The holds on disk, read again and again: what is unchanged isn't read, what changed is. */
#include "node/holds.h"

#include "core/fixture.h"
#include "lib/folder.h"
#include "sys/durable.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
	void *folder; /* lib/folder.h: a path */
	struct inventory inventory;
	struct holds_cache *cache;
};

static int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);

	assert_int_equal(folder_make(&world->folder), 0);
	fixture_inventory(&world->inventory);
	world->cache = holds_cache_create(world->folder);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	holds_cache_destroy(world->cache);
	inventory_deinit(&world->inventory);
	assert_int_equal(folder_remove(&world->folder), 0);
	free(world);
	return 0;
}

/* Binds GPU `gpu` to the allocation, on disk; the file takes any other's place. */
static void bind(struct world *world, const char *allocation, size_t gpu)
{
	struct atom atom = fixture_gpu(&world->inventory, gpu);
	CLEANUP(free) char *path = holds_path(world->folder, allocation);
	CLEANUP(buf) struct buf text = {0};
	struct holds holds = {0};
	struct error error;

	fixture_bind(&holds, &world->inventory, allocation, &atom, 1);
	holds_format(&holds.items[0], &text);
	expect_ok(durable_replace(path, text.data, text.length, 0644, &error), &error);
	holds_deinit(&holds);
}

/* The cache says what a fresh reading says. */
static const struct holds *look(struct world *world, size_t count)
{
	const struct holds *cached;
	struct holds fresh = {0};
	struct error error;

	expect_ok(holds_cache_read(world->cache, &cached, &error), &error);
	expect_ok(holds_read(world->folder, &fresh, &error), &error);
	assert_int_equal(cached->count, count);
	assert_int_equal(fresh.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(cached->items[i].allocation, fresh.items[i].allocation);
		assert_true(atom_equal(&cached->items[i].devices.items[0].atom,
				       &fresh.items[i].devices.items[0].atom));
	}
	holds_deinit(&fresh);
	return cached;
}

/* proves: DP-4 DP-26 */
static void test_follows_the_files(void **state)
{
	struct world *world = *state;
	CLEANUP(free) char *a = holds_path(world->folder, ALC_A);
	struct atom first = fixture_gpu(&world->inventory, 0);
	struct atom second = fixture_gpu(&world->inventory, 1);
	const struct holds *holds;

	look(world, 0);
	bind(world, ALC_B, 2);
	look(world, 1);
	bind(world, ALC_A, 0); /* before it in order */
	holds = look(world, 2);
	assert_true(atom_equal(&holds->items[0].devices.items[0].atom, &first));
	look(world, 2);
	bind(world, ALC_A, 1); /* as long as before, perhaps within one tick of the clock */
	holds = look(world, 2);
	assert_true(atom_equal(&holds->items[0].devices.items[0].atom, &second));
	assert_int_equal(unlink(a), 0);
	look(world, 1);
	bind(world, ALC_A, 0);
	look(world, 2);
}

/* Written in place, as no bcd does: the time of change tells. */
static void test_sees_what_was_written_in_place(void **state)
{
	struct world *world = *state;
	CLEANUP(free) char *path = holds_path(world->folder, ALC_A);
	const struct holds *holds;
	struct stat before, after;
	struct error error;
	int fd;

	bind(world, ALC_A, 0);
	look(world, 1);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &before), 0);
	do { /* until the file system's clock has gone on */
		assert_int_equal(pwrite(fd, "x", 1, 0), 1);
		assert_int_equal(fstat(fd, &after), 0);
	} while (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
		 after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
	close(fd);
	expect_error(holds_cache_read(world->cache, &holds, &error), &error, ERROR_INVALID_INPUT,
		     ALC_A);
}

/* Never "no hold", and no old copy either: the next reading is of the disk.
 * proves: DP-54 */
static void test_a_failed_reading_is_an_error_until_it_heals(void **state)
{
	struct world *world = *state;
	CLEANUP(free) char *path = holds_path(world->folder, ALC_B);
	const struct holds *holds;
	struct error error;

	bind(world, ALC_A, 0);
	look(world, 1);
	expect_ok(durable_replace(path, "{", 1, 0644, &error), &error);
	for (int i = 0; i < 2; i++)
		expect_error(holds_cache_read(world->cache, &holds, &error), &error,
			     ERROR_INVALID_INPUT, ALC_B);
	bind(world, ALC_B, 1);
	look(world, 2);
}

static void test_other_files_are_not_ours(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf path = {0};
	struct error error;

	bind(world, ALC_A, 0);
	buf_printf(&path, "%s/nvidia.yaml", (const char *)world->folder);
	expect_ok(durable_replace(buf_text(&path), "?", 1, 0644, &error), &error);
	look(world, 1);
}

/* A folder that isn't there yet is no hold; one that can't be read is an error. */
static void test_the_folder_itself(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf path = {0};
	struct holds_cache *cache;
	const struct holds *holds;
	struct error error;

	buf_printf(&path, "%s/cdi", (const char *)world->folder);
	cache = holds_cache_create(buf_text(&path));
	expect_ok(holds_cache_read(cache, &holds, &error), &error);
	assert_int_equal(holds->count, 0);
	expect_ok(durable_replace(buf_text(&path), "", 0, 0644, &error), &error);
	expect_error(holds_cache_read(cache, &holds, &error), &error, ERROR_INTERNAL,
		     "read the holds");
	holds_cache_destroy(cache);
}

/* Numbers that are found anew, and those of nodes that went for a while. proves: DP-55 */
static void test_numbers_of_device_nodes(void **state)
{
	struct world *world = *state;
	struct atom atom = fixture_gpu(&world->inventory, 0);
	CLEANUP(hold) struct hold copy = {0};
	struct holds holds = {0};
	struct hold_node *node;

	fixture_bind(&holds, &world->inventory, ALC_A, &atom, 1);
	hold_copy(&holds.items[0], &copy);
	node = &copy.devices.items[0].nodes.items[0];
	str_copy(node->host_path, sizeof node->host_path, "/dev/null");
	assert_true(holds_find_nodes(&copy));
	assert_int_equal(node->type, 'c');
	assert_int_equal(node->major, 1);
	assert_int_equal(node->minor, 3);
	assert_false(holds_find_nodes(&copy));
	str_copy(node->host_path, sizeof node->host_path, "/dev/zero");
	assert_true(holds_find_nodes(&copy));
	assert_int_equal(node->minor, 5);
	str_copy(node->host_path, sizeof node->host_path, "/dev/none");
	assert_false(holds_find_nodes(&copy));
	assert_int_equal(node->minor, 5);
	assert_int_equal(holds.items[0].devices.items[0].nodes.items[0].type, 0);
	holds_deinit(&holds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_follows_the_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sees_what_was_written_in_place, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_failed_reading_is_an_error_until_it_heals,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_files_are_not_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_folder_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_of_device_nodes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
