/*
 * field: members of a JSON object, checked and copied into a record's own storage.
 *
 * A thin layer over text/tree.h for records whose members are arrays and numbers in a struct: an
 * absent optional member leaves the output as it was.
 * Errors    INVALID_INPUT whose field is "where.key" ("key" alone when where is "").
 * Pure. Objects are borrowed.
 */
#pragma once

#include "text/tree.h"

#define FIELD_WHERE_SIZE ERROR_FIELD_SIZE

MUST_CHECK bool field_object(const json_t *value, const char *where, struct error *error);
/* Text of 0 to size - 1 bytes. */
MUST_CHECK bool field_text(const json_t *object, const char *where, const char *key, bool required,
			   char *out, size_t size, struct error *error);
MUST_CHECK bool field_number(const json_t *object, const char *where, const char *key,
			     bool required, int64_t min, int64_t max, int64_t *ret_number,
			     struct error *error);
MUST_CHECK bool field_int(const json_t *object, const char *where, const char *key, bool required,
			  int32_t min, int32_t max, int32_t *ret_number, struct error *error);
MUST_CHECK bool field_bool(const json_t *object, const char *where, const char *key, bool required,
			   bool *ret_bool, struct error *error);
/* The record's "version" is the one that this program reads. To be asked before what members it may have: a
 * newer one may have others. */
MUST_CHECK bool field_version(const json_t *record, int32_t wanted, struct error *error);
/* NULL when an optional array is absent. */
MUST_CHECK bool field_array(const json_t *object, const char *where, const char *key, bool required,
			    size_t max_count, json_t **ret_array, struct error *error);
/* NULL when an optional object is absent. */
MUST_CHECK bool field_child(const json_t *object, const char *where, const char *key, bool required,
			    json_t **ret_object, struct error *error);
/* The members that aren't among the keys, for records of which a newer program may know more; NULL: none.
 * The caller's. */
json_t *field_others(json_t *object, const char *const *keys);
