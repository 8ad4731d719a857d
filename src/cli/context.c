#include "cli/context.h"
#include "base/buf.h"
#include "http/client.h"
#include "sys/durable.h"
#include "text/toml.h"

#define CONTEXT_MAX_SIZE ((size_t)64 << 10)
#define CONTEXT_CONFIG   "better-compute/config.toml"
#define KEY_MAX_SIZE     ((size_t)4 << 10)

/* One row a field: its name in config.toml, its flag, its variable, its name in context.json. */
static const struct {
	const char *name, *flag, *variable, *state_key;
} FIELDS[CONTEXT_FIELD_COUNT] = {
	[CONTEXT_STATE] = {"state", "--state", "BETTER_COMPUTE_STATE", NULL},
	[CONTEXT_API] = {"api", "--api", "BETTER_COMPUTE_API", "api"},
	[CONTEXT_KEY_FILE] = {"key_file", "--key-file", "BETTER_COMPUTE_KEY_FILE", NULL},
	[CONTEXT_CA_FILE] = {"ca_file", "--ca-file", "BETTER_COMPUTE_CA_FILE", NULL},
	[CONTEXT_TENANT] = {"tenant", NULL, "BETTER_COMPUTE_TENANT", "tenant"},
	[CONTEXT_POOL] = {"pool", NULL, "BETTER_COMPUTE_POOL", "pool"},
	[CONTEXT_SERVING_CA_PIN] = {"serving_ca_pin", NULL, "BCD_SERVING_CA_PIN", NULL},
	[CONTEXT_JOIN_SIGNING_PIN] = {"join_signing_pin", NULL, "BCD_JOIN_SIGNING_PIN", NULL},
	[CONTEXT_JOIN_ENCRYPTION_PIN] = {"join_encryption_pin", NULL, "BCD_JOIN_ENCRYPTION_PIN",
					 NULL},
};

const char *context_field_name(enum context_field field)
{
	return FIELDS[field].name;
}

static void set(struct context *context, enum context_field field, const char *text,
		const char *origin)
{
	if (text && text[0] && !context->values[field].text)
		context->values[field] = (struct context_value){text, origin};
}

static bool is_set(const struct context *context, enum context_field field)
{
	return context->values[field].text != NULL;
}

bool context_is_from_environment(const struct context *context, enum context_field field)
{
	const char *origin = context->values[field].origin;

	return origin && str_equal(origin, FIELDS[field].variable);
}

static const char *copy(struct arena *arena, const char *text)
{
	return text ? arena_strdup(arena, text) : NULL;
}

static void take_flags(const struct options *options, struct context *context)
{
	for (int i = 0; i < CONTEXT_FIELD_COUNT; i++) {
		if (FIELDS[i].flag)
			set(context, i, options_text(options, FIELDS[i].flag + strlen("--")),
			    FIELDS[i].flag);
	}
}

/* Does ./.better-compute exist and belong to the caller, so that nobody else chose the key? */
static bool own_state_here(void)
{
	return durable_is_own_folder(CONTEXT_STATE_DEFAULT) &&
	       !durable_absent(CONTEXT_STATE_DEFAULT "/" CONTEXT_FILE);
}

bool context_hint_state(const char *folder, struct error *error)
{
	CLEANUP(buf) struct buf inside = {0};

	buf_printf(&inside, "%s%s" CONTEXT_STATE_DEFAULT, folder, str_ends(folder, "/") ? "" : "/");
	if (durable_is_own_folder(buf_text(&inside)))
		return error_hint(error, "It is one level further down: --state '%s'",
				  buf_text(&inside));
	return error_hint(error, "Start one there: better-compute up --state '%s'", folder);
}

/* What DIR/context.json says. */
static bool take_state(struct arena *arena, struct context *context, struct error *error)
{
	const char *folder = context->values[CONTEXT_STATE].text;
	const char *path = arena_printf(arena, "%s/%s", folder, CONTEXT_FILE);
	CLEANUP(buf) struct buf content = {0};
	CLEANUP(tree) json_t *root = NULL;
	const char *api;
	int64_t version;

	if (!durable_read_own(path, CONTEXT_MAX_SIZE, &content, error)) {
		if (error->code == ERROR_NOT_FOUND)
			context_hint_state(folder, error);
		return false;
	}
	bool parsed =
		tree_parse(content.data, content.length, CONTEXT_MAX_SIZE, path, &root, error);
	bool ok = parsed && tree_get_int(root, "version", "", 1, 1, &version, error) &&
		  tree_get_string(root, "api", "", HTTP_URL_SIZE - 1, &api, error);
	buf_wipe(&content);
	if (!ok) {
		error->code = ERROR_INVALID_CONFIG;
		return parsed ? error_wrap(error, "read '%s'", path)
			      : false; /* it names the file */
	}
	/* Its tenant and pool are what its own key books for and in. */
	bool own_key = !is_set(context, CONTEXT_KEY_FILE);
	for (int i = 0; i < CONTEXT_FIELD_COUNT; i++) {
		const char *key = FIELDS[i].state_key;
		if (key && (own_key || i == CONTEXT_API))
			set(context, i, copy(arena, json_string_value(json_object_get(root, key))),
			    path);
	}
	if (own_key)
		context->key = copy(arena, json_string_value(json_object_get(root, "key")));
	set(context, CONTEXT_KEY_FILE, path, path);
	return true;
}

/* NULL: nobody's. */
static const char *config_path(struct arena *arena)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (!(base && base[0]) && !(home && home[0]))
		return NULL;
	return base && base[0] ? arena_printf(arena, "%s/" CONTEXT_CONFIG, base)
			       : arena_printf(arena, "%s/.config/" CONTEXT_CONFIG, home);
}

/* ~/.config/better-compute/config.toml; absent is fine. */
static bool take_config(struct arena *arena, struct context *context, struct error *error)
{
	const char *path = config_path(arena);
	CLEANUP(buf) struct buf content = {0};
	CLEANUP(tree) json_t *root = NULL;

	if (!path)
		return true;
	if (!durable_read(path, CONTEXT_MAX_SIZE, &content, error))
		return error->code == ERROR_NOT_FOUND;
	if (!toml_parse(buf_text(&content), content.length, CONTEXT_MAX_SIZE, path, &root, error)) {
		error->code = ERROR_INVALID_CONFIG; /* it names the file */
		return false;
	}
	if (!tree_check_keys(root, "",
			     TREE_KEYS("state", "api", "key_file", "ca_file", "tenant", "pool",
				       "serving_ca_pin", "join_signing_pin", "join_encryption_pin"),
			     error)) {
		error->code = ERROR_INVALID_CONFIG;
		return error_wrap(error, "read '%s'", path);
	}
	for (int i = 0; i < CONTEXT_FIELD_COUNT; i++) {
		const json_t *value = json_object_get(root, FIELDS[i].name);
		if (value && !json_is_string(value))
			return error_set(error, ERROR_INVALID_CONFIG, "'%s': %s is not a string",
					 path, FIELDS[i].name);
		set(context, i, copy(arena, json_string_value(value)), path);
	}
	return true;
}

static void take_variable(struct context *context, enum context_field field)
{
	set(context, field, getenv(FIELDS[field].variable), FIELDS[field].variable);
}

/* Of one control plane a person may name the folder or the address; both are a contradiction, and
 * which was meant isn't guessed: an option says it. */
static bool check_named_once(const struct context *context, struct error *error)
{
	const char *state = getenv(FIELDS[CONTEXT_STATE].variable);
	const char *api = getenv(FIELDS[CONTEXT_API].variable);

	if (is_set(context, CONTEXT_STATE) || is_set(context, CONTEXT_API) ||
	    !(state && state[0] && api && api[0]))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "%s and %s exclude each other",
		  FIELDS[CONTEXT_STATE].variable, FIELDS[CONTEXT_API].variable);
	return error_hint(error, "Unset one of them, or say --state DIR or --api URL.");
}

/* A folder named by an option has its own: a key that was set for another control plane would go to whatever address
 * stands there. */
static void note_ignored(struct arena *arena, struct context *context)
{
	CLEANUP(buf) struct buf names = {0};

	for (int i = CONTEXT_API; i <= CONTEXT_CA_FILE; i++) {
		const char *value = getenv(FIELDS[i].variable);
		if (value && value[0])
			buf_printf(&names, "%s%s", names.length ? ", " : "", FIELDS[i].variable);
	}
	if (names.length)
		context->variables_ignored = arena_strdup(arena, buf_text(&names));
}

static bool take_environment(struct arena *arena, struct context *context, struct error *error)
{
	bool folder_by_option = is_set(context, CONTEXT_STATE);

	if (!check_named_once(context, error))
		return false;
	/* A state folder gives address and key together: never the key of one to the other. */
	if (!is_set(context, CONTEXT_STATE) && !is_set(context, CONTEXT_API))
		take_variable(context, CONTEXT_STATE);
	if (!is_set(context, CONTEXT_STATE))
		take_variable(context, CONTEXT_API);
	if (folder_by_option) {
		note_ignored(arena, context);
	} else {
		take_variable(context, CONTEXT_KEY_FILE);
		take_variable(context, CONTEXT_CA_FILE);
	}
	for (int i = CONTEXT_TENANT; i < CONTEXT_FIELD_COUNT; i++)
		take_variable(context, (enum context_field)i);
	return true;
}

/* `reservations --state active` names no folder: the filter was meant. */
static bool filter_meant(const struct options *options, const char *folder, struct error *error)
{
	if (error->code != ERROR_NOT_FOUND)
		return false;
	for (size_t i = 0; i < options->count; i++) {
		const struct option *row = options->values[i].option;
		if (!str_equal(row->name, "state-is"))
			continue;
		for (size_t k = 0; row->choices && row->choices[k]; k++) {
			if (str_equal(row->choices[k], folder))
				return error_hint(error,
						  "--state names a folder; did you mean "
						  "--state-is %s?",
						  folder);
		}
	}
	return false;
}

bool context_inspect(const struct options *options, struct arena *arena,
		     struct context *ret_context, struct error *error)
{
	struct context context = {0};

	if (!options_exclude(options, "state", "api", error))
		return false;
	take_flags(options, &context);
	if (!take_environment(arena, &context, error))
		return false;
	if (!is_set(&context, CONTEXT_STATE) && !is_set(&context, CONTEXT_API) && own_state_here())
		set(&context, CONTEXT_STATE, CONTEXT_STATE_DEFAULT, "this folder");
	if (is_set(&context, CONTEXT_STATE) || is_set(&context, CONTEXT_API)) {
		const char *path = config_path(arena);
		context.config_ignored = path && !durable_absent(path) ? path : NULL;
	} else if (!take_config(arena, &context, error)) {
		return false;
	}
	if (is_set(&context, CONTEXT_STATE) && !take_state(arena, &context, error))
		return filter_meant(options, context.values[CONTEXT_STATE].text, error);
	*ret_context = context;
	return true;
}

/* The key is one line of visible ASCII: it goes into a header. */
static bool load_key(struct arena *arena, struct context *context, struct error *error)
{
	const char *path = context->values[CONTEXT_KEY_FILE].text;

	if (!context->key && path) {
		CLEANUP(buf) struct buf content = {0};
		if (!durable_read_own(path, KEY_MAX_SIZE, &content, error)) {
			/* Without a key nobody is let in: as when it can't be read. */
			if (error->code == ERROR_NOT_FOUND)
				error->code = ERROR_UNAUTHENTICATED;
			return error_wrap(error, "read the API key");
		}
		while (content.length && strchr("\r\n ", content.data[content.length - 1]))
			content.length--;
		context->key = arena_strndup(arena, (const char *)content.data, content.length);
		buf_wipe(&content);
	}
	for (const char *at = context->key; at && *at; at++) {
		if (*at <= ' ' || *at > '~')
			return error_set(error, ERROR_INVALID_CONFIG, "'%s' holds no key", path);
	}
	return true;
}

void context_not_reached(struct error *error)
{
	if (error->code == ERROR_FORBIDDEN)
		error->code = ERROR_UNAVAILABLE;
}

bool context_load(const struct options *options, struct arena *arena, struct context *ret_context,
		  struct error *error)
{
	struct context context;

	if (!context_inspect(options, arena, &context, error))
		return false;
	if (!is_set(&context, CONTEXT_API)) {
		error_set(error, ERROR_INVALID_CONFIG, "no control plane is named here");
		return error_hint(error,
				  "Start one with: better-compute up. Or name one by --state "
				  "DIR, or by BETTER_COMPUTE_API and BETTER_COMPUTE_KEY_FILE.");
	}
	if (!load_key(arena, &context, error))
		return false;
	*ret_context = context;
	return true;
}
