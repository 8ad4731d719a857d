#include "control/backup.h"

#include "lib/test.h"
#include "pki/token.h"
#include "unit/control/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* --- a world whose database changes under it --- */

static void leave(struct world *world)
{
	world_disconnect(&world->control);
	store_destroy(world->store);
	world->store = NULL;
}

static void come_back(struct world *world)
{
	struct error error;

	expect_ok(store_open(database_url(), &world->store, &error), &error);
	world_connect(world, "rep_after", &world->control);
}

static void take_backup(struct world *world, struct buf *ret_text, struct backup_info *ret_info)
{
	struct error error;

	expect_ok(backup_write(world->store, ret_text, ret_info, &error), &error);
}

struct count_work {
	const char *sql;
	int64_t number;
};

static bool count_body(struct store_connection *db, void *argument, struct error *error)
{
	struct count_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, work->sql, STORE_NO_PARAMS, &rows, error))
		return false;
	work->number = store_get_int(&rows, 0, 0);
	return true;
}

static int64_t count(struct world *world, const char *sql)
{
	struct count_work work = {.sql = sql};
	struct error error;

	expect_ok(store_run(world->control.connection, STORE_READ, count_body, &work, &error),
		  &error);
	return work.number;
}

/* --- there and back --- */

/* What was there is there again, under a new lineage, and goes on.
 * proves: ADM-6 */
static void test_restore_brings_all_back(void **state)
{
	struct world *world = *state;
	struct world_node node;
	CLEANUP(buf) struct buf text = {0};
	struct backup_info info, restored;
	struct control_spec spec;
	char before[ID_SIZE], reservation[ID_SIZE], allocation[ID_SIZE];
	struct error error;
	int64_t told;

	world_ready(world, &node, 8);
	json_t *made = world_reserve(world, 3);
	str_copy(reservation, sizeof reservation, world_text(made, "id"));
	str_copy(allocation, sizeof allocation, world_text(made, "allocations.0.id"));
	world_bind(world, &node, allocation);
	take_backup(world, &text, &info);
	str_copy(before, sizeof before, store_lineage(world->store));
	assert_string_equal(info.lineage, before);
	assert_int_equal(info.schema_version, STORE_MIGRATIONS);

	/* What happens after the backup is what a restore forgets. */
	(void)world_reserve(world, 2);
	told = count(world, "SELECT value FROM counters WHERE name = 'events'");
	leave(world);
	expect_error(backup_restore(database_url(), &text, "a.backup", false, &restored, &error),
		     &error, ERROR_CONFLICT, "isn't empty");
	expect_ok(backup_restore(database_url(), &text, "a.backup", true, &restored, &error),
		  &error);
	assert_int_equal(restored.rows, info.rows);
	come_back(world);
	assert_string_not_equal(store_lineage(world->store), before);
	assert_int_equal(count(world, "SELECT count(*) FROM reservations"), 1);
	assert_int_equal(count(world, "SELECT count(*) FROM node_streams WHERE connected = 1"), 0);
	assert_string_equal(world_text(world_reservation(world, reservation), "state"), "active");
	/* Whoever has heard of those two hears of what comes. */
	assert_true(count(world, "SELECT value FROM counters WHERE name = 'events'") > told);

	/* The node says Hello, hears the new lineage, and is given the same again. */
	world_hello(world, &node, NULL);
	world_inventory(world, &node);
	world_conditions(world, &node, NULL, 0);
	world_take_spec(world, &node, &spec);
	assert_string_equal(spec.lineage, store_lineage(world->store));
	assert_true(world_spec_has(&spec, allocation));
	control_spec_deinit(&spec);
	(void)world_reserve(world, 5); /* the five that are free, and no more */
	assert_int_equal(count(world, "SELECT count(*) FROM bookings"), 8);
	assert_int_equal(count(world, "SELECT count(DISTINCT gpu) FROM bookings"), 8);
}

/* --- under load --- */

struct load {
	struct world *world;
	struct control control;
	struct store *store;
	atomic_bool stop;
	int made;
};

static void *make_tenants(void *arg)
{
	struct load *load = arg;
	struct world copy = *load->world;

	copy.control = load->control;
	while (!load->stop) {
		json_t *body = json_pack("{s:o}", "name", json_sprintf("load-%d", load->made));
		const struct control_call call = {.principal = &copy.operator, .body = body };
		json_t *answer = NULL;
		struct error error;

		if (control_tenant_create(&copy.control, &call, &answer, &error))
			load->made++;
		json_decref(answer);
		json_decref(body);
	}
	return NULL;
}

/* A tenant and its audit row are one transaction, so one moment shows as many of both.
 * proves: ADM-6 */
static void test_one_moment_under_load(void **state)
{
	struct world *world = *state;
	struct load load = {.world = world};
	struct buf texts[5] = {0};
	struct backup_info infos[ARRAY_SIZE(texts)];
	struct error error;
	pthread_t thread;

	world_connect(world, "rep_load", &load.control);
	assert_int_equal(pthread_create(&thread, NULL, make_tenants, &load), 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		take_backup(world, &texts[i], &infos[i]);
	load.stop = true;
	pthread_join(thread, NULL);
	world_disconnect(&load.control);
	leave(world);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		expect_ok(backup_restore(database_url(), &texts[i], "x", true, &infos[i], &error),
			  &error);
		come_back(world);
		assert_int_equal(
			count(world, "SELECT count(*) FROM tenants WHERE name LIKE 'load-%'"),
			count(world,
			      "SELECT count(*) FROM audit WHERE object IN (SELECT id FROM tenants "
			      "WHERE name LIKE 'load-%')"));
		leave(world);
		buf_deinit(&texts[i]);
	}
	assert_true(load.made > 0);
	come_back(world);
}

/* --- more rows than one page --- */

struct events_work {
	int count;
};

static bool events_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct events_work *work = argument;

	for (int i = 0; i < work->count; i++) {
		if (!store_exec(db,
				"INSERT INTO idempotency (tenant, operation, idempotency_key, "
				"input_hash, object, created_ms) VALUES ($1, $2, $3, '', $4, 0)",
				STORE_PARAMS(store_text(i % 3 ? "a" : "b"), store_text("o"),
					     store_text((char[]){(char)('a' + i % 26),
								 (char)('a' + i / 26 % 26),
								 (char)('a' + i / 676), '\0'}),
					     store_text("quote \" line\nend\t\xc3\xa9")),
				error))
			return false;
	}
	return true;
}

static void test_pages_by_a_key_of_several_columns(void **state)
{
	struct world *world = *state;
	struct events_work work = {.count = 11000};
	CLEANUP(buf) struct buf text = {0};
	struct backup_info info;
	struct error error;

	expect_ok(store_run(world->control.connection, STORE_WRITE, events_body, &work, &error),
		  &error);
	take_backup(world, &text, &info);
	leave(world);
	expect_ok(backup_restore(database_url(), &text, "x", true, &info, &error), &error);
	come_back(world);
	assert_int_equal(count(world, "SELECT count(*) FROM idempotency"), 11000);
	assert_int_equal(count(world,
			       "SELECT count(*) FROM idempotency WHERE object = 'quote \" line\n"
			       "end\t\xc3\xa9'"),
			 11000);
}

/* --- what is no whole backup --- */

static void expect_refused(const char *text, size_t length, enum error_code code, const char *why)
{
	CLEANUP(buf) struct buf copy = {0};
	struct backup_info info;
	struct error error;

	buf_add(&copy, text, length);
	expect_error(backup_restore(database_url(), &copy, "a.backup", true, &info, &error), &error,
		     code, why);
}

/* The text with a checksum that is right for it, as one who edits a backup would make it. */
static void seal(struct buf *text, int tables, int rows)
{
	char hash[TOKEN_HASH_SIZE];

	token_hash(buf_text(text), hash);
	buf_printf(text, "{\"tables\":%d,\"rows\":%d,\"sha256\":\"%s\"}\n", tables, rows, hash);
}

#define HEAD                                                                                       \
	"{\"format\":\"better-compute backup\",\"version\":1,\"schema\":%d,\"lineage\":\"lin_1\"," \
	"\"made\":\"2026-11-29T00:00:00.000Z\"}\n"

static void test_damaged_backups_change_nothing(void **state)
{
	static const struct {
		const char *lines;
		int tables, rows;
		enum error_code code;
		const char *why;
	} cases[] = {
		{"{\"table\":\"nothing\",\"columns\":[\"id\"]}\n", 1, 0, ERROR_INVALID_INPUT,
		 "no table 'nothing'"},
		{"{\"table\":\"sqlite_master\",\"columns\":[\"sql\"]}\n", 1, 0, ERROR_INVALID_INPUT,
		 "no table"},
		{"{\"table\":\"tenants\",\"columns\":[\"id) VALUES (1); --\"]}\n", 1, 0,
		 ERROR_INVALID_INPUT, "has no column"},
		{"[1]\n", 0, 1, ERROR_INVALID_INPUT, "fit its table"},
		{"{\"table\":\"tenants\",\"columns\":[\"id\"]}\n[1.5]\n", 1, 1, ERROR_INVALID_INPUT,
		 "neither number"},
		{"{\"table\":\"tenants\",\"columns\":[\"id\",\"name\",\"created_ms\"]}\n"
		 "[\"a\",\"b\",\"c\"]\n",
		 1, 1, ERROR_INVALID_INPUT, "wrong kind"},
		{"{\"table\":\"sites\",\"columns\":[\"id\",\"tenant\",\"name\",\"kind\",\"created_"
		 "ms\"]}\n[\"s\",\"nobody\",\"n\",\"custom\",0]\n",
		 1, 1, ERROR_CONFLICT, ""},
		{"{\"table\":\"tenants\",\"columns\":[]}\n", 1, 0, ERROR_INVALID_INPUT,
		 "no columns"},
		{"{\"table\":\"tenants\",\"columns\":[\"id\"]}\n", 1, 7, ERROR_INVALID_INPUT,
		 "0 rows, not 7"},
	};
	struct world *world = *state;
	CLEANUP(buf) struct buf text = {0};
	struct backup_info info;
	char *middle;

	take_backup(world, &text, &info);
	leave(world);
	expect_refused("", 0, ERROR_INVALID_INPUT, "no backup");
	expect_refused("PK\x03\x04", 4, ERROR_INVALID_INPUT, "cut short");
	expect_refused(buf_text(&text), text.length - 1, ERROR_INVALID_INPUT, "cut short");
	expect_refused(buf_text(&text), text.length / 2, ERROR_INVALID_INPUT, "cut short");
	middle = strstr(buf_text(&text), "platform");
	assert_non_null(middle);
	*middle = 'q';
	expect_refused(buf_text(&text), text.length, ERROR_INVALID_INPUT, "checksum");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		buf_clear(&text);
		buf_printf(&text, HEAD, STORE_MIGRATIONS);
		buf_add_text(&text, cases[i].lines);
		seal(&text, cases[i].tables, cases[i].rows);
		expect_refused(buf_text(&text), text.length, cases[i].code, cases[i].why);
	}
	buf_clear(&text);
	buf_printf(&text, HEAD, STORE_MIGRATIONS + 1);
	seal(&text, 0, 0);
	expect_refused(buf_text(&text), text.length, ERROR_INVALID_STATE, "newer program");
	come_back(world);
	assert_int_equal(count(world, "SELECT count(*) FROM pools"), 1);
}

/* --- somebody serves it --- */

static void test_what_is_served_is_not_replaced(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf text = {0};
	struct backup_info info;
	struct error error;
	bool leads;

	take_backup(world, &text, &info);
	if (database_is_postgres()) {
		expect_ok(control_lead(&world->control, &leads, &error), &error);
		assert_true(leads);
		expect_error(backup_restore(database_url(), &text, "x", true, &info, &error),
			     &error, ERROR_CONFLICT, "being served");
		database_advance(CONTROL_LEASE_MS + 1);
		leave(world);
		expect_ok(backup_restore(database_url(), &text, "x", true, &info, &error), &error);
		come_back(world);
	} else {
		expect_error(backup_restore(database_url(), &text, "x", true, &info, &error),
			     &error, ERROR_CONFLICT, "lock");
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_restore_brings_all_back),
		WORLD_TEST(test_one_moment_under_load),
		WORLD_TEST(test_pages_by_a_key_of_several_columns),
		WORLD_TEST(test_damaged_backups_change_nothing),
		WORLD_TEST(test_what_is_served_is_not_replaced),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
