#include "store/sqlite.h"

#define READER_CACHE_KIB "512"

static bool is_race(int result)
{
	int primary = result & 0xff;

	return primary == SQLITE_BUSY || primary == SQLITE_LOCKED;
}

/* The bookings' triggers and the schema's constraints speak through these two. */
enum error_code sqlite_code(int result)
{
	switch (result & 0xff) {
	case SQLITE_CONSTRAINT:
		return ERROR_CONFLICT;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_FULL: /* the disk is our matter, not what was asked for: it may be tried again */
		return ERROR_UNAVAILABLE;
	case SQLITE_NOTADB:
	case SQLITE_CANTOPEN:
		return ERROR_INVALID_CONFIG;
	default:
		return ERROR_INTERNAL;
	}
}

static bool link_failure(const struct sqlite_link *link, const char *doing, struct error *error)
{
	return error_set(error, sqlite_code(sqlite3_extended_errcode(link->handle)), "%s: %s",
			 doing, sqlite3_errmsg(link->handle));
}

static bool failure(struct sqlite_connection *connection, const char *doing, struct error *error)
{
	if (is_race(sqlite3_extended_errcode(connection->link->handle)))
		connection->base.loss = STORE_LOSS_RACE;
	return link_failure(connection->link, doing, error);
}

/* --- links --- */

void sqlite_close_link(struct sqlite_link *link)
{
	vec_each (&link->statements, struct sqlite_statement * statement) {
		sqlite3_finalize(statement->handle);
		free(statement->sql);
	}
	vec_deinit(&link->statements);
	sqlite3_close(link->handle);
	link->handle = NULL;
}

bool sqlite_set_pragma(const struct sqlite_link *link, const char *sql, struct error *error)
{
	return sqlite3_exec(link->handle, sql, NULL, NULL, NULL) == SQLITE_OK ||
	       link_failure(link, sql, error);
}

bool sqlite_open_handle(const struct sqlite_store *state, sqlite3 **ret_handle, struct error *error)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
		    (state->memory ? SQLITE_OPEN_URI | SQLITE_OPEN_CREATE : 0);
	sqlite3 *handle = NULL;

	if (sqlite3_open_v2(state->file, &handle, flags, NULL) == SQLITE_OK) {
		*ret_handle = handle;
		return true;
	}
	error_set(error, ERROR_INVALID_CONFIG, "open '%s': %s", state->file,
		  handle ? sqlite3_errmsg(handle) : "out of memory");
	sqlite3_close(handle);
	return false;
}

bool sqlite_open_link(const struct sqlite_store *state, struct sqlite_link *link,
		      struct error *error)
{
	if (!sqlite_open_handle(state, &link->handle, error))
		return false;
	sqlite3_busy_timeout(link->handle, SQLITE_BUSY_TIMEOUT_MS);
	if (sqlite_set_pragma(link, "PRAGMA foreign_keys = ON", error) &&
	    sqlite_set_pragma(link, "PRAGMA trusted_schema = OFF", error) &&
	    /* Commits are synced by sqlite_wait_synced(); SQLite itself syncs around its checkpoints. */
	    sqlite_set_pragma(link, "PRAGMA synchronous = NORMAL", error) &&
	    sqlite_set_pragma(link, "PRAGMA cache_size = -" READER_CACHE_KIB, error) &&
	    (state->memory || sqlite_set_pragma(link, "PRAGMA journal_mode = WAL", error)))
		return true;
	sqlite_close_link(link);
	return false;
}

/* --- statements --- */

/* "$3" is a name to SQLite, numbered by where it first stands. */
static void find_places(struct sqlite_statement *statement)
{
	int count = sqlite3_bind_parameter_count(statement->handle);

	assert(count <= SQLITE_MAX_PARAMS);
	for (int at = 1; at <= count; at++) {
		long number =
			strtol(sqlite3_bind_parameter_name(statement->handle, at) + 1, NULL, 10);

		assert(number > 0 && number <= count);
		statement->places[number - 1] = (uint8_t)at;
	}
}

static const struct sqlite_statement *find_statement(const struct sqlite_link *link,
						     const char *sql)
{
	uint64_t hash;

	vec_each (&link->statements, const struct sqlite_statement *statement) {
		if (statement->given == sql && str_equal(statement->sql, sql))
			return statement;
	}
	hash = store_sql_hash(sql);
	vec_each (&link->statements, const struct sqlite_statement *statement) {
		if (statement->hash == hash && str_equal(statement->sql, sql))
			return statement;
	}
	return NULL;
}

static bool prepare(struct sqlite_connection *connection, const char *sql,
		    const struct sqlite_statement **ret_statement, struct error *error)
{
	struct sqlite_link *link = connection->link;
	struct sqlite_statement *statement;
	sqlite3_stmt *handle;

	*ret_statement = find_statement(link, sql);
	if (*ret_statement)
		return true;
	if (sqlite3_prepare_v3(link->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, NULL) !=
	    SQLITE_OK)
		return failure(connection, "prepare", error);
	statement = vec_push(&link->statements);
	*statement =
		(struct sqlite_statement){sql, store_sql_hash(sql), mem_strdup(sql), handle, {0}};
	find_places(statement);
	*ret_statement = statement;
	return true;
}

static void bind(const struct sqlite_statement *statement, const struct store_value *params,
		 size_t count)
{
	sqlite3_stmt *handle = statement->handle;

	for (size_t i = 0; i < count; i++) {
		const struct store_value *value = &params[i];
		int at = statement->places[i];

		switch (value->kind) {
		case STORE_NULL_INT:
		case STORE_NULL_TEXT:
			sqlite3_bind_null(handle, at);
			break;
		case STORE_INT:
			sqlite3_bind_int64(handle, at, value->number);
			break;
		case STORE_TEXT:
			sqlite3_bind_text(handle, at, value->text, -1, SQLITE_STATIC);
			break;
		}
	}
}

static bool add_row(sqlite3_stmt *handle, struct store_rows *rows, struct error *error)
{
	int columns = sqlite3_column_count(handle);

	if (!store_rows_start(rows, (size_t)columns, error))
		return false;
	for (int i = 0; i < columns; i++) {
		int type = sqlite3_column_type(handle, i);

		if (type == SQLITE_NULL)
			store_rows_add_null(rows);
		else if (type == SQLITE_INTEGER)
			store_rows_add_int(rows, sqlite3_column_int64(handle, i));
		else if (!store_rows_add_text(rows, (const char *)sqlite3_column_text(handle, i),
					      (size_t)sqlite3_column_bytes(handle, i), error))
			return false;
	}
	return true;
}

bool sqlite_run(struct store_connection *base, const char *sql, const struct store_value *params,
		size_t count, struct store_rows *rows, struct error *error)
{
	struct sqlite_connection *connection = sqlite_of(base);
	const struct sqlite_statement *statement;
	sqlite3_stmt *handle;
	bool done = true;
	int result;

	if (!prepare(connection, sql, &statement, error))
		return false;
	handle = statement->handle;
	assert((size_t)sqlite3_bind_parameter_count(handle) == count);
	bind(statement, params, count);
	while ((result = sqlite3_step(handle)) == SQLITE_ROW) {
		done = !rows || add_row(handle, rows, error);
		if (!done)
			break;
	}
	if (done && result != SQLITE_DONE)
		done = failure(connection, "run a statement", error);
	sqlite3_reset(handle);
	sqlite3_clear_bindings(handle);
	return done;
}
