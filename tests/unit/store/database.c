#include "unit/store/database.h"

#include "sys/clock.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SKIPPED 77

static bool on_postgres;
static const char *server; /* conninfo of BC_TEST_POSTGRES */
static PGconn *admin;      /* to the test's own database */
static char name[64];
static char folder[64];
static char url[1024];
static _Atomic int64_t now_ms;

/* --- sys/clock.h, for SQLite --- */

struct wall clock_wall(void)
{
	return (struct wall){now_ms};
}

struct mono clock_mono(void)
{
	return (struct mono){now_ms};
}

int64_t clock_us(void)
{
	return clock_mono().ms * 1000;
}

void clock_boot_id(char out[CLOCK_BOOT_ID_SIZE])
{
	str_copy(out, CLOCK_BOOT_ID_SIZE, "11111111-1111-1111-1111-111111111111");
}

/* --- PostgreSQL --- */

static void run_sql(PGconn *connection, const char *sql)
{
	PGresult *result = PQexec(connection, sql);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(connection));
	PQclear(result);
}

static void run_on_server(const char *sql)
{
	PGconn *connection = PQconnectdb(server);

	if (PQstatus(connection) != CONNECTION_OK)
		fail_msg("%s", PQerrorMessage(connection));
	run_sql(connection, sql);
	PQfinish(connection);
}

static void make_postgres(void)
{
	static int number;
	char sql[sizeof url + 64];

	snprintf(name, sizeof name, "bc_test_%d_%d", (int)getpid(), ++number);
	snprintf(sql, sizeof sql, "CREATE DATABASE %s", name);
	run_on_server(sql);
	snprintf(sql, sizeof sql, "ALTER DATABASE %s SET search_path = public, pg_catalog", name);
	run_on_server(sql);
	snprintf(url, sizeof url, "%s dbname=%s", server, name);
	snprintf(sql, sizeof sql, "%s application_name=admin", url);
	admin = PQconnectdb(sql);
	if (PQstatus(admin) != CONNECTION_OK)
		fail_msg("%s", PQerrorMessage(admin));
	run_sql(admin, "CREATE TABLE test_clock (ms BIGINT NOT NULL);"
		       "INSERT INTO test_clock VALUES (0);"
		       "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz "
		       "LANGUAGE sql STABLE AS 'SELECT pg_catalog.to_timestamp(ms / 1000.0) "
		       "FROM public.test_clock'");
}

static void drop_postgres(void)
{
	char sql[256];

	PQfinish(admin);
	admin = NULL;
	snprintf(sql, sizeof sql, "DROP DATABASE %s WITH (FORCE)", name);
	run_on_server(sql);
}

/* --- SQLite --- */

static void make_sqlite(void)
{
	str_copy(folder, sizeof folder, "/tmp/bc-store-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(url, sizeof url, "sqlite:%s/test.db", folder);
}

static void drop_sqlite(void)
{
	static const char *const files[] = {"test.db", "test.db-wal", "test.db-shm",
					    "test.db.lock"};
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof path, "%s/%s", folder, files[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(folder), 0);
}

/* --- for tests --- */

bool database_is_postgres(void)
{
	return on_postgres;
}

int database_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
	on_postgres = argc > 1 && str_equal(argv[1], "postgresql");
	server = getenv("BC_TEST_POSTGRES");
	if (on_postgres && !server) {
		fprintf(stderr, "skipped: BC_TEST_POSTGRES is not set\n");
		return SKIPPED;
	}
	return _cmocka_run_group_tests(on_postgres ? "postgresql" : "sqlite", tests, count, NULL,
				       NULL);
}

int database_setup(void **state)
{
	(void)state;
	if (on_postgres)
		make_postgres();
	else
		make_sqlite();
	database_set_time(DATABASE_EPOCH_MS);
	return 0;
}

int database_teardown(void **state)
{
	(void)state;
	if (on_postgres)
		drop_postgres();
	else
		drop_sqlite();
	return 0;
}

const char *database_url(void)
{
	return url;
}

void database_set_time(int64_t ms)
{
	char sql[96];

	now_ms = ms;
	if (!on_postgres)
		return;
	snprintf(sql, sizeof sql, "UPDATE test_clock SET ms = %lld", (long long)ms);
	run_sql(admin, sql);
}

void database_advance(int64_t ms)
{
	database_set_time(now_ms + ms);
}

int64_t database_time(void)
{
	return now_ms;
}
