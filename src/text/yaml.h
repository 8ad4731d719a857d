/*
 * yaml: untrusted YAML to the same tree as JSON, for files that people and Kubernetes write. Pure.
 *
 * Strict    as tree.h: the bounds hold and keys are unique. One document; aliases, merge keys and
 *           tags of one's own are refused, so a small text never becomes a large tree.
 * Scalars   by YAML 1.2's core schema: null, true, false, whole and decimal numbers when plain;
 *           everything else, and whatever is quoted, is a string. So yes, no, on, off, y and n are
 *           strings, where YAML 1.1 has booleans. A plain number with a leading zero (010) is
 *           refused, as the versions disagree on it. Keys are strings whatever they look like.
 * Errors    INVALID_INPUT, "SOURCE:LINE: why", never with the text itself (it may hold secrets)
 *           but for the name of a key that is there twice.
 * Source    YAML 1.2.2, chapter 10.3; the grammar is libyaml's (0.2).
 */
#pragma once

#include "text/tree.h"

/* The root is an object or an array. A text that begins with '{' is read as JSON. Release with
 * json_decref() or CLEANUP(tree). */
MUST_CHECK bool yaml_parse(const char *text, size_t length, size_t max_size, const char *source,
			   json_t **ret_tree, struct error *error);

/* Adds the tree, in block style, keys in its order, a newline at the end. Strings are quoted unless
 * every YAML takes them for plain words; lines of ASCII text are a literal block. */
void yaml_dump(struct buf *out, const json_t *tree);
