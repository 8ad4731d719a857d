#include "cli/table.h"
#include "base/utf8.h"
#include "base/vec.h"

#include <stdarg.h>
#include <stdio.h>

#define GAP      2
#define FLEX_MIN 8

/* Code points that a terminal obeys rather than shows, or shows as nothing; in order. */
static const struct {
	uint32_t first, last;
} HIDDEN[] = {
	{0x0, 0x1f},      {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},
	{0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
	{0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
};

/* `text` is one valid sequence of this length. */
static uint32_t code_point(const char *text, size_t length)
{
	const unsigned char *bytes = (const unsigned char *)text;
	uint32_t point = length == 1 ? bytes[0] : bytes[0] & (0xffu >> (length + 1));

	for (size_t i = 1; i < length; i++)
		point = point << 6 | (bytes[i] & 0x3fu);
	return point;
}

static bool is_shown(const char *text, size_t length)
{
	uint32_t point = code_point(text, length);

	for (size_t i = 0; i < ARRAY_SIZE(HIDDEN); i++) {
		if (point >= HIDDEN[i].first && point <= HIDDEN[i].last)
			return false;
	}
	return true;
}

static void sanitize(char *text, bool keep_lines)
{
	char *to = text;

	while (*text) {
		size_t length = utf8_length(text);
		bool shown =
			length > 0 && (is_shown(text, length) || (keep_lines && *text == '\n'));
		if (shown)
			memmove(to, text, length);
		else
			*to = '?';
		to += shown ? length : 1;
		text += length ? length : 1;
	}
	*to = '\0';
}

void table_sanitize(char *text)
{
	sanitize(text, false);
}

void table_sanitize_lines(char *text)
{
	sanitize(text, true);
}

size_t table_text_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

void table_init(struct table *table, const struct table_column *columns, size_t count)
{
	assert(count <= TABLE_MAX_COLUMNS);
	*table = (struct table){.columns = columns, .column_count = count};
}

void table_deinit(struct table *table)
{
	for (size_t i = 0; i < table->cells.count; i++)
		free(table->cells.items[i]);
	vec_deinit(&table->cells);
}

void table_cell(struct table *table, const char *text)
{
	char *copy = mem_strdup(text && text[0] ? text : "-");

	table_sanitize(copy);
	*vec_push(&table->cells) = copy;
}

void table_cellf(struct table *table, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		abort();
	table_cell(table, text);
	free(text);
}

size_t table_row_count(const struct table *table)
{
	return table->cells.count / table->column_count;
}

static const char *cell(const struct table *table, size_t row, size_t column)
{
	return table->cells.items[row * table->column_count + column];
}

static size_t common_prefix(const char *a, const char *b)
{
	size_t length = 0;

	while (a[length] && a[length] == b[length])
		length++;
	return length;
}

/* How many characters tell this column's ids apart, "…" included. */
static size_t id_width(const struct table *table, size_t column)
{
	size_t rows = table_row_count(table), needed = TABLE_ID_MIN - 1;

	for (size_t i = 0; i < rows; i++) {
		for (size_t j = i + 1; j < rows; j++) {
			const char *a = cell(table, i, column), *b = cell(table, j, column);
			size_t common = common_prefix(a, b);
			if ((a[common] || b[common]) && common + 1 > needed)
				needed = common + 1;
		}
	}
	return needed + 1;
}

static size_t natural_width(const struct table *table, size_t column)
{
	const char *title = table->columns[column].title;
	size_t width = table_text_width(title);

	for (size_t row = 0; row < table_row_count(table); row++) {
		size_t here = table_text_width(cell(table, row, column));
		if (here > width)
			width = here;
	}
	return width;
}

static bool empty(const struct table *table, size_t column)
{
	for (size_t row = 0; row < table_row_count(table); row++) {
		if (!str_equal(cell(table, row, column), "-"))
			return false;
	}
	return true;
}

static bool alike(const struct table *table, size_t column)
{
	for (size_t row = 1; row < table_row_count(table); row++) {
		if (!str_equal(cell(table, row, column), cell(table, 0, column)))
			return false;
	}
	return true;
}

static bool shown(const struct table *table, size_t column, bool wide)
{
	unsigned flags = table->columns[column].flags;

	return wide || !(flags & TABLE_WIDE || (flags & TABLE_SPARSE && empty(table, column)) ||
			 (flags & TABLE_ALIKE && alike(table, column)));
}

static size_t total_width(const struct table *table, const size_t *widths, bool wide)
{
	size_t total = 0;

	for (size_t i = 0; i < table->column_count; i++) {
		if (shown(table, i, wide))
			total += widths[i] + GAP;
	}
	return total > GAP ? total - GAP : 0;
}

/* Makes columns narrower until the rows fit, ids and, if `flex`, others; false when nothing more may
 * be cut. */
static bool fit(const struct table *table, size_t *widths, size_t width, bool flex)
{
	size_t total = total_width(table, widths, false);

	for (size_t i = table->column_count; i-- > 0 && total > width;) {
		if (!(table->columns[i].flags & TABLE_ID) || !shown(table, i, false))
			continue;
		size_t least = id_width(table, i);
		if (least < widths[i])
			widths[i] = least;
		total = total_width(table, widths, false);
	}
	for (size_t i = table->column_count; flex && i-- > 0 && total > width;) {
		if (!(table->columns[i].flags & TABLE_FLEX) || !shown(table, i, false))
			continue;
		size_t excess = total - width, least = FLEX_MIN < widths[i] ? FLEX_MIN : widths[i];
		widths[i] = widths[i] > least + excess ? widths[i] - excess : least;
		total = total_width(table, widths, false);
	}
	return total <= width;
}

void table_add_cut(struct buf *out, const char *text, size_t width)
{
	if (table_text_width(text) <= width) {
		buf_add_text(out, text);
		return;
	}
	for (size_t used = 0; *text; text++) {
		if (((unsigned char)*text & 0xc0) != 0x80 && ++used >= width)
			break;
		buf_add_char(out, *text);
	}
	buf_add_text(out, "…");
}

#define UUID_SHORT 8 /* characters of a GPU's UUID that people see */

void table_add_device(struct buf *out, const char *atom)
{
	const char *uuid = strchr(atom, '/');
	size_t length = uuid ? strcspn(uuid + 1, "/") : 0;

	if (length <= UUID_SHORT + 1) {
		buf_add_text(out, atom);
		return;
	}
	buf_printf(out, "%.*s…%s", (int)(uuid + 1 - atom) + UUID_SHORT, atom, uuid + 1 + length);
}

static void add_cell(struct buf *out, const char *text, size_t width, bool right)
{
	size_t length = table_text_width(text);
	int padding = width > length ? (int)(width - length) : 0;

	if (right)
		buf_printf(out, "%*s", padding, "");
	table_add_cut(out, text, width);
	if (!right)
		buf_printf(out, "%*s", padding, "");
}

static void end_line(struct buf *out, size_t start)
{
	while (out->length > start && out->data[out->length - 1] == ' ')
		out->length--;
	buf_add_char(out, '\n');
}

static void add_row(const struct table *table, const size_t *widths, bool wide, size_t row,
		    bool titles, struct buf *out)
{
	size_t start = out->length, before = 0;

	for (size_t i = 0; i < table->column_count; i++) {
		if (!shown(table, i, wide))
			continue;
		if (before++)
			buf_printf(out, "%*s", GAP, "");
		add_cell(out, titles ? table->columns[i].title : cell(table, row, i), widths[i],
			 table->columns[i].flags & TABLE_RIGHT);
	}
	end_line(out, start);
}

/* How much of `text` a line of `width` takes: whole words where there are any, in bytes. */
static size_t line_length(const char *text, size_t width)
{
	size_t at = 0, words = 0;

	for (size_t used = 0; text[at]; at++) {
		if (((unsigned char)text[at] & 0xc0) != 0x80 && used++ == width)
			return words ? words : at;
		if (text[at] == ' ')
			words = at;
	}
	return at;
}

/* All of a text, in as many lines as that takes. */
static void add_broken(struct buf *out, const char *text, size_t column, size_t width)
{
	for (;;) {
		size_t length = line_length(text, width);
		buf_add(out, text, length);
		text += length + strspn(text + length, " ");
		if (!*text)
			break;
		buf_printf(out, "\n%*s", (int)column, "");
	}
}

/* For a terminal that is too narrow: a block of lines for each row, cells that are empty left out.
 * Of an id its beginning will do: commands take that. */
static void render_blocks(const struct table *table, size_t width, struct buf *out)
{
	size_t titles = 0;

	for (size_t i = 0; i < table->column_count; i++) {
		size_t here = table_text_width(table->columns[i].title);
		if (shown(table, i, false) && here > titles)
			titles = here;
	}
	size_t rest = width > titles + GAP + FLEX_MIN ? width - titles - GAP : FLEX_MIN;
	for (size_t row = 0; row < table_row_count(table); row++) {
		if (row)
			buf_add_char(out, '\n');
		for (size_t i = 0; i < table->column_count; i++) {
			size_t start = out->length;
			if (!shown(table, i, false) || str_equal(cell(table, row, i), "-"))
				continue;
			add_cell(out, table->columns[i].title, titles + GAP, false);
			if (table->columns[i].flags & TABLE_ID)
				table_add_cut(out, cell(table, row, i), rest);
			else
				add_broken(out, cell(table, row, i), titles + GAP, rest);
			end_line(out, start);
		}
	}
}

/* The same rows for less room: devices by their short names, and spare columns left out or not. */
static void make_narrow(const struct table *table, bool spare, struct table_column *columns,
			struct table *ret_narrow)
{
	size_t count = 0;

	for (size_t i = 0; i < table->column_count; i++) {
		if (spare || !(table->columns[i].flags & TABLE_SPARE))
			columns[count++] = table->columns[i];
	}
	table_init(ret_narrow, columns, count);
	for (size_t i = 0; i < table->cells.count; i++) {
		unsigned flags = table->columns[i % table->column_count].flags;
		CLEANUP(buf) struct buf text = {0};
		if (!spare && flags & TABLE_SPARE)
			continue;
		if (flags & TABLE_DEVICE)
			table_add_device(&text, table->cells.items[i]);
		else
			buf_add_text(&text, table->cells.items[i]);
		*vec_push(&ret_narrow->cells) = mem_strdup(buf_text(&text));
	}
}

static void add_rows(const struct table *table, const size_t *widths, bool wide, struct buf *out)
{
	add_row(table, widths, wide, 0, true, out);
	for (size_t row = 0; row < table_row_count(table); row++)
		add_row(table, widths, wide, row, false, out);
}

static void natural_widths(const struct table *table, size_t *widths)
{
	for (size_t i = 0; i < table->column_count; i++)
		widths[i] = natural_width(table, i);
}

/* Spare columns go before any text is cut. False when the rows don't fit. */
static bool render_narrow(const struct table *table, size_t width, bool spare, struct buf *out)
{
	struct table_column columns[TABLE_MAX_COLUMNS];
	size_t widths[TABLE_MAX_COLUMNS] = {0};
	CLEANUP(table) struct table narrow;

	make_narrow(table, spare, columns, &narrow);
	natural_widths(&narrow, widths);
	if (!fit(&narrow, widths, width, !spare))
		return false;
	add_rows(&narrow, widths, false, out);
	return true;
}

void table_render(const struct table *table, size_t width, bool wide, struct buf *out)
{
	size_t widths[TABLE_MAX_COLUMNS] = {0};

	assert(table->cells.count % table->column_count == 0);
	natural_widths(table, widths);
	if (!width || wide || total_width(table, widths, false) <= width)
		add_rows(table, widths, wide, out);
	else if (!render_narrow(table, width, true, out) &&
		 !render_narrow(table, width, false, out))
		render_blocks(table, width, out);
}
