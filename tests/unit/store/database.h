/*
 * database: a fresh database for a test, on the driver that the binary was asked for, and the
 * test's own time on both: SQLite reads sys/clock, which this replaces at link time; in PostgreSQL
 * a function of the test's database stands before the server's clock_timestamp().
 */
#pragma once

#include "lib/test.h"
#include "store/store.h"

/* Set by database_main() from argv[1]: "sqlite" or "postgresql". */
bool database_is_postgres(void);

/* Exit status for main(): runs the group, or 77 (skipped) when BC_TEST_POSTGRES is not set. */
int database_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count);

/* A cmocka setup and teardown: makes and drops the database. */
int database_setup(void **state);
int database_teardown(void **state);

/* Of the database that setup made. Any number of stores may be opened on it, on SQLite one. */
const char *database_url(void);

/* The time that transactions see; frozen until it is set again. Starts at DATABASE_EPOCH_MS. */
#define DATABASE_EPOCH_MS ((int64_t)1800000000000)
void database_set_time(int64_t ms);
void database_advance(int64_t ms);
int64_t database_time(void);
