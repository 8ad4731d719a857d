/*
 * completion: what the last word may become (shells.h), from the command tables and from what is there
 * now.
 */
#include "cli/commands.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/shells.h"
#include "cli/view.h"

#define LIVE_TIMEOUT_MS 1000 /* a person waits at the Tab key */
#define LIVE_MOST       2000 /* a terminal shows no more */

struct request {
	struct cli *cli;
	const char *const *all; /* the words, without the program's name */
	size_t all_count;
	struct shells_words at; /* from the command on */
};

/* Is it the first row of its noun? The verbs of one noun may stand in two tables. */
static bool first_of_noun(const struct command_set *set, const struct command *command)
{
	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			if (str_equal(row->noun, command->noun))
				return row == command;
		}
	}
	return false;
}

/* The first words of commands, or the second words of a noun; each once. */
static void offer_commands(const struct request *request, const char *noun)
{
	const struct command_set *set = request->cli->set;

	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			if (row->flags & COMMAND_HIDDEN)
				continue;
			if (noun && row->verb && str_equal(row->noun, noun))
				shells_offer(&request->at, row->verb, row->summary);
			if (!noun && first_of_noun(set, row))
				shells_offer(&request->at, row->noun, row->summary);
		}
	}
}

/* The option of `command` that `word` is, when a value follows it. */
static const struct option *find_option(const struct command *command, const char *word)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	size_t count = command_tables(command, tables);

	return shells_option(tables, count, word);
}

static void offer_options(const struct request *request, const struct command *command)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	size_t count = command_tables(command, tables);

	shells_offer_options(&request->at, tables, count);
}

/* --state, --api and such among the words say where to ask. */
static bool load_context(struct request *request)
{
	const struct option *tables[] = {COMMAND_API_OPTIONS};
	struct command api = {.flags = COMMAND_API};
	CLEANUP(options) struct options options = {0};
	struct error ignored; /* no candidates then */
	char *words[SHELLS_MAX_WORDS];
	int count = 0;

	for (size_t i = 0; i + 1 < request->all_count; i++) {
		const char *word = request->all[i];
		size_t length = strcspn(word, "=");
		CLEANUP(free) char *name = mem_dup(word, length + 1);
		name[length] = '\0';
		if (!find_option(&api, name))
			continue;
		words[count++] = (char *)word;
		if (!word[length] && i + 2 < request->all_count)
			words[count++] = (char *)request->all[++i];
	}
	return options_parse(tables, 1, count, words, &options, &ignored) &&
	       context_load(&options, &request->cli->arena, &request->cli->context, &ignored);
}

static const char *about(struct cli *cli, enum noun_kind kind, const json_t *item)
{
	const char *state = view_text(item, "state");

	if (kind == NOUN_RESERVATION)
		return arena_printf(&cli->arena, "%s, %s", state ? state : "?",
				    view_booking(&cli->arena, item));
	if (kind == NOUN_NODE)
		return arena_printf(&cli->arena, "%s, %s", state ? state : "?",
				    view_gpus(&cli->arena, item));
	return state ? state : view_text(item, "role");
}

/* Ids and names that are there now; nothing when the control plane doesn't answer soon. */
static void offer_live(struct request *request, enum noun_kind kind, bool changes)
{
	struct cli *cli = request->cli;
	CLEANUP(tree) json_t *items = NULL;
	struct error ignored; /* no candidates then */
	size_t index;
	json_t *item;
	bool more;

	if (kind == NOUN_NONE || !load_context(request))
		return;
	cli->api = api_create(&cli->context);
	api_set_timeout(cli->api, LIVE_TIMEOUT_MS);
	const char *query = changes && kind == NOUN_RESERVATION ? "live=true" : NULL;
	if (!api_list_some(cli->api, noun_get(kind)->path, query, LIVE_MOST, &items, &more,
			   &ignored))
		return;
	json_array_foreach(items, index, item)
	{
		const char *key = noun_get(kind)->name_key;
		const char *id = view_text(item, "id"), *name = key ? view_text(item, key) : NULL;
		if (changes && view_over(item)) /* can't be changed any more */
			continue;
		if (name)
			shells_offer(&request->at, name, about(cli, kind, item));
		if (id && (!name || request->at.word[0]))
			shells_offer(&request->at, id, about(cli, kind, item));
	}
}

/* --pool, --tenant, --site, --key: the option is called as what it names. */
static enum noun_kind noun_of_option(const struct option *option)
{
	for (int kind = NOUN_NONE + 1; kind < NOUN_COUNT; kind++) {
		if (str_equal(noun_get((enum noun_kind)kind)->word, option->name))
			return (enum noun_kind)kind;
	}
	return NOUN_NONE;
}

static void offer_values(struct request *request, const struct option *option)
{
	if (!shells_offer_choices(&request->at, option))
		offer_live(request, noun_of_option(option), true);
}

/* Operands before the last word. */
static size_t count_operands(const struct request *request, const struct command *command, int used)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	size_t count = command_tables(command, tables);

	return shells_count_operands(&request->at, (size_t)used, tables, count);
}

static void offer_operands(struct request *request, const struct command *command, int used)
{
	bool many = command->max_operands == COMMAND_MANY && !strchr(command->operands, ' ');

	if (str_equal(command->noun, "help")) {
		if (request->at.count <= 3)
			offer_commands(request,
				       request->at.count == 3 ? request->at.words[1] : NULL);
		return;
	}
	if (request->at.count == 2)
		offer_commands(request, request->at.words[0]);
	if (command->verb && used != 2)
		return;
	if (command->operands && command->names == NOUN_NONE && strchr(command->operands, '|')) {
		if (count_operands(request, command, used) == 0)
			shells_offer_each(&request->at, command->operands);
		return;
	}
	if (many || (command->operands && count_operands(request, command, used) == 0))
		offer_live(request, command->flags & COMMAND_CREATES ? NOUN_NONE : command->names,
			   command->flags & COMMAND_CHANGES);
}

static void complete(struct request *request)
{
	const struct command *command;
	struct error ignored; /* an unknown command has no candidates */
	int used;

	if (request->at.count <= 1) {
		offer_commands(request, NULL);
		return;
	}
	if (!command_find(request->cli->set, (int)request->at.count - 1,
			  (char *const *)request->at.words, &command, &used, &ignored)) {
		offer_commands(request, request->at.words[0]);
		return;
	}
	shells_split_value(&request->at, &request->cli->arena);
	const struct option *option =
		find_option(command, request->at.words[request->at.count - 2]);
	if (option)
		offer_values(request, option);
	else if (request->at.word[0] == '-')
		offer_options(request, command);
	else
		offer_operands(request, command, used);
}

static void complete_words(struct cli *cli, size_t count, const char *const *words)
{
	struct request request = {.cli = cli, .all = words, .all_count = count};
	size_t leading;

	/* What follows options is completed as it would be without them. */
	leading = count ? (size_t)command_leading_options((int)count - 1, (char *const *)words) : 0;
	if (shells_words(words + leading, count - leading, &request.at))
		complete(&request);
}

static bool run(struct cli *cli, struct error *error)
{
	const struct options *options = cli->options;
	CLEANUP(buf) struct buf script = {0};

	if (str_equal(options->operands[0], "words")) {
		complete_words(cli, options->operand_count - 1, options->operands + 1);
		return true;
	}
	if (!shells_script(options->operands[0], "better-compute", &script, error))
		return false;
	output_text(&script);
	return true;
}

const struct command COMPLETION_COMMANDS[] = {
	{
		.noun = "completion",
		.summary = "print the completion script of a shell",
		.operands = SHELLS,
		.min_operands = 1,
		.max_operands = COMMAND_MANY,
		.more = "Completes commands, options, and the ids and names that are there now. In "
			"zsh: source <(better-compute completion zsh); in fish: better-compute "
			"completion fish | source.",
		.example = "source <(better-compute completion bash)\n",
		.run = run,
	},
	{0},
};
