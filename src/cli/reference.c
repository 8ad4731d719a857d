/*
 * reference: the command tables as Markdown for the docs, and as JSON for programs.
 */
#include "cli/help.h"
#include "text/tree.h"

/* --- Markdown --- */

static void contents(struct buf *out, const struct command_set *set)
{
	buf_add_text(out, "\n| command | |\n| --- | --- |\n");
	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			if (row->flags & COMMAND_HIDDEN)
				continue;
			buf_printf(out, "| [%s%s%s](#%s%s%s) | %s |\n", row->noun,
				   row->verb ? " " : "", row->verb ? row->verb : "", row->noun,
				   row->verb ? "-" : "", row->verb ? row->verb : "", row->summary);
		}
	}
}

/* "--dry-run, --exit-code, -o": what it takes besides its own. */
static void also_takes(struct buf *out, const struct command *command)
{
	const char *separator = "[Also](#common-options): ";

	for (size_t i = 1; HELP_GROUPS[i].who; i++) { /* what every command takes goes unsaid */
		const struct option *row = help_group_options(&HELP_GROUPS[i]);
		if (!(command->flags & HELP_GROUPS[i].flag))
			continue;
		for (; row->name; row++, separator = ", ")
			buf_printf(out, "%s`--%s`", separator, row->name);
	}
	if (*separator == ',')
		buf_add_text(out, ".\n\n");
}

static char upper_first(const char *text)
{
	return *text >= 'a' && *text <= 'z' ? (char)(*text - 'a' + 'A') : *text;
}

static void markdown_command(struct buf *out, const struct command *command)
{
	buf_add_text(out, "\n## ");
	command_name(out, command);
	buf_printf(out, "\n\n%c%s.%s%s%s\n\n```text\n", upper_first(command->summary),
		   command->summary + 1,
		   command->flags & COMMAND_DEFAULT ? " This is what the noun alone means." : "",
		   command->more ? " " : "", command->more ? command->more : "");
	help_usage(out, command);
	buf_add_char(out, '\n');
	if (command->options)
		options_help(out, command->options);
	buf_add_text(out, "```\n\n");
	also_takes(out, command);
	buf_add_text(out, "Example:\n\n```sh\n");
	help_example(out, command, "");
	buf_add_text(out, "```\n");
}

static void markdown_groups(struct buf *out)
{
	buf_add_text(out, "\n## Common options\n");
	for (size_t i = 0; HELP_GROUPS[i].who; i++) {
		buf_printf(out, "\n%s\n\n```text\n", HELP_GROUPS[i].who);
		options_help(out, help_group_options(&HELP_GROUPS[i]));
		buf_add_text(out, "```\n");
	}
}

void help_markdown(struct buf *out, const struct command_set *set)
{
	buf_printf(out,
		   "# better-compute, command by command\n\n"
		   "Made by `better-compute help --format markdown`; the same is in "
		   "`better-compute COMMAND --help` and better-compute(1).\n\n%s\n\n"
		   "Exit status: %s\n",
		   HELP_CONTEXT, HELP_EXIT);
	contents(out, set);
	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			if (!(row->flags & COMMAND_HIDDEN))
				markdown_command(out, row);
		}
	}
	markdown_groups(out);
}

/* --- JSON --- */

static json_t *json_options(const struct command *command)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	size_t count = command_tables(command, tables);
	json_t *options = json_array();

	for (size_t i = 0; i < count; i++) {
		for (const struct option *row = tables[i]; row->name; row++) {
			json_t *option = json_object();
			tree_set(option, "name", tree_string(row->name));
			if (row->value)
				tree_set(option, "value", tree_string(row->value));
			tree_set(option, "help", tree_string(row->help));
			tree_append(options, option);
		}
	}
	return options;
}

static json_t *json_command(const struct command *command)
{
	CLEANUP(buf) struct buf name = {0};
	json_t *item = json_object(), *examples = json_array();

	command_name(&name, command);
	tree_set(item, "name", tree_string(buf_text(&name)));
	tree_set(item, "summary", tree_string(command->summary));
	if (command->operands)
		tree_set(item, "operands", tree_string(command->operands));
	tree_set(item, "changes", json_boolean(command->flags & COMMAND_CHANGES));
	tree_set(item, "daily", json_boolean(command->flags & COMMAND_DAILY));
	tree_set(item, "options", json_options(command));
	for (const char *line = command->example; *line;) {
		size_t length = strcspn(line, "\n");
		tree_append(examples, json_stringn(line, length));
		line += length + (line[length] == '\n');
	}
	tree_set(item, "examples", examples);
	return item;
}

void help_json(struct buf *out, const struct command_set *set)
{
	CLEANUP(tree) json_t *root = json_object();
	CLEANUP(free) char *text = NULL;
	json_t *commands = json_array();

	tree_set(root, "commands", commands);
	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			if (!(row->flags & COMMAND_HIDDEN))
				tree_append(commands, json_command(row));
		}
	}
	text = json_dumps(root, JSON_INDENT(2));
	buf_printf(out, "%s\n", text);
}
