/*
 * shells: completion in shells, for programs that know from their tables what a word may become.
 *
 * The scripts are a few lines each and ask the program: `PROGRAM completion words -- WORD...` prints
 * what the last word may become, one a line with a tab and a description behind it.
 */
#pragma once

#include "base/arena.h"
#include "text/options.h"

#define SHELLS           "bash|zsh|fish"
#define SHELLS_MAX_WORDS 256

/* The script for a shell of SHELLS. INVALID_INPUT of another one. */
MUST_CHECK bool shells_script(const char *shell, const char *program, struct buf *out,
			      struct error *error);

/* What is being completed: words behind the program's name, the last of which isn't whole yet. */
struct shells_words {
	const char *words[SHELLS_MAX_WORDS];
	size_t count;
	const char *word;   /* the last: what it begins with; "" for nothing yet */
	const char *before; /* what stands before each candidate: "--pool=" */
};

/* False: too many. */
MUST_CHECK bool shells_words(const char *const *words, size_t count,
			     struct shells_words *ret_words);

/* "--pool=h1" becomes the option and its value, also where a shell made three words of it. */
void shells_split_value(struct shells_words *words, struct arena *arena);

/* The option that `word` is, when a value follows it; NULL otherwise. */
const struct option *shells_option(const struct option *const *tables, size_t count,
				   const char *word);

/* Operands from word `first` on, before the last. */
size_t shells_count_operands(const struct shells_words *words, size_t first,
			     const struct option *const *tables, size_t count);

/* Prints the candidate if it begins as the last word does; `about` may be NULL. */
void shells_offer(const struct shells_words *words, const char *candidate, const char *about);
void shells_offer_options(const struct shells_words *words, const struct option *const *tables,
			  size_t count);
/* The option's values, if it has a list of them: else false. */
bool shells_offer_choices(const struct shells_words *words, const struct option *option);
/* "bash|zsh|fish": each. */
void shells_offer_each(const struct shells_words *words, const char *names);
