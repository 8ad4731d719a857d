#include "sys/machine.h"

#include "lib/folder.h"
#include "lib/test.h"

#include <stdio.h>
#include <sys/stat.h>

static void write_pool(void **folder, const char *size, const char *count)
{
	char name[64], path[64 + 32];
	FILE *file;

	snprintf(name, sizeof name, "hugepages-%skB", size);
	assert_int_equal(mkdir(folder_path(folder, name), 0700), 0);
	snprintf(path, sizeof path, "%s/nr_hugepages", name);
	file = fopen(folder_path(folder, path), "we");
	assert_non_null(file);
	assert_true(fputs(count, file) >= 0 && fclose(file) == 0);
}

/* proves: RES-13 */
static void test_huge_pages_by_size(void **state)
{
	struct hugepages pages;

	write_pool(state, "2048", "512\n");
	write_pool(state, "64", "9\n");
	machine_hugepages(folder_path(state, "."), &pages);
	assert_int_equal(pages.bytes[HUGEPAGES_2MI], (int64_t)1 << 30);
	assert_int_equal(pages.bytes[HUGEPAGES_1GI], 0);
	write_pool(state, "1048576", "3\n");
	machine_hugepages(folder_path(state, "."), &pages);
	assert_int_equal(pages.bytes[HUGEPAGES_1GI], (int64_t)3 << 30);
	machine_hugepages(folder_path(state, "none"), &pages);
	assert_int_equal(pages.bytes[HUGEPAGES_2MI], 0);
}

/* What the kernel's other account of the same says. */
static void test_this_machine(void **state)
{
	long long pages = -1, kib = -1, all_kib = -1;
	struct machine machine;
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof line, file)) {
		(void)sscanf(line, "HugePages_Total: %lld", &pages);
		(void)sscanf(line, "Hugepagesize: %lld kB", &kib);
		(void)sscanf(line, "Hugetlb: %lld kB", &all_kib);
	}
	fclose(file);
	machine_read(&machine);
	assert_true(machine.vcpus > 0 && machine.memory_bytes > 0);
	if (kib == 2048)
		assert_int_equal(machine.hugepages.bytes[HUGEPAGES_2MI], pages * 2048 * 1024);
	if (all_kib >= 0)
		assert_int_equal(machine.hugepages.bytes[HUGEPAGES_2MI] +
					 machine.hugepages.bytes[HUGEPAGES_1GI],
				 all_kib * 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_huge_pages_by_size, folder_make,
						folder_remove),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
