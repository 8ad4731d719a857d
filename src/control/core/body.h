/*
 * body: strict reading of a request's JSON object.
 *
 * Owns      the refusals that every call makes alike: unknown fields, missing ones, wrong types,
 *           numbers and texts out of bounds. Each names the field by its path, "devices[0].count".
 * Pure      texts that are returned belong to the JSON.
 * Numbers   must be written as integers: 2.0 and 1e1 are refused.
 */
#pragma once

#include "base/error.h"

#include <jansson.h>

/* An object and where it stands. `path` is "" for the body itself, else "policy.kubernetes". */
struct body {
	const json_t *object;
	const char *path;
};

#define BODY_PATH_SIZE ERROR_FIELD_SIZE

/* INVALID_INPUT unless `json` is an object that has none but the `known` fields (NULL-ended). */
MUST_CHECK bool body_open(const json_t *json, const char *path, const char *const *known,
			  struct body *ret_body, struct error *error);

/* The field's own path. */
void body_path(char out[BODY_PATH_SIZE], const struct body *body, const char *field);

enum body_need {
	BODY_OPTIONAL,
	BODY_REQUIRED,
};

/* Text of 1 to `max_length` bytes without control characters; absent and optional: NULL. */
MUST_CHECK bool body_text(const struct body *body, const char *field, enum body_need need,
			  size_t max_length, const char **ret_text, struct error *error);

/* A name: lower-case letters, digits, '.', '_', '-', first and last a letter or digit. */
#define BODY_NAME_MAX 63
MUST_CHECK bool body_name(const struct body *body, const char *field, const char **ret_name,
			  struct error *error);

/* An id with this prefix. */
MUST_CHECK bool body_id(const struct body *body, const char *field, enum body_need need,
			const char *prefix, const char **ret_id, struct error *error);

/* Absent and optional: *ret_number is untouched. */
MUST_CHECK bool body_int(const struct body *body, const char *field, enum body_need need,
			 int64_t min, int64_t max, int64_t *ret_number, struct error *error);
MUST_CHECK bool body_bool(const struct body *body, const char *field, bool *ret_truth,
			  struct error *error);

/* One of `names` (NULL-ended); absent and optional: *ret_index is untouched. */
MUST_CHECK bool body_choice(const struct body *body, const char *field, enum body_need need,
			    const char *const *names, int *ret_index, struct error *error);

/* Text of 1 to `max_length` printable ASCII characters. */
MUST_CHECK bool body_ascii(const struct body *body, const char *field, enum body_need need,
			   size_t max_length, const char **ret_text, struct error *error);

/* Printable ASCII characters; NULL when absent (POOL-27). */
#define BODY_IDEMPOTENCY_KEY_MAX 128
MUST_CHECK bool body_idempotency_key(const struct body *body, const char **ret_key,
				     struct error *error);

/* The same text for the same input, whatever the order of its fields; without its idempotencyKey.
 * Heap. */
char *body_canonical(const json_t *json);
