/*
 * buf: growing bytes with a bound, and text building on them.
 *
 * Owns      its memory; `struct buf b = {0}` is empty and valid, buf_deinit() frees, NULL-safe.
 * Text      buf_printf() and friends keep a NUL after the last byte (not counted in `length`), so
 *           buf_text() is always a C string. Bytes may hold NULs all the same.
 * Limits    none of its own: who adds bytes from outside checks the bound first.
 * Pure.
 */
#pragma once

#include "base/base.h"

struct buf {
	uint8_t *data;
	size_t length, capacity;
};

void buf_deinit(struct buf *buf);
void buf_clear(struct buf *buf); /* keeps the memory */
void buf_wipe(struct buf *buf);  /* as clear, and the bytes are overwritten: for secrets */
void buf_add(struct buf *buf, const void *data, size_t length);
void buf_add_text(struct buf *buf, const char *text);
void buf_add_char(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF(2, 3);
uint8_t *buf_extend(struct buf *buf, size_t length); /* `length` uninitialised bytes at the end */
void buf_drop_front(struct buf *buf, size_t length);
const char *buf_text(const struct buf *buf); /* "" when empty; valid until the next change */
char *buf_take_text(struct buf *buf);        /* heap string; the buf is empty afterwards */

static inline void buf_cleanup(struct buf *buf)
{
	buf_deinit(buf);
}
