/*
 * toml_read: the shim over toml++; only toml.c uses it. Pure.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOML_READ_MAX_DEPTH 64 /* TREE_MAX_DEPTH, which toml.c compares it with */

struct toml_mistake {
	unsigned line;
	char why[256];
};

/* A new tree, or NULL with *mistake filled. That nesting is bounded by the text's own shape has
 * been checked: a header's depth and its keys' may still add up to more than the tree's bound. */
json_t *toml_read(const char *text, size_t length, struct toml_mistake *mistake);

#ifdef __cplusplus
}
#endif
