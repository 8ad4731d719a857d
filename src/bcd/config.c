#include "bcd/verbs.h"

#include "cli/context.h"
#include "cli/table.h"
#include "sys/durable.h"
#include "text/toml.h"

#include <stdio.h>

#define STATE_DEFAULT ".better-compute"
#define MAX_CONTEXT   ((size_t)64 << 10)

/* A machine's bcd may have NODE_NAME and [host] units = false, too; this, the kubelet gives to pods. */
static bool is_in_pod(void)
{
	const char *server = getenv("KUBERNETES_SERVICE_HOST");

	return server && *server;
}

static bool read_config(const char *path, struct config *ret_config, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;

	if (!durable_read(path, CONFIG_MAX_FILE, &text, error))
		return error_wrap(error, "read the configuration");
	if (!toml_parse(buf_text(&text), text.length, CONFIG_MAX_FILE, path, &tree, error))
		return false;
	if (!config_read(tree, getenv("NODE_NAME"), ret_config, error))
		return error_wrap(error, "%s", path);
	ret_config->in_pod = is_in_pod();
	return true;
}

static const char *state_folder(const struct options *options)
{
	const char *given = options_text(options, "state");
	const char *environment = getenv("BETTER_COMPUTE_STATE");

	if (given)
		return given;
	if (environment && *environment)
		return environment;
	/* Whoever starts us in a folder of somebody else's must not choose our configuration. */
	return durable_is_own_folder(STATE_DEFAULT) ? STATE_DEFAULT : NULL;
}

static bool read_by_state(const char *state, struct config *ret_config, struct error *error)
{
	CLEANUP(buf) struct buf path = {0}, text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	const char *config;

	buf_printf(&path, "%s/context.json", state);
	if (!durable_read(buf_text(&path), MAX_CONTEXT, &text, error)) {
		if (error->code == ERROR_NOT_FOUND)
			context_hint_state(state, error);
		return false;
	}
	return tree_parse(text.data, text.length, MAX_CONTEXT, buf_text(&path), &tree, error) &&
	       tree_get_string(tree, "bcdConfig", "", CONFIG_MAX_PATH, &config, error) &&
	       read_config(config, ret_config, error);
}

bool verb_config(const struct options *options, bool with_state, struct config *ret_config,
		 struct error *error)
{
	const char *given = options_text(options, "config");
	const char *state = with_state && !given ? state_folder(options) : NULL;

	if (state)
		return read_by_state(state, ret_config, error);
	if (read_config(given ? given : CONFIG_DEFAULT_PATH, ret_config, error))
		return true;
	if (error->code != ERROR_NOT_FOUND)
		return false;
	if (!with_state)
		return error_hint(error, "Name the configuration: bcd --config FILE ...; for a "
					 "first look without one: better-compute up");
	return error_hint(error, "Name a folder of better-compute up (--state DIR, or "
				 "BETTER_COMPUTE_STATE) or a configuration (--config FILE); "
				 "start one here: better-compute up");
}

bool verb_start_hint(const struct options *options, struct error *error)
{
	const char *given = options_text(options, "config");
	const char *state = given ? NULL : state_folder(options);

	if (state)
		return error_hint(error, "Is it running? Start it: better-compute up --state '%s'",
				  state);
	return error_hint(error, "Is it running? Start it: bcd --config '%s' node",
			  given ? given : CONFIG_DEFAULT_PATH);
}

int verb_fail(const struct error *error, int status)
{
	struct error said = *error;

	table_sanitize(said.what);
	table_sanitize(said.hint);
	fprintf(stderr, "error: %s\n", said.what);
	if (*said.hint)
		fprintf(stderr, "  %s\n", said.hint);
	return status;
}
