#include "cli/join_tokens.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/secret.h"
#include "cli/verb.h"

/* A token alone joins nothing: what a machine needs beside it, or who needs none. */
static void say_next(struct cli *cli)
{
	const char *file = options_text(cli->options, "out");

	if (cli->output != CLI_TABLE && cli->output != CLI_WIDE)
		return;
	if (options_given(cli->options, "hosted"))
		output_note(
			"for a cluster's nodes: better-compute kubernetes manifest makes such a "
			"token itself, with all that goes with it");
	else
		output_note("next, on the machine: bcd join --token-file %s, a file of mode 0600. "
			    "Its /etc/bcd/config.toml names the control plane and the pins, which "
			    "'better-compute pki show' prints on the control plane's host",
			    file ? file : "FILE");
}

static bool create(struct cli *cli, struct error *error)
{
	bool made;

	if (!secret_create(cli, "token", &made, error))
		return false;
	if (made)
		say_next(cli);
	return true;
}

static bool revoke(struct cli *cli, struct error *error)
{
	const char *id;

	return verb_id(cli, &id, error) && verb_act(cli, id, "revoke", NULL, error);
}

static const struct option LIST_OPTIONS[] = {
	{"pool", 0, OPTION_TEXT, "POOL", "only those of this pool", 0, 0, NULL},
	{0},
};

static const struct option CREATE_OPTIONS[] = {
	{"pool", 0, OPTION_TEXT, "POOL", "the pool that machines join", 0, 0, NULL},
	VERB_OWNER,
	{"ttl", 0, OPTION_DURATION, "D", "how long it is good, 1m to 24h (default 24h)",
	 JOIN_TOKEN_TTL_MIN_MS, JOIN_TOKEN_TTL_MAX_MS, NULL},
	{"max-uses", 0, OPTION_NUMBER, "N", "how many machines may use it (default 1)", 1,
	 JOIN_TOKEN_USES_MAX, NULL},
	{"hosted", 0, OPTION_FLAG, NULL, "the cluster's admin runs bcd: tenant-controlled nodes", 0,
	 0, NULL},
	SECRET_OUT_OPTIONS("token"),
	{0},
};

static const struct verb_field LIST_FIELDS[] = {FIELD_ID("poolId", "pool", NOUN_POOL), {0}};
static const struct verb_field CREATE_FIELDS[] = {
	FIELD_POOL,
	FIELD_TEXT("ttl", "ttl"),
	FIELD_NUMBER("maxUses", "max-uses"),
	FIELD_FLAG("hosted", "hosted", "kubernetes"),
	{0},
};

#define JOIN_TOKENS .noun = "join-tokens", .names = NOUN_JOIN_TOKEN

const struct command JOIN_TOKEN_COMMANDS[] = {
	{
		JOIN_TOKENS,
		.verb = "list",
		.summary = "list the join tokens (never the secret itself)",
		.flags = COMMAND_DEFAULT | COMMAND_API | COMMAND_OUTPUT,
		.options = LIST_OPTIONS,
		.example = "better-compute join-tokens\n",
		.fields = LIST_FIELDS,
		.run = verb_list,
	},
	{
		JOIN_TOKENS,
		VERB_CREATES,
		.summary = "make a token that lets machines join a pool",
		.options = CREATE_OPTIONS,
		.more = "Whoever can read a live token can join a machine to the pool: set "
			"--max-uses to the number of machines, and a short --ttl. A machine joins "
			"by "
			"bcd join --token-file FILE; its /etc/bcd/config.toml names the control "
			"plane and the pins that 'better-compute pki show' prints.",
		.example = "better-compute join-tokens create --max-uses 2 --ttl 1h --out "
			   "join.token\n",
		.check = cli_check_out,
		.fields = CREATE_FIELDS,
		.run = create,
	},
	{
		JOIN_TOKENS,
		VERB_SHOWS("ID"),
		.summary = "show one join token's uses and state",
		.example = "better-compute join-tokens show jt_01kb7\n",
	},
	{
		JOIN_TOKENS,
		VERB_CHANGES("revoke", "ID"),
		.summary = "let nobody join by a token any more",
		.more = "Nodes that have joined are not affected.",
		.example = "better-compute join-tokens revoke jt_01kb7\n",
		.run = revoke,
	},
	{0},
};
