/* The database itself keeps a part of a GPU from being booked twice. */
#include "unit/store/opened.h"

#include <stdio.h>

#define BOOK                                                                                       \
	"INSERT INTO bookings (allocation, gpu, leaf_lo, leaf_hi, from_ms, to_ms, held) "          \
	"VALUES ($1, $2, $3, $4, $5, $6, $7)"

static bool book(struct store_connection *connection, const char *allocation, const char *gpu,
		 int64_t lo, int64_t hi, int64_t from, int64_t to, int64_t held,
		 struct error *error)
{
	return run_sql(connection, BOOK,
		       STORE_PARAMS(store_text(allocation), store_text(gpu), store_int(lo),
				    store_int(hi), store_int(from), store_int(to), store_int(held)),
		       error);
}

/* The rows that bookings hang on. */
static void make_allocations(struct store_connection *connection)
{
	static const char *const sql[] = {
		"INSERT INTO tenants (id, name, created_ms) VALUES ('t', 't', 0)",
		"INSERT INTO sites (id, tenant, name, kind, created_ms) VALUES ('s', 't', 's', "
		"'custom', 0)",
		"INSERT INTO pools (id, tenant, site, name, class, gpu_model, policy, version, "
		"state, created_ms) VALUES ('p', 't', 's', 'p', 'metal-host', 'H100', '{}', 1, "
		"'active', 0)",
		"INSERT INTO join_tokens (id, pool, hosted, hash, max_uses, uses, expires_ms, "
		"revoked_ms, created_ms) VALUES ('jt', 'p', NULL, 'h', 1, 1, 0, NULL, 0)",
		"INSERT INTO nodes (id, pool, join_token, machine_key, smbios_uuid, trust, "
		"state, hostname, kubernetes_node_name, boot_id, bcd_version, kernel, "
		"driver_version, gpu_api, capabilities, vcpus, memory_bytes, simulated, "
		"simulated_reason, has_inventory, has_conditions, spec_generation, "
		"sent_generation, stored_generation, hello_sequence, acknowledged, created_ms) "
		"VALUES ('n', 'p', 'jt', 'k', '', 'tenant-owned', 'ready', '', "
		"'', '', '', '', '', '', '[]', 0, 0, 0, '', 0, 0, 0, 0, 0, 0, 0, 0)",
		"INSERT INTO reservations (id, tenant, pool, state, state_reason, binding, "
		"devices, duration_ms, start_ms, from_ms, end_ms, vcpus, memory_bytes, reasons, "
		"created_ms, release_ms) VALUES ('r', 't', 'p', 'placed', '', 'kubernetes', '[]', "
		"1, NULL, NULL, NULL, NULL, NULL, '[]', 0, NULL)",
	};
	static const char *const ids[] = {"a", "b", "c", "d"};
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(sql); i++)
		expect_ok(run_sql(connection, sql[i], STORE_NO_PARAMS, &error), &error);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		expect_ok(run_sql(connection,
				  "INSERT INTO allocations (id, reservation, node, state, from_ms, "
				  "to_ms, vcpus, "
				  "memory_bytes, limited, assigned_generation, "
				  "withdrawn_generation, bound_ms, "
				  "releasing_ms, released_ms, lost_reason, lost_ms, end_reason, "
				  "created_ms) VALUES ($1, 'r', 'n', 'placed', 0, 1, 0, "
				  "0, 0, NULL, NULL, NULL, NULL, NULL, '', NULL, '', 0)",
				  STORE_PARAMS(store_text(ids[i])), &error),
			  &error);
}

/* The database itself refuses what overlaps, whoever wrote the SQL.
 * proves: RES-19 RES-26 */
static void test_database_refuses_overlapping_bookings(void **state)
{
	static const struct {
		int64_t lo, hi, from, to, held;
		const char *gpu;
		bool refused;
	} rows[] = {
		{0, 1024, 100, 200, 0, "g", true},    /* the same */
		{0, 128, 150, 160, 0, "g", true},     /* a part, inside */
		{896, 1024, 199, 300, 0, "g", true},  /* the last part, by one millisecond */
		{0, 1024, 0, 101, 0, "g", true},      /* by one millisecond before */
		{0, 1024, 200, 300, 0, "g", false},   /* right after */
		{0, 1024, 0, 100, 0, "g", false},     /* right before */
		{0, 1024, 100, 200, 0, "h", false},   /* another GPU */
		{0, 1024, 0, 100, 1, "g", true},      /* right before, but held without end */
		{0, 1024, 200, 300, 1, "g", false},   /* right after, held */
		{512, 1024, 300, 400, 0, "g", false}, /* later */
	};
	struct opened opened = open_database();
	struct error error;

	(void)state;
	make_allocations(opened.connection);
	expect_ok(book(opened.connection, "a", "g", 0, 1024, 100, 200, 0, &error), &error);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool done = book(opened.connection, "b", rows[i].gpu, rows[i].lo, rows[i].hi,
				 rows[i].from, rows[i].to, rows[i].held, &error);

		if (done == rows[i].refused)
			fail_msg("row %zu: %s", i, done ? "was let in" : error.what);
		if (done)
			expect_ok(run_sql(opened.connection,
					  "DELETE FROM bookings WHERE allocation = 'b'",
					  STORE_NO_PARAMS, &error),
				  &error);
		else {
			assert_int_equal(error.code, ERROR_CONFLICT);
			assert_non_null(strstr(error.what, "bookings_no_overlap"));
		}
	}
	close_database(&opened);
}

/* proves: RES-26 */
static void test_database_refuses_growing_into_another_booking(void **state)
{
	struct opened opened = open_database();
	struct error error;

	(void)state;
	make_allocations(opened.connection);
	expect_ok(book(opened.connection, "a", "g", 0, 512, 100, 200, 0, &error), &error);
	expect_ok(book(opened.connection, "b", "g", 0, 512, 300, 400, 0, &error), &error);
	expect_ok(book(opened.connection, "c", "g", 512, 1024, 100, 200, 0, &error), &error);
	/* Up to the next one, beside another part: fine; then not one millisecond more. */
	const char *grow = "UPDATE bookings SET to_ms = $1, held = $2 WHERE allocation = 'a'";
	expect_ok(run_sql(opened.connection, grow, STORE_PARAMS(store_int(300), store_int(0)),
			  &error),
		  &error);
	expect_error(run_sql(opened.connection, grow, STORE_PARAMS(store_int(301), store_int(0)),
			     &error),
		     &error, ERROR_CONFLICT, "bookings_no_overlap");
	expect_error(run_sql(opened.connection, grow, STORE_PARAMS(store_int(300), store_int(1)),
			     &error),
		     &error, ERROR_CONFLICT, "bookings_no_overlap");
	/* Held: nothing later fits any more, at any time. */
	expect_ok(run_sql(opened.connection, "UPDATE bookings SET held = 1 WHERE allocation = 'c'",
			  STORE_NO_PARAMS, &error),
		  &error);
	expect_error(book(opened.connection, "d", "g", 1000, 1024, INT64_MAX / 4, INT64_MAX / 2, 0,
			  &error),
		     &error, ERROR_CONFLICT, "bookings_no_overlap");
	/* Out of bounds. */
	expect_error(book(opened.connection, "d", "x", 0, 1025, 1, 2, 0, &error), &error,
		     ERROR_CONFLICT, "");
	expect_error(book(opened.connection, "d", "x", 5, 5, 1, 2, 0, &error), &error,
		     ERROR_CONFLICT, "");
	expect_error(book(opened.connection, "d", "x", 0, 5, 2, 2, 0, &error), &error,
		     ERROR_CONFLICT, "");
	/* Bookings belong to an allocation. */
	expect_error(book(opened.connection, "nobody", "x", 0, 5, 1, 2, 0, &error), &error,
		     ERROR_CONFLICT, "");
	close_database(&opened);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		DATABASE_TEST(test_database_refuses_overlapping_bookings),
		DATABASE_TEST(test_database_refuses_growing_into_another_booking),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
