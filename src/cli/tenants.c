#include "cli/commands.h"
#include "cli/verb.h"

static bool create(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object();

	tree_set(body, "name", tree_string(cli->options->operands[0]));
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
	const char *id, *pools, *keys;

	if (!verb_id(cli, &id, error))
		return false;
	pools = verb_count(cli, NOUN_POOL, "tenantId", id);
	keys = verb_count(cli, NOUN_KEY, "tenantId", id);
	return verb_confirm(cli,
			    arena_printf(&cli->arena,
					 "archiving tenant '%s', which has %s and %s, is for good: "
					 "nothing can be made or booked for it any more",
					 cli->options->operands[0], pools ? pools : "no pools",
					 keys ? keys : "no keys"),
			    error) &&
	       verb_act(cli, id, "archive", NULL, error);
}

static const struct option UPDATE_OPTIONS[] = {
	{"name", 0, OPTION_TEXT, "NAME", "its new name", 0, 0, NULL},
	{0},
};

const struct command TENANT_COMMANDS[] = {
	{
		.noun = "tenants",
		.verb = "list",
		.summary = "list the tenants",
		.names = NOUN_TENANT,
		.flags = COMMAND_DEFAULT | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute tenants\n",
		.run = verb_list,
	},
	{
		.noun = "tenants",
		.verb = "create",
		.summary = "make a tenant (operators only)",
		.operands = "NAME",
		.min_operands = 1,
		.max_operands = 1,
		.names = NOUN_TENANT,
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
		.names = NOUN_TENANT,
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute tenants show research\n",
		.run = verb_show,
	},
	{
		.noun = "tenants",
		.verb = "update",
		.summary = "rename a tenant",
		.operands = "TENANT",
		.min_operands = 1,
		.max_operands = 1,
		.names = NOUN_TENANT,
		.flags = COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.options = UPDATE_OPTIONS,
		.example = "better-compute tenants update research --name science\n",
		.run = update,
	},
	{
		.noun = "tenants",
		.verb = "archive",
		.summary = "end a tenant for good, when nothing of it is live",
		.operands = "TENANT",
		.min_operands = 1,
		.max_operands = 1,
		.names = NOUN_TENANT,
		.flags = COMMAND_CHANGES | COMMAND_ASKS | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute tenants archive science --yes\n",
		.run = archive,
	},
	{0},
};
