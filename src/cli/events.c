#include "cli/commands.h"
#include "cli/output.h"
#include "cli/view.h"

#define EVENTS_DEFAULT 50
#define EVENTS_MAX     1000

static const struct table_column COLUMNS[] = {{"SEQ", TABLE_RIGHT},
					      {"WHEN", 0},
					      {"TYPE", 0},
					      {"SUBJECT", TABLE_ID},
					      {"DATA", TABLE_FLEX}};

static bool run(struct cli *cli, struct error *error)
{
	int64_t limit = options_number(cli->options, "limit", EVENTS_DEFAULT);
	int64_t after = options_number(cli->options, "after", 0);
	CLEANUP(tree) json_t *answer = NULL;
	CLEANUP(table) struct table table;
	size_t index;
	json_t *item;

	table_init(&table, COLUMNS, ARRAY_SIZE(COLUMNS));
	if (!api_call(cli->api, "GET",
		      arena_printf(&cli->arena, "/v1/events?after=%lld&limit=%lld",
				   (long long)after, (long long)limit),
		      NULL, &answer, error))
		return false;
	if (output_raw(cli, answer))
		return true;
	json_array_foreach(json_object_get(answer, "items"), index, item)
	{
		CLEANUP(free) char *data = json_dumps(json_object_get(item, "data"), JSON_COMPACT);
		table_cellf(&table, "%lld", (long long)view_number(item, "seq"));
		table_cell(&table, view_relative(&cli->arena, item, "at", cli->now));
		table_cell(&table, view_text(item, "type"));
		table_cell(&table, view_text(item, "subject"));
		table_cell(&table, data);
	}
	if (table_row_count(&table) == 0)
		output_note("no events after %lld", (long long)after);
	else
		output_table(cli, &table);
	return true;
}

static const struct option OPTIONS[] = {
	{"after", 0, OPTION_NUMBER, "SEQ", "only events after this number", 0, INT64_MAX, NULL},
	{"limit", 0, OPTION_NUMBER, "N", "at most this many (default 50)", 1, EVENTS_MAX, NULL},
	{0},
};

const struct command EVENT_COMMANDS[] = {
	{
		.noun = "events",
		.summary = "show what happened to nodes and reservations",
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.options = OPTIONS,
		.example = "better-compute events --after 100\n",
		.run = run,
	},
	{0},
};
