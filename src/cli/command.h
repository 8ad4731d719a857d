/*
 * command: one row for each command; parsing, help, man page and completion are made from it.
 *
 * A command is "noun verb" ("pools create") or a single word ("reserve"; verb NULL). A row marked
 * COMMAND_DEFAULT is also what its noun alone means. To add a command: one row and one function.
 * Flow      command_main() finds the row, reads argv by its options, runs it, prints the error it
 *           left, and returns the exit status (0 done, 1 failed, 2 usage, 3 refused, 4 not
 *           reachable, 5 not allowed, 6 changes found).
 * Pure      command_find, command_leading_options, command_tables, command_name.
 */
#pragma once

#include "base/error.h"
#include "text/options.h"

#define COMMAND_MANY (-1)

enum command_flags {
	COMMAND_DEFAULT = 1 << 0, /* the noun alone means this verb */
	COMMAND_DAILY = 1 << 1,   /* shown when no command is given */
	COMMAND_HIDDEN = 1 << 2,  /* not in help */
	COMMAND_CREATES = 1 << 3, /* takes --idempotency-key */
	COMMAND_CHANGES = 1 << 4, /* takes --dry-run, --exit-code */
	COMMAND_ASKS = 1 << 5,    /* takes --yes */
	COMMAND_API = 1 << 6,     /* speaks to the API: takes --state, --api, --key-file, ... */
	COMMAND_CONTEXT = 1 << 7, /* takes the same, but speaks to nobody */
	COMMAND_OUTPUT = 1 << 8,  /* takes -o; what it prints has ids */
	COMMAND_ANSWER = 1 << 9,  /* takes -o, but not name: what it prints has none */
};

/* The things the API keeps (noun.h): what a command is about, and what its operands name. */
enum noun_kind {
	NOUN_NONE,
	NOUN_TENANT,
	NOUN_SITE,
	NOUN_POOL,
	NOUN_JOIN_TOKEN,
	NOUN_NODE,
	NOUN_RESERVATION,
	NOUN_KEY,
	NOUN_QUOTA,
	NOUN_SECRET,
	NOUN_COUNT,
};

struct cli;
struct verb_field;
/* true: done, with cli->exit_status as the program's. */
typedef bool command_fn(struct cli *cli, struct error *error);

struct command {
	const char *noun;
	const char *verb;                /* NULL: a single word */
	const char *summary;             /* one line, lower case, no full stop */
	const char *operands;            /* such as "ID..."; NULL for none */
	int min_operands, max_operands;  /* max COMMAND_MANY: any number */
	enum noun_kind names;            /* what it is about, and what the first operand names */
	unsigned flags;                  /* of enum command_flags */
	const struct option *options;    /* its own; NULL for none */
	const char *more;                /* further paragraphs of help; NULL for none */
	const char *example;             /* whole lines that work, one a line, without a prompt */
	const struct verb_field *fields; /* of its body or query (verb.h); NULL for none */
	command_fn *check; /* what can be refused before a control plane is looked for; NULL */
	command_fn *run;
};

/* The tables of one program, in the order of help. */
struct command_set {
	const struct command *const *tables; /* each ends with a row whose noun is NULL */
	size_t table_count;
};

int command_main(const struct command_set *set, int argc, char **argv);

/* Does it have verbs, or a row of its own? And does it mean something without a verb? */
bool command_is_noun(const struct command_set *set, const char *noun);
bool command_stands_alone(const struct command_set *set, const char *noun);

/* The row that argv (without the program's name; one word at least) begins with; *ret_words: how many words it took.
 * INVALID_INPUT with the nearest command otherwise. */
MUST_CHECK bool command_find(const struct command_set *set, int argc, char *const *argv,
			     const struct command **ret_command, int *ret_words,
			     struct error *error);

/* Which command other words mean ("reservations create", "delete pool"), to `out`; `second` may be NULL. Is a word the
 * verb of such a command? Pure. (meant.c) */
bool command_meant(const struct command_set *set, const char *first, const char *second,
		   struct buf *out);
bool command_is_verb(const char *word);
/* The commands that have it as their verb, as "'nodes retire'" or "'a b', 'c b' or 'd b'": how many. Pure. (meant.c) */
size_t command_of_verb(const struct command_set *set, const char *verb, struct buf *out);

/* How many of argv stand before the command: options may ("better-compute --state DIR nodes"). */
int command_leading_options(int argc, char *const *argv);

/* All option tables of a command, its own first; at most COMMAND_MAX_TABLES. */
#define COMMAND_MAX_TABLES 8
size_t command_tables(const struct command *command,
		      const struct option *ret_tables[COMMAND_MAX_TABLES]);

/* --state, --api, --key-file, --ca-file: what context_load() reads. */
extern const struct option COMMAND_API_OPTIONS[];

/* "pools create" */
void command_name(struct buf *out, const struct command *command);

/* The CLI's own tables (commands.c), NULL-ended. */
extern const struct command *const CLI_COMMANDS[];
