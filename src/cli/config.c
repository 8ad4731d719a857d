#include "cli/commands.h"
#include "cli/output.h"

static json_t *as_json(const struct context *context, bool origin)
{
	json_t *root = json_object();

	for (int i = 0; i < CONTEXT_FIELD_COUNT; i++) {
		const struct context_value *value = &context->values[i];
		if (!value->text)
			continue;
		json_t *text = tree_string(value->text);
		json_t *item = text;
		if (origin) {
			item = json_object();
			tree_set(item, "value", text);
			tree_set(item, "origin", tree_string(value->origin));
		}
		tree_set(root, context_field_name((enum context_field)i), item);
	}
	return root;
}

static const char *named_by(const struct context *context)
{
	const struct context_value *state = &context->values[CONTEXT_STATE];

	return state->text ? state->origin : context->values[CONTEXT_API].origin;
}

static bool show(struct cli *cli, struct error *error)
{
	static const struct table_column COLUMNS[] = {
		{"FIELD", 0}, {"VALUE", TABLE_FLEX}, {"FROM", 0}};
	bool origin = options_given(cli->options, "origin");
	CLEANUP(table) struct table table;
	struct context context;

	table_init(&table, COLUMNS, origin ? 3 : 2);
	if (!context_inspect(cli->options, &cli->arena, &context, error))
		return false;
	CLEANUP(tree) json_t *root = as_json(&context, origin);
	if (output_raw(cli, root))
		return true;
	for (int i = 0; i < CONTEXT_FIELD_COUNT; i++) {
		const struct context_value *value = &context.values[i];
		table_cell(&table, context_field_name((enum context_field)i));
		table_cell(&table, value->text);
		if (origin)
			table_cell(&table, value->origin);
	}
	output_table(cli, &table);
	if (context.config_ignored)
		output_note("nothing of '%s' is used: %s names the control plane",
			    context.config_ignored, named_by(&context));
	if (context.variables_ignored)
		output_note(
			"%s: not used, since %s names a folder, which has its own address and key",
			context.variables_ignored, named_by(&context));
	return true;
}

static const struct option SHOW_OPTIONS[] = {
	{"origin", 0, OPTION_FLAG, NULL, "tell where each value comes from", 0, 0, NULL},
	{0},
};

const struct command CONFIG_COMMANDS[] = {
	{
		.noun = "config",
		.verb = "show",
		.summary = "show which control plane is used, and why",
		.flags = COMMAND_DEFAULT | COMMAND_CONTEXT | COMMAND_ANSWER,
		.options = SHOW_OPTIONS,
		.example = "better-compute config show --origin\n",
		.run = show,
	},
	{0},
};
