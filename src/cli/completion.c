/*
 * completion: the shells ask us: `completion words -- WORD...` prints what the last word may
 * become, from the command tables and from what is there now. The scripts are a few lines each.
 */
#include "cli/commands.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/view.h"

#define LIVE_TIMEOUT_MS 1000 /* a person waits at the Tab key */

static const char BASH[] =
	"_better_compute() {\n"
	"\tlocal IFS=$'\\n'\n"
	"\tCOMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" completion words -- "
	"\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
	"}\n"
	"complete -o default -F _better_compute better-compute\n";

static const char ZSH[] =
	"#compdef better-compute\n"
	"_better_compute() {\n"
	"\tlocal -a found\n"
	"\tfound=(${(f)\"$(${words[1]} completion words -- \"${(@)words[2,CURRENT]}\" "
	"2>/dev/null)\"})\n"
	"\tif (( $#found )); then compadd -a found; else _files; fi\n"
	"}\n"
	"compdef _better_compute better-compute\n";

static const char FISH[] =
	"complete -c better-compute -f -a '(set -l words (commandline -opc); "
	"better-compute completion words -- $words[2..] (commandline -ct) 2>/dev/null)'\n";

static void offer(const char *candidate, const char *word)
{
	if (str_starts(candidate, word))
		puts(candidate);
}

/* The first words of commands, or the second words of a noun; each once. */
static void offer_commands(const struct command_set *set, const char *noun, const char *word)
{
	const char *last = "";

	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			if (row->flags & COMMAND_HIDDEN)
				continue;
			if (noun && row->verb && str_equal(row->noun, noun))
				offer(row->verb, word);
			if (!noun && !str_equal(row->noun, last))
				offer(row->noun, word);
			last = row->noun;
		}
	}
}

static void offer_options(const struct command *command, const char *word)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	size_t count = command_tables(command, tables);

	for (size_t i = 0; i < count; i++) {
		for (const struct option *row = tables[i]; row->name; row++) {
			CLEANUP(buf) struct buf text = {0};
			buf_printf(&text, "--%s", row->name);
			offer(buf_text(&text), word);
		}
	}
}

static const struct option *find_option(const struct command *command, const char *word)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	size_t count = command_tables(command, tables);

	for (size_t i = 0; i < count; i++) {
		for (const struct option *row = tables[i]; row->name; row++) {
			if (row->kind != OPTION_FLAG && str_starts(word, "--") &&
			    str_equal(word + 2, row->name))
				return row;
			if (row->kind != OPTION_FLAG && row->letter && word[0] == '-' &&
			    word[1] == row->letter && !word[2])
				return row;
		}
	}
	return NULL;
}

static bool noun_of(enum command_names names, enum noun_kind *ret_kind)
{
	static const struct {
		enum command_names names;
		enum noun_kind kind;
	} KINDS[] = {
		{COMMAND_NAMES_TENANTS, NOUN_TENANT},
		{COMMAND_NAMES_SITES, NOUN_SITE},
		{COMMAND_NAMES_POOLS, NOUN_POOL},
		{COMMAND_NAMES_NODES, NOUN_NODE},
		{COMMAND_NAMES_JOIN_TOKENS, NOUN_JOIN_TOKEN},
		{COMMAND_NAMES_RESERVATIONS, NOUN_RESERVATION},
		{COMMAND_NAMES_KEYS, NOUN_KEY},
	};

	for (size_t i = 0; i < ARRAY_SIZE(KINDS); i++) {
		if (KINDS[i].names != names)
			continue;
		*ret_kind = KINDS[i].kind;
		return true;
	}
	return false;
}

static enum command_names names_of_option(const struct option *option)
{
	return str_equal(option->name, "pool")     ? COMMAND_NAMES_POOLS
	       : str_equal(option->name, "tenant") ? COMMAND_NAMES_TENANTS
	       : str_equal(option->name, "site")   ? COMMAND_NAMES_SITES
						   : COMMAND_NAMES_NONE;
}

/* Ids and names that are there now; nothing when the control plane doesn't answer soon. */
static void offer_live(struct cli *cli, enum command_names names, const char *word)
{
	const struct option *tables[] = {COMMAND_API_OPTIONS};
	CLEANUP(options) struct options none = {0};
	CLEANUP(tree) json_t *items = NULL;
	struct error ignored; /* no candidates then */
	enum noun_kind kind;
	size_t index;
	json_t *item;

	if (!noun_of(names, &kind) || !options_parse(tables, 1, 0, NULL, &none, &ignored) ||
	    !context_load(&none, &cli->arena, &cli->context, &ignored))
		return;
	cli->api = api_create(&cli->context);
	api_set_timeout(cli->api, LIVE_TIMEOUT_MS);
	if (!api_list(cli->api, noun_get(kind)->path, NULL, &items, &ignored))
		return;
	json_array_foreach(items, index, item)
	{
		const char *key = noun_get(kind)->name_key;
		const char *id = view_text(item, "id"), *name = key ? view_text(item, key) : NULL;
		if (name)
			offer(name, word);
		if (id && (!name || word[0]))
			offer(id, word);
	}
}

static void complete(struct cli *cli, size_t count, const char *const *words)
{
	const char *word = count ? words[count - 1] : "";
	const struct command *command;
	struct error ignored; /* an unknown command has no candidates */
	int used;

	if (count <= 1) {
		offer_commands(cli->set, NULL, word);
		return;
	}
	if (!command_find(cli->set, (int)count - 1, (char *const *)words, &command, &used,
			  &ignored)) {
		offer_commands(cli->set, words[0], word);
		return;
	}
	const struct option *option = find_option(command, words[count - 2]);
	if (option && option->choices) {
		for (size_t i = 0; option->choices[i]; i++)
			offer(option->choices[i], word);
	} else if (option) {
		offer_live(cli, names_of_option(option), word);
	} else if (word[0] == '-') {
		offer_options(command, word);
	} else {
		if (count == 2)
			offer_commands(cli->set, words[0], word);
		if (used == 2 || !command->verb)
			offer_live(cli, command->names, word);
	}
}

static bool run(struct cli *cli, struct error *error)
{
	const struct options *options = cli->options;
	const char *what = options->operands[0];

	if (str_equal(what, "bash"))
		fputs(BASH, stdout);
	else if (str_equal(what, "zsh"))
		fputs(ZSH, stdout);
	else if (str_equal(what, "fish"))
		fputs(FISH, stdout);
	else if (str_equal(what, "words"))
		complete(cli, options->operand_count - 1, options->operands + 1);
	else
		return error_set(error, ERROR_INVALID_INPUT,
				 "no completion for '%s': bash, zsh or fish", what);
	return true;
}

const struct command COMPLETION_COMMANDS[] = {
	{
		.noun = "completion",
		.summary = "print the completion script of a shell",
		.operands = "bash|zsh|fish",
		.min_operands = 1,
		.max_operands = COMMAND_MANY,
		.more = "Completes commands, options, and the ids and names that are there now.",
		.example = "source <(better-compute completion bash)\n",
		.run = run,
	},
	{0},
};
