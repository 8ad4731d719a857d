#include "cli/commands.h"
#include "cli/noun.h"

static bool create(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object(), *answer = NULL;

	tree_set(body, "name", tree_string(cli->options->operands[0]));
	if (!cli_change(cli, "POST", "/v1/tenants", body, &answer, error))
		return false;
	if (answer)
		noun_print(cli, answer);
	return true;
}

static bool list(struct cli *cli, struct error *error)
{
	return noun_list(cli, NOUN_TENANT, NULL, error);
}

static bool show(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *item = NULL;

	if (!noun_fetch(cli, NOUN_TENANT, cli->options->operands[0], &item, error))
		return false;
	noun_print(cli, item);
	return true;
}

const struct command TENANT_COMMANDS[] = {
	{
		.noun = "tenants",
		.verb = "list",
		.summary = "list the tenants",
		.flags = COMMAND_DEFAULT | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute tenants\n",
		.run = list,
	},
	{
		.noun = "tenants",
		.verb = "create",
		.summary = "make a tenant (operators only)",
		.operands = "NAME",
		.min_operands = 1,
		.max_operands = 1,
		.flags = COMMAND_CREATES | COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute tenants create research\n",
		.run = create,
	},
	{
		.noun = "tenants",
		.verb = "show",
		.summary = "show one tenant",
		.operands = "TENANT",
		.min_operands = 1,
		.max_operands = 1,
		.names = COMMAND_NAMES_TENANTS,
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute tenants show research\n",
		.run = show,
	},
	{0},
};
