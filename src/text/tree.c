#include "text/tree.h"

#include "base/utf8.h"
#include "text/suggest.h"

#include <stdio.h>

/* --- parsing --- */

/* Counts brackets outside strings, so that no parser recurses deeper than we allow. Texts that are
 * no JSON may be miscounted; the parser refuses them anyway. */
static bool check_depth(const char *text, size_t length, const char *source, struct error *error)
{
	size_t depth = 0, line = 1;
	bool in_string = false;

	for (size_t i = 0; i < length; i++) {
		char c = text[i];

		if (c == '\n')
			line++;
		if (in_string && c == '\\')
			i++;
		else if (c == '"')
			in_string = !in_string;
		else if (!in_string && (c == '[' || c == '{'))
			depth++;
		else if (!in_string && (c == ']' || c == '}') && depth > 0)
			depth--;
		if (depth > TREE_MAX_DEPTH)
			return error_set(error, ERROR_INVALID_INPUT,
					 "%s:%zu: nested deeper than %d levels", source, line,
					 TREE_MAX_DEPTH);
	}
	return true;
}

/* What the parser has against the text, in our words. Its own quote the text near the mistake, which
 * may be a secret. */
static const char *complaint(const json_error_t *wrong)
{
	static const struct {
		enum json_error_code code;
		const char *theirs; /* how it begins; "" whatever it is */
		const char *ours;
	} KNOWN[] = {
		{json_error_premature_end_of_input, "", "the text ends too early"},
		{json_error_end_of_input_expected, "", "something follows the end"},
		{json_error_invalid_utf8, "", "a byte that is no UTF-8"},
		{json_error_null_character, "", "\\u0000 and the byte 0 aren't taken"},
		{json_error_null_byte_in_key, "", "\\u0000 and the byte 0 aren't taken"},
		{json_error_numeric_overflow, "", "the number is too large"},
		{json_error_invalid_syntax, "'[' or '{'", "an object or an array is expected"},
		{json_error_invalid_syntax, "']'", "',' or ']' is expected"},
		{json_error_invalid_syntax, "'}'", "',' or '}' is expected"},
		{json_error_invalid_syntax, "string or '}'", "a name in double quotes is expected"},
		{json_error_invalid_syntax, "':'", "':' is expected"},
		{json_error_invalid_syntax, "unexpected token", "a value is expected"},
		{json_error_invalid_syntax, "invalid token",
		 "no value of JSON: texts and names stand in double quotes"},
		{json_error_invalid_syntax, "unexpected newline",
		 "a text goes on to its closing quote: write \\n for a new line"},
		{json_error_invalid_syntax, "control character",
		 "a control character in a text: write it as \\u00XX"},
		{json_error_invalid_syntax, "invalid escape", "an unknown escape after '\\'"},
		{json_error_invalid_syntax, "invalid Unicode", "\\u doesn't name a character"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(KNOWN); i++) {
		if (json_error_code(wrong) == KNOWN[i].code &&
		    str_starts(wrong->text, KNOWN[i].theirs))
			return KNOWN[i].ours;
	}
	return "this is no JSON";
}

/* The name of the member that is there twice; it is no secret. */
static bool duplicate_error(const json_error_t *wrong, const char *source, struct error *error)
{
	const char *start = strchr(wrong->text, '"'), *end = strrchr(wrong->text, '"');
	int length = start && end > start ? (int)(end + 1 - start) : 0;

	return error_set(error, ERROR_INVALID_INPUT, "%s:%d:%d: %.*s is there twice", source,
			 wrong->line, wrong->column, length ? length : 6,
			 length ? start : "a name");
}

static bool parse_error(const json_error_t *wrong, const char *source, struct error *error)
{
	if (json_error_code(wrong) == json_error_duplicate_key)
		return duplicate_error(wrong, source, error);
	return error_set(error, ERROR_INVALID_INPUT, "%s:%d:%d: %s", source, wrong->line,
			 wrong->column, complaint(wrong));
}

bool tree_parse(const void *text, size_t length, size_t max_size, const char *source,
		json_t **ret_tree, struct error *error)
{
	json_error_t wrong;
	json_t *tree;

	if (length > max_size)
		return error_set(error, ERROR_INVALID_INPUT, "%s: larger than %zu bytes", source,
				 max_size);
	if (length == 0)
		return error_set(error, ERROR_INVALID_INPUT, "%s: empty", source);
	if (!check_depth(text, length, source, error))
		return false;
	tree = json_loadb(text, length, JSON_REJECT_DUPLICATES, &wrong);
	if (!tree)
		return parse_error(&wrong, source, error);
	*ret_tree = tree;
	return true;
}

/* --- paths --- */

void tree_path(char out[ERROR_FIELD_SIZE], const char *path, const char *name)
{
	snprintf(out, ERROR_FIELD_SIZE, "%s%s%s", path, *path ? "." : "", name);
}

void tree_path_item(char out[ERROR_FIELD_SIZE], const char *path, const char *name, size_t index)
{
	snprintf(out, ERROR_FIELD_SIZE, "%s%s%s[%zu]", path, *path && *name ? "." : "", name,
		 index);
}

static const char *type_name(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	case JSON_NULL:
		return "null";
	}
	abort();
}

static bool wrong_type(const char *field, const json_t *value, const char *wanted,
		       struct error *error)
{
	return error_field(error, field, "must be %s, not %s", wanted, type_name(value));
}

/* --- what a value must be; `field` is its whole path --- */

static bool as_text(const json_t *value, const char *field, size_t min_length, size_t max_length,
		    const char **ret_text, struct error *error)
{
	if (!json_is_string(value))
		return wrong_type(field, value, "a string", error);
	if (json_string_length(value) < min_length)
		return error_field(error, field, "is empty");
	if (json_string_length(value) > max_length)
		return error_field(error, field, "is longer than %zu bytes", max_length);
	*ret_text = json_string_value(value);
	return true;
}

static bool as_choice(const json_t *value, const char *field, const char *const *choices,
		      size_t *ret_index, struct error *error)
{
	CLEANUP(buf) struct buf known = {0};
	const char *text;

	if (!as_text(value, field, 0, SIZE_MAX, &text, error))
		return false;
	for (size_t i = 0; choices[i]; i++) {
		if (str_equal(choices[i], text)) {
			*ret_index = i;
			return true;
		}
		buf_printf(&known, "%s%s", i ? ", " : "", choices[i]);
	}
	return error_field(error, field, "'%.64s' is not one of %s", text, buf_text(&known));
}

static bool as_int(const json_t *value, const char *field, int64_t min, int64_t max,
		   int64_t *ret_number, struct error *error)
{
	int64_t number;

	if (!json_is_integer(value))
		return wrong_type(field, value,
				  json_is_real(value) ? "a whole number without fraction"
						      : "a whole number",
				  error);
	number = json_integer_value(value);
	if (number < min || number > max)
		return error_field(error, field, "%lld is not from %lld to %lld", (long long)number,
				   (long long)min, (long long)max);
	*ret_number = number;
	return true;
}

static bool as_object(json_t *value, const char *field, json_t **ret_object, struct error *error)
{
	if (!json_is_object(value))
		return wrong_type(field, value, "an object", error);
	*ret_object = value;
	return true;
}

static bool as_array(json_t *value, const char *field, size_t max_count, json_t **ret_array,
		     struct error *error)
{
	if (!json_is_array(value))
		return wrong_type(field, value, "an array", error);
	if (json_array_size(value) > max_count)
		return error_field(error, field, "has more than %zu items", max_count);
	*ret_array = value;
	return true;
}

static bool as_bool(const json_t *value, const char *field, bool *ret_value, struct error *error)
{
	if (!json_is_boolean(value))
		return wrong_type(field, value, "true or false", error);
	*ret_value = json_is_true(value);
	return true;
}

/* --- fields --- */

/* The field's value and path; NULL with error set when it is missing. */
static json_t *need(const json_t *object, const char *name, const char *path,
		    char field[ERROR_FIELD_SIZE], struct error *error)
{
	json_t *value = json_object_get(object, name);

	tree_path(field, path, name);
	if (!value)
		error_field(error, field, "is missing");
	return value;
}

bool tree_get_string(const json_t *object, const char *name, const char *path, size_t max_length,
		     const char **ret_text, struct error *error)
{
	char field[ERROR_FIELD_SIZE];
	const json_t *value = need(object, name, path, field, error);

	return value && as_text(value, field, 1, max_length, ret_text, error);
}

bool tree_get_text(const json_t *object, const char *name, const char *path, size_t max_length,
		   const char **ret_text, struct error *error)
{
	char field[ERROR_FIELD_SIZE];
	const json_t *value = need(object, name, path, field, error);

	return value && as_text(value, field, 0, max_length, ret_text, error);
}

bool tree_get_choice(const json_t *object, const char *name, const char *path,
		     const char *const *choices, size_t *ret_index, struct error *error)
{
	char field[ERROR_FIELD_SIZE];
	const json_t *value = need(object, name, path, field, error);

	return value && as_choice(value, field, choices, ret_index, error);
}

bool tree_get_int(const json_t *object, const char *name, const char *path, int64_t min,
		  int64_t max, int64_t *ret_number, struct error *error)
{
	char field[ERROR_FIELD_SIZE];
	const json_t *value = need(object, name, path, field, error);

	return value && as_int(value, field, min, max, ret_number, error);
}

bool tree_get_bool(const json_t *object, const char *name, const char *path, bool *ret_value,
		   struct error *error)
{
	char field[ERROR_FIELD_SIZE];
	const json_t *value = need(object, name, path, field, error);

	return value && as_bool(value, field, ret_value, error);
}

bool tree_get_object(const json_t *object, const char *name, const char *path, json_t **ret_object,
		     struct error *error)
{
	char field[ERROR_FIELD_SIZE];
	json_t *value = need(object, name, path, field, error);

	return value && as_object(value, field, ret_object, error);
}

bool tree_get_array(const json_t *object, const char *name, const char *path, size_t max_count,
		    json_t **ret_array, struct error *error)
{
	char field[ERROR_FIELD_SIZE];
	json_t *value = need(object, name, path, field, error);

	return value && as_array(value, field, max_count, ret_array, error);
}

static bool absent(const json_t *object, const char *name)
{
	return !json_object_get(object, name);
}

bool tree_opt_string(const json_t *object, const char *name, const char *path, size_t max_length,
		     const char **text, struct error *error)
{
	return absent(object, name) || tree_get_string(object, name, path, max_length, text, error);
}

bool tree_opt_choice(const json_t *object, const char *name, const char *path,
		     const char *const *choices, size_t *index, struct error *error)
{
	return absent(object, name) || tree_get_choice(object, name, path, choices, index, error);
}

bool tree_opt_int(const json_t *object, const char *name, const char *path, int64_t min,
		  int64_t max, int64_t *number, struct error *error)
{
	return absent(object, name) || tree_get_int(object, name, path, min, max, number, error);
}

bool tree_opt_bool(const json_t *object, const char *name, const char *path, bool *value,
		   struct error *error)
{
	return absent(object, name) || tree_get_bool(object, name, path, value, error);
}

bool tree_opt_object(const json_t *object, const char *name, const char *path, json_t **member,
		     struct error *error)
{
	return absent(object, name) || tree_get_object(object, name, path, member, error);
}

bool tree_opt_array(const json_t *object, const char *name, const char *path, size_t max_count,
		    json_t **array, struct error *error)
{
	return absent(object, name) || tree_get_array(object, name, path, max_count, array, error);
}

/* --- items --- */

bool tree_item_object(const json_t *array, size_t index, const char *name, const char *path,
		      json_t **ret_object, struct error *error)
{
	char field[ERROR_FIELD_SIZE];

	assert(index < json_array_size(array));
	tree_path_item(field, path, name, index);
	return as_object(json_array_get(array, index), field, ret_object, error);
}

bool tree_item_string(const json_t *array, size_t index, const char *name, const char *path,
		      size_t max_length, const char **ret_text, struct error *error)
{
	char field[ERROR_FIELD_SIZE];

	assert(index < json_array_size(array));
	tree_path_item(field, path, name, index);
	return as_text(json_array_get(array, index), field, 1, max_length, ret_text, error);
}

/* --- unknown keys --- */

static bool unknown_key(const char *path, const char *key, const char *const *known,
			struct error *error)
{
	char field[ERROR_FIELD_SIZE], name[65];
	const char *nearest;
	size_t count = 0;

	while (known[count])
		count++;
	str_copy(name, sizeof name, key);
	tree_path(field, path, name);
	nearest = suggest_nearest(name, known, count);
	if (nearest)
		return error_field(error, field, "unknown field (did you mean \"%s\"?)", nearest);
	return error_field(error, field, "unknown field");
}

bool tree_check_keys(const json_t *object, const char *path, const char *const *known,
		     struct error *error)
{
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return *path ? wrong_type(path, object, "an object", error)
			     : error_set(error, ERROR_INVALID_INPUT, "must be an object, not %s",
					 type_name(object));
	json_object_foreach((json_t *)object, key, value)
	{
		size_t i = 0;

		while (known[i] && !str_equal(known[i], key))
			i++;
		if (!known[i])
			return unknown_key(path, key, known, error);
	}
	return true;
}

/* --- writing --- */

static void must(int status)
{
	if (status != 0)
		abort();
}

void tree_set(json_t *object, const char *name, json_t *value)
{
	must(json_object_set_new(object, name, value));
}

void tree_append(json_t *array, json_t *value)
{
	must(json_array_append_new(array, value));
}

json_t *tree_string(const char *text)
{
	json_t *value = json_string(text);
	CLEANUP(buf) struct buf clean = {0};

	if (value)
		return value;
	utf8_add_clean(&clean, text);
	value = json_string(buf_text(&clean));
	must(value ? 0 : -1);
	return value;
}

static int add_dump(const char *text, size_t length, void *out)
{
	buf_add(out, text, length);
	return 0;
}

void tree_dump_canonical(struct buf *out, const json_t *tree)
{
	must(json_dump_callback(tree, add_dump, out,
				JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY));
}

void tree_dump_pretty(struct buf *out, const json_t *tree)
{
	must(json_dump_callback(tree, add_dump, out, JSON_INDENT(2) | JSON_ENCODE_ANY));
	buf_add_char(out, '\n');
}
