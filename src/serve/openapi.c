#include "serve/openapi.h"

#include "base/error.h"
#include "serve/routes.h"
#include "serve/schema.h"
#include "text/tree.h"

#include <stdio.h>

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
#define MAX_CHOICES 16

static json_t *text(const char *value)
{
	return tree_string(value);
}

static json_t *reference(const char *kind, const char *name)
{
	json_t *object = json_object();

	tree_set(object, "$ref", json_sprintf("#/components/%s/%s", kind, name));
	return object;
}

/* "tenant_create" to "tenantCreate". */
static json_t *operation_id(const char *name)
{
	char out[64];
	size_t used = 0;

	for (const char *c = name; *c && used + 1 < sizeof out; c++) {
		bool up = *c == '_';

		if (up)
			c++;
		out[used++] = (char)(up && *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	}
	out[used] = '\0';
	return text(out);
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
	tree_set(schema, "type", text("string"));
	tree_set(schema, "minLength", json_integer(field->min));
	tree_set(schema, "maxLength", json_integer(field->max ? field->max : TEXT_MAX));
	if (field->of)
		tree_set(schema, "pattern", text(field->of));
	else if (asked)
		tree_set(schema, "pattern",
			 text(field->flags & SCHEMA_SECRET ? SECRET_PATTERN : PLAIN_PATTERN));
}

static void set_labels(json_t *schema, const struct schema_field *field)
{
	json_t *names = json_object(), *values = json_object(), *type;

	tree_set(names, "pattern", text("^(" LABEL_DOMAIN "/)?" LABEL_PART "$"));
	tree_set(values, "pattern", text("^(" LABEL_PART ")?$"));
	if (field->flags & SCHEMA_NULLABLE) {
		type = json_array();
		json_array_append_new(type, text("string"));
		json_array_append_new(type, text("null"));
	} else {
		type = text("string");
	}
	tree_set(values, "type", type);
	tree_set(schema, "type", text("object"));
	if (field->most) {
		json_t *reserved = json_object();

		/* Such names are ours to give. */
		tree_set(reserved, "pattern", text("^([a-z0-9.-]*\\.)?" LABEL_RESERVED "/"));
		tree_set(names, "not", reserved);
		tree_set(schema, "propertyNames", names);
		tree_set(schema, "maxProperties", json_integer(field->most));
	} else {
		json_decref(names);
	}
	tree_set(schema, "additionalProperties", values);
}

static json_t *scalar_schema(const struct schema_field *field, bool asked)
{
	json_t *schema = json_object();

	switch (field->kind) {
	case SCHEMA_TEXT:
		set_text_bounds(schema, field, asked);
		break;
	case SCHEMA_NAME:
		tree_set(schema, "type", text("string"));
		tree_set(schema, "minLength", json_integer(1));
		tree_set(schema, "maxLength", json_integer(63));
		tree_set(schema, "pattern", text(NAME_PATTERN));
		break;
	case SCHEMA_ID:
		tree_set(schema, "type", text("string"));
		tree_set(schema, "pattern",
			 json_sprintf("^%s_" ULID_PATTERN "$", *field->of ? field->of : "[a-z]+"));
		break;
	case SCHEMA_TIME:
		tree_set(schema, "type", text("string"));
		tree_set(schema, "format", text("date-time"));
		break;
	case SCHEMA_DURATION:
		tree_set(schema, "type", text("string"));
		tree_set(schema, "format", text("bc-duration"));
		tree_set(schema, "pattern", text(DURATION_PATTERN));
		tree_set(schema, "maxLength", json_integer(32));
		break;
	case SCHEMA_INT:
		tree_set(schema, "type", text("integer"));
		tree_set(schema, "format", text("int64"));
		tree_set(schema, "minimum", json_integer(field->min));
		if (field->max)
			tree_set(schema, "maximum", json_integer(field->max));
		break;
	case SCHEMA_BOOL:
		tree_set(schema, "type", text("boolean"));
		break;
	case SCHEMA_CHOICE:
		tree_set(schema, "type", text("string"));
		tree_set(schema, "enum", choices(field->of));
		break;
	case SCHEMA_OBJECT:
		json_decref(schema);
		return reference("schemas", field->of);
	case SCHEMA_LABELS:
		set_labels(schema, field);
		break;
	case SCHEMA_ANY:
		tree_set(schema, "type", text("object"));
		break;
	}
	return schema;
}

static json_t *type_example(const struct schema_type *type);

static json_t *scalar_example(const struct schema_field *field)
{
	switch (field->kind) {
	case SCHEMA_TEXT:
	case SCHEMA_NAME:
		return text(field->example ? field->example : "text");
	case SCHEMA_ID:
		return json_sprintf("%s_" SAMPLE_ULID, *field->of ? field->of : "pool");
	case SCHEMA_TIME:
		return text(SAMPLE_TIME);
	case SCHEMA_DURATION:
		return text(field->example ? field->example : "8h");
	case SCHEMA_INT:
		return json_integer(field->example ? strtoll(field->example, NULL, 10)
						   : field->min);
	case SCHEMA_BOOL:
		return json_true();
	case SCHEMA_CHOICE:
		return json_stringn(field->of, strcspn(field->of, "|"));
	case SCHEMA_OBJECT:
		return type_example(schema_type_find(field->of));
	case SCHEMA_LABELS:
		return json_pack("{s:s}", "example.com/rack", "r17");
	case SCHEMA_ANY:
		break;
	}
	return json_pack("{s:s}", "state", "placed");
}

static json_t *field_example(const struct schema_field *field)
{
	json_t *example = scalar_example(field), *list;

	if (!(field->flags & SCHEMA_LIST))
		return example;
	list = json_array();
	json_array_append_new(list, example);
	return list;
}

static json_t *field_schema(const struct schema_field *field, bool asked)
{
	json_t *schema = scalar_schema(field, asked), *list;

	if (field->flags & SCHEMA_LIST) {
		list = json_object();
		tree_set(list, "type", text("array"));
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
		tree_set(schema, "description", text(field->help));
	return schema;
}

/* --- types --- */

static json_t *type_example(const struct schema_type *type)
{
	json_t *example = json_object();

	if (type->list_of) {
		json_t *items = json_array();

		json_array_append_new(items, type_example(schema_type_find(type->list_of)));
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

	tree_set(items, "type", text("array"));
	tree_set(items, "items", reference("schemas", type->list_of));
	tree_set(items, "maxItems", json_integer(CONTROL_MAX_PAGE));
	tree_set(cursor, "type", text("string"));
	tree_set(cursor, "description",
		 text("the cursor of the next page; absent on the last one"));
	tree_set(properties, "items", items);
	tree_set(properties, "nextCursor", cursor);
	tree_set(schema, "type", text("object"));
	tree_set(schema, "description", text(type->help));
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
			json_array_append_new(required, text(field->name));
	}
	tree_set(schema, "type", text("object"));
	tree_set(schema, "description", text(type->help));
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

static json_t *schemas(void)
{
	json_t *all = json_object();

	for (size_t i = 0; i < SCHEMA_TYPES_COUNT; i++) {
		const struct schema_type *type = &SCHEMA_TYPES[i];

		tree_set(all, type->name,
			 type->list_of ? list_schema(type) : type_schema(type, is_asked(type)));
	}
	return all;
}

/* --- answers --- */

static json_t *content_of(const char *type_name, bool streams)
{
	json_t *content = json_object(), *media = json_object();

	tree_set(media, "schema", reference("schemas", type_name));
	tree_set(media, "example", type_example(schema_type_find(type_name)));
	tree_set(content, "application/json", media);
	if (streams)
		tree_set(content, "text/event-stream",
			 json_pack("{s:{s:s}}", "schema", "type", "string"));
	return content;
}

static const struct refusal {
	const char *status, *name, *help;
	bool needs_body, needs_id, retries;
} REFUSALS[] = {
	{.status = "400",
	 "InvalidInput",
	 "INVALID_INPUT, INVALID_CONFIG: something in the request is wrong"},
	{.status = "401", "Unauthenticated", "UNAUTHENTICATED: no valid API key was given"},
	{.status = "403", "Forbidden", "FORBIDDEN: the key's role doesn't reach"},
	{.status = "404",
	 "NotFound",
	 "NOT_FOUND: there is no such thing, or it isn't yours to see"},
	{.status = "409",
	 "Conflict",
	 "CONFLICT, INVALID_STATE, RESOURCES_EXHAUSTED: not as things stand"},
	{.status = "413", "TooLarge", "INVALID_INPUT: the body is over 1 MiB", .needs_body = true},
	{.status = "414", "TooLong", "INVALID_INPUT: path and query are over 4 KiB"},
	{.status = "415",
	 "NotJson",
	 "INVALID_INPUT: the body isn't application/json",
	 .needs_body = true},
	{.status = "429",
	 "RateLimited",
	 "RATE_LIMITED: too many calls; ask again later",
	 .retries = true},
	{.status = "500", "Internal", "INTERNAL: a defect, in the log under the request's id"},
	{.status = "503", "Unavailable", "UNAVAILABLE: not now; ask again later", .retries = true},
};

static json_t *header(const char *help, const char *type)
{
	return json_pack("{s:s, s:{s:s}}", "description", help, "schema", "type", type);
}

static json_t *refusals(void)
{
	json_t *all = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(REFUSALS); i++) {
		json_t *answer = json_object(), *headers = json_object();
		json_t *media = json_object(), *content = json_object();

		tree_set(headers, "X-Request-Id", header("the request's id", "string"));
		if (REFUSALS[i].retries)
			tree_set(headers, "Retry-After", header("seconds to wait", "integer"));
		tree_set(media, "schema", reference("schemas", "Error"));
		tree_set(content, "application/json", media);
		tree_set(answer, "description", text(REFUSALS[i].help));
		tree_set(answer, "headers", headers);
		tree_set(answer, "content", content);
		tree_set(all, REFUSALS[i].name, answer);
	}
	return all;
}

/* --- links --- */

static const struct schema_field *find_field(const char *type_name, const char *name)
{
	const struct schema_type *type = type_name ? schema_type_find(type_name) : NULL;

	for (const struct schema_field *field = type ? type->fields : NULL; field && field->name;
	     field++) {
		if (str_equal(field->name, name))
			return field;
	}
	return NULL;
}

/* A collection's path that the answer's id is a member of: what made it is POSTed there. */
static bool is_member_path(const struct route *maker, const char *path)
{
	size_t length = strlen(maker->path);

	return strncmp(maker->path, path, length) == 0 && str_starts(path + length, "/{id}");
}

/* The field of `type_name` that holds an id for `wanted`: of its name, or the id itself. */
static const char *id_for(const char *type_name, const struct schema_field *wanted)
{
	const struct schema_field *same = find_field(type_name, wanted->name);
	const struct schema_field *own = find_field(type_name, "id");

	if (same && same->kind == SCHEMA_ID && str_equal(same->of, wanted->of))
		return same->name;
	return own && own->kind == SCHEMA_ID && str_equal(own->of, wanted->of) ? "id" : NULL;
}

/* Body fields of `to` that the answer of `from` gives; NULL unless it gives every id it needs. */
static json_t *linked_body(const struct route *from, const struct route *to)
{
	const struct schema_type *type =
		to->request_type ? schema_type_find(to->request_type) : NULL;
	json_t *body = json_object();

	for (const struct schema_field *field = type ? type->fields : NULL; field && field->name;
	     field++) {
		const char *source =
			field->kind == SCHEMA_ID ? id_for(from->answer_type, field) : NULL;

		if (source)
			tree_set(body, field->name, json_sprintf("$response.body#/%s", source));
		else if (field->kind == SCHEMA_ID && field->flags & SCHEMA_REQUIRED)
			json_object_clear(body), type = NULL;
		if (!type)
			break;
	}
	if (json_object_size(body) > 0)
		return body;
	json_decref(body);
	return NULL;
}

static json_t *links(const struct route *from)
{
	json_t *all = json_object();
	bool makes = str_equal(from->method, "POST") && find_field(from->answer_type, "id");

	if (from->query & ROUTE_QUERY_CURSOR)
		tree_set(all, "next_page",
			 json_pack("{s:o, s:{s:s}}", "operationId", operation_id(from->name),
				   "parameters", "cursor", "$response.body#/nextCursor"));
	for (size_t i = 0; i < ROUTES_COUNT && makes; i++) {
		const struct route *to = &ROUTES[i];
		json_t *link = NULL, *body;

		if (is_member_path(from, to->path)) {
			link = json_pack("{s:{s:s}}", "parameters", "id", "$response.body#/id");
		} else if (!strstr(to->path, "{id}") && (body = linked_body(from, to))) {
			link = json_object();
			tree_set(link, "requestBody", body);
		}
		if (!link)
			continue;
		tree_set(link, "operationId", operation_id(to->name));
		tree_set(all, to->name, link);
	}
	return all;
}

/* --- operations --- */

static json_t *parameter(const struct schema_field *field, const char *in)
{
	json_t *all = json_object();

	tree_set(all, "name", text(field->name));
	tree_set(all, "in", text(in));
	tree_set(all, "description", text(field->help));
	tree_set(all, "required", json_boolean(str_equal(in, "path")));
	tree_set(all, "schema", scalar_schema(field, true));
	tree_set(all, "example", scalar_example(field));
	return all;
}

/* The prefix of the ids in this path: of what its collection lists, or makes. */
static const char *path_prefix(const struct route *route)
{
	size_t length = strcspn(route->path, "{") - 1;

	for (size_t i = 0; i < ROUTES_COUNT; i++) {
		const struct schema_type *type = schema_type_find(ROUTES[i].answer_type);
		const struct schema_field *id;

		if (strncmp(ROUTES[i].path, route->path, length) != 0 ||
		    ROUTES[i].path[length] != '\0')
			continue;
		id = find_field(type->list_of ? type->list_of : type->name, "id");
		if (id)
			return id->of;
	}
	assert(false);
	return NULL;
}

static json_t *parameters(const struct route *route)
{
	json_t *all = json_array();

	if (strstr(route->path, "{id}")) {
		struct schema_field id = {
			.name = "id", SCHEMA_ID, SCHEMA_REQUIRED, "which one", path_prefix(route)};

		json_array_append_new(all, parameter(&id, "path"));
	}
	for (size_t i = 0; i < ROUTE_PARAMETERS_COUNT; i++) {
		if (route->query & ROUTE_PARAMETERS[i].bit)
			json_array_append_new(all, parameter(&ROUTE_PARAMETERS[i].field, "query"));
	}
	return all;
}

static json_t *responses(const struct route *route)
{
	json_t *all = json_object(), *done = json_object(), *headers = json_object();
	json_t *linked = links(route);

	tree_set(headers, "X-Request-Id", header("the request's id", "string"));
	tree_set(done, "description", text(schema_type_find(route->answer_type)->help));
	tree_set(done, "headers", headers);
	tree_set(done, "content", content_of(route->answer_type, route->query & ROUTE_QUERY_AFTER));
	if (json_object_size(linked) > 0)
		tree_set(done, "links", linked);
	else
		json_decref(linked);
	tree_set(all, "200", done);
	for (size_t i = 0; i < ARRAY_SIZE(REFUSALS); i++) {
		if (!REFUSALS[i].needs_body || route->request_type)
			tree_set(all, REFUSALS[i].status, reference("responses", REFUSALS[i].name));
	}
	return all;
}

/* "/v1/join-tokens/{id}/revoke" to "join-tokens". */
static json_t *tag(const char *path)
{
	const char *noun = path + strlen("/v1/");

	return json_stringn(noun, strcspn(noun, "/"));
}

static json_t *operation(const struct route *route)
{
	json_t *all = json_object(), *tags = json_array(), *body;

	json_array_append_new(tags, tag(route->path));
	tree_set(all, "operationId", operation_id(route->name));
	tree_set(all, "summary", text(route->summary));
	tree_set(all, "tags", tags);
	tree_set(all, "parameters", parameters(route));
	if (route->request_type) {
		body = json_object();
		tree_set(body, "required", json_boolean(route->body == ROUTE_BODY_NEEDED));
		tree_set(body, "content", content_of(route->request_type, false));
		tree_set(all, "requestBody", body);
	}
	tree_set(all, "responses", responses(route));
	return all;
}

static json_t *open_operation(const struct route_open *route)
{
	json_t *all = json_object(), *content = json_object(), *done = json_object();
	json_t *answers = json_object();
	bool is_text = str_equal(route->content_type, "text/plain");

	tree_set(content, route->content_type,
		 json_pack("{s:{s:s}}", "schema", "type", is_text ? "string" : "object"));
	tree_set(done, "description", text(route->summary));
	tree_set(done, "content", content);
	tree_set(answers, "200", done);
	if (route->local) {
		tree_set(answers, "401", reference("responses", "Unauthenticated"));
		tree_set(answers, "403", reference("responses", "Forbidden"));
	}
	tree_set(answers, "429", reference("responses", "RateLimited"));
	tree_set(answers, "503", reference("responses", "Unavailable"));
	tree_set(all, "operationId", operation_id(route->name));
	tree_set(all, "summary", text(route->summary));
	tree_set(all, "tags", json_pack("[s]", "service"));
	tree_set(all, "security", json_array());
	tree_set(all, "responses", answers);
	return all;
}

static json_t *member(json_t *object, const char *name)
{
	json_t *found = json_object_get(object, name);

	if (!found) {
		found = json_object();
		tree_set(object, name, found);
	}
	return found;
}

static json_t *paths(void)
{
	json_t *all = json_object();

	for (size_t i = 0; i < ROUTES_COUNT; i++) {
		char method[8];
		size_t length = strlen(ROUTES[i].method);

		assert(length < sizeof method);
		for (size_t j = 0; j <= length; j++)
			method[j] = (char)(ROUTES[i].method[j] | (j < length ? 0x20 : 0));
		tree_set(member(all, ROUTES[i].path), method, operation(&ROUTES[i]));
	}
	for (size_t i = 0; i < ROUTES_OPEN_COUNT; i++)
		tree_set(member(all, ROUTES_OPEN[i].path), "get", open_operation(&ROUTES_OPEN[i]));
	return all;
}

/* --- the document --- */

static json_t *components(void)
{
	json_t *all = json_object();

	tree_set(all, "schemas", schemas());
	tree_set(all, "responses", refusals());
	tree_set(all, "securitySchemes",
		 json_pack("{s:{s:s, s:s, s:s}}", "key", "type", "http", "scheme", "bearer",
			   "description", "an API key, bck_…"));
	return all;
}

void openapi_write(struct buf *out)
{
	CLEANUP(tree) json_t *document = json_object();

	tree_set(document, "openapi", text("3.1.0"));
	tree_set(document, "info",
		 json_pack("{s:s, s:s, s:s}", "title", "better-compute", "version", BC_VERSION,
			   "description",
			   "GPU capacity lent to Kubernetes clusters by reservation. Every answer "
			   "carries X-Request-Id; every refusal has the same body."));
	tree_set(document, "servers", json_pack("[{s:s}]", "url", "/"));
	tree_set(document, "security", json_pack("[{s:[]}]", "key"));
	tree_set(document, "paths", paths());
	tree_set(document, "components", components());
	tree_dump_pretty(out, document);
}
