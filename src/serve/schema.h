/*
 * schema: what the bodies and answers of the HTTP API look like, one table of types.
 *
 * Owns      names, formats, bounds and meanings of every field: the OpenAPI document is made of it
 *           (openapi.c). Bounds that the readers of bodies check are named once, in their headers,
 *           and used here. The control plane's tests hold each answer they see against this table,
 *           and each body's known fields: what isn't here, or is only here, fails them.
 * Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum schema_kind {
	SCHEMA_TEXT, /* `min` to `max` characters (max 0: 1024), without control characters; `of`
			    is a pattern, or NULL */
	SCHEMA_NAME, /* as body_name() takes it */
	SCHEMA_ID,   /* `of` is its prefix, "" for any */
	SCHEMA_TIME, /* RFC 3339 */
	SCHEMA_DURATION, /* "8h"; `of` says the bounds in words */
	SCHEMA_INT,      /* `min` to `max`; both 0: any that isn't negative */
	SCHEMA_BOOL,
	SCHEMA_CHOICE, /* `of` is "this|that|other" */
	SCHEMA_OBJECT, /* `of` is the name of its type */
	SCHEMA_LABELS, /* label names to label values */
	SCHEMA_ANY,    /* an object of any content */
};

enum schema_flag {
	SCHEMA_REQUIRED = 1, /* always there */
	SCHEMA_LIST = 2,     /* a list of such, of at most `most` (0: any number) */
	SCHEMA_FILLED = 4,   /* a list of one at least */
	SCHEMA_NULLABLE = 8, /* labels: null takes one away */
	SCHEMA_SECRET = 16,  /* shown once, never again */
	SCHEMA_ASIDE = 32,   /* not in examples: it doesn't go with the other fields */
};

struct schema_field {
	const char *name; /* NULL ends a type's fields */
	enum schema_kind kind;
	unsigned flags;
	const char *help; /* a sentence without its full stop */
	const char *of;
	int64_t min, max;
	int64_t most;
	const char *example; /* as text; NULL: made from the kind */
};

/* JSON Schema of what fields can't say by themselves; it is merged into the type's. */
#define SCHEMA_SOMETHING "{\"minProperties\":1}" /* an empty object says nothing */
#define SCHEMA_ONE_OF_TWO(a, b)                                                                    \
	"{\"anyOf\":[{\"required\":[\"" a "\"]},{\"required\":[\"" b "\"]}]}"
#define SCHEMA_NOT_BOTH(a, b) "{\"minProperties\":1,\"not\":{\"required\":[\"" a "\",\"" b "\"]}}"

struct schema_type {
	const char *name;
	const char *help;
	const struct schema_field *fields; /* NULL: see `list_of` */
	const char *list_of;               /* {"items":[…], "nextCursor"?} of this type */
	const char *rule;                  /* NULL: none */
};

extern const struct schema_type SCHEMA_TYPES[];
extern const size_t SCHEMA_TYPES_COUNT;

/* NULL when there is none. */
const struct schema_type *schema_type_find(const char *name);
