/*
 * toml_read: the shim over toml++; only toml.c uses it. Pure.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct toml_mistake {
	unsigned line;
	char why[256];
};

/* A new tree, or NULL with *mistake filled. Depth has been checked. */
json_t *toml_read(const char *text, size_t length, struct toml_mistake *mistake);

#ifdef __cplusplus
}
#endif
