#include "cli/commands.h"
#include "cli/output.h"
#include "cli/pages.h"
#include "cli/secret.h"
#include "cli/verb.h"

#define OVERLAP_MAX_MS (INT64_C(30) * 86400 * 1000)

static bool check_create(struct cli *cli, struct error *error)
{
	if (!options_given(cli->options, "role")) {
		error_set(error, ERROR_INVALID_INPUT, "--role is needed");
		return error_hint(error, "Say what it may do: --role operator, owner, user or "
					 "viewer");
	}
	return cli_check_out(cli, error);
}

static bool create(struct cli *cli, struct error *error)
{
	bool made; /* a key's create is never repeated */

	return secret_create(cli, "key", &made, error);
}

static bool rotate(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object();
	const char *id, *overlap = options_text(cli->options, "overlap");
	bool made;

	if (!verb_id(cli, &id, error))
		return false;
	if (overlap)
		tree_set(body, "overlap", tree_string(overlap));
	return verb_confirm(
		       cli, id, "rotate", body,
		       overlap ? arena_printf(&cli->arena,
					      "rotating %s makes a new secret; the old one ends "
					      "in %s",
					      id, overlap)
			       : arena_printf(&cli->arena,
					      "rotating %s makes a new secret; the old one ends "
					      "at once, for whoever uses it",
					      id),
		       error) &&
	       (secret_ask(cli,
			   arena_printf(&cli->arena, "%s/%s/rotate", noun_get(NOUN_KEY)->path, id),
			   body, "key", &made, error) ||
		noun_missing(NOUN_KEY, error));
}

static bool revoke(struct cli *cli, struct error *error)
{
	const char *id;

	return verb_id(cli, &id, error) &&
	       verb_confirm(cli, id, "revoke", NULL,
			    arena_printf(&cli->arena, "revoking %s locks out whoever uses it", id),
			    error) &&
	       verb_act(cli, id, "revoke", NULL, error);
}

static bool whoami(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;

	if (!api_call(cli->api, "GET", "/v1/whoami", NULL, &answer, error))
		return false;
	if (!output_raw(cli, answer))
		page_of_principal(answer);
	return true;
}

static const char *const ROLES[] = {"operator", "owner", "user", "viewer", NULL};

#define ROLE {"role", 0, OPTION_TEXT, "ROLE", "operator, owner, user or viewer", 0, 0, ROLES}

static const struct option CREATE_OPTIONS[] = {
	ROLE,
	{"tenant", 0, OPTION_TEXT, "TENANT", "whose key it is", 0, 0, NULL},
	SECRET_OUT_OPTIONS("key"),
	{0},
};

static const struct option UPDATE_OPTIONS[] = {
	{"name", 0, OPTION_TEXT, "NAME", "its new name", 0, 0, NULL},
	ROLE,
	VERB_OWNER,
	{0},
};

static const struct option ROTATE_OPTIONS[] = {
	{"overlap", 0, OPTION_DURATION, "D",
	 "the old secret stays good this long (default: ends at "
	 "once)",
	 1000, OVERLAP_MAX_MS, NULL},
	SECRET_OUT_OPTIONS("key"),
	VERB_OWNER,
	{0},
};

static const struct verb_field CREATE_FIELDS[] = {
	FIELD_TENANT, FIELD_TEXT("role", "role"), FIELD_OPERAND("name"), {0}};
static const struct verb_field UPDATE_FIELDS[] = {
	FIELD_TEXT("name", "name"), FIELD_TEXT("role", "role"), {0}};

#define KEYS .noun = "keys", .names = NOUN_KEY

const struct command KEY_COMMANDS[] = {
	{
		KEYS,
		VERB_LISTS,
		.options = VERB_OWNERS_OPTIONS,
		.summary = "list the API keys (never the secret itself)",
		.example = "better-compute keys\n",
	},
	{
		KEYS,
		VERB_CHANGES("create", "NAME"),
		.summary = "make an API key",
		.options = CREATE_OPTIONS,
		.more = "operator: everything; owner: all of the tenant; user: reservations; "
			"viewer: reads.",
		.example = "better-compute keys create ci --role user --out ci.key\n",
		.check = check_create,
		.fields = CREATE_FIELDS,
		.run = create,
	},
	{
		KEYS,
		VERB_SHOWS("KEY"),
		.summary = "show one API key's role and state",
		.options = VERB_OWNER_OPTIONS,
		.example = "better-compute keys show ci\n",
	},
	{
		KEYS,
		VERB_CHANGES("update", "KEY"),
		.summary = "rename an API key, or change what it may do",
		.options = UPDATE_OPTIONS,
		.example = "better-compute keys update ci --role viewer\n",
		.fields = UPDATE_FIELDS,
		.run = verb_update,
	},
	{
		KEYS,
		VERB_ASKS("rotate", "KEY"),
		.summary = "give an API key a new secret",
		.options = ROTATE_OPTIONS,
		.more = "With --overlap both secrets are good for that time, so that whoever uses "
			"the key can change over.",
		.example = "better-compute keys rotate ci --overlap 1h --out ci-new.key --yes\n",
		.check = cli_check_out,
		.run = rotate,
	},
	{
		KEYS,
		VERB_ASKS("revoke", "KEY"),
		.summary = "make an API key worthless",
		.options = VERB_OWNER_OPTIONS,
		.example = "better-compute keys revoke ci --yes\n",
		.run = revoke,
	},
	{
		.noun = "whoami",
		.summary = "show whose key is used",
		.flags = COMMAND_API | COMMAND_ANSWER,
		.example = "better-compute whoami\n",
		.run = whoami,
	},
	{0},
};
