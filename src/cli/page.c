#include "cli/page.h"
#include "base/vec.h"
#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>

#define GAP      2
#define TEXT_MIN 16 /* characters of text in a line, however narrow the terminal */

void page_deinit(struct page *page)
{
	for (size_t i = 0; i < page->lines.count; i++) {
		free(page->lines.items[i].label);
		free(page->lines.items[i].text);
	}
	vec_deinit(&page->lines);
}

void page_line(struct page *page, const char *label, const char *text)
{
	struct page_line *line;

	if (!text || !text[0])
		return;
	line = vec_push(&page->lines);
	line->label = mem_strdup(label);
	line->text = mem_strdup(text);
	table_sanitize(line->label);
	table_sanitize(line->text);
}

void page_linef(struct page *page, const char *label, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		abort();
	page_line(page, label, text);
	free(text);
}

static size_t word_width(const char *text, size_t length)
{
	size_t width = 0;

	for (size_t i = 0; i < length; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

/* Spaces within a line stay as they are. */
void page_add_wrapped(struct buf *out, const char *text, size_t column, size_t width)
{
	size_t used = 0;

	while (*text) {
		size_t spaces = strspn(text, " "), length = strcspn(text + spaces, " ");
		size_t word = word_width(text + spaces, length);
		if (used > 0 && used + spaces + word > width) {
			buf_printf(out, "\n%*s", (int)column, "");
			text += spaces;
			used = spaces = 0;
		}
		buf_add(out, text, spaces + length);
		used += spaces + word;
		text += spaces + length;
	}
	buf_add_char(out, '\n');
}

void page_render(const struct page *page, size_t indent, size_t width, struct buf *out)
{
	size_t labels = 0, column, rest;

	for (size_t i = 0; i < page->lines.count; i++) {
		size_t here = table_text_width(page->lines.items[i].label);
		labels = here > labels ? here : labels;
	}
	column = indent + labels + GAP;
	rest = width == 0 ? SIZE_MAX : width > column + TEXT_MIN ? width - column : TEXT_MIN;
	for (size_t i = 0; i < page->lines.count; i++) {
		const struct page_line *line = &page->lines.items[i];
		size_t padding = labels - table_text_width(line->label) + GAP;
		buf_printf(out, "%*s%s%*s", (int)indent, "", line->label, (int)padding, "");
		page_add_wrapped(out, line->text, column, rest);
	}
}
