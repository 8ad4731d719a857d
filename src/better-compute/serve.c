#include "serve/serve.h"
#include "better-compute/database.h"
#include "better-compute/verbs.h"
#include "cli/output.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "sys/notify.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEFAULT_LISTEN         "127.0.0.1:7480"
#define DEFAULT_GATEWAY_LISTEN "0.0.0.0:7443"
#define DEFAULT_GATEWAY_NAME   "gateway.better-compute.internal"
#define DEFAULT_KEY_RATE       2000
#define DEFAULT_ADDRESS_RATE   50
#define DEFAULT_WORKERS        8
#define DRAIN_DELAY_MS         3000
#define MAX_DRAIN_DELAY_MS     300000

/* --- options --- */

static const char *text_or(const struct cli *cli, const char *name, const char *otherwise)
{
	const char *text = options_text(cli->options, name);

	return text ? text : otherwise;
}

/* What nodes are told when nothing is given; NULL: as bound. A wildcard is no address. */
static const char *gateway_address(struct cli *cli)
{
	const char *given = options_text(cli->options, "gateway-address");
	const char *listen = text_or(cli, "gateway-listen", DEFAULT_GATEWAY_LISTEN);
	const char *port = strrchr(listen, ':');
	char host[256] = "";

	if (given || !port || !(str_starts(listen, "0.0.0.0:") || str_starts(listen, "[::]:")) ||
	    gethostname(host, sizeof host - 1) != 0)
		return given;
	return arena_printf(&cli->arena, "%s%s", host, port);
}

/* Nodes are told it, and would all fail by it. */
static bool check_gateway_address(const char *address, struct error *error)
{
	if (!address || str_is_address(address, 1))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "--gateway-address: '%s' is not ADDRESS:PORT",
		  address);
	return error_hint(error, "Such as gw.example.com:7443 or [fd00::1]:7443.");
}

static bool read_options(struct cli *cli, struct serve_options *ret_options, struct error *error)
{
	struct serve_options options = {
		.home = database_home(cli),
		.listen = text_or(cli, "listen", DEFAULT_LISTEN),
		.gateway_listen = text_or(cli, "gateway-listen", DEFAULT_GATEWAY_LISTEN),
		.gateway_name = text_or(cli, "gateway-name", DEFAULT_GATEWAY_NAME),
		.key_calls = options_number(cli->options, "key-rate", DEFAULT_KEY_RATE),
		.address_calls = options_number(cli->options, "address-rate", DEFAULT_ADDRESS_RATE),
		.workers = (size_t)options_number(cli->options, "workers", DEFAULT_WORKERS),
		.tls_certificate_file = options_text(cli->options, "tls-cert"),
		.tls_key_file = options_text(cli->options, "tls-key"),
		.secret_key_file = options_text(cli->options, "secret-key-file"),
	};
	const struct option_value *proxies = options_value(cli->options, "trusted-proxy");

	if (!options_need(cli->options, "tls-cert", "tls-key", error) ||
	    !options_need(cli->options, "tls-key", "tls-cert", error) ||
	    !options_need(cli->options, "key-out", "init", error) ||
	    !options_need(cli->options, "another-key", "init", error) ||
	    !check_gateway_address(options_text(cli->options, "gateway-address"), error) ||
	    !database_given(cli, &options.database, error))
		return false;
	options.gateway_address = gateway_address(cli);
	options.trusted_proxies = proxies->list;
	options.trusted_proxies_count = proxies->list_count;
	options.another_key = options_given(cli->options, "another-key");
	options.migrate = options_given(cli->options, "migrate");
	/* One process has a SQLite file: there is nobody else to go to. */
	options.drain_delay_ms = options_number(
		cli->options, "drain-delay",
		options.database && !str_starts(options.database, "sqlite:") ? DRAIN_DELAY_MS : 0);
	*ret_options = options;
	return true;
}

/* --- serve --init --- */

/* In the file that is there for it: whoever is killed leaves the key there or nowhere. */
static bool keep_key(const char *path, const char *key, struct error *error)
{
	CLEANUP(buf) struct buf line = {0};

	buf_printf(&line, "%s\n", key);
	bool ok = durable_overwrite_text(path, line.data, line.length, error);
	buf_wipe(&line);
	return ok;
}

static bool key_exists(const char *path, struct error *error)
{
	error_set(error, ERROR_CONFLICT, "'%s' exists", path);
	return error_hint(error, "If an earlier --init made it, it holds the operator key. Else "
				 "name another file: --key-out FILE");
}

/* The key is shown once, so the file it goes to is there before the key is made. */
static bool init(const struct cli *cli, const struct serve_options *options, struct error *error)
{
	const char *path = options_text(cli->options, "key-out");
	char key[SERVE_KEY_SIZE] = "";
	struct error ignored;
	bool done;

	if (!durable_make_folder(options->home, 0700, error))
		return false;
	if (path && !durable_create(path, "", 0, 0600, error))
		return error->code == ERROR_CONFLICT ? key_exists(path, error) : false;
	done = (!path || durable_check_fillable(path, error)) && serve_init(options, key, error) &&
	       (!path || !key[0] || keep_key(path, key, error));
	if (path && (!done || !key[0]) && !durable_remove(path, &ignored))
		log_failure(LOG_WARN, "init", &ignored, "an empty key file is left");
	if (!done)
		return false;
	if (!key[0])
		output_note(
			"this database has an operator key already; no other was made. If it is "
			"lost: --another-key");
	else if (path)
		output_note(
			"'%s' holds the operator key, and '%s' all the rest; start: better-compute "
			"serve --home '%s'",
			path, options->home, options->home);
	else
		printf("%s\n", key);
	if (key[0] && !path)
		output_note("this operator key is shown this once; --key-out FILE keeps it off the "
			    "terminal");
	explicit_bzero(key, sizeof key);
	return true;
}

/* --- serve --- */

struct run {
	const struct cli *cli;
	struct loop *loop;
	struct serve *serve;
	struct error error; /* why it ended, when it failed */
	bool failed, stopping;
};

static void on_drained(void *arg)
{
	struct run *run = arg;

	loop_stop(run->loop);
}

static void on_stop_signal(void *arg)
{
	struct run *run = arg;

	if (run->stopping) { /* somebody is in a hurry */
		loop_stop(run->loop);
		return;
	}
	run->stopping = true;
	notify_send("STOPPING=1\nSTATUS=finishing what is under way");
	log_info("serve.stopping", "answers under way are finished first", NULL);
	serve_drain(run->serve, on_drained, run);
}

static void on_reload_signal(void *arg)
{
	struct run *run = arg;

	serve_reload(run->serve);
}

/* Where it listens, for programs that start it on port 0. */
static bool write_ready_file(const struct cli *cli, const struct run *run, struct error *error)
{
	const char *path = options_text(cli->options, "ready-file");
	CLEANUP(tree) json_t *ready = json_object();
	CLEANUP(buf) struct buf text = {0};
	bool tls = options_given(cli->options, "tls-cert");

	if (!path)
		return true;
	buf_printf(&text, "%s://%s", tls ? "https" : "http", serve_api_address(run->serve));
	tree_set(ready, "api", tree_string(buf_text(&text)));
	tree_set(ready, "gateway", tree_string(serve_gateway_address(run->serve)));
	tree_set(ready, "pid", json_integer(getpid()));
	buf_clear(&text);
	tree_dump_pretty(&text, ready);
	return durable_replace(path, text.data, text.length, 0600, error);
}

static void on_failed(void *arg, const struct error *error)
{
	struct run *run = arg;

	run->error = *error;
	run->failed = true;
	loop_stop(run->loop);
}

static void on_ready(void *arg)
{
	struct run *run = arg;
	struct error error;

	if (!write_ready_file(run->cli, run, &error)) {
		on_failed(run, &error);
		return;
	}
	notify_send("READY=1\nSTATUS=serving");
	log_info("serve.ready", "serving", "api", serve_api_address(run->serve), "gateway",
		 serve_gateway_address(run->serve), NULL);
}

/* A stream of a node is a descriptor: as many as the system lets us have. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		log_warn("serve.limit", "the number of open files couldn't be raised", NULL);
}

static bool run_serve(const struct cli *cli, const struct serve_options *options,
		      struct error *error)
{
	const char *ready_file = options_text(cli->options, "ready-file");
	struct run run = {.cli = cli, .loop = loop_create()};
	const struct serve_handlers handlers = {on_ready, on_failed, &run};
	struct loop_signal *term = NULL, *interrupt = NULL, *hangup = NULL;
	bool done;

	loop_ignore_signals(); /* SIGHUP until there is something to read again */
	raise_descriptor_limit();
	done = (!ready_file || durable_remove(ready_file, error)) &&
	       serve_create(run.loop, options, &handlers, &run.serve, error);
	if (done) {
		term = loop_signal_create(run.loop, SIGTERM, on_stop_signal, &run);
		interrupt = loop_signal_create(run.loop, SIGINT, on_stop_signal, &run);
		hangup = loop_signal_create(run.loop, SIGHUP, on_reload_signal, &run);
		notify_send("STATUS=waiting for the database");
		loop_run(run.loop);
		done = !run.failed;
		if (done)
			log_info("serve.stopped", "stopped", NULL);
		else
			*error = run.error;
	}
	serve_destroy(run.serve);
	loop_signal_destroy(term);
	loop_signal_destroy(interrupt);
	loop_signal_destroy(hangup);
	loop_destroy(run.loop);
	return done;
}

static bool serve(struct cli *cli, struct error *error)
{
	struct serve_options options;

	if (!read_options(cli, &options, error))
		return false;
	if (options_given(cli->options, "init"))
		return init(cli, &options, error);
	return run_serve(cli, &options, error);
}

static const struct option OPTIONS[] = {
	DATABASE_OPTIONS,
	{.name = "init",
	 .kind = OPTION_FLAG,
	 .help = "make the database, the keys and the first operator key, then end"},
	{.name = "key-out",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "with --init: where the operator key goes (0600), not to stdout"},
	{.name = "another-key",
	 .kind = OPTION_FLAG,
	 .help = "with --init: make an operator key also when there is one, for when that is lost"},
	{.name = "listen",
	 .kind = OPTION_TEXT,
	 .value = "ADDR:PORT",
	 .help = "where the HTTP API is (default " DEFAULT_LISTEN ")"},
	{.name = "tls-cert",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "certificate and chain of the API; needed off loopback"},
	{.name = "tls-key",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "its private key; both are read again when they change, or at SIGHUP"},
	{.name = "trusted-proxy",
	 .kind = OPTION_LIST,
	 .value = "CIDR",
	 .help = "where proxies call from whose X-Forwarded-For says who calls; may be repeated"},
	{.name = "gateway-listen",
	 .kind = OPTION_TEXT,
	 .value = "ADDR:PORT",
	 .help = "where nodes connect (default " DEFAULT_GATEWAY_LISTEN ")"},
	{.name = "gateway-address",
	 .kind = OPTION_TEXT,
	 .value = "HOST:PORT",
	 .help = "what nodes are told to connect to (default: as bound, or the hostname)"},
	{.name = "gateway-name",
	 .kind = OPTION_TEXT,
	 .value = "NAME",
	 .help = "server name in the gateway's certificate (default " DEFAULT_GATEWAY_NAME ")"},
	{.name = "key-rate",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "calls a second that one API key may make (default 2000; 0: any number)",
	 .max = 1000000},
	{.name = "address-rate",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "the same of one address without a key that opens (default 50; 0: any number)",
	 .max = 1000000},
	{.name = "workers",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "threads that work on the database (default 8)",
	 .min = 1,
	 .max = 64},
	{.name = "secret-key-file",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "keys that secrets are kept under (see secret-key); none are kept without"},
	{.name = "migrate",
	 .kind = OPTION_FLAG,
	 .help = "bring an older version's PostgreSQL database up to date; take a backup first"},
	{.name = "drain-delay",
	 .kind = OPTION_DURATION,
	 .value = "DURATION",
	 .help = "how long /readyz says no before it stops listening (default 3s; SQLite: 0s)",
	 .min = 0,
	 .max = MAX_DRAIN_DELAY_MS},
	{.name = "ready-file",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "written once it serves: {\"api\",\"gateway\",\"pid\"}"},
	{0},
};

const struct command SERVE_COMMANDS[] = {
	{
		.noun = "serve",
		.summary = "run the control plane",
		.options = OPTIONS,
		.more = "Plain HTTP is served on loopback only. SIGTERM finishes what is under "
			"way, "
			"tells nodes to come back, and ends; so does SIGINT, and a second one of "
			"them ends it at once. SIGHUP reads the API's certificate again; SIGUSR1, "
			"SIGUSR2 and SIGPIPE are ignored. Any number of replicas may share one "
			"PostgreSQL database and one PKI folder's content.",
		.example = "better-compute serve --init --home ./control-plane\n"
			   "better-compute serve --home ./control-plane",
		.run = serve,
	},
	{0},
};
