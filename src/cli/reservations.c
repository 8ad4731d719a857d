#include "cli/booking.h"
#include "cli/commands.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/view.h"

static bool list(struct cli *cli, struct error *error)
{
	const char *state = options_text(cli->options, "state-is"), *pool;
	CLEANUP(buf) struct buf query = {0};

	if (state)
		api_query_add(&query, "state", state);
	if (options_given(cli->options, "pool")) {
		if (!cli_pool(cli, &pool, error))
			return false;
		api_query_add(&query, "poolId", pool);
	}
	return noun_list(cli, NOUN_RESERVATION, query.length ? buf_text(&query) : NULL, error);
}

static const struct table_column ALLOCATION_COLUMNS[] = {{"ALLOCATION", TABLE_ID},
							 {"NODE", TABLE_ID},
							 {"STATE", 0},
							 {"CLASS", 0},
							 {"DEVICE", TABLE_FLEX}};

static void print_allocations(const struct cli *cli, const json_t *allocations)
{
	CLEANUP(table) struct table table;
	size_t index, i;
	json_t *allocation, *device;

	table_init(&table, ALLOCATION_COLUMNS, ARRAY_SIZE(ALLOCATION_COLUMNS));
	json_array_foreach(allocations, index, allocation)
	{
		json_array_foreach(json_object_get(allocation, "devices"), i, device)
		{
			table_cell(&table, view_text(allocation, "id"));
			table_cell(&table, view_text(allocation, "nodeId"));
			table_cell(&table, view_text(allocation, "state"));
			table_cell(&table, view_text(device, "class"));
			table_cell(&table, view_text(device, "atom"));
		}
	}
	if (table_row_count(&table) == 0)
		return;
	puts("");
	output_table(cli, &table);
}

static bool show(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *item = NULL, *brief = NULL;
	CLEANUP(buf) struct buf text = {0};

	if (!noun_fetch(cli, NOUN_RESERVATION, cli->options->operands[0], &item, error))
		return false;
	if (output_raw(cli, item))
		return true;
	brief = json_copy(item);
	json_object_del(brief, "allocations");
	const char *devices = view_devices(&cli->arena, json_object_get(item, "devices"));
	const char *reasons = view_reasons(&cli->arena, json_object_get(item, "reasons"),
					   json_object_get(item, "devices"));
	tree_set(brief, "devices", tree_string(devices ? devices : "-"));
	/* Reasons are why it waits; one that was given back early ended then. */
	const char *state = view_text(item, "state"),
		   *given = view_text(item, "releaseRequestedAt");
	bool waits = state && str_equal(state, "pending");
	tree_set(brief, "reasons", tree_string(waits && reasons ? reasons : "-"));
	if (state && view_terminal(state) && given)
		tree_set(brief, "endAt", tree_string(given));
	view_fields(&text, brief, cli->now);
	output_text(&text);
	print_allocations(cli, json_object_get(item, "allocations"));
	noun_note_simulated(cli, NULL);
	return true;
}

static bool cancel_one(struct cli *cli, const char *id, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	const char *path = arena_printf(&cli->arena, "/v1/reservations/%s/cancel", id);

	if (!cli_change(cli, "POST", path, NULL, &answer, error))
		return error_wrap(error, "cancel %s", id);
	if (answer && !output_raw(cli, answer))
		printf("%s  %s\n", id, view_text(answer, "state"));
	return true;
}

static void print_released(struct cli *cli, const json_t *reservation)
{
	const char *note = view_conditions(&cli->arena, json_object_get(reservation, "conditions"));

	printf("%s  %s%s%s\n", view_text(reservation, "id"), view_text(reservation, "state"),
	       note ? "  " : "", note ? note : "");
}

static bool release_one(struct cli *cli, const char *id, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL, *last = NULL;
	const char *path = arena_printf(&cli->arena, "/v1/reservations/%s/release", id);
	bool reached;

	if (!cli_change(cli, "POST", path, NULL, &answer, error))
		return error_wrap(error, "release %s", id);
	if (!answer)
		return true;
	if (!options_given(cli->options, "wait")) {
		if (!output_raw(cli, answer))
			print_released(cli, answer);
		return true;
	}
	if (!booking_wait(cli, id, BOOKING_RELEASED, &last, &reached, error))
		return false;
	if (last)
		(void)output_raw(cli, last);
	return true;
}

/* All names are looked up before anything is done: a slip in one does nothing to the others. */
static bool each(struct cli *cli, bool (*one)(struct cli *, const char *, struct error *),
		 struct error *error)
{
	size_t count = cli->options->operand_count;
	const char **ids = arena_alloc(&cli->arena, count * sizeof *ids);

	for (size_t i = 0; i < count; i++) {
		if (!noun_resolve(cli, NOUN_RESERVATION, cli->options->operands[i], &ids[i], error))
			return false;
	}
	for (size_t i = 0; i < count; i++) {
		if (!one(cli, ids[i], error))
			return false;
	}
	return true;
}

static bool release(struct cli *cli, struct error *error)
{
	return each(cli, release_one, error);
}

static bool cancel(struct cli *cli, struct error *error)
{
	return each(cli, cancel_one, error);
}

static const char *const STATES[] = {"pending", "placed",    "active",  "released",  "denied",
				     "failed",  "cancelled", "expired", "preempted", NULL};

static const struct option LIST_OPTIONS[] = {
	{"state-is", 's', OPTION_TEXT, "STATE", "only those in this state", 0, 0, STATES},
	{"pool", 0, OPTION_TEXT, "POOL", "only those in this pool", 0, 0, NULL},
	{0},
};

static const struct option RELEASE_OPTIONS[] = {
	{"wait", 'w', OPTION_FLAG, NULL, "until no pod holds a device any more", 0, 0, NULL},
	{"timeout", 0, OPTION_DURATION, "D", "wait no longer than this (default: no limit)", 1000,
	 BOOKING_MAX_MS, NULL},
	{0},
};

const struct command RESERVATION_COMMANDS[] = {
	{
		.noun = "release",
		.summary = "give booked GPUs back",
		.operands = "ID...",
		.min_operands = 1,
		.max_operands = COMMAND_MANY,
		.names = COMMAND_NAMES_RESERVATIONS,
		.flags = COMMAND_DAILY | COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.options = RELEASE_OPTIONS,
		.more = "The node withdraws the devices at once. They are free for others when no "
			"pod holds them any more: --wait waits for that.",
		.example = "better-compute release rsv_01kb7 --wait\n",
		.run = release,
	},
	{
		.noun = "reservations",
		.verb = "list",
		.summary = "list what is booked",
		.flags = COMMAND_DEFAULT | COMMAND_DAILY | COMMAND_API | COMMAND_OUTPUT,
		.options = LIST_OPTIONS,
		.example = "better-compute reservations --state-is active\n",
		.run = list,
	},
	{
		.noun = "reservations",
		.verb = "show",
		.summary = "show one reservation and its devices",
		.operands = "ID",
		.min_operands = 1,
		.max_operands = 1,
		.names = COMMAND_NAMES_RESERVATIONS,
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute reservations show rsv_01kb7 -o json\n",
		.run = show,
	},
	{
		.noun = "reservations",
		.verb = "cancel",
		.summary = "drop reservations that are still pending",
		.operands = "ID...",
		.min_operands = 1,
		.max_operands = COMMAND_MANY,
		.names = COMMAND_NAMES_RESERVATIONS,
		.flags = COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute reservations cancel rsv_01kb7\n",
		.run = cancel,
	},
	{0},
};
