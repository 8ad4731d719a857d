#include "cli/commands.h"
#include "cli/secret.h"
#include "cli/verb.h"

/* JOIN-36: a token lives one minute to one day. */
#define TTL_MIN_MS (INT64_C(60) * 1000)
#define TTL_MAX_MS (INT64_C(24) * 3600 * 1000)
#define USES_MAX   10000

static bool create(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object(), *answer = NULL;
	const char *pool;

	if (!cli_pool(cli, &pool, error))
		return false;
	tree_set(body, "poolId", tree_string(pool));
	verb_add_text(cli, body, "ttl", "ttl");
	verb_add_number(cli, body, "max-uses", "maxUses");
	if (options_given(cli->options, "hosted"))
		tree_set(body, "hosted", tree_string("kubernetes"));
	if (!cli_change(cli, "POST", "/v1/join-tokens", body, &answer, error))
		return false;
	return !answer || secret_hand_over(cli, answer, "token", error);
}

static bool list(struct cli *cli, struct error *error)
{
	CLEANUP(buf) struct buf query = {0};

	return verb_query_id(cli, &query, NOUN_POOL, "pool", "poolId", error) &&
	       noun_list(cli, NOUN_JOIN_TOKEN, query.length ? buf_text(&query) : NULL, error);
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
	{"ttl", 0, OPTION_DURATION, "D", "how long it is good, 1m to 24h (default 24h)", TTL_MIN_MS,
	 TTL_MAX_MS, NULL},
	{"max-uses", 0, OPTION_NUMBER, "N", "how many machines may use it (default 1)", 1, USES_MAX,
	 NULL},
	{"hosted", 0, OPTION_FLAG, NULL, "the cluster's admin runs bcd: tenant-controlled nodes", 0,
	 0, NULL},
	SECRET_OUT_OPTIONS("token"),
	{0},
};

const struct command JOIN_TOKEN_COMMANDS[] = {
	{
		.noun = "join-tokens",
		.verb = "list",
		.summary = "list the join tokens (never the secret itself)",
		.names = NOUN_JOIN_TOKEN,
		.flags = COMMAND_DEFAULT | COMMAND_API | COMMAND_OUTPUT,
		.options = LIST_OPTIONS,
		.example = "better-compute join-tokens\n",
		.run = list,
	},
	{
		.noun = "join-tokens",
		.verb = "create",
		.summary = "make a token that lets machines join a pool",
		.names = NOUN_JOIN_TOKEN,
		.flags = COMMAND_CREATES | COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.options = CREATE_OPTIONS,
		.more = "Whoever can read a live token can join a machine to the pool: set "
			"--max-uses to the number of machines, and a short --ttl.",
		.example = "better-compute join-tokens create --max-uses 2 --ttl 1h --out "
			   "join.token\n",
		.check = cli_check_out,
		.run = create,
	},
	{
		.noun = "join-tokens",
		.verb = "show",
		.summary = "show one join token's uses and state",
		.operands = "ID",
		.min_operands = 1,
		.max_operands = 1,
		.names = NOUN_JOIN_TOKEN,
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute join-tokens show jt_01kb7\n",
		.run = verb_show,
	},
	{
		.noun = "join-tokens",
		.verb = "revoke",
		.summary = "let nobody join by a token any more",
		.operands = "ID",
		.min_operands = 1,
		.max_operands = 1,
		.names = NOUN_JOIN_TOKEN,
		.flags = COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.more = "Nodes that have joined are not affected.",
		.example = "better-compute join-tokens revoke jt_01kb7\n",
		.run = revoke,
	},
	{0},
};
