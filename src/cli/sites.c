#include "cli/commands.h"
#include "cli/verb.h"

static bool archive(struct cli *cli, struct error *error)
{
	const char *id, *pools;

	if (!verb_id(cli, &id, error))
		return false;
	pools = verb_count(cli, NOUN_POOL, "siteId", id);
	return verb_confirm(cli, id, "archive", NULL,
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
	VERB_OWNER,
	{0},
};

static const struct verb_field CREATE_FIELDS[] = {
	FIELD_TENANT,
	FIELD_OPERAND("name"),
	FIELD_TEXT_OR("kind", "kind", "custom"),
	{0},
};
static const struct verb_field UPDATE_FIELDS[] = {FIELD_TEXT("name", "name"), {0}};

#define SITES .noun = "sites", .names = NOUN_SITE

const struct command SITE_COMMANDS[] = {
	{
		SITES,
		VERB_LISTS,
		.options = VERB_OWNERS_OPTIONS,
		.summary = "list the sites",
		.example = "better-compute sites\n",
	},
	{
		SITES,
		VERB_CREATES,
		VERB_ONE("NAME"),
		.summary = "make a site: a place where machines stand",
		.options = CREATE_OPTIONS,
		.example = "better-compute sites create frankfurt --kind custom\n",
		.fields = CREATE_FIELDS,
		.run = verb_create,
	},
	{
		SITES,
		VERB_SHOWS("SITE"),
		.summary = "show one site",
		.options = VERB_OWNER_OPTIONS,
		.example = "better-compute sites show frankfurt\n",
	},
	{
		SITES,
		VERB_CHANGES("update", "SITE"),
		.summary = "rename a site",
		.options = UPDATE_OPTIONS,
		.example = "better-compute sites update frankfurt --name fra1\n",
		.fields = UPDATE_FIELDS,
		.run = verb_update,
	},
	{
		SITES,
		VERB_ASKS("archive", "SITE"),
		.summary = "end a site for good, when no pool of it is active",
		.options = VERB_OWNER_OPTIONS,
		.example = "better-compute sites archive fra1 --yes\n",
		.run = archive,
	},
	{0},
};
