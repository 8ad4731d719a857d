/*
 * arena: memory that lives for one turn or one request and goes at once.
 *
 * `struct arena arena = {0}` is empty; arena_deinit() frees all. Pointers from an arena are never
 * freed alone. Pure.
 */
#pragma once

#include "base/base.h"

struct arena {
	struct arena_block *blocks;
};

void *arena_alloc(struct arena *arena, size_t size); /* zeroed, aligned for any type */
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF(2, 3);
void arena_deinit(struct arena *arena);

static inline void arena_cleanup(struct arena *arena)
{
	arena_deinit(arena);
}
