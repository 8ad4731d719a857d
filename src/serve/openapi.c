#include "serve/openapi.h"

#include "base/error.h"
#include "serve/openapi_types.h"
#include "serve/routes.h"

#include <stdio.h>

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
	return tree_string(out);
}

/* --- answers --- */

static json_t *content_of(const char *type_name, bool streams)
{
	json_t *content = json_object(), *media = json_object();

	tree_set(media, "schema", openapi_reference("schemas", type_name));
	tree_set(media, "example", openapi_type_example(schema_type_find(type_name)));
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
		tree_set(media, "schema", openapi_reference("schemas", "Error"));
		tree_set(content, "application/json", media);
		tree_set(answer, "description", tree_string(REFUSALS[i].help));
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

	tree_set(all, "name", tree_string(field->name));
	tree_set(all, "in", tree_string(in));
	tree_set(all, "description", tree_string(field->help));
	tree_set(all, "required", json_boolean(str_equal(in, "path")));
	tree_set(all, "schema", openapi_scalar(field, true));
	tree_set(all, "example", openapi_scalar_example(field));
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
	tree_set(done, "description", tree_string(schema_type_find(route->answer_type)->help));
	tree_set(done, "headers", headers);
	tree_set(done, "content", content_of(route->answer_type, route->query & ROUTE_QUERY_AFTER));
	if (json_object_size(linked) > 0)
		tree_set(done, "links", linked);
	else
		json_decref(linked);
	tree_set(all, "200", done);
	for (size_t i = 0; i < ARRAY_SIZE(REFUSALS); i++) {
		if (!REFUSALS[i].needs_body || route->request_type)
			tree_set(all, REFUSALS[i].status,
				 openapi_reference("responses", REFUSALS[i].name));
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
	tree_set(all, "summary", tree_string(route->summary));
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
	tree_set(done, "description", tree_string(route->summary));
	tree_set(done, "content", content);
	tree_set(answers, "200", done);
	if (route->local) {
		tree_set(answers, "401", openapi_reference("responses", "Unauthenticated"));
		tree_set(answers, "403", openapi_reference("responses", "Forbidden"));
	}
	tree_set(answers, "429", openapi_reference("responses", "RateLimited"));
	tree_set(answers, "503", openapi_reference("responses", "Unavailable"));
	tree_set(all, "operationId", operation_id(route->name));
	tree_set(all, "summary", tree_string(route->summary));
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

	tree_set(all, "schemas", openapi_schemas());
	tree_set(all, "responses", refusals());
	tree_set(all, "securitySchemes",
		 json_pack("{s:{s:s, s:s, s:s}}", "key", "type", "http", "scheme", "bearer",
			   "description", "an API key, bck_…"));
	return all;
}

void openapi_write(struct buf *out)
{
	CLEANUP(tree) json_t *document = json_object();

	tree_set(document, "openapi", tree_string("3.1.0"));
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
