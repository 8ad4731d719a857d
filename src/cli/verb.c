#include "cli/verb.h"
#include "cli/output.h"
#include "cli/view.h"

const struct option VERB_OWNER_OPTIONS[] = {VERB_OWNER, {0}};
const struct option VERB_OWNERS_OPTIONS[] = {VERB_OWNERS, {0}};

static const struct noun *noun_of(const struct cli *cli)
{
	return noun_get(cli->command->names);
}

static const char *text_of(struct cli *cli, const struct verb_field *field)
{
	const char *given = options_text(cli->options, field->option);

	return given ? given : field->text;
}

static bool id_of(struct cli *cli, const struct verb_field *field, const char **ret_id,
		  struct error *error)
{
	const char *text = options_text(cli->options, field->option);

	*ret_id = NULL;
	return !text || noun_resolve(cli, field->names, text, ret_id, error);
}

/* *ret_text NULL: it isn't given. */
static bool value_of(struct cli *cli, const struct verb_field *field, const char **ret_text,
		     struct error *error)
{
	switch (field->value) {
	case VERB_TEXT:
	case VERB_NUMBER:
		*ret_text = text_of(cli, field);
		return true;
	case VERB_FLAG:
		*ret_text = options_given(cli->options, field->option) ? field->text : NULL;
		return true;
	case VERB_ID:
		return id_of(cli, field, ret_text, error);
	case VERB_OPERAND:
		*ret_text = cli->options->operands[0];
		return true;
	case VERB_TENANT:
		return cli_tenant(cli, ret_text, error);
	case VERB_POOL:
		return cli_pool(cli, ret_text, error);
	}
	return false;
}

bool verb_query(struct cli *cli, struct buf *query, struct error *error)
{
	for (const struct verb_field *field = cli->command->fields; field && field->key; field++) {
		const char *text;

		if (!value_of(cli, field, &text, error))
			return false;
		if (text)
			api_query_add(query, field->key, text);
	}
	return true;
}

bool verb_list(struct cli *cli, struct error *error)
{
	CLEANUP(buf) struct buf query = {0};

	return verb_query(cli, &query, error) &&
	       noun_list(cli, cli->command->names, query.length ? buf_text(&query) : NULL, NULL,
			 NULL, error);
}

bool verb_show(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *item = NULL;

	if (!noun_fetch(cli, cli->command->names, cli->options->operands[0], &item, error))
		return false;
	noun_print(cli, item);
	return true;
}

bool verb_id(struct cli *cli, const char **ret_id, struct error *error)
{
	return noun_resolve(cli, cli->command->names, cli->options->operands[0], ret_id, error);
}

/* `action` NULL: the thing itself. */
static const char *path_of(struct cli *cli, const char *id, const char *action)
{
	return arena_printf(&cli->arena, "%s/%s%s%s", noun_of(cli)->path, id, action ? "/" : "",
			    action ? action : "");
}

/* Sends a change of one thing; a thing that isn't there hints at the listing. */
static bool send(struct cli *cli, const char *method, const char *path, json_t *body,
		 json_t **ret_answer, struct error *error)
{
	return cli_change(cli, method, path, body, ret_answer, error) ||
	       noun_missing(cli->command->names, error);
}

static bool send_and_print(struct cli *cli, const char *method, const char *path, json_t *body,
			   struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;

	if (!send(cli, method, path, body, &answer, error))
		return false;
	if (answer)
		noun_print(cli, answer);
	return true;
}

bool verb_body(struct cli *cli, json_t *body, struct error *error)
{
	for (const struct verb_field *field = cli->command->fields; field->key; field++) {
		const char *text;

		if (!value_of(cli, field, &text, error))
			return false;
		if (text && field->value == VERB_NUMBER)
			tree_set(body, field->key,
				 json_integer(options_number(cli->options, field->option, 0)));
		else if (text)
			tree_set(body, field->key, tree_string(text));
	}
	return true;
}

bool verb_create(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object();

	return verb_body(cli, body, error) && verb_post(cli, body, error);
}

/* "Say --name NAME or --role ROLE.": what the command takes. */
static const char *what_to_change(struct cli *cli)
{
	CLEANUP(buf) struct buf text = {0};

	for (const struct option *row = cli->command->options; row->name; row++) {
		if (str_equal(row->name, "tenant"))
			continue; /* it only says which is meant */
		buf_printf(&text, "%s--%s %s", text.length ? " or " : "Say ", row->name,
			   row->value ? row->value : "");
	}
	buf_add_char(&text, '.');
	return arena_strdup(&cli->arena, buf_text(&text));
}

bool verb_update(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object();

	return verb_body(cli, body, error) && verb_patch(cli, body, what_to_change(cli), error);
}

/* What has the body's name: what isn't over, if anything. A new reference; NULL: nothing that the key may see. */
static json_t *who_has_name(struct cli *cli, const json_t *body)
{
	const struct noun *noun = noun_of(cli);
	const char *name = view_text(body, "name"), *tenant = view_text(body, "tenantId");
	CLEANUP(tree) json_t *items = NULL;
	json_t *item, *found = NULL;
	struct error ignored; /* the refusal itself is told */
	size_t index;

	if (!name || !noun->name_key || !api_list(cli->api, noun->path, NULL, &items, &ignored))
		return NULL;
	json_array_foreach(items, index, item)
	{
		const char *here = view_text(item, noun->name_key);
		const char *owner = view_text(item, "tenantId");
		if (here && str_equal(here, name) &&
		    (!tenant || !owner || str_equal(tenant, owner)) && (!found || view_over(found)))
			found = item;
	}
	return json_incref(found);
}

/* Whoever makes a key that is there may have lost its secret. Its name may be others' as well. */
static void hint_rotate(struct cli *cli, const json_t *key, struct error *error)
{
	const char *hint = arena_strdup(&cli->arena, error->hint);

	error_hint(error, "%s%sFor a new secret of that key: better-compute keys rotate %s", hint,
		   hint[0] ? " " : "", view_text(key, "id"));
}

/* Also where lists that leave out what is over don't show by what. */
bool verb_taken(struct cli *cli, const json_t *body, struct error *error)
{
	CLEANUP(tree) json_t *item = NULL;

	if (error->code != ERROR_CONFLICT || !str_equal(error->field, "name") ||
	    !(item = who_has_name(cli, body)))
		return false;
	if (view_over(item))
		return error->hint[0]
			       ? false
			       : error_hint(error,
					    "That %s is archived, and keeps its name for good: "
					    "give another.",
					    noun_of(cli)->word);
	if (cli->command->names == NOUN_KEY && view_text(item, "id"))
		hint_rotate(cli, item, error);
	return false;
}

bool verb_post(struct cli *cli, json_t *body, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;

	if (!cli_change(cli, "POST", noun_of(cli)->path, body, &answer, error))
		return verb_taken(cli, body, error);
	if (answer)
		noun_print(cli, answer);
	return true;
}

bool verb_patch(struct cli *cli, json_t *body, const char *hint, struct error *error)
{
	const char *id;

	if (json_object_size(body) == 0) {
		error_set(error, ERROR_INVALID_INPUT, "nothing to change");
		return error_hint(error, "%s", hint);
	}
	return verb_id(cli, &id, error) && verb_patch_id(cli, id, body, error);
}

bool verb_patch_id(struct cli *cli, const char *id, json_t *body, struct error *error)
{
	return send_and_print(cli, "PATCH", path_of(cli, id, NULL), body, error);
}

bool verb_send(struct cli *cli, const char *id, const char *action, json_t *body,
	       json_t **ret_answer, struct error *error)
{
	return send(cli, "POST", path_of(cli, id, action), body, ret_answer, error);
}

bool verb_act(struct cli *cli, const char *id, const char *action, json_t *body,
	      struct error *error)
{
	return send_and_print(cli, "POST", path_of(cli, id, action), body, error);
}

bool verb_delete(struct cli *cli, const char *id, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;

	if (!send(cli, "DELETE", path_of(cli, id, NULL), NULL, &answer, error))
		return false;
	if (answer && !output_raw(cli, answer))
		output_line("%s  deleted", id);
	return true;
}

bool verb_confirm(struct cli *cli, const char *id, const char *action, const json_t *body,
		  const char *question, struct error *error)
{
	if (cli_is_dry(cli) || options_given(cli->options, "yes"))
		return true;
	if (!cli_try(cli, action ? "POST" : "DELETE", path_of(cli, id, action), body, error))
		return noun_missing(cli->command->names, error);
	return output_confirm(question, error);
}

const char *verb_count(struct cli *cli, enum noun_kind kind, const char *key, const char *value)
{
	const struct noun *noun = noun_get(kind);
	CLEANUP(tree) json_t *items = NULL;
	struct error ignored; /* a number less in a question */
	size_t index, count = 0;
	json_t *item;

	if (!api_list(cli->api, noun->path, NULL, &items, &ignored))
		return NULL;
	json_array_foreach(items, index, item)
	{
		const char *here = view_text(item, key);
		count += here && str_equal(here, value) && !view_over(item);
	}
	return count ? arena_printf(&cli->arena, "%zu %s", count,
				    count == 1 ? noun->word : noun->plural)
		     : NULL;
}
