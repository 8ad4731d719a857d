#include "cli/api.h"
#include "cli/table.h"
#include "http/client.h"
#include "http/sse.h"

#include <stdio.h>

#define API_MAX_ERROR ((size_t)64 << 10)
#define SILENCE_MS    45000 /* a stream's heartbeat comes each 15 s */

struct api {
	const struct context *context;
	struct http_client *http;
	int64_t timeout_ms;
	char request_id[HTTP_REQUEST_ID_SIZE];
	bool refused; /* by the control plane itself */
};

struct api *api_create(const struct context *context)
{
	struct api *api = mem_alloc(sizeof *api);

	api->context = context;
	api->http = http_client_create(&(struct http_options){
		.bearer = context->key,
		.ca_file = context->values[CONTEXT_CA_FILE].text,
	});
	return api;
}

void api_destroy(struct api *api)
{
	if (!api)
		return;
	http_client_destroy(api->http);
	free(api);
}

void api_set_timeout(struct api *api, int64_t timeout_ms)
{
	api->timeout_ms = timeout_ms;
}

bool api_was_refused(const struct api *api)
{
	return api->refused;
}

const char *api_request_id(const struct api *api)
{
	return api->request_id;
}

static enum error_code code_of_status(int status)
{
	switch (status) {
	case 400:
	case 413:
	case 422:
		return ERROR_INVALID_INPUT;
	case 401:
		return ERROR_UNAUTHENTICATED;
	case 403:
		return ERROR_FORBIDDEN;
	case 409:
		return ERROR_CONFLICT;
	case 429:
		return ERROR_RATE_LIMITED;
	case 404: /* whatever isn't there, the API says more of it: this isn't a control plane */
	case 502:
	case 503:
	case 504:
		return ERROR_UNAVAILABLE;
	default:
		return ERROR_INTERNAL;
	}
}

static void copy_text(char *out, size_t size, const json_t *text)
{
	if (!json_is_string(text))
		return;
	str_copy(out, size, json_string_value(text));
	table_sanitize(out);
}

/* Returns whether it is the API's own. */
static bool read_error(int status, const char *body, size_t length, struct error *error)
{
	CLEANUP(tree) json_t *root = NULL;
	struct error ignored; /* not the API's answer: the status has to do */
	const json_t *said = NULL;
	const char *code;
	bool own;

	if (tree_parse(body, length, API_MAX_ERROR, "answer", &root, &ignored))
		said = json_object_get(root, "error");
	code = json_string_value(json_object_get(said, "code"));
	error_set(error, code_of_status(status), "the server answered %d", status);
	own = code && error_code_parse(code, &error->code);
	copy_text(error->what, sizeof error->what, json_object_get(said, "message"));
	copy_text(error->field, sizeof error->field, json_object_get(said, "field"));
	copy_text(error->hint, sizeof error->hint, json_object_get(said, "hint"));
	if (error->code == ERROR_UNAUTHENTICATED) /* the API's own speaks of a header */
		error_hint(error, "Name a key's file by --key-file or BETTER_COMPUTE_KEY_FILE; see "
				  "which is used: better-compute config show --origin");
	return own;
}

bool api_error_parse(int status, const char *body, size_t length, struct error *error)
{
	(void)read_error(status, body, length, error);
	return false;
}

static void add_reachability_hint(const struct api *api, struct error *error)
{
	const char *state = api->context->values[CONTEXT_STATE].text;

	if (error->code != ERROR_UNAVAILABLE || error->hint[0])
		return;
	if (!state)
		error_hint(error,
			   "The address comes from %s; see: better-compute config show --origin",
			   api->context->values[CONTEXT_API].origin);
	else if (str_equal(state, CONTEXT_STATE_DEFAULT))
		error_hint(error, "Is it running? Start it with: better-compute up");
	else
		error_hint(error, "Is it running? Start it with: better-compute up --state '%s'",
			   state);
}

/* "127.0.0.1:7480" was meant well. */
static void add_scheme_hint(const struct api *api, struct error *error)
{
	const struct context_value *base = &api->context->values[CONTEXT_API];

	if (!strstr(base->text, "://"))
		error_hint(error, "Write it with its scheme, from %s: http://%s or https://%s",
			   base->origin, base->text, base->text);
}

/* The API's own speaks of a header. */
static void add_key_hint(const struct api *api, struct error *error)
{
	const struct context_value *file = &api->context->values[CONTEXT_KEY_FILE];

	if (error->code == ERROR_UNAUTHENTICATED && api->context->key && file->text)
		error_hint(error,
			   "That of '%s' (from %s) isn't known there, or was revoked; name "
			   "another: --key-file FILE",
			   file->text, file->origin);
}

/* Where `request` goes is filled in. An answer that is a failure is one. */
static bool ask(struct api *api, const char *path, struct http_request *request,
		struct http_answer *answer, struct error *error)
{
	const char *base = api->context->values[CONTEXT_API].text;
	size_t base_length = strlen(base);
	CLEANUP(buf) struct buf url = {0};

	while (base_length && base[base_length - 1] == '/')
		base_length--;
	buf_printf(&url, "%.*s%s", (int)base_length, base, path);
	request->url = buf_text(&url);
	api->request_id[0] = '\0';
	api->refused = false;
	if (!http_request(api->http, request, answer, error)) {
		context_not_reached(error);
		add_reachability_hint(api, error);
		add_scheme_hint(api, error);
		return false;
	}
	str_copy(api->request_id, sizeof api->request_id, answer->request_id);
	if (answer->status < 300)
		return true;
	api->refused =
		read_error(answer->status, buf_text(&answer->body), answer->body.length, error);
	add_key_hint(api, error);
	return false;
}

/* What answers isn't a control plane: as good as nobody there. */
static bool foreign(const struct api *api, const char *path, struct error *error)
{
	error->code = ERROR_UNAVAILABLE;
	error_wrap(error, "'%s%s' answered what no control plane says",
		   api->context->values[CONTEXT_API].text, path);
	add_reachability_hint(api, error);
	return false;
}

bool api_call(struct api *api, const char *method, const char *path, const json_t *body,
	      json_t **ret_answer, struct error *error)
{
	CLEANUP(http_answer) struct http_answer answer = {0};
	CLEANUP(free) char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct http_request request = {.method = method,
				       .body = text,
				       .body_length = text ? strlen(text) : 0,
				       .timeout_ms = api->timeout_ms};

	if (!ask(api, path, &request, &answer, error))
		return false;
	return tree_parse(answer.body.data, answer.body.length, HTTP_MAX_ANSWER_DEFAULT, "answer",
			  ret_answer, error) ||
	       foreign(api, path, error);
}

/* --- events as they come --- */

struct following {
	struct sse sse;
	api_event_fn *on_event;
	void *arg;
};

static void following_cleanup(struct following *following)
{
	sse_deinit(&following->sse);
}

static bool on_sse(void *arg, const char *data, size_t length, struct error *error)
{
	struct following *following = arg;
	CLEANUP(tree) json_t *event = NULL;

	if (!tree_parse(data, length, SSE_MAX_EVENT, "event", &event, error)) {
		error->code = ERROR_UNAVAILABLE; /* not the caller's input */
		return error_wrap(error, "read an event");
	}
	return following->on_event(following->arg, event, error);
}

static bool take(void *arg, const char *data, size_t length, struct error *error)
{
	struct following *following = arg;

	return sse_read(&following->sse, data, length, on_sse, following, error);
}

bool api_follow(struct api *api, int64_t after, api_event_fn *on_event, void *arg,
		struct error *error)
{
	CLEANUP(following) struct following following = {.on_event = on_event, .arg = arg};
	CLEANUP(http_answer) struct http_answer answer = {0};
	char last[24];
	struct http_request request = {.method = "GET",
				       .take = take,
				       .arg = &following,
				       .accept = "text/event-stream",
				       .last_event_id = last,
				       .timeout_ms = SILENCE_MS};

	snprintf(last, sizeof last, "%lld", (long long)after);
	return ask(api, "/v1/events", &request, &answer, error);
}

void api_query_add(struct buf *query, const char *name, const char *value)
{
	buf_printf(query, "%s%s=", query->length ? "&" : "", name);
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;
		bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			     (c >= 'a' && c <= 'z') || strchr("-._~", c);
		if (plain)
			buf_add_char(query, (char)c);
		else
			buf_printf(query, "%%%02X", c);
	}
}

bool api_list_some(struct api *api, const char *path, const char *query, size_t most,
		   json_t **ret_items, bool *ret_more, struct error *error)
{
	CLEANUP(tree) json_t *items = json_array();
	CLEANUP(free) char *cursor = NULL;

	for (int page = 0; page < API_MAX_PAGES; page++) {
		CLEANUP(tree) json_t *answer = NULL;
		CLEANUP(buf) struct buf url = {0}, all = {0};
		size_t rest = most - json_array_size(items);

		if (query)
			buf_add_text(&all, query);
		buf_printf(&all, "%slimit=%zu", all.length ? "&" : "",
			   rest < API_PAGE_SIZE ? rest : API_PAGE_SIZE);
		if (cursor)
			api_query_add(&all, "cursor", cursor);
		buf_printf(&url, "%s?%s", path, buf_text(&all));
		if (!api_call(api, "GET", buf_text(&url), NULL, &answer, error))
			return false;
		json_t *more = json_object_get(answer, "items");
		if (!json_is_array(more))
			return error_set(error, ERROR_UNAVAILABLE,
					 "the answer of '%s' has no items", path);
		json_array_extend(items, more);
		free(cursor);
		cursor = mem_strdup(json_string_value(json_object_get(answer, "nextCursor")));
		if (!cursor || json_array_size(items) >= most) {
			*ret_more = cursor != NULL;
			*ret_items = TAKE(items);
			return true;
		}
	}
	return error_set(error, ERROR_RESOURCES_EXHAUSTED, "'%s' has more than %d pages", path,
			 API_MAX_PAGES);
}

bool api_list(struct api *api, const char *path, const char *query, json_t **ret_items,
	      struct error *error)
{
	bool more;

	return api_list_some(api, path, query, SIZE_MAX, ret_items, &more, error);
}
