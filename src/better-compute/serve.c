#include "serve/serve.h"
#include "better-compute/verbs.h"
#include "cli/output.h"
#include "sys/durable.h"
#include "sys/log.h"

#include <signal.h>
#include <unistd.h>

#define DEFAULT_HOME           "/var/lib/better-compute"
#define DEFAULT_LISTEN         "127.0.0.1:7480"
#define DEFAULT_GATEWAY_LISTEN "0.0.0.0:7443"
#define DEFAULT_GATEWAY_NAME   "gateway.better-compute.internal"
#define DEFAULT_WORKERS        2
#define MAX_CONNINFO           ((size_t)8 << 10)

/* --- options --- */

static const char *text_or(const struct cli *cli, const char *name, const char *otherwise)
{
	const char *text = options_text(cli->options, name);

	return text ? text : otherwise;
}

/* argv is for all to see, so a database's password may not stand there. */
static bool check_no_password(const char *url, struct error *error)
{
	const char *scheme = strstr(url, "://");
	const char *at = scheme ? strchr(scheme, '@') : NULL;
	const char *colon = scheme ? strchr(scheme + 3, ':') : NULL;

	if (!(at && colon && colon < at) && !strstr(url, "password="))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "--database holds a password, and others can see it");
	return error_hint(error, "Put it into a file (0600) and give --database-file FILE.");
}

static bool read_database(struct cli *cli, const char **ret_url, struct error *error)
{
	const char *url = options_text(cli->options, "database");
	const char *path = options_text(cli->options, "database-file");
	CLEANUP(buf) struct buf content = {0};

	*ret_url = url;
	if (url)
		return check_no_password(url, error);
	if (!path)
		return true;
	if (!durable_read(path, MAX_CONNINFO, &content, error))
		return error_wrap(error, "--database-file");
	*ret_url =
		arena_strndup(&cli->arena, buf_text(&content), strcspn(buf_text(&content), "\r\n"));
	return true;
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

static bool read_options(struct cli *cli, struct serve_options *ret_options, struct error *error)
{
	struct serve_options options = {
		.home = text_or(cli, "home", DEFAULT_HOME),
		.listen = text_or(cli, "listen", DEFAULT_LISTEN),
		.gateway_listen = text_or(cli, "gateway-listen", DEFAULT_GATEWAY_LISTEN),
		.gateway_name = text_or(cli, "gateway-name", DEFAULT_GATEWAY_NAME),
		.workers = (size_t)options_number(cli->options, "workers", DEFAULT_WORKERS),
		.tls_certificate_file = options_text(cli->options, "tls-cert"),
		.tls_key_file = options_text(cli->options, "tls-key"),
	};

	if (!options_need(cli->options, "tls-cert", "tls-key", error) ||
	    !options_need(cli->options, "tls-key", "tls-cert", error) ||
	    !options_need(cli->options, "key-out", "init", error) ||
	    !options_exclude(cli->options, "database", "database-file", error) ||
	    !read_database(cli, &options.database, error))
		return false;
	options.gateway_address = gateway_address(cli);
	*ret_options = options;
	return true;
}

/* --- serve --init --- */

static bool keep_key(const char *path, const char *key, struct error *error)
{
	CLEANUP(buf) struct buf line = {0};

	buf_printf(&line, "%s\n", key);
	return durable_replace(path, line.data, line.length, 0600, error);
}

/* The key is shown once, so the file it goes to is there before the key is made. */
static bool init(const struct cli *cli, const struct serve_options *options, struct error *error)
{
	const char *path = options_text(cli->options, "key-out");
	char key[SERVE_KEY_SIZE] = "";
	struct error ignored;
	bool done;

	if (!durable_make_folder(options->home, 0700, error) ||
	    (path && !durable_create(path, "", 0, 0600, error)))
		return false;
	done = serve_init(options, key, error) && (!path || !key[0] || keep_key(path, key, error));
	if (path && (!done || !key[0]) && !durable_remove(path, &ignored))
		log_failure(LOG_WARN, "init", &ignored, "an empty key file is left");
	if (!done)
		return false;
	if (!key[0])
		output_note("this database has an operator key already; no other was made");
	else if (!path)
		printf("%s\n", key);
	if (key[0] && !path)
		output_note("this operator key is shown this once; --key-out FILE keeps it off the "
			    "terminal");
	explicit_bzero(key, sizeof key);
	return true;
}

/* --- serve --- */

struct run {
	struct loop *loop;
	struct serve *serve;
	bool stopping;
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
	log_info("serve.stopping", "answers under way are finished first", NULL);
	serve_drain(run->serve, on_drained, run);
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

static bool run_serve(const struct cli *cli, const struct serve_options *options,
		      struct error *error)
{
	const char *ready_file = options_text(cli->options, "ready-file");
	struct run run = {.loop = loop_create()};
	struct loop_signal *term = NULL, *interrupt = NULL;
	bool done;

	done = (!ready_file || durable_remove(ready_file, error)) &&
	       serve_create(run.loop, options, &run.serve, error) &&
	       write_ready_file(cli, &run, error);
	if (done) {
		term = loop_signal_create(run.loop, SIGTERM, on_stop_signal, &run);
		interrupt = loop_signal_create(run.loop, SIGINT, on_stop_signal, &run);
		log_info("serve.ready", "serving", "api", serve_api_address(run.serve), "gateway",
			 serve_gateway_address(run.serve), NULL);
		loop_run(run.loop);
		log_info("serve.stopped", "stopped", NULL);
	}
	serve_destroy(run.serve);
	loop_signal_destroy(term);
	loop_signal_destroy(interrupt);
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
	{.name = "home",
	 .kind = OPTION_TEXT,
	 .value = "DIR",
	 .help = "its folder: database, keys (default " DEFAULT_HOME ")"},
	{.name = "init",
	 .kind = OPTION_FLAG,
	 .help = "make the database, the keys and the first operator key, then end"},
	{.name = "key-out",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "with --init: where the operator key goes (0600), not to stdout"},
	{.name = "database",
	 .kind = OPTION_TEXT,
	 .value = "URL",
	 .help = "sqlite:PATH or postgresql://... (default sqlite:DIR/better-compute.db)"},
	{.name = "database-file",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "the same from a file's first line, for one with a password"},
	{.name = "listen",
	 .kind = OPTION_TEXT,
	 .value = "ADDR:PORT",
	 .help = "where the HTTP API is (default " DEFAULT_LISTEN ")"},
	{.name = "tls-cert",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "certificate and chain of the API; needed off loopback"},
	{.name = "tls-key", .kind = OPTION_TEXT, .value = "FILE", .help = "its private key"},
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
	{.name = "workers",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "threads that work on the database (default 2)",
	 .min = 1,
	 .max = 64},
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
			"tells nodes to come back, and ends. Any number of replicas may share one "
			"PostgreSQL database and one PKI folder's content.",
		.example = "better-compute serve --init --home ./control-plane\n"
			   "better-compute serve --home ./control-plane",
		.run = serve,
	},
	{0},
};
