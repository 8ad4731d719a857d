/* Tenants, sites, pools and nodes as things that are renamed, labelled, drained and archived, under
 * audit; and each body's known fields against the API's document. */
#include "unit/control/world.h"

#include "base/buf.h"
#include "lib/folder.h"
#include "pki/seal.h"
#include "serve/routes.h"

#include <stdio.h>

#define DAY_MS ((int64_t)24 * 60 * 60 * 1000)

DEFINE_CLEANUP(json, json_t *, json_decref)

/* The name that is taken is the error's field: nobody has to read its words for that. */
static void test_a_taken_name_is_a_field(void **state)
{
	static const struct {
		world_call_fn *function;
		const char *more;
	} MAKES[] = {
		{control_tenant_create, "{}"},
		{control_site_create, "{\"kind\":\"custom\"}"},
		{control_key_create, "{\"role\":\"user\"}"},
		{control_pool_create,
		 "{\"class\":\"metal-host\",\"gpuModel\":\"H100\",\"policy\":{}}"},
	};
	struct world *world = *state;

	for (size_t i = 0; i < ARRAY_SIZE(MAKES); i++) {
		CLEANUP(json) json_t *body = json_loads(MAKES[i].more, 0, NULL);
		struct control_call call = {.principal = &world->operator, .body = body };
		struct error error;
		json_t *answer;

		json_object_set_new(body, "name", json_string("taken"));
		if (MAKES[i].function != control_tenant_create)
			json_object_set_new(body, "tenantId", json_string(world->tenant));
		if (MAKES[i].function == control_pool_create)
			json_object_set_new(body, "siteId", json_string(world->site));
		expect_ok(world_ask(world, MAKES[i].function, &call, &answer, &error), &error);
		json_decref(answer);
		expect_error(world_ask(world, MAKES[i].function, &call, &answer, &error), &error,
			     ERROR_CONFLICT, "taken");
		assert_string_equal(error.field, "name");
	}
}

/* proves: ADM-1 */
/* --- archiving --- */

static void test_tenants_are_renamed_and_archived(void **state)
{
	struct world *world = *state;
	json_t *tenant = world_call(world, control_tenant_create, NULL, "{\"name\":\"old\"}");
	const char *id = world_text(tenant, "id");
	json_t *site, *key;

	assert_string_equal(world_text(tenant, "state"), "active");
	tenant = world_call(world, control_tenant_patch, id, "{\"name\":\"new\"}");
	assert_string_equal(world_text(tenant, "name"), "new");
	world_call(world, control_tenant_patch, id, "{\"name\":\"new\"}"); /* its own is free */
	world_refused(world, control_tenant_patch, id, ERROR_CONFLICT,
		      "tenant 'acme' exists already", "{\"name\":\"acme\"}");
	world_refused(world, control_tenant_patch, id, ERROR_INVALID_INPUT, "name", "{}");
	site = world_call(world, control_site_create, NULL,
			  "{\"tenantId\":\"%s\",\"name\":\"s\",\"kind\":\"custom\"}", id);
	world_refused(world, control_tenant_archive, id, ERROR_INVALID_STATE,
		      world_text(site, "id"), NULL);
	world_call(world, control_site_archive, world_text(site, "id"), NULL);
	key = world_call(world, control_key_create, NULL,
			 "{\"tenantId\":\"%s\",\"role\":\"owner\",\"name\":\"k\"}", id);
	world_refused(world, control_tenant_archive, id, ERROR_INVALID_STATE, world_text(key, "id"),
		      NULL);
	world_call(world, control_key_revoke, world_text(key, "id"), NULL);
	for (int i = 0; i < 2; i++) {
		tenant = world_call(world, control_tenant_archive, id, NULL);
		assert_string_equal(world_text(tenant, "state"), "archived");
	}
	world_refused(world, control_tenant_patch, id, ERROR_INVALID_STATE, "archived",
		      "{\"name\":\"x\"}");
	world_refused(world, control_site_create, NULL, ERROR_INVALID_STATE, "archived",
		      "{\"tenantId\":\"%s\",\"name\":\"t\",\"kind\":\"custom\"}", id);
	/* The platform itself, by whose key this was asked. */
	world_refused(world, control_tenant_archive, world->operator.tenant, ERROR_INVALID_STATE,
		      "key_", NULL);
}

/* proves: ADM-1 */
static void test_sites_are_renamed_and_archived(void **state)
{
	struct world *world = *state;
	const char *other = world_text(world_call(world, control_site_create, NULL,
						  "{\"tenantId\":\"%s\",\"name\":\"away\",\"kind\":"
						  "\"custom\"}",
						  world->tenant),
				       "id");

	assert_string_equal(
		world_text(world_call(world, control_site_patch, other, "{\"name\":\"far\"}"),
			   "name"),
		"far");
	world_refused(world, control_site_patch, other, ERROR_CONFLICT, world->site,
		      "{\"name\":\"home\"}");
	world_refused(world, control_site_archive, world->site, ERROR_INVALID_STATE, world->pool,
		      NULL);
	world_call(world, control_pool_archive, world->pool, NULL);
	assert_string_equal(
		world_text(world_call(world, control_site_archive, world->site, NULL), "state"),
		"archived");
	world_refused(world, control_site_patch, world->site, ERROR_INVALID_STATE, "archived",
		      "{\"name\":\"x\"}");
	world_refused(world, control_pool_create, NULL, ERROR_INVALID_STATE, "archived",
		      "{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"p\",\"class\":"
		      "\"metal-host\",\"gpuModel\":\"H100\",\"policy\":{}}",
		      world->tenant, world->site);
}

/* proves: ADM-1 POOL-28 */
static void test_pools_are_renamed_and_archived(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *pool, *reservation;

	pool = world_call(world, control_pool_patch, world->pool,
			  "{\"name\":\"a100\",\"ifVersion\":1}");
	assert_string_equal(world_text(pool, "name"), "a100");
	assert_int_equal(world_int(pool, "version"), 2);
	world_refused(world, control_pool_patch, world->pool, ERROR_CONFLICT, "version 2",
		      "{\"name\":\"b\",\"ifVersion\":1}");
	world_ready(world, &node, 2);
	reservation = world_reserve(world, 1);
	world_refused(world, control_pool_archive, world->pool, ERROR_INVALID_STATE,
		      world_text(reservation, "id"), NULL);
	world_bind(world, &node, world_text(reservation, "allocations.0.id"));
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	/* Pods may still hold its devices. */
	world_refused(world, control_pool_archive, world->pool, ERROR_INVALID_STATE,
		      world_text(reservation, "id"), NULL);
	world_store_spec(world, &node);
	world_released(world, &node, world_text(reservation, "allocations.0.id"));
	world_refused(world, control_pool_archive, world->pool, ERROR_INVALID_STATE, node.id, NULL);
	world_call(world, control_node_retire, node.id, NULL);
	pool = world_call(world, control_pool_archive, world->pool, NULL);
	assert_string_equal(world_text(pool, "state"), "archived");
}

/* --- nodes --- */

/* proves: GW-24 GANG-11 */
static void test_operators_label_nodes(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *answer;

	world_ready(world, &node, 1);
	answer = world_call(world, control_node_patch, node.id,
			    "{\"labels\":{\"example.com/rack\":\"r17\",\"tier\":\"\","
			    "\"bc.dev/topology.rack\":\"r17\"}}");
	assert_string_equal(json_string_value(json_object_get(json_object_get(answer, "labels"),
							      "example.com/rack")),
			    "r17");
	/* Merged: what isn't named stays, null takes away. */
	answer = world_call(world, control_node_patch, node.id,
			    "{\"labels\":{\"tier\":null,\"none\":null,\"bc.dev/topology.rack\":"
			    "\"r18\"}}");
	answer = json_object_get(answer, "labels");
	assert_null(json_object_get(answer, "tier"));
	assert_string_equal(json_string_value(json_object_get(answer, "bc.dev/topology.rack")),
			    "r18");
	assert_string_equal(json_string_value(json_object_get(answer, "example.com/rack")), "r17");
	assert_non_null(json_object_get(answer, "bc.dev/capability.kubernetes-binding"));

	world_refused(world, control_node_patch, node.id, ERROR_INVALID_INPUT, "bc.dev",
		      "{\"labels\":{\"bc.dev/capacity\":\"spot\"}}");
	world_refused(world, control_node_patch, node.id, ERROR_INVALID_INPUT, "kubernetes.io",
		      "{\"labels\":{\"node.kubernetes.io/x\":null}}");
	world_refused(world, control_node_patch, node.id, ERROR_INVALID_INPUT, "labels.-a",
		      "{\"labels\":{\"-a\":\"x\"}}");
	world_refused(world, control_node_patch, node.id, ERROR_INVALID_INPUT, "labels.a",
		      "{\"labels\":{\"a\":\"x y\"}}");
	world_refused(world, control_node_patch, node.id, ERROR_INVALID_INPUT, "labels.a",
		      "{\"labels\":{\"a\":7}}");
	world_refused(world, control_node_patch, node.id, ERROR_INVALID_INPUT, "labels", "{}");
	for (int i = 0; i < CONTROL_MAX_LABELS - 2; i++)
		world_call(world, control_node_patch, node.id, "{\"labels\":{\"l%d\":\"x\"}}", i);
	world_refused(world, control_node_patch, node.id, ERROR_RESOURCES_EXHAUSTED, "at most 64",
		      "{\"labels\":{\"one-more\":\"x\"}}");
}

/* Whoever runs the machine says what it is rented as; the label itself stays the system's.
 * proves: RES-42 */
static void test_operators_say_that_a_node_is_spot(void **state)
{
	static const char label[] = "bc.dev/capacity";
	struct world *world = *state;
	struct world_node node;
	json_t *answer;

	world_ready(world, &node, 2);
	answer = world_call(world, control_node_patch, node.id, "{\"spot\":true}");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(answer, "labels"), label)),
		"spot");
	assert_true(world_int(answer, "spot"));
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "denied");
	world_refused(world, control_node_patch, node.id, ERROR_INVALID_INPUT, "bc.dev",
		      "{\"labels\":{\"bc.dev/capacity\":null}}");
	world_refused(world, control_node_patch, node.id, ERROR_INVALID_INPUT, "spot",
		      "{\"spot\":\"yes\"}");
	answer = world_call(world, control_node_patch, node.id,
			    "{\"spot\":false,\"labels\":{\"tier\":\"a\"}}");
	assert_null(json_object_get(json_object_get(answer, "labels"), label));
	assert_false(world_int(answer, "spot"));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(answer, "labels"), "tier")), "a");
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "placed");
}

static void test_draining_nodes_get_no_new_work(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *reservation;

	world_join(world, &node);
	world_refused(world, control_node_drain, node.id, ERROR_INVALID_STATE, "joining", NULL);
	world_ready(world, &node, 2);
	reservation = world_reserve(world, 1);
	for (int i = 0; i < 2; i++)
		assert_string_equal(
			world_text(world_call(world, control_node_drain, node.id, NULL), "state"),
			"draining");
	assert_int_equal(world_count_events(world, "node.state.changed", node.id), 3);
	assert_string_equal(
		world_text(world_reservation(world, world_text(reservation, "id")), "state"),
		"placed");
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "pending");
	/* Neither a report nor a new stream brings it back. */
	world_inventory(world, &node);
	world_conditions(world, &node, NULL, 0);
	world_hello(world, &node, NULL);
	assert_string_equal(world_text(world_call(world, control_node_get, node.id, NULL), "state"),
			    "draining");
	world_call(world, control_node_undrain, node.id, NULL);
	assert_string_equal(
		world_text(world_call(world, control_node_undrain, node.id, NULL), "state"),
		"ready");
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "placed");
}

/* --- audit --- */

static json_t *audit(struct world *world, struct control_call call)
{
	json_t *answer;
	struct error error;

	if (!call.principal)
		call.principal = &world->operator;
	expect_ok(world_ask(world, control_audit_list, &call, &answer, &error), &error);
	return answer;
}

static size_t count(json_t *answer)
{
	size_t items = json_array_size(json_object_get(answer, "items"));

	json_decref(answer);
	return items;
}

/* proves: ADM-4 */
static void test_audit_tells_who_changed_what(void **state)
{
	struct world *world = *state;
	struct control_principal owner = world_principal(world, world->tenant, "owner");
	struct control_principal user = world_principal(world, world->tenant, "user");
	CLEANUP(json) json_t *rows = NULL;
	json_t *answer;
	struct error error;

	world_call(world, control_pool_patch, world->pool, "{\"name\":\"a\"}");
	world_call(world, control_pool_patch, world->pool, "{\"name\":\"b\"}");
	rows = audit(world, (struct control_call){.object = world->pool});
	assert_int_equal(json_array_size(json_object_get(rows, "items")), 3);
	/* In one moment the order is anybody's; the hashes form a chain all the same. */
	for (int i = 0; i < 3; i++) {
		json_t *row = json_array_get(json_object_get(rows, "items"), (size_t)i);
		bool made = str_equal(world_text(row, "action"), "compute:pools:create");

		assert_string_equal(world_text(row, "keyId"), world->operator.key);
		assert_string_equal(world_text(row, "tenantId"), world->tenant);
		assert_string_equal(world_text(row, "requestId"), "req_test");
		assert_int_equal(world_has(row, "before"), !made);
		for (int j = 0; !made && j < 3; j++) {
			json_t *other = json_array_get(json_object_get(rows, "items"), (size_t)j);

			if (str_equal(world_text(other, "after"), world_text(row, "before")))
				made = true;
		}
		assert_true(made);
	}
	/* What changes nothing, or is refused, isn't there. */
	world_call(world, control_pool_archive, world->pool, NULL);
	world_call(world, control_pool_archive, world->pool, NULL);
	world_refused(world, control_pool_patch, world->pool, ERROR_INVALID_STATE, "archived",
		      "{\"name\":\"c\"}");
	assert_int_equal(count(audit(world, (struct control_call){.object = world->pool})), 4);
	assert_int_equal(count(audit(world, (struct control_call){.object = world->pool,
								  .action = "compute:pools:"
									    "patch"})),
			 2);
	/* Owners see their tenant's rows, users none. */
	assert_int_equal(count(audit(world, (struct control_call){.principal = &owner,
								  .object = world->pool})),
			 4);
	assert_int_equal(
		count(audit(world, (struct control_call){.principal = &owner,
							 .object = world->operator.key})),
		0);
	expect_error(world_ask(world, control_audit_list,
			       &(struct control_call){.principal = &owner,
						      .tenant_id = world->operator.tenant},
			       &answer, &error),
		     &error, ERROR_NOT_FOUND, "tenant");
	expect_error(world_ask(world, control_audit_list,
			       &(struct control_call){.principal = &user}, &answer, &error),
		     &error, ERROR_FORBIDDEN, "audit");
}

static bool unhashed_body(struct store_connection *db, void *argument, struct error *error)
{
	int64_t *ret_count = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT count(*), min(action) FROM audit WHERE after_hash IS NULL AND "
			 "(before_hash IS NULL OR action NOT LIKE '%:delete')",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	*ret_count = store_get_int(&rows, 0, 0);
	if (*ret_count > 0)
		print_error("%s\n", store_get_text(&rows, 0, 1));
	return true;
}

/* proves: ADM-4 */
static void test_each_change_leaves_hashes(void **state)
{
	struct world *world = *state;
	const char *tenant = world->tenant;
	int64_t unhashed;
	const char *id;
	struct error error;

	id = world_text(world_reserve(world, 1), "id");
	world_call(world, control_reservation_patch, id, "{\"duration\":\"2h\"}");
	world_call(world, control_reservation_cancel, id, NULL);
	world_call(world, control_reservation_release, world_text(world_reserve(world, 1), "id"),
		   NULL);
	id = world_text(world_call(world, control_key_create, NULL,
				   "{\"tenantId\":\"%s\",\"role\":\"user\",\"name\":\"k\"}",
				   tenant),
			"id");
	world_call(world, control_key_patch, id, "{\"name\":\"l\"}");
	world_call(world, control_key_rotate, id, NULL);
	world_call(world, control_key_revoke, id, NULL);
	id = world_text(world_call(world, control_quota_create, NULL,
				   "{\"tenantId\":\"%s\",\"maxDevices\":9}", tenant),
			"id");
	world_call(world, control_quota_patch, id, "{\"maxDevices\":8}");
	world_call(world, control_quota_delete, id, NULL);
	id = world_text(world_call(world, control_join_token_create, NULL, "{\"poolId\":\"%s\"}",
				   world->pool),
			"id");
	world_call(world, control_join_token_revoke, id, NULL);
	world_call(world, control_pool_archive, world->pool, NULL);
	expect_ok(
		store_run(world->control.connection, STORE_READ, unhashed_body, &unhashed, &error),
		&error);
	assert_int_equal(unhashed, 0);
}

/* proves: ADM-4 */
static void test_audit_is_narrowed_paged_and_forgotten(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf seen = {0};
	char cursor[128] = "";
	size_t all = 0;

	for (int i = 0; i < 5; i++) {
		database_advance(1000);
		world_call(world, control_tenant_create, NULL, "{\"name\":\"t%d\"}", i);
	}
	do {
		struct control_call call = {.action = "compute:tenants:create",
					    .limit = "2",
					    .cursor = cursor[0] ? cursor : NULL};
		CLEANUP(json) json_t *page = audit(world, call);
		json_t *items = json_object_get(page, "items");

		for (size_t i = 0; i < json_array_size(items); i++, all++) {
			const char *id = world_text(json_array_get(items, i), "id");

			assert_null(strstr(buf_text(&seen), id));
			if (seen.length > 0) /* newest first */
				assert_true(strcmp(id, buf_text(&seen) + seen.length - strlen(id)) <
					    0);
			buf_add_text(&seen, id);
		}
		str_copy(cursor, sizeof cursor,
			 world_has(page, "nextCursor") ? world_text(page, "nextCursor") : "");
	} while (cursor[0]);
	assert_int_equal(all, 6);
	assert_int_equal(
		count(audit(world, (struct control_call){.action = "compute:tenants:create",
							 .from = "2027-01-15T08:00:02Z",
							 .to = "2027-01-15T08:00:04.5Z"})),
		3);
	assert_int_equal(count(audit(world, (struct control_call){.key_id = "key_none"})), 0);
	for (int day = 0; day < 399; day += 57)
		database_advance(57 * DAY_MS);
	world_tick(world);
	assert_true(count(audit(world, (struct control_call){.limit = "1"})) == 1);
	database_advance(2 * DAY_MS);
	world_tick(world);
	assert_int_equal(count(audit(world, (struct control_call){.limit = "1"})), 0);
}

/* proves: ADM-4 */
static void test_audit_tells_where_it_was_asked_from(void **state)
{
	struct world *world = *state;
	json_t *rows;

	world_call(world, control_site_patch, world->site, "{\"name\":\"a\"}");
	rows = audit(world, (struct control_call){.object = world->site, .limit = "1"});
	assert_false(world_has(rows, "items.0.address"));
	json_decref(rows);
	database_advance(1);
	str_copy(world->operator.address, sizeof world->operator.address, "192.0.2.7");
	world_call(world, control_site_patch, world->site, "{\"name\":\"b\"}");
	rows = audit(world, (struct control_call){.object = world->site, .limit = "1"});
	assert_string_equal(world_text(rows, "items.0.address"), "192.0.2.7");
	assert_false(world_has(rows, "items.0.detail"));
	json_decref(rows);
}

/* --- events --- */

static int64_t first_event(struct world *world, int64_t *ret_next)
{
	struct control_call call = {.principal = &world->operator, .after = "0" };
	CLEANUP(json) json_t *answer = NULL;
	struct error error;

	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	*ret_next = world_int(answer, "next");
	return world_has(answer, "items.0") ? world_int(answer, "items.0.seq") : 0;
}

/* proves: OBS-23 */
static void test_events_are_kept_seven_days(void **state)
{
	struct world *world = *state;
	int64_t next, later, end;
	struct error error;

	world_reserve(world, 1);
	assert_int_equal(first_event(world, &next), 1);
	for (int day = 0; day < 6; day++)
		database_advance(DAY_MS);
	world_tick(world);
	assert_int_equal(first_event(world, &next), 1);
	database_advance(2 * DAY_MS);
	world_tick(world);
	assert_int_not_equal(first_event(world, &later), 1);
	/* Numbers go on. */
	assert_true(later >= next);
	expect_ok(control_event_end(&world->control, &end, &error), &error);
	assert_int_equal(end, later);
	world_reserve(world, 1);
	assert_true(first_event(world, &later) > next);
}

/* --- the document --- */

/* The id that a path of this prefix can have here. */
static const char *some_id(struct world *world, const char *prefix)
{
	static int number;

	if (str_equal(prefix, "ten"))
		return world->tenant;
	if (str_equal(prefix, "site"))
		return world->site;
	if (str_equal(prefix, "pool"))
		return world->pool;
	if (str_equal(prefix, "node")) {
		struct world_node node;

		world_ready(world, &node, 1);
		return world_text(world_call(world, control_node_get, node.id, NULL), "id");
	}
	if (str_equal(prefix, "rsv"))
		return world_text(world_reserve(world, 1), "id");
	if (str_equal(prefix, "key"))
		return world_text(world_call(world, control_key_create, NULL,
					     "{\"tenantId\":\"%s\",\"role\":\"viewer\",\"name\":"
					     "\"k%d\"}",
					     world->tenant, number++),
				  "id");
	if (str_equal(prefix, "quo"))
		return world_text(world_call(world, control_quota_create, NULL,
					     "{\"tenantId\":\"%s\",\"maxDevices\":1}",
					     world->tenant),
				  "id");
	if (str_equal(prefix, "sec"))
		return world_text(world_call(world, control_secret_create, NULL,
					     "{\"tenantId\":\"%s\",\"name\":\"s%d\",\"value\":"
					     "\"x\"}",
					     world->tenant, number++),
				  "id");
	fail_msg("say here how to make a %s_", prefix);
	return NULL;
}

static const char *prefix_of(const struct route *route)
{
	for (const struct schema_field *field = schema_type_find(route->answer_type)->fields;
	     field && field->name; field++) {
		if (str_equal(field->name, "id"))
			return field->of;
	}
	fail_msg("%s answers nothing with an id", route->name);
	return NULL;
}

/* The reader lists the fields that it knows when it meets one that it doesn't. */
static void check_known_fields(struct world *world, const struct route *route)
{
	CLEANUP(json) json_t *body = json_pack("{s:b}", "no such field", 1);
	struct control_call call = {.principal = &world->operator, .body = body };
	CLEANUP(buf) struct buf wanted = {0};
	json_t *answer = NULL;
	struct error error = {0};

	if (strstr(route->path, "{id}"))
		call.id = some_id(world, prefix_of(route));
	assert_false(route->call(&world->control, &call, &answer, &error));
	assert_int_equal(error.code, ERROR_INVALID_INPUT);
	for (const struct schema_field *field = schema_type_find(route->request_type)->fields;
	     field->name; field++) {
		char name[80];

		snprintf(name, sizeof name, "%s", field->name);
		if (!strstr(error.hint, name))
			fail_msg("%s: '%s' is in the document, but not known: %s", route->name,
				 field->name, error.hint);
		buf_add_text(&wanted, field->name);
	}
	/* As many letters on both sides: no field is known that the document doesn't have. */
	size_t letters = 0;

	for (const char *c = error.hint + strlen("Known here: "); *c; c++)
		letters += *c != ',' && *c != ' ' && *c != '.';
	if (letters != wanted.length)
		fail_msg("%s knows more than the document: %s", route->name, error.hint);
}

/* proves: POOL-25 */
static void test_bodies_are_read_as_the_document_says(void **state)
{
	struct world *world = *state;
	char key_file[512];
	struct error error;
	void *folder;

	folder_make(&folder);
	str_copy(key_file, sizeof key_file, folder_path(&folder, "secret.key"));
	expect_ok(seal_file_init(key_file, (struct wall){DATABASE_EPOCH_MS}, &error), &error);
	world->control.secret_key_file = key_file;
	for (size_t i = 0; i < ROUTES_COUNT; i++) {
		if (ROUTES[i].request_type)
			check_known_fields(world, &ROUTES[i]);
	}
	folder_remove(&folder);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_a_taken_name_is_a_field),
		WORLD_TEST(test_tenants_are_renamed_and_archived),
		WORLD_TEST(test_sites_are_renamed_and_archived),
		WORLD_TEST(test_pools_are_renamed_and_archived),
		WORLD_TEST(test_operators_label_nodes),
		WORLD_TEST(test_operators_say_that_a_node_is_spot),
		WORLD_TEST(test_draining_nodes_get_no_new_work),
		WORLD_TEST(test_audit_tells_who_changed_what),
		WORLD_TEST(test_each_change_leaves_hashes),
		WORLD_TEST(test_audit_is_narrowed_paged_and_forgotten),
		WORLD_TEST(test_audit_tells_where_it_was_asked_from),
		WORLD_TEST(test_events_are_kept_seven_days),
		WORLD_TEST(test_bodies_are_read_as_the_document_says),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
