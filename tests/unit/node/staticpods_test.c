#include "node/staticpods.h"

#include "lib/folder.h"
#include "lib/test.h"
#include "sys/durable.h"

#include <stdio.h>
#include <sys/stat.h>

static void write_text(void **state, const char *name, const char *text)
{
	struct error error;

	expect_ok(durable_replace(folder_path(state, name), text, strlen(text), 0600, &error),
		  &error);
}

static bool find(void **state, const char *mirror, char path[STATICPOD_MAX_PATH])
{
	char kubelet[512];

	snprintf(kubelet, sizeof kubelet, "%s/var/lib/kubelet", *(const char **)state);
	return staticpods_find(&(struct staticpods_question){*(const char **)state, kubelet, "n1",
							     "default", mirror},
			       path);
}

static void make(void **state)
{
	struct error error;

	expect_ok(durable_make_folder(folder_path(state, "var/lib/kubelet"), 0700, &error), &error);
	expect_ok(durable_make_folder(folder_path(state, "etc/manifests"), 0700, &error), &error);
	write_text(state, "var/lib/kubelet/config.yaml", "staticPodPath: /etc/manifests\n");
}

/* Beside what isn't one, and what the kubelet doesn't look at. proves: REL-56 */
static void test_among_others(void **state)
{
	char path[STATICPOD_MAX_PATH];

	make(state);
	assert_false(find(state, "web-n1", path));
	write_text(state, "etc/manifests/.web.yaml", "metadata: {name: web}\n");
	write_text(state, "etc/manifests/broken.yaml", "{");
	write_text(state, "etc/manifests/other.yaml", "metadata: {name: other}\n");
	assert_int_equal(mkdir(folder_path(state, "etc/manifests/folder"), 0700), 0);
	assert_false(find(state, "web-n1", path));
	write_text(state, "etc/manifests/web.yaml", "metadata: {name: web}\n");
	assert_true(find(state, "web-n1", path));
	assert_string_equal(path, "/etc/manifests/web.yaml"); /* as the host has it */
}

static void test_a_single_file(void **state)
{
	char path[STATICPOD_MAX_PATH];

	make(state);
	write_text(state, "var/lib/kubelet/config.yaml",
		   "staticPodPath: /etc/manifests/web.json\n");
	write_text(state, "etc/manifests/web.json", "{\"metadata\": {\"name\": \"web\"}}");
	assert_true(find(state, "web-n1", path));
	assert_string_equal(path, "/etc/manifests/web.json");
	assert_false(find(state, "other-n1", path));
}

/* Beyond the bounds it isn't known, and nobody waits for long. */
static void test_too_many(void **state)
{
	char path[STATICPOD_MAX_PATH], name[64];

	make(state);
	for (int i = 0; i < STATICPODS_MAX; i++) {
		snprintf(name, sizeof name, "etc/manifests/a%d", i);
		write_text(state, name, "7");
	}
	write_text(state, "etc/manifests/web.yaml", "metadata: {name: web}\n");
	assert_false(find(state, "web-n1", path));
}

static void write_padded(void **state, const char *name, const char *text, size_t size)
{
	CLEANUP(buf) struct buf padded = {0};

	buf_add_text(&padded, text);
	while (padded.length < size)
		buf_add_text(&padded,
			     "# padding padding padding padding padding padding padding\n");
	write_text(state, name, buf_text(&padded));
}

/* A file, and all together, are read up to a bound. */
static void test_too_large(void **state)
{
	char path[STATICPOD_MAX_PATH], name[64];

	make(state);
	write_padded(state, "etc/manifests/web.yaml", "metadata: {name: web}\n",
		     STATICPOD_MAX_FILE - 100);
	assert_true(find(state, "web-n1", path));
	write_padded(state, "etc/manifests/web.yaml", "metadata: {name: web}\n",
		     STATICPOD_MAX_FILE + 1);
	assert_false(find(state, "web-n1", path));
	write_padded(state, "etc/manifests/web.yaml", "metadata: {name: web}\n", 1000);
	for (size_t i = 0; i < STATICPODS_MAX_BYTES / STATICPOD_MAX_FILE; i++) {
		assert_true(find(state, "web-n1", path));
		snprintf(name, sizeof name, "etc/manifests/a%zu", i);
		write_padded(state, name, "", STATICPOD_MAX_FILE - 100);
	}
	assert_false(find(state, "web-n1", path));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_among_others),
		IN_FOLDER(test_a_single_file),
		IN_FOLDER(test_too_many),
		IN_FOLDER(test_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
