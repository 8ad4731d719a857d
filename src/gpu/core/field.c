#include "gpu/core/field.h"

#include <stdio.h>

static bool wrong(const char *where, const char *key, const char *why, struct error *error)
{
	char field[ERROR_FIELD_SIZE];

	snprintf(field, sizeof field, "%s%s%s", where, *where && *key ? "." : "", key);
	return error_field(error, *field ? field : "the whole", "%s", why);
}

static bool too_deep(json_t *value, int depth)
{
	const char *key;
	json_t *member;
	size_t i;

	if (depth > FIELD_MAX_DEPTH)
		return true;
	json_object_foreach(value, key, member) if (too_deep(member, depth + 1)) return true;
	json_array_foreach(value, i, member) if (too_deep(member, depth + 1)) return true;
	return false;
}

bool field_load(const char *text, size_t length, const char *what, json_t **ret_tree,
		struct error *error)
{
	json_error_t parse;
	CLEANUP(json) json_t *tree = json_loadb(text, length, JSON_REJECT_DUPLICATES, &parse);

	if (!tree)
		return error_set(error, ERROR_INVALID_INPUT, "%s: line %d: %s", what, parse.line,
				 parse.text);
	if (too_deep(tree, 0))
		return error_set(error, ERROR_INVALID_INPUT, "%s: nested deeper than %d", what,
				 FIELD_MAX_DEPTH);
	*ret_tree = TAKE(tree);
	return true;
}

bool field_object(json_t *value, const char *where, struct error *error)
{
	return json_is_object(value) || wrong(where, "", "must be an object", error);
}

bool field_known(json_t *object, const char *where, const char *const *keys, struct error *error)
{
	const char *key;
	json_t *member;

	json_object_foreach(object, key, member)
	{
		const char *const *known = keys;

		while (*known && !str_equal(*known, key))
			known++;
		if (!*known)
			return wrong(where, key, "is not a known field", error);
	}
	return true;
}

/* The member, or NULL; `*ret_absent` is set when that is fine. */
static json_t *member_of(json_t *object, const char *where, const char *key, bool required,
			 bool *ret_absent, struct error *error)
{
	json_t *member = json_object_get(object, key);

	*ret_absent = !member && !required;
	if (!member && required)
		wrong(where, key, "is missing", error);
	return member;
}

bool field_text(json_t *object, const char *where, const char *key, bool required, char *out,
		size_t size, struct error *error)
{
	char why[64];
	bool absent;
	json_t *member = member_of(object, where, key, required, &absent, error);

	if (!member)
		return absent;
	if (!json_is_string(member))
		return wrong(where, key, "must be a string", error);
	if (json_string_length(member) >= size) {
		snprintf(why, sizeof why, "must have at most %zu characters", size - 1);
		return wrong(where, key, why, error);
	}
	return str_copy(out, size, json_string_value(member));
}

bool field_number(json_t *object, const char *where, const char *key, bool required, int64_t min,
		  int64_t max, int64_t *ret_number, struct error *error)
{
	char why[96];
	bool absent;
	json_t *member = member_of(object, where, key, required, &absent, error);

	if (!member)
		return absent;
	if (!json_is_integer(member))
		return wrong(where, key, "must be a whole number", error);
	if (json_integer_value(member) < min || json_integer_value(member) > max) {
		snprintf(why, sizeof why, "must be between %lld and %lld", (long long)min,
			 (long long)max);
		return wrong(where, key, why, error);
	}
	*ret_number = json_integer_value(member);
	return true;
}

bool field_int(json_t *object, const char *where, const char *key, bool required, int32_t min,
	       int32_t max, int32_t *ret_number, struct error *error)
{
	int64_t number = *ret_number;

	if (!field_number(object, where, key, required, min, max, &number, error))
		return false;
	*ret_number = (int32_t)number;
	return true;
}

bool field_bool(json_t *object, const char *where, const char *key, bool required, bool *ret_bool,
		struct error *error)
{
	bool absent;
	json_t *member = member_of(object, where, key, required, &absent, error);

	if (!member)
		return absent;
	if (!json_is_boolean(member))
		return wrong(where, key, "must be true or false", error);
	*ret_bool = json_is_true(member);
	return true;
}

bool field_array(json_t *object, const char *where, const char *key, bool required,
		 size_t max_count, json_t **ret_array, struct error *error)
{
	char why[64];
	bool absent;
	json_t *member = member_of(object, where, key, required, &absent, error);

	if (!member && absent)
		*ret_array = NULL;
	if (!member)
		return absent;
	if (!json_is_array(member))
		return wrong(where, key, "must be a list", error);
	if (json_array_size(member) > max_count) {
		snprintf(why, sizeof why, "must have at most %zu entries", max_count);
		return wrong(where, key, why, error);
	}
	*ret_array = member;
	return true;
}

bool field_child(json_t *object, const char *where, const char *key, bool required,
		 json_t **ret_object, struct error *error)
{
	bool absent;
	json_t *member = member_of(object, where, key, required, &absent, error);

	if (!member && absent)
		*ret_object = NULL;
	if (!member)
		return absent;
	if (!json_is_object(member))
		return wrong(where, key, "must be an object", error);
	*ret_object = member;
	return true;
}

void field_item_where(char out[FIELD_WHERE_SIZE], const char *where, const char *key, size_t index)
{
	snprintf(out, FIELD_WHERE_SIZE, "%s%s%s[%zu]", where, *where ? "." : "", key, index);
}
