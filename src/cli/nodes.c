#include "cli/commands.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/view.h"

static bool list(struct cli *cli, struct error *error)
{
	return noun_list(cli, NOUN_NODE, NULL, error);
}

static const struct table_column DEVICE_COLUMNS[] = {{"DEVICE", TABLE_FLEX},
						     {"CLASS", 0},
						     {"HEALTH", TABLE_FLEX},
						     {"RESERVATION", TABLE_ID},
						     {"ALLOCATION", TABLE_ID | TABLE_WIDE}};

static void print_devices(const struct cli *cli, const json_t *devices)
{
	CLEANUP(table) struct table table;
	size_t index;
	json_t *item;

	table_init(&table, DEVICE_COLUMNS, ARRAY_SIZE(DEVICE_COLUMNS));
	json_array_foreach(devices, index, item)
	{
		const char *class = view_text(item, "class"), *profile = view_text(item, "profile");
		const char *cause = view_text(item, "cause");
		bool healthy = json_is_true(json_object_get(item, "healthy"));
		table_cell(&table, view_text(item, "atom"));
		table_cellf(&table, "%s%s%s", class ? class : "?", profile ? " " : "",
			    profile ? profile : "");
		table_cell(&table, healthy ? "ok" : cause ? cause : "unhealthy");
		table_cell(&table, view_text(item, "reservationId"));
		table_cell(&table, view_text(item, "allocationId"));
	}
	puts("");
	output_table(cli, &table);
}

static bool show(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *node = NULL, *brief = NULL;
	CLEANUP(buf) struct buf text = {0};

	if (!noun_fetch(cli, NOUN_NODE, cli->options->operands[0], &node, error))
		return false;
	if (output_raw(cli, node))
		return true;
	brief = json_copy(node);
	tree_set(brief, "gpus", tree_string(view_gpus(&cli->arena, node)));
	json_object_del(brief, "devices");
	view_fields(&text, brief, cli->now);
	output_text(&text);
	print_devices(cli, json_object_get(node, "devices"));
	return true;
}

static bool retire(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *node = NULL, *answer = NULL, *body = json_object();
	bool lost = options_given(cli->options, "lost");
	size_t booked = 0, index;
	json_t *item;

	if (!noun_fetch(cli, NOUN_NODE, cli->options->operands[0], &node, error))
		return false;
	json_array_foreach(json_object_get(node, "devices"), index, item) booked +=
		view_text(item, "reservationId") != NULL;
	const char *id = view_text(node, "id");
	const char *question = arena_printf(
		&cli->arena,
		lost ? "declaring %s lost frees its %zu booked devices without asking the machine: "
		       "pods there may still use them"
		     : "retiring %s ends its membership for good; %zu of its devices are booked",
		id, booked);
	if (!options_given(cli->options, "dry-run") && !output_confirm(cli, question, error))
		return false;
	if (lost)
		tree_set(body, "lost", json_true());
	if (!cli_change(cli, "POST", arena_printf(&cli->arena, "/v1/nodes/%s/retire", id), body,
			&answer, error))
		return false;
	if (answer && !output_raw(cli, answer))
		printf("%s  %s\n", id, view_text(answer, "state"));
	return true;
}

static const struct option RETIRE_OPTIONS[] = {
	{"lost", 0, OPTION_FLAG, NULL, "the machine is gone and will not answer again", 0, 0, NULL},
	{0},
};

const struct command NODE_COMMANDS[] = {
	{
		.noun = "nodes",
		.verb = "list",
		.summary = "list the machines with their GPUs",
		.flags = COMMAND_DEFAULT | COMMAND_DAILY | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute nodes\n",
		.run = list,
	},
	{
		.noun = "nodes",
		.verb = "show",
		.summary = "show one node and its devices",
		.operands = "NODE",
		.min_operands = 1,
		.max_operands = 1,
		.names = COMMAND_NAMES_NODES,
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute nodes show gpu-node-07\n",
		.run = show,
	},
	{
		.noun = "nodes",
		.verb = "retire",
		.summary = "take a machine out for good",
		.operands = "NODE",
		.min_operands = 1,
		.max_operands = 1,
		.names = COMMAND_NAMES_NODES,
		.flags = COMMAND_CHANGES | COMMAND_ASKS | COMMAND_API | COMMAND_OUTPUT,
		.options = RETIRE_OPTIONS,
		.example = "better-compute nodes retire gpu-node-07 --dry-run\n",
		.run = retire,
	},
	{0},
};
