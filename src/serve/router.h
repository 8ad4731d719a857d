/*
 * router: one HTTP request to one answer, without a socket.
 *
 * Owns      what happens around every call: who asks, what a request may look like, and how errors
 *           are written (POOL-4, POOL-25). What the calls do is control's; which calls there are
 *           stands in routes.c.
 * Threads   router_answer() runs on a worker; no state but what it is given.
 * Tests     tests/unit/serve/router_test.c calls it directly, and so does the simulation.
 * Source    docs/internals/http-api.md
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"

#include <netinet/in.h>

struct control;

#define ROUTER_MAX_BODY   ((size_t)1 << 20)
#define ROUTER_MAX_TARGET ((size_t)4 << 10) /* path and query */

/* As it came; borrowed for the call. */
struct request {
	const char *method;
	const char *target;        /* "/v1/pools?limit=5", still percent-encoded */
	const char *authorization; /* header values; NULL when absent */
	const char *content_type;
	const void *body;
	size_t body_length;
	char id[ID_SIZE];               /* req_…, ours */
	bool loopback;                  /* from this machine itself, and not on behalf of another */
	char address[INET6_ADDRSTRLEN]; /* who calls, behind proxies that are trusted; "" unknown */
};

/* `{0}` is empty. */
struct response {
	int status;
	const char *content_type; /* static */
	char allow[64];           /* of a 405; "" otherwise */
	int retry_after_s;        /* 0: none */
	struct buf body;
	bool opened;  /* a key was shown, and it opens */
	bool metrics; /* whoever counts adds the process's own to the body */
};
void response_deinit(struct response *response);

enum router_state {
	ROUTER_READY,
	ROUTER_STARTING, /* nothing is answered but that it starts */
	ROUTER_DRAINING, /* everything is, but new work is better taken elsewhere */
};

/* Plain data; borrowed. */
struct router {
	const char *well_known; /* the document of JOIN-39, as JSON text; NULL while starting */
	const char *openapi;    /* of openapi_write() */
	_Atomic enum router_state state;
};

/* Answers what needs no database: true and *ret_response (empty before) is the answer. False: ask
 * router_answer() on a worker. */
bool router_answer_early(const struct router *router, const struct request *request,
			 struct response *ret_response);
/* Always answers. */
void router_answer(const struct router *router, struct control *control,
		   const struct request *request, struct response *ret_response);

/* The method and the pattern under which a request is counted; NULL for what is in no table. */
void router_label(const struct request *request, const char **ret_method, const char **ret_route);

/* A page of GET /v1/events as server-sent events: each with its number as id, so that whoever comes
 * back says where it was. */
struct router_events {
	int64_t after;     /* in: where to begin, -1 as the query says; out: where to go on */
	char key[ID_SIZE]; /* who asks */
	struct buf text;   /* appended to */
};
MUST_CHECK bool router_events(struct control *control, const struct request *request,
			      struct router_events *events, struct error *error);

/* An error as an answer: status, and the body of POOL-25. */
void response_error(struct response *response, const struct error *error, const char *request_id);
/* The same with a status of HTTP's own (404, 405, 413, 415, …). */
void response_http_error(struct response *response, int status, const struct error *error,
			 const char *request_id);
