#include "control/backup.h"

#include "control/core/timestamp.h"
#include "pki/token.h"
#include "store/copy.h"
#include "store/store.h"
#include "text/tree.h"

#define FORMAT "better-compute backup"

/* --- writing --- */

struct writer {
	const struct store *store;
	struct buf *text;
	struct backup_info info;
};

static bool add_line(struct writer *writer, json_t *line, struct error *error)
{
	char *text = json_dumps(line, JSON_COMPACT | JSON_ENCODE_ANY);

	json_decref(line);
	assert(text);
	buf_add_text(writer->text, text);
	buf_add_char(writer->text, '\n');
	free(text);
	if (writer->text->length > BACKUP_MAX_SIZE)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "the backup would be over %zu bytes", BACKUP_MAX_SIZE);
	return true;
}

static bool write_begin(void *arg, struct wall now, struct error *error)
{
	struct writer *writer = arg;
	char made[TIMESTAMP_SIZE];

	buf_clear(writer->text);
	writer->info = (struct backup_info){.made = now,
					    .schema_version = store_schema_version(writer->store)};
	str_copy(writer->info.lineage, sizeof writer->info.lineage, store_lineage(writer->store));
	timestamp_format(made, now);
	return add_line(writer,
			json_pack("{s:s, s:i, s:i, s:s, s:s, s:s}", "format", FORMAT, "version",
				  BACKUP_VERSION, "schema", writer->info.schema_version, "lineage",
				  writer->info.lineage, "made", made, "program", BC_VERSION),
			error);
}

static bool write_table(void *arg, const struct store_table *table, struct error *error)
{
	struct writer *writer = arg;
	json_t *columns = json_array();

	vec_each (&table->columns, const struct store_column *column)
		json_array_append_new(columns, json_string(column->name));
	writer->info.tables++;
	return add_line(writer, json_pack("{s:s, s:o}", "table", table->name, "columns", columns),
			error);
}

static json_t *to_json(const struct store_value *value)
{
	switch (value->kind) {
	case STORE_NULL_INT:
	case STORE_NULL_TEXT:
		return json_null();
	case STORE_INT:
		return json_integer(value->number);
	case STORE_TEXT:
		return json_string(value->text); /* NULL: not UTF-8 */
	}
	abort();
}

static bool write_row(void *arg, const struct store_value *values, size_t count,
		      struct error *error)
{
	struct writer *writer = arg;
	json_t *line = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *value = to_json(&values[i]);

		if (!value) {
			json_decref(line);
			return error_set(error, ERROR_INTERNAL, "a text is not UTF-8");
		}
		json_array_append_new(line, value);
	}
	writer->info.rows++;
	return add_line(writer, line, error);
}

bool backup_write(struct store *store, struct buf *ret_text, struct backup_info *ret_info,
		  struct error *error)
{
	static const struct store_copy_out to = {write_begin, write_table, write_row};
	struct writer writer = {.store = store, .text = ret_text};
	char hash[TOKEN_HASH_SIZE];

	assert(ret_text->length == 0);
	if (!store_copy_out(store, &to, &writer, error))
		return error_wrap(error, "back up the database");
	token_hash(buf_text(ret_text), hash);
	if (!add_line(&writer,
		      json_pack("{s:I, s:I, s:s}", "tables", (json_int_t)writer.info.tables, "rows",
				(json_int_t)writer.info.rows, "sha256", hash),
		      error))
		return false;
	*ret_info = writer.info;
	return true;
}

/* --- reading --- */

struct reader {
	const char *text, *end, *source;
	const char *at;   /* the next line */
	const char *last; /* the last line: counts and checksum */
	int64_t line;     /* the one read last, from 1 */
	json_t *item;
};

static bool next_line(struct reader *reader, json_t **ret_line, struct error *error)
{
	const char *end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
	size_t length;

	reader->line++;
	if (!end)
		return error_set(error, ERROR_INVALID_INPUT, "%s:%lld: the file is cut short",
				 reader->source, (long long)reader->line);
	length = (size_t)(end - reader->at);
	if (!tree_parse(reader->at, length, BACKUP_MAX_LINE, reader->source, ret_line, error))
		return error_wrap(error, "line %lld", (long long)reader->line);
	reader->at = end + 1;
	return true;
}

static bool wrong(const struct reader *reader, struct error *error, const char *why)
{
	return error_set(error, ERROR_INVALID_INPUT, "%s:%lld: %s", reader->source,
			 (long long)reader->line, why);
}

static bool read_head(struct reader *reader, struct backup_info *info, struct error *error)
{
	CLEANUP(tree) json_t *head = NULL;
	int64_t version, schema;
	const char *text;

	if (!next_line(reader, &head, error))
		return false;
	if (!json_is_object(head) || !tree_get_string(head, "format", "", 64, &text, error) ||
	    !str_equal(text, FORMAT))
		return wrong(reader, error, "this is no backup of better-compute");
	if (!tree_get_int(head, "version", "", 1, INT32_MAX, &version, error) ||
	    !tree_get_int(head, "schema", "", 1, INT32_MAX, &schema, error) ||
	    !tree_get_string(head, "lineage", "", ID_SIZE - 1, &text, error))
		return error_wrap(error, "%s:1", reader->source);
	str_copy(info->lineage, sizeof info->lineage, text);
	if (!tree_get_string(head, "made", "", TIMESTAMP_SIZE, &text, error) ||
	    !timestamp_parse(text, "made", &info->made, error))
		return error_wrap(error, "%s:1", reader->source);
	if (version > BACKUP_VERSION || schema > STORE_MIGRATIONS) {
		error_set(error, ERROR_INVALID_STATE,
			  "'%s' was written by a newer program: schema %lld, this one knows %d",
			  reader->source, (long long)schema, STORE_MIGRATIONS);
		return error_hint(error,
				  "Restore it with the version that wrote it, or a newer one.");
	}
	info->schema_version = (int)schema;
	return true;
}

/* The last line speaks for all before it. */
static bool read_tail(struct reader *reader, struct backup_info *info, struct error *error)
{
	CLEANUP(tree) json_t *tail = NULL;
	CLEANUP(buf) struct buf body = {0};
	char hash[TOKEN_HASH_SIZE];
	const char *told;
	struct reader at_tail = *reader;

	at_tail.at = reader->last;
	if (!next_line(&at_tail, &tail, error) || !json_is_object(tail) ||
	    !tree_get_int(tail, "tables", "", 0, INT64_MAX, &info->tables, error) ||
	    !tree_get_int(tail, "rows", "", 0, INT64_MAX, &info->rows, error) ||
	    !tree_get_string(tail, "sha256", "", sizeof hash, &told, error))
		return error_set(error, ERROR_INVALID_INPUT,
				 "'%s': the file is cut short: its last line is missing",
				 reader->source);
	buf_add(&body, reader->text, (size_t)(reader->last - reader->text));
	token_hash(buf_text(&body), hash);
	if (str_equal(told, hash))
		return true;
	return error_set(error, ERROR_INVALID_INPUT, "'%s': the checksum doesn't match",
			 reader->source);
}

static bool reader_open(struct reader *reader, const struct buf *text, const char *source,
			struct backup_info *ret_info, struct error *error)
{
	struct backup_info info = {0};

	*reader = (struct reader){.text = (const char *)text->data, .source = source};
	reader->end = reader->text + text->length;
	reader->at = reader->text;
	if (text->length == 0 || memchr(text->data, '\0', text->length))
		return error_set(error, ERROR_INVALID_INPUT, "'%s' is no backup of better-compute",
				 source);
	reader->last = reader->end - 1; /* before its newline */
	while (reader->last > reader->text && reader->last[-1] != '\n')
		reader->last--;
	if (!read_head(reader, &info, error) || !read_tail(reader, &info, error))
		return false;
	*ret_info = info;
	return true;
}

static bool to_value(const struct reader *reader, const json_t *json, struct store_value *ret_value,
		     struct error *error)
{
	if (json_is_null(json))
		*ret_value = store_text(NULL);
	else if (json_is_integer(json))
		*ret_value = store_int(json_integer_value(json));
	else if (json_is_string(json))
		*ret_value = store_text(json_string_value(json));
	else
		return wrong(reader, error, "a value is neither number, text nor null");
	return true;
}

static bool read_row(const struct reader *reader, struct store_copy_item *item, struct error *error)
{
	item->kind = STORE_COPY_ROW;
	for (size_t i = 0; i < item->count; i++) {
		if (!to_value(reader, json_array_get(reader->item, i), &item->values[i], error))
			return false;
	}
	return true;
}

static bool read_table(const struct reader *reader, const json_t *columns,
		       struct store_copy_item *item, struct error *error)
{
	item->kind = STORE_COPY_TABLE;
	for (size_t i = 0; i < item->count; i++) {
		item->names[i] = json_string_value(json_array_get(columns, i));
		if (!item->names[i])
			return wrong(reader, error, "a column's name is no text");
	}
	return true;
}

static bool read_rewind(void *arg, struct error *error)
{
	struct reader *reader = arg;
	CLEANUP(tree) json_t *head = NULL;

	reader->at = reader->text;
	reader->line = 0;
	return next_line(reader, &head, error);
}

static bool read_next(void *arg, struct store_copy_item *ret_item, struct error *error)
{
	struct reader *reader = arg;
	const json_t *columns = NULL;

	if (reader->at >= reader->last) {
		ret_item->kind = STORE_COPY_END;
		return true;
	}
	json_decref(reader->item);
	reader->item = NULL;
	if (!next_line(reader, &reader->item, error))
		return false;
	if (json_is_object(reader->item)) {
		ret_item->table = json_string_value(json_object_get(reader->item, "table"));
		columns = json_object_get(reader->item, "columns");
		if (!ret_item->table || !json_is_array(columns))
			return wrong(reader, error, "neither a table nor a row");
	}
	ret_item->count = json_array_size(columns ? columns : reader->item);
	if (ret_item->count == 0 || ret_item->count > STORE_COPY_MAX_COLUMNS)
		return wrong(reader, error, "no columns, or too many");
	return columns ? read_table(reader, columns, ret_item, error)
		       : read_row(reader, ret_item, error);
}

/* Walks all lines without giving them to anybody. */
static bool check_lines(struct reader *reader, const struct backup_info *info, struct error *error)
{
	struct store_copy_item item;
	int64_t tables = 0, rows = 0;

	if (!read_rewind(reader, error))
		return false;
	do {
		if (!read_next(reader, &item, error))
			return false;
		tables += item.kind == STORE_COPY_TABLE;
		rows += item.kind == STORE_COPY_ROW;
	} while (item.kind != STORE_COPY_END);
	if (tables == info->tables && rows == info->rows)
		return true;
	return error_set(error, ERROR_INVALID_INPUT, "'%s': %lld rows, not %lld as it says",
			 reader->source, (long long)rows, (long long)info->rows);
}

bool backup_check(const struct buf *text, const char *source, struct backup_info *ret_info,
		  struct error *error)
{
	struct backup_info info = {0};
	struct reader reader = {0};
	bool done = reader_open(&reader, text, source, &info, error) &&
		    check_lines(&reader, &info, error);

	json_decref(reader.item);
	if (done)
		*ret_info = info;
	return done;
}

bool backup_restore(const char *url, const struct buf *text, const char *source, bool force,
		    struct backup_info *ret_info, struct error *error)
{
	struct store_copy_in from = {.rewind = read_rewind, .next = read_next};
	struct backup_info info = {0};
	struct reader reader = {0};
	bool done = backup_check(text, source, &info, error) &&
		    reader_open(&reader, text, source, &info, error);

	from.schema_version = info.schema_version;
	done = done && store_copy_in(url, &from, &reader, force, error);
	json_decref(reader.item);
	if (!done)
		return error_wrap(error, "restore the database");
	*ret_info = info;
	return true;
}
