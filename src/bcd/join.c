#include "node/join.h"
#include "bcd/verbs.h"
#include "node/confine.h"
#include "node/status.h"
#include "sys/net.h"

#include <stdio.h>

static const struct option options_table[] = {
	{.name = "token-file",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "the join token: a private file (mode 0600)"},
	{.name = "server",
	 .kind = OPTION_TEXT,
	 .value = "URL",
	 .help = "the control plane, instead of join.server"},
	{.name = "ca-file",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "a private CA for --server, instead of join.ca_file"},
	{.name = "quiet", .kind = OPTION_FLAG, .help = "no word of how bcd is started next"},
	{0},
};

/* In a pod the next container is started by itself, and where bcd runs it takes over what was stored. */
static void say_next(const struct options *options, const struct config *config)
{
	CLEANUP(free) char *path = identity_path(config->run, STATUS_SOCKET);
	const char *file = options_text(options, "config");

	if (config->in_pod || net_unix_is_socket(path))
		return;
	fflush(stdout);
	fprintf(stderr,
		"note: bcd doesn't run here yet. Start it: %sbcd node%s%s. How it does: bcd "
		"status%s%s\n",
		file ? "" : "systemctl enable --now bcd, or by hand ", file ? " --config " : "",
		file ? file : "", file ? " --config " : "", file ? file : "");
}

static int run(const struct options *options)
{
	CLEANUP(config) struct config config = {0};
	CLEANUP(identity) struct identity identity = {0};
	struct confinement confinement;
	struct error error = {0};
	enum join_exit exit;
	bool already;

	if (!verb_config(options, false, &config, &error))
		return verb_fail(&error, JOIN_USAGE);
	if (options_given(options, "server"))
		config.join_server = options_text(options, "server");
	if (options_given(options, "ca-file"))
		config.ca_file = options_text(options, "ca-file");
	confine_process(&config, CONFINE_JOIN, &confinement);
	exit = join_run(&config, options_text(options, "token-file"), &identity, &already, &error);
	if (exit != JOIN_DONE)
		return verb_fail(&error, exit);
	if (already)
		printf("%s joined before\n", identity.node_id);
	else
		printf("%s joined as %s\n", identity.node_id, identity.trust);
	if (!options_given(options, "quiet"))
		say_next(options, &config);
	return exit;
}

const struct verb JOIN_VERB = {
	.name = "join",
	.summary = "make this machine a node, once",
	.operands = "",
	.options = options_table,
	.more = "A node whose certificate expired is renewed by its key, for 7 days after that, "
		"where\n"
		"the token's file is gone or the token too old.\n\n"
		"Exit status: 0 joined now or before, 2 usage, 3 token file refused, 4 token\n"
		"refused, 5 pin mismatch, 6 network (try again), 1 anything else.\n\n"
		"Example:\n  bcd join --token-file /run/secrets/join-token\n",
	.run = run,
};
