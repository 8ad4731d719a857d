#include "store/copy.h"

#include "store/driver.h"
#include "sys/random.h"

#include <stdio.h>

#define PAGE       5000 /* rows read at once */
#define NAME_SIZE  64
#define MAX_SQL    4096
#define MAKE_TABLE "CREATE TABLE "

/* Tables in an order in which each comes after those it refers to. */
struct tables VEC_BODY(struct store_table);

static void tables_deinit(struct tables *tables)
{
	vec_each (tables, struct store_table * table) {
		vec_each (&table->columns, struct store_column * column)
			free(column->name);
		vec_deinit(&table->columns);
		vec_deinit(&table->key);
		free(table->name);
	}
	vec_deinit(tables);
}

static inline void tables_cleanup(struct tables *tables)
{
	tables_deinit(tables);
}

/* --- which tables are ours --- */

/* Others may have tables in our schema; ours are those that a migration makes. */
static bool is_ours(const struct store_driver *driver, const char *name)
{
	size_t length = strlen(name);

	for (int i = 0; i < driver->migrations_count; i++) {
		for (const char *const *sql = driver->migrations[i].statements; *sql; sql++) {
			const char *made = *sql + strlen(MAKE_TABLE);

			if (str_starts(*sql, MAKE_TABLE) && strncmp(made, name, length) == 0 &&
			    (made[length] == ' ' || made[length] == '('))
				return true;
		}
	}
	return false;
}

static struct store_table *find_table(const struct tables *tables, const char *name)
{
	vec_each (tables, struct store_table * table) {
		if (str_equal(table->name, name))
			return table;
	}
	return NULL;
}

static void add_column(struct store_table *table, const struct store_rows *rows, size_t row)
{
	size_t place = (size_t)store_get_int(rows, row, 3); /* in the primary key, from 1 */
	struct store_column *column = vec_push(&table->columns);

	column->name = mem_strdup(store_get_text(rows, row, 1));
	column->number = store_get_int(rows, row, 2) != 0;
	while (table->key.count < place)
		(void)vec_push(&table->key);
	if (place > 0)
		table->key.items[place - 1] = table->columns.count - 1;
}

static bool read_tables(struct store_connection *connection, struct tables *tables,
			struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	/* Rows are (table, column, is a number, place in the primary key). */
	if (!store_query(connection, connection->driver->list_columns, STORE_NO_PARAMS, &rows,
			 error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		const char *name = store_get_text(&rows, i, 0);
		struct store_table *table = find_table(tables, name);

		if (!is_ours(connection->driver, name))
			continue;
		if (!table) {
			table = vec_push(tables);
			table->name = mem_strdup(name);
		}
		add_column(table, &rows, i);
	}
	vec_each (tables, struct store_table * table) {
		assert(table->key.count > 0);
		assert(table->columns.count <= STORE_COPY_MAX_COLUMNS);
	}
	return true;
}

/* Does `table` refer to a table of `left` other than itself? Rows are (table, referred to). */
static bool refers_to_any(const struct store_rows *references, const char *table,
			  const struct tables *left)
{
	for (size_t i = 0; i < references->count; i++) {
		const char *to = store_get_text(references, i, 1);

		if (str_equal(store_get_text(references, i, 0), table) && !str_equal(to, table) &&
		    find_table(left, to))
			return true;
	}
	return false;
}

static bool load_tables(struct store_connection *connection, struct tables *ret_tables,
			struct error *error)
{
	CLEANUP(store_rows) struct store_rows references = {0};
	CLEANUP(tables) struct tables left = {0};

	if (!read_tables(connection, &left, error) ||
	    !store_query(connection, connection->driver->list_references, STORE_NO_PARAMS,
			 &references, error))
		return false;
	while (left.count > 0) {
		size_t next = 0;

		while (refers_to_any(&references, left.items[next].name, &left)) {
			next++;
			assert(next < left.count); /* our tables don't refer in circles */
		}
		*vec_push(ret_tables) = left.items[next];
		vec_remove(&left, next);
	}
	return true;
}

/* --- out --- */

struct out_work {
	const struct store_copy_out *to;
	void *arg;
};

static void add_names(struct buf *sql, const struct store_table *table, bool key)
{
	size_t count = key ? table->key.count : table->columns.count;

	for (size_t i = 0; i < count; i++)
		buf_printf(sql, "%s\"%s\"", i ? ", " : "",
			   table->columns.items[key ? table->key.items[i] : i].name);
}

static void add_places(struct buf *sql, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_printf(sql, "%s$%zu", i ? ", " : "", i + 1);
}

/* Rows after those of a key, in its order. */
static char *page_sql(const struct store_table *table, bool first)
{
	struct buf sql = {0};

	buf_add_text(&sql, "SELECT ");
	add_names(&sql, table, false);
	buf_printf(&sql, " FROM \"%s\"", table->name);
	if (!first) {
		buf_add_text(&sql, " WHERE (");
		add_names(&sql, table, true);
		buf_add_text(&sql, ") > (");
		add_places(&sql, table->key.count);
		buf_add_text(&sql, ")");
	}
	buf_add_text(&sql, " ORDER BY ");
	add_names(&sql, table, true);
	buf_printf(&sql, " LIMIT %d", PAGE);
	return buf_take_text(&sql);
}

static struct store_value value_at(const struct store_table *table, const struct store_rows *rows,
				   size_t row, size_t column)
{
	bool number = table->columns.items[column].number;

	if (store_is_null(rows, row, column))
		return number ? store_null_int() : store_text(NULL);
	return number ? store_int(store_get_int(rows, row, column))
		      : store_text(store_get_text(rows, row, column));
}

static bool give_rows(const struct out_work *work, const struct store_table *table,
		      const struct store_rows *rows, struct error *error)
{
	struct store_value values[STORE_COPY_MAX_COLUMNS];

	for (size_t row = 0; row < rows->count; row++) {
		for (size_t i = 0; i < table->columns.count; i++)
			values[i] = value_at(table, rows, row, i);
		if (!work->to->row(work->arg, values, table->columns.count, error))
			return false;
	}
	return true;
}

static bool copy_table_out(struct store_connection *connection, const struct out_work *work,
			   const struct store_table *table, struct error *error)
{
	CLEANUP(free) char *first = page_sql(table, true);
	CLEANUP(free) char *next = page_sql(table, false);
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct store_value after[STORE_COPY_MAX_COLUMNS];

	if (!work->to->table(work->arg, table, error) ||
	    !store_query(connection, first, STORE_NO_PARAMS, &rows, error))
		return false;
	for (;;) {
		CLEANUP(store_rows) struct store_rows more = {0};

		if (!give_rows(work, table, &rows, error))
			return false;
		if (rows.count < PAGE)
			return true;
		for (size_t i = 0; i < table->key.count; i++)
			after[i] = value_at(table, &rows, rows.count - 1, table->key.items[i]);
		if (!store_query(connection, next, after, table->key.count, &more, error))
			return false;
		store_rows_deinit(&rows);
		rows = more;
		more = (struct store_rows){0};
	}
}

static bool out_body(struct store_connection *connection, void *argument, struct error *error)
{
	const struct out_work *work = argument;
	CLEANUP(tables) struct tables tables = {0};

	if (!work->to->begin(work->arg, store_now(connection), error) ||
	    !load_tables(connection, &tables, error))
		return false;
	vec_each (&tables, const struct store_table *table) {
		if (!copy_table_out(connection, work, table, error))
			return error_wrap(error, "table '%s'", table->name);
	}
	return true;
}

bool store_copy_out(struct store *store, const struct store_copy_out *to, void *arg,
		    struct error *error)
{
	struct out_work work = {to, arg};
	struct store_connection *connection;
	bool done;

	if (!store_connect(store, &connection, error))
		return false;
	done = store_run(connection, STORE_READ, out_body, &work, error);
	store_disconnect(connection);
	return done;
}

/* --- in --- */

struct in_work {
	const struct store_copy_in *from;
	void *arg;
	bool force;
};

/* Whoever holds a lease would go on with the numbers of before. */
static bool check_nobody_serves(struct store_connection *connection, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(connection, "SELECT holder FROM leases WHERE until_ms > $1",
			 STORE_PARAMS(store_int(store_now(connection).ms)), &rows, error))
		return false;
	if (rows.count == 0)
		return true;
	error_set(error, ERROR_CONFLICT, "the database is being served by '%s'",
		  store_get_text(&rows, 0, 0));
	return error_hint(error, "Stop every replica, wait five seconds, and try again.");
}

static bool check_may_replace(struct store_connection *connection, bool force, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (connection->driver->shared && !check_nobody_serves(connection, error))
		return false;
	if (force)
		return true;
	if (!store_query(connection, "SELECT count(*) FROM tenants", STORE_NO_PARAMS, &rows, error))
		return false;
	if (store_get_int(&rows, 0, 0) == 0)
		return true;
	error_set(error, ERROR_CONFLICT, "the database isn't empty: it holds %lld tenant%s",
		  (long long)store_get_int(&rows, 0, 0),
		  store_get_int(&rows, 0, 0) == 1 ? "" : "s");
	return error_hint(error, "Give --force to replace what it holds.");
}

static bool drop_tables(struct store_connection *connection, struct error *error)
{
	CLEANUP(tables) struct tables tables = {0};
	char sql[NAME_SIZE + 32];

	if (!load_tables(connection, &tables, error))
		return false;
	for (size_t i = tables.count; i > 0; i--) {
		snprintf(sql, sizeof sql, "DROP TABLE \"%s\"", tables.items[i - 1].name);
		if (!store_exec(connection, sql, STORE_NO_PARAMS, error))
			return false;
	}
	return store_exec(connection, "DROP TABLE schema_versions", STORE_NO_PARAMS, error);
}

/* Migrations put some rows into their tables; the copy has its own. */
static bool empty_tables(struct store_connection *connection, const struct tables *tables,
			 struct error *error)
{
	char sql[NAME_SIZE + 32];

	for (size_t i = tables->count; i > 0; i--) {
		snprintf(sql, sizeof sql, "DELETE FROM \"%s\"", tables->items[i - 1].name);
		if (!store_exec(connection, sql, STORE_NO_PARAMS, error))
			return false;
	}
	return true;
}

static const struct store_column *find_column(const struct store_table *table, const char *name)
{
	vec_each (&table->columns, const struct store_column *column) {
		if (str_equal(column->name, name))
			return column;
	}
	return NULL;
}

/* The table that rows follow for: checked against the schema, so that no text of the copy becomes
 * SQL that the schema doesn't know. */
struct target {
	const struct store_table *table;
	bool numbers[STORE_COPY_MAX_COLUMNS];
	size_t count;
	char sql[MAX_SQL];
};

static bool take_table(const struct tables *tables, const struct store_copy_item *item,
		       struct target *target, struct error *error)
{
	CLEANUP(buf) struct buf sql = {0};

	target->table = find_table(tables, item->table);
	if (!target->table)
		return error_set(error, ERROR_INVALID_INPUT, "there is no table '%.60s'",
				 item->table);
	target->count = item->count;
	buf_printf(&sql, "INSERT INTO \"%s\" (", target->table->name);
	for (size_t i = 0; i < item->count; i++) {
		const struct store_column *column = find_column(target->table, item->names[i]);

		if (!column)
			return error_set(error, ERROR_INVALID_INPUT,
					 "the table '%s' has no column '%.60s'",
					 target->table->name, item->names[i]);
		target->numbers[i] = column->number;
		buf_printf(&sql, "%s\"%s\"", i ? ", " : "", column->name);
	}
	buf_add_text(&sql, ") VALUES (");
	add_places(&sql, item->count);
	buf_add_text(&sql, ")");
	if (!str_copy(target->sql, sizeof target->sql, buf_text(&sql)))
		return error_set(error, ERROR_INVALID_INPUT, "the table '%s' has too many columns",
				 target->table->name);
	return true;
}

static bool take_row(struct store_connection *connection, const struct target *target,
		     struct store_copy_item *item, struct error *error)
{
	if (!target->table || item->count != target->count)
		return error_set(error, ERROR_INVALID_INPUT, "a row doesn't fit its table");
	for (size_t i = 0; i < item->count; i++) {
		enum store_kind *kind = &item->values[i].kind;
		bool null = *kind == STORE_NULL_INT || *kind == STORE_NULL_TEXT;

		if (null)
			*kind = target->numbers[i] ? STORE_NULL_INT : STORE_NULL_TEXT;
		else if ((*kind == STORE_INT) != target->numbers[i])
			return error_set(error, ERROR_INVALID_INPUT,
					 "a value in '%s' is of the wrong kind",
					 target->table->name);
	}
	return store_exec(connection, target->sql, item->values, item->count, error) ||
	       error_wrap(error, "a row of '%s'", target->table->name);
}

static bool fill(struct store_connection *connection, const struct in_work *work,
		 struct error *error)
{
	CLEANUP(tables) struct tables tables = {0};
	struct target target = {0};
	struct store_copy_item item;

	if (!load_tables(connection, &tables, error) || !empty_tables(connection, &tables, error) ||
	    !work->from->rewind(work->arg, error))
		return false;
	for (;;) {
		if (!work->from->next(work->arg, &item, error))
			return false;
		switch (item.kind) {
		case STORE_COPY_TABLE:
			if (!take_table(&tables, &item, &target, error))
				return false;
			break;
		case STORE_COPY_ROW:
			if (!take_row(connection, &target, &item, error))
				return false;
			break;
		case STORE_COPY_END:
			return true;
		}
	}
}

/* More events than can have happened since a backup was taken. */
#define EVENTS_LEAP 1000000000

/* What was true of the processes of before isn't of those to come; and whoever heard of events that the
 * backup hasn't goes on behind them: their numbers aren't given again. */
static bool begin_anew(struct store_connection *connection, struct error *error)
{
	char lineage[ID_SIZE];

	random_id(lineage, "lin", store_now(connection));
	return store_exec(connection,
			  "INSERT INTO meta (name, value) VALUES ('lineage', $1) "
			  "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
			  STORE_PARAMS(store_text(lineage)), error) &&
	       store_exec(connection,
			  "UPDATE counters SET value = value + $1 WHERE name = 'events'",
			  STORE_PARAMS(store_int(EVENTS_LEAP)), error) &&
	       store_exec(connection, "UPDATE node_streams SET connected = 0", STORE_NO_PARAMS,
			  error) &&
	       store_exec(connection, "UPDATE leases SET until_ms = 0", STORE_NO_PARAMS, error);
}

static bool in_body(struct store_connection *connection, void *argument, struct error *error)
{
	const struct in_work *work = argument;
	int version;

	if (!store_schema_read(connection, &version, error))
		return false;
	if (version > 0 &&
	    (!check_may_replace(connection, work->force, error) || !drop_tables(connection, error)))
		return false;
	return store_schema_raise(connection, 0, work->from->schema_version, error) &&
	       fill(connection, work, error) &&
	       store_schema_raise(connection, work->from->schema_version, STORE_MIGRATIONS,
				  error) &&
	       begin_anew(connection, error);
}

bool store_copy_in(const char *url, const struct store_copy_in *from, void *arg, bool force,
		   struct error *error)
{
	struct in_work work = {from, arg, force};
	struct store_connection *connection = NULL;
	struct store *store;
	bool done;

	assert(from->schema_version >= 1);
	assert(from->schema_version <= STORE_MIGRATIONS);
	if (!store_create(url, false, &store, error))
		return false;
	done = store_connect(store, &connection, error) &&
	       store->driver->lock_schema(connection, error) &&
	       store_run(connection, STORE_WRITE, in_body, &work, error);
	store_disconnect(connection);
	store_destroy(store);
	return done;
}
