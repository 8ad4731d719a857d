/*
 * meant: which command somebody means who types the words of another program.
 */
#include "cli/command.h"

/* Whole commands; the second word may be missing, and then any may follow. */
static const struct {
	const char *first, *second, *meant;
} PHRASES[] = {
	{"reservations", "create", "reserve"},
	{"nodes", "create", "join-tokens create"}, /* a node makes itself, by a token */
	{"preview", NULL, "capacity --preview"},
	{"book", NULL, "reserve"},
	{"gpus", NULL, "capacity"},
	{"k8s", NULL, "kubernetes manifest"},
	{"logs", NULL, "events"},
	{"status", NULL, "nodes list"},
};

/* Other verbs, and what a noun may have instead: the first that it has. */
static const struct {
	const char *typed, *verbs[6];
} VERBS[] = {
	{"add", {"create"}},
	{"create", {"create"}},
	{"delete", {"delete", "revoke", "archive", "retire", "release"}},
	{"describe", {"show"}},
	{"edit", {"update"}},
	{"get", {"show", "list"}},
	{"list", {"list"}},
	{"ls", {"list"}},
	{"make", {"create"}},
	{"new", {"create"}},
	{"patch", {"update"}},
	{"remove", {"delete", "revoke", "archive", "retire", "release"}},
	{"rename", {"update"}},
	{"rm", {"delete", "revoke", "archive", "retire", "release"}},
	{"set", {"update"}},
	{"show", {"show"}},
	{"update", {"update"}},
};

static bool has_verb(const struct command_set *set, const char *noun, const char *verb)
{
	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++)
			if (row->verb && str_equal(row->noun, noun) && str_equal(row->verb, verb))
				return true;
	}
	return false;
}

/* "pool" and "pools" */
static const char *noun_of(const struct command_set *set, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			bool one = strncmp(row->noun, word, length) == 0 &&
				   str_equal(row->noun + length, "s");
			if (row->verb && (one || str_equal(row->noun, word)))
				return row->noun;
		}
	}
	return NULL;
}

static bool phrase(const char *first, const char *second, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(PHRASES); i++) {
		if (!str_equal(PHRASES[i].first, first) ||
		    (PHRASES[i].second && !(second && str_equal(PHRASES[i].second, second))))
			continue;
		buf_add_text(out, PHRASES[i].meant);
		return true;
	}
	return false;
}

bool command_is_verb(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(VERBS); i++) {
		if (str_equal(VERBS[i].typed, word))
			return true;
	}
	return false;
}

size_t command_of_verb(const struct command_set *set, const char *verb, struct buf *out)
{
	size_t count = 0, had = 0;

	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < set->table_count; i++) {
			for (const struct command *row = set->tables[i]; row->noun; row++) {
				if (!row->verb || !str_equal(row->verb, verb))
					continue;
				if (pass == 0) { /* how many there are, for the last "or" */
					count++;
					continue;
				}
				had++;
				buf_printf(out, "%s'%s %s'",
					   had == 1       ? ""
					   : had == count ? " or "
							  : ", ",
					   row->noun, verb);
			}
		}
	}
	return count;
}

static bool of_noun(const struct command_set *set, const char *noun, const char *verb,
		    struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(VERBS); i++) {
		if (!str_equal(VERBS[i].typed, verb))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(VERBS[i].verbs) && VERBS[i].verbs[k]; k++) {
			if (!has_verb(set, noun, VERBS[i].verbs[k]))
				continue;
			buf_printf(out, "%s %s", noun, VERBS[i].verbs[k]);
			return true;
		}
	}
	return phrase(noun, verb, out);
}

bool command_meant(const struct command_set *set, const char *first, const char *second,
		   struct buf *out)
{
	const char *noun;

	if (phrase(first, second, out))
		return true;
	if (!second)
		return false;
	noun = noun_of(set, first);
	if (noun && of_noun(set, noun, second, out))
		return true;
	/* "get pools", "delete pool": the verb first */
	noun = noun_of(set, second);
	return noun && command_is_verb(first) &&
	       of_noun(set, noun, str_equal(first, "get") ? "list" : first, out);
}
