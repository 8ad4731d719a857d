#include "cli/help.h"
#include "cli/commands.h"
#include "cli/output.h"

#define HELP_NAME_WIDTH 30
#define HELP_TEXT_WIDTH 88

const char HELP_ABOUT[] =
	"better-compute lends GPUs to Kubernetes nodes by reservation, and takes them back.\n";

const char HELP_CONTEXT[] =
	"The control plane is named by --state DIR or --api URL, else by BETTER_COMPUTE_STATE or "
	"BETTER_COMPUTE_API (with BETTER_COMPUTE_KEY_FILE), else by ./.better-compute if it is "
	"yours, else by ~/.config/better-compute/config.toml. "
	"better-compute config show --origin tells which.";

const char HELP_EXIT[] =
	"0 done, 1 failed, 2 wrong usage, 3 refused by a rule (conflict, no capacity), "
	"4 not reachable, 5 not allowed, 6 changes found (with --exit-code only).";

const struct help_group HELP_GROUPS[] = {
	{0, "Every command takes:"},
	{COMMAND_OUTPUT, "Commands that print things take:"},
	{COMMAND_ANSWER, "Commands whose answer has no ids take:"},
	{COMMAND_CHANGES, "Commands that change something take:"},
	{COMMAND_CREATES, "Commands that make something take:"},
	{COMMAND_ASKS, "Commands that ask before they do something dangerous take:"},
	{COMMAND_API, "Commands that speak to the control plane take:"},
	{0, NULL},
};

const struct option *help_group_options(const struct help_group *group)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	struct command only = {.flags = group->flag};

	(void)command_tables(&only, tables); /* the group's stands before what everyone takes */
	return tables[0];
}

static void summary_line(struct buf *out, const struct command *command)
{
	size_t start = out->length;

	buf_add_text(out, "  ");
	command_name(out, command);
	if (command->operands)
		buf_printf(out, " %s", command->operands);
	size_t width = out->length - start;
	if (width + 2 > HELP_NAME_WIDTH) { /* a long name has a line for itself */
		buf_add_char(out, '\n');
		width = 0;
	}
	buf_printf(out, "%*s%s\n", (int)(HELP_NAME_WIDTH - width), "", command->summary);
}

static void summaries(struct buf *out, const struct command_set *set, unsigned wanted)
{
	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			if (!(row->flags & COMMAND_HIDDEN) && (row->flags & wanted) == wanted)
				summary_line(out, row);
		}
	}
}

void help_paragraph(struct buf *out, const char *text, size_t width)
{
	size_t column = 0;

	while (*text) {
		size_t length = strcspn(text, " \n");
		if (column > 0 && column + 1 + length > width) {
			buf_add_char(out, '\n');
			column = 0;
		}
		if (column > 0)
			buf_add_char(out, ' ');
		buf_add(out, text, length);
		column += length + (column > 0);
		text += length + strspn(text + length, " \n");
	}
	buf_add_char(out, '\n');
}

void help_daily(struct buf *out, const struct command_set *set)
{
	buf_printf(out, "%s\n", HELP_ABOUT);
	summaries(out, set, COMMAND_DAILY);
	buf_add_text(out, "\nAll commands: better-compute help. One: better-compute help pools "
			  "create. The manual page: better-compute --man.\n");
}

void help_all(struct buf *out, const struct command_set *set)
{
	buf_printf(out, "%s\n", HELP_ABOUT);
	summaries(out, set, 0);
	buf_add_char(out, '\n');
	help_paragraph(out, HELP_CONTEXT, HELP_TEXT_WIDTH);
	buf_add_text(out, "\nExit status:\n");
	help_paragraph(out, HELP_EXIT, HELP_TEXT_WIDTH);
}

void help_usage(struct buf *out, const struct command *command)
{
	buf_add_text(out, "better-compute ");
	command_name(out, command);
	if (command->operands)
		buf_printf(out, command->min_operands > 0 ? " %s" : " [%s]", command->operands);
	buf_add_text(out, " [OPTIONS]");
}

void help_example(struct buf *out, const struct command *command, const char *indent)
{
	for (const char *line = command->example; *line;) {
		size_t length = strcspn(line, "\n");
		buf_printf(out, "%s%.*s\n", indent, (int)length, line);
		line += length + (line[length] == '\n');
	}
}

void help_command(struct buf *out, const struct command *command)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	size_t count = command_tables(command, tables);

	help_usage(out, command);
	buf_printf(out, "\n\n  %s%s\n", command->summary,
		   command->flags & COMMAND_DEFAULT ? " (what the noun alone means)" : "");
	if (command->more) {
		buf_add_char(out, '\n');
		help_paragraph(out, command->more, HELP_TEXT_WIDTH);
	}
	buf_add_text(out, "\nOptions:\n");
	for (size_t i = 0; i < count; i++)
		options_help(out, tables[i]);
	buf_add_text(out, "\nExample:\n");
	help_example(out, command, "  ");
}

void help_print_daily(const struct command_set *set)
{
	CLEANUP(buf) struct buf text = {0};

	help_daily(&text, set);
	output_text(&text);
}

/* The verbs of a noun. */
static void help_noun(struct buf *out, const struct command_set *set, const char *noun)
{
	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			if (str_equal(row->noun, noun))
				summary_line(out, row);
		}
	}
}

void help_print_man(const struct command_set *set)
{
	CLEANUP(buf) struct buf text = {0};

	help_man(&text, set);
	output_man(&text, "better-compute");
}

void help_print_noun(const struct command_set *set, const char *noun)
{
	CLEANUP(buf) struct buf text = {0};

	help_noun(&text, set, noun);
	buf_printf(&text, "\nOne: better-compute help %s VERB.\n", noun);
	output_text(&text);
}

void help_print_command(const struct command_set *set, const struct command *command, bool verb)
{
	CLEANUP(buf) struct buf text = {0};

	help_command(&text, command);
	if (!verb) {
		buf_printf(&text, "\nAll of %s:\n", command->noun);
		help_noun(&text, set, command->noun);
	}
	output_text(&text);
}

static bool no_such_command(const char *const *words, const struct command *command,
			    struct error *error)
{
	CLEANUP(buf) struct buf name = {0};

	command_name(&name, command);
	error_set(error, ERROR_INVALID_INPUT, "there is no command '%s %s'", words[0], words[1]);
	return error_hint(error, "See: better-compute help %s", buf_text(&name));
}

static bool run_help(struct cli *cli, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	const char *format = options_text(cli->options, "format");
	const struct command *command;
	int words;

	if (cli->options->operand_count == 1 &&
	    command_is_noun(cli->set, cli->options->operands[0]) &&
	    !command_stands_alone(cli->set, cli->options->operands[0])) {
		help_print_noun(cli->set, cli->options->operands[0]);
		return true;
	}
	if (cli->options->operand_count > 0) {
		if (!command_find(cli->set, (int)cli->options->operand_count,
				  (char *const *)cli->options->operands, &command, &words, error))
			return false;
		if (words < (int)cli->options->operand_count)
			return no_such_command(cli->options->operands, command, error);
		if (words == 1 && command->verb)
			help_print_noun(cli->set, command->noun);
		else
			help_print_command(cli->set, command, true);
		return true;
	}
	if (format && str_equal(format, "man"))
		help_man(&text, cli->set);
	else if (format && str_equal(format, "markdown"))
		help_markdown(&text, cli->set);
	else if (format && str_equal(format, "json"))
		help_json(&text, cli->set);
	else
		help_all(&text, cli->set);
	output_text(&text);
	return true;
}

static const char *const FORMATS[] = {"text", "man", "markdown", "json", NULL};

static const struct option HELP_OPTIONS[] = {
	{"format", 0, OPTION_TEXT, "FORMAT", "of all commands: text, man, markdown or json", 0, 0,
	 FORMATS},
	{0},
};

const struct command HELP_COMMANDS[] = {
	{
		.noun = "help",
		.summary = "show all commands, or one",
		.operands = "COMMAND",
		.max_operands = 2,
		.flags = COMMAND_DAILY,
		.options = HELP_OPTIONS,
		.example = "better-compute help pools create\n",
		.run = run_help,
	},
	{0},
};
