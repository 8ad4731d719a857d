#include "cli/cli.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/refusal.h"
#include "sys/answer.h"
#include "sys/clock.h"
#include "text/suggest.h"

#include <unistd.h>

#define MAX_COMMANDS 128

static const char *const OUTPUTS[] = {"table", "wide", "json", "yaml", "name", NULL};

static const struct option COMMON_OPTIONS[] = {
	{"help", 'h', OPTION_FLAG, NULL, "show this help", 0, 0, NULL},
	{"verbose", 'v', OPTION_FLAG, NULL, "with errors: the code and the request's id", 0, 0,
	 NULL},
	{0},
};

const struct option COMMAND_API_OPTIONS[] = {
	{"state", 0, OPTION_TEXT, "DIR", "the state folder of better-compute up", 0, 0, NULL},
	{"api", 0, OPTION_TEXT, "URL", "the control plane's address", 0, 0, NULL},
	{"key-file", 0, OPTION_TEXT, "FILE", "file with the API key, mode 0600", 0, 0, NULL},
	{"ca-file", 0, OPTION_TEXT, "FILE", "the authority that signed its certificate", 0, 0,
	 NULL},
	{0},
};

static const struct option OUTPUT_OPTIONS[] = {
	{"output", 'o', OPTION_TEXT, "FORMAT", "table, wide, json, yaml or name", 0, 0, OUTPUTS},
	{0},
};

/* What has no ids has no names: nothing, and status 0, would be no answer. */
static const char *const OUTPUTS_WITHOUT_NAME[] = {"table", "wide", "json", "yaml", NULL};

static const struct option ANSWER_OPTIONS[] = {
	{"output", 'o', OPTION_TEXT, "FORMAT", "table, wide, json or yaml", 0, 0,
	 OUTPUTS_WITHOUT_NAME},
	{0},
};

static const struct option CREATES_OPTIONS[] = {
	{"idempotency-key", 0, OPTION_TEXT, "KEY", "the same key again gives the first result", 0,
	 0, NULL},
	{0},
};

static const struct option CHANGES_OPTIONS[] = {
	{"dry-run", 0, OPTION_FLAG, NULL, "say what would be done, change nothing", 0, 0, NULL},
	{"exit-code", 0, OPTION_FLAG, NULL, "with --dry-run: 6 when something would change", 0, 0,
	 NULL},
	{0},
};

static const struct option ASKS_OPTIONS[] = {
	{"yes", 'y', OPTION_FLAG, NULL, "don't ask", 0, 0, NULL},
	{0},
};

size_t command_tables(const struct command *command,
		      const struct option *ret_tables[COMMAND_MAX_TABLES])
{
	static const struct {
		unsigned flag;
		const struct option *table;
	} BY_FLAG[] = {
		{COMMAND_CREATES, CREATES_OPTIONS},
		{COMMAND_CHANGES, CHANGES_OPTIONS},
		{COMMAND_ASKS, ASKS_OPTIONS},
		{COMMAND_OUTPUT, OUTPUT_OPTIONS},
		{COMMAND_ANSWER, ANSWER_OPTIONS},
		{COMMAND_API | COMMAND_CONTEXT, COMMAND_API_OPTIONS},
	};
	size_t count = 0;

	if (command->options)
		ret_tables[count++] = command->options;
	for (size_t i = 0; i < ARRAY_SIZE(BY_FLAG); i++) {
		if (command->flags & BY_FLAG[i].flag)
			ret_tables[count++] = BY_FLAG[i].table;
	}
	ret_tables[count++] = COMMON_OPTIONS;
	assert(count <= COMMAND_MAX_TABLES);
	return count;
}

void command_name(struct buf *out, const struct command *command)
{
	buf_printf(out, "%s%s%s", command->noun, command->verb ? " " : "",
		   command->verb ? command->verb : "");
}

/* The row of this noun that `verb` (NULL: none was given) means. */
static const struct command *find_row(const struct command_set *set, const char *noun,
				      const char *verb)
{
	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			if (!str_equal(row->noun, noun))
				continue;
			if (!row->verb || (verb && str_equal(row->verb, verb)) ||
			    (!verb && (row->flags & COMMAND_DEFAULT)))
				return row;
		}
	}
	return NULL;
}

bool command_stands_alone(const struct command_set *set, const char *noun)
{
	return find_row(set, noun, NULL) != NULL;
}

bool command_is_noun(const struct command_set *set, const char *noun)
{
	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++)
			if (str_equal(row->noun, noun))
				return true;
	}
	return false;
}

/* Then a word that is none of its verbs may be one of its things. */
static bool shows_one(const struct command_set *set, const char *noun)
{
	const struct command *row = find_row(set, noun, "show");

	return row && row->min_operands == 1;
}

/* Names the nearest noun, or the nearest verb when the noun is right. */
static bool not_found(const struct command_set *set, const char *noun, const char *verb,
		      struct error *error)
{
	const char *nouns[MAX_COMMANDS], *verbs[MAX_COMMANDS];
	size_t noun_count = 0, verb_count = 0;
	CLEANUP(buf) struct buf known = {0}, meant = {0};

	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			assert(noun_count < MAX_COMMANDS);
			nouns[noun_count++] = row->noun;
			if (!row->verb || !str_equal(row->noun, noun))
				continue;
			buf_printf(&known, "%s%s", verb_count ? ", " : "", row->verb);
			verbs[verb_count++] = row->verb;
		}
	}
	if (command_meant(set, noun, verb, &meant)) {
		error_set(error, ERROR_INVALID_INPUT,
			  "unknown command '%s%s%s' (did you mean '%s'?)", noun, verb ? " " : "",
			  verb ? verb : "", buf_text(&meant));
		return verb_count > 0 ? error_hint(error, "%s can: %s", noun, buf_text(&known))
				      : error_hint(error, "All commands: better-compute help");
	}
	if (verb_count == 0 && command_is_verb(noun)) {
		error_set(error, ERROR_INVALID_INPUT, "unknown command '%s'", noun);
		return error_hint(error, "The thing comes first, as in 'pools list'. All commands: "
					 "better-compute help");
	}
	if (verb_count == 0 && command_of_verb(set, noun, &meant) > 0) {
		error_set(error, ERROR_INVALID_INPUT, "unknown command '%s' (did you mean %s?)",
			  noun, buf_text(&meant));
		return error_hint(error, "All commands: better-compute help");
	}
	if (verb_count == 0) {
		const char *nearest = suggest_nearest(noun, nouns, noun_count);
		error_set(error, ERROR_INVALID_INPUT,
			  nearest ? "unknown command '%s' (did you mean '%s'?)"
				  : "unknown command '%s'",
			  noun, nearest);
		return error_hint(error, "All commands: better-compute help");
	}
	const char *nearest = verb ? suggest_nearest(verb, verbs, verb_count) : NULL;
	if (nearest)
		error_set(error, ERROR_INVALID_INPUT,
			  "unknown command '%s %s' (did you mean '%s %s'?)", noun, verb, noun,
			  nearest);
	else if (verb && shows_one(set, noun))
		error_set(error, ERROR_INVALID_INPUT,
			  "unknown command '%s %s' (did you mean '%s show %s'?)", noun, verb, noun,
			  verb);
	else if (verb)
		error_set(error, ERROR_INVALID_INPUT, "unknown command '%s %s'", noun, verb);
	else
		error_set(error, ERROR_INVALID_INPUT, "'%s' needs a verb", noun);
	return error_hint(error, "%s can: %s", noun, buf_text(&known));
}

bool command_find(const struct command_set *set, int argc, char *const *argv,
		  const struct command **ret_command, int *ret_words, struct error *error)
{
	const char *verb = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
	const struct command *row = find_row(set, argv[0], verb);

	if (!row)
		return not_found(set, argv[0], verb, error);
	*ret_command = row;
	*ret_words = row->verb && verb ? 2 : 1;
	return true;
}

static bool check_operands(const struct command *command, const struct options *options,
			   struct error *error)
{
	int count = (int)options->operand_count;

	if (count < command->min_operands) {
		const char *missing = command->operands;

		for (int i = 0; i < count && strchr(missing, ' '); i++)
			missing = strchr(missing, ' ') + 1; /* those before it are given */
		return error_set(error, ERROR_INVALID_INPUT, "%s is missing", missing);
	}
	if (command->max_operands != COMMAND_MANY && count > command->max_operands)
		return error_set(error, ERROR_INVALID_INPUT, "'%s' is one word too many",
				 options->operands[command->max_operands]);
	return true;
}

static enum cli_output read_output(const struct cli *cli)
{
	const char *text = cli->command->flags & (COMMAND_OUTPUT | COMMAND_ANSWER)
				   ? options_text(cli->options, "output")
				   : NULL;

	for (int i = 0; text && OUTPUTS[i]; i++) {
		if (str_equal(OUTPUTS[i], text))
			return (enum cli_output)i;
	}
	return CLI_TABLE;
}

/* By itself it would be taken for a dry run that did what it was asked about. */
static bool check_exit_code(const struct cli *cli, struct error *error)
{
	if (!(cli->command->flags & COMMAND_CHANGES) ||
	    options_need(cli->options, "exit-code", "dry-run", error))
		return true;
	return error_hint(error, "Nothing was changed. Say --dry-run --exit-code to ask whether "
				 "something would.");
}

static bool run(struct cli *cli, struct error *error)
{
	if (!check_exit_code(cli, error))
		return false;
	if (cli->command->check && !cli->command->check(cli, error))
		return false;
	if (cli->command->flags & COMMAND_API) {
		if (!context_load(cli->options, &cli->arena, &cli->context, error))
			return false;
		cli->api = api_create(&cli->context);
	}
	return cli->command->run(cli, error);
}

int command_leading_options(int argc, char *const *argv)
{
	int at = 0;

	while (at < argc && argv[at][0] == '-') {
		bool value_follows = false;
		for (const struct option *row = COMMAND_API_OPTIONS; row->name; row++)
			value_follows |=
				str_starts(argv[at], "--") && str_equal(argv[at] + 2, row->name);
		value_follows |= str_equal(argv[at], "-o") || str_equal(argv[at], "--output");
		at += value_follows ? 2 : 1;
	}
	return at < argc ? at : argc;
}

/* Options and no command behind them. */
static bool no_command(int argc, char **argv, struct options *ret_options, struct error *error)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	const struct command any = {.flags = COMMAND_API | COMMAND_OUTPUT};

	if (options_parse(tables, command_tables(&any, tables), argc, argv, ret_options, error))
		error_set(error, ERROR_INVALID_INPUT, "a command is missing");
	return error->hint[0] ? false : error_hint(error, "All commands: better-compute help");
}

static bool read_arguments(struct cli *cli, int argc, char **argv, struct options *ret_options,
			   int *ret_words, struct error *error)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	int leading = command_leading_options(argc, argv), words;
	CLEANUP(free) char **rest = mem_alloc(((size_t)argc + 1) * sizeof *rest);
	int count = 0;

	if (leading == argc)
		return no_command(argc, argv, ret_options, error);
	if (!command_find(cli->set, argc - leading, argv + leading, &cli->command, &words, error))
		return false;
	*ret_words = words;
	for (int i = 0; i < argc; i++) {
		if (i < leading || i >= leading + words)
			rest[count++] = argv[i];
	}
	if (options_parse(tables, command_tables(cli->command, tables), count, rest, ret_options,
			  error))
		return true;
	CLEANUP(buf) struct buf name = {0};
	command_name(&name, cli->command);
	return error->hint[0] ? false
			      : error_hint(error, "See: better-compute %s --help", buf_text(&name));
}

static int finish(struct cli *cli, bool ok, const struct error *error)
{
	struct error said = *error, lost;
	bool told = answer_flush(&lost);
	int status = ok ? cli->exit_status : error_exit_status(error->code);

	refusal_name_option(cli, &said);
	if (!ok || !told)
		output_error(cli, ok ? &lost : &said, cli->api ? api_request_id(cli->api) : "");
	if (ok && !told)
		status = 1;
	api_destroy(cli->api);
	arena_deinit(&cli->arena);
	return status;
}

/* Without a command: that of all of them. */
static bool wants_help(int argc, char **argv)
{
	bool wanted = argc == 0;

	if (command_leading_options(argc, argv) < argc)
		return false;
	for (int i = 0; i < argc; i++)
		wanted |= str_equal(argv[i], "-h") || str_equal(argv[i], "--help");
	return wanted;
}

/* `kubernetes --help`: of a noun that means nothing alone. */
static bool asks_about_noun(const struct command_set *set, int argc, char **argv)
{
	return argc == 2 && (str_equal(argv[1], "-h") || str_equal(argv[1], "--help")) &&
	       !command_stands_alone(set, argv[0]) && command_is_noun(set, argv[0]);
}

int command_main(const struct command_set *set, int argc, char **argv)
{
	struct cli cli = {.set = set, .now = clock_wall()};
	CLEANUP(options) struct options options = {0};
	struct error error = {0};
	int words;
	bool ok;

	answer_begin();
	argc--, argv++;
	if (wants_help(argc, argv)) {
		help_print_daily(set);
		return finish(&cli, true, &error);
	}
	if (str_equal(argv[0], "--version")) {
		puts("better-compute " BC_VERSION);
		return finish(&cli, true, &error);
	}
	if (str_equal(argv[0], "--man")) {
		help_print_man(set);
		return finish(&cli, true, &error);
	}
	if (asks_about_noun(set, argc, argv)) {
		help_print_noun(set, argv[0]);
		return finish(&cli, true, &error);
	}
	if (!read_arguments(&cli, argc, argv, &options, &words, &error))
		return finish(&cli, false, &error);
	cli.options = &options;
	cli.output = read_output(&cli);
	cli.verbose = options_given(&options, "verbose");
	if (options_given(&options, "help")) {
		help_print_command(set, cli.command, words == 2 || !cli.command->verb);
		return finish(&cli, true, &error);
	}
	ok = check_operands(cli.command, &options, &error);
	if (!ok) {
		CLEANUP(buf) struct buf name = {0};
		command_name(&name, cli.command);
		error_hint(&error, "See: better-compute %s --help", buf_text(&name));
	}
	return finish(&cli, ok && run(&cli, &error), &error);
}
