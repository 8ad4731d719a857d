#include "cli/commands.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/view.h"

static bool hand_over(struct cli *cli, json_t *answer, struct error *error)
{
	const char *path = options_text(cli->options, "out"), *key = view_text(answer, "key");

	if (!key)
		return error_set(error, ERROR_INTERNAL, "the answer holds no key");
	if (!path) {
		noun_print(cli, answer);
		if (cli->output == CLI_TABLE || cli->output == CLI_WIDE)
			output_note("the key is shown this once; --out FILE keeps it off the "
				    "terminal");
		return true;
	}
	if (!cli_write_secret(path, key, options_given(cli->options, "force"), error)) {
		const char *id = view_text(answer, "id");
		return error_hint(error,
				  "The key is lost. Revoke it: better-compute keys revoke %s",
				  id ? id : "ID");
	}
	json_object_del(answer, "key");
	noun_print(cli, answer);
	return true;
}

static bool create(struct cli *cli, struct error *error)
{
	const struct options *options = cli->options;
	CLEANUP(tree) json_t *body = json_object(), *answer = NULL;
	const char *tenant, *path = options_text(options, "out");

	if (!options_given(options, "role"))
		return error_set(error, ERROR_INVALID_INPUT, "--role is needed");
	if (path && !options_given(options, "force") && cli_exists(path)) {
		error_set(error, ERROR_CONFLICT, "'%s' exists", path);
		return error_hint(error, "Name another file, or add --force to replace it.");
	}
	if (!cli_tenant(cli, &tenant, error))
		return false;
	tree_set(body, "tenantId", tree_string(tenant));
	tree_set(body, "role", tree_string(options_text(options, "role")));
	tree_set(body, "name", tree_string(options->operands[0]));
	if (!cli_change(cli, "POST", "/v1/keys", body, &answer, error))
		return false;
	return !answer || hand_over(cli, answer, error);
}

static bool list(struct cli *cli, struct error *error)
{
	return noun_list(cli, NOUN_KEY, NULL, error);
}

static bool revoke(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	const char *id;

	if (!noun_resolve(cli, NOUN_KEY, cli->options->operands[0], &id, error))
		return false;
	const char *question =
		arena_printf(&cli->arena, "revoking %s locks out whoever uses it", id);
	if (!options_given(cli->options, "dry-run") && !output_confirm(cli, question, error))
		return false;
	if (!cli_change(cli, "POST", arena_printf(&cli->arena, "/v1/keys/%s/revoke", id), NULL,
			&answer, error))
		return false;
	if (answer)
		noun_print(cli, answer);
	return true;
}

static bool whoami(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;

	if (!api_call(cli->api, "GET", "/v1/whoami", NULL, &answer, error))
		return false;
	noun_print(cli, answer);
	return true;
}

static const char *const ROLES[] = {"operator", "owner", "user", "viewer", NULL};

static const struct option CREATE_OPTIONS[] = {
	{"role", 0, OPTION_TEXT, "ROLE", "operator, owner, user or viewer", 0, 0, ROLES},
	{"tenant", 0, OPTION_TEXT, "TENANT", "whose key it is", 0, 0, NULL},
	{"out", 0, OPTION_TEXT, "FILE", "write the key there (0600), not to the terminal", 0, 0,
	 NULL},
	{"force", 0, OPTION_FLAG, NULL, "replace FILE if it exists", 0, 0, NULL},
	{0},
};

const struct command KEY_COMMANDS[] = {
	{
		.noun = "keys",
		.verb = "list",
		.summary = "list the API keys (never the secret itself)",
		.flags = COMMAND_DEFAULT | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute keys\n",
		.run = list,
	},
	{
		.noun = "keys",
		.verb = "create",
		.summary = "make an API key",
		.operands = "NAME",
		.min_operands = 1,
		.max_operands = 1,
		.flags = COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.options = CREATE_OPTIONS,
		.more = "operator: everything; owner: all of the tenant; user: reservations; "
			"viewer: reads.",
		.example = "better-compute keys create ci --role user --out ci.key\n",
		.run = create,
	},
	{
		.noun = "keys",
		.verb = "revoke",
		.summary = "make an API key worthless",
		.operands = "KEY",
		.min_operands = 1,
		.max_operands = 1,
		.names = COMMAND_NAMES_KEYS,
		.flags = COMMAND_CHANGES | COMMAND_ASKS | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute keys revoke ci --yes\n",
		.run = revoke,
	},
	{
		.noun = "whoami",
		.summary = "show whose key is used",
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute whoami\n",
		.run = whoami,
	},
	{0},
};
