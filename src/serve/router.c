#include "serve/router.h"

#include "control/metrics.h"
#include "serve/metrics.h"
#include "serve/outward.h"
#include "serve/routes.h"
#include "sys/log.h"
#include "text/exposition.h"
#include "text/tree.h"

#include <stdio.h>
#include <strings.h>

#define SEGMENT_SIZE  128 /* one decoded part of a path */
#define QUERY_MAX     8   /* pairs */
#define QUERY_VALUE   1024
#define RETRY_AFTER_S 1
#define JSON_TYPE     "application/json"
#define EVENTS_PAGE   "100" /* of a stream */
#define TEXT_TYPE     "text/plain; charset=utf-8"

/* --- answers --- */

void response_deinit(struct response *response)
{
	if (response)
		buf_deinit(&response->body);
}

static void answer_text(struct response *response, int status, const char *type, const char *text)
{
	response->status = status;
	response->content_type = type;
	buf_clear(&response->body);
	buf_add_text(&response->body, text);
}

static void answer_json(struct response *response, int status, const json_t *json)
{
	response->status = status;
	response->content_type = JSON_TYPE;
	buf_clear(&response->body);
	tree_dump_pretty(&response->body, json);
}

void response_http_error(struct response *response, int status, const struct error *error,
			 const char *request_id)
{
	CLEANUP(tree) json_t *body = json_object();
	json_t *inner = json_object();

	tree_set(inner, "code", tree_string(error_code_name(error->code)));
	tree_set(inner, "message", tree_string(error->what));
	if (error->field[0])
		tree_set(inner, "field", tree_string(error->field));
	if (error->hint[0])
		tree_set(inner, "hint", tree_string(error->hint));
	tree_set(inner, "requestId", tree_string(request_id));
	tree_set(body, "error", inner);
	answer_json(response, status, body);
	if (error->code == ERROR_UNAVAILABLE || error->code == ERROR_RATE_LIMITED)
		response->retry_after_s = RETRY_AFTER_S;
}

void response_error(struct response *response, const struct error *error, const char *request_id)
{
	response_http_error(response, error_http_status(error->code), error, request_id);
}

/* --- targets --- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decodes; false for a broken escape, a NUL, or text that doesn't fit. */
static bool decode(const char *text, size_t length, bool plus_is_space, char *out, size_t out_size)
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		char c = text[i];

		if (c == '%') {
			int high = i + 2 < length ? hex_digit(text[i + 1]) : -1;
			int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

			if (low < 0 || (high == 0 && low == 0))
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		} else if (c == '+' && plus_is_space) {
			c = ' ';
		}
		if (used + 1 >= out_size)
			return false;
		out[used++] = c;
	}
	out[used] = '\0';
	return true;
}

/* Does the path fit the pattern? Its "{id}" part goes to `id`; one that can't be decoded fits
 * nothing. */
static bool path_matches(const char *pattern, const char *path, size_t path_length,
			 char id[SEGMENT_SIZE])
{
	const char *end = path + path_length;

	id[0] = '\0';
	while (*pattern && path < end) {
		if (str_starts(pattern, "{id}")) {
			size_t length = strcspn(path, "/?");

			if (length == 0 || !decode(path, length, false, id, SEGMENT_SIZE))
				return false;
			pattern += strlen("{id}");
			path += length;
		} else if (*pattern++ != *path++) {
			return false;
		}
	}
	return *pattern == '\0' && path == end;
}

struct match {
	const struct route *route; /* NULL: none */
	char allow[64];            /* methods of this path, when it has any */
	char id[SEGMENT_SIZE];
};

static size_t path_length(const char *target)
{
	return strcspn(target, "?");
}

static bool path_is(const struct request *request, const char *path)
{
	return strlen(path) == path_length(request->target) && str_starts(request->target, path);
}

static const struct route_open *find_open(const struct request *request)
{
	for (size_t i = 0; i < ROUTES_OPEN_COUNT; i++) {
		if (path_is(request, ROUTES_OPEN[i].path))
			return &ROUTES_OPEN[i];
	}
	return NULL;
}

static struct match find(const struct request *request)
{
	struct match match = {0};
	/* HTTP has HEAD for whatever has GET. */
	const char *method = str_equal(request->method, "HEAD") ? "GET" : request->method;

	for (size_t i = 0; i < ROUTES_COUNT; i++) {
		const struct route *route = &ROUTES[i];
		char id[SEGMENT_SIZE];
		size_t used = strlen(match.allow);

		if (!path_matches(route->path, request->target, path_length(request->target), id))
			continue;
		snprintf(match.allow + used, sizeof match.allow - used, "%s%s", used ? ", " : "",
			 route->method);
		if (!match.route && str_equal(route->method, method)) {
			match.route = route;
			memcpy(match.id, id, sizeof id);
		}
	}
	if (find_open(request))
		str_copy(match.allow, sizeof match.allow, "GET");
	return match;
}

/* --- queries --- */

/* The values, as long as the call lasts. */
struct query {
	char values[ROUTE_PARAMETERS_MAX][QUERY_VALUE];
	struct control_call *call;
};

static size_t count_characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

/* Of this prefix; "" is any. */
static bool is_id(const char *value, const char *prefix)
{
	char own[ID_SIZE];

	snprintf(own, sizeof own, "%.*s", (int)strspn(value, "abcdefghijklmnopqrstuvwxyz"), value);
	return id_valid(value, *prefix ? prefix : own);
}

static bool is_choice(const char *of, const char *value)
{
	size_t length = strlen(value);

	for (; *of; of += strcspn(of, "|"), of += *of == '|') {
		if (strcspn(of, "|") == length && strncmp(of, value, length) == 0)
			return true;
	}
	return false;
}

/* What the document says of its form; control reads numbers and times itself. */
static bool check_value(const struct schema_field *field, const char *value, struct error *error)
{
	if (value[0] == '\0')
		return error_field(error, field->name, "must not be empty");
	if (field->kind == SCHEMA_TEXT && field->max &&
	    count_characters(value) > (size_t)field->max)
		return error_field(error, field->name, "has more than %lld characters",
				   (long long)field->max);
	if (field->kind == SCHEMA_ID && !is_id(value, field->of))
		return error_field(error, field->name, "'%.40s' is not an id of the form %s_…",
				   value, *field->of ? field->of : "pool");
	if (field->kind == SCHEMA_CHOICE && !is_choice(field->of, value))
		return error_field(error, field->name, "'%.40s' is unknown, known: %s", value,
				   field->of);
	return true;
}

static bool read_pair(const struct route *route, struct query *query, const char *pair,
		      size_t length, struct error *error)
{
	size_t name_length = strcspn(pair, "=&");
	char name[32], unknown[64];

	if (name_length >= length)
		name_length = length;
	if (!decode(pair, name_length, true, name, sizeof name))
		return error_set(error, ERROR_INVALID_INPUT, "the query can't be decoded");
	for (size_t i = 0; i < ROUTE_PARAMETERS_COUNT; i++) {
		const struct route_parameter *known = &ROUTE_PARAMETERS[i];
		char *value = query->values[i];
		const char **slot = (const char **)((char *)query->call + known->slot);

		if (!(route->query & known->bit) || !str_equal(name, known->field.name))
			continue;
		if (*slot)
			return error_field(error, name, "is given twice");
		if (name_length < length)
			name_length++; /* the '=' */
		if (!decode(pair + name_length, length - name_length, true, value, QUERY_VALUE))
			return error_field(error, name, "can't be decoded, or is too long");
		*slot = value;
		return check_value(&known->field, value, error);
	}
	str_copy(unknown, sizeof unknown, name);
	return error_field(error, unknown, "is no query parameter of this call");
}

static bool read_query(const struct route *route, const char *target, struct query *query,
		       struct error *error)
{
	const char *at = target + path_length(target);

	if (*at == '\0')
		return true;
	at++;
	for (size_t pairs = 0; *at; pairs++) {
		size_t length = strcspn(at, "&");

		if (pairs == QUERY_MAX)
			return error_set(error, ERROR_INVALID_INPUT,
					 "the query has more than %d parameters", QUERY_MAX);
		if (length > 0 && !read_pair(route, query, at, length, error))
			return false;
		at += length;
		if (*at == '&')
			at++;
	}
	return true;
}

/* --- bodies --- */

static bool is_json_type(const char *type)
{
	size_t length = strlen(JSON_TYPE);

	return type && strncasecmp(type, JSON_TYPE, length) == 0 &&
	       (type[length] == '\0' || type[length] == ';' || type[length] == ' ');
}

static bool read_body(const struct route *route, const struct request *request, json_t **ret_body,
		      struct error *error)
{
	if (request->body_length == 0) {
		if (route->body == ROUTE_BODY_NEEDED)
			return error_set(
				error, ERROR_INVALID_INPUT,
				"the request body is missing: this call takes a JSON object");
		return true;
	}
	if (!tree_parse(request->body, request->body_length, ROUTER_MAX_BODY, "request body",
			ret_body, error))
		return false;
	if (!json_is_object(*ret_body))
		return error_set(error, ERROR_INVALID_INPUT,
				 "the request body is not a JSON object");
	if (route->body == ROUTE_BODY_NONE &&
	    !tree_check_keys(*ret_body, "", TREE_KEYS(NULL), error))
		return false;
	return true;
}

/* --- who asks --- */

/* The token of "Bearer TOKEN", or NULL. */
static const char *bearer(const char *authorization)
{
	static const char scheme[] = "Bearer ";

	if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
		return NULL;
	authorization += sizeof scheme - 1;
	authorization += strspn(authorization, " ");
	return *authorization ? authorization : NULL;
}

/* --- the two steps --- */

/* HTTP's own refusals; true: answered. */
static bool refuse(const struct request *request, const struct match *match,
		   struct response *response)
{
	struct error error;

	if (match->allow[0] == '\0') {
		error_set(&error, ERROR_NOT_FOUND, "there is nothing at '%.*s'",
			  (int)path_length(request->target), request->target);
		response_http_error(response, 404, &error, request->id);
		return true;
	}
	if (!match->route) {
		error_set(&error, ERROR_INVALID_INPUT, "'%.*s' takes %s, not %.16s",
			  (int)path_length(request->target), request->target, match->allow,
			  request->method);
		response_http_error(response, 405, &error, request->id);
		str_copy(response->allow, sizeof response->allow, match->allow);
		return true;
	}
	if (request->body_length > ROUTER_MAX_BODY) {
		error_set(&error, ERROR_INVALID_INPUT, "the request body is over %zu bytes",
			  ROUTER_MAX_BODY);
		response_http_error(response, 413, &error, request->id);
		return true;
	}
	if (request->body_length > 0 && !is_json_type(request->content_type)) {
		error_set(&error, ERROR_INVALID_INPUT,
			  "the request body must be JSON: Content-Type is '%.80s', not '%s'",
			  request->content_type ? request->content_type : "", JSON_TYPE);
		response_http_error(response, 415, &error, request->id);
		return true;
	}
	return false;
}

static void answer_not_ready(const struct router *router, const struct request *request,
			     struct response *response)
{
	struct error error;

	if (router->state == ROUTER_STARTING)
		error_set(&error, ERROR_UNAVAILABLE,
			  "the control plane is starting: its database isn't ready yet");
	else
		error_set(&error, ERROR_UNAVAILABLE, "the control plane is stopping");
	response_error(response, &error, request->id);
}

bool router_answer_early(const struct router *router, const struct request *request,
			 struct response *ret_response)
{
	bool reads = str_equal(request->method, "GET") || str_equal(request->method, "HEAD");
	struct match match;

	if (reads && path_is(request, "/healthz")) {
		answer_text(ret_response, 200, TEXT_TYPE, "ok\n");
		return true;
	}
	if (router->state == ROUTER_STARTING ||
	    (reads && router->state == ROUTER_DRAINING && path_is(request, "/readyz"))) {
		answer_not_ready(router, request, ret_response);
		return true;
	}
	if (reads && path_is(request, "/.well-known/better-compute")) {
		answer_text(ret_response, 200, JSON_TYPE, router->well_known);
		return true;
	}
	if (reads && path_is(request, "/v1/openapi.json")) {
		answer_text(ret_response, 200, JSON_TYPE, router->openapi);
		return true;
	}
	if (reads && find_open(request))
		return false;
	match = find(request);
	return refuse(request, &match, ret_response);
}

/* `after` replaces the query's, unless it is NULL. */
static bool call(struct control *control, const struct request *request, const char *after,
		 char ret_key[ID_SIZE], json_t **ret_answer, struct error *error)
{
	CLEANUP(tree) json_t *body = NULL;
	struct match match = find(request);
	struct control_principal principal = {0};
	struct control_call call = {.principal = &principal, .id = match.id[0] ? match.id : NULL};
	struct query *query = mem_alloc(sizeof *query);
	bool done;

	query->call = &call;
	/* Who can't be named is told nothing about the rest of the request. */
	done = control_authenticate(control, bearer(request->authorization), &principal, error);
	str_copy(principal.request, sizeof principal.request, request->id);
	str_copy(principal.address, sizeof principal.address, request->address);
	done = done && read_query(match.route, request->target, query, error) &&
	       read_body(match.route, request, &body, error);
	call.body = body;
	if (after) {
		call.after = after;
		call.limit = EVENTS_PAGE;
	}
	str_copy(ret_key, ID_SIZE, principal.key);
	done = done && match.route->call(control, &call, ret_answer, error);
	free(query);
	return done;
}

static void log_answer(const struct request *request, int status, const struct error *error)
{
	char digits[8], path[160];

	snprintf(digits, sizeof digits, "%d", status);
	snprintf(path, sizeof path, "%.*s", (int)path_length(request->target), request->target);
	if (status >= 500)
		log_error("request.failed", error->what, "request", request->id, "method",
			  request->method, "path", path, "status", digits, NULL);
	else
		log_debug("request", error->what, "request", request->id, "method", request->method,
			  "path", path, "status", digits, NULL);
}

/* The log hears all of it, who asked what is for outside. */
static void answer_failure(const struct control *control, const struct request *request,
			   struct response *response, struct error *error)
{
	log_answer(request, error_http_status(error->code), error);
	(void)outward(control, error);
	response_error(response, error, request->id);
}

bool router_events(struct control *control, const struct request *request,
		   struct router_events *events, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	const json_t *items, *item;
	char after[24];
	size_t index;

	snprintf(after, sizeof after, "%lld", (long long)events->after);
	if (!call(control, request, events->after >= 0 ? after : NULL, events->key, &answer,
		  error)) {
		log_answer(request, error_http_status(error->code), error);
		(void)outward(control, error);
		return false;
	}
	items = json_object_get(answer, "items");
	json_array_foreach(items, index, item)
	{
		CLEANUP(free) char *data = json_dumps(item, JSON_COMPACT);

		buf_printf(&events->text, "id: %lld\nevent: %s\ndata: %s\n\n",
			   (long long)json_integer_value(json_object_get(item, "seq")),
			   json_string_value(json_object_get(item, "type")), data);
	}
	events->after = json_integer_value(json_object_get(answer, "next"));
	return true;
}

/* Who isn't on this machine shows an operator's key. A database that is away is a figure too. */
static bool answer_metrics(struct control *control, const struct request *request,
			   struct response *response, struct error *error)
{
	struct control_principal principal;
	struct control_metrics fleet;
	struct error away;

	if (!request->loopback &&
	    !(control_authenticate(control, bearer(request->authorization), &principal, error) &&
	      (principal.role == CONTROL_ROLE_OPERATOR ||
	       error_set(error, ERROR_FORBIDDEN, "metrics are for operators"))))
		return false;
	answer_text(response, 200, EXPOSITION_TYPE, "");
	metrics_add_fleet(control_metrics(control, &fleet, &away) ? &fleet : NULL, &response->body);
	response->metrics = true;
	return true;
}

void router_answer(const struct router *router, struct control *control,
		   const struct request *request, struct response *ret_response)
{
	CLEANUP(tree) json_t *answer = NULL;
	char key[ID_SIZE];
	struct error error = {0};
	bool done;

	if (router_answer_early(router, request, ret_response))
		return;
	if (path_is(request, "/readyz")) {
		if (control_ping(control, &error))
			answer_text(ret_response, 200, TEXT_TYPE, "ok\n");
		else
			answer_failure(control, request, ret_response, &error);
		return;
	}
	if (path_is(request, "/metrics")) {
		if (!answer_metrics(control, request, ret_response, &error))
			answer_failure(control, request, ret_response, &error);
		return;
	}
	done = call(control, request, NULL, key, &answer, &error);
	ret_response->opened = key[0] != '\0';
	if (!done) {
		answer_failure(control, request, ret_response, &error);
		return;
	}
	answer_json(ret_response, 200, answer);
	log_answer(request, 200, &error);
}

void router_label(const struct request *request, const char **ret_method, const char **ret_route)
{
	const struct route_open *open = find_open(request);
	struct match match = find(request);

	*ret_method = match.route ? match.route->method : open ? "GET" : NULL;
	*ret_route = match.route ? match.route->path : open ? open->path : NULL;
}
