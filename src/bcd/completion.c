#include "bcd/verbs.h"

#include "cli/shells.h"

#include <stdio.h>

static void offer_verbs(const struct shells_words *at)
{
	for (size_t i = 0; VERBS[i]; i++)
		shells_offer(at, VERBS[i]->name, VERBS[i]->summary);
}

/* "init PRESET | show": init, show. */
static void offer_operands(const struct shells_words *at, const char *operands)
{
	CLEANUP(arena) struct arena arena = {0};

	while (*operands) {
		const char *word = operands + strspn(operands, " |");

		shells_offer(at, arena_strndup(&arena, word, strcspn(word, " |")), NULL);
		operands = word + strcspn(word, "|");
	}
}

/* Its verb, NULL if it has none yet, and where what follows begins; options may stand before it. False:
 * there is no such verb. */
static bool find_verb(const struct shells_words *at, const struct verb **ret_verb,
		      size_t *ret_first)
{
	*ret_verb = NULL;
	*ret_first = 0;
	for (size_t i = 0; i + 1 < at->count; i++) {
		if (str_equal(at->words[i], "--config")) {
			i++;
		} else if (at->words[i][0] != '-') {
			*ret_first = i + 1;
			return (*ret_verb = verb_find(at->words[i])) != NULL;
		}
	}
	return true;
}

static void complete(struct shells_words *at)
{
	CLEANUP(arena) struct arena arena = {0};
	const struct option *tables[] = {VERB_TOP_OPTIONS, VERB_COMMON_OPTIONS}, *option = NULL;
	const struct verb *verb;
	size_t first;

	if (!find_verb(at, &verb, &first))
		return;
	if (verb)
		tables[0] = verb->options;
	shells_split_value(at, &arena);
	if (at->count >= 2)
		option = shells_option(tables, ARRAY_SIZE(tables), at->words[at->count - 2]);
	if (option)
		(void)shells_offer_choices(at, option); /* else it is a file's name */
	else if (at->word[0] == '-')
		shells_offer_options(at, tables, ARRAY_SIZE(tables));
	else if (!verb)
		offer_verbs(at);
	else if (shells_count_operands(at, first, tables, ARRAY_SIZE(tables)) == 0)
		offer_operands(at, verb->operands);
}

static int run(const struct options *options)
{
	const char *what = options->operands[0];
	CLEANUP(buf) struct buf script = {0};
	struct shells_words at;
	struct error error;

	if (str_equal(what, "words")) {
		if (shells_words(options->operands + 1, options->operand_count - 1, &at))
			complete(&at);
		return EXIT_DONE;
	}
	if (!shells_script(what, "bcd", &script, &error))
		return verb_fail(&error, EXIT_USAGE);
	fputs(buf_text(&script), stdout);
	return EXIT_DONE;
}

static const struct option options_table[] = {{0}};

const struct verb COMPLETION_VERB = {
	.name = "completion",
	.summary = "print the completion script of a shell",
	.operands = SHELLS,
	.min_operands = 1,
	.max_operands = SHELLS_MAX_WORDS,
	.options = options_table,
	.more = "Example:\n  source <(bcd completion bash)\n  bcd completion fish | source\n",
	.run = run,
};
