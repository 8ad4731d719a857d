/*
 * SQLite as the store sees it, put before the real one by the linker: in a job of the control plane's a step may fail
 * (sim_faults.h). What it had begun is undone by the store then, by a rollback, which never fails.
 */
#include "sim/sim_faults.h"
#include "sim/sim_fiber.h"

#include <errno.h>
#include <sqlite3.h>
#include <time.h>

static int failed; /* the last step did so; 0: it was carried out */

int __real_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement);
int __real_sqlite3_extended_errcode(sqlite3 *handle);
int __wrap_sqlite3_extended_errcode(sqlite3 *handle);
const char *__real_sqlite3_errmsg(sqlite3 *handle);
const char *__wrap_sqlite3_errmsg(sqlite3 *handle);
int __real_nanosleep(const struct timespec *pause, struct timespec *ret_left);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *ret_left);

static bool changes(sqlite3_stmt *statement)
{
	return !sqlite3_stmt_readonly(statement) ||
	       (str_equal(sqlite3_sql(statement), "COMMIT") &&
		sqlite3_txn_state(sqlite3_db_handle(statement), NULL) == SQLITE_TXN_WRITE);
}

static int fault_of(sqlite3_stmt *statement)
{
	if (!fiber_inside() || sqlite3_stmt_busy(statement) ||
	    str_equal(sqlite3_sql(statement), "ROLLBACK"))
		return 0;
	switch (sim_fault(changes(statement) ? SIM_CHANGE : SIM_QUERY, sqlite3_sql(statement))) {
	case 0:
		return 0;
	case ENOSPC:
		return SQLITE_FULL;
	case EBUSY:
		return SQLITE_BUSY;
	default:
		return SQLITE_IOERR_READ;
	}
}

int __wrap_sqlite3_step(sqlite3_stmt *statement)
{
	failed = fault_of(statement);
	return failed ? failed : __real_sqlite3_step(statement);
}

int __wrap_sqlite3_extended_errcode(sqlite3 *handle)
{
	return failed ? failed : __real_sqlite3_extended_errcode(handle);
}

const char *__wrap_sqlite3_errmsg(sqlite3 *handle)
{
	return failed ? sqlite3_errstr(failed) : __real_sqlite3_errmsg(handle);
}

/* A job that lost a race waits a moment: the others of this world wait for it meanwhile. */
int __wrap_nanosleep(const struct timespec *pause, struct timespec *ret_left)
{
	return fiber_inside() ? 0 : __real_nanosleep(pause, ret_left);
}
