#include "cli/commands.h"
#include "cli/output.h"
#include "cli/period.h"
#include "cli/verb.h"
#include "cli/view.h"

#define LIMIT_DEFAULT 50

static const struct table_column COLUMNS[] = {
	{"WHEN", 0},          {"AT", TABLE_WIDE},   {"KEY", TABLE_FLEX},    {"TENANT", TABLE_ALIKE},
	{"ACTION", 0},        {"OBJECT", TABLE_ID}, {"BEFORE", TABLE_WIDE}, {"AFTER", TABLE_WIDE},
	{"REQUEST", TABLE_ID}};

/* A hash, or an object that stands for one. */
static const char *hash_text(struct cli *cli, const json_t *item, const char *key)
{
	const json_t *value = json_object_get(item, key);

	if (!value || json_is_null(value))
		return NULL;
	if (json_is_string(value))
		return json_string_value(value);
	CLEANUP(free) char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	return arena_strdup(&cli->arena, text);
}

static void print(struct cli *cli, const json_t *items)
{
	CLEANUP(table) struct table table;
	CLEANUP(noun_view) struct noun_view view = {.cli = cli};
	size_t index;
	json_t *item;

	table_init(&table, COLUMNS, ARRAY_SIZE(COLUMNS));
	json_array_foreach(items, index, item)
	{
		table_cell(&table, view_relative(&cli->arena, item, "at", cli->now));
		table_cell(&table, view_second(&cli->arena, item, "at"));
		table_cell(&table, noun_view_name(&view, NOUN_KEY, item, "keyId"));
		table_cell(&table, noun_view_name(&view, NOUN_TENANT, item, "tenantId"));
		table_cell(&table, view_text(item, "action"));
		table_cell(&table, view_text(item, "object"));
		table_cell(&table, hash_text(cli, item, "before"));
		table_cell(&table, hash_text(cli, item, "after"));
		table_cell(&table, view_text(item, "requestId"));
	}
	output_table(cli, &table);
}

static bool add_filters(struct cli *cli, struct buf *query, struct error *error)
{
	return period_query(cli, query, error) && verb_query(cli, query, error);
}

static bool run(struct cli *cli, struct error *error)
{
	size_t most = (size_t)options_number(cli->options, "limit", LIMIT_DEFAULT);
	CLEANUP(tree) json_t *items = NULL;
	CLEANUP(buf) struct buf query = {0};
	bool more;

	if (!add_filters(cli, &query, error) ||
	    !api_list_some(cli->api, "/v1/audit", query.length ? buf_text(&query) : NULL, most,
			   &items, &more, error))
		return false;
	if (output_raw_list(cli, items))
		return true;
	if (json_array_size(items) == 0)
		output_note("no change of this kind is on record");
	else
		print(cli, items);
	if (more)
		output_note("there are older ones; raise --limit");
	return true;
}

static const struct option OPTIONS[] = {
	{"object", 0, OPTION_TEXT, "ID", "only changes of this thing", 0, 0, NULL},
	{"action", 0, OPTION_TEXT, "ACTION", "only this kind of change", 0, 0, NULL},
	{"key", 0, OPTION_TEXT, "KEY", "only what this key did", 0, 0, NULL},
	{"tenant", 0, OPTION_TEXT, "TENANT", "only changes of what this tenant has", 0, 0, NULL},
	PERIOD_OPTIONS,
	{"limit", 0, OPTION_NUMBER, "N", "at most this many, newest first (default 50)", 1,
	 INT64_MAX, NULL},
	{0},
};

static const struct verb_field FIELDS[] = {
	FIELD_TEXT("object", "object"),
	FIELD_TEXT("action", "action"),
	FIELD_ID("tenantId", "tenant", NOUN_TENANT),
	FIELD_ID("keyId", "key", NOUN_KEY),
	{0},
};

const struct command AUDIT_COMMANDS[] = {
	{
		.noun = "audit",
		.summary = "show who changed what, newest first",
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.options = OPTIONS,
		.more = "BEFORE and AFTER (-o wide) are hashes of the thing as it was and is. "
			"REQUEST "
			"is what -v shows with an error and what the control plane logs.",
		.example = "better-compute audit --from 1d --limit 20\n",
		.fields = FIELDS,
		.check = period_check,
		.run = run,
	},
	{0},
};
