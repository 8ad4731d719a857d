/* Secrets: written and never read back, given to the nodes that may have them, sealed anew. */
#include "unit/control/world.h"

#include "lib/folder.h"
#include "pki/seal.h"

#include <stdio.h>
#include <sys/stat.h>

#define VALUE "hunter2-\\n-abcdefgh" /* as JSON */
#define PLAIN "hunter2-\n-abcdefgh"
#define CA    "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void *key_folder;
static char key_file[512];

static int setup(void **state)
{
	struct world *world;
	struct error error;

	if (folder_make(&key_folder) != 0 || world_setup(state) != 0)
		return -1;
	world = *state;
	str_copy(key_file, sizeof key_file, folder_path(&key_folder, "secret.key"));
	expect_ok(seal_file_init(key_file, (struct wall){DATABASE_EPOCH_MS}, &error), &error);
	world->control.secret_key_file = key_file;
	return 0;
}

static int teardown(void **state)
{
	return world_teardown(state) | folder_remove(&key_folder);
}

#define SECRET_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static json_t *make(struct world *world, const char *name, const char *more)
{
	return world_call(world, control_secret_create, NULL,
			  "{\"tenantId\":\"%s\",\"name\":\"%s\",\"value\":\"" VALUE "\"%s}",
			  world->tenant, name, more);
}

/* --- nobody reads it back --- */

struct grep {
	const char *sql;
	bool found;
};

static bool grep_body(struct store_connection *db, void *argument, struct error *error)
{
	struct grep *grep = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, grep->sql, STORE_NO_PARAMS, &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		for (size_t j = 0; j < rows.columns; j++) {
			const char *text = store_get_text(&rows, i, j);

			grep->found |= text && strstr(text, "hunter2");
		}
	}
	return true;
}

static void expect_nowhere(struct world *world, const json_t *answer)
{
	static const char *const tables[] = {
		"SELECT id, name, sealed, sealed_by FROM secrets",
		"SELECT action, object, detail FROM audit",
		"SELECT idempotency_key, input_hash, object FROM idempotency",
		"SELECT type, subject, data FROM events",
	};
	char *text = json_dumps(answer, 0);
	struct error error;

	assert_null(strstr(text, "hunter2"));
	free(text);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		struct grep grep = {tables[i], false};

		expect_ok(
			store_run(world->control.connection, STORE_READ, grep_body, &grep, &error),
			&error);
		assert_false(grep.found);
	}
}

/* proves: POOL-24 POOL-5 POOL-6 */
static void test_a_value_is_written_and_never_read(void **state)
{
	struct world *world = *state;
	json_t *secret, *again;
	char reference[128];

	secret = make(world, "k8s", ",\"idempotencyKey\":\"s\"");
	snprintf(reference, sizeof reference, "secret://%s/%s", world->tenant,
		 world_text(secret, "id"));
	assert_string_equal(world_text(secret, "reference"), reference);
	assert_true(str_starts(world_text(secret, "id"), "sec_"));
	assert_int_equal(world_int(secret, "version"), 1);
	assert_false(world_has(secret, "value"));
	expect_nowhere(world, secret);
	again = make(world, "k8s", ",\"idempotencyKey\":\"s\"");
	assert_string_equal(world_text(again, "id"), world_text(secret, "id"));
	world_refused(world, control_secret_create, NULL, ERROR_CONFLICT, "idempotency key",
		      "{\"tenantId\":\"%s\",\"name\":\"k8s\",\"value\":\"hunter2-other\","
		      "\"idempotencyKey\":\"s\"}",
		      world->tenant);
	world_refused(world, control_secret_create, NULL, ERROR_CONFLICT, "exists already",
		      "{\"tenantId\":\"%s\",\"name\":\"k8s\",\"value\":\"hunter2\"}",
		      world->tenant);
	again = world_call(world, control_secret_patch, world_text(secret, "id"),
			   "{\"value\":\"hunter2-new\",\"name\":\"cluster\"}");
	assert_int_equal(world_int(again, "version"), 2);
	assert_string_equal(world_text(again, "name"), "cluster");
	expect_nowhere(world, again);
	expect_nowhere(world, world_call(world, control_secret_list, NULL, NULL));
	expect_nowhere(world,
		       world_call(world, control_secret_get, world_text(secret, "id"), NULL));
	expect_nowhere(world,
		       world_call(world, control_secret_delete, world_text(secret, "id"), NULL));
	world_refused(world, control_secret_get, world_text(secret, "id"), ERROR_NOT_FOUND,
		      "secret", NULL);
}

/* Whatever is wrong, the message doesn't hold the value. proves: POOL-24 */
static void test_refusals_do_not_tell_the_value(void **state)
{
	static const char *const bodies[] = {
		"{\"name\":\"Bad Name\",\"value\":\"hunter2\"}",
		"{\"name\":\"x\",\"value\":\"\"}",
		"{\"name\":\"x\",\"value\":[\"hunter2\"]}",
		"{\"name\":\"x\",\"value\":\"hunter2\",\"more\":\"hunter2\"}",
		"{\"name\":\"x\"}",
	};
	struct world *world = *state;
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		struct control_call call = {.principal = &world->operator};
		json_t *answer, *body;

		body = json_loads(bodies[i], 0, NULL);
		json_object_set_new(body, "tenantId", json_string(world->tenant));
		call.body = body;
		expect_error(world_ask(world, control_secret_create, &call, &answer, &error),
			     &error, ERROR_INVALID_INPUT, "");
		assert_null(strstr(error.what, "hunter2"));
		assert_null(strstr(error.hint, "hunter2"));
		json_decref(body);
	}
}

/* Without a key file, or with one that others may read, nothing is stored. proves: POOL-24 */
static void test_without_a_key_nothing_is_kept(void **state)
{
	struct world *world = *state;
	json_t *secret = make(world, "one", "");

	world->control.secret_key_file = NULL;
	world_refused(world, control_secret_create, NULL, ERROR_INVALID_STATE, "keeps no secrets",
		      "{\"tenantId\":\"%s\",\"name\":\"two\",\"value\":\"x\"}", world->tenant);
	world_refused(world, control_secret_patch, world_text(secret, "id"), ERROR_INVALID_STATE,
		      "keeps no secrets", "{\"value\":\"x\"}");
	world->control.secret_key_file = key_file;
	assert_int_equal(chmod(key_file, 0644), 0);
	world_refused(world, control_secret_create, NULL, ERROR_UNAVAILABLE, "secret key file",
		      "{\"tenantId\":\"%s\",\"name\":\"two\",\"value\":\"x\"}", world->tenant);
}

/* proves: POOL-4 */
static void test_secrets_are_their_tenants(void **state)
{
	struct world *world = *state;
	json_t *secret = make(world, "one", ""), *answer, *tenant;
	struct control_principal user = world_principal(world, world->tenant, "user"), other;
	struct control_call call = {.principal = &user, .id = world_text(secret, "id")};
	struct error error;

	expect_error(world_ask(world, control_secret_get, &call, &answer, &error), &error,
		     ERROR_FORBIDDEN, "compute:secrets:read");
	tenant = world_call(world, control_tenant_create, NULL, "{\"name\":\"other\"}");
	other = world_principal(world, world_text(tenant, "id"), "owner");
	call.principal = &other;
	expect_error(world_ask(world, control_secret_get, &call, &answer, &error), &error,
		     ERROR_NOT_FOUND, "secret");
	expect_error(world_ask(world, control_secret_delete, &call, &answer, &error), &error,
		     ERROR_NOT_FOUND, "secret");
}

/* --- the broker --- */

static void name_in_pool(struct world *world, const char *pool, const char *reference)
{
	world_call(world, control_pool_patch, pool,
		   "{\"policy\":{\"kubernetes\":{\"apiServer\":\"https://k8s.example.com:6443\","
		   "\"caCertSha256\":\"" CA "\",\"joinTokenRef\":\"%s\"}}}",
		   reference);
}

/* Asks as the node; the value, or "" when it was refused for a reason that holds `why`. */
static void ask(struct world *world, const struct world_node *node, bool tenants_certificate,
		const char *reference, const char *allocation, const char *why)
{
	const struct control_secret_request request = {
		.node = node->id,
		.epoch = node->epoch,
		.tenants_certificate = tenants_certificate,
		.reference = reference,
		.allocation = allocation,
	};
	struct control_secret secret = {0};
	struct error error;

	expect_ok(control_secret_give(&world->control, &request, &secret, &error), &error);
	if (why) {
		if (!secret.refusal)
			fail_msg("it was given");
		assert_non_null(strstr(secret.refusal, why));
		assert_int_equal(secret.value.length, 0);
	} else {
		if (secret.refusal)
			fail_msg("%s", secret.refusal);
		assert_string_equal(buf_text(&secret.value), PLAIN);
	}
	control_secret_deinit(&secret);
}

/* proves: RES-23 JOIN-22 JOIN-29 */
static void test_only_a_trusted_node_whose_pool_names_it_gets_it(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *secret = make(world, "k8s", ""), *reservation;
	const char *reference = world_text(secret, "reference"), *allocation;
	struct error error;

	world_ready(world, &node, 2);
	ask(world, &node, false, reference, "", "names no such secret");
	name_in_pool(world, world->pool, reference);
	ask(world, &node, false, reference, "", NULL);
	/* A node-tenant's certificate gets nothing, whatever the database says of the node. */
	ask(world, &node, true, reference, "", "tenant's node");
	ask(world, &node, false, "secret://ten_x/sec_y", "", "names no such secret");
	ask(world, &node, false, "", "", "names no such secret");
	/* What a pool refers to can't be deleted. */
	world_refused(world, control_secret_delete, world_text(secret, "id"), ERROR_INVALID_STATE,
		      world->pool, NULL);

	/* On behalf of an allocation: while it has it, and not once it is releasing. */
	reservation = world_reserve(world, 1);
	allocation = world_text(reservation, "allocations.0.id");
	ask(world, &node, false, reference, "alc_unknown", "not on this node");
	world_bind(world, &node, allocation);
	ask(world, &node, false, reference, allocation, NULL);
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	ask(world, &node, false, reference, allocation, "being released");
	world_store_spec(world, &node);
	world_released(world, &node, allocation);
	ask(world, &node, false, reference, allocation, "being released");

	/* A stream that was replaced has no say, and a lost node none at all. */
	node.epoch--;
	expect_error(control_secret_give(&world->control,
					 &(struct control_secret_request){.node = node.id,
									  .epoch = node.epoch,
									  .reference = reference,
									  .allocation = ""},
					 &(struct control_secret){0}, &error),
		     &error, ERROR_CONFLICT, "");
}

/* A secret of another tenant can't be had by naming it. proves: POOL-24 */
static void test_another_tenants_secret_is_not_given(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *tenant, *secret;

	tenant = world_call(world, control_tenant_create, NULL, "{\"name\":\"other\"}");
	secret = world_call(world, control_secret_create, NULL,
			    "{\"tenantId\":\"%s\",\"name\":\"k8s\",\"value\":\"" VALUE "\"}",
			    world_text(tenant, "id"));
	world_ready(world, &node, 1);
	name_in_pool(world, world->pool, world_text(secret, "reference"));
	ask(world, &node, false, world_text(secret, "reference"), "", "names no such secret");
}

/* --- a newer key --- */

/* proves: POOL-24 */
static void test_a_new_key_seals_everything_anew(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *secret = make(world, "k8s", "");
	const char *id = world_text(secret, "id");
	struct seal_keys *keys;
	struct control other;
	bool leads;
	struct error error;

	world_ready(world, &node, 1);
	name_in_pool(world, world->pool, world_text(secret, "reference"));
	expect_ok(seal_file_rotate(key_file, (struct wall){DATABASE_EPOCH_MS}, &error), &error);
	ask(world, &node, false, world_text(secret, "reference"), "", NULL);
	expect_ok(seal_keys_load(key_file, &keys, &error), &error);
	/* It is the leader's to do. */
	world_connect(world, "replica-2", &other);
	expect_ok(control_lead(&other, &leads, &error), &error);
	assert_true(leads);
	expect_ok(control_secrets_reseal(&world->control, &error), &error);
	secret = world_call(world, control_secret_get, id, NULL);
	assert_string_equal(world_text(secret, "sealedBy"), seal_keys_id(keys, 1));
	expect_ok(control_resign(&other, &error), &error);
	world_disconnect(&other);
	expect_ok(control_secrets_reseal(&world->control, &error), &error);
	secret = world_call(world, control_secret_get, id, NULL);
	assert_string_equal(world_text(secret, "sealedBy"), seal_keys_id(keys, 0));
	assert_int_equal(world_int(secret, "version"), 1);
	seal_keys_destroy(keys);
	/* The old one may go. */
	expect_ok(seal_file_drop_old(key_file, &error), &error);
	ask(world, &node, false, world_text(secret, "reference"), "", NULL);
	expect_ok(control_secrets_reseal(&world->control, &error), &error);
	/* One that went too soon takes nothing else down. */
	expect_ok(seal_file_rotate(key_file, (struct wall){DATABASE_EPOCH_MS}, &error), &error);
	expect_ok(seal_file_drop_old(key_file, &error), &error);
	ask(world, &node, false, world_text(secret, "reference"), "", "can't be opened");
	expect_ok(control_secrets_reseal(&world->control, &error), &error);
	world_call(world, control_secret_patch, id, "{\"value\":\"" VALUE "\"}");
	ask(world, &node, false, world_text(secret, "reference"), "", NULL);
}

struct loss {
	int64_t lost;
	const char *kept;
};

static bool lose_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct loss *loss = argument;

	for (int64_t i = 0; i < loss->lost; i++) {
		char id[ID_SIZE];

		snprintf(id, sizeof id, "sec_%026d", (int)i);
		if (!store_exec(
			    db,
			    "INSERT INTO secrets (id, tenant, name, sealed_by, sealed, version, "
			    "created_ms, changed_ms) SELECT $2, tenant, $2, 'sek_gone', sealed, "
			    "1, created_ms, changed_ms FROM secrets WHERE id = $1",
			    STORE_PARAMS(store_text(loss->kept), store_text(id)), error))
			return false;
	}
	return true;
}

/* Secrets that nothing opens any more don't keep others under an old key. proves: POOL-24 */
static void test_what_is_lost_is_in_nobodys_way(void **state)
{
	struct world *world = *state;
	const char *id = world_text(make(world, "k8s", ""), "id");
	struct loss loss = {.lost = 150, .kept = id};
	struct seal_keys *keys;
	struct error error;

	expect_ok(store_run(world->control.connection, STORE_WRITE, lose_body, &loss, &error),
		  &error);
	expect_ok(seal_file_rotate(key_file, (struct wall){DATABASE_EPOCH_MS}, &error), &error);
	expect_ok(control_secrets_reseal(&world->control, &error), &error);
	expect_ok(seal_keys_load(key_file, &keys, &error), &error);
	assert_string_equal(world_text(world_call(world, control_secret_get, id, NULL), "sealedBy"),
			    seal_keys_id(keys, 0));
	seal_keys_destroy(keys);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SECRET_TEST(test_a_value_is_written_and_never_read),
		SECRET_TEST(test_refusals_do_not_tell_the_value),
		SECRET_TEST(test_without_a_key_nothing_is_kept),
		SECRET_TEST(test_secrets_are_their_tenants),
		SECRET_TEST(test_only_a_trusted_node_whose_pool_names_it_gets_it),
		SECRET_TEST(test_another_tenants_secret_is_not_given),
		SECRET_TEST(test_a_new_key_seals_everything_anew),
		SECRET_TEST(test_what_is_lost_is_in_nobodys_way),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
