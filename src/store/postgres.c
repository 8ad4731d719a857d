#include "store/driver.h"

#include <libpq-fe.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

/* A worker must not hang on a statement: the server breaks off one that takes longer than 60 s, and
 * a server that doesn't even do that is given up. It doesn't notice that nobody waits for a lock any
 * more: such a wait ends before the next caller's begins, or they would fill its places. */
#define SILENCE_MS 75000
#define LOOK_MS    250 /* how often one who waits looks whether it is hurried */
#define SESSION_SETTINGS                                                                           \
	"SET client_min_messages = warning; SET statement_timeout = '60s'; "                       \
	"SET lock_timeout = '9s'; "                                                                \
	"SET idle_in_transaction_session_timeout = '120s'; SET client_encoding = 'UTF8'"

/* Any number that other programs on the same database are unlikely to use. */
#define SCHEMA_LOCK "7093482204071930"

/* From PostgreSQL's catalog (pg_type.dat); they never change. */
#define OID_INT8 20
#define OID_INT2 21
#define OID_INT4 23
#define OID_TEXT 25

#define MAX_PARAMS 64

/* So many statements are sent before their results are asked for; these are short, so the server never
 * has to stop for want of room to answer. */
#define MAX_SENT 64

struct postgres_statement {
	uint64_t hash;
	char *sql;
	char name[24];
};

struct postgres_connection {
	struct store_connection base; /* first */
	PGconn *handle;
	bool lost;     /* to be connected again, also when libpq doesn't know it yet */
	bool given_up; /* by us: it was silent */
	int silent_ms; /* for so long */
	bool patient;  /* migrates: a statement takes as long as it takes */
	int sent;      /* statements whose results nobody has asked for yet, in libpq's pipeline */
	VEC(struct postgres_statement) statements;
};

static struct postgres_connection *of(struct store_connection *connection)
{
	return (struct postgres_connection *)connection;
}

DEFINE_CLEANUP(pg_result, PGresult *, PQclear)

/* --- failures --- */

static void ignore_notice(void *argument, const PGresult *result)
{
	(void)argument;
	(void)result;
}

static bool is_lost(const struct postgres_connection *connection)
{
	return connection->lost || PQstatus(connection->handle) != CONNECTION_OK;
}

/* libpq's messages end in a newline and may have several lines. */
static bool set_message(struct error *error, enum error_code code, const char *doing,
			const char *message)
{
	int length = (int)strcspn(message, "\n");

	return error_set(error, code, "%s: %.*s", doing, length, message);
}

static bool is_state(const char *state, const char *class)
{
	return state && str_starts(state, class);
}

/* How long a server may say nothing. */
static int silence_of(const struct postgres_connection *connection)
{
	const struct store *store = connection->base.store;

	if (connection->patient)
		return INT_MAX;
	return store->hurried && store->silence_ms > STORE_HURRIED_MS ? STORE_HURRIED_MS
								      : store->silence_ms;
}

/* SQLSTATE classes: 40 rollback (40001, 40P01 are races), 55P03 a lock that others keep, 23 constraints, 53 its disk or memory is
 * full, 57 the server goes away, 08 connection. */
static bool failure(struct postgres_connection *connection, const PGresult *result,
		    const char *doing, struct error *error)
{
	const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	const char *message = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	/* A failure without a state is libpq's own: the server was lost, whatever the status says. */
	if (!state)
		connection->lost = true;
	if (is_lost(connection)) {
		connection->base.loss = STORE_LOSS_RACE;
		if (connection->given_up)
			return error_set(error, ERROR_UNAVAILABLE,
					 "%s: the database server said nothing for %d s", doing,
					 (connection->silent_ms + 999) / 1000);
		return set_message(error, ERROR_UNAVAILABLE, doing,
				   PQerrorMessage(connection->handle));
	}
	if (!message)
		message = PQerrorMessage(connection->handle);
	if (is_state(state, "40") || is_state(state, "55P03")) {
		connection->base.loss = STORE_LOSS_RACE;
		return set_message(error, ERROR_UNAVAILABLE, doing, message);
	}
	if (is_state(state, "23")) {
		connection->base.loss = STORE_LOSS_CONSTRAINT;
		return set_message(error, ERROR_CONFLICT, doing, message);
	}
	if (is_state(state, "53") || is_state(state, "57"))
		return set_message(error, ERROR_UNAVAILABLE, doing, message);
	return set_message(error, ERROR_INTERNAL, doing, message);
}

/* --- statements --- */

/* Waits for the server to say something. Of one that is given up libpq then reads the end of the
 * connection, and cleans up. */
static void hear(struct postgres_connection *connection)
{
	struct pollfd server = {.fd = PQsocket(connection->handle), .events = POLLIN};

	for (int waited_ms = 0; poll(&server, 1, LOOK_MS) == 0;) {
		if (waited_ms < INT_MAX - LOOK_MS)
			waited_ms += LOOK_MS;
		if (waited_ms >= silence_of(connection) || store_is_late(&connection->base)) {
			connection->given_up = true;
			connection->silent_ms = waited_ms;
			shutdown(server.fd, SHUT_RDWR);
			return;
		}
	}
}

/* The last result of what was sent; NULL when it couldn't be sent. */
static PGresult *await(struct postgres_connection *connection, int sent)
{
	PGconn *handle = connection->handle;
	PGresult *last = NULL, *next;

	if (!sent)
		return NULL;
	for (;;) {
		while (PQisBusy(handle)) {
			hear(connection);
			if (!PQconsumeInput(handle))
				break;
		}
		next = PQgetResult(handle);
		if (!next)
			return last;
		PQclear(last);
		last = next;
	}
}

static PGresult *query(struct postgres_connection *connection, const char *sql)
{
	return await(connection, PQsendQuery(connection->handle, sql));
}

static void forget_statements(struct postgres_connection *connection)
{
	vec_each (&connection->statements, struct postgres_statement * statement)
		free(statement->sql);
	vec_clear(&connection->statements);
}

/*
 * Most statements that write say nothing that is needed in between. They are sent along with the next
 * one that does, or before the transaction ends: one round trip for all. The first that fails ends the
 * transaction, and the server skips the others.
 */
static bool postgres_send(struct postgres_connection *connection, const char *name, size_t count,
			  const char *const *values)
{
	connection->sent++;
	return (PQpipelineStatus(connection->handle) == PQ_PIPELINE_ON ||
		PQenterPipelineMode(connection->handle)) &&
	       PQsendQueryPrepared(connection->handle, name, (int)count, values, NULL, NULL, 0);
}

static bool succeeded(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* The results of all that was sent: the last, or the first that failed. */
static PGresult *receive(struct postgres_connection *connection, int sent)
{
	PGresult *kept = NULL;
	bool failed = false;

	sent = sent && PQpipelineSync(connection->handle);
	for (; connection->sent > 0; connection->sent--) {
		PGresult *result = await(connection, sent);

		if (failed) {
			PQclear(result);
			continue;
		}
		failed = !succeeded(result);
		PQclear(kept);
		kept = result;
	}
	PQclear(await(connection, sent)); /* of the pipeline itself */
	if (!PQexitPipelineMode(connection->handle))
		connection->lost = true;
	return kept;
}

static bool postgres_settle(struct store_connection *base, struct error *error)
{
	struct postgres_connection *connection = of(base);

	if (connection->sent == 0)
		return true;
	CLEANUP(pg_result) PGresult *result = receive(connection, true);

	return succeeded(result) || failure(connection, result, "run a statement", error);
}

static bool prepare(struct postgres_connection *connection, const char *sql,
		    const struct store_value *params, size_t count, const char **ret_name,
		    struct error *error)
{
	uint64_t hash = store_sql_hash(sql);
	struct postgres_statement *statement;
	Oid types[MAX_PARAMS];

	for (size_t i = 0; i < connection->statements.count; i++) {
		statement = &connection->statements.items[i];
		if (statement->hash == hash && str_equal(statement->sql, sql)) {
			*ret_name = statement->name;
			return true;
		}
	}
	for (size_t i = 0; i < count; i++) {
		bool number = params[i].kind == STORE_INT || params[i].kind == STORE_NULL_INT;

		types[i] = number ? OID_INT8 : OID_TEXT;
	}
	if (!postgres_settle(&connection->base, error))
		return false;
	statement = vec_push(&connection->statements);
	statement->hash = hash;
	statement->sql = mem_strdup(sql);
	snprintf(statement->name, sizeof statement->name, "s%zu", connection->statements.count);
	{
		CLEANUP(pg_result)
		PGresult *result =
			await(connection, PQsendPrepare(connection->handle, statement->name, sql,
							(int)count, types));

		if (PQresultStatus(result) != PGRES_COMMAND_OK) {
			free(statement->sql);
			connection->statements.count--;
			return failure(connection, result, "prepare", error);
		}
	}
	*ret_name = statement->name;
	return true;
}

static bool add_cell(const PGresult *result, int row, int column, struct store_rows *rows,
		     struct error *error)
{
	const char *text = PQgetvalue(result, row, column);
	Oid type = PQftype(result, column);

	if (PQgetisnull(result, row, column)) {
		store_rows_add_null(rows);
		return true;
	}
	if (type == OID_INT8 || type == OID_INT4 || type == OID_INT2) {
		store_rows_add_int(rows, strtoll(text, NULL, 10));
		return true;
	}
	return store_rows_add_text(rows, text, (size_t)PQgetlength(result, row, column), error);
}

static bool add_rows(const PGresult *result, struct store_rows *rows, struct error *error)
{
	int columns = PQnfields(result);

	for (int row = 0; row < PQntuples(result); row++) {
		if (!store_rows_start(rows, (size_t)columns, error))
			return false;
		for (int column = 0; column < columns; column++) {
			if (!add_cell(result, row, column, rows, error))
				return false;
		}
	}
	return true;
}

static bool postgres_run(struct store_connection *base, const char *sql,
			 const struct store_value *params, size_t count, struct store_rows *rows,
			 struct error *error)
{
	struct postgres_connection *connection = of(base);
	char numbers[MAX_PARAMS][24];
	const char *values[MAX_PARAMS];
	const char *name;
	bool sent;

	assert(count <= MAX_PARAMS);
	if (!prepare(connection, sql, params, count, &name, error))
		return false;
	for (size_t i = 0; i < count; i++) {
		values[i] = params[i].text;
		if (params[i].kind == STORE_INT) {
			snprintf(numbers[i], sizeof numbers[i], "%lld",
				 (long long)params[i].number);
			values[i] = numbers[i];
		}
	}
	sent = postgres_send(connection, name, count, values);
	if (sent && !rows && connection->sent < MAX_SENT)
		return true;
	CLEANUP(pg_result) PGresult *result = receive(connection, sent);

	if (!succeeded(result))
		return failure(connection, result, "run a statement", error);
	return !rows || PQresultStatus(result) != PGRES_TUPLES_OK || add_rows(result, rows, error);
}

/* --- transactions --- */

static bool run_plain(struct postgres_connection *connection, const char *sql, const char *doing,
		      struct error *error)
{
	CLEANUP(pg_result) PGresult *result = query(connection, sql);

	return succeeded(result) || failure(connection, result, doing, error);
}

/* A server that was restarted is met again here, with nothing prepared any more. */
static bool revive(struct postgres_connection *connection, struct error *error)
{
	if (!is_lost(connection))
		return true;
	if (connection->base.store->hurried)
		return error_set(error, ERROR_UNAVAILABLE,
				 "the database was lost, and the control plane is stopping");
	forget_statements(connection);
	connection->given_up = connection->patient = false;
	PQreset(connection->handle);
	connection->lost = false;
	if (PQstatus(connection->handle) != CONNECTION_OK)
		return set_message(error, ERROR_UNAVAILABLE, "connect to the database",
				   PQerrorMessage(connection->handle));
	connection->lost = !run_plain(connection, SESSION_SETTINGS, "set up the session", error);
	return !connection->lost;
}

/*
 * Nearly every writer takes a number from `counters`, so of two at a time one would lose its race
 * and do all its work again; with several replicas, again and again. They wait for each other
 * instead, before their snapshots are taken, which LOCK TABLE alone allows. Readers don't wait. The
 * time is read after that: the transaction's own is from before the wait, and who waited longer would
 * write an older one over a newer.
 */
#define READ_TIME   "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
#define BEGIN_WRITE "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE;"

static const char *begin_sql(const struct store_connection *base, enum store_mode mode)
{
	switch (mode) {
	case STORE_READ:
		return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;" READ_TIME;
	case STORE_WRITE:
		if (base->store->schema_version == 0) /* there is no table yet */
			return BEGIN_WRITE READ_TIME;
		return BEGIN_WRITE "LOCK TABLE counters IN EXCLUSIVE MODE;" READ_TIME;
	}
	abort();
}

static void postgres_rollback(struct store_connection *base)
{
	struct postgres_connection *connection = of(base);

	if (!is_lost(connection) && PQtransactionStatus(connection->handle) != PQTRANS_IDLE)
		PQclear(query(connection, "ROLLBACK"));
}

static bool postgres_begin(struct store_connection *base, enum store_mode mode,
			   struct wall *ret_now, struct error *error)
{
	struct postgres_connection *connection = of(base);

	if (!revive(connection, error))
		return false;
	CLEANUP(pg_result) PGresult *result = query(connection, begin_sql(base, mode));

	if (PQresultStatus(result) != PGRES_TUPLES_OK) {
		(void)failure(connection, result, "begin", error);
		postgres_rollback(base); /* it may have begun */
		return false;
	}
	ret_now->ms = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	return true;
}

static bool postgres_commit(struct store_connection *base, struct error *error)
{
	struct postgres_connection *connection = of(base);

	if (run_plain(connection, "COMMIT", "commit", error))
		return true;
	/* Broken off in the middle of it, nobody knows: running it again might do it twice. */
	if (is_lost(connection)) {
		base->loss = STORE_LOSS_NONE;
		error_hint(error, "Look whether it happened before you try again.");
	}
	return false;
}

/* Another process may be at it, and a large database takes its time. */
static bool postgres_lock_schema(struct store_connection *base, struct error *error)
{
	of(base)->patient = true;
	return run_plain(of(base),
			 "SET statement_timeout = 0; SET lock_timeout = 0; "
			 "SELECT pg_advisory_lock(" SCHEMA_LOCK ")",
			 "lock the schema", error);
}

/* --- connections --- */

static void postgres_disconnect(struct store_connection *base)
{
	struct postgres_connection *connection = of(base);

	forget_statements(connection);
	vec_deinit(&connection->statements);
	PQfinish(connection->handle);
	free(connection);
}

/*
 * A host that vanished is noticed: while connecting after 10 s, later after 25 s in which it
 * acknowledged nothing, waiting or sending. A conninfo comes last here, so what it sets wins.
 */
static PGconn *connect_to(const char *conninfo)
{
	const char *const names[] = {
		"connect_timeout",
		"keepalives_idle",
		"keepalives_interval",
		"keepalives_count",
		"tcp_user_timeout",
		"dbname",
		NULL,
	};
	const char *const values[] = {"10", "10", "5", "3", "25000", conninfo, NULL};

	return PQconnectdbParams(names, values, true);
}

static bool postgres_connect(struct store *store, struct store_connection **ret_connection,
			     struct error *error)
{
	struct postgres_connection *connection = mem_alloc(sizeof *connection);

	connection->base.store = store;
	connection->handle = connect_to(store->url);
	if (PQstatus(connection->handle) != CONNECTION_OK) {
		set_message(error, ERROR_UNAVAILABLE, "connect to the database",
			    PQerrorMessage(connection->handle));
		postgres_disconnect(&connection->base);
		return false;
	}
	PQsetNoticeReceiver(connection->handle, ignore_notice, NULL);
	if (!run_plain(connection, SESSION_SETTINGS, "set up the session", error)) {
		postgres_disconnect(&connection->base);
		return false;
	}
	*ret_connection = &connection->base;
	return true;
}

/* Nothing belongs to the store as a whole: any number of processes may use the database. */
static bool postgres_open(struct store *store, bool reading, struct error *error)
{
	(void)reading;
	(void)error;
	store->silence_ms = SILENCE_MS;
	return true;
}

static void postgres_close(struct store *store)
{
	(void)store;
}

const struct store_driver store_postgres = {
	.name = "postgresql",
	.shared = true,
	.migrations = store_postgres_migrations,
	.migrations_count = STORE_MIGRATIONS,
	.has_schema = "SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'schema_versions' "
		      "AND relnamespace = current_schema()::regnamespace",
	.list_columns =
		"SELECT t.relname::text, c.attname::text, "
		"(c.atttypid = 'bigint'::regtype)::int, "
		"coalesce(array_position(k.conkey, c.attnum), 0) FROM pg_catalog.pg_class t "
		"JOIN pg_catalog.pg_attribute c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT "
		"c.attisdropped LEFT JOIN pg_catalog.pg_constraint k ON k.conrelid = t.oid AND "
		"k.contype = 'p' WHERE t.relkind = 'r' AND t.relnamespace = "
		"current_schema()::regnamespace ORDER BY t.relname, c.attnum",
	.list_references =
		"SELECT t.relname::text, r.relname::text FROM pg_catalog.pg_constraint k "
		"JOIN pg_catalog.pg_class t ON t.oid = k.conrelid "
		"JOIN pg_catalog.pg_class r ON r.oid = k.confrelid "
		"WHERE k.contype = 'f' AND t.relnamespace = "
		"current_schema()::regnamespace",
	.open = postgres_open,
	.close = postgres_close,
	.connect = postgres_connect,
	.disconnect = postgres_disconnect,
	.begin = postgres_begin,
	.commit = postgres_commit,
	.rollback = postgres_rollback,
	.lock_schema = postgres_lock_schema,
	.run = postgres_run,
	.settle = postgres_settle,
};
