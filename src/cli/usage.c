#include "cli/commands.h"
#include "cli/output.h"
#include "cli/period.h"
#include "cli/verb.h"
#include "cli/view.h"

static bool add_filters(struct cli *cli, struct buf *query, struct error *error)
{
	return period_query(cli, query, error) && verb_query(cli, query, error);
}

/* --- usage: sums --- */

static const struct table_column USAGE_COLUMNS[] = {{"TENANT", 0},
						    {"POOL", TABLE_SPARSE},
						    {"CLASS", 0},
						    {"GPU HOURS", TABLE_RIGHT},
						    {"GPU SECONDS", TABLE_RIGHT | TABLE_WIDE},
						    {"ALLOCATIONS", TABLE_RIGHT},
						    {"OPEN", TABLE_RIGHT}};

static void print_usage(struct cli *cli, const json_t *answer)
{
	CLEANUP(table) struct table table;
	CLEANUP(noun_view) struct noun_view view = {.cli = cli};
	const json_t *items = json_object_get(answer, "items");
	size_t index;
	json_t *item;

	table_init(&table, USAGE_COLUMNS, ARRAY_SIZE(USAGE_COLUMNS));
	json_array_foreach(items, index, item)
	{
		table_cell(&table, noun_view_name(&view, NOUN_TENANT, item, "tenantId"));
		table_cell(&table, noun_view_name(&view, NOUN_POOL, item, "poolId"));
		const char *class = view_text(item, "class"), *profile = view_text(item, "profile");
		table_cellf(&table, "%s%s%s", class ? class : "?", profile ? " " : "",
			    profile ? profile : "");
		table_cell(&table, view_hours(&cli->arena, view_number(item, "gpuSeconds")));
		table_cellf(&table, "%lld", (long long)view_number(item, "gpuSeconds"));
		table_cellf(&table, "%lld", (long long)view_number(item, "allocations"));
		table_cellf(&table, "%lld", (long long)view_number(item, "open"));
	}
	const char *from = view_exact(&cli->arena, answer, "from");
	const char *to = view_exact(&cli->arena, answer, "to");
	if (from && to)
		output_note("from %s to %s", from, to);
	if (table_row_count(&table) == 0)
		output_note("nothing was used in that time");
	else
		output_table(cli, &table);
}

static bool usage(struct cli *cli, struct error *error)
{
	const char *by = options_text(cli->options, "by");
	CLEANUP(tree) json_t *answer = NULL;
	CLEANUP(buf) struct buf query = {0};

	if (!add_filters(cli, &query, error))
		return false;
	if (by)
		api_query_add(&query, "by", by);
	if (!api_call(cli->api, "GET",
		      arena_printf(&cli->arena, "/v1/usage%s%s", query.length ? "?" : "",
				   buf_text(&query)),
		      NULL, &answer, error))
		return false;
	if (!output_raw(cli, answer))
		print_usage(cli, answer);
	return true;
}

/* --- meter: one row for each allocation that is closed --- */

static const struct table_column METER_COLUMNS[] = {{"ALLOCATION", TABLE_ID},
						    {"RESERVATION", TABLE_ID | TABLE_WIDE},
						    {"TENANT", 0},
						    {"POOL", 0},
						    {"NODE", TABLE_ID | TABLE_WIDE},
						    {"DEVICES", 0},
						    {"STOPPED", 0},
						    {"REASON", TABLE_FLEX},
						    {"GPU HOURS", TABLE_RIGHT}};

static void print_meter(struct cli *cli, const json_t *items)
{
	CLEANUP(table) struct table table;
	CLEANUP(noun_view) struct noun_view view = {.cli = cli};
	size_t index;
	json_t *item;

	table_init(&table, METER_COLUMNS, ARRAY_SIZE(METER_COLUMNS));
	json_array_foreach(items, index, item)
	{
		table_cell(&table, view_text(item, "allocationId"));
		table_cell(&table, view_text(item, "reservationId"));
		table_cell(&table, noun_view_name(&view, NOUN_TENANT, item, "tenantId"));
		table_cell(&table, noun_view_name(&view, NOUN_POOL, item, "poolId"));
		table_cell(&table, view_text(item, "nodeId"));
		table_cell(&table, view_devices(&cli->arena, json_object_get(item, "devices")));
		table_cell(&table, view_relative(&cli->arena, item, "stoppedAt", cli->now));
		table_cell(&table, view_text(item, "reason"));
		table_cell(&table, view_hours(&cli->arena, view_number(item, "gpuSeconds")));
	}
	output_table(cli, &table);
}

static bool meter(struct cli *cli, struct error *error)
{
	size_t most = (size_t)options_number(cli->options, "limit", INT64_MAX);
	CLEANUP(tree) json_t *items = NULL;
	CLEANUP(buf) struct buf query = {0};
	bool more;

	if (!add_filters(cli, &query, error) ||
	    !api_list_some(cli->api, "/v1/meter", query.length ? buf_text(&query) : NULL, most,
			   &items, &more, error))
		return false;
	if (output_raw_list(cli, items))
		return true;
	if (json_array_size(items) == 0)
		output_note("no allocation was closed in that time");
	else
		print_meter(cli, items);
	if (more)
		output_note("there are more; raise --limit");
	return true;
}

static const char *const BY[] = {"tenant", "pool", NULL};

#define FILTER_OPTIONS                                                                             \
	PERIOD_OPTIONS,                                                                            \
		{"tenant", 0, OPTION_TEXT, "TENANT", "only what this tenant used", 0, 0, NULL},    \
	{                                                                                          \
		"pool", 0, OPTION_TEXT, "POOL", "only what was used in this pool", 0, 0, NULL      \
	}

static const struct option USAGE_OPTIONS[] = {
	{"by", 0, OPTION_TEXT, "WHAT", "sum up by tenant (default) or pool", 0, 0, BY},
	FILTER_OPTIONS,
	{0},
};

static const struct option METER_OPTIONS[] = {
	FILTER_OPTIONS,
	{"limit", 0, OPTION_NUMBER, "N", "at most this many rows (default: all)", 1, INT64_MAX,
	 NULL},
	{0},
};

static const struct verb_field FIELDS[] = {
	FIELD_ID("tenantId", "tenant", NOUN_TENANT), FIELD_ID("poolId", "pool", NOUN_POOL), {0}};

const struct command USAGE_COMMANDS[] = {
	{
		.noun = "usage",
		.summary = "show who used how many GPU-hours",
		.flags = COMMAND_DAILY | COMMAND_API | COMMAND_ANSWER,
		.options = USAGE_OPTIONS,
		.more = "OPEN are allocations that still run; their time so far is counted.",
		.example = "better-compute usage --from 30d --by pool\n",
		.fields = FIELDS,
		.check = period_check,
		.run = usage,
	},
	{
		.noun = "meter",
		.summary = "list the metered allocations, one row each, written when it ended",
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.options = METER_OPTIONS,
		.example = "better-compute meter --from 7d -o json\n",
		.fields = FIELDS,
		.check = period_check,
		.run = meter,
	},
	{0},
};
