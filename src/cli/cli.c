#include "cli/cli.h"
#include "cli/api.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/view.h"
#include "sys/durable.h"

#define INPUT_MAX_SIZE ((size_t)1 << 20) /* as the API takes */
#define OUT_MODE       0644

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
	const char *text = option_or_null(cli, "pool"), *only;
	CLEANUP(tree) json_t *pools = NULL;

	if (!text)
		text = cli->context.values[CONTEXT_POOL].text;
	if (text)
		return noun_resolve(cli, NOUN_POOL, text, ret_id, error);
	return api_list(cli->api, noun_get(NOUN_POOL)->path, NULL, &pools, error) &&
	       only_pool(cli, pools, &only, error) &&
	       noun_resolve(cli, NOUN_POOL, only, ret_id, error);
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

bool cli_read(const char *path, struct buf *ret_content, struct error *error)
{
	return str_equal(path, "-") ? read_stdin(ret_content, error)
				    : durable_read(path, INPUT_MAX_SIZE, ret_content, error);
}

bool cli_read_json(const char *path, json_t **ret_object, struct error *error)
{
	CLEANUP(buf) struct buf content = {0};
	CLEANUP(tree) json_t *root = NULL;
	size_t skip = 0;

	if (!cli_read(path, &content, error))
		return false;
	if (content.length >= 3 && memcmp(content.data, "\xef\xbb\xbf", 3) == 0)
		skip = 3; /* a byte order mark, as some editors write */
	if (!tree_parse(content.data + skip, content.length - skip, INPUT_MAX_SIZE,
			str_equal(path, "-") ? "stdin" : path, &root, error))
		return false;
	if (!json_is_object(root))
		return error_set(error, ERROR_INVALID_INPUT, "'%s' is not a JSON object", path);
	*ret_object = TAKE(root);
	return true;
}

static bool exists(const char *path, struct error *error)
{
	error_set(error, ERROR_CONFLICT, "'%s' exists", path);
	return error_hint(error, "Name another file, or add --force to replace it.");
}

bool cli_check_out(struct cli *cli, struct error *error)
{
	const char *path = options_text(cli->options, "out");

	if (!path)
		return true;
	if (str_equal(path, "-")) {
		error_set(error, ERROR_INVALID_INPUT, "--out '-' would be a file of that name");
		return error_hint(error, "Name a file: --out FILE.");
	}
	if (!durable_check_writable(path, error))
		return error_hint(error, "Name another file: --out FILE. Nothing was changed.");
	return options_given(cli->options, "force") || durable_absent(path) || exists(path, error);
}

bool cli_write_out(struct cli *cli, const struct buf *text, struct error *error)
{
	const char *path = options_text(cli->options, "out");

	if (options_given(cli->options, "force"))
		return durable_replace(path, text->data, text->length, OUT_MODE, error);
	return durable_create(path, text->data, text->length, OUT_MODE, error) ||
	       (error->code == ERROR_CONFLICT && exists(path, error));
}

bool cli_place_secret(struct cli *cli, struct durable_place *ret_place, struct error *error)
{
	const char *path = options_text(cli->options, "out");

	if (durable_place_make(path, options_given(cli->options, "force"), ret_place, error))
		return true;
	if (error->code == ERROR_CONFLICT)
		return exists(path, error);
	return error_hint(error, "Name another file, where files can be yours alone: --out FILE. "
				 "Nothing was changed.");
}
