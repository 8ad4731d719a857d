#include "control/core/body.h"

#include "base/id.h"

#include <stdio.h>

#define MAX_LISTED 160

static bool is_listed(const char *name, const char *const *names)
{
	for (; *names; names++) {
		if (str_equal(*names, name))
			return true;
	}
	return false;
}

/* "a, b, c", cut where it gets too long. */
static void list_names(char out[MAX_LISTED], const char *const *names)
{
	size_t at = 0;

	out[0] = '\0';
	for (; *names && at < MAX_LISTED; names++)
		at += (size_t)snprintf(out + at, MAX_LISTED - at, "%s%s", at ? ", " : "", *names);
}

void body_path(char out[BODY_PATH_SIZE], const struct body *body, const char *field)
{
	snprintf(out, BODY_PATH_SIZE, "%s%s%s", body->path, body->path[0] ? "." : "", field);
}

bool body_open(const json_t *json, const char *path, const char *const *known,
	       struct body *ret_body, struct error *error)
{
	struct body body = {json, path};
	const char *field;
	json_t *value;

	if (!json_is_object(json))
		return path[0] ? error_field(error, path, "must be an object")
			       : error_set(error, ERROR_INVALID_INPUT,
					   "the body must be a JSON object");
	json_object_foreach((json_t *)json, field, value)
	{
		char where[BODY_PATH_SIZE], listed[MAX_LISTED];

		if (is_listed(field, known))
			continue;
		body_path(where, &body, field);
		error_field(error, where, "unknown field");
		list_names(listed, known);
		return error_hint(error, "Known here: %s.", listed);
	}
	*ret_body = body;
	return true;
}

/* The field's value, or NULL; false when it is required and absent. */
static bool find(const struct body *body, const char *field, enum body_need need,
		 const json_t **ret_value, char path[BODY_PATH_SIZE], struct error *error)
{
	body_path(path, body, field);
	*ret_value = json_object_get(body->object, field);
	if (!*ret_value && need == BODY_REQUIRED)
		return error_field(error, path, "is missing");
	return true;
}

bool body_text(const struct body *body, const char *field, enum body_need need, size_t max_length,
	       const char **ret_text, struct error *error)
{
	char path[BODY_PATH_SIZE];
	const json_t *value;
	const char *text;

	if (!find(body, field, need, &value, path, error))
		return false;
	if (!value) {
		*ret_text = NULL;
		return true;
	}
	if (!json_is_string(value))
		return error_field(error, path, "must be a text");
	text = json_string_value(value);
	if (json_string_length(value) == 0)
		return error_field(error, path, "must not be empty");
	if (json_string_length(value) > max_length)
		return error_field(error, path, "has %zu bytes, at most %zu are allowed",
				   json_string_length(value), max_length);
	for (const char *c = text; c < text + json_string_length(value); c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return error_field(error, path, "holds a control character");
	}
	*ret_text = text;
	return true;
}

static bool is_name(const char *text)
{
	static const char inner[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t length = strlen(text);

	return strspn(text, inner) == length && !strchr("._-", text[0]) &&
	       !strchr("._-", text[length - 1]);
}

bool body_name(const struct body *body, const char *field, const char **ret_name,
	       struct error *error)
{
	char path[BODY_PATH_SIZE];
	const char *name;

	if (!body_text(body, field, BODY_REQUIRED, BODY_NAME_MAX, &name, error))
		return false;
	if (!is_name(name)) {
		body_path(path, body, field);
		error_field(error, path, "'%s' is not a name", name);
		return error_hint(error, "Use lower-case letters, digits, '.', '_' and '-'; begin "
					 "and end with a letter or digit.");
	}
	*ret_name = name;
	return true;
}

bool body_id(const struct body *body, const char *field, enum body_need need, const char *prefix,
	     const char **ret_id, struct error *error)
{
	char path[BODY_PATH_SIZE];
	const char *id;

	if (!body_text(body, field, need, 128, &id, error))
		return false;
	if (id && !id_valid(id, prefix)) {
		body_path(path, body, field);
		return error_field(error, path, "'%.40s' is not an id of the form %s_…", id,
				   prefix);
	}
	*ret_id = id;
	return true;
}

bool body_int(const struct body *body, const char *field, enum body_need need, int64_t min,
	      int64_t max, int64_t *ret_number, struct error *error)
{
	char path[BODY_PATH_SIZE];
	const json_t *value;
	int64_t number;

	if (!find(body, field, need, &value, path, error))
		return false;
	if (!value)
		return true;
	if (!json_is_integer(value))
		return error_field(error, path, "must be a whole number");
	number = json_integer_value(value);
	if (number < min || number > max)
		return error_field(error, path, "is %lld, must be between %lld and %lld",
				   (long long)number, (long long)min, (long long)max);
	*ret_number = number;
	return true;
}

bool body_bool(const struct body *body, const char *field, bool *ret_truth, struct error *error)
{
	char path[BODY_PATH_SIZE];
	const json_t *value;

	if (!find(body, field, BODY_OPTIONAL, &value, path, error))
		return false;
	if (!value)
		return true;
	if (!json_is_boolean(value))
		return error_field(error, path, "must be true or false");
	*ret_truth = json_is_true(value);
	return true;
}

bool body_choice(const struct body *body, const char *field, enum body_need need,
		 const char *const *names, int *ret_index, struct error *error)
{
	char path[BODY_PATH_SIZE], listed[MAX_LISTED];
	const char *text;

	if (!body_text(body, field, need, 128, &text, error))
		return false;
	if (!text)
		return true;
	for (int i = 0; names[i]; i++) {
		if (!str_equal(names[i], text))
			continue;
		*ret_index = i;
		return true;
	}
	body_path(path, body, field);
	list_names(listed, names);
	return error_field(error, path, "'%.40s' is unknown, known: %s", text, listed);
}

bool body_ascii(const struct body *body, const char *field, enum body_need need, size_t max_length,
		const char **ret_text, struct error *error)
{
	char path[BODY_PATH_SIZE];
	const char *text;

	if (!body_text(body, field, need, max_length, &text, error))
		return false;
	for (const char *c = text; c && *c; c++) {
		if (*c < 0x20 || *c > 0x7e) {
			body_path(path, body, field);
			return error_field(error, path, "must be printable ASCII");
		}
	}
	*ret_text = text;
	return true;
}

bool body_idempotency_key(const struct body *body, const char **ret_key, struct error *error)
{
	return body_ascii(body, "idempotencyKey", BODY_OPTIONAL, BODY_IDEMPOTENCY_KEY_MAX, ret_key,
			  error);
}

char *body_canonical(const json_t *json)
{
	json_t *copy = json_copy((json_t *)json);
	char *text;

	json_object_del(copy, "idempotencyKey");
	text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
	json_decref(copy);
	assert(text);
	return text;
}
