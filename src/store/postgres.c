#include "store/postgres.h"

#include <stdio.h>

/* A worker must not hang on a statement: the server breaks off one that takes longer than 60 s, and
 * a server that doesn't even do that is given up. It doesn't notice that nobody waits for a lock any
 * more: such a wait ends before the next caller's begins, or they would fill its places. */
#define SILENCE_MS 75000
#define LOCK_MS    9000
#define SESSION_SETTINGS                                                                           \
	"SET client_min_messages = warning; SET statement_timeout = '60s'; "                       \
	"SET idle_in_transaction_session_timeout = '120s'; SET client_encoding = 'UTF8'"

/* Any number that other programs on the same database are unlikely to use. */
#define SCHEMA_LOCK "7093482204071930"

/* --- transactions --- */

static bool run_plain(struct postgres_connection *connection, const char *sql, const char *doing,
		      struct error *error)
{
	CLEANUP(pg_result) PGresult *result = postgres_query(connection, sql);

	return postgres_succeeded(result) || postgres_failure(connection, result, doing, error);
}

static bool set_up(struct postgres_connection *connection, struct error *error)
{
	char sql[sizeof SESSION_SETTINGS + 64];

	snprintf(sql, sizeof sql, SESSION_SETTINGS "; SET lock_timeout = %d",
		 connection->base.store->lock_ms);
	return run_plain(connection, sql, "set up the session", error);
}

/* A server that was restarted is met again here, with nothing prepared any more. */
static bool revive(struct postgres_connection *connection, struct error *error)
{
	if (!postgres_is_lost(connection))
		return true;
	if (connection->base.store->hurried)
		return error_set(error, ERROR_UNAVAILABLE,
				 "the database was lost, and the control plane is stopping");
	postgres_forget_statements(connection);
	connection->given_up = connection->patient = false;
	PQreset(connection->handle);
	connection->lost = false;
	if (PQstatus(connection->handle) != CONNECTION_OK)
		return postgres_message(error, ERROR_UNAVAILABLE, "connect to the database",
					PQerrorMessage(connection->handle));
	connection->lost = !set_up(connection, error);
	return !connection->lost;
}

/*
 * Nearly every writer takes a number from `counters`, so of two at a time one would lose its race
 * and do all its work again; with several replicas, again and again. They wait for each other
 * instead, before their snapshots are taken, which LOCK TABLE alone allows. Readers don't wait. The
 * time is read after that: the transaction's own is from before the wait, and who waited longer would
 * write an older one over a newer.
 */
#define READ_TIME    "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
#define BEGIN_SIZE   320
#define WRITERS_LOCK "counters"

static void write_begin(const struct store_connection *base, enum store_mode mode,
			char sql[BEGIN_SIZE])
{
	char patience[64] = "";

	/* Setting it takes no snapshot either. */
	if (base->lock_ms < base->store->lock_ms)
		snprintf(patience, sizeof patience, "SET LOCAL lock_timeout = %d;", base->lock_ms);
	switch (mode) {
	case STORE_READ:
		snprintf(sql, BEGIN_SIZE, "%s%s" READ_TIME,
			 "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;", patience);
		return;
	case STORE_WRITE:
		snprintf(sql, BEGIN_SIZE, "%s%s%s" READ_TIME,
			 "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE;", patience,
			 base->store->schema_version == 0 /* there is no table yet */
				 ? ""
				 : "LOCK TABLE " WRITERS_LOCK " IN EXCLUSIVE MODE;");
		return;
	}
	abort();
}

static void postgres_rollback(struct store_connection *base)
{
	struct postgres_connection *connection = postgres_of(base);

	if (!postgres_is_lost(connection) &&
	    PQtransactionStatus(connection->handle) != PQTRANS_IDLE)
		PQclear(postgres_query(connection, "ROLLBACK"));
}

static bool postgres_begin(struct store_connection *base, enum store_mode mode,
			   struct wall *ret_now, struct error *error)
{
	struct postgres_connection *connection = postgres_of(base);

	char sql[BEGIN_SIZE];

	if (!revive(connection, error))
		return false;
	write_begin(base, mode, sql);
	CLEANUP(pg_result) PGresult *result = postgres_query(connection, sql);

	if (PQresultStatus(result) != PGRES_TUPLES_OK) {
		(void)postgres_failure(connection, result, "begin", error);
		if (base->loss == STORE_LOSS_LOCK)
			str_copy(base->waited_for, sizeof base->waited_for, WRITERS_LOCK);
		postgres_rollback(base); /* it may have begun */
		return false;
	}
	ret_now->ms = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	return true;
}

static bool postgres_commit(struct store_connection *base, struct error *error)
{
	struct postgres_connection *connection = postgres_of(base);

	if (run_plain(connection, "COMMIT", "commit", error))
		return true;
	/* Broken off in the middle of it, nobody knows: running it again might do it twice. */
	if (postgres_is_lost(connection)) {
		base->loss = STORE_LOSS_NONE;
		error_hint(error, "Look whether it happened before you try again.");
	}
	return false;
}

/* Another process may be at it, and a large database takes its time. */
static bool postgres_lock_schema(struct store_connection *base, struct error *error)
{
	postgres_of(base)->patient = true;
	return run_plain(postgres_of(base),
			 "SET statement_timeout = 0; SET lock_timeout = 0; "
			 "SELECT pg_advisory_lock(" SCHEMA_LOCK ")",
			 "lock the schema", error);
}

/* --- connections --- */

static void ignore_notice(void *argument, const PGresult *result)
{
	(void)argument;
	(void)result;
}

static void postgres_disconnect(struct store_connection *base)
{
	struct postgres_connection *connection = postgres_of(base);

	postgres_forget_statements(connection);
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
		"application_name",
		"dbname",
		NULL,
	};
	const char *const values[] = {"10",     "10", "5", "3", "25000", "better-compute",
				      conninfo, NULL};

	return PQconnectdbParams(names, values, true);
}

static bool postgres_connect(struct store *store, struct store_connection **ret_connection,
			     struct error *error)
{
	struct postgres_connection *connection = mem_alloc(sizeof *connection);

	connection->base.store = store;
	connection->handle = connect_to(store->url);
	if (PQstatus(connection->handle) != CONNECTION_OK) {
		postgres_message(error, ERROR_UNAVAILABLE, "connect to the database",
				 PQerrorMessage(connection->handle));
		postgres_disconnect(&connection->base);
		return false;
	}
	PQsetNoticeReceiver(connection->handle, ignore_notice, NULL);
	if (!set_up(connection, error)) {
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
	store->lock_ms = LOCK_MS;
	return true;
}

static void postgres_close(struct store *store)
{
	(void)store;
}

/*
 * Who waits in vain isn't in the queue any more when it hears of it, so pg_blocking_pids() is too late. Whoever of
 * others has a lock there that stands against what was wanted: EXCLUSIVE on `counters`, in which every mode but a
 * reader's is in the way; else a row, which is kept by who writes to its table, and no VACUUM nor ANALYZE is; a
 * reader is kept out by ACCESS EXCLUSIVE alone. Autovacuum, which has no user, gives way by itself. A session says less of
 * itself to whoever isn't its own user.
 */
#define WHO_LOCKS                                                                                  \
	"SELECT format('%s (%s, %s) keeps it, for %s s', "                                         \
	"coalesce('session ' || l.pid, 'a prepared transaction'), "                                \
	"coalesce(nullif(a.application_name, ''), 'without a name'), "                             \
	"coalesce(a.state, 'state unknown'), "                                                     \
	"coalesce(extract(epoch FROM clock_timestamp() - a.xact_start)::bigint::text, '?')) "      \
	"FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class t ON t.oid = l.relation "             \
	"LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid "                                \
	"WHERE l.granted AND t.relkind = 'r' "                                                     \
	"AND ($1 = '' OR position(t.relname::text in $1) > 0) "                                    \
	"AND (l.mode = 'AccessExclusiveLock' OR ($2 = 1 AND l.mode <> 'AccessShareLock' "          \
	"AND (l.mode <> 'ShareUpdateExclusiveLock' OR $1 = '" WRITERS_LOCK "'))) "                 \
	"AND t.relnamespace = current_schema()::regnamespace AND l.database = "                    \
	"(SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) "             \
	"AND (l.pid IS NULL OR a.usesysid IS NOT NULL) "                                           \
	"AND a.application_name IS DISTINCT FROM current_setting('application_name') "             \
	"ORDER BY a.xact_start LIMIT 1"

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
	.who_locks = WHO_LOCKS,
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
