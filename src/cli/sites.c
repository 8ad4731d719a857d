#include "cli/commands.h"
#include "cli/verb.h"

static bool create(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object();
	const char *tenant, *kind = options_text(cli->options, "kind");

	if (!cli_tenant(cli, &tenant, error))
		return false;
	tree_set(body, "tenantId", tree_string(tenant));
	tree_set(body, "name", tree_string(cli->options->operands[0]));
	tree_set(body, "kind", tree_string(kind ? kind : "custom"));
	return verb_create(cli, body, error);
}

static bool update(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object();

	verb_add_text(cli, body, "name", "name");
	return verb_patch(cli, body, "Give it another name: --name NAME", error);
}

static bool archive(struct cli *cli, struct error *error)
{
	const char *id, *pools;

	if (!verb_id(cli, &id, error))
		return false;
	pools = verb_count(cli, NOUN_POOL, "siteId", id);
	return verb_confirm(cli,
			    arena_printf(&cli->arena,
					 "archiving site '%s', which has %s, is for good: no pool "
					 "can be made there any more",
					 cli->options->operands[0], pools ? pools : "no pools"),
			    error) &&
	       verb_act(cli, id, "archive", NULL, error);
}

static const char *const KINDS[] = {"platform", "custom", NULL};

static const struct option CREATE_OPTIONS[] = {
	{"tenant", 0, OPTION_TEXT, "TENANT", "whose site it is", 0, 0, NULL},
	{"kind", 0, OPTION_TEXT, "KIND", "platform, or custom (the tenant's own; default)", 0, 0,
	 KINDS},
	{0},
};

static const struct option UPDATE_OPTIONS[] = {
	{"name", 0, OPTION_TEXT, "NAME", "its new name", 0, 0, NULL},
	{0},
};

const struct command SITE_COMMANDS[] = {
	{
		.noun = "sites",
		.verb = "list",
		.summary = "list the sites",
		.names = NOUN_SITE,
		.flags = COMMAND_DEFAULT | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute sites\n",
		.run = verb_list,
	},
	{
		.noun = "sites",
		.verb = "create",
		.summary = "make a site: a place where machines stand",
		.operands = "NAME",
		.min_operands = 1,
		.max_operands = 1,
		.names = NOUN_SITE,
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
		.names = NOUN_SITE,
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute sites show frankfurt\n",
		.run = verb_show,
	},
	{
		.noun = "sites",
		.verb = "update",
		.summary = "rename a site",
		.operands = "SITE",
		.min_operands = 1,
		.max_operands = 1,
		.names = NOUN_SITE,
		.flags = COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.options = UPDATE_OPTIONS,
		.example = "better-compute sites update frankfurt --name fra1\n",
		.run = update,
	},
	{
		.noun = "sites",
		.verb = "archive",
		.summary = "end a site for good, when no pool of it is active",
		.operands = "SITE",
		.min_operands = 1,
		.max_operands = 1,
		.names = NOUN_SITE,
		.flags = COMMAND_CHANGES | COMMAND_ASKS | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute sites archive fra1 --yes\n",
		.run = archive,
	},
	{0},
};
