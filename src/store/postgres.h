/*
 * postgres: what the parts of the PostgreSQL driver share. Private to this room.
 *
 *   postgres_link.c  a connection's statements, waiting for what the server says, and what its failures mean
 *   postgres.c       the driver: transactions, connections
 */
#pragma once

#include "store/driver.h"

#include <libpq-fe.h>

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

static inline struct postgres_connection *postgres_of(struct store_connection *connection)
{
	return (struct postgres_connection *)connection;
}

DEFINE_CLEANUP(pg_result, PGresult *, PQclear)

bool postgres_is_lost(const struct postgres_connection *connection);

/* Fills the error with the first line of what libpq or the server says. Returns false. */
bool postgres_message(struct error *error, enum error_code code, const char *doing,
		      const char *message);
/* What `result` (NULL: none came) failed of, and whether that is a loss. Returns false. */
bool postgres_failure(struct postgres_connection *connection, const PGresult *result,
		      const char *doing, struct error *error);
bool postgres_succeeded(const PGresult *result);

/* Sends a text of one statement or several; the last result, or NULL. */
PGresult *postgres_query(struct postgres_connection *connection, const char *sql);
void postgres_forget_statements(struct postgres_connection *connection);

/* driver.h's `run` and `settle`. */
MUST_CHECK bool postgres_run(struct store_connection *base, const char *sql,
			     const struct store_value *params, size_t count,
			     struct store_rows *rows, struct error *error);
MUST_CHECK bool postgres_settle(struct store_connection *base, struct error *error);
