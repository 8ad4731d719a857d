/*
 * toml: untrusted TOML 1.0 to the same tree as JSON. Pure.
 *
 * Strict     as tree.h: the bounds hold, keys are unique; nan and inf are refused, as JSON has
 * none. Dates and times become strings as they would stand in JSON, such as "2026-11-30T02:00:00Z".
 * Errors     INVALID_INPUT, "SOURCE:LINE: why".
 */
#pragma once

#include "text/tree.h"

/* The root is an object. Release with json_decref() or CLEANUP(tree). */
MUST_CHECK bool toml_parse(const char *text, size_t length, size_t max_size, const char *source,
			   json_t **ret_tree, struct error *error);
