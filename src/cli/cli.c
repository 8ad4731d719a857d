#include "cli/cli.h"
#include "cli/api.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/view.h"
#include "sys/durable.h"

#define INPUT_MAX_SIZE ((size_t)1 << 20) /* as the API takes */

static bool given(const struct cli *cli, unsigned flag, const char *name)
{
	return cli->command->flags & flag && options_given(cli->options, name);
}

bool cli_change(struct cli *cli, const char *method, const char *path, json_t *body,
		json_t **ret_answer, struct error *error)
{
	if (given(cli, COMMAND_CREATES, "idempotency-key"))
		tree_set(body, "idempotencyKey",
			 tree_string(options_text(cli->options, "idempotency-key")));
	if (given(cli, COMMAND_CHANGES, "dry-run")) {
		CLEANUP(free) char *text = body ? json_dumps(body, JSON_INDENT(2)) : NULL;
		printf("would send %s %s%s%s\n", method, path, text ? "\n" : "", text ? text : "");
		*ret_answer = NULL;
		return true;
	}
	return api_call(cli->api, method, path, body, ret_answer, error);
}

static const char *option_or_null(const struct cli *cli, const char *name)
{
	for (size_t i = 0; i < cli->options->count; i++) {
		if (str_equal(cli->options->values[i].option->name, name))
			return cli->options->values[i].text;
	}
	return NULL;
}

bool cli_tenant(struct cli *cli, const char **ret_id, struct error *error)
{
	const char *text = option_or_null(cli, "tenant"), *id;
	CLEANUP(tree) json_t *whoami = NULL;

	if (!text)
		text = cli->context.values[CONTEXT_TENANT].text;
	if (text)
		return noun_resolve(cli, NOUN_TENANT, text, ret_id, error);
	if (!api_call(cli->api, "GET", "/v1/whoami", NULL, &whoami, error))
		return false;
	id = view_text(whoami, "tenantId");
	if (!id) {
		error_set(error, ERROR_INVALID_INPUT, "this key belongs to no tenant");
		return error_hint(error, "Name one: --tenant TENANT");
	}
	*ret_id = arena_strdup(&cli->arena, id);
	return true;
}

static bool only_pool(struct cli *cli, const json_t *pools, const char **ret_id,
		      struct error *error)
{
	CLEANUP(buf) struct buf names = {0};
	const char *id = NULL;
	size_t index, active = 0;
	json_t *item;

	json_array_foreach(pools, index, item)
	{
		const char *state = view_text(item, "state"), *name = view_text(item, "name");
		if (!state || !str_equal(state, "active"))
			continue;
		buf_printf(&names, "%s%s", active++ ? ", " : "", name ? name : "?");
		id = view_text(item, "id");
	}
	if (active == 1 && id) {
		*ret_id = arena_strdup(&cli->arena, id);
		return true;
	}
	if (active == 0) {
		error_set(error, ERROR_NOT_FOUND, "there is no pool yet");
		return error_hint(error, "Make one: %s", noun_get(NOUN_POOL)->make);
	}
	error_set(error, ERROR_INVALID_INPUT, "which pool? there are %zu: %s", active,
		  buf_text(&names));
	return error_hint(error, "Name one: --pool POOL");
}

bool cli_pool(struct cli *cli, const char **ret_id, struct error *error)
{
	const char *text = option_or_null(cli, "pool");
	CLEANUP(tree) json_t *pools = NULL;

	if (!text)
		text = cli->context.values[CONTEXT_POOL].text;
	if (text)
		return noun_resolve(cli, NOUN_POOL, text, ret_id, error);
	return api_list(cli->api, noun_get(NOUN_POOL)->path, NULL, &pools, error) &&
	       only_pool(cli, pools, ret_id, error);
}

bool cli_write_secret(const char *path, const char *secret, bool force, struct error *error)
{
	CLEANUP(buf) struct buf line = {0};

	buf_printf(&line, "%s\n", secret);
	bool ok = force ? durable_replace(path, line.data, line.length, 0600, error)
			: durable_create(path, line.data, line.length, 0600, error);
	buf_wipe(&line);
	if (!ok && error->code == ERROR_CONFLICT)
		error_hint(error, "Name another file, or add --force to replace it.");
	return ok;
}

bool cli_exists(const char *path)
{
	return durable_stamp(path).exists;
}

static bool read_stdin(struct buf *content, struct error *error)
{
	char chunk[4096];
	size_t got;

	while ((got = fread(chunk, 1, sizeof chunk, stdin)) > 0) {
		if (content->length + got > INPUT_MAX_SIZE)
			return error_set(error, ERROR_RESOURCES_EXHAUSTED,
					 "standard input is larger than %zu bytes", INPUT_MAX_SIZE);
		buf_add(content, chunk, got);
	}
	return ferror(stdin) ? error_os(error, "read standard input") : true;
}

bool cli_read_json(const char *path, json_t **ret_object, struct error *error)
{
	CLEANUP(buf) struct buf content = {0};
	CLEANUP(tree) json_t *root = NULL;
	bool from_stdin = str_equal(path, "-");

	if (from_stdin ? !read_stdin(&content, error)
		       : !durable_read(path, INPUT_MAX_SIZE, &content, error))
		return false;
	if (!tree_parse(content.data, content.length, INPUT_MAX_SIZE, from_stdin ? "stdin" : path,
			&root, error))
		return false;
	if (!json_is_object(root))
		return error_set(error, ERROR_INVALID_INPUT, "'%s' is not a JSON object", path);
	*ret_object = TAKE(root);
	return true;
}
