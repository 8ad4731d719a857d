/*
 * completion: the shells ask us: `completion words -- WORD...` prints what the last word may
 * become, one a line with a tab and a description behind it, from the command tables and from what
 * is there now. The scripts are a few lines each.
 */
#include "cli/commands.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/view.h"

#define LIVE_TIMEOUT_MS 1000 /* a person waits at the Tab key */
#define LIVE_MOST       2000 /* a terminal shows no more */
#define MAX_WORDS       256

static const char BASH[] = "_better_compute() {\n"
			   "\tlocal found\n"
			   "\tmapfile -t found < <(\"${COMP_WORDS[0]}\" completion words -- "
			   "\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
			   "\tCOMPREPLY=(\"${found[@]%%$'\\t'*}\")\n"
			   "}\n"
			   "complete -o default -F _better_compute better-compute\n";

/* Sourced, or loaded by its file's name as one of zsh's completion functions. */
static const char ZSH[] =
	"#compdef better-compute\n"
	"_better_compute() {\n"
	"\tlocal -a found names\n"
	"\tfound=(${(f)\"$(${words[1]} completion words -- \"${(@)words[2,CURRENT]}\" "
	"2>/dev/null)\"})\n"
	"\tif (( ! $#found )); then _files; return; fi\n"
	"\tnames=(\"${(@)found%%$'\\t'*}\")\n"
	"\tfound=(\"${(@)found/$'\\t'/  }\")\n"
	"\tcompadd -l -d found -a names\n"
	"}\n"
	"if [[ $funcstack[1] = _better-compute ]]; then\n"
	"\t_better_compute \"$@\"\n"
	"else\n"
	"\tcompdef _better_compute better-compute\n"
	"fi\n";

static const char FISH[] =
	"function __better_compute\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l found ($words[1] completion words -- $words[2..] (commandline -ct) "
	"2>/dev/null)\n"
	"\tif test (count $found) -gt 0\n"
	"\t\tprintf '%s\\n' $found\n"
	"\telse\n"
	"\t\t__fish_complete_path (commandline -ct)\n"
	"\tend\n"
	"end\n"
	"complete -c better-compute -f -a '(__better_compute)'\n";

/* What is being completed. */
struct request {
	struct cli *cli;
	const char *const *all; /* the words, without the program's name */
	size_t all_count;
	const char *words[MAX_WORDS]; /* from the command on */
	size_t count;
	const char *word;   /* the last: what it begins with; "" for nothing yet */
	const char *before; /* what stands before each candidate: "--pool=" */
};

static void offer(const struct request *request, const char *candidate, const char *text)
{
	CLEANUP(free) char *about = mem_strdup(text ? text : "");

	if (!str_starts(candidate, request->word))
		return;
	table_sanitize(about);
	printf("%s%s%s%s\n", request->before, candidate, about[0] ? "\t" : "", about);
}

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
				offer(request, row->verb, row->summary);
			if (!noun && first_of_noun(set, row))
				offer(request, row->noun, row->summary);
		}
	}
}

static void offer_options(const struct request *request, const struct command *command)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	size_t count = command_tables(command, tables);

	for (size_t i = 0; i < count; i++) {
		for (const struct option *row = tables[i]; row->name; row++) {
			CLEANUP(buf) struct buf text = {0};
			buf_printf(&text, "--%s", row->name);
			offer(request, buf_text(&text), row->help);
		}
	}
}

/* The option that `word` is, when a value follows it. */
static const struct option *find_option(const struct command *command, const char *word)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	size_t count = command_tables(command, tables);

	for (size_t i = 0; i < count; i++) {
		for (const struct option *row = tables[i]; row->name; row++) {
			if (row->kind == OPTION_FLAG)
				continue;
			if (str_starts(word, "--") && str_equal(word + 2, row->name))
				return row;
			if (row->letter && word[0] == '-' && word[1] == row->letter && !word[2])
				return row;
		}
	}
	return NULL;
}

/* --state, --api and such among the words say where to ask. */
static bool load_context(struct request *request)
{
	const struct option *tables[] = {COMMAND_API_OPTIONS};
	struct command api = {.flags = COMMAND_API};
	CLEANUP(options) struct options options = {0};
	struct error ignored; /* no candidates then */
	char *words[MAX_WORDS];
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
			offer(request, name, about(cli, kind, item));
		if (id && (!name || request->word[0]))
			offer(request, id, about(cli, kind, item));
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
	for (size_t i = 0; option->choices && option->choices[i]; i++)
		offer(request, option->choices[i], NULL);
	if (!option->choices)
		offer_live(request, noun_of_option(option), true);
}

/* Operands before the last word. */
static size_t count_operands(const struct request *request, const struct command *command, int used)
{
	size_t count = 0;

	for (size_t i = (size_t)used; i + 1 < request->count; i++) {
		if (request->words[i][0] != '-')
			count++;
		else if (find_option(command, request->words[i]))
			i++;
	}
	return count;
}

/* "bash|zsh|fish": the operand is one of these words. */
static void offer_words(const struct request *request, const char *words)
{
	for (size_t length; *words; words += length + (words[length] == '|')) {
		length = strcspn(words, "|");
		offer(request, arena_strndup(&request->cli->arena, words, length), NULL);
	}
}

static void offer_operands(struct request *request, const struct command *command, int used)
{
	bool many = command->max_operands == COMMAND_MANY && !strchr(command->operands, ' ');

	if (str_equal(command->noun, "help")) {
		if (request->count <= 3)
			offer_commands(request, request->count == 3 ? request->words[1] : NULL);
		return;
	}
	if (request->count == 2)
		offer_commands(request, request->words[0]);
	if (command->verb && used != 2)
		return;
	if (command->operands && command->names == NOUN_NONE && strchr(command->operands, '|')) {
		if (count_operands(request, command, used) == 0)
			offer_words(request, command->operands);
		return;
	}
	if (many || (command->operands && count_operands(request, command, used) == 0))
		offer_live(request, command->flags & COMMAND_CREATES ? NOUN_NONE : command->names,
			   command->flags & COMMAND_CHANGES);
}

/* "--pool=h1" is the option's value, also where a shell made three words of it. */
static void split_value(struct request *request)
{
	const char *word = request->word, *equals = strchr(word, '=');
	size_t count = request->count;

	if (count >= 2 && str_equal(word, "=") && str_starts(request->words[count - 2], "--")) {
		request->word = "";
	} else if (count >= 3 && str_equal(request->words[count - 2], "=")) {
		request->words[count - 2] = word;
		request->count--;
	} else if (str_starts(word, "--") && equals) {
		struct arena *arena = &request->cli->arena;
		request->before = arena_printf(arena, "%.*s=", (int)(equals - word), word);
		request->words[count - 1] = arena_strndup(arena, word, (size_t)(equals - word));
		request->words[request->count++] = request->word = equals + 1;
	}
}

static void complete(struct request *request)
{
	const struct command *command;
	struct error ignored; /* an unknown command has no candidates */
	int used;

	if (request->count <= 1) {
		offer_commands(request, NULL);
		return;
	}
	if (!command_find(request->cli->set, (int)request->count - 1, (char *const *)request->words,
			  &command, &used, &ignored)) {
		offer_commands(request, request->words[0]);
		return;
	}
	split_value(request);
	const struct option *option = find_option(command, request->words[request->count - 2]);
	if (option)
		offer_values(request, option);
	else if (request->word[0] == '-')
		offer_options(request, command);
	else
		offer_operands(request, command, used);
}

static void complete_words(struct cli *cli, size_t count, const char *const *words)
{
	struct request request = {.cli = cli, .before = ""};
	size_t leading;

	if (count >= MAX_WORDS)
		return;
	request.all = words;
	request.all_count = count;
	/* What follows options is completed as it would be without them. */
	leading = count ? (size_t)command_leading_options((int)count - 1, (char *const *)words) : 0;
	count -= leading;
	words += leading;
	for (size_t i = 0; i < count; i++)
		request.words[i] = words[i];
	request.count = count;
	request.word = count ? words[count - 1] : "";
	complete(&request);
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
		complete_words(cli, options->operand_count - 1, options->operands + 1);
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
		.more = "Completes commands, options, and the ids and names that are there now. In "
			"zsh: source <(better-compute completion zsh); in fish: better-compute "
			"completion fish | source.",
		.example = "source <(better-compute completion bash)\n",
		.run = run,
	},
	{0},
};
