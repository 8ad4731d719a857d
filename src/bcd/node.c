#include "node/node.h"

#include "bcd/verbs.h"
#include "node/lock.h"
#include "sys/log.h"
#include "sys/notify.h"

#include <signal.h>

static const char *const LEVELS[] = {"debug", "info", "warn", "error", NULL};

static const struct option options_table[] = {
	{.name = "log-level",
	 .kind = OPTION_TEXT,
	 .value = "LEVEL",
	 .help = "debug, info, warn or error (info)",
	 .choices = LEVELS},
	{0},
};

/* One run of the daemon. */
struct daemon {
	struct loop *loop;
	struct config config;
	struct identity identity;
	struct confinement confinement;
	bool joined;
	struct lock *lock;
	struct node *node;
	struct error error; /* why it ended; code NONE: asked to */
};

static void on_signal(void *arg)
{
	struct daemon *daemon = arg;

	notify_send("STOPPING=1");
	loop_stop(daemon->loop);
}

/* The machine is ours, as nobody else runs on it; or `why` it can't be. */
static void on_lock(void *arg, const struct error *why)
{
	struct daemon *daemon = arg;
	struct error *error = &daemon->error;

	if (why) {
		*error = *why;
		loop_stop(daemon->loop);
		return;
	}
	daemon->joined = identity_load(daemon->config.data, &daemon->identity, error);
	if (!daemon->joined && (error->code != ERROR_NOT_FOUND || daemon->config.address_count)) {
		if (error->code == ERROR_NOT_FOUND)
			error_hint(error, "Join first: bcd join --token-file FILE.");
		loop_stop(daemon->loop);
		return;
	}
	*error = (struct error){0};
	if (!node_create(daemon->loop, &daemon->config, daemon->joined ? &daemon->identity : NULL,
			 &daemon->node, error)) {
		loop_stop(daemon->loop);
		return;
	}
	node_set_confinement(daemon->node, &daemon->confinement);
	notify_send("READY=1\nSTATUS=serving");
	log_info("ready", "bcd serves this machine", "version", BC_VERSION, "node",
		 daemon->joined ? daemon->identity.node_id : NULL, NULL);
}

static int run_daemon(struct daemon *daemon)
{
	struct loop_signal *terminate, *interrupt;
	int status = EXIT_DONE;

	daemon->loop = loop_create();
	loop_ignore_signals();
	terminate = loop_signal_create(daemon->loop, SIGTERM, on_signal, daemon);
	interrupt = loop_signal_create(daemon->loop, SIGINT, on_signal, daemon);
	if (lock_wait(daemon->loop, daemon->config.data, daemon->config.run, on_lock, daemon,
		      &daemon->lock, &daemon->error))
		loop_run(daemon->loop);
	if (daemon->error.code != ERROR_NONE)
		status = verb_fail(&daemon->error, EXIT_FAILED);
	node_destroy(daemon->node);
	lock_destroy(daemon->lock);
	loop_signal_destroy(terminate);
	loop_signal_destroy(interrupt);
	loop_run(daemon->loop); /* what is being written gets to its end */
	loop_destroy(daemon->loop);
	return status;
}

static int run(const struct options *options)
{
	struct daemon daemon = {0};
	const char *level_name = options_text(options, "log-level");
	enum log_level level = LOG_INFO;
	struct error error = {0};
	int status;

	if (level_name && !log_level_parse(level_name, &level))
		assert(false); /* it is one of LEVELS */
	log_set_level(level);
	if (!verb_config(options, false, &daemon.config, &error) ||
	    !config_check_node(&daemon.config, &error)) {
		status = verb_fail(&error, EXIT_USAGE);
	} else {
		confine_process(&daemon.config, CONFINE_NODE, &daemon.confinement);
		status = run_daemon(&daemon);
	}
	identity_deinit(&daemon.identity);
	config_deinit(&daemon.config);
	return status;
}

const struct verb NODE_VERB = {
	.name = "node",
	.summary = "the daemon: serve what is booked to this machine's kubelet",
	.operands = "",
	.options = options_table,
	.more = "A second bcd on the machine waits until the first ends.\n"
		"SIGTERM and SIGINT end it; SIGHUP, SIGUSR1, SIGUSR2 and SIGPIPE are ignored: a\n"
		"changed configuration counts from the next start on.\n"
		"Exit status: 0 asked to end, 1 failed, 2 usage, or no valid configuration.\n\n"
		"Example:\n  bcd --config /etc/bcd/config.toml node\n",
	.run = run,
};
