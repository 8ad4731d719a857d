/*
 * change: how a command changes something, or says what it would change.
 */
#include "cli/api.h"
#include "cli/output.h"
#include "cli/view.h"

#define VALUE_MIN 16 /* characters of a value in "name: old → new", however narrow the terminal */

static bool given(const struct cli *cli, unsigned flag, const char *name)
{
	return cli->command->flags & flag && options_given(cli->options, name);
}

bool cli_is_dry(const struct cli *cli)
{
	return given(cli, COMMAND_CHANGES, "dry-run");
}

void cli_would_change(struct cli *cli)
{
	if (given(cli, COMMAND_CHANGES, "exit-code"))
		cli->exit_status = CLI_EXIT_CHANGES;
}

/* Characters that each of two values may have behind a name; a pipe is given all of them. */
static size_t room_beside(const char *field)
{
	size_t width = output_width(), taken = table_text_width(field) + strlen("  :  ->  ");

	if (width == 0)
		return SIZE_MAX;
	return width > taken + 2 * VALUE_MIN ? (width - taken) / 2 : VALUE_MIN;
}

static const char *value_text(struct cli *cli, const json_t *value, size_t room)
{
	CLEANUP(free) char *text = NULL;
	CLEANUP(buf) struct buf cut = {0};

	if (!value || json_is_null(value))
		return "none";
	text = json_is_string(value) ? mem_strdup(json_string_value(value))
				     : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	table_sanitize(text);
	table_add_cut(&cut, text, room);
	return arena_strdup(&cli->arena, buf_text(&cut));
}

static void add_change(json_t *changes, const char *field, const json_t *from, const json_t *to)
{
	json_t *change = json_object();

	tree_set(change, "field", tree_string(field));
	tree_set(change, "from", from ? json_deep_copy(from) : json_null());
	tree_set(change, "to", to ? json_deep_copy(to) : json_null());
	tree_append(changes, change);
}

/* Labels are merged into what is there; any other object is replaced whole. */
static void add_gone(json_t *changes, const char *field, const json_t *from, const json_t *to)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)from, key, value)
	{
		CLEANUP(buf) struct buf name = {0};
		if (json_object_get(to, key) || str_equal(field, "labels"))
			continue;
		buf_printf(&name, "%s.%s", field, key);
		add_change(changes, buf_text(&name), value, NULL);
	}
}

/* What of `body` isn't so already. */
static void differences(json_t *changes, const char *prefix, const json_t *object,
			const json_t *body)
{
	const char *key;
	json_t *to;

	json_object_foreach((json_t *)body, key, to)
	{
		CLEANUP(buf) struct buf field = {0};
		const json_t *from = json_object_get(object, key);
		bool gone = json_is_null(to) && (!from || json_is_null(from));

		if (str_equal(key, "ifVersion") || gone || (from && json_equal(from, to)))
			continue;
		buf_printf(&field, "%s%s%s", prefix, prefix[0] ? "." : "", key);
		if (json_is_object(from) && json_is_object(to)) {
			differences(changes, buf_text(&field), from, to);
			add_gone(changes, buf_text(&field), from, to);
		} else {
			add_change(changes, buf_text(&field), from, to);
		}
	}
}

static void print_changes(struct cli *cli, const json_t *changes)
{
	size_t index;
	json_t *change;

	json_array_foreach(changes, index, change)
	{
		const char *field = view_text(change, "field");
		size_t room = room_beside(field);

		output_line("  %s: %s → %s", field,
			    value_text(cli, json_object_get(change, "from"), room),
			    value_text(cli, json_object_get(change, "to"), room));
	}
	if (json_array_size(changes) == 0)
		puts("  nothing would change");
}

bool cli_try(struct cli *cli, const char *method, const char *path, const json_t *body,
	     struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	bool is_there = strchr(path + strlen("/v1/"), '/') != NULL;

	return !is_there ||
	       api_call(cli->api, method, arena_printf(&cli->arena, "%s?dryRun=true", path), body,
			&answer, error);
}

/* A PATCH is compared with what is there; other calls change something whenever they succeed. */
static bool dry_run(struct cli *cli, const char *method, const char *path, const json_t *body,
		    struct error *error)
{
	CLEANUP(tree) json_t *answer = json_object(), *object = NULL;
	bool patch = str_equal(method, "PATCH");
	json_t *changes = json_array();

	tree_set(answer, "method", tree_string(method));
	tree_set(answer, "path", tree_string(path));
	if (body)
		tree_set(answer, "body", json_deep_copy(body));
	tree_set(answer, "changes", changes);
	if ((patch && !api_call(cli->api, "GET", path, NULL, &object, error)) ||
	    !cli_try(cli, method, path, body, error))
		return false;
	if (patch)
		differences(changes, "", object, body);
	if (!patch || json_array_size(changes) > 0)
		cli_would_change(cli);
	if (!patch)
		json_object_del(answer, "changes");
	if (output_raw(cli, answer))
		return true;
	CLEANUP(free) char *text = body && !patch ? json_dumps(body, JSON_INDENT(2)) : NULL;
	output_line("would send %s %s%s%s", method, path, text ? "\n" : "", text ? text : "");
	if (patch)
		print_changes(cli, changes);
	return true;
}

bool cli_change(struct cli *cli, const char *method, const char *path, json_t *body,
		json_t **ret_answer, struct error *error)
{
	if (given(cli, COMMAND_CREATES, "idempotency-key"))
		tree_set(body, "idempotencyKey",
			 tree_string(options_text(cli->options, "idempotency-key")));
	if (!cli_is_dry(cli))
		return api_call(cli->api, method, path, body, ret_answer, error);
	*ret_answer = NULL;
	return dry_run(cli, method, path, body, error);
}
