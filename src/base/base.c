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

/* --- addresses --- */

#define MAX_HOST 255

bool str_is_address(const char *text, int64_t least_port)
{
	const char *colon = strrchr(text, ':');
	size_t host = colon ? (size_t)(colon - text) : 0;
	int64_t port = 0;

	if (!colon || host == 0 || host > MAX_HOST || !colon[1] || strlen(colon + 1) > 5)
		return false;
	for (size_t i = 0; i < host; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == '/' || text[i] == '@')
			return false;
	if (text[0] == '[' ? host < 3 || text[host - 1] != ']' : memchr(text, ':', host) != NULL)
		return false;
	for (const char *at = colon + 1; *at; at++) {
		if (*at < '0' || *at > '9')
			return false;
		port = port * 10 + (*at - '0');
	}
	return port >= least_port && port <= 65535;
}
