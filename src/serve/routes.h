/*
 * routes: the table of the HTTP API's calls. For router.c and what describes the API.
 */
#pragma once

#include "control/control.h"

#include <stddef.h>

/* What a call's query may hold. */
enum route_query {
	ROUTE_QUERY_PAGE = 1,  /* limit, cursor */
	ROUTE_QUERY_STATE = 2, /* state */
	ROUTE_QUERY_POOL = 4,  /* poolId */
	ROUTE_QUERY_AFTER = 8, /* after, limit */
};

enum route_body {
	ROUTE_BODY_NONE,   /* empty, or an empty object */
	ROUTE_BODY_MAY,    /* an object when there is one */
	ROUTE_BODY_NEEDED, /* an object */
};

typedef bool route_call_fn(struct control *control, const struct control_call *call,
			   json_t **ret_answer, struct error *error);

struct route {
	const char *method;
	const char *path; /* at most one "{id}" */
	route_call_fn *call;
	unsigned query; /* of enum route_query */
	enum route_body body;
	const char *summary;      /* one line, lower case */
	const char *request_type; /* what the body holds; NULL without one */
	const char *answer_type;
};

extern const struct route ROUTES[];
extern const size_t ROUTES_COUNT;
