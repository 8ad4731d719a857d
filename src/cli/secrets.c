#include "cli/commands.h"
#include "cli/secret.h"
#include "cli/verb.h"

/* The value goes into the body, and never into what a dry run prints. */
static bool add_value(struct cli *cli, json_t *body, struct error *error)
{
	const char *path = options_text(cli->options, "from"), *value;

	if (!path)
		return true;
	if (!secret_read(path, &value, &cli->arena, error))
		return false;
	tree_set(body, "value", tree_string(cli_is_dry(cli) ? "(not shown)" : value));
	return true;
}

static bool check_create(struct cli *cli, struct error *error)
{
	if (options_given(cli->options, "from"))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "--from is needed");
	return error_hint(error, "Say where the value stands: --from FILE, or --from - for stdin.");
}

static bool create(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object();

	return verb_body(cli, body, error) && add_value(cli, body, error) &&
	       verb_post(cli, body, error);
}

static bool update(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object();

	return verb_body(cli, body, error) && add_value(cli, body, error) &&
	       verb_patch(cli, body, "Give a new value by --from FILE, or --name NAME.", error);
}

static bool delete(struct cli *cli, struct error *error)
{
	const char *id;

	return verb_id(cli, &id, error) &&
	       verb_confirm(
		       cli, id, NULL, NULL,
		       arena_printf(&cli->arena,
				    "deleting secret %s breaks whatever refers to it, such as a "
				    "pool's joinTokenRef",
				    id),
		       error) &&
	       verb_delete(cli, id, error);
}

#define FROM {"from", 0, OPTION_TEXT, "FILE", "the value: a file, or - for stdin", 0, 0, NULL}

static const struct option CREATE_OPTIONS[] = {
	FROM,
	{"tenant", 0, OPTION_TEXT, "TENANT", "whose secret it is", 0, 0, NULL},
	{0},
};

static const struct option UPDATE_OPTIONS[] = {
	FROM,
	{"name", 0, OPTION_TEXT, "NAME", "its new name", 0, 0, NULL},
	VERB_OWNER,
	{0},
};

static const struct verb_field CREATE_FIELDS[] = {FIELD_TENANT, FIELD_OPERAND("name"), {0}};
static const struct verb_field UPDATE_FIELDS[] = {FIELD_TEXT("name", "name"), {0}};

#define SECRETS .noun = "secrets", .names = NOUN_SECRET

const struct command SECRET_COMMANDS[] = {
	{
		SECRETS,
		VERB_LISTS,
		.options = VERB_OWNERS_OPTIONS,
		.summary = "list the secrets (never a value)",
		.example = "better-compute secrets\n",
	},
	{
		SECRETS,
		VERB_CREATES,
		VERB_ONE("NAME"),
		.summary = "keep a secret, such as a cluster's join token",
		.options = CREATE_OPTIONS,
		.more = "The value comes from a file or from stdin, never from the command line; "
			"one newline at its end is left out. It can't be read back. Pools refer to "
			"it as secret://TENANT/ID.",
		.example = "better-compute secrets create k8s-join --from - <join.token\n",
		.check = check_create,
		.fields = CREATE_FIELDS,
		.run = create,
	},
	{
		SECRETS,
		VERB_SHOWS("SECRET"),
		.summary = "show a secret's record, without its value",
		.options = VERB_OWNER_OPTIONS,
		.example = "better-compute secrets show k8s-join\n",
	},
	{
		SECRETS,
		VERB_CHANGES("update", "SECRET"),
		.summary = "give a secret a new value or name",
		.options = UPDATE_OPTIONS,
		.example = "better-compute secrets update k8s-join --from join.token\n",
		.fields = UPDATE_FIELDS,
		.run = update,
	},
	{
		SECRETS,
		VERB_ASKS("delete", "SECRET"),
		.summary = "forget a secret",
		.options = VERB_OWNER_OPTIONS,
		.example = "better-compute secrets delete k8s-join --yes\n",
		.run = delete,
	},
	{0},
};
