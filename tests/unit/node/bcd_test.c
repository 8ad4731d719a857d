/* The bcd program: its verbs, exit statuses and texts. argv[1] is the program. */
#include "lib/folder.h"
#include "lib/test.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program; /* set once by main */

struct run {
	int status;
	char text[65536]; /* stdout and stderr */
};

static void run(struct run *run, const char *format, ...) PRINTF(2, 3);
static void run(struct run *run, const char *format, ...)
{
	char arguments[2048], command[4096];
	va_list list;
	size_t length;
	FILE *pipe;

	va_start(list, format);
	vsnprintf(arguments, sizeof arguments, format, list);
	va_end(list);
	snprintf(command, sizeof command, "'%s' %s 2>&1", program, arguments);
	pipe = popen(command, "r"); /* a test's own fixed words */
	assert_non_null(pipe);
	length = fread(run->text, 1, sizeof run->text - 1, pipe);
	run->text[length] = '\0';
	run->status = WEXITSTATUS(pclose(pipe));
}

static void expect(const struct run *run, int status, const char *text)
{
	if (run->status != status || !strstr(run->text, text))
		fail_msg("status %d, not %d, or '%s' is missing in:\n%s", run->status, status, text,
			 run->text);
}

static void write_config(void **state)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	/* No API server: a kubeconfig that isn't there is a condition, after some tries. */
	buf_printf(&text,
		   "[paths]\nroot = '%s'\n[host]\nunits = false\n[gpu]\nsource = 'sim'\n"
		   "sim_file = '%s/gpus.toml'\n[kubernetes]\nnode_name = 'n1'\n"
		   "kubeconfig = ''\n",
		   (char *)*state, (char *)*state);
	expect_ok(durable_replace(folder_path(state, "config.toml"), text.data, text.length, 0600,
				  &error),
		  &error);
}

/* An answer that nobody got is said to be lost, by every verb that prints one. */
static void test_a_full_disk_behind_stdout(void **state)
{
	struct run it;

	write_config(state);
	run(&it, "--version 2>&1 >/dev/full; exit $?; :");
	expect(&it, 1, "error: write to stdout: No space left on device");
	run(&it, "status --help 2>&1 >/dev/full; exit $?; :");
	expect(&it, 1, "write to stdout: No space left");
	run(&it, "sim --help 2>&1 >/dev/full; exit $?; :");
	expect(&it, 1, "look before you try again");
}

/* proves: DOC-1 */
static void test_version_and_help(void **state UNUSED)
{
	struct run it;

	run(&it, "--version");
	expect(&it, 0, "bcd 0.");
	run(&it, "--help");
	expect(&it, 0, "status");
	run(&it, "%s", "");
	expect(&it, 2, "join");
	run(&it, "stauts");
	expect(&it, 2, "(did you mean 'status'?)");
	run(&it, "node --colour red");
	expect(&it, 2, "colour");
	run(&it, "node --log-level debg");
	expect(&it, 2, "is not one of debug, info, warn, error");
	run(&it, "node extra");
	expect(&it, 2, "no operands");
	run(&it, "status --help");
	expect(&it, 0, "Exit status: 0 alive");
	run(&it, "help");
	expect(&it, 0, "bcd [--config FILE] VERB");
	run(&it, "help status");
	expect(&it, 0, "Exit status: 0 alive");
	run(&it, "help stauts");
	expect(&it, 2, "(did you mean 'status'?)");
}

static void test_configuration_that_is_wrong(void **state)
{
	struct run it;
	struct error error;

	run(&it, "--config /nonexistent.toml node");
	expect(&it, 2, "/nonexistent.toml");
	expect(&it, 2, "bcd --config FILE");
	run(&it, "--config /nonexistent.toml join");
	expect(&it, 2, "bcd --config FILE");
	expect(&it, 2, "better-compute up");
	run(&it, "--config /nonexistent.toml status");
	expect(&it, 2, "BETTER_COMPUTE_STATE");
	run(&it, "--config /nonexistent.toml sim show");
	expect(&it, 2, "better-compute up");
	run(&it, "status --state /nonexistent");
	expect(&it, 2, "Start one there: better-compute up --state '/nonexistent'");
	run(&it, "sim show --state /nonexistent");
	expect(&it, 2, "Start one there: better-compute up --state '/nonexistent'");
	expect_ok(durable_make_folder(folder_path(state, "above/.better-compute"), 0700, &error),
		  &error);
	run(&it, "status --state '%s'", folder_path(state, "above"));
	expect(&it, 2, "It is one level further down: --state '");
	expect(&it, 2, "above/.better-compute'");
	expect_ok(durable_replace(folder_path(state, "bad.toml"),
				  "[kubernetes]\ngpu_api = 'both'\n", 30, 0600, &error),
		  &error);
	run(&it, "--config '%s' node", folder_path(state, "bad.toml"));
	/* proves: JOIN-34 */
	expect(&it, 2, "kubernetes.gpu_api");
	expect(&it, 2, "both");
}

/* In a pod the name comes by the environment; the other verbs need none. proves: HOSTED-41 */
static void test_a_hosted_node_without_its_name(void **state)
{
	static const char text[] = "[paths]\nroot = '/nonexistent'\n[host]\nunits = false\n";
	struct error error;
	struct run it;

	expect_ok(durable_replace(folder_path(state, "nameless.toml"), text, sizeof text - 1, 0600,
				  &error),
		  &error);
	assert_int_equal(unsetenv("NODE_NAME"), 0);
	assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1), 0);
	run(&it, "--config '%s' node", folder_path(state, "nameless.toml"));
	expect(&it, 2, "NODE_NAME isn't set");
	expect(&it, 2, "fieldRef spec.nodeName");
	assert_int_equal(unsetenv("KUBERNETES_SERVICE_HOST"), 0);
	run(&it, "--config '%s' node", folder_path(state, "nameless.toml"));
	expect(&it, 2, "NODE_NAME isn't set");
	expect(&it, 2, "[kubernetes] node_name =");
	run(&it, "--config '%s' status", folder_path(state, "nameless.toml"));
	expect(&it, 3, "bcd.sock");
}

/* The beginning of the first GPU's UUID. */
static void first_uuid(char out[9], const char *file)
{
	const char *at;
	struct run it;

	run(&it, "sim show --file '%s'", file);
	at = strstr(it.text, "uuid = \"GPU-");
	assert_non_null(at);
	snprintf(out, 9, "%s", at + strlen("uuid = \"GPU-"));
}

static void test_sim(void **state)
{
	struct run it;
	char file[512], uuid[9], first[9];

	str_copy(file, sizeof file, folder_path(state, "gpus.toml"));
	run(&it, "sim init 8xH100 --out '%s'", file);
	expect(&it, 0, "8 simulated GPUs");
	run(&it, "sim init 8xH100 --out '%s'", file);
	expect(&it, 1, "--force");
	run(&it, "sim init 99xH100");
	expect(&it, 2, "not a preset");
	first_uuid(first, file);
	run(&it, "sim init 8xH100 --force --out '%s'", file);
	expect(&it, 0, "8 simulated GPUs");
	first_uuid(uuid, file);
	assert_string_not_equal(uuid, first); /* another machine has other GPUs */
	run(&it, "sim set --file '%s' 0 xid=79 row_remap=pending", file);
	expect(&it, 0, "): xid=79 row_remap=pending\n");
	assert_non_null(strstr(it.text, "GPU 0 (GPU-"));
	assert_non_null(strstr(it.text, uuid));
	run(&it, "sim show --file '%s'", file);
	expect(&it, 0, "xids = [79]");
	expect(&it, 0, "# GPU 0\n");
	/* as bcd status names it; one that is wrong leaves all as it was */
	run(&it, "sim set --file '%s' gpu/%s xid=0 row_remap=maybe", file, uuid);
	expect(&it, 2, "row_remap takes pending, failed; none");
	expect(&it, 2, "Nothing was changed.");
	run(&it, "sim show --file '%s'", file);
	expect(&it, 0, "xids = [79]");
	run(&it, "sim set --file '%s' 0 colour=red", file);
	expect(&it, 2, "the keys are");
	run(&it, "sim set --file '%s' 9 xid=79", file);
	expect(&it, 2, "no GPU 9");
	/* slots and MIG exclude each other: the file stays as it was */
	run(&it, "sim set --file '%s' 1 mig=1g.10gb@0 slots=4", file);
	expect(&it, 1, "slots");
	run(&it, "sim show --file '%s'", file);
	assert_null(strstr(it.text, "1g.10gb"));
}

static pid_t start_daemon(void **state)
{
	const char *config = folder_path(state, "config.toml");
	const char *log = folder_path(state, "log");
	pid_t parent = getpid(), child = fork();

	if (child != 0)
		return child;
	/* a test that fails midway leaves nobody behind */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent ||
	    !freopen(log, "w", stdout) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
		_exit(1);
	execl(program, program, "--config", config, "node", (char *)NULL);
	_exit(127);
}

static void expect_logged_once(void **state, const char *event)
{
	CLEANUP(buf) struct buf log = {0};
	struct error error;
	const char *first;

	expect_ok(durable_read(folder_path(state, "log"), 1 << 20, &log, &error), &error);
	first = strstr(buf_text(&log), event);
	assert_non_null(first);
	assert_null(strstr(first + 1, event));
}

static void check_until(const char *config, int status)
{
	struct run it;

	for (int i = 0; i < TEST_PATIENCE_MS / 20; i++) {
		run(&it, "status --config '%s' --check", config);
		if (it.status == status)
			return;
		usleep(20000);
	}
	fail_msg("status %d, not %d:\n%s", it.status, status, it.text);
}

/* The number that the line with `what` begins with. */
static long number_before(const char *text, const char *what)
{
	const char *at = strstr(text, what);

	while (at > text && at[-1] != '\n')
		at--;
	return strtol(at, NULL, 10);
}

/* proves: DOC-2 DOC-3 DOC-25 DOC-26 DP-37 */
static void test_status_is_a_liveness_probe(void **state)
{
	CLEANUP(tree) json_t *status = NULL;
	char config[512];
	struct error error;
	struct run it;
	pid_t child;

	str_copy(config, sizeof config, folder_path(state, "config.toml"));
	write_config(state);
	run(&it, "sim init 8xH100 --out '%s'", folder_path(state, "gpus.toml"));
	run(&it, "status --config '%s'", config);
	expect(&it, 3, "Is it running? Start it: bcd --config '");
	child = start_daemon(state);
	for (int i = 0; i < TEST_PATIENCE_MS / 20; i++) {
		run(&it, "--config '%s' status", config);
		if (it.status == 0)
			break;
		usleep(20000);
	}
	/* away from the control plane, and not even joined: alive all the same */
	expect(&it, 0, "gateway: off");
	expect(&it, 0, "nothing offered");
	expect(&it, 0, "simulated");
	run(&it, "status --config '%s' -o json", config);
	expect_ok(tree_parse(it.text, strlen(it.text), sizeof it.text, "status", &status, &error),
		  &error);
	assert_int_equal(json_array_size(json_object_get(status, "devices")), 8);
	assert_true(json_is_false(json_object_get(status, "degraded")));
	/* a loop that doesn't turn doesn't answer */
	assert_int_equal(kill(child, SIGSTOP), 0);
	run(&it, "status --config '%s' --timeout 1", config);
	expect(&it, 3, "doesn't answer");
	run(&it, "status --config '%s' --timeout 1s", config);
	expect(&it, 3, "doesn't answer");
	assert_int_equal(kill(child, SIGCONT), 0);
	/* degraded shows only with --check: first a GPU that is sick, then a condition */
	check_until(config, 0);
	run(&it, "sim set --config '%s' 3 xid=79", config);
	expect(&it, 0, "xid=79");
	check_until(config, 1);
	run(&it, "status --config '%s'", config);
	expect(&it, 0, "XID 79");
	assert_int_equal(number_before(it.text, "XID 79"), 3); /* as `bcd sim` counts them */
	expect(&it, 0, "XID 79: fell off the bus, for ");
	expect_logged_once(state, "gpu.unhealthy");
	run(&it, "sim set --config '%s' 3 xid=none", config);
	check_until(config, 0);
	expect_logged_once(state, "gpu.healthy");
	assert_int_equal(unlink(folder_path(state, "gpus.toml")), 0);
	for (int i = 0; i < TEST_PATIENCE_MS / 20; i++) {
		run(&it, "status --config '%s' --check", config);
		if (it.status != 0)
			break;
		usleep(20000);
	}
	expect(&it, 1, "GpusUnreadable");
	run(&it, "status --config '%s'", config);
	expect(&it, 0, "GpusUnreadable");
	expect_logged_once(state, "gpus.unreadable");
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(waitpid(child, &it.status, 0), child);
	assert_true(WIFEXITED(it.status) && WEXITSTATUS(it.status) == 0);
}

/* A socket there that nobody answers at. */
static int listen_deaf(void **state, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	str_copy(address.sun_path, sizeof address.sun_path, folder_path(state, name));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}
/* A bcd that is served by this test says `text`; what `bcd status` makes of it. */
static void show(void **state, const char *text, struct run *ret_run)
{
	struct error error;
	int listener, asked;
	pid_t child;

	write_config(state);
	expect_ok(durable_make_folder(folder_path(state, "run/bcd"), 0700, &error), &error);
	listener = listen_deaf(state, "run/bcd/bcd.sock");
	child = fork();
	if (child == 0) {
		struct pollfd poll_fd = {listener, POLLIN, 0};

		(void)poll(&poll_fd, 1, TEST_PATIENCE_MS);
		asked = accept(listener, NULL, NULL);
		_exit(write(asked, text, strlen(text)) != (ssize_t)strlen(text));
	}
	run(ret_run, "status --config '%s'", folder_path(state, "config.toml"));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(listener);
	assert_int_equal(unlink(folder_path(state, "run/bcd/bcd.sock")), 0);
}

/* Who is told to set what is set looks in the wrong place. proves: HOSTED-41 DOC-25 */
static void test_why_nothing_is_offered(void **state)
{
	struct run it;

	show(state,
	     "{\"bcd\":\"1\",\"servesKubelet\":false,\"resources\":[],\"conditions\":[{\"type\":"
	     "\"KubernetesNodeUnknown\",\"message\":\"the cluster has no Node 'n1'\"}]}",
	     &it);
	expect(&it, 0,
	       "nothing offered: the cluster has no Node of this name (condition "
	       "KubernetesNodeUnknown)\n");
	expect(&it, 0, "the cluster has no Node 'n1'\n");
	assert_null(strstr(it.text, "config.toml needs"));
	show(state, "{\"bcd\":\"1\",\"servesKubelet\":false,\"resources\":[],\"conditions\":[]}",
	     &it);
	expect(&it, 0,
	       "nothing offered, and nothing will be: config.toml needs [host] units = "
	       "false and [kubernetes] node_name\n");
	show(state, "{\"bcd\":\"1\",\"servesKubelet\":true,\"resources\":[],\"conditions\":[]}",
	     &it);
	expect(&it, 0, "nothing offered\n");
}

/* The time to wait is one, whoever is asked: nothing is left of it for the bcd that waits.
 * proves: DOC-26 */
static void test_one_time_for_all_who_are_asked(void **state)
{
	struct error error;
	struct run it;
	int serving, waiting, asked;

	write_config(state);
	expect_ok(durable_make_folder(folder_path(state, "run/bcd"), 0700, &error), &error);
	serving = listen_deaf(state, "run/bcd/bcd.sock");
	waiting = listen_deaf(state, "run/bcd/waiting.sock");
	run(&it, "status --config '%s' --timeout 1", folder_path(state, "config.toml"));
	expect(&it, 3, "doesn't answer");
	asked = accept(serving, NULL, NULL);
	assert_true(asked >= 0);
	assert_true(accept(waiting, NULL, NULL) < 0 && errno == EAGAIN);
	/* where nobody serves, the one that waits is asked at once */
	assert_int_equal(unlink(folder_path(state, "run/bcd/bcd.sock")), 0);
	run(&it, "status --config '%s' --timeout 1", folder_path(state, "config.toml"));
	expect(&it, 3, "");
	close(asked);
	asked = accept(waiting, NULL, NULL);
	assert_true(asked >= 0);
	close(asked);
	close(serving);
	close(waiting);
}

static void test_a_node_that_has_not_joined(void **state)
{
	struct error error;
	struct run it;
	CLEANUP(buf) struct buf text = {0};

	buf_printf(
		&text,
		"[paths]\nroot = '%s'\n[gateway]\naddresses = ['127.0.0.1:1']\nserver_name = 'g'\n"
		"ca_pins = 'x'\n",
		(char *)*state);
	expect_ok(durable_replace(folder_path(state, "config.toml"), text.data, text.length, 0600,
				  &error),
		  &error);
	run(&it, "--config '%s' node", folder_path(state, "config.toml"));
	expect(&it, 1, "Join first: bcd join --token-file FILE.");
	run(&it, "--config '%s' status", folder_path(state, "config.toml"));
	expect(&it, 3, "hasn't joined a control plane yet: bcd join --token-file FILE");
	run(&it, "--config '%s' join", folder_path(state, "config.toml"));
	expect(&it, 2, "--token-file");
}

/* Nobody else is in its way: it ends and says what is. */
static void test_a_lock_that_is_no_file(void **state)
{
	struct error error;
	struct run it;

	write_config(state);
	expect_ok(durable_make_folder(folder_path(state, "var/lib/bcd/lock"), 0700, &error),
		  &error);
	run(&it, "--config '%s' node", folder_path(state, "config.toml"));
	expect(&it, 1, "var/lib/bcd/lock': not a file but a folder");
	expect(&it, 1, "Move it away");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_and_help),
		IN_FOLDER(test_a_full_disk_behind_stdout),
		IN_FOLDER(test_configuration_that_is_wrong),
		IN_FOLDER(test_a_hosted_node_without_its_name),
		IN_FOLDER(test_sim),
		IN_FOLDER(test_status_is_a_liveness_probe),
		IN_FOLDER(test_why_nothing_is_offered),
		IN_FOLDER(test_one_time_for_all_who_are_asked),
		IN_FOLDER(test_a_node_that_has_not_joined),
		IN_FOLDER(test_a_lock_that_is_no_file),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: bcd_test BCD\n");
		return 2;
	}
	program = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
