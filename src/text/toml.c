#include "text/toml.h"

#include "text/toml_read.h"

static_assert(TOML_READ_MAX_DEPTH == TREE_MAX_DEPTH, "one bound for all trees");

/* Where the scan is: strings and comments are stepped over whole. */
struct scan {
	const char *at, *end;
	size_t line, brackets, dots;
	bool no_value; /* "key =" and then the end of something */
};

static bool scan_starts(const struct scan *scan, const char *word)
{
	size_t length = strlen(word);

	return (size_t)(scan->end - scan->at) >= length && memcmp(scan->at, word, length) == 0;
}

static void skip_comment(struct scan *scan)
{
	while (scan->at < scan->end && *scan->at != '\n')
		scan->at++;
}

/* From the opening quotes behind the closing ones; one-line strings end at the line's end at most.
 */
static void skip_string(struct scan *scan)
{
	char quotes[4] = {*scan->at, *scan->at, *scan->at, '\0'};
	bool escapes = *scan->at == '"', many = scan_starts(scan, quotes);

	if (!many)
		quotes[1] = '\0';
	scan->at += strlen(quotes);
	while (scan->at < scan->end && !scan_starts(scan, quotes)) {
		if (*scan->at == '\n') {
			if (!many)
				return;
			scan->line++;
		}
		if (escapes && *scan->at == '\\' && scan->at + 1 < scan->end && scan->at[1] != '\n')
			scan->at++;
		scan->at++;
	}
	scan->at += scan->at < scan->end ? strlen(quotes) : 0;
}

static bool value_is_missing(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
		at++;
	return at == end || strchr("\n#,]}", *at);
}

static void scan_one(struct scan *scan)
{
	char c = *scan->at;

	if (c == '#') {
		skip_comment(scan);
		return;
	}
	if (c == '"' || c == '\'') {
		skip_string(scan);
		return;
	}
	if (c == '[' || c == '{')
		scan->brackets++;
	else if ((c == ']' || c == '}') && scan->brackets > 0)
		scan->brackets--;
	if (c == '=')
		scan->no_value = value_is_missing(scan->at + 1, scan->end);
	if (c == '.')
		scan->dots++; /* of one dotted key; quoted parts and blanks belong to it */
	else if (c == '\n' || c == '=' || c == ',' || c == '[' || c == '{')
		scan->dots = 0;
	if (c == '\n')
		scan->line++;
	scan->at++;
}

/* Nesting by brackets and by dotted keys, before anything recurses over it; and the mistake that
 * toml++ can't name. */
static bool check_shape(const char *text, size_t length, const char *source, struct error *error)
{
	struct scan scan = {.at = text, .end = text + length, .line = 1};

	while (scan.at < scan.end) {
		scan_one(&scan);
		if (scan.no_value)
			return error_set(error, ERROR_INVALID_INPUT, "%s:%zu: no value after '='",
					 source, scan.line);
		if (scan.brackets + scan.dots > TREE_MAX_DEPTH)
			return error_set(error, ERROR_INVALID_INPUT,
					 "%s:%zu: nested deeper than %d levels", source, scan.line,
					 TREE_MAX_DEPTH);
	}
	return true;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A word without quotes in the place of this line's value, such as YAML's yes, which toml++ takes for the
 * beginning of a number; its length, 0 for none. */
static size_t find_bare_word(const char *text, size_t length, unsigned line, const char **ret_word)
{
	const char *at = text, *end = text + length, *word;

	for (; at < end && line > 1; at++)
		line -= *at == '\n';
	while (at < end && *at != '=' && *at != '\n')
		at++;
	if (at == end || *at != '=')
		return 0;
	for (at++; at < end && (*at == ' ' || *at == '\t'); at++)
		;
	for (word = at; at < end && is_letter(*at); at++)
		;
	*ret_word = word;
	return (size_t)(at - word);
}

static bool is_word(const char *word, size_t length, const char *wanted)
{
	return length == strlen(wanted) && memcmp(word, wanted, length) == 0;
}

static bool fail_at(const char *text, size_t length, const char *source,
		    const struct toml_mistake *mistake, struct error *error)
{
	const char *word = NULL;
	size_t letters = find_bare_word(text, length, mistake->line, &word);

	if (letters == 0 || is_word(word, letters, "true") || is_word(word, letters, "false") ||
	    is_word(word, letters, "nan") || is_word(word, letters, "inf"))
		return error_set(error, ERROR_INVALID_INPUT, "%s:%u: %s", source, mistake->line,
				 mistake->why);
	return error_set(
		error, ERROR_INVALID_INPUT,
		"%s:%u: '%.*s' is no value: yes and no are true and false, and texts stand "
		"in quotes",
		source, mistake->line, (int)(letters < 40 ? letters : 40), word);
}

bool toml_parse(const char *text, size_t length, size_t max_size, const char *source,
		json_t **ret_tree, struct error *error)
{
	struct toml_mistake mistake = {0};
	json_t *tree;

	if (length > max_size)
		return error_set(error, ERROR_INVALID_INPUT, "%s: larger than %zu bytes", source,
				 max_size);
	if (!check_shape(text, length, source, error))
		return false;
	tree = toml_read(text, length, &mistake);
	if (!tree && mistake.line == 0)
		return error_set(error, ERROR_INVALID_INPUT, "%s: %s", source, mistake.why);
	if (!tree)
		return fail_at(text, length, source, &mistake, error);
	*ret_tree = tree;
	return true;
}
