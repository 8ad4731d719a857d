#include "store/postgres.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define LOOK_MS 250 /* how often one who waits looks whether it is hurried */

/* From PostgreSQL's catalog (pg_type.dat); they never change. */
#define OID_INT8 20
#define OID_INT2 21
#define OID_INT4 23
#define OID_TEXT 25

#define MAX_PARAMS 64

/* So many statements are sent before their results are asked for; these are short, so the server never
 * has to stop for want of room to answer. */
#define MAX_SENT 64

/* --- failures --- */

bool postgres_is_lost(const struct postgres_connection *connection)
{
	return connection->lost || PQstatus(connection->handle) != CONNECTION_OK;
}

/* libpq's messages end in a newline and may have several lines. */
bool postgres_message(struct error *error, enum error_code code, const char *doing,
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

/* "while updating tuple (0,1) in relation "meta"", in the server's language; NULL: it says nothing of where. */
static void note_wait(struct store_connection *base, const char *context)
{
	base->loss = STORE_LOSS_LOCK;
	if (!context || !str_copy(base->waited_for, sizeof base->waited_for, context))
		base->waited_for[0] = '\0';
}

/* SQLSTATE classes: 40 rollback (40001, 40P01 are races), 55P03 a lock that wasn't to be had in time, 23 constraints, 53 its disk or memory is
 * full, 57 the server goes away, 08 connection. */
bool postgres_failure(struct postgres_connection *connection, const PGresult *result,
		      const char *doing, struct error *error)
{
	const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	const char *message = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	/* A failure without a state is libpq's own: the server was lost, whatever the status says. */
	if (!state)
		connection->lost = true;
	if (postgres_is_lost(connection)) {
		connection->base.loss = STORE_LOSS_RACE;
		if (connection->given_up)
			return error_set(error, ERROR_UNAVAILABLE,
					 "%s: the database server said nothing for %d s", doing,
					 (connection->silent_ms + 999) / 1000);
		return postgres_message(error, ERROR_UNAVAILABLE, doing,
					PQerrorMessage(connection->handle));
	}
	if (!message)
		message = PQerrorMessage(connection->handle);
	if (is_state(state, "55P03")) {
		note_wait(&connection->base, PQresultErrorField(result, PG_DIAG_CONTEXT));
		return postgres_message(error, ERROR_UNAVAILABLE, doing, message);
	}
	if (is_state(state, "40")) {
		connection->base.loss = STORE_LOSS_RACE;
		return postgres_message(error, ERROR_UNAVAILABLE, doing, message);
	}
	if (is_state(state, "23")) {
		connection->base.loss = STORE_LOSS_CONSTRAINT;
		return postgres_message(error, ERROR_CONFLICT, doing, message);
	}
	if (is_state(state, "53") || is_state(state, "57"))
		return postgres_message(error, ERROR_UNAVAILABLE, doing, message);
	return postgres_message(error, ERROR_INTERNAL, doing, message);
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

PGresult *postgres_query(struct postgres_connection *connection, const char *sql)
{
	return await(connection, PQsendQuery(connection->handle, sql));
}

void postgres_forget_statements(struct postgres_connection *connection)
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

bool postgres_succeeded(const PGresult *result)
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
		failed = !postgres_succeeded(result);
		PQclear(kept);
		kept = result;
	}
	PQclear(await(connection, sent)); /* of the pipeline itself */
	if (!PQexitPipelineMode(connection->handle))
		connection->lost = true;
	return kept;
}

bool postgres_settle(struct store_connection *base, struct error *error)
{
	struct postgres_connection *connection = postgres_of(base);

	if (connection->sent == 0)
		return true;
	CLEANUP(pg_result) PGresult *result = receive(connection, true);

	return postgres_succeeded(result) ||
	       postgres_failure(connection, result, "run a statement", error);
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
			return postgres_failure(connection, result, "prepare", error);
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

bool postgres_run(struct store_connection *base, const char *sql, const struct store_value *params,
		  size_t count, struct store_rows *rows, struct error *error)
{
	struct postgres_connection *connection = postgres_of(base);
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

	if (!postgres_succeeded(result))
		return postgres_failure(connection, result, "run a statement", error);
	return !rows || PQresultStatus(result) != PGRES_TUPLES_OK || add_rows(result, rows, error);
}
