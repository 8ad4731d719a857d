#include "nvml/library.h"

#include "base/buf.h"
#include "lib/folder.h"
#include "lib/test.h"

#include <dlfcn.h>
#include <sys/stat.h>

static const char *newest, *oldest;

static void test_each_driver_has_what_it_has(void **state UNUSED)
{
	struct nvml nvml = {0};
	struct error error;

	expect_ok(library_load(newest, "/", &nvml, &error), &error);
	assert_non_null(nvml.mig_mode);
	assert_non_null(nvml.memory_v2);
	expect_ok(library_load(oldest, "/", &nvml, &error), &error);
	assert_non_null(nvml.init); /* the older forms in place of the newer */
	assert_non_null(nvml.by_index);
	assert_non_null(nvml.pci);
	assert_non_null(nvml.events_wait);
	assert_null(nvml.mig_mode);
	assert_null(nvml.memory_v2);
	assert_null(nvml.fields);
}

static void make_folders(void **state, const char *below)
{
	char path[512];

	snprintf(path, sizeof path, "%s", folder_path(state, below));
	for (char *at = path + strlen(*state) + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		(void)!mkdir(path, 0700); /* it may be there */
		*at = '/';
	}
	assert_int_equal(mkdir(path, 0700), 0);
}

static void copy_file(const char *from, const char *to)
{
	CLEANUP(buf) struct buf content = {0};
	FILE *in = fopen(from, "re"), *out = fopen(to, "we");
	size_t length;

	assert_non_null(in);
	assert_non_null(out);
	do {
		length = fread(buf_extend(&content, 65536), 1, 65536, in);
		assert_int_equal(fwrite(content.data, 1, length, out), length);
		buf_clear(&content);
	} while (length > 0);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

static void test_found_below_a_root(void **state)
{
	static const char *const folders[] = {
		"usr/lib64",
		"usr/lib/x86_64-linux-gnu",
		"run/nvidia/driver/usr/lib/x86_64-linux-gnu",
	};
	struct nvml nvml = {0};
	struct error error;
	char path[512];

	expect_error(library_load(NULL, *state, &nvml, &error), &error, ERROR_NOT_FOUND,
		     "libnvidia-ml.so.1 below");
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		make_folders(state, folders[i]);
		snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", folder_path(state, folders[i]));
		copy_file(newest, path);
		expect_ok(library_load(NULL, *state, &nvml, &error), &error);
		assert_int_equal(unlink(path), 0);
	}
}

/* Debian's package leads through /etc/alternatives: absolute links, of that root. */
static void test_links_mean_their_root(void **state)
{
	struct nvml nvml = {0};
	struct error error;
	char path[512];

	make_folders(state, "usr/lib64");
	make_folders(state, "etc/alternatives");
	make_folders(state, "opt/driver");
	snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", folder_path(state, "usr/lib64"));
	assert_int_equal(symlink("/etc/alternatives/nvml", path), 0);
	assert_int_equal(symlink("/opt/driver/nvml", folder_path(state, "etc/alternatives/nvml")),
			 0);
	expect_error(library_load(NULL, *state, &nvml, &error), &error, ERROR_NOT_FOUND,
		     "there is none");
	copy_file(newest, folder_path(state, "opt/driver/nvml"));
	expect_ok(library_load(NULL, *state, &nvml, &error), &error);
}

static void test_what_can_not_be_loaded(void **state)
{
	struct nvml nvml = {0};
	struct error error;
	Dl_info info;

	expect_error(library_load(folder_path(state, "none"), "/", &nvml, &error), &error,
		     ERROR_NOT_FOUND, "no such file");
	expect_error(library_load("/dev/null", "/", &nvml, &error), &error, ERROR_UNAVAILABLE,
		     "load '/dev/null'");
	assert_int_not_equal(dladdr((void *)strlen, &info), 0);
	expect_error(library_load(info.dli_fname, "/", &nvml, &error), &error, ERROR_UNAVAILABLE,
		     "it has no nvml");
	assert_null(nvml.handle);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_driver_has_what_it_has),
		cmocka_unit_test_setup_teardown(test_found_below_a_root, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(test_links_mean_their_root, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(test_what_can_not_be_loaded, folder_make,
						folder_remove),
	};

	assert(argc == 3);
	newest = argv[1];
	oldest = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
