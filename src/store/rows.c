/*
 * rows: a statement's answer, cell by cell.
 */
#include "store/driver.h"

struct store_cell {
	enum store_kind kind;
	int64_t number;
	size_t offset; /* of the text in store_rows.texts */
};

bool store_rows_start(struct store_rows *rows, size_t columns, struct error *error)
{
	if (rows->count == STORE_MAX_ROWS)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "read rows: more than %d in one answer", STORE_MAX_ROWS);
	assert(rows->count == 0 || rows->columns == columns);
	rows->columns = columns;
	return true;
}

static struct store_cell *add_cell(struct store_rows *rows)
{
	if (rows->cells_count == rows->cells_capacity) {
		rows->cells_capacity = rows->cells_capacity ? rows->cells_capacity * 2 : 64;
		rows->cells = mem_resize(rows->cells, rows->cells_capacity, sizeof *rows->cells);
	}
	rows->cells[rows->cells_count] = (struct store_cell){.kind = STORE_NULL_TEXT};
	if (++rows->cells_count % rows->columns == 0)
		rows->count++;
	return &rows->cells[rows->cells_count - 1];
}

void store_rows_add_null(struct store_rows *rows)
{
	add_cell(rows);
}

void store_rows_add_int(struct store_rows *rows, int64_t number)
{
	struct store_cell *cell = add_cell(rows);

	cell->kind = STORE_INT;
	cell->number = number;
}

bool store_rows_add_text(struct store_rows *rows, const char *text, size_t length,
			 struct error *error)
{
	struct store_cell *cell;

	if (length > STORE_MAX_TEXT)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "read rows: a text of %zu bytes is over %zu", length,
				 STORE_MAX_TEXT);
	cell = add_cell(rows);
	cell->kind = STORE_TEXT;
	cell->offset = rows->texts.length;
	buf_add(&rows->texts, text, length);
	buf_add(&rows->texts, "", 1);
	return true;
}

void store_rows_deinit(struct store_rows *rows)
{
	free(rows->cells);
	buf_deinit(&rows->texts);
	*rows = (struct store_rows){0};
}

static const struct store_cell *cell_at(const struct store_rows *rows, size_t row, size_t column)
{
	assert(row < rows->count);
	assert(column < rows->columns);
	return &rows->cells[row * rows->columns + column];
}

bool store_is_null(const struct store_rows *rows, size_t row, size_t column)
{
	enum store_kind kind = cell_at(rows, row, column)->kind;

	return kind == STORE_NULL_TEXT || kind == STORE_NULL_INT;
}

int64_t store_get_int(const struct store_rows *rows, size_t row, size_t column)
{
	const struct store_cell *cell = cell_at(rows, row, column);

	assert(cell->kind != STORE_TEXT);
	return cell->number;
}

const char *store_get_text(const struct store_rows *rows, size_t row, size_t column)
{
	const struct store_cell *cell = cell_at(rows, row, column);

	assert(cell->kind != STORE_INT);
	return cell->kind == STORE_TEXT ? (const char *)rows->texts.data + cell->offset : NULL;
}
