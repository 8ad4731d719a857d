#include "cli/commands.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/view.h"

/* JOIN-36: a token lives one minute to one day. */
#define TTL_MIN_MS (INT64_C(60) * 1000)
#define TTL_MAX_MS (INT64_C(24) * 3600 * 1000)
#define USES_MAX   10000

static json_t *make_body(const struct options *options, const char *pool)
{
	json_t *body = json_object();

	tree_set(body, "poolId", tree_string(pool));
	if (options_given(options, "ttl"))
		tree_set(body, "ttl", tree_string(options_text(options, "ttl")));
	if (options_given(options, "max-uses"))
		tree_set(body, "maxUses", json_integer(options_number(options, "max-uses", 1)));
	if (options_given(options, "hosted"))
		tree_set(body, "hosted", tree_string("kubernetes"));
	return body;
}

/* With --out the token goes to the file alone; without, to stdout with a word about it. */
static bool hand_over(struct cli *cli, json_t *answer, struct error *error)
{
	const char *path = options_text(cli->options, "out");
	const char *token = view_text(answer, "token");

	if (!token)
		return error_set(error, ERROR_INTERNAL, "the answer holds no token");
	if (!path) {
		noun_print(cli, answer);
		if (cli->output == CLI_TABLE || cli->output == CLI_WIDE)
			output_note("the token is shown this once; --out FILE keeps it off the "
				    "terminal");
		return true;
	}
	if (!cli_write_secret(path, token, options_given(cli->options, "force"), error)) {
		const char *id = view_text(answer, "id");
		return error_hint(error,
				  "The token is lost. Revoke it: better-compute join-tokens "
				  "revoke %s",
				  id ? id : "ID");
	}
	json_object_del(answer, "token");
	noun_print(cli, answer);
	return true;
}

static bool create(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = NULL, *answer = NULL;
	const char *pool, *path = options_text(cli->options, "out");

	if (path && !options_given(cli->options, "force") && cli_exists(path)) {
		error_set(error, ERROR_CONFLICT, "'%s' exists", path);
		return error_hint(error, "Name another file, or add --force to replace it.");
	}
	if (!cli_pool(cli, &pool, error))
		return false;
	body = make_body(cli->options, pool);
	if (!cli_change(cli, "POST", "/v1/join-tokens", body, &answer, error))
		return false;
	return !answer || hand_over(cli, answer, error);
}

static bool list(struct cli *cli, struct error *error)
{
	return noun_list(cli, NOUN_JOIN_TOKEN, NULL, error);
}

static bool show(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *item = NULL;

	if (!noun_fetch(cli, NOUN_JOIN_TOKEN, cli->options->operands[0], &item, error))
		return false;
	noun_print(cli, item);
	return true;
}

static bool revoke(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	const char *id;

	if (!noun_resolve(cli, NOUN_JOIN_TOKEN, cli->options->operands[0], &id, error) ||
	    !cli_change(cli, "POST", arena_printf(&cli->arena, "/v1/join-tokens/%s/revoke", id),
			NULL, &answer, error))
		return false;
	if (answer)
		noun_print(cli, answer);
	return true;
}

static const struct option CREATE_OPTIONS[] = {
	{"pool", 0, OPTION_TEXT, "POOL", "the pool that machines join", 0, 0, NULL},
	{"ttl", 0, OPTION_DURATION, "D", "how long it is good, 1m to 24h (default 24h)", TTL_MIN_MS,
	 TTL_MAX_MS, NULL},
	{"max-uses", 0, OPTION_NUMBER, "N", "how many machines may use it (default 1)", 1, USES_MAX,
	 NULL},
	{"hosted", 0, OPTION_FLAG, NULL, "the cluster's admin runs bcd: tenant-controlled nodes", 0,
	 0, NULL},
	{"out", 0, OPTION_TEXT, "FILE", "write the token there (0600), not to the terminal", 0, 0,
	 NULL},
	{"force", 0, OPTION_FLAG, NULL, "replace FILE if it exists", 0, 0, NULL},
	{0},
};

const struct command JOIN_TOKEN_COMMANDS[] = {
	{
		.noun = "join-tokens",
		.verb = "list",
		.summary = "list the join tokens (never the secret itself)",
		.flags = COMMAND_DEFAULT | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute join-tokens\n",
		.run = list,
	},
	{
		.noun = "join-tokens",
		.verb = "create",
		.summary = "make a token that lets machines join a pool",
		.flags = COMMAND_CREATES | COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.options = CREATE_OPTIONS,
		.more = "Whoever can read a live token can join a machine to the pool: set "
			"--max-uses to the number of machines, and a short --ttl.",
		.example = "better-compute join-tokens create --max-uses 2 --ttl 1h --out "
			   "join.token\n",
		.run = create,
	},
	{
		.noun = "join-tokens",
		.verb = "show",
		.summary = "show one join token's uses and state",
		.operands = "ID",
		.min_operands = 1,
		.max_operands = 1,
		.names = COMMAND_NAMES_JOIN_TOKENS,
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute join-tokens show jt_01kb7\n",
		.run = show,
	},
	{
		.noun = "join-tokens",
		.verb = "revoke",
		.summary = "let nobody join by a token any more",
		.operands = "ID",
		.min_operands = 1,
		.max_operands = 1,
		.names = COMMAND_NAMES_JOIN_TOKENS,
		.flags = COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.more = "Nodes that have joined are not affected.",
		.example = "better-compute join-tokens revoke jt_01kb7\n",
		.run = revoke,
	},
	{0},
};
