/* Is or was this machine a worker? By what is on its disk, and in its configuration. */
#include "node/core/release.h"

#include "lib/folder.h"
#include "lib/test.h"
#include "node/state.h"

#include <sys/stat.h>
#include <unistd.h>

/* The question as it stands on a machine whose root is the test's folder. */
static bool is_worker(void **state, bool host_units, const char *node_name)
{
	CLEANUP(free) char *root = mem_strdup(*(const char **)state);
	CLEANUP(free) char *kubelet = mem_strdup(folder_path(state, "var/lib/kubelet"));
	CLEANUP(free)
	char *socket = mem_strdup(folder_path(state, "var/lib/kubelet/pod-resources/kubelet.sock"));
	CLEANUP(free)
	char *kubeconfig = mem_strdup(folder_path(state, "etc/kubernetes/kubelet.conf"));
	const struct config config = {
		.root = root,
		.kubelet = kubelet,
		.kubeconfig = kubeconfig,
		.host_units = host_units,
		.node_name = node_name,
	};
	const struct node node = {.config = &config, .pod_resources_path = socket};

	return release_is_worker(&node);
}

static bool was_worker(void **state)
{
	return is_worker(state, true, "");
}

static void make_folders(void **state)
{
	static const char *const FOLDERS[] = {"var/lib/kubelet/pod-resources", "etc/kubernetes",
					      "var/lib/bcd-hostconfig"};
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(FOLDERS); i++)
		expect_ok(durable_make_folder(folder_path(state, FOLDERS[i]), 0700, &error),
			  &error);
}

/* Folders alone, as a package leaves them, tell nothing. proves: REL-17 */
static void test_a_machine_that_never_was(void **state)
{
	assert_false(was_worker(state));
	make_folders(state);
	assert_false(was_worker(state));
	assert_false(is_worker(state, true, "n1"));
}

/* Whatever of a join is on its disk, even that it is over.  proves: REL-15 HOSTED-18 HOSTED-25 */
static void test_a_hosted_node(void **state)
{
	static const char *const RECORDS[] = {"{\"state\":\"released\"}", "{", ""};
	const char *path;
	struct error error;

	assert_true(is_worker(state, false, "n1"));
	make_folders(state);
	for (size_t i = 0; i < ARRAY_SIZE(RECORDS); i++) {
		path = folder_path(state, "var/lib/bcd-hostconfig/k8s-join.json");
		expect_ok(durable_replace(path, RECORDS[i], strlen(RECORDS[i]), 0600, &error),
			  &error);
		assert_true(is_worker(state, false, "n1"));
	}
	/* nor is it looked for: a folder in its place is nobody's trouble */
	path = folder_path(state, "var/lib/bcd-hostconfig/k8s-join.json");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0), 0);
	assert_true(is_worker(state, false, "n1"));
	assert_int_equal(rmdir(path), 0);
}

/* Each piece alone, and in each form in which something may stand there: what can't be read was
 * written by somebody. proves: REL-15 */
static void test_every_piece_of_evidence(void **state)
{
	static const char *const PIECES[] = {
		"var/lib/kubelet/pod-resources/kubelet.sock",
		"var/lib/kubelet/config.yaml",
		"etc/kubernetes/kubelet.conf",
		"var/lib/bcd-hostconfig/k8s-join.json",
	};
	struct error error;

	make_folders(state);
	for (size_t i = 0; i < ARRAY_SIZE(PIECES); i++) {
		const char *path = folder_path(state, PIECES[i]);

		expect_ok(durable_replace(path, "{\"released\":true}", 17, 0600, &error), &error);
		assert_true(was_worker(state));
		path = folder_path(state, PIECES[i]);
		expect_ok(durable_replace(path, "\x01", 1, 0000, &error), &error);
		assert_true(was_worker(state));
		path = folder_path(state, PIECES[i]);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(mkdir(path, 0), 0);
		assert_true(was_worker(state));
		path = folder_path(state, PIECES[i]);
		assert_int_equal(rmdir(path), 0);
		assert_int_equal(symlink("nowhere", path), 0);
		assert_true(was_worker(state));
		path = folder_path(state, PIECES[i]);
		assert_int_equal(unlink(path), 0);
		assert_false(was_worker(state));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_a_machine_that_never_was),
		IN_FOLDER(test_a_hosted_node),
		IN_FOLDER(test_every_piece_of_evidence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
