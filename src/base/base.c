#include "base/base.h"

void *mem_alloc(size_t size)
{
	void *memory = calloc(1, size ? size : 1);

	if (!memory)
		abort();
	return memory;
}

void *mem_resize(void *memory, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		abort();
	memory = realloc(memory, bytes ? bytes : 1);
	if (!memory)
		abort();
	return memory;
}

char *mem_strdup(const char *text)
{
	return text ? mem_dup(text, strlen(text) + 1) : NULL;
}

void *mem_dup(const void *data, size_t size)
{
	void *copy = mem_alloc(size);

	if (size)
		memcpy(copy, data, size);
	return copy;
}

bool str_ends(const char *text, const char *suffix)
{
	size_t text_length = strlen(text), suffix_length = strlen(suffix);

	return text_length >= suffix_length &&
	       str_equal(text + text_length - suffix_length, suffix);
}

bool str_copy(char *out, size_t out_size, const char *text)
{
	size_t length = strlen(text);
	bool fits = length < out_size;

	assert(out_size > 0);
	if (!fits)
		length = out_size - 1;
	memcpy(out, text, length);
	out[length] = '\0';
	return fits;
}
