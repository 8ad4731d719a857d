#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#define BUF_FIRST 64

static void reserve(struct buf *buf, size_t more)
{
	size_t wanted, capacity = buf->capacity ? buf->capacity : BUF_FIRST;

	if (__builtin_add_overflow(buf->length, more, &wanted) ||
	    __builtin_add_overflow(wanted, 1, &wanted))
		abort();
	if (wanted <= buf->capacity)
		return;
	while (capacity < wanted) {
		if (__builtin_mul_overflow(capacity, 2, &capacity))
			abort();
	}
	buf->data = mem_resize(buf->data, capacity, 1);
	buf->capacity = capacity;
}

void buf_deinit(struct buf *buf)
{
	if (!buf)
		return;
	free(buf->data);
	*buf = (struct buf){0};
}

void buf_clear(struct buf *buf)
{
	buf->length = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

void buf_wipe(struct buf *buf)
{
	if (buf->data)
		explicit_bzero(buf->data, buf->capacity);
	buf->length = 0;
}

uint8_t *buf_extend(struct buf *buf, size_t length)
{
	uint8_t *start;

	reserve(buf, length);
	start = buf->data + buf->length;
	buf->length += length;
	buf->data[buf->length] = '\0';
	return start;
}

void buf_add(struct buf *buf, const void *data, size_t length)
{
	uint8_t *start = buf_extend(buf, length);

	if (length)
		memcpy(start, data, length);
}

void buf_add_text(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_add_char(struct buf *buf, char c)
{
	buf_add(buf, &c, 1);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args, again;
	int length;

	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	assert(length >= 0);
	reserve(buf, (size_t)length);
	vsnprintf((char *)buf->data + buf->length, (size_t)length + 1, format, again);
	va_end(again);
	buf->length += (size_t)length;
}

void buf_drop_front(struct buf *buf, size_t length)
{
	assert(length <= buf->length);
	if (!length)
		return;
	memmove(buf->data, buf->data + length, buf->length - length);
	buf->length -= length;
	buf->data[buf->length] = '\0';
}

const char *buf_text(const struct buf *buf)
{
	return buf->data ? (const char *)buf->data : "";
}

char *buf_take_text(struct buf *buf)
{
	char *text;

	reserve(buf, 0);
	buf->data[buf->length] = '\0';
	text = (char *)buf->data;
	*buf = (struct buf){0};
	return text;
}
