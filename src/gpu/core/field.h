/*
 * field: members of a JSON object, checked: present, of the right type, within bounds, known.
 *
 * Errors    INVALID_INPUT whose field is "where.key" ("key" alone when where is "").
 * Pure. Objects are borrowed.
 */
#pragma once

#include "base/error.h"

#include <jansson.h>

DEFINE_CLEANUP(json, json_t *, json_decref)

#define FIELD_MAX_DEPTH 32

/* JSON text to a tree: no duplicate keys, nothing after the value, no NUL in strings. `what` names
 * the text in messages. */
MUST_CHECK bool field_load(const char *text, size_t length, const char *what, json_t **ret_tree,
			   struct error *error);

MUST_CHECK bool field_object(json_t *value, const char *where, struct error *error);
/* Every member's key must be in the NULL-ended list. */
MUST_CHECK bool field_known(json_t *object, const char *where, const char *const *keys,
			    struct error *error);
/* An absent optional field leaves the output as it was. Text must fit, NUL included. */
MUST_CHECK bool field_text(json_t *object, const char *where, const char *key, bool required,
			   char *out, size_t size, struct error *error);
MUST_CHECK bool field_number(json_t *object, const char *where, const char *key, bool required,
			     int64_t min, int64_t max, int64_t *ret_number, struct error *error);
MUST_CHECK bool field_int(json_t *object, const char *where, const char *key, bool required,
			  int32_t min, int32_t max, int32_t *ret_number, struct error *error);
MUST_CHECK bool field_bool(json_t *object, const char *where, const char *key, bool required,
			   bool *ret_bool, struct error *error);
/* NULL when an optional array is absent. */
MUST_CHECK bool field_array(json_t *object, const char *where, const char *key, bool required,
			    size_t max_count, json_t **ret_array, struct error *error);
/* NULL when an optional object is absent. */
MUST_CHECK bool field_child(json_t *object, const char *where, const char *key, bool required,
			    json_t **ret_object, struct error *error);
/* "where.key[index]" */
#define FIELD_WHERE_SIZE 96
void field_item_where(char out[FIELD_WHERE_SIZE], const char *where, const char *key, size_t index);
