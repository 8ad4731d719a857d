#include "cli/commands.h"
#include "cli/output.h"
#include "cli/view.h"

#include <poll.h>

#define EVENTS_DEFAULT 50
#define EVENTS_MAX     1000
#define FOLLOW_BEFORE  10  /* events shown before the new ones */
#define AGAIN_MS       500 /* until a stream that ended is asked for again */
#define AGAIN_MAX_MS   5000

static const struct table_column COLUMNS[] = {{"SEQ", TABLE_RIGHT},  {"WHEN", 0},
					      {"AT", TABLE_WIDE},    {"TYPE", 0},
					      {"SUBJECT", TABLE_ID}, {"WHAT", TABLE_FLEX}};

static bool fetch(struct cli *cli, int64_t after, int64_t limit, json_t **ret_answer,
		  struct error *error)
{
	char path[80];

	snprintf(path, sizeof path, "/v1/events?after=%lld&limit=%lld", (long long)after,
		 (long long)limit);
	return api_call(cli->api, "GET", path, NULL, ret_answer, error);
}

/* --- the latest --- */

/* The number of the newest one there is. */
static bool find_last(struct cli *cli, int64_t *ret_last, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;

	if (!fetch(cli, 0, 1, &answer, error))
		return false;
	*ret_last = view_number(answer, "last");
	return true;
}

/* A number that was never given is of a log from before a restore, say: all of this one is new to whoever
 * has it, and the control plane answers with it. */
static void note_from_the_beginning(int64_t after)
{
	output_note("no event is after %lld: these are from the beginning", (long long)after);
}

/* All after `after`, of which the last `most` are kept. */
static bool read_tail(struct cli *cli, int64_t after, size_t most, json_t **ret_items,
		      struct error *error)
{
	CLEANUP(tree) json_t *items = json_array();

	for (;;) {
		CLEANUP(tree) json_t *answer = NULL;
		if (!fetch(cli, after, EVENTS_MAX, &answer, error))
			return false;
		json_t *page = json_object_get(answer, "items");
		size_t count = json_array_size(page);
		json_array_extend(items, page);
		while (json_array_size(items) > most)
			json_array_remove(items, 0);
		if (count < EVENTS_MAX)
			break;
		after = view_number(json_array_get(page, count - 1), "seq");
	}
	*ret_items = TAKE(items);
	return true;
}

/* Numbers have gaps where events are another tenant's: the look back is doubled until it's enough. */
static bool read_latest(struct cli *cli, int64_t most, int64_t last, json_t **ret_items,
			struct error *error)
{
	for (int64_t back = most;; back *= 2) {
		CLEANUP(tree) json_t *items = NULL;
		int64_t after = last > back ? last - back : 0;
		if (!read_tail(cli, after, (size_t)most, &items, error))
			return false;
		if (after > 0 && json_array_size(items) < (size_t)most)
			continue;
		*ret_items = TAKE(items);
		return true;
	}
}

/* --- as a table --- */

static void print_table(struct cli *cli, const json_t *items)
{
	CLEANUP(table) struct table table;
	size_t index;
	json_t *item;

	table_init(&table, COLUMNS, ARRAY_SIZE(COLUMNS));
	json_array_foreach(items, index, item)
	{
		table_cellf(&table, "%lld", (long long)view_number(item, "seq"));
		table_cell(&table, view_relative(&cli->arena, item, "at", cli->now));
		table_cell(&table, view_second(&cli->arena, item, "at"));
		table_cell(&table, view_text(item, "type"));
		table_cell(&table, view_text(item, "subject"));
		table_cell(&table, view_event(&cli->arena, item));
	}
	output_table(cli, &table);
}

/* --- following: each event one line, as it comes --- */

struct follower {
	struct cli *cli;
	int64_t after; /* the last one that was shown */
	int64_t pause_ms;
	bool away; /* and that was said */
};

static void print_line(struct cli *cli, const json_t *event)
{
	CLEANUP(arena) struct arena arena = {0}; /* there is no end to the lines */
	const char *at = view_second(&arena, event, "at"), *type = view_text(event, "type");
	const char *subject = view_text(event, "subject"), *what = view_event(&arena, event);

	if (cli->output == CLI_JSON) {
		CLEANUP(free) char *text = json_dumps(event, JSON_COMPACT);
		puts(text);
		return;
	}
	if (cli->output == CLI_YAML)
		puts("---");
	if (!output_raw(cli, event))
		output_line("%lld  %s  %s  %s  %s", (long long)view_number(event, "seq"),
			    at ? at : "-", type ? type : "-", subject ? subject : "-",
			    what ? what : "-");
}

static bool show(void *arg, const json_t *event, struct error *error)
{
	struct follower *follower = arg;

	if (view_number(event, "seq") <= follower->after)
		note_from_the_beginning(follower->after);
	follower->after = view_number(event, "seq");
	follower->pause_ms = AGAIN_MS;
	follower->away = false;
	print_line(follower->cli, event);
	return fflush(stdout) == 0 || error_os(error, "write to standard output");
}

/* A control plane that restarts is waited for; said once each time it goes away. */
static bool follow(struct follower *follower, struct error *error)
{
	for (;;) {
		if (!api_follow(follower->cli->api, follower->after, show, follower, error)) {
			if (error->code != ERROR_UNAVAILABLE && error->code != ERROR_RATE_LIMITED)
				return false;
			if (!follower->away)
				output_note("%s; trying again", error->what);
			follower->away = true;
		}
		(void)poll(NULL, 0, (int)follower->pause_ms);
		follower->pause_ms = follower->pause_ms * 2 < AGAIN_MAX_MS ? follower->pause_ms * 2
									   : AGAIN_MAX_MS;
	}
}

static bool run_follow(struct cli *cli, struct error *error)
{
	struct follower follower = {.cli = cli, .pause_ms = AGAIN_MS};
	CLEANUP(tree) json_t *items = NULL;
	size_t index;
	json_t *event;

	if (options_given(cli->options, "after")) {
		follower.after = options_number(cli->options, "after", 0);
		return follow(&follower, error);
	}
	if (!find_last(cli, &follower.after, error) ||
	    !read_latest(cli, options_number(cli->options, "limit", FOLLOW_BEFORE), follower.after,
			 &items, error))
		return false;
	json_array_foreach(items, index, event)
	{
		if (!show(&follower, event, error))
			return false;
	}
	return follow(&follower, error);
}

static bool run(struct cli *cli, struct error *error)
{
	int64_t limit = options_number(cli->options, "limit", EVENTS_DEFAULT);
	CLEANUP(tree) json_t *answer = NULL, *items = NULL;
	int64_t last;

	if (options_given(cli->options, "follow"))
		return run_follow(cli, error);
	if (!options_given(cli->options, "after")) {
		if (!find_last(cli, &last, error) || !read_latest(cli, limit, last, &items, error))
			return false;
	} else {
		int64_t after = options_number(cli->options, "after", 0);
		if (!fetch(cli, after, limit, &answer, error))
			return false;
		if (json_is_integer(json_object_get(answer, "last")) &&
		    view_number(answer, "last") < after)
			note_from_the_beginning(after);
		items = json_incref(json_object_get(answer, "items"));
	}
	if (output_raw_list(cli, items))
		return true;
	if (json_array_size(items) == 0)
		output_note("no events");
	else
		print_table(cli, items);
	return true;
}

static const struct option OPTIONS[] = {
	{"after", 0, OPTION_NUMBER, "SEQ", "the first ones after this number (default: the latest)",
	 0, INT64_MAX, NULL},
	{"limit", 0, OPTION_NUMBER, "N", "at most this many (default 50; 10 before --follow)", 1,
	 EVENTS_MAX, NULL},
	{"follow", 'f', OPTION_FLAG, NULL, "go on with what happens, until Ctrl-C", 0, 0, NULL},
	{0},
};

const struct command EVENT_COMMANDS[] = {
	{
		.noun = "events",
		.summary = "show what happened to nodes and reservations",
		.flags = COMMAND_DAILY | COMMAND_API | COMMAND_ANSWER,
		.options = OPTIONS,
		.more = "With --follow each event is a line as it comes; with -o json one JSON "
			"object a line.",
		.example = "better-compute events --limit 20\n"
			   "better-compute events --after 100 -o json\n",
		.run = run,
	},
	{0},
};
