#include "serve/openapi_types.h"

#include "serve/routes.h"

#define TEXT_MAX       1024 /* of a text that has no bound of its own */
#define SAMPLE_ULID    "01jd4z5x9f0123456789abcdef"
#define SAMPLE_TIME    "2026-11-30T02:00:00.000Z"
#define ULID_PATTERN   "[0-7][0-9a-hjkmnp-tv-z]{25}"
#define NAME_PATTERN   "^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$"
#define SECRET_PATTERN "^[^\\u0000]+$"
#define PLAIN_PATTERN  "^[^\\u0000-\\u001f\\u007f]+$"
#define LABEL_PART     "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
#define LABEL_DOMAIN                                                                               \
	"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?){0,3}"
#define LABEL_RESERVED "((bcd|bc|better-compute)\\.dev|(kubernetes|k8s)\\.io)"
/* Units in falling order, each at most once. */
#define DURATION_PATTERN                                                                           \
	"^([0-9]+d([0-9]+h)?([0-9]+m)?([0-9]+s)?|[0-9]+h([0-9]+m)?([0-9]+s)?|"                     \
	"[0-9]+m([0-9]+s)?|[0-9]+s)$"

json_t *openapi_reference(const char *kind, const char *name)
{
	json_t *object = json_object();

	tree_set(object, "$ref", json_sprintf("#/components/%s/%s", kind, name));
	return object;
}

/* --- one field --- */

static json_t *choices(const char *of)
{
	json_t *list = json_array();

	while (*of) {
		size_t length = strcspn(of, "|");

		json_array_append_new(list, json_stringn(of, length));
		of += length + (of[length] == '|');
	}
	return list;
}

/* Who asks gives no control characters; answers may hold what others have said. */
static void set_text_bounds(json_t *schema, const struct schema_field *field, bool asked)
{
	tree_set(schema, "type", tree_string("string"));
	tree_set(schema, "minLength", json_integer(field->min));
	tree_set(schema, "maxLength", json_integer(field->max ? field->max : TEXT_MAX));
	if (field->of)
		tree_set(schema, "pattern", tree_string(field->of));
	else if (asked)
		tree_set(
			schema, "pattern",
			tree_string(field->flags & SCHEMA_SECRET ? SECRET_PATTERN : PLAIN_PATTERN));
}

static void set_labels(json_t *schema, const struct schema_field *field)
{
	json_t *names = json_object(), *values = json_object(), *type;

	tree_set(names, "pattern", tree_string("^(" LABEL_DOMAIN "/)?" LABEL_PART "$"));
	tree_set(values, "pattern", tree_string("^(" LABEL_PART ")?$"));
	if (field->flags & SCHEMA_NULLABLE) {
		type = json_array();
		json_array_append_new(type, tree_string("string"));
		json_array_append_new(type, tree_string("null"));
	} else {
		type = tree_string("string");
	}
	tree_set(values, "type", type);
	tree_set(schema, "type", tree_string("object"));
	if (field->most) {
		json_t *reserved = json_object();

		/* Such names are ours to give. */
		tree_set(reserved, "pattern", tree_string("^([a-z0-9.-]*\\.)?" LABEL_RESERVED "/"));
		tree_set(names, "not", reserved);
		tree_set(schema, "propertyNames", names);
		tree_set(schema, "maxProperties", json_integer(field->most));
	} else {
		json_decref(names);
	}
	tree_set(schema, "additionalProperties", values);
}

json_t *openapi_scalar(const struct schema_field *field, bool asked)
{
	json_t *schema = json_object();

	switch (field->kind) {
	case SCHEMA_TEXT:
		set_text_bounds(schema, field, asked);
		break;
	case SCHEMA_NAME:
		tree_set(schema, "type", tree_string("string"));
		tree_set(schema, "minLength", json_integer(1));
		tree_set(schema, "maxLength", json_integer(63));
		tree_set(schema, "pattern", tree_string(NAME_PATTERN));
		break;
	case SCHEMA_ID:
		tree_set(schema, "type", tree_string("string"));
		tree_set(schema, "pattern",
			 json_sprintf("^%s_" ULID_PATTERN "$", *field->of ? field->of : "[a-z]+"));
		break;
	case SCHEMA_TIME:
		tree_set(schema, "type", tree_string("string"));
		tree_set(schema, "format", tree_string("date-time"));
		break;
	case SCHEMA_DURATION:
		tree_set(schema, "type", tree_string("string"));
		tree_set(schema, "format", tree_string("bc-duration"));
		tree_set(schema, "pattern", tree_string(DURATION_PATTERN));
		tree_set(schema, "maxLength", json_integer(32));
		break;
	case SCHEMA_INT:
		tree_set(schema, "type", tree_string("integer"));
		tree_set(schema, "format", tree_string("int64"));
		tree_set(schema, "minimum", json_integer(field->min));
		if (field->max)
			tree_set(schema, "maximum", json_integer(field->max));
		break;
	case SCHEMA_BOOL:
		tree_set(schema, "type", tree_string("boolean"));
		break;
	case SCHEMA_CHOICE:
		tree_set(schema, "type", tree_string("string"));
		tree_set(schema, "enum", choices(field->of));
		break;
	case SCHEMA_OBJECT:
		json_decref(schema);
		return openapi_reference("schemas", field->of);
	case SCHEMA_LABELS:
		set_labels(schema, field);
		break;
	case SCHEMA_ANY:
		tree_set(schema, "type", tree_string("object"));
		break;
	}
	return schema;
}

json_t *openapi_scalar_example(const struct schema_field *field)
{
	switch (field->kind) {
	case SCHEMA_TEXT:
	case SCHEMA_NAME:
		return tree_string(field->example ? field->example : "text");
	case SCHEMA_ID:
		return json_sprintf("%s_" SAMPLE_ULID, *field->of ? field->of : "pool");
	case SCHEMA_TIME:
		return tree_string(SAMPLE_TIME);
	case SCHEMA_DURATION:
		return tree_string(field->example ? field->example : "8h");
	case SCHEMA_INT:
		return json_integer(field->example ? strtoll(field->example, NULL, 10)
						   : field->min);
	case SCHEMA_BOOL:
		return json_true();
	case SCHEMA_CHOICE:
		return json_stringn(field->of, strcspn(field->of, "|"));
	case SCHEMA_OBJECT:
		return openapi_type_example(schema_type_find(field->of));
	case SCHEMA_LABELS:
		return field->example ? json_loads(field->example, 0, NULL)
				      : json_pack("{s:s}", "example.com/rack", "r17");
	case SCHEMA_ANY:
		break;
	}
	return json_pack("{s:s}", "state", "placed");
}

static json_t *field_example(const struct schema_field *field)
{
	json_t *example = openapi_scalar_example(field), *list;

	if (!(field->flags & SCHEMA_LIST))
		return example;
	list = json_array();
	json_array_append_new(list, example);
	return list;
}

static json_t *field_schema(const struct schema_field *field, bool asked)
{
	json_t *schema = openapi_scalar(field, asked), *list;

	if (field->flags & SCHEMA_LIST) {
		list = json_object();
		tree_set(list, "type", tree_string("array"));
		tree_set(list, "items", schema);
		if (field->flags & SCHEMA_FILLED)
			tree_set(list, "minItems", json_integer(1));
		if (field->most)
			tree_set(list, "maxItems", json_integer(field->most));
		schema = list;
	}
	if (field->kind == SCHEMA_DURATION)
		tree_set(schema, "description", json_sprintf("%s (%s)", field->help, field->of));
	else
		tree_set(schema, "description", tree_string(field->help));
	return schema;
}

/* --- types --- */

json_t *openapi_type_example(const struct schema_type *type)
{
	json_t *example = json_object();

	if (type->list_of) {
		json_t *items = json_array();

		json_array_append_new(items, openapi_type_example(schema_type_find(type->list_of)));
		tree_set(example, "items", items);
		return example;
	}
	for (const struct schema_field *field = type->fields; field->name; field++) {
		if (!(field->flags & SCHEMA_ASIDE))
			tree_set(example, field->name, field_example(field));
	}
	return example;
}

static void set_rule(json_t *schema, const char *rule)
{
	CLEANUP(tree) json_t *parsed = NULL;
	struct error error;

	if (!rule)
		return;
	if (!tree_parse(rule, strlen(rule), TEXT_MAX, "rule", &parsed, &error))
		abort(); /* a constant of schema.c */
	json_object_update(schema, parsed);
}

static json_t *list_schema(const struct schema_type *type)
{
	json_t *schema = json_object(), *properties = json_object();
	json_t *items = json_object(), *cursor = json_object();

	tree_set(items, "type", tree_string("array"));
	tree_set(items, "items", openapi_reference("schemas", type->list_of));
	tree_set(items, "maxItems", json_integer(CONTROL_MAX_PAGE));
	tree_set(cursor, "type", tree_string("string"));
	tree_set(cursor, "description",
		 tree_string("the cursor of the next page; absent on the last one"));
	tree_set(properties, "items", items);
	tree_set(properties, "nextCursor", cursor);
	tree_set(schema, "type", tree_string("object"));
	tree_set(schema, "description", tree_string(type->help));
	tree_set(schema, "required", json_pack("[s]", "items"));
	tree_set(schema, "properties", properties);
	return schema;
}

static json_t *type_schema(const struct schema_type *type, bool asked)
{
	json_t *schema = json_object(), *properties = json_object(), *required = json_array();

	for (const struct schema_field *field = type->fields; field->name; field++) {
		tree_set(properties, field->name, field_schema(field, asked));
		if (field->flags & SCHEMA_REQUIRED)
			json_array_append_new(required, tree_string(field->name));
	}
	tree_set(schema, "type", tree_string("object"));
	tree_set(schema, "description", tree_string(type->help));
	if (json_array_size(required) > 0)
		tree_set(schema, "required", required);
	else
		json_decref(required);
	tree_set(schema, "properties", properties);
	set_rule(schema, type->rule);
	/* Bodies are read strictly; answers may grow. */
	if (asked)
		tree_set(schema, "additionalProperties", json_false());
	return schema;
}

/* Is this type what a call takes, or a part of it? */
static bool is_asked(const struct schema_type *type)
{
	for (size_t i = 0; i < ROUTES_COUNT; i++) {
		if (ROUTES[i].request_type && str_equal(ROUTES[i].request_type, type->name))
			return true;
	}
	for (size_t i = 0; i < SCHEMA_TYPES_COUNT; i++) {
		const struct schema_field *field = SCHEMA_TYPES[i].fields;

		for (; field && field->name; field++) {
			if (field->kind == SCHEMA_OBJECT && str_equal(field->of, type->name) &&
			    &SCHEMA_TYPES[i] != type && is_asked(&SCHEMA_TYPES[i]))
				return true;
		}
	}
	return false;
}

json_t *openapi_schemas(void)
{
	json_t *all = json_object();

	for (size_t i = 0; i < SCHEMA_TYPES_COUNT; i++) {
		const struct schema_type *type = &SCHEMA_TYPES[i];

		tree_set(all, type->name,
			 type->list_of ? list_schema(type) : type_schema(type, is_asked(type)));
	}
	return all;
}
