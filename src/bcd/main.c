#include "bcd/verbs.h"

#include "cli/man.h"
#include "cli/output.h"
#include "sys/answer.h"
#include "text/suggest.h"

#include <stdio.h>

const struct verb *const VERBS[] = {&JOIN_VERB, &NODE_VERB,       &STATUS_VERB,
				    &SIM_VERB,  &COMPLETION_VERB, NULL};
#define VERB_COUNT (ARRAY_SIZE(VERBS) - 1)

const struct option VERB_COMMON_OPTIONS[] = {
	{.name = "config",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "bcd's configuration (" CONFIG_DEFAULT_PATH ")"},
	{.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "show this"},
	{0},
};

const struct option VERB_TOP_OPTIONS[] = {
	{.name = "version", .kind = OPTION_FLAG, .help = "print the version"},
	{.name = "man", .kind = OPTION_FLAG, .help = "print the manual page, bcd(8)"},
	{0},
};

static int print_help(void)
{
	CLEANUP(buf) struct buf text = {0};

	buf_add_text(&text, "bcd lends this machine's GPUs to its kubelet, as booked\n\n"
			    "  bcd [--config FILE] VERB ...\n\n");
	for (size_t i = 0; i < VERB_COUNT; i++)
		buf_printf(&text, "  %-10s %s\n", VERBS[i]->name, VERBS[i]->summary);
	buf_add_char(&text, '\n');
	options_help(&text, VERB_COMMON_OPTIONS);
	options_help(&text, VERB_TOP_OPTIONS);
	buf_add_text(&text, "\nExample:\n  bcd status\n  bcd node --help\n");
	fputs(buf_text(&text), stdout);
	return EXIT_DONE;
}

static int print_verb_help(const struct verb *verb)
{
	CLEANUP(buf) struct buf text = {0};

	buf_printf(&text, "bcd %s: %s\n\n  bcd %s%s%s [options]\n\n", verb->name, verb->summary,
		   verb->name, *verb->operands ? " " : "", verb->operands);
	options_help(&text, verb->options);
	options_help(&text, VERB_COMMON_OPTIONS);
	if (*verb->more)
		buf_printf(&text, "\n%s", verb->more);
	fputs(buf_text(&text), stdout);
	return EXIT_DONE;
}

static void man_verb(struct buf *out, const struct verb *verb)
{
	CLEANUP(buf) struct buf usage = {0};

	buf_printf(&usage, "bcd %s%s%s [options]", verb->name, *verb->operands ? " " : "",
		   verb->operands);
	man_title(out, ".SS", buf_text(&usage));
	buf_clear(&usage);
	buf_printf(&usage, "%s.", verb->summary);
	man_text(out, buf_text(&usage));
	if (*verb->more)
		man_lines(out, verb->more);
	man_options(out, verb->options);
}

static int print_man(void)
{
	CLEANUP(buf) struct buf text = {0};

	man_head(&text, "bcd", 8, "lend this machine's GPUs to its kubelet, as booked");
	man_title(&text, ".SH", "SYNOPSIS");
	man_text(&text, "bcd [--config FILE] VERB ...");
	man_title(&text, ".SH", "VERBS");
	for (size_t i = 0; i < VERB_COUNT; i++)
		man_verb(&text, VERBS[i]);
	man_title(&text, ".SH", "COMMON OPTIONS");
	man_options(&text, VERB_COMMON_OPTIONS);
	man_title(&text, ".SH", "FILES");
	man_item(&text, CONFIG_DEFAULT_PATH, "The configuration, unless --config names another.");
	buf_add_text(&text, ".SH SEE ALSO\n.BR better-compute (1)\n");
	output_man(&text, "bcd");
	return EXIT_DONE;
}

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (str_equal(name, VERBS[i]->name))
			return VERBS[i];
	}
	return NULL;
}

static int unknown_verb(const char *name)
{
	const char *names[VERB_COUNT], *nearest;
	struct error error;

	for (size_t i = 0; i < VERB_COUNT; i++)
		names[i] = VERBS[i]->name;
	nearest = suggest_nearest(name, names, ARRAY_SIZE(names));
	error_set(&error, ERROR_INVALID_INPUT,
		  nearest ? "unknown verb '%.40s' (did you mean '%s'?)" : "unknown verb '%.40s'",
		  name, nearest);
	error_hint(&error, "See bcd --help.");
	return verb_fail(&error, EXIT_USAGE);
}

/* Options may stand before the verb: the first word that isn't one, nor --config's value, is it. */
static int find_verb(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (str_equal(argv[i], "--config"))
			i++;
		else if (argv[i][0] != '-')
			return i;
	}
	return 0;
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
	const struct option *tables[] = {verb->options, VERB_COMMON_OPTIONS};
	CLEANUP(options) struct options options = {0};
	struct error error;

	if (!options_parse(tables, ARRAY_SIZE(tables), argc, argv, &options, &error)) {
		if (!*error.hint)
			error_hint(&error, "See bcd %s --help.", verb->name);
		return verb_fail(&error, EXIT_USAGE);
	}
	if (options_given(&options, "help"))
		return print_verb_help(verb);
	if (options.operand_count < verb->min_operands ||
	    options.operand_count > verb->max_operands) {
		error_set(&error, ERROR_INVALID_INPUT, "bcd %s takes %s", verb->name,
			  *verb->operands ? verb->operands : "no operands");
		error_hint(&error, "See bcd %s --help.", verb->name);
		return verb_fail(&error, EXIT_USAGE);
	}
	return verb->run(&options);
}

static int run_without_verb(int argc, char **argv)
{
	const struct option *tables[] = {VERB_TOP_OPTIONS, VERB_COMMON_OPTIONS};
	CLEANUP(options) struct options options = {0};
	struct error error;

	if (!options_parse(tables, ARRAY_SIZE(tables), argc - 1, argv + 1, &options, &error))
		return verb_fail(&error, EXIT_USAGE);
	if (options_given(&options, "version")) {
		printf("bcd %s (release sequence %d)\n", BC_VERSION, BC_RELEASE_SEQUENCE);
		return EXIT_DONE;
	}
	if (options_given(&options, "man"))
		return print_man();
	print_help();
	return options_given(&options, "help") ? EXIT_DONE : EXIT_USAGE;
}

/* `bcd help`, `bcd help status`: as --help says it, and with any option that every verb has. */
static int run_help(int argc, char **argv)
{
	const struct option *tables[] = {VERB_COMMON_OPTIONS};
	CLEANUP(options) struct options options = {0};
	const struct verb *verb;
	struct error error;

	if (!options_parse(tables, ARRAY_SIZE(tables), argc, argv, &options, &error)) {
		error_hint(&error, "See bcd --help.");
		return verb_fail(&error, EXIT_USAGE);
	}
	if (options.operand_count == 0 || str_equal(options.operands[0], "help"))
		return print_help();
	verb = verb_find(options.operands[0]);
	return verb ? print_verb_help(verb) : unknown_verb(options.operands[0]);
}

static int run(int argc, char **argv)
{
	int at = find_verb(argc, argv);
	const struct verb *verb;

	if (at == 0)
		return run_without_verb(argc, argv);
	if (at == 1 && str_equal(argv[at], NVML_VERB.name))
		return run_verb(&NVML_VERB, argc - 2, argv + 2);
	const char *word = argv[at];
	verb = verb_find(word);
	if (!verb && !str_equal(word, "help"))
		return unknown_verb(word);
	/* the verb's word goes, what stood before it stays an option */
	memmove(&argv[1 + 1], &argv[1], (size_t)(at - 1) * sizeof *argv);
	return verb ? run_verb(verb, argc - 2, argv + 2) : run_help(argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
	struct error error;
	int status;

	answer_begin();
	status = run(argc, argv);
	if (answer_flush(&error))
		return status;
	return verb_fail(&error, status ? status : EXIT_FAILED);
}
