#include "cli/shells.h"
#include "cli/table.h"

#include <stdio.h>

/* %P is the program, %F a function's name made of it. */
static const char BASH[] = "%F() {\n"
			   "\tlocal found\n"
			   "\tmapfile -t found < <(\"${COMP_WORDS[0]}\" completion words -- "
			   "\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
			   "\tCOMPREPLY=(\"${found[@]%%$'\\t'*}\")\n"
			   "}\n"
			   "complete -o default -F %F %P\n";

/* Sourced, or loaded by its file's name as one of zsh's completion functions. */
static const char ZSH[] =
	"#compdef %P\n"
	"%F() {\n"
	"\tlocal -a found names\n"
	"\tfound=(${(f)\"$(${words[1]} completion words -- \"${(@)words[2,CURRENT]}\" "
	"2>/dev/null)\"})\n"
	"\tif (( ! $#found )); then _files; return; fi\n"
	"\tnames=(\"${(@)found%%$'\\t'*}\")\n"
	"\tfound=(\"${(@)found/$'\\t'/  }\")\n"
	"\tcompadd -l -d found -a names\n"
	"}\n"
	"if [[ $funcstack[1] = _%P ]]; then\n"
	"\t%F \"$@\"\n"
	"else\n"
	"\tcompdef %F %P\n"
	"fi\n";

static const char FISH[] =
	"function _%F\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l found ($words[1] completion words -- $words[2..] (commandline -ct) "
	"2>/dev/null)\n"
	"\tif test (count $found) -gt 0\n"
	"\t\tprintf '%s\\n' $found\n"
	"\telse\n"
	"\t\t__fish_complete_path (commandline -ct)\n"
	"\tend\n"
	"end\n"
	"complete -c %P -f -a '(_%F)'\n";

/* --- scripts --- */

static void add_script(struct buf *out, const char *script, const char *program)
{
	CLEANUP(buf) struct buf function = {0};

	buf_printf(&function, "_%s", program);
	for (size_t i = 0; i < function.length; i++) {
		if (function.data[i] == '-')
			function.data[i] = '_';
	}
	for (; *script; script++) {
		if (str_starts(script, "%P"))
			buf_add_text(out, program);
		else if (str_starts(script, "%F"))
			buf_add_text(out, buf_text(&function));
		else
			buf_add_char(out, *script);
		script += str_starts(script, "%P") || str_starts(script, "%F");
	}
}

bool shells_script(const char *shell, const char *program, struct buf *out, struct error *error)
{
	if (str_equal(shell, "bash"))
		add_script(out, BASH, program);
	else if (str_equal(shell, "zsh"))
		add_script(out, ZSH, program);
	else if (str_equal(shell, "fish"))
		add_script(out, FISH, program);
	else
		return error_set(error, ERROR_INVALID_INPUT,
				 "no completion for '%s': bash, zsh or fish", shell);
	return true;
}

/* --- words --- */

bool shells_words(const char *const *words, size_t count, struct shells_words *ret_words)
{
	if (count >= SHELLS_MAX_WORDS)
		return false;
	*ret_words = (struct shells_words){.count = count, .before = ""};
	for (size_t i = 0; i < count; i++)
		ret_words->words[i] = words[i];
	ret_words->word = count ? words[count - 1] : "";
	return true;
}

void shells_split_value(struct shells_words *words, struct arena *arena)
{
	const char *word = words->word, *equals = strchr(word, '=');
	size_t count = words->count;

	if (count >= 2 && str_equal(word, "=") && str_starts(words->words[count - 2], "--")) {
		words->word = "";
	} else if (count >= 3 && str_equal(words->words[count - 2], "=")) {
		words->words[count - 2] = word;
		words->count--;
	} else if (str_starts(word, "--") && equals) {
		words->before = arena_printf(arena, "%.*s=", (int)(equals - word), word);
		words->words[count - 1] = arena_strndup(arena, word, (size_t)(equals - word));
		words->words[words->count++] = words->word = equals + 1;
	}
}

const struct option *shells_option(const struct option *const *tables, size_t count,
				   const char *word)
{
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

size_t shells_count_operands(const struct shells_words *words, size_t first,
			     const struct option *const *tables, size_t count)
{
	size_t operands = 0;

	for (size_t i = first; i + 1 < words->count; i++) {
		if (words->words[i][0] != '-')
			operands++;
		else if (shells_option(tables, count, words->words[i]))
			i++;
	}
	return operands;
}

/* --- candidates --- */

void shells_offer(const struct shells_words *words, const char *candidate, const char *about)
{
	CLEANUP(free) char *text = mem_strdup(about ? about : "");

	if (!str_starts(candidate, words->word))
		return;
	table_sanitize(text);
	printf("%s%s%s%s\n", words->before, candidate, text[0] ? "\t" : "", text);
}

void shells_offer_options(const struct shells_words *words, const struct option *const *tables,
			  size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (const struct option *row = tables[i]; row->name; row++) {
			CLEANUP(buf) struct buf text = {0};

			buf_printf(&text, "--%s", row->name);
			shells_offer(words, buf_text(&text), row->help);
		}
	}
}

bool shells_offer_choices(const struct shells_words *words, const struct option *option)
{
	for (size_t i = 0; option->choices && option->choices[i]; i++)
		shells_offer(words, option->choices[i], NULL);
	return option->choices != NULL;
}

void shells_offer_each(const struct shells_words *words, const char *names)
{
	CLEANUP(arena) struct arena arena = {0};

	for (size_t length; *names; names += length + (names[length] == '|')) {
		length = strcspn(names, "|");
		shells_offer(words, arena_strndup(&arena, names, length), NULL);
	}
}
