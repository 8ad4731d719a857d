/*
 * copy: everything in a database out as rows, and into another one, whichever driver each has.
 *
 * Owns      which tables are ours and in which order they can be filled, and that a copy is whole:
 *           out of one snapshot, in by one transaction.
 * Threads   one; blocks for as long as it takes.
 */
#pragma once

#include "base/vec.h"
#include "store/store.h"

struct store_column {
	char *name;
	bool number; /* else a text; either may be NULL */
};

struct store_table {
	char *name;
	struct store_columns VEC_BODY(struct store_column) columns;
	VEC(size_t) key; /* the primary key's columns */
};

/* Called in order: begin (again after a try that was lost: forget what came before), then each
 * table, then its rows in the key's order. */
struct store_copy_out {
	bool (*begin)(void *arg, struct wall now, struct error *error);
	bool (*table)(void *arg, const struct store_table *table, struct error *error);
	bool (*row)(void *arg, const struct store_value *values, size_t count, struct error *error);
};
MUST_CHECK bool store_copy_out(struct store *store, const struct store_copy_out *to, void *arg,
			       struct error *error);

/* What comes next of a copy. */
enum store_copy_kind {
	STORE_COPY_TABLE, /* `table` and `names`; its rows follow */
	STORE_COPY_ROW,   /* `values` */
	STORE_COPY_END,
};

#define STORE_COPY_MAX_COLUMNS 64

/* Borrowed until the next one is asked for. */
struct store_copy_item {
	enum store_copy_kind kind;
	const char *table;
	const char *names[STORE_COPY_MAX_COLUMNS];
	struct store_value values[STORE_COPY_MAX_COLUMNS];
	size_t count;
};

struct store_copy_in {
	int schema_version; /* whose rows they are: 1 to STORE_MIGRATIONS */
	bool (*rewind)(void *arg, struct error *error);
	bool (*next)(void *arg, struct store_copy_item *ret_item, struct error *error);
};

/*
 * Makes the database that `url` names hold exactly the copy, brought up to this program's schema,
 * under a new lineage, with no stream open and no lease held. All of it happens or nothing.
 *
 * CONFLICT when it holds something and `force` is false, and, forced or not, when somebody serves
 * it: a SQLite file by its lock, a PostgreSQL database by a lease that runs. Tables and columns
 * that its schema doesn't have are INVALID_INPUT.
 */
MUST_CHECK bool store_copy_in(const char *url, const struct store_copy_in *from, void *arg,
			      bool force, struct error *error);
