#include "cli/booking.h"
#include "cli/commands.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/view.h"

static const struct table_column COLUMNS[] = {{"POOL", 0},
					      {"DEVICES", 0},
					      {"TOTAL", TABLE_RIGHT},
					      {"FREE", TABLE_RIGHT},
					      {"SPOT ONLY", TABLE_RIGHT | TABLE_SPARSE},
					      {"BOOKED", TABLE_RIGHT},
					      {"UNHEALTHY", TABLE_RIGHT},
					      {"NODES", TABLE_RIGHT},
					      {"CLOSED", TABLE_RIGHT | TABLE_SPARSE}};

static void add_number(struct table *table, const json_t *item, const char *key)
{
	table_cellf(table, "%lld", (long long)view_number(item, key));
}

/* Nothing where there is none. */
static void add_some(struct cli *cli, struct table *table, const json_t *item, const char *key)
{
	long long number = (long long)view_number(item, key);

	table_cell(table, number > 0 ? arena_printf(&cli->arena, "%lld", number) : NULL);
}

static void print_items(struct cli *cli, const json_t *items)
{
	CLEANUP(table) struct table table;
	CLEANUP(noun_view) struct noun_view view = {.cli = cli};
	size_t index;
	json_t *item;

	table_init(&table, COLUMNS, ARRAY_SIZE(COLUMNS));
	json_array_foreach(items, index, item)
	{
		const char *class = view_text(item, "class"), *profile = view_text(item, "profile");
		table_cell(&table, noun_view_name(&view, NOUN_POOL, item, "poolId"));
		table_cellf(&table, "%s%s%s", class ? class : "?", profile ? " " : "",
			    profile ? profile : "");
		add_number(&table, item, "total");
		add_number(&table, item, "free");
		/* Of the free ones, those that are booked with --spot alone. */
		add_some(cli, &table, item, "spotOnly");
		add_number(&table, item, "booked");
		add_number(&table, item, "unhealthy");
		add_number(&table, item, "nodes");
		/* Of nodes that take no work now: with them the numbers add up. */
		add_some(cli, &table, item, "unavailable");
	}
	output_table(cli, &table);
}

static bool list(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	CLEANUP(buf) struct buf query = {0};
	const char *pool;

	if (options_given(cli->options, "pool")) {
		if (!cli_pool(cli, &pool, error))
			return false;
		api_query_add(&query, "poolId", pool);
	}
	if (!api_call(cli->api, "GET",
		      arena_printf(&cli->arena, "/v1/capacity%s%s", query.length ? "?" : "",
				   buf_text(&query)),
		      NULL, &answer, error))
		return false;
	if (output_raw(cli, answer))
		return true;
	const json_t *items = json_object_get(answer, "items");
	if (json_array_size(items) == 0)
		output_note("no devices yet: no node has joined");
	else
		print_items(cli, items);
	noun_note_simulated(cli, NULL);
	return true;
}

/* What a booking would ask for means nothing to the list; --pool does, and whose pool it is. */
static bool no_booking_options(const struct options *options, struct error *error)
{
	static const struct option rows[] = {BOOKING_OPTIONS, {0}};

	for (const struct option *row = rows; row->name; row++) {
		if (str_equal(row->name, "pool") ||
		    (str_equal(row->name, "tenant") && options_given(options, "pool")) ||
		    options_need(options, row->name, "preview", error))
			continue;
		return error_hint(error, "Ask whether it would fit: better-compute capacity "
					 "--preview --gpus 2 --for 8h --kubernetes");
	}
	return true;
}

static bool check(struct cli *cli, struct error *error)
{
	return options_given(cli->options, "preview") ? booking_check(cli, error)
						      : no_booking_options(cli->options, error);
}

static bool capacity(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = NULL;

	if (!options_given(cli->options, "preview"))
		return list(cli, error);
	return booking_body(cli, &body, error) && booking_preview(cli, body, error);
}

static const struct option CAPACITY_OPTIONS[] = {
	{"preview", 0, OPTION_FLAG, NULL, "would this fit, and where? books nothing", 0, 0, NULL},
	BOOKING_OPTIONS,
	{0},
};

const struct command CAPACITY_COMMANDS[] = {
	{
		.noun = "capacity",
		.summary = "show what is free, or whether a booking would fit",
		.flags = COMMAND_DAILY | COMMAND_API | COMMAND_ANSWER,
		.options = CAPACITY_OPTIONS,
		.more = "With --preview the other flags are those of reserve, and the exit status "
			"is 3 when it does not fit now.",
		.example = "better-compute capacity\n"
			   "better-compute capacity --preview --gpus 2 --for 8h --kubernetes\n",
		.check = check,
		.run = capacity,
	},
	{0},
};
