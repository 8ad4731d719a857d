/*
 * up: everything on one machine: serve, bcd and, without a kubelet, the stand-in, kept running
 * until Ctrl-C. The start goes step by step; each step ends in a callback that begins the next.
 */
#include "better-compute/up_child.h"
#include "better-compute/up_files.h"
#include "better-compute/up_setup.h"
#include "better-compute/verbs.h"
#include "cli/output.h"
#include "sys/durable.h"
#include "sys/net.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_LISTEN "127.0.0.1:7480"
#define READY_POLL_MS  20
#define READY_MOST_MS  60000 /* for serve's first start */
#define SIGNAL_COUNT   3

struct up {
	struct cli *cli;
	struct loop *loop;
	struct up_options options;
	struct up_files files;
	struct durable_lock *lock;
	struct loop_signal *signals[SIGNAL_COUNT];

	struct up_child *serve, *kubelet, *join, *node;
	const char *api, *gateway; /* where serve is, once it was ready */
	struct loop_timer *poll;   /* looks whether serve is ready */
	struct mono serve_started;
	struct up_setup setup;
	bool setup_running; /* a worker has `setup` */

	bool ready; /* all was there once: what ends from now on is started again */
	bool stopping, failed, said_not_ready;
};

static void stop_all(struct up *up);
static void wait_for_node(struct up *up);

static struct up *up_of(struct up_setup *setup)
{
	return (struct up *)(void *)((char *)setup - offsetof(struct up, setup));
}

/* --- ending --- */

static void end_if_done(struct up *up)
{
	if (!up->stopping || up->setup_running || up_child_running(up->serve) ||
	    up_child_running(up->kubelet) || up_child_running(up->join) ||
	    up_child_running(up->node))
		return;
	loop_stop(up->loop);
}

static void fail(struct up *up, const struct error *error)
{
	if (!up->stopping) {
		output_error(up->cli, error, "");
		up->failed = true;
		up->cli->exit_status = error_exit_status(error->code);
	}
	stop_all(up);
}

static void stop_all(struct up *up)
{
	struct up_child *const children[] = {up->node, up->join, up->kubelet, up->serve};

	up->stopping = true;
	atomic_store(&up->setup.stop, true);
	loop_timer_stop(up->poll);
	for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
		if (children[i])
			up_child_stop(children[i]);
	}
	end_if_done(up);
}

static void on_signal(void *arg)
{
	struct up *up = arg;

	if (up->stopping) { /* somebody is in a hurry */
		struct up_child *const children[] = {up->node, up->join, up->kubelet, up->serve};
		for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
			if (children[i])
				up_child_kill(children[i]);
		}
		return;
	}
	printf("\nStopping …\n");
	fflush(stdout);
	stop_all(up);
}

/* --- children --- */

static const char *log_of(const struct up *up, const struct up_child *child)
{
	return child == up->serve     ? up->files.serve_log
	       : child == up->kubelet ? up->files.kubelet_log
				      : up->files.bcd_log;
}

/* A program that ends before all was ready ends the start: it would end again. */
static void fail_with_last_words(struct up *up, const struct up_child *child, int status)
{
	char how[UP_CHILD_DESCRIBE_SIZE], said[ERROR_WHAT_SIZE / 2];
	struct error error = {0};

	up_child_describe(how, status);
	up_files_last_words(log_of(up, child), said, sizeof said);
	error_set(&error, ERROR_INTERNAL, "%s ended (%s)%s%s", up_child_name(child), how,
		  said[0] ? ": " : "", said);
	error_hint(&error, "All it said is in '%s'.", log_of(up, child));
	fail(up, &error);
}

static void on_child_end(void *arg, struct up_child *child, int status, int64_t restart_ms)
{
	struct up *up = arg;
	char how[UP_CHILD_DESCRIBE_SIZE];

	if (up->stopping) {
		end_if_done(up);
		return;
	}
	if (!up->ready) {
		fail_with_last_words(up, child, status);
		return;
	}
	up_child_describe(how, status);
	output_note("%s ended (%s), it is started again in %.1f s", up_child_name(child), how,
		    (double)restart_ms / 1000);
}

static struct up_child *make_child(struct up *up, const char *name, const char *file,
				   const char *log_path, const char *const *args)
{
	struct up_child *child = up_child_create(up->loop, &(struct up_child_options){
								   .name = name,
								   .file = file,
								   .log_path = log_path,
								   .on_end = on_child_end,
								   .arg = up,
							   });

	up_child_set_args(child, args);
	return child;
}

static const char *state_name(const struct up *up)
{
	return up->options.state;
}

/* --- the last step: what a person can do now --- */

/* "./better-compute" where that is what we are, else "better-compute". */
static const char *command_here(const struct up *up, const char *file, const char *name)
{
	const char *here = arena_printf(&up->cli->arena, "./%s", name);
	struct stat ours, found;

	return stat(file, &ours) == 0 && stat(here, &found) == 0 && ours.st_ino == found.st_ino &&
			       ours.st_dev == found.st_dev
		       ? here
		       : name;
}

static void print_what_next(const struct up *up)
{
	const char *client = command_here(up, up->files.better_compute, "better-compute");
	const char *bcd = command_here(up, up->files.bcd, "bcd");
	const char *state = str_equal(state_name(up), "./" CONTEXT_STATE_DEFAULT)
				    ? ""
				    : arena_printf(&up->cli->arena, " --state %s", state_name(up));

	printf("\nBook two GPUs for eight hours:    %s reserve --gpus 2 --for 8h --kubernetes%s\n",
	       client, state);
	printf("See what the kubelet was given:   %s status%s\n", bcd, state);
	printf("Give them back:                   %s release rsv_…%s\n", client, state);
	printf("Stop: Ctrl-C                      (the API answers at %s/v1)\n", up->api);
	fflush(stdout);
}

static json_t *pids(const struct up *up)
{
	json_t *tree = json_object();
	const struct up_child *const children[] = {up->serve, up->kubelet, up->node};

	for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
		if (children[i])
			tree_set(tree, up_child_name(children[i]),
				 json_integer(up_child_pid(children[i])));
	}
	return tree;
}

static bool write_ready_file(const struct up *up, struct error *error)
{
	CLEANUP(tree) json_t *tree = json_object();
	CLEANUP(buf) struct buf text = {0};

	if (!up->options.ready_file)
		return true;
	tree_set(tree, "api", tree_string(up->api));
	tree_set(tree, "state", tree_string(up->files.state));
	tree_set(tree, "node", tree_string(up->setup.node_id));
	tree_set(tree, "pids", pids(up));
	tree_dump_pretty(&text, tree);
	return durable_replace(up->options.ready_file, text.data, text.length, 0600, error);
}

static void on_node_waited(void *arg)
{
	struct up *up = up_of(arg);
	struct error error = {0};

	up->setup_running = false;
	if (up->stopping) {
		end_if_done(up);
		return;
	}
	if (!up->setup.ok) {
		fail(up, &up->setup.error);
		return;
	}
	if (!up->setup.node_id) {
		if (!up->said_not_ready)
			output_note("this machine's node isn't ready yet; see '%s'",
				    up->files.bcd_log);
		up->said_not_ready = true;
		wait_for_node(up);
		return;
	}
	printf("  this machine    %s  %s   ready\n", up->setup.node_id,
	       up->setup.gpus ? up->setup.gpus : "no GPUs");
	if (up->files.kubelet == UP_KUBELET_STANDIN)
		printf("  kubelet         stand-in (%s)\n", up->files.kubelet_why);
	else if (up->files.kubelet == UP_KUBELET_REAL)
		printf("  kubelet         %s\n", up->files.kubelet_root);
	else
		printf("  kubelet         none: nothing offers the GPUs to pods\n");
	if (up->setup.simulated_reason)
		printf("  GPUs            simulated: %s\n", up->setup.simulated_reason);
	up->ready = true;
	print_what_next(up);
	if (!write_ready_file(up, &error))
		fail(up, &error);
}

static void run_setup(struct up *up, loop_fn *work, loop_fn *done)
{
	up->setup.files = &up->files;
	up->setup.api = up->api;
	up->setup_running = true;
	loop_work(up->loop, work, done, &up->setup);
}

/* --- bcd --- */

static void wait_for_node(struct up *up)
{
	run_setup(up, up_setup_wait_node, on_node_waited);
}

static void start_node(struct up *up)
{
	const char *const args[] = {"--config", up->files.config, "node", NULL};
	struct error error = {0};

	up->node = make_child(up, "bcd", up->files.bcd, up->files.bcd_log, args);
	if (!up_child_start(up->node, &error)) {
		fail(up, &error);
		return;
	}
	wait_for_node(up);
}

static void on_join_end(void *arg, struct up_child *child, int status, int64_t restart_ms UNUSED)
{
	struct up *up = arg;
	struct error ignored; /* a used-up token is worth nothing */

	(void)!durable_remove(up->files.token, &ignored);
	if (up->stopping)
		end_if_done(up);
	else if (status != 0)
		fail_with_last_words(up, child, status);
	else
		start_node(up);
}

static void start_join(struct up *up)
{
	const char *const args[] = {"--config",      up->files.config, "join", "--token-file",
				    up->files.token, "--quiet",        NULL};
	struct error error = {0};

	up->join = up_child_create(up->loop, &(struct up_child_options){
						     .name = "bcd join",
						     .file = up->files.bcd,
						     .log_path = up->files.bcd_log,
						     .once = true,
						     .on_end = on_join_end,
						     .arg = up,
					     });
	up_child_set_args(up->join, args);
	if (!up_child_start(up->join, &error))
		fail(up, &error);
}

/* --- the API is there --- */

static void on_prepared(void *arg)
{
	struct up *up = up_of(arg);

	up->setup_running = false;
	if (up->stopping)
		end_if_done(up);
	else if (!up->setup.ok)
		fail(up, &up->setup.error);
	else if (up->setup.joined)
		start_node(up);
	else
		start_join(up);
}

/* Where serve is now stays where it is: it is started again at the same addresses. */
static void pin_serve(struct up *up)
{
	const char *address = strstr(up->api, "://");
	const char *const args[] = {"serve",
				    "--home",
				    up->files.serve_home,
				    "--listen",
				    address ? address + 3 : up->options.listen,
				    "--gateway-listen",
				    up->gateway,
				    "--gateway-name",
				    UP_GATEWAY_NAME,
				    "--secret-key-file",
				    up->files.secret_key,
				    NULL};

	up_child_set_args(up->serve, args);
}

static void on_poll_serve(void *arg)
{
	struct up *up = arg;
	struct error error = {0};

	if (!up_files_read_ready(&up->files, &up->cli->arena, &up->api, &up->gateway, &error)) {
		if (error.code == ERROR_NOT_FOUND &&
		    mono_until(up->serve_started, loop_now(up->loop)) < READY_MOST_MS) {
			loop_timer_start(up->poll, READY_POLL_MS);
			return;
		}
		if (error.code == ERROR_NOT_FOUND)
			error_set(&error, ERROR_UNAVAILABLE,
				  "serve isn't ready after %d s; see '%s'", READY_MOST_MS / 1000,
				  up->files.serve_log);
		fail(up, &error);
		return;
	}
	printf("  control plane   %s   ready (SQLite)\n", up->api);
	fflush(stdout);
	pin_serve(up);
	if (!up_files_write_config(&up->files, up->gateway, &error)) {
		fail(up, &error);
		return;
	}
	run_setup(up, up_setup_prepare, on_prepared);
}

/* --- the first programs --- */

/* Said before serve would say it into its log. */
static bool check_address_free(struct up *up, struct error *error)
{
	struct net_listener *listener = NULL;

	if (!net_listen_tcp(up->loop, up->options.listen, NULL, NULL, &listener, error)) {
		if (error->code == ERROR_CONFLICT)
			error_hint(error, "--listen 127.0.0.1:0 takes any free port.");
		return error_wrap(error, "--listen");
	}
	net_listener_destroy(listener);
	return true;
}

static bool start_serve(struct up *up, struct error *error)
{
	const char *const args[] = {"serve",
				    "--home",
				    up->files.serve_home,
				    "--listen",
				    up->options.listen,
				    "--gateway-listen",
				    "127.0.0.1:0",
				    "--gateway-name",
				    UP_GATEWAY_NAME,
				    "--secret-key-file",
				    up->files.secret_key,
				    "--ready-file",
				    up->files.serve_ready,
				    NULL};

	if (!durable_remove(up->files.serve_ready, error))
		return false;
	up->serve = make_child(up, "serve", up->files.better_compute, up->files.serve_log, args);
	up->serve_started = loop_now(up->loop);
	if (!up_child_start(up->serve, error))
		return false;
	loop_timer_start(up->poll, READY_POLL_MS);
	return true;
}

static bool start_kubelet(struct up *up, struct error *error)
{
	const char *const args[] = {"--root", up->files.kubelet_root, "--cdi", up->files.cdi, NULL};

	if (up->files.kubelet != UP_KUBELET_STANDIN)
		return true;
	up->kubelet =
		make_child(up, "kubelet-standin", up->files.standin, up->files.kubelet_log, args);
	return up_child_start(up->kubelet, error);
}

static bool begin(struct up *up, struct error *error)
{
	bool fresh;

	if (!up_files_open(state_name(up), &up->cli->arena, &up->files, error))
		return false;
	if (!durable_lock_take(up->files.lock, &up->lock, error))
		return error_wrap(error, "another better-compute up has '%s'", state_name(up));
	if (!check_address_free(up, error) ||
	    !up_files_prepare(&up->options, &up->cli->arena, &up->files, error))
		return false;
	fresh = !durable_stamp(up->files.serve_home).exists;
	if (up->files.gpus_kept)
		output_note("the GPUs stay as '%s' says; --gpus is for the first start: change "
			    "them with 'bcd sim', or delete the folder to start over",
			    up->files.gpus);
	printf("%s in %s (state is kept there; delete the folder to start over)\n\n",
	       fresh ? "Starting" : "Going on", state_name(up));
	fflush(stdout);
	return up_files_init_serve(&up->files, error) && start_serve(up, error) &&
	       start_kubelet(up, error);
}

/* --- the verb --- */

/* As whoever started it with nohup wants it. */
static bool outlives_hangup(void)
{
	struct sigaction now;

	return sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static void up_init(struct up *up, struct cli *cli)
{
	static const int signals[SIGNAL_COUNT] = {SIGINT, SIGTERM, SIGHUP};
	const struct options *options = cli->options;
	const char *state = options_text(options, "state"),
		   *listen = options_text(options, "listen");
	const char *gpus = options_text(options, "gpus"),
		   *kubelet = options_text(options, "kubelet");
	bool outlives = outlives_hangup();

	*up = (struct up){
		.cli = cli,
		.loop = loop_create(),
		.options =
			{
				.state = state ? state : "./" CONTEXT_STATE_DEFAULT,
				.listen = listen ? listen : DEFAULT_LISTEN,
				.gpus = gpus ? gpus : "auto",
				.kubelet = kubelet ? kubelet : "auto",
				.cdi = options_text(options, "cdi"),
				.ready_file = options_text(options, "ready-file"),
			},
	};
	loop_ignore_signals();
	up->poll = loop_timer_create(up->loop, on_poll_serve, up);
	for (int i = 0; i < SIGNAL_COUNT; i++)
		if (signals[i] != SIGHUP || !outlives)
			up->signals[i] = loop_signal_create(up->loop, signals[i], on_signal, up);
}

static void up_deinit(struct up *up)
{
	for (int i = 0; i < SIGNAL_COUNT; i++)
		loop_signal_destroy(up->signals[i]);
	loop_timer_destroy(up->poll);
	up_child_destroy(up->serve);
	up_child_destroy(up->kubelet);
	up_child_destroy(up->join);
	up_child_destroy(up->node);
	durable_lock_destroy(up->lock);
	arena_deinit(&up->setup.arena);
	loop_destroy(up->loop);
}

static bool run(struct cli *cli, struct error *error)
{
	struct up up;
	bool began;

	up_init(&up, cli);
	if (up.options.ready_file && !durable_remove(up.options.ready_file, error)) {
		up_deinit(&up);
		return false;
	}
	began = begin(&up, error);
	if (!began)
		stop_all(&up);
	if (began || up_child_running(up.serve))
		loop_run(up.loop);
	if (!began || up.failed)
		up_files_forget_gpus(&up.files);
	if (began && !up.failed)
		printf("Stopped. State is kept in %s.\n", state_name(&up));
	up_deinit(&up);
	return began;
}

static const struct option RUN_OPTIONS[] = {
	{.name = "state",
	 .kind = OPTION_TEXT,
	 .value = "DIR",
	 .help = "where everything is kept (default ./" CONTEXT_STATE_DEFAULT ")"},
	{.name = "listen",
	 .kind = OPTION_TEXT,
	 .value = "ADDR:PORT",
	 .help = "the API (default " DEFAULT_LISTEN "; port 0: any free one)"},
	{.name = "gpus",
	 .kind = OPTION_TEXT,
	 .value = "WHICH",
	 .help = "auto (default), sim:8xH100 or sim:FILE"},
	{.name = "kubelet",
	 .kind = OPTION_TEXT,
	 .value = "WHICH",
	 .help = "auto (default), stand-in, none, or a kubelet's root folder"},
	{.name = "cdi",
	 .kind = OPTION_TEXT,
	 .value = "DIR",
	 .help = "where CDI specs go (default DIR/cdi; /etc/cdi with a kubelet)"},
	{.name = "ready-file",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "written once all is ready: {\"api\",\"node\",\"state\",\"pids\"}"},
	{0},
};

const struct command UP_COMMANDS[] = {
	{
		.noun = "up",
		.summary = "run everything on this machine, for a first look",
		.flags = COMMAND_DAILY,
		.options = RUN_OPTIONS,
		.more = "Runs the control plane, bcd and, where there is no kubelet, a stand-in "
			"for "
			"it, until Ctrl-C. What ends is started again. A second start goes on "
			"where "
			"the first one stopped. Logs are in DIR/log.",
		.example = "better-compute up\n"
			   "better-compute up --state /tmp/first-look --gpus sim:4xA100\n",
		.run = run,
	},
	{0},
};
