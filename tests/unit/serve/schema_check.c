#include "schema_check.h"

#include "base/duration.h"
#include "base/vec.h"
#include "control/core/timestamp.h"
#include "lib/test.h"

#include <stdio.h>

#define PATH_SIZE 256
#define TEXT_MAX  1024

static VEC(const struct schema_field *) seen;

bool schema_seen(const struct schema_field *field)
{
	for (size_t i = 0; i < seen.count; i++) {
		if (seen.items[i] == field)
			return true;
	}
	return false;
}

static void refuse(const char *path, const json_t *json, const char *why)
{
	CLEANUP(free) char *text = json ? json_dumps(json, JSON_ENCODE_ANY) : mem_strdup("nothing");

	fail_msg("%s %s: %.300s\nsrc/serve/schema.c says otherwise", path, why, text);
}

static bool is_choice(const char *of, const char *text)
{
	size_t length = strlen(text);

	for (; *of; of += strcspn(of, "|"), of += *of == '|') {
		if (strcspn(of, "|") == length && strncmp(of, text, length) == 0)
			return true;
	}
	return false;
}

static size_t characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

static void check_object(const struct schema_type *type, const json_t *json, const char *path);

static void check_labels(const json_t *json, unsigned flags, const char *path)
{
	const char *name;
	json_t *value;

	if (!json_is_object(json))
		refuse(path, json, "is no object");
	json_object_foreach((json_t *)json, name, value)
	{
		if (!json_is_string(value) && !(json_is_null(value) && flags & SCHEMA_NULLABLE))
			refuse(path, json, "holds what is no label's value");
	}
}

static void check_text(const struct schema_field *field, const json_t *json, const char *path)
{
	const char *text = json_string_value(json);
	struct error error;
	struct wall time;
	int64_t ms;

	if (!text)
		refuse(path, json, "is no text");
	if (field->kind == SCHEMA_ID && *field->of && !id_valid(text, field->of))
		refuse(path, json, "is no id of its prefix");
	if (field->kind == SCHEMA_TIME && !timestamp_parse(text, path, &time, &error))
		refuse(path, json, "is no time");
	if (field->kind == SCHEMA_DURATION &&
	    !duration_parse(text, path, 0, INT64_MAX, &ms, &error))
		refuse(path, json, "is no duration");
	if (field->kind == SCHEMA_CHOICE && !is_choice(field->of, text))
		refuse(path, json, "is none of its choices");
	if (field->kind == SCHEMA_TEXT &&
	    (characters(text) < (size_t)field->min ||
	     characters(text) > (size_t)(field->max ? field->max : TEXT_MAX)))
		refuse(path, json, "is too short or too long");
}

static void check_value(const struct schema_field *field, const json_t *json, const char *path)
{
	switch (field->kind) {
	case SCHEMA_TEXT:
	case SCHEMA_NAME:
	case SCHEMA_ID:
	case SCHEMA_TIME:
	case SCHEMA_DURATION:
	case SCHEMA_CHOICE:
		check_text(field, json, path);
		return;
	case SCHEMA_INT:
		if (!json_is_integer(json) || json_integer_value(json) < field->min ||
		    (field->max && json_integer_value(json) > field->max))
			refuse(path, json, "is no number in its bounds");
		return;
	case SCHEMA_BOOL:
		if (!json_is_boolean(json))
			refuse(path, json, "is neither true nor false");
		return;
	case SCHEMA_OBJECT:
		check_object(schema_type_find(field->of), json, path);
		return;
	case SCHEMA_LABELS:
		check_labels(json, field->flags, path);
		return;
	case SCHEMA_ANY:
		if (!json_is_object(json))
			refuse(path, json, "is no object");
		return;
	}
}

static void check_field(const struct schema_field *field, const json_t *json, const char *path)
{
	if (!schema_seen(field))
		*vec_push(&seen) = field;
	if (!(field->flags & SCHEMA_LIST)) {
		check_value(field, json, path);
		return;
	}
	if (!json_is_array(json) || (field->most && json_array_size(json) > (size_t)field->most) ||
	    (field->flags & SCHEMA_FILLED && json_array_size(json) == 0))
		refuse(path, json, "is no list in its bounds");
	for (size_t i = 0; i < json_array_size(json); i++)
		check_value(field, json_array_get(json, i), path);
}

static const struct schema_field *find_field(const struct schema_type *type, const char *name)
{
	for (const struct schema_field *field = type->fields; field->name; field++) {
		if (str_equal(field->name, name))
			return field;
	}
	return NULL;
}

static void check_list(const struct schema_type *type, const json_t *json, const char *path)
{
	const json_t *items = json_object_get(json, "items");
	size_t more = json_is_string(json_object_get(json, "nextCursor"));

	if (!json_is_array(items) || json_object_size(json) != 1 + more)
		refuse(path, json, "is no page of a list");
	for (size_t i = 0; i < json_array_size(items); i++)
		check_object(schema_type_find(type->list_of), json_array_get(items, i), path);
}

static void check_object(const struct schema_type *type, const json_t *json, const char *path)
{
	const char *name;
	json_t *value;

	if (!json_is_object(json))
		refuse(path, json, "is no object");
	if (type->list_of) {
		check_list(type, json, path);
		return;
	}
	json_object_foreach((json_t *)json, name, value)
	{
		const struct schema_field *field = find_field(type, name);
		char inner[PATH_SIZE];

		snprintf(inner, sizeof inner, "%s.%s", path, name);
		if (!field)
			refuse(inner, value, "is not in the document");
		check_field(field, value, inner);
	}
	for (const struct schema_field *field = type->fields; field->name; field++) {
		char inner[PATH_SIZE];

		snprintf(inner, sizeof inner, "%s.%s", path, field->name);
		if (field->flags & SCHEMA_REQUIRED && !json_object_get(json, field->name))
			refuse(inner, json, "is missing");
	}
}

void schema_check(const char *type, const json_t *json)
{
	assert_non_null(schema_type_find(type));
	check_object(schema_type_find(type), json, type);
}

void schema_check_call(route_call_fn *function, const json_t *body, const json_t *answer)
{
	for (size_t i = 0; i < ROUTES_COUNT; i++) {
		if (ROUTES[i].call != function)
			continue;
		if (body && ROUTES[i].request_type)
			schema_check(ROUTES[i].request_type, body);
		schema_check(ROUTES[i].answer_type, answer);
		return;
	}
}
