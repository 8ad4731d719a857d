/*
 * page: what is known of one thing, as labelled lines for a terminal. Pure: the width is an
 * argument.
 *
 *     rsv_01kb7…  active
 *       devices  2 gpu on node_01kb…
 *       ends     in 7 h 59 min (2026-11-30 00:12 UTC)
 *
 * Long texts are broken between words and go on below each other. Text from outside is shown
 * without control characters.
 */
#pragma once

#include "base/buf.h"

struct page {
	struct page_lines {
		struct page_line {
			char *label, *text;
		} *items;
		size_t count, capacity;
	} lines;
};

void page_deinit(struct page *page);

static inline void page_cleanup(struct page *page)
{
	page_deinit(page);
}

/* A line that has no text is left out. */
void page_line(struct page *page, const char *label, const char *text);
void page_linef(struct page *page, const char *label, const char *format, ...) PRINTF(3, 4);

/* Words of `text` in lines of at most `width`, each but the first behind `column` spaces; a newline
 * at the end. */
void page_add_wrapped(struct buf *out, const char *text, size_t column, size_t width);

/* `indent` spaces before each label; `width` 0: no limit. */
void page_render(const struct page *page, size_t indent, size_t width, struct buf *out);
