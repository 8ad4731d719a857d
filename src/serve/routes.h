/*
 * routes: the table of the HTTP API's calls. For router.c and what describes the API.
 *
 * A new call is a row here, its function in control, and its types in schema.c (HACKING.md).
 */
#pragma once

#include "control/control.h"
#include "serve/schema.h"

#include <stdbool.h>
#include <stddef.h>

/* What a call's query may hold: one bit a row of ROUTE_PARAMETERS. */
enum route_query {
	ROUTE_QUERY_LIMIT = 1 << 0,
	ROUTE_QUERY_CURSOR = 1 << 1,
	ROUTE_QUERY_STATE = 1 << 2,
	ROUTE_QUERY_POOL = 1 << 3,
	ROUTE_QUERY_AFTER = 1 << 4,
	ROUTE_QUERY_TENANT = 1 << 5,
	ROUTE_QUERY_KEY = 1 << 6,
	ROUTE_QUERY_OBJECT = 1 << 7,
	ROUTE_QUERY_ACTION = 1 << 8,
	ROUTE_QUERY_FROM = 1 << 9,
	ROUTE_QUERY_TO = 1 << 10,
	ROUTE_QUERY_BY = 1 << 11,
	ROUTE_QUERY_DRY = 1 << 12,
	ROUTE_QUERY_LIVE = 1 << 13,
	ROUTE_QUERY_DEVICES = 1 << 14,
	ROUTE_QUERY_CLASS = 1 << 15,
	ROUTE_QUERY_PAGE = ROUTE_QUERY_LIMIT | ROUTE_QUERY_CURSOR,
};

struct route_parameter {
	unsigned bit; /* of enum route_query */
	size_t slot;  /* the `const char *` in struct control_call */
	struct schema_field field;
};

extern const struct route_parameter ROUTE_PARAMETERS[];
extern const size_t ROUTE_PARAMETERS_COUNT;
#define ROUTE_PARAMETERS_MAX 16

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
	const char *name; /* "tenant_create": the operation's id, which never changes */
	route_call_fn *call;
	unsigned query; /* of enum route_query */
	enum route_body body;
	const char *summary;      /* one line, lower case */
	const char *request_type; /* what the body holds, in schema.c; NULL without one */
	const char *answer_type;
};

extern const struct route ROUTES[];
extern const size_t ROUTES_COUNT;

/* What is answered without a key, and isn't control's to answer. */
struct route_open {
	const char *path, *name, *summary;
	const char *content_type;
	bool local; /* so from this machine alone: others show an operator's key */
};

extern const struct route_open ROUTES_OPEN[];
extern const size_t ROUTES_OPEN_COUNT;
