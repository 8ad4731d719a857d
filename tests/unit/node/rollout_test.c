/* Two bcd of one machine, as in a rollout: the newcomer waits, says so, and takes over at once. The
 * kubelet is the test's. argv[1] is bcd. */
#include "core/fixture.h"
#include "kubelet.h"
#include "lib/folder.h"
#include "node/holds.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "sys/net.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPU     "bcd.dev/gpu"
#define GAP_MS  1000
#define ROLLS   5
#define WAIT_MS 15000

static const char *program; /* set once by main */

/* Each bcd is a pod: it has a run folder of its own, and the host's other folders. */
struct world {
	void *folder;
	struct loop *loop;
	struct kubelet kubelet;
	pid_t pods[2]; /* 0: none */
	int port;
};

static const char *at(struct world *world, const char *name)
{
	return folder_path(&world->folder, name);
}

static void write_file(struct world *world, const char *name, const struct buf *text)
{
	struct error error;

	expect_ok(durable_replace(at(world, name), text->data, text->length, 0600, &error), &error);
}

static void write_config(struct world *world, int pod)
{
	CLEANUP(buf) struct buf text = {0};
	char name[32];

	buf_printf(&text,
		   "[paths]\nroot = '%s'\nrun = '%s/run-%d'\n[host]\nunits = false\n"
		   "reserved_memory_mib = 0\n[gpu]\nsource = 'sim'\nsim_file = '%s/gpus.toml'\n"
		   "kernel_log = ''\n[kubernetes]\nnode_name = 'n1'\nkubeconfig = ''\n"
		   "[metrics]\nlisten = '127.0.0.1:%d'\n",
		   (const char *)world->folder, (const char *)world->folder, pod,
		   (const char *)world->folder, world->port);
	snprintf(name, sizeof name, "config-%d.toml", pod);
	write_file(world, name, &text);
}

/* GPU 0 is ALC_A's. */
static void write_spec(struct world *world, const struct inventory *inventory)
{
	CLEANUP(spec) struct spec spec = {0};
	CLEANUP(buf) struct buf text = {0};

	fixture_assign(fixture_assignment(&spec, ALC_A), inventory, fixture_gpu(inventory, 0));
	spec_format(&spec, &text);
	write_file(world, "var/lib/bcd/spec.json", &text);
}

static void write_machine(struct world *world)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(buf) struct buf gpus = {0};
	struct error error;

	fixture_scenario(&scenario);
	scenario_inventory(&scenario, 0, "test", &inventory);
	scenario_format(&scenario, &gpus);
	write_file(world, "gpus.toml", &gpus);
	expect_ok(durable_make_folder(at(world, "var/lib/bcd"), 0700, &error), &error);
	write_spec(world, &inventory);
}

static void start(struct world *world, int pod)
{
	char config[512], log[512];
	pid_t parent = getpid(), child;

	snprintf(config, sizeof config, "%s/config-%d.toml", (const char *)world->folder, pod);
	snprintf(log, sizeof log, "%s/log-%d", (const char *)world->folder, pod);
	child = fork();
	assert_true(child >= 0);
	if (child != 0) {
		world->pods[pod] = child;
		return;
	}
	/* a test that fails midway leaves nobody behind */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent ||
	    !freopen(log, "a", stdout) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
		_exit(1);
	execl(program, program, "--config", config, "node", (char *)NULL);
	_exit(127);
}

/* Its exit status, or -1 for a signal. */
static int wait_for_end(struct world *world, int pod)
{
	int status;

	assert_int_equal(waitpid(world->pods[pod], &status, 0), world->pods[pod]);
	world->pods[pod] = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int status_of(struct world *world, int pod, const char *more, char text[4096])
{
	char command[2048];
	size_t length;
	FILE *pipe;

	snprintf(command, sizeof command, "'%s' --config '%s/config-%d.toml' status %s 2>&1",
		 program, (const char *)world->folder, pod, more);
	pipe = popen(command, "r"); /* a test's own fixed words */
	assert_non_null(pipe);
	length = fread(text, 1, 4095, pipe);
	text[length] = '\0';
	return WEXITSTATUS(pclose(pipe));
}

/* --- what tests wait for --- */

static bool is_offered(void *arg)
{
	const struct kubelet_plugin *plugin = kubelet_find(&((struct world *)arg)->kubelet, GPU);

	return plugin && plugin->device_count == 1 && plugin->devices[0].healthy;
}

static bool is_gone(void *arg)
{
	return kubelet_alive(&((struct world *)arg)->kubelet, GPU) == 0;
}

static bool serves_metrics(void *arg)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)((struct world *)arg)->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;

	close(fd);
	return ok;
}

struct socket_wait {
	struct world *world;
	const char *name;
};

static bool is_listening(void *arg)
{
	const struct socket_wait *wait = arg;

	return net_unix_alive(at(wait->world, wait->name));
}

static void wait_for_socket(struct world *world, const char *name)
{
	kubelet_until(world->loop, is_listening, &(struct socket_wait){world, name}, WAIT_MS, name);
}

/* --- life --- */

/* A port that is free now. */
static int free_port(void)
{
	struct loop *loop = loop_create();
	struct net_listener *listener;
	struct error error;
	int port;

	expect_ok(net_listen_tcp(loop, "127.0.0.1:0", NULL, NULL, &listener, &error), &error);
	port = (int)strtol(strrchr(net_listener_address(listener), ':') + 1, NULL, 10);
	net_listener_destroy(listener);
	loop_run(loop);
	loop_destroy(loop);
	return port;
}

static int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	struct error error;

	log_set_level(LOG_ERROR);
	assert_int_equal(folder_make(&world->folder), 0);
	world->port = free_port();
	write_config(world, 0);
	write_config(world, 1);
	write_machine(world);
	/* Nobody but these processes. */
	expect_ok(durable_make_folder(at(world, "proc/self"), 0700, &error), &error);
	expect_ok(durable_replace(at(world, "proc/self/cgroup"), "0::/bcd\n", 8, 0600, &error),
		  &error);
	world->loop = loop_create();
	kubelet_start(&world->kubelet, world->loop, at(world, "var/lib/kubelet"));
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	for (int pod = 0; pod < 2; pod++) {
		if (world->pods[pod] == 0)
			continue;
		kill(world->pods[pod], SIGKILL);
		wait_for_end(world, pod);
	}
	kubelet_stop(&world->kubelet);
	kubelet_run(world->loop, 50);
	loop_destroy(world->loop);
	assert_int_equal(folder_remove(&world->folder), 0);
	free(world);
	return 0;
}

/* --- tests --- */

/* Who waits is alive, has bound nothing, and ends when it is told to.
 * proves: HOSTED-3 HOSTED-32 */
static void test_a_newcomer_waits(void **state)
{
	struct world *world = *state;
	char text[4096];

	start(world, 0);
	kubelet_until(world->loop, is_offered, world, WAIT_MS, "a GPU is offered");
	start(world, 1);
	wait_for_socket(world, "run-1/waiting.sock");
	assert_int_equal(status_of(world, 0, "", text), 0);
	assert_non_null(strstr(text, "1 offered, 1 healthy"));
	assert_int_equal(status_of(world, 1, "", text), 0);
	assert_non_null(strstr(text, "waits ("));
	assert_non_null(strstr(text, "var/lib/bcd/lock"));
	assert_int_equal(status_of(world, 1, "--check", text), 1);
	assert_int_equal(status_of(world, 1, "-o json", text), 0);
	assert_non_null(strstr(text, "\"waitingFor\""));
	assert_int_equal(access(at(world, "run-1/bcd.sock"), F_OK), -1);
	assert_int_equal(access(at(world, "run-1/metrics.sock"), F_OK), -1);
	assert_int_equal(world->kubelet.register_calls, 1);
	assert_int_equal(kill(world->pods[1], SIGTERM), 0);
	assert_int_equal(wait_for_end(world, 1), 0);
	assert_int_equal(access(at(world, "run-1/waiting.sock"), F_OK), -1);
	assert_int_equal(status_of(world, 1, "", text), 3); /* nobody is there */
	/* one whose loop stands is not alive */
	assert_int_equal(kill(world->pods[0], SIGSTOP), 0);
	assert_int_equal(status_of(world, 0, "--timeout 1", text), 3);
	assert_int_equal(kill(world->pods[0], SIGCONT), 0);
	assert_int_equal(status_of(world, 0, "", text), 0);
}

static int compare_times(const void *a, const void *b)
{
	return *(const int64_t *)a < *(const int64_t *)b ? -1 : 1;
}

/* From the old one's stream's end until the new one's first list. */
static int64_t roll(struct world *world, int from)
{
	struct mono began;
	char waiting[32];

	start(world, !from);
	snprintf(waiting, sizeof waiting, "run-%d/waiting.sock", !from);
	wait_for_socket(world, waiting);
	assert_int_equal(kill(world->pods[from], SIGTERM), 0);
	kubelet_until(world->loop, is_gone, world, WAIT_MS, "the old one ends");
	began = clock_mono();
	/* what it had promised stands while nobody is there */
	assert_int_equal(access(at(world, "etc/cdi/bcd.dev-" ALC_A ".json"), F_OK), 0);
	kubelet_until(world->loop, is_offered, world, WAIT_MS, "the new one offers");
	return mono_until(began, clock_mono());
}

/* The kubelet is without a plugin for less than a second; the port of the metrics is the new one's.
 * proves: HOSTED-3 HOSTED-16 */
static void test_the_gap(void **state)
{
	struct world *world = *state;
	int64_t gaps[ROLLS];
	char text[4096];

	start(world, 0);
	kubelet_until(world->loop, is_offered, world, WAIT_MS, "a GPU is offered");
	for (int i = 0; i < ROLLS; i++) {
		gaps[i] = roll(world, i % 2);
		print_message("gap %lld ms\n", (long long)gaps[i]);
		assert_int_equal(wait_for_end(world, i % 2), 0);
		kubelet_until(world->loop, serves_metrics, world, WAIT_MS, "metrics are served");
		assert_int_equal(status_of(world, (i + 1) % 2, "", text), 0);
		assert_non_null(strstr(text, "1 offered, 1 healthy"));
	}
	qsort(gaps, ROLLS, sizeof *gaps, compare_times);
	assert_true(gaps[ROLLS / 2] <= GAP_MS); /* the machine may be busy once */
}

/* proves: HOSTED-16 */
static void test_signals_that_end_others(void **state)
{
	static const int signals[] = {SIGHUP, SIGUSR1, SIGUSR2};
	struct world *world = *state;
	char text[4096];

	start(world, 0);
	kubelet_until(world->loop, is_offered, world, WAIT_MS, "a GPU is offered");
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		assert_int_equal(kill(world->pods[0], signals[i]), 0);
		assert_int_equal(status_of(world, 0, "", text), 0);
	}
	assert_int_equal(kill(world->pods[0], SIGTERM), 0);
	assert_int_equal(wait_for_end(world, 0), 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_newcomer_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_gap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signals_that_end_others, setup, teardown),
	};

	assert(argc == 2);
	program = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
