#include "cli/commands.h"
#include "cli/output.h"
#include "cli/view.h"
#include "sys/clock.h"

#include <poll.h>

#define EVENTS_DEFAULT 50
#define EVENTS_MAX     1000
#define FOLLOW_MS      500 /* from look to look */
#define FOLLOW_MAX_MS  5000

static const struct table_column COLUMNS[] = {{"SEQ", TABLE_RIGHT},
					      {"WHEN", 0},
					      {"TYPE", 0},
					      {"SUBJECT", TABLE_ID},
					      {"DATA", TABLE_FLEX}};

static bool fetch(struct cli *cli, int64_t after, int64_t limit, json_t **ret_answer,
		  struct error *error)
{
	char path[80];

	snprintf(path, sizeof path, "/v1/events?after=%lld&limit=%lld", (long long)after,
		 (long long)limit);
	return api_call(cli->api, "GET", path, NULL, ret_answer, error);
}

static void print_table(struct cli *cli, const json_t *items)
{
	CLEANUP(table) struct table table;
	size_t index;
	json_t *item;

	table_init(&table, COLUMNS, ARRAY_SIZE(COLUMNS));
	json_array_foreach(items, index, item)
	{
		CLEANUP(free) char *data = json_dumps(json_object_get(item, "data"), JSON_COMPACT);
		table_cellf(&table, "%lld", (long long)view_number(item, "seq"));
		table_cell(&table, view_relative(&cli->arena, item, "at", cli->now));
		table_cell(&table, view_text(item, "type"));
		table_cell(&table, view_text(item, "subject"));
		table_cell(&table, data);
	}
	output_table(cli, &table);
}

/* --- following: each event one line, as it comes --- */

static void print_line(struct cli *cli, const json_t *event)
{
	CLEANUP(free)
	char *text = json_dumps(cli->output == CLI_JSON ? event : json_object_get(event, "data"),
				JSON_COMPACT);
	CLEANUP(arena) struct arena arena = {0}; /* there is no end to the lines */

	if (cli->output == CLI_YAML)
		puts("---");
	if (cli->output == CLI_JSON) {
		puts(text);
	} else if (!output_raw(cli, event)) {
		const char *at = view_exact(&arena, event, "at"), *type = view_text(event, "type"),
			   *subject = view_text(event, "subject");
		table_sanitize(text);
		printf("%lld  %s  %s  %s  %s\n", (long long)view_number(event, "seq"),
		       at ? at : "-", type ? type : "-", subject ? subject : "-", text);
	}
}

/* A control plane that restarts is waited for; said once each time it goes away. */
static bool follow(struct cli *cli, int64_t after, struct error *error)
{
	int64_t pause_ms = FOLLOW_MS;
	bool away = false;

	for (;;) {
		CLEANUP(tree) json_t *answer = NULL;
		size_t index;
		json_t *event;

		if (fetch(cli, after, EVENTS_MAX, &answer, error)) {
			pause_ms = FOLLOW_MS;
			away = false;
		} else if (error->code != ERROR_UNAVAILABLE && error->code != ERROR_RATE_LIMITED) {
			return false;
		} else {
			if (!away)
				output_note("%s; trying again", error->what);
			away = true;
			pause_ms = pause_ms * 2 < FOLLOW_MAX_MS ? pause_ms * 2 : FOLLOW_MAX_MS;
		}
		const json_t *items = json_object_get(answer, "items");
		json_array_foreach(items, index, event)
		{
			after = view_number(event, "seq");
			print_line(cli, event);
		}
		if (fflush(stdout) != 0)
			return error_os(error, "write to standard output");
		if (json_array_size(items) < EVENTS_MAX)
			(void)poll(NULL, 0, (int)pause_ms);
	}
}

static bool run(struct cli *cli, struct error *error)
{
	int64_t limit = options_number(cli->options, "limit", EVENTS_DEFAULT);
	int64_t after = options_number(cli->options, "after", 0);
	CLEANUP(tree) json_t *answer = NULL;

	if (options_given(cli->options, "follow"))
		return follow(cli, after, error);
	if (!fetch(cli, after, limit, &answer, error))
		return false;
	if (output_raw(cli, answer))
		return true;
	if (json_array_size(json_object_get(answer, "items")) == 0)
		output_note("no events after %lld", (long long)after);
	else
		print_table(cli, json_object_get(answer, "items"));
	return true;
}

static const struct option OPTIONS[] = {
	{"after", 0, OPTION_NUMBER, "SEQ", "only events after this number", 0, INT64_MAX, NULL},
	{"limit", 0, OPTION_NUMBER, "N", "at most this many (default 50)", 1, EVENTS_MAX, NULL},
	{"follow", 'f', OPTION_FLAG, NULL, "go on with what happens, until Ctrl-C", 0, 0, NULL},
	{0},
};

const struct command EVENT_COMMANDS[] = {
	{
		.noun = "events",
		.summary = "show what happened to nodes and reservations",
		.flags = COMMAND_DAILY | COMMAND_API | COMMAND_OUTPUT,
		.options = OPTIONS,
		.more = "With --follow each event is a line as it comes; with -o json one JSON "
			"object a line.",
		.example = "better-compute events --after 100\n",
		.run = run,
	},
	{0},
};
