#include "cli/commands.h"
#include "cli/verb.h"

static bool archive(struct cli *cli, struct error *error)
{
	const char *id, *pools, *keys;

	if (!verb_id(cli, &id, error))
		return false;
	pools = verb_count(cli, NOUN_POOL, "tenantId", id);
	keys = verb_count(cli, NOUN_KEY, "tenantId", id);
	return verb_confirm(cli, id, "archive", NULL,
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

static const struct verb_field CREATE_FIELDS[] = {FIELD_OPERAND("name"), {0}};
static const struct verb_field UPDATE_FIELDS[] = {FIELD_TEXT("name", "name"), {0}};

#define TENANTS .noun = "tenants", .names = NOUN_TENANT

const struct command TENANT_COMMANDS[] = {
	{
		TENANTS,
		VERB_LISTS,
		.summary = "list the tenants",
		.example = "better-compute tenants\n",
	},
	{
		TENANTS,
		VERB_CREATES,
		VERB_ONE("NAME"),
		.summary = "make a tenant (operators only)",
		.example = "better-compute tenants create research\n",
		.fields = CREATE_FIELDS,
		.run = verb_create,
	},
	{
		TENANTS,
		VERB_SHOWS("TENANT"),
		.summary = "show one tenant",
		.example = "better-compute tenants show research\n",
	},
	{
		TENANTS,
		VERB_CHANGES("update", "TENANT"),
		.summary = "rename a tenant",
		.options = UPDATE_OPTIONS,
		.example = "better-compute tenants update research --name science\n",
		.fields = UPDATE_FIELDS,
		.run = verb_update,
	},
	{
		TENANTS,
		VERB_ASKS("archive", "TENANT"),
		.summary = "end a tenant for good, when nothing of it is live",
		.example = "better-compute tenants archive science --yes\n",
		.run = archive,
	},
	{0},
};
