#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>

#define ARENA_BLOCK 8192

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	alignas(max_align_t) uint8_t data[];
};

void *arena_alloc(struct arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);
	struct arena_block *block = arena->blocks;
	void *memory;

	if (size > SIZE_MAX - align - sizeof *block)
		abort();
	size = (size + align - 1) / align * align;
	if (!block || block->size - block->used < size) {
		size_t room = size > ARENA_BLOCK ? size : ARENA_BLOCK;

		block = mem_alloc(sizeof *block + room);
		block->size = room;
		block->next = arena->blocks;
		arena->blocks = block;
	}
	memory = block->data + block->used;
	block->used += size;
	return memory;
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_alloc(arena, length + 1);

	memcpy(copy, text, length);
	return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return text ? arena_strndup(arena, text, strlen(text)) : NULL;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args, again;
	char *text;
	int length;

	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	assert(length >= 0);
	text = arena_alloc(arena, (size_t)length + 1);
	vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	return text;
}

void arena_deinit(struct arena *arena)
{
	if (!arena)
		return;
	while (arena->blocks) {
		struct arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
}
