#include "cli/commands.h"
#include "cli/noun.h"

static bool create(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object(), *answer = NULL;
	const char *tenant, *kind = options_text(cli->options, "kind");

	if (!cli_tenant(cli, &tenant, error))
		return false;
	tree_set(body, "tenantId", tree_string(tenant));
	tree_set(body, "name", tree_string(cli->options->operands[0]));
	tree_set(body, "kind", tree_string(kind ? kind : "custom"));
	if (!cli_change(cli, "POST", "/v1/sites", body, &answer, error))
		return false;
	if (answer)
		noun_print(cli, answer);
	return true;
}

static bool list(struct cli *cli, struct error *error)
{
	return noun_list(cli, NOUN_SITE, NULL, error);
}

static bool show(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *item = NULL;

	if (!noun_fetch(cli, NOUN_SITE, cli->options->operands[0], &item, error))
		return false;
	noun_print(cli, item);
	return true;
}

static const char *const KINDS[] = {"platform", "custom", NULL};

static const struct option CREATE_OPTIONS[] = {
	{"tenant", 0, OPTION_TEXT, "TENANT", "whose site it is", 0, 0, NULL},
	{"kind", 0, OPTION_TEXT, "KIND", "platform, or custom (the tenant's own; default)", 0, 0,
	 KINDS},
	{0},
};

const struct command SITE_COMMANDS[] = {
	{
		.noun = "sites",
		.verb = "list",
		.summary = "list the sites",
		.flags = COMMAND_DEFAULT | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute sites\n",
		.run = list,
	},
	{
		.noun = "sites",
		.verb = "create",
		.summary = "make a site: a place where machines stand",
		.operands = "NAME",
		.min_operands = 1,
		.max_operands = 1,
		.flags = COMMAND_CREATES | COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.options = CREATE_OPTIONS,
		.example = "better-compute sites create frankfurt --kind custom\n",
		.run = create,
	},
	{
		.noun = "sites",
		.verb = "show",
		.summary = "show one site",
		.operands = "SITE",
		.min_operands = 1,
		.max_operands = 1,
		.names = COMMAND_NAMES_SITES,
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute sites show frankfurt\n",
		.run = show,
	},
	{0},
};
