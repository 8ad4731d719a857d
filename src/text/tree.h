/*
 * tree: untrusted JSON to one tree, and its fields read with the reason when they are wrong.
 *
 * Strict     duplicate keys, trailing text, invalid UTF-8, "\u0000" and numbers that don't fit are
 *            refused; so is what is larger or deeper than the bounds.
 * Errors     INVALID_INPUT. Of parsing: "SOURCE:LINE:COLUMN: why", never with the text itself (it
 *            may hold secrets). Of fields: error->field is the path, such as "devices[0].count".
 * Paths      getters take the object's own path: "" for the root, "devices[0]" for an element.
 * Lifetimes  strings, arrays and objects got are borrowed from the tree.
 * Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>

#define TREE_MAX_DEPTH 64 /* objects and arrays in each other */

static inline void tree_cleanup(json_t **slot)
{
	json_decref(*slot);
}

/* The root is an object or an array. `source` names the text: a file's path, "request body".
 * Release with json_decref() or CLEANUP(tree). */
MUST_CHECK bool tree_parse(const void *text, size_t length, size_t max_size, const char *source,
			   json_t **ret_tree, struct error *error);

/* --- paths: "name" under "", else "path.name"; cut silently when longer than a field holds --- */

void tree_path(char out[ERROR_FIELD_SIZE], const char *path, const char *name);
void tree_path_item(char out[ERROR_FIELD_SIZE], const char *path, const char *name, size_t index);

/* --- fields that must be there --- */

/* 1 to max_length bytes. */
MUST_CHECK bool tree_get_string(const json_t *object, const char *name, const char *path,
				size_t max_length, const char **ret_text, struct error *error);
/* 0 to max_length bytes. */
MUST_CHECK bool tree_get_text(const json_t *object, const char *name, const char *path,
			      size_t max_length, const char **ret_text, struct error *error);
/* One of `choices` (NULL-ended); its index. */
MUST_CHECK bool tree_get_choice(const json_t *object, const char *name, const char *path,
				const char *const *choices, size_t *ret_index, struct error *error);
/* A whole number from min to max, both included. */
MUST_CHECK bool tree_get_int(const json_t *object, const char *name, const char *path, int64_t min,
			     int64_t max, int64_t *ret_number, struct error *error);
MUST_CHECK bool tree_get_bool(const json_t *object, const char *name, const char *path,
			      bool *ret_value, struct error *error);
MUST_CHECK bool tree_get_object(const json_t *object, const char *name, const char *path,
				json_t **ret_object, struct error *error);
/* Of at most max_count items. */
MUST_CHECK bool tree_get_array(const json_t *object, const char *name, const char *path,
			       size_t max_count, json_t **ret_array, struct error *error);

/* --- fields that may be absent: then true, and the output keeps what the caller put there --- */

MUST_CHECK bool tree_opt_string(const json_t *object, const char *name, const char *path,
				size_t max_length, const char **text, struct error *error);
MUST_CHECK bool tree_opt_choice(const json_t *object, const char *name, const char *path,
				const char *const *choices, size_t *index, struct error *error);
MUST_CHECK bool tree_opt_int(const json_t *object, const char *name, const char *path, int64_t min,
			     int64_t max, int64_t *number, struct error *error);
MUST_CHECK bool tree_opt_bool(const json_t *object, const char *name, const char *path, bool *value,
			      struct error *error);
MUST_CHECK bool tree_opt_object(const json_t *object, const char *name, const char *path,
				json_t **member, struct error *error);
MUST_CHECK bool tree_opt_array(const json_t *object, const char *name, const char *path,
			       size_t max_count, json_t **array, struct error *error);

/* --- items of an array; `path` and `name` are the array's --- */

MUST_CHECK bool tree_item_object(const json_t *array, size_t index, const char *name,
				 const char *path, json_t **ret_object, struct error *error);
/* 1 to max_length bytes. */
MUST_CHECK bool tree_item_string(const json_t *array, size_t index, const char *name,
				 const char *path, size_t max_length, const char **ret_text,
				 struct error *error);

/* Refuses a value that is no object, and every key that is not in `known` (NULL-ended), with the
 * nearest known one: tree_check_keys(body, "", TREE_KEYS("name", "count"), error). */
#define TREE_KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})
MUST_CHECK bool tree_check_keys(const json_t *object, const char *path, const char *const *known,
				struct error *error);

/* --- writing --- */

/* Takes over `value` (as json_object_set_new) and never fails: a NULL value is out of memory. */
void tree_set(json_t *object, const char *name, json_t *value);
void tree_append(json_t *array, json_t *value);
/* A string value; bytes that are not UTF-8 become U+FFFD, as JSON can't hold them. */
json_t *tree_string(const char *text);

/* One line, keys sorted, no spaces: equal trees give equal bytes. */
void tree_dump_canonical(struct buf *out, const json_t *tree);
/* For people and files: two spaces, keys in the tree's order, a newline at the end. */
void tree_dump_pretty(struct buf *out, const json_t *tree);
