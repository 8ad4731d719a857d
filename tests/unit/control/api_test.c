/* The calls of the HTTP API: what they take, who may make them, and what they answer. */
#include "unit/control/world.h"

#include "base/buf.h"

#include <stdio.h>

#define HOUR_MS ((int64_t)60 * 60 * 1000)

/* --- keys and principals --- */

/* proves: POOL-4 ADM-2 */
static void test_keys_open_and_stop_opening(void **state)
{
	struct world *world = *state;
	struct control_principal principal;
	char first[CONTROL_KEY_SIZE] = "untouched";
	json_t *key;
	struct error error;

	/* The first key is made once. */
	expect_ok(control_init(&world->control, first, &error), &error);
	assert_string_equal(first, "");
	expect_error(control_authenticate(&world->control, NULL, &principal, &error), &error,
		     ERROR_UNAUTHENTICATED, "no valid API key");
	expect_error(control_authenticate(&world->control, "bck_", &principal, &error), &error,
		     ERROR_UNAUTHENTICATED, "no valid API key");
	key = world_call(world, control_key_create, NULL,
			 "{\"tenantId\":\"%s\",\"role\":\"user\",\"name\":\"ci\"}", world->tenant);
	assert_true(str_starts(world_text(key, "key"), "bck_key_"));
	expect_ok(control_authenticate(&world->control, world_text(key, "key"), &principal, &error),
		  &error);
	assert_string_equal(principal.tenant, world->tenant);
	assert_string_equal(principal.key, world_text(key, "id"));
	assert_int_equal(principal.role, CONTROL_ROLE_USER);
	for (size_t i = 0; i < 2; i++)
		assert_false(world_has(world_call(world, control_key_list, NULL, NULL),
				       i ? "items.1.key" : "items.0.key"));
	world_call(world, control_key_revoke, world_text(key, "id"), NULL);
	expect_error(
		control_authenticate(&world->control, world_text(key, "key"), &principal, &error),
		&error, ERROR_UNAUTHENTICATED, "no valid API key");
}

/* Whoever has the database gets in again, though the first key is lost. */
static void test_another_operator_key(void **state)
{
	struct world *world = *state;
	struct control_principal principal;
	struct control_call made_by = {.principal = &principal, .key_id = principal.key};
	char key[CONTROL_KEY_SIZE];
	json_t *audit;
	struct error error;

	expect_ok(control_another_key(&world->control, key, &error), &error);
	expect_ok(control_authenticate(&world->control, key, &principal, &error), &error);
	assert_int_equal(principal.role, CONTROL_ROLE_OPERATOR);
	assert_string_equal(principal.tenant, world->operator.tenant);
	assert_string_not_equal(principal.key, world->operator.key);
	expect_ok(world_ask(world, control_audit_list, &made_by, &audit, &error), &error);
	assert_string_equal(world_text(audit, "items.0.action"), "compute:keys:create");
	assert_string_equal(world_text(audit, "items.0.object"), principal.key);
	json_decref(audit);
}

/* proves: POOL-4 */
static void test_nobody_makes_a_key_that_reaches_further(void **state)
{
	struct world *world = *state;
	struct control_principal owner = world_principal(world, world->tenant, "owner");

	world->operator= owner;
	world_refused(world, control_key_create, NULL, ERROR_FORBIDDEN, "may not make a key",
		      "{\"tenantId\":\"%s\",\"role\":\"operator\",\"name\":\"k\"}", world->tenant);
}

/* --- pools --- */

/* proves: POOL-1 POOL-28 POOL-26 */
static void test_pool_is_made_read_patched_and_archived(void **state)
{
	struct world *world = *state;
	json_t *pool = world_call(world, control_pool_get, world->pool, NULL);

	assert_string_equal(world_text(pool, "name"), "h100");
	assert_string_equal(world_text(pool, "state"), "active");
	assert_string_equal(world_text(pool, "class"), "metal-host");
	assert_string_equal(world_text(pool, "siteId"), world->site);
	assert_int_equal(world_int(pool, "version"), 1);
	assert_int_equal(world_int(pool, "nodes"), 0);
	assert_string_equal(world_text(pool, "createdAt"), "2027-01-15T08:00:00.000Z");
	assert_true(id_valid(world_text(pool, "id"), "pool"));

	pool = world_call(world, control_pool_patch, world->pool,
			  "{\"policy\":{\"placement\":\"spread\"},\"ifVersion\":1}");
	assert_int_equal(world_int(pool, "version"), 2);
	assert_string_equal(world_text(pool, "policy.placement"), "spread");
	world_refused(world, control_pool_patch, world->pool, ERROR_CONFLICT, "version 2, not 1",
		      "{\"policy\":{},\"ifVersion\":1}");
	world_refused(world, control_pool_patch, world->pool, ERROR_INVALID_INPUT, "policy",
		      "{\"ifVersion\":2}");
	world_refused(world, control_pool_patch, world->pool, ERROR_INVALID_INPUT, "name",
		      "{\"policy\":{},\"name\":\"X\"}");
	world_refused(world, control_pool_create, NULL, ERROR_CONFLICT, world->pool,
		      "{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"h100\",\"class\":"
		      "\"metal-host\",\"gpuModel\":\"H100\",\"policy\":{}}",
		      world->tenant, world->site);

	pool = world_call(world, control_pool_archive, world->pool, NULL);
	assert_string_equal(world_text(pool, "state"), "archived");
	assert_int_equal(
		world_int(world_call(world, control_pool_archive, world->pool, NULL), "version"),
		world_int(pool, "version"));
	world_refused(world, control_pool_patch, world->pool, ERROR_INVALID_STATE, "archived",
		      "{\"policy\":{}}");
	world_refused(world, control_reservation_create, NULL, ERROR_INVALID_STATE, "archived",
		      "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
		      "\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\"}",
		      world->tenant, world->pool);
}

#define JOIN_POLICY(host)                                                                          \
	"{\"policy\":{\"kubernetes\":{\"apiServer\":\"https://" host "\",\"caCertSha256\":"        \
	"\"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","             \
	"\"joinTokenRef\":\"secret://ten_01jd4z5x9f0123456789abcdef/sec_"                          \
	"01jd4z5x9f0123456789abcdef\",\"taints\":[\"example.com/gpu=x:NoSchedule\"]}}}"

/* proves: POOL-13 POOL-28 */
static void test_cluster_of_joined_machines_cannot_be_swapped(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *pool;

	world_call(world, control_pool_patch, world->pool, JOIN_POLICY("a:6443"));
	world_call(world, control_pool_patch, world->pool, JOIN_POLICY("b:6443"));
	world_ready(world, &node, 1);
	world_refused(world, control_pool_patch, world->pool, ERROR_INVALID_STATE, "1 nodes",
		      JOIN_POLICY("c:6443"));
	pool = world_call(world, control_pool_patch, world->pool, "{\"policy\":{}}");
	assert_non_null(strstr(world_text(pool, "notes.0"), "taints"));
	pool = world_call(world, control_pool_patch, world->pool,
			  "{\"policy\":{\"placement\":\"spread\"}}");
	assert_false(world_has(pool, "notes"));
}

/* proves: POOL-17 POOL-18 */
static void test_platform_site_joins_only_what_the_platform_operates(void **state)
{
	struct world *world = *state;
	static const char body[] =
		"{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"%s\",\"class\":\"metal-host\","
		"\"gpuModel\":\"H100\",\"policy\":{\"kubernetes\":{\"platformOperated\":%s,"
		"\"apiServer\":\"https://k:6443\",\"caCertSha256\":\"sha256:"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
		"\"joinTokenRef\":\"secret://ten_01jd4z5x9f0123456789abcdef/sec_"
		"01jd4z5x9f0123456789abcdef\"}}}";
	const char *site = world_text(world_call(world, control_site_create, NULL,
						 "{\"tenantId\":\"%s\",\"name\":\"dc\",\"kind\":"
						 "\"platform\"}",
						 world->operator.tenant),
				      "id");

	world_refused(world, control_pool_create, NULL, ERROR_INVALID_INPUT, "platformOperated",
		      body, world->operator.tenant, site, "a", "false");
	world_refused(world, control_pool_create, NULL, ERROR_INVALID_INPUT, "platformOperated",
		      body, world->tenant, site, "b", "true");
	world_call(world, control_pool_create, NULL, body, world->operator.tenant, site, "c",
		   "true");
	world_call(world, control_pool_create, NULL, body, world->tenant, world->site, "d",
		   "false");
}

/* --- idempotency --- */

/* proves: POOL-5 POOL-6 POOL-27 */
static void test_same_key_and_input_is_the_same_thing(void **state)
{
	static const char body[] = "{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"%s\","
				   "\"class\":\"metal-host\",\"gpuModel\":\"H100\","
				   "\"policy\":{\"placement\":\"spread\",\"kubernetes\":{}},"
				   "\"idempotencyKey\":\"k1\"}";
	static const char turned[] = "{\"idempotencyKey\":\"k1\",\"policy\":{\"kubernetes\":{},"
				     "\"placement\":\"spread\"},\"gpuModel\":\"H100\",\"class\":"
				     "\"metal-host\",\"name\":\"%3$s\",\"siteId\":\"%2$s\","
				     "\"tenantId\":\"%1$s\"}";
	struct world *world = *state;
	json_t *first =
		world_call(world, control_pool_create, NULL, body, world->tenant, world->site, "p");
	json_t *again = world_call(world, control_pool_create, NULL, turned, world->tenant,
				   world->site, "p");

	assert_string_equal(world_text(first, "id"), world_text(again, "id"));
	world_refused(world, control_pool_create, NULL, ERROR_CONFLICT, world_text(first, "id"),
		      body, world->tenant, world->site, "q");
	/* The key is the operation's own. */
	world_call(world, control_tenant_create, NULL,
		   "{\"name\":\"t2\",\"idempotencyKey\":\"k1\"}");
	world_refused(world, control_tenant_create, NULL, ERROR_INVALID_INPUT, "idempotencyKey",
		      "{\"name\":\"t3\",\"idempotencyKey\":\"caf\xc3\xa9\"}");
	world_refused(world, control_tenant_create, NULL, ERROR_INVALID_INPUT, "idempotencyKey",
		      "{\"name\":\"t3\",\"idempotencyKey\":\"\"}");
	world_refused(world, control_tenant_create, NULL, ERROR_INVALID_INPUT, "idempotencyKey",
		      "{\"name\":\"t3\",\"idempotencyKey\":7}");
	world_refused(world, control_tenant_create, NULL, ERROR_INVALID_INPUT, "idempotencyKey",
		      "{\"name\":\"t3\",\"idempotencyKey\":\"%0129d\"}", 0);
	json_t *tenants = world_call(world, control_tenant_list, NULL, NULL);

	assert_int_equal(json_array_size(json_object_get(tenants, "items")), 3);
}

/* proves: POOL-27 */
static void test_idempotency_is_remembered_while_the_thing_lives(void **state)
{
	struct world *world = *state;
	struct world_node node;
	static const char body[] = "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				   "\"gpu\",\"count\":1}],\"duration\":\"30d\",\"binding\":"
				   "\"kubernetes\",\"idempotencyKey\":\"%s\"}";
	json_t *live, *over;

	world_ready(world, &node, 2);
	live = world_call(world, control_reservation_create, NULL, body, world->tenant, world->pool,
			  "live");
	over = world_call(world, control_reservation_create, NULL, body, world->tenant, world->pool,
			  "over");
	world_call(world, control_reservation_release, world_text(over, "id"), NULL);
	for (int day = 0; day < 8; day++) {
		database_advance(24 * HOUR_MS);
		world_tick(world);
		if (day < 6)
			assert_string_equal(
				world_text(world_call(world, control_reservation_create, NULL, body,
						      world->tenant, world->pool, "over"),
					   "id"),
				world_text(over, "id"));
	}
	assert_string_equal(world_text(world_call(world, control_reservation_create, NULL, body,
						  world->tenant, world->pool, "live"),
				       "id"),
			    world_text(live, "id"));
	assert_string_not_equal(world_text(world_call(world, control_reservation_create, NULL, body,
						      world->tenant, world->pool, "over"),
					   "id"),
				world_text(over, "id"));
}

/* --- lists --- */

/* proves: POOL-30 */
static void test_lists_come_in_pages(void **state)
{
	struct world *world = *state;
	struct control_call call = {.principal = &world->operator, .limit = "3" };
	char cursor[64] = "", last[ID_SIZE] = "";
	size_t seen = 0;
	json_t *answer;
	struct error error;

	for (int i = 0; i < 8; i++)
		world_call(world, control_tenant_create, NULL, "{\"name\":\"t%d\"}", i);
	do {
		call.cursor = cursor[0] ? cursor : NULL;
		expect_ok(world_ask(world, control_tenant_list, &call, &answer, &error), &error);
		for (size_t i = 0; i < json_array_size(json_object_get(answer, "items")); i++) {
			char path[32];

			snprintf(path, sizeof path, "items.%zu.id", i);
			assert_true(strcmp(world_text(answer, path), last) > 0);
			str_copy(last, sizeof last, world_text(answer, path));
			seen++;
		}
		cursor[0] = '\0';
		if (world_has(answer, "nextCursor"))
			str_copy(cursor, sizeof cursor, world_text(answer, "nextCursor"));
		json_decref(answer);
	} while (cursor[0]);
	assert_int_equal(seen, 10);

	static const char *const wrong[] = {"0", "1001", "-1", "x", "", "99999999999999999999"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		call = (struct control_call){.principal = &world->operator, .limit = wrong[i] };
		expect_error(world_ask(world, control_pool_list, &call, &answer, &error), &error,
			     ERROR_INVALID_INPUT, "limit");
		assert_string_equal(error.field, "limit");
	}
	call = (struct control_call){.principal = &world->operator, .cursor = "c1-rubbish" };
	expect_error(world_ask(world, control_pool_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "cursor");
	call.cursor = cursor;
	call.state = "releasing";
	expect_error(world_ask(world, control_reservation_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "state");
}

/* --- bad input --- */

static void test_bad_input_names_its_field(void **state)
{
	static const struct {
		const char *body, *field;
	} rows[] = {
		{"{\"name\":\"x\",\"colour\":1}", "colour"},
		{"{}", "name"},
		{"{\"name\":7}", "name"},
		{"{\"name\":null}", "name"},
		{"{\"name\":\"\"}", "name"},
		{"{\"name\":\"A\"}", "name"},
		{"{\"name\":\"caf\xc3\xa9\"}", "name"},
		{"{\"name\":\"a b\"}", "name"},
		{"{\"name\":\"-a\"}", "name"},
		{"{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
		 "name"},
	};
	struct world *world = *state;
	struct control_call call = {.principal = &world->operator};
	json_t *answer = NULL;
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *body = json_loads(rows[i].body, 0, NULL);

		call.body = body;
		expect_error(world_ask(world, control_tenant_create, &call, &answer, &error),
			     &error, ERROR_INVALID_INPUT, rows[i].field);
		assert_string_equal(error.field, rows[i].field);
		json_decref(body);
	}
	call.body = NULL;
	expect_error(world_ask(world, control_tenant_create, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "body must be a JSON object");
	world_refused(world, control_pool_get, "pool_nonsense", ERROR_NOT_FOUND, "pool_nonsense",
		      NULL);
	world_refused(world, control_pool_get, "../../etc", ERROR_NOT_FOUND, "pool", NULL);
	world_refused(world, control_reservation_get, NULL, ERROR_NOT_FOUND, "reservation", NULL);
}

/* --- reservations --- */

/* proves: RES-6 */
static void test_only_the_pools_tenant_books_it(void **state)
{
	static const char body[] = "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				   "\"gpu\",\"count\":1}],\"duration\":\"1h\",\"binding\":"
				   "\"kubernetes\"}";
	struct world *world = *state;
	const char *other = world_text(
		world_call(world, control_tenant_create, NULL, "{\"name\":\"other\"}"), "id");

	world_refused(world, control_reservation_create, NULL, ERROR_FORBIDDEN,
		      "only the tenant that owns", body, other, world->pool);
	world_refused(world, control_capacity_preview, NULL, ERROR_FORBIDDEN,
		      "only the tenant that owns", body, other, world->pool);
}

/* proves: RES-46 RES-54 */
static void test_release_and_cancel_by_state(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *pending = world_reserve(world, 1), *placed;
	const char *id = world_text(pending, "id");

	pending = world_call(world, control_reservation_cancel, id, NULL);
	assert_string_equal(world_text(pending, "state"), "cancelled");
	assert_string_equal(
		world_text(world_call(world, control_reservation_cancel, id, NULL), "state"),
		"cancelled");
	assert_string_equal(
		world_text(world_call(world, control_reservation_release, id, NULL), "state"),
		"cancelled");
	pending = world_reserve(world, 1);
	pending = world_call(world, control_reservation_release, world_text(pending, "id"), NULL);
	assert_string_equal(world_text(pending, "state"), "released");

	world_ready(world, &node, 1);
	placed = world_reserve(world, 1);
	id = world_text(placed, "id");
	world_refused(world, control_reservation_cancel, id, ERROR_INVALID_STATE, "only a pending",
		      NULL);
	placed = world_call(world, control_reservation_release, id, NULL);
	assert_string_equal(world_text(placed, "state"), "released");
	assert_true(world_has(placed, "releaseRequestedAt"));
	assert_true(json_equal(placed, world_call(world, control_reservation_release, id, NULL)));
	world_refused(world, control_reservation_cancel, id, ERROR_INVALID_STATE, "released", NULL);
}

/* proves: RES-1 RES-5 POOL-23 */
static void test_archived_pool_denies_what_waits(void **state)
{
	struct world *world = *state;
	json_t *pending = world_reserve(world, 1);

	world_call(world, control_pool_archive, world->pool, NULL);
	world_tick(world);
	pending = world_reservation(world, world_text(pending, "id"));
	assert_string_equal(world_text(pending, "state"), "denied");
	assert_string_equal(world_text(pending, "stateReason"), "PoolArchived");
}

/* proves: RES-4 RES-50 */
static void test_preview_says_where_or_when_and_books_nothing(void **state)
{
	static const char body[] = "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				   "\"gpu\",\"count\":%d}],\"duration\":\"2h\",\"binding\":"
				   "\"kubernetes\"}";
	struct world *world = *state;
	struct world_node node;
	json_t *preview;

	world_ready(world, &node, 4);
	preview = world_call(world, control_capacity_preview, NULL, body, world->tenant,
			     world->pool, 3);
	assert_true(world_int(preview, "fits"));
	assert_string_equal(world_text(preview, "nodes.0.id"), node.id);
	assert_true(world_has(preview, "nodes.0.devices.2"));
	assert_false(world_has(preview, "firstFitAt"));
	assert_int_equal(
		world_int(world_call(world, control_capacity_get, NULL, NULL), "items.0.free"), 4);
	/* For an hour two are taken: three fit after that, five never. */
	world_reserve(world, 2);
	preview = world_call(world, control_capacity_preview, NULL, body, world->tenant,
			     world->pool, 3);
	assert_false(world_int(preview, "fits"));
	assert_string_equal(world_text(preview, "firstFitAt"), "2027-01-15T09:00:00.000Z");
	assert_string_equal(world_text(preview, "reasons.0.reason"), "DevicesBusy");
	assert_int_equal(world_int(preview, "reasons.0.nodes"), 1);
	assert_int_equal(world_int(preview, "reasons.0.largest"), 2);
	preview = world_call(world, control_capacity_preview, NULL, body, world->tenant,
			     world->pool, 5);
	assert_false(world_has(preview, "firstFitAt"));
	assert_string_equal(world_text(preview, "reasons.0.reason"), "DeviceClassMissing");
	world_refused(world, control_capacity_preview, NULL, ERROR_INVALID_INPUT, "idempotencyKey",
		      "{\"idempotencyKey\":\"x\"}");
}

/* proves: RES-1 RES-5 RES-13 */
static void test_parts_exclude_the_whole_and_the_other_way(void **state)
{
	static const char body[] = "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				   "\"%s\",%s\"count\":%d}],\"duration\":\"1h\",\"binding\":"
				   "\"kubernetes\"}";
	struct world *world = *state;
	struct world_node node;
	json_t *slots, *migs, *capacity;

	world_join(world, &node);
	node.gpus = 2;
	node.slots = 4;
	world_hello(world, &node, NULL);
	world_inventory(world, &node);
	world_conditions(world, &node, NULL, 0);
	slots = world_call(world, control_reservation_create, NULL, body, world->tenant,
			   world->pool, "gpu.slot", "", 3);
	assert_string_equal(world_text(slots, "state"), "placed");
	assert_string_equal(world_text(slots, "allocations.0.devices.0.gpu"),
			    world_text(slots, "allocations.0.devices.2.gpu"));
	assert_string_equal(world_text(world_reserve(world, 2), "state"), "pending");
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "placed");
	capacity = world_call(world, control_capacity_get, NULL, NULL);
	assert_string_equal(world_text(capacity, "items.0.class"), "gpu");
	assert_int_equal(world_int(capacity, "items.0.booked"), 2);
	assert_string_equal(world_text(capacity, "items.1.class"), "gpu.slot");
	assert_int_equal(world_int(capacity, "items.1.free"), 1);

	node.slots = 0;
	node.migs = 7;
	world_ready(world, &node, 1);
	node.migs = 7;
	world_inventory(world, &node);
	migs = world_call(world, control_reservation_create, NULL, body, world->tenant, world->pool,
			  "gpu.mig", "\"profile\":\"1g.10gb\",", 7);
	assert_string_equal(world_text(migs, "state"), "placed");
	assert_string_equal(world_text(migs, "allocations.0.nodeId"), node.id);
	migs = world_call(world, control_reservation_create, NULL, body, world->tenant, world->pool,
			  "gpu.mig", "\"profile\":\"2g.20gb\",", 1);
	assert_string_equal(world_text(migs, "reasons.0.reason"), "DeviceClassMissing");
	assert_int_equal(world_int(migs, "reasons.0.nodes"), 2);
}

/* Two nodes that report the same card: it is one card, and booked once. */
static void test_one_card_seen_by_two_nodes_is_booked_once(void **state)
{
	struct world *world = *state;
	struct world_node first, second;

	world_ready(world, &first, 1);
	world_ready(world, &second, 1);
	str_copy(second.uuids[0], sizeof second.uuids[0], first.uuids[0]);
	world_inventory(world, &second);
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "placed");
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "pending");
}

/* --- what is left behind --- */

struct audit_work {
	int64_t rows, with_request;
};

static bool audit_body(struct store_connection *db, void *argument, struct error *error)
{
	struct audit_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT count(*), count(CASE WHEN request = 'req_test' THEN 1 END) FROM "
			 "audit WHERE action = 'compute:tenants:create'",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	work->rows = store_get_int(&rows, 0, 0);
	work->with_request = store_get_int(&rows, 0, 1);
	return true;
}

static void test_each_change_is_an_audit_row_and_no_refusal(void **state)
{
	struct world *world = *state;
	struct audit_work work;
	struct error error;

	world_refused(world, control_tenant_create, NULL, ERROR_CONFLICT, "acme",
		      "{\"name\":\"acme\"}");
	world_call(world, control_tenant_create, NULL, "{\"name\":\"b\",\"idempotencyKey\":\"k\"}");
	world_call(world, control_tenant_create, NULL, "{\"name\":\"b\",\"idempotencyKey\":\"k\"}");
	expect_ok(store_run(world->control.connection, STORE_READ, audit_body, &work, &error),
		  &error);
	assert_int_equal(work.rows, 2);
	assert_int_equal(work.with_request, 2);
}

static void test_events_come_after_what_was_read(void **state)
{
	struct world *world = *state;
	struct control_call call = {.principal = &world->operator, .after = "0", .limit = "1"};
	char after[32];
	int64_t last;
	json_t *answer;
	struct error error;

	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	assert_int_equal(world_int(answer, "items.0.seq"), 1);
	assert_false(world_has(answer, "items.1"));
	last = world_int(answer, "last");
	json_decref(answer);
	world_reserve(world, 1);
	world_reserve(world, 1);
	/* Whoever wants the newest alone begins there. */
	snprintf(after, sizeof after, "%lld", (long long)last);
	call.after = after;
	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	assert_int_equal(world_int(answer, "items.0.seq"), last + 1);
	assert_int_equal(world_int(answer, "next"), last + 1);
	assert_int_equal(world_int(answer, "last"), last + 2);
	assert_string_equal(world_text(answer, "items.0.type"), "reservation.state.changed");
	assert_string_equal(world_text(answer, "items.0.data.state"), "pending");
	assert_false(world_has(answer, "items.1"));
	json_decref(answer);
	snprintf(after, sizeof after, "%lld", (long long)last + 1);
	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	assert_int_equal(world_int(answer, "items.0.seq"), last + 2);
	json_decref(answer);
	/* Of another log than this: nothing of it has been read. */
	snprintf(after, sizeof after, "%lld", (long long)last + 3);
	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	assert_int_equal(world_int(answer, "items.0.seq"), 1);
	json_decref(answer);
	call.after = "-1";
	expect_error(world_ask(world, control_event_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "after");
}

static size_t listed(struct world *world, struct control_call call)
{
	json_t *answer;
	struct error error;
	size_t count;

	call.principal = &world->operator;
	expect_ok(world_ask(world, control_reservation_list, &call, &answer, &error), &error);
	count = json_array_size(json_object_get(answer, "items"));
	json_decref(answer);
	return count;
}

static void test_reservations_are_narrowed(void **state)
{
	struct world *world = *state;
	struct world_node node;
	const char *over, *held, *allocation;
	const json_t *reservation;
	struct control_call call = {.principal = &world->operator,
				    .from = "2027-01-15T09:00:00Z",
				    .to = "2027-01-15T08:00:00Z"};
	json_t *answer;
	struct error error;

	world_ready(world, &node, 2);
	over = world_text(world_reserve(world, 1), "id");
	world_call(world, control_reservation_release, over, NULL);
	database_advance((int64_t)2 * 60 * 60 * 1000);
	world_heartbeat(world, &node);
	reservation = world_reserve(world, 1);
	held = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	world_bind(world, &node, allocation);
	world_call(world, control_reservation_release, held, NULL);
	world_reserve(world, 2);
	assert_int_equal(listed(world, (struct control_call){0}), 3);
	/* What pods still hold isn't over, though it shows as released. */
	assert_int_equal(listed(world, (struct control_call){.live = "true"}), 2);
	assert_int_equal(listed(world, (struct control_call){.live = "false"}), 1);
	assert_int_equal(listed(world, (struct control_call){.live = "true", .state = "released"}),
			 1);
	assert_int_equal(listed(world, (struct control_call){.tenant_id = world->tenant}), 3);
	assert_int_equal(listed(world, (struct control_call){.tenant_id = world->operator.tenant}),
			 0);
	assert_int_equal(listed(world, (struct control_call){.from = "2027-01-15T09:00:00Z"}), 2);
	assert_int_equal(listed(world, (struct control_call){.to = "2027-01-15T09:00:00Z"}), 1);
	/* A window that ends before it begins was meant otherwise, whatever is asked. */
	expect_error(world_ask(world, control_reservation_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "is not after from");
	expect_error(world_ask(world, control_audit_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "is not after from");
	call = (struct control_call){.principal = &world->operator, .live = "yes" };
	expect_error(world_ask(world, control_reservation_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "live");
}

/* A thing that was deleted makes room for another under its key.
 * proves: POOL-27 */
static void test_a_deleted_thing_gives_its_idempotency_key_back(void **state)
{
	static const char body[] =
		"{\"tenantId\":\"%s\",\"maxDevices\":1,\"idempotencyKey\":\"q\"}";
	struct world *world = *state;
	const char *first = world_text(
		world_call(world, control_quota_create, NULL, body, world->tenant), "id");
	const char *second;

	world_call(world, control_quota_delete, first, NULL);
	second = world_text(world_call(world, control_quota_create, NULL, body, world->tenant),
			    "id");
	assert_string_not_equal(first, second);
	assert_string_equal(
		world_text(world_call(world, control_quota_create, NULL, body, world->tenant),
			   "id"),
		second);
}

/* What is an event of no state: a changed end, a new name. Who may not read keys hears of none. */
static void test_each_change_is_an_event(void **state)
{
	struct world *world = *state;
	struct control_principal viewer = world_principal(world, world->tenant, "viewer");
	struct control_call call = {.principal = &viewer, .limit = "1000"};
	const json_t *reservation = world_reserve(world, 1);
	const char *id = world_text(reservation, "id");
	json_t *answer, *item;
	size_t index;
	struct error error;

	assert_int_equal(world_count_events(world, "reservation.changed", id), 0);
	world_call(world, control_reservation_patch, id, "{\"duration\":\"2h\"}");
	assert_int_equal(world_count_events(world, "reservation.changed", id), 1);
	assert_int_equal(world_count_events(world, "pool.changed", world->pool), 1);
	world_call(world, control_pool_patch, world->pool, "{\"name\":\"other\"}");
	assert_int_equal(world_count_events(world, "pool.changed", world->pool), 2);
	world_call(world, control_site_patch, world->site, "{\"name\":\"a\"}");
	world_call(world, control_site_patch, world->site, "{\"name\":\"a\"}");
	assert_int_equal(world_count_events(world, "site.changed", world->site), 2);
	assert_int_equal(world_count_events(world, "key.changed", viewer.key), 1);
	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	json_array_foreach(json_object_get(answer, "items"), index, item)
		assert_string_not_equal(world_text(item, "type"), "key.changed");
	assert_true(json_array_size(json_object_get(answer, "items")) > 0);
	json_decref(answer);
}

/* What is tried answers as if it were done, or is refused as it would be, and nothing is different. */
static void test_what_is_tried_changes_nothing(void **state)
{
	struct world *world = *state;
	const char *id = world_text(world_reserve(world, 1), "id");
	json_t *shorter = json_pack("{s:s}", "duration", "2h");
	json_t *longer = json_pack("{s:s}", "duration", "9000d");
	struct control_call call = {
		.principal = &world->operator, .id = id, .body = shorter, .dry_run = "true"};
	json_t *before, *answer;
	struct error error;

	expect_ok(world_ask(world, control_reservation_get, &call, &before, &error), &error);
	expect_ok(world_ask(world, control_reservation_patch, &call, &answer, &error), &error);
	assert_string_equal(world_text(answer, "duration"), "2h");
	json_decref(answer);
	call.body = longer;
	expect_error(world_ask(world, control_reservation_patch, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "duration");
	call.body = NULL;
	expect_ok(world_ask(world, control_reservation_release, &call, &answer, &error), &error);
	assert_string_equal(world_text(answer, "state"), "released");
	json_decref(answer);
	expect_ok(world_ask(world, control_reservation_get, &call, &answer, &error), &error);
	assert_true(json_equal(answer, before));
	assert_int_equal(world_count_events(world, "reservation.changed", id), 0);
	json_decref(answer);
	call.dry_run = "false";
	call.body = shorter;
	expect_ok(world_ask(world, control_reservation_patch, &call, &answer, &error), &error);
	assert_int_equal(world_count_events(world, "reservation.changed", id), 1);
	json_decref(answer);
	json_decref(before);
	json_decref(shorter);
	json_decref(longer);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_keys_open_and_stop_opening),
		WORLD_TEST(test_another_operator_key),
		WORLD_TEST(test_nobody_makes_a_key_that_reaches_further),
		WORLD_TEST(test_pool_is_made_read_patched_and_archived),
		WORLD_TEST(test_cluster_of_joined_machines_cannot_be_swapped),
		WORLD_TEST(test_platform_site_joins_only_what_the_platform_operates),
		WORLD_TEST(test_same_key_and_input_is_the_same_thing),
		WORLD_TEST(test_idempotency_is_remembered_while_the_thing_lives),
		WORLD_TEST(test_lists_come_in_pages),
		WORLD_TEST(test_bad_input_names_its_field),
		WORLD_TEST(test_only_the_pools_tenant_books_it),
		WORLD_TEST(test_release_and_cancel_by_state),
		WORLD_TEST(test_archived_pool_denies_what_waits),
		WORLD_TEST(test_preview_says_where_or_when_and_books_nothing),
		WORLD_TEST(test_parts_exclude_the_whole_and_the_other_way),
		WORLD_TEST(test_one_card_seen_by_two_nodes_is_booked_once),
		WORLD_TEST(test_each_change_is_an_audit_row_and_no_refusal),
		WORLD_TEST(test_events_come_after_what_was_read),
		WORLD_TEST(test_each_change_is_an_event),
		WORLD_TEST(test_reservations_are_narrowed),
		WORLD_TEST(test_a_deleted_thing_gives_its_idempotency_key_back),
		WORLD_TEST(test_what_is_tried_changes_nothing),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
