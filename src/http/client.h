/*
 * client: HTTP and HTTPS requests that block, for the CLI and `bcd join`.
 *
 * Owns      the rule of what may leave: a bearer key never over plain HTTP to another machine, no
 *           redirect to another host, no answer over its bound.
 * Errors    about the way there: UNAVAILABLE (no connection, timeout, cut off), FORBIDDEN (the
 * peer's certificate isn't trusted), INVALID_INPUT (the URL), INVALID_CONFIG (the CA file),
 *           RESOURCES_EXHAUSTED (answer over the bound). An answer of any status is success: what
 *           404 means is the caller's to say.
 * Secrets   the bearer key is in no message and no URL; a proxy's URL, which may hold a password, is in no message.
 * Threads   one client belongs to one thread. Blocks: never on the loop's thread.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#define HTTP_MAX_ANSWER_DEFAULT ((size_t)8 << 20)
#define HTTP_TIMEOUT_DEFAULT_MS 30000
#define HTTP_CONNECT_TIMEOUT_MS 10000
#define HTTP_MAX_REDIRECTS      3
#define HTTP_URL_SIZE           2048
#define HTTP_REQUEST_ID_SIZE    64
#define HTTP_RETRY_AFTER_MAX_S  (366 * 24 * 3600)

struct http_options {
	const char *bearer;  /* sent as Authorization: Bearer; NULL for none */
	const char *ca_file; /* PEM; trusted instead of the system's authorities; NULL for those */
	bool https_only;     /* refuse http:// even on loopback */
};

/* A client keeps its connection open between requests. */
struct http_client;
struct http_client *http_client_create(const struct http_options *options); /* copies */
void http_client_destroy(struct http_client *client);

/* A piece of a stream's body. false ends the request, which then fails with *error. */
typedef bool http_take_fn(void *arg, const char *data, size_t length, struct error *error);

struct http_request {
	const char *method; /* "GET", "POST", "PUT", "PATCH", "DELETE" */
	const char *url;    /* absolute; no user, no fragment */
	const void *body;   /* JSON; NULL for none */
	size_t body_length;
	const char *content_type; /* of the body; NULL: "application/json" */
	size_t max_answer;        /* bytes of body; 0: HTTP_MAX_ANSWER_DEFAULT */
	int64_t timeout_ms;       /* for all of it; 0: HTTP_TIMEOUT_DEFAULT_MS */

	/* A stream, which has no end of its own: the body of a 200 is given to `take` as it comes,
	 * isn't collected, and takes any time. `timeout_ms` is the longest silence then. */
	http_take_fn *take; /* NULL: none */
	void *arg;
	const char *accept;        /* NULL: application/json */
	const char *last_event_id; /* NULL: from where the server likes */
};

struct http_answer {
	int status;                            /* 200 ... 599 */
	char request_id[HTTP_REQUEST_ID_SIZE]; /* X-Request-Id; "" without */
	int64_t retry_after_s; /* Retry-After, HTTP_RETRY_AFTER_MAX_S at most; 0 without */
	struct buf body;
};

void http_answer_deinit(struct http_answer *answer);

static inline void http_answer_cleanup(struct http_answer *answer)
{
	http_answer_deinit(answer);
}

/* A GET that is redirected within its host is followed; anything else redirected is an error.
 * `ret_answer` must be empty or hold an old answer. */
MUST_CHECK bool http_request(struct http_client *client, const struct http_request *request,
			     struct http_answer *ret_answer, struct error *error);

/* One GET with a client of its own. */
MUST_CHECK bool http_get(const struct http_options *options, const char *url, size_t max_answer,
			 int64_t timeout_ms, struct http_answer *ret_answer, struct error *error);
