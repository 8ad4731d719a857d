/*
 * api: calls to the HTTP API, its errors as ours.
 *
 * Every answer is a new reference. An error of the API keeps its code, message, hint and field; its
 * request id is kept for `-v`. Blocks.
 */
#pragma once

#include "base/error.h"
#include "cli/context.h"
#include "text/tree.h"

#define API_PAGE_SIZE 1000
#define API_MAX_PAGES 1000

struct api;
struct api *api_create(const struct context *context); /* borrows it for its life */
void api_destroy(struct api *api);

/* `path` is from "/v1" on; `body` is borrowed and may be NULL. */
MUST_CHECK bool api_call(struct api *api, const char *method, const char *path, const json_t *body,
			 json_t **ret_answer, struct error *error);

/* The items of all pages as one array. `query` is "a=b&c=d" or NULL. */
MUST_CHECK bool api_list(struct api *api, const char *path, const char *query, json_t **ret_items,
			 struct error *error);

/* At most `most` of them; *ret_more tells that there are more. */
MUST_CHECK bool api_list_some(struct api *api, const char *path, const char *query, size_t most,
			      json_t **ret_items, bool *ret_more, struct error *error);

/* One event of a stream, borrowed. false ends the stream. */
typedef bool api_event_fn(void *arg, const json_t *event, struct error *error);

/* The events after number `after` as they come, until the server ends the stream (true; whoever
 * wants more asks again) or can't be heard any more. */
MUST_CHECK bool api_follow(struct api *api, int64_t after, api_event_fn *on_event, void *arg,
			   struct error *error);

/* For completion: answers that take longer are not worth waiting for. */
void api_set_timeout(struct api *api, int64_t timeout_ms);

/* Was the last failure the control plane's own word? What stands before it (a proxy, a balancer) can
 * refuse an answer whose call was carried out. */
bool api_was_refused(const struct api *api);

const char *api_request_id(const struct api *api); /* of the last answer; "" without */

/* Adds "name=value" to a query or path, value percent-encoded; "&" between. */
void api_query_add(struct buf *query, const char *name, const char *value);

/* What a failing answer of this status says; for tests and for answers that are not the API's. */
bool api_error_parse(int status, const char *body, size_t length, struct error *error);
