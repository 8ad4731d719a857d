/* Join tokens, who they let in, and as what. */
#include "unit/control/world.h"

#include <pthread.h>
#include <stdio.h>

#define MINUTE_MS ((int64_t)60 * 1000)

struct issued {
	enum control_trust trust;
	int times;
	bool fail;
};

static bool issue(void *context, const char *node_id, enum control_trust trust,
		  struct wall now UNUSED, char **ret_certificate, struct error *error)
{
	struct issued *issued = context;

	issued->trust = trust;
	issued->times++;
	if (issued->fail)
		return error_set(error, ERROR_INTERNAL, "the CA's key can't be read");
	*ret_certificate = mem_strdup(node_id);
	return true;
}

static bool known; /* the last token, as a whole */

static bool join(struct control *control, const char *token, const char *key, const char *smbios,
		 struct control_joined *ret_joined, struct error *error)
{
	struct issued issued = {0};
	struct control_join_request request = {.token = token,
					       .machine_key = key,
					       .smbios_uuid = smbios,
					       .hostname = "machine",
					       .boot_id = "boot",
					       .issue = issue,
					       .issue_context = &issued,
					       .ret_known = &known};

	return control_join(control, &request, ret_joined, error);
}

static void expect_join(struct world *world, const char *token, const char *key, bool rejoined,
			enum control_trust trust)
{
	struct control_joined joined;
	struct error error;

	expect_ok(join(&world->control, token, key, NULL, &joined, &error), &error);
	assert_int_equal(joined.rejoined, rejoined);
	assert_int_equal(joined.trust, trust);
	assert_string_equal(joined.certificate, joined.node);
	assert_true(known);
	control_joined_deinit(&joined);
}

static void expect_refused(struct world *world, const char *token, const char *key,
			   enum error_code code, const char *text)
{
	struct control_joined joined;
	struct error error;

	expect_error(join(&world->control, token, key, NULL, &joined, &error), &error, code, text);
	assert_null(strstr(error.what, token[0] ? token : "\1"));
	/* Who hasn't all of it is a guesser. */
	assert_int_equal(known, strstr(error.what, "token is unknown") == NULL);
}

static json_t *make_token(struct world *world, const char *more)
{
	return world_call(world, control_join_token_create, NULL, "{\"poolId\":\"%s\"%s}",
			  world->pool, more);
}

/* proves: JOIN-1 JOIN-2 JOIN-4 JOIN-36 */
static void test_token_admits_its_number_and_no_more(void **state)
{
	struct world *world = *state;
	json_t *token = make_token(world, ",\"maxUses\":2,\"ttl\":\"1h\"");
	const char *text = world_text(token, "token"), *id = world_text(token, "id");

	assert_true(str_starts(text, "bcj1_jt_"));
	assert_string_equal(world_text(token, "state"), "live");
	assert_string_equal(world_text(token, "expiresAt"), "2027-01-15T09:00:00.000Z");
	expect_join(world, text, "sha256/a", false, CONTROL_TRUST_TENANT_OWNED);
	expect_join(world, text, "sha256/b", false, CONTROL_TRUST_TENANT_OWNED);
	expect_refused(world, text, "sha256/c", ERROR_UNAUTHENTICATED, "used up (2 of 2)");
	token = world_call(world, control_join_token_get, id, NULL);
	assert_string_equal(world_text(token, "state"), "used-up");
	assert_int_equal(world_int(token, "uses"), 2);
	assert_false(world_has(token, "token"));
	assert_false(
		world_has(world_call(world, control_join_token_list, NULL, NULL), "items.0.token"));
	/* By default one use, within a day. */
	token = make_token(world, "");
	assert_int_equal(world_int(token, "maxUses"), 1);
	assert_string_equal(world_text(token, "expiresAt"), "2027-01-16T08:00:00.000Z");
}

/* proves: JOIN-2 JOIN-4 */
static void test_each_refusal_has_its_reason(void **state)
{
	struct world *world = *state;
	const char *text, *id;
	json_t *token = make_token(world, ",\"ttl\":\"1m\",\"maxUses\":9");
	char wrong[160];

	text = world_text(token, "token");
	id = world_text(token, "id");
	/* Whoever lacks the secret learns nothing, whatever the token's state is. */
	str_copy(wrong, sizeof wrong, text);
	wrong[strlen(wrong) - 1] = wrong[strlen(wrong) - 1] == 'A' ? 'E' : 'A';
	expect_refused(world, wrong, "sha256/x", ERROR_UNAUTHENTICATED, "unknown");
	database_advance(MINUTE_MS - 1);
	expect_join(world, text, "sha256/a", false, CONTROL_TRUST_TENANT_OWNED);
	database_advance(1);
	expect_refused(world, text, "sha256/b", ERROR_UNAUTHENTICATED, "expired");
	expect_refused(world, text, "sha256/a", ERROR_UNAUTHENTICATED, "expired");
	expect_refused(world, wrong, "sha256/x", ERROR_UNAUTHENTICATED, "unknown");
	world_call(world, control_join_token_revoke, id, NULL);
	expect_refused(world, text, "sha256/b", ERROR_UNAUTHENTICATED, "revoked");
	assert_string_equal(
		world_text(world_call(world, control_join_token_revoke, id, NULL), "state"),
		"revoked");
	/* The node that joined is not affected. */
	json_t *nodes = world_call(world, control_node_list, NULL, NULL);

	assert_int_equal(json_array_size(json_object_get(nodes, "items")), 1);
	assert_string_equal(world_text(nodes, "items.0.state"), "joining");
}

static void test_what_is_no_token_is_refused(void **state)
{
	struct world *world = *state;
	json_t *token = make_token(world, "");
	const char *text = world_text(token, "token");
	char *large = mem_alloc((size_t)1 << 20);
	char changed[160];

	memset(large, 'a', ((size_t)1 << 20) - 1);
	expect_refused(world, large, "sha256/a", ERROR_UNAUTHENTICATED, "unknown");
	free(large);
	expect_refused(world, "", "sha256/a", ERROR_UNAUTHENTICATED, "unknown");
	expect_refused(world, "bcj1_", "sha256/a", ERROR_UNAUTHENTICATED, "unknown");
	snprintf(changed, sizeof changed, "%s\n", text);
	expect_refused(world, changed, "sha256/a", ERROR_UNAUTHENTICATED, "unknown");
	snprintf(changed, sizeof changed, "BCJ1%s", text + 4);
	expect_refused(world, changed, "sha256/a", ERROR_UNAUTHENTICATED, "unknown");
	expect_join(world, text, "sha256/a", false, CONTROL_TRUST_TENANT_OWNED);
}

/* proves: JOIN-5 JOIN-40 */
static void test_same_key_joins_again_without_a_use(void **state)
{
	struct world *world = *state;
	json_t *token = make_token(world, "");
	const char *text = world_text(token, "token"), *id = world_text(token, "id");
	struct control_joined first, again;
	struct error error;

	expect_ok(join(&world->control, text, "sha256/a", "uuid-1", &first, &error), &error);
	expect_ok(join(&world->control, text, "sha256/a", "uuid-1", &again, &error), &error);
	assert_string_equal(first.node, again.node);
	assert_true(again.rejoined && !first.rejoined);
	control_joined_deinit(&first);
	control_joined_deinit(&again);
	assert_int_equal(world_int(world_call(world, control_join_token_get, id, NULL), "uses"), 1);
	/* A new key is a new machine, a key on another machine was copied. */
	expect_refused(world, text, "sha256/b", ERROR_UNAUTHENTICATED, "used up");
	expect_error(join(&world->control, text, "sha256/a", "uuid-2", &again, &error), &error,
		     ERROR_CONFLICT, "another machine");
	/* Retired, the key is a stranger's. */
	const char *node =
		world_text(world_call(world, control_node_list, NULL, NULL), "items.0.id");

	world_call(world, control_node_retire, node, NULL);
	expect_refused(world, text, "sha256/a", ERROR_UNAUTHENTICATED, "used up");
	text = world_text(make_token(world, ""), "token");
	expect_join(world, text, "sha256/a", false, CONTROL_TRUST_TENANT_OWNED);
}

static void test_use_is_spent_only_with_a_certificate(void **state)
{
	struct world *world = *state;
	json_t *token = make_token(world, "");
	struct issued issued = {.fail = true};
	struct control_join_request request = {.token = world_text(token, "token"),
					       .machine_key = "sha256/a",
					       .hostname = "machine",
					       .boot_id = "boot",
					       .issue = issue,
					       .issue_context = &issued};
	struct control_joined joined;
	struct error error;

	expect_error(control_join(&world->control, &request, &joined, &error), &error,
		     ERROR_INTERNAL, "the CA's key");
	assert_int_equal(
		world_int(world_call(world, control_join_token_get, world_text(token, "id"), NULL),
			  "uses"),
		0);
	assert_false(world_has(world_call(world, control_node_list, NULL, NULL), "items.0"));
	request.hostname = "bad\xff";
	issued.fail = false;
	expect_error(control_join(&world->control, &request, &joined, &error), &error,
		     ERROR_INVALID_INPUT, "UTF-8");
}

/* proves: JOIN-21 JOIN-23 JOIN-24 JOIN-25 JOIN-26 POOL-19 */
static void test_token_and_pool_decide_about_trust(void **state)
{
	struct world *world = *state;
	char custom_pool[ID_SIZE];
	json_t *site, *pool;
	const char *plain, *hosted;

	/* On a tenant's own site a hosted token lowers nothing. */
	hosted = world_text(make_token(world, ",\"hosted\":\"kubernetes\""), "token");
	expect_join(world, hosted, "sha256/own", false, CONTROL_TRUST_TENANT_OWNED);

	str_copy(custom_pool, ID_SIZE, world->pool);
	site = world_call(world, control_site_create, NULL,
			  "{\"tenantId\":\"%s\",\"name\":\"dc\",\"kind\":\"platform\"}",
			  world->operator.tenant);
	/* A tenant's pool on the platform's site; its own platformOperated gains it nothing. */
	pool = world_call(world, control_pool_create, NULL,
			  "{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"rented\",\"class\":"
			  "\"metal-host\",\"gpuModel\":\"H100\",\"policy\":{\"kubernetes\":{"
			  "\"platformOperated\":true}}}",
			  world->tenant, world_text(site, "id"));
	str_copy(world->pool, ID_SIZE, world_text(pool, "id"));
	plain = world_text(make_token(world, ",\"maxUses\":9"), "token");
	hosted = world_text(make_token(world, ",\"hosted\":\"kubernetes\""), "token");
	expect_join(world, plain, "sha256/p1", false, CONTROL_TRUST_PLATFORM);
	expect_join(world, hosted, "sha256/h1", false, CONTROL_TRUST_TENANT_CONTROLLED);
	/* Reclaimed by a hosted token, a platform's node is lowered, and stays so. */
	expect_join(world, hosted, "sha256/p1", true, CONTROL_TRUST_TENANT_CONTROLLED);
	expect_join(world, plain, "sha256/p1", true, CONTROL_TRUST_TENANT_CONTROLLED);
	/* The same machine isn't let into another pool by the way. */
	str_copy(world->pool, ID_SIZE, custom_pool);
	expect_refused(world, world_text(make_token(world, ""), "token"), "sha256/p1",
		       ERROR_CONFLICT, "another pool");

	/* The platform's own pool on its own site. */
	pool = world_call(world, control_pool_create, NULL,
			  "{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"ours\",\"class\":"
			  "\"metal-host\",\"gpuModel\":\"H100\",\"policy\":{\"kubernetes\":{"
			  "\"platformOperated\":true}}}",
			  world->operator.tenant, world_text(site, "id"));
	str_copy(world->pool, ID_SIZE, world_text(pool, "id"));
	hosted = world_text(make_token(world, ",\"hosted\":\"kubernetes\""), "token");
	expect_join(world, hosted, "sha256/o1", false, CONTROL_TRUST_PLATFORM);
}

/* RES-15: what the tenant controls adds no capacity, and its conditions are advice.
 * proves: RES-15 GW-7 */
static void test_tenant_controlled_node_adds_nothing(void **state)
{
	struct world *world = *state;
	struct control_condition condition = {"ForeignGpuExposure", "OtherGpuPath", "", {1}};
	struct world_node node;
	struct control_joined joined;
	struct error error;
	json_t *site, *pool, *reservation, *seen;

	site = world_call(world, control_site_create, NULL,
			  "{\"tenantId\":\"%s\",\"name\":\"dc\",\"kind\":\"platform\"}",
			  world->operator.tenant);
	pool = world_call(world, control_pool_create, NULL,
			  "{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"rented\",\"class\":"
			  "\"metal-host\",\"gpuModel\":\"H100\",\"policy\":{}}",
			  world->tenant, world_text(site, "id"));
	str_copy(world->pool, ID_SIZE, world_text(pool, "id"));
	world_ready(world, &node, 2);
	assert_int_equal(
		world_int(world_call(world, control_capacity_get, NULL, NULL), "items.0.free"), 2);
	expect_ok(join(&world->control,
		       world_text(make_token(world, ",\"hosted\":\"kubernetes\""), "token"),
		       node.machine_key, NULL, &joined, &error),
		  &error);
	control_joined_deinit(&joined);
	assert_false(world_has(world_call(world, control_capacity_get, NULL, NULL), "items.0"));
	reservation = world_reserve(world, 1);
	assert_string_equal(world_text(reservation, "reasons.0.reason"), "TenantControlled");
	world_conditions(world, &node, &condition, 1);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "conditions.0.type"), "ForeignGpuExposure");
	assert_false(world_int(seen, "conditions.0.noSchedule"));
}

/* --- races --- */

#define RACERS 8
#define USES   5

struct racer {
	pthread_t thread;
	struct store *store;
	struct control control;
	const char *token;
	char key[32];
	bool joined, broken;
};

static void *race(void *argument)
{
	struct racer *racer = argument;
	struct control_joined joined;
	struct error error;

	racer->joined = join(&racer->control, racer->token, racer->key, NULL, &joined, &error);
	if (racer->joined)
		control_joined_deinit(&joined);
	else
		racer->broken =
			error.code != ERROR_UNAUTHENTICATED || !strstr(error.what, "used up");
	return NULL;
}

/* Eight machines race for five uses over two replicas, several times.
 * proves: JOIN-35 JOIN-4 */
static void test_race_for_the_last_use_has_exactly_its_winners(void **state)
{
	struct world *world = *state;
	struct store *second = world->store;
	struct error error;

	/* SQLite knows one process; its replicas are two workers. */
	if (database_is_postgres())
		expect_ok(store_open(database_url(), &second, &error), &error);
	for (int round = 0; round < 6; round++) {
		json_t *token = make_token(world, ",\"maxUses\":5");
		struct racer racers[RACERS];
		int joined = 0;

		for (int i = 0; i < RACERS; i++) {
			struct racer *racer = &racers[i];

			*racer = (struct racer){.store = i % 2 ? second : world->store,
						.token = world_text(token, "token")};
			snprintf(racer->key, sizeof racer->key, "sha256/%d-%d", round, i);
			snprintf(racer->control.replica, sizeof racer->control.replica, "r%d",
				 i % 2);
			expect_ok(store_connect(racer->store, &racer->control.connection, &error),
				  &error);
		}
		for (int i = 0; i < RACERS; i++)
			pthread_create(&racers[i].thread, NULL, race, &racers[i]);
		for (int i = 0; i < RACERS; i++) {
			pthread_join(racers[i].thread, NULL);
			joined += racers[i].joined;
			assert_false(racers[i].broken);
			world_disconnect(&racers[i].control);
		}
		assert_int_equal(joined, USES);
		assert_int_equal(world_int(world_call(world, control_join_token_get,
						      world_text(token, "id"), NULL),
					   "uses"),
				 USES);
	}
	if (second != world->store)
		store_destroy(second);
}

/* The same machine, twice at once: one node, one use. */
static void test_one_machine_racing_itself_is_one_node(void **state)
{
	struct world *world = *state;
	json_t *token = make_token(world, ",\"maxUses\":5");
	struct racer racers[2];

	for (int i = 0; i < 2; i++) {
		racers[i] = (struct racer){.token = world_text(token, "token"), .key = "sha256/me"};
		world_connect(world, "r", &racers[i].control);
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&racers[i].thread, NULL, race, &racers[i]);
	for (int i = 0; i < 2; i++) {
		pthread_join(racers[i].thread, NULL);
		assert_true(racers[i].joined);
		world_disconnect(&racers[i].control);
	}
	assert_int_equal(
		world_int(world_call(world, control_join_token_get, world_text(token, "id"), NULL),
			  "uses"),
		1);
}

/* proves: JOIN-3 JOIN-36 POOL-6 */
static void test_token_input_is_checked(void **state)
{
	struct world *world = *state;
	json_t *token;

	world_refused(world, control_join_token_create, NULL, ERROR_INVALID_INPUT, "ttl",
		      "{\"poolId\":\"%s\",\"ttl\":\"59s\"}", world->pool);
	world_refused(world, control_join_token_create, NULL, ERROR_INVALID_INPUT, "ttl",
		      "{\"poolId\":\"%s\",\"ttl\":\"25h\"}", world->pool);
	world_refused(world, control_join_token_create, NULL, ERROR_INVALID_INPUT, "maxUses",
		      "{\"poolId\":\"%s\",\"maxUses\":0}", world->pool);
	world_refused(world, control_join_token_create, NULL, ERROR_INVALID_INPUT, "maxUses",
		      "{\"poolId\":\"%s\",\"maxUses\":10001}", world->pool);
	world_refused(world, control_join_token_create, NULL, ERROR_INVALID_INPUT, "hosted",
		      "{\"poolId\":\"%s\",\"hosted\":\"nomad\"}", world->pool);
	token = make_token(world, ",\"hosted\":\"kubernetes\",\"idempotencyKey\":\"k\"");
	world_refused(world, control_join_token_create, NULL, ERROR_CONFLICT,
		      world_text(token, "id"), "{\"poolId\":\"%s\",\"idempotencyKey\":\"k\"}",
		      world->pool);
	/* The same input again: the same token, whose secret was shown once. */
	json_t *again = make_token(world, ",\"idempotencyKey\":\"k\",\"hosted\":\"kubernetes\"");

	assert_string_equal(world_text(again, "id"), world_text(token, "id"));
	assert_false(world_has(again, "token"));
	world_call(world, control_pool_archive, world->pool, NULL);
	world_refused(world, control_join_token_create, NULL, ERROR_INVALID_STATE, "archived",
		      "{\"poolId\":\"%s\"}", world->pool);
	expect_refused(world, world_text(token, "token"), "sha256/z", ERROR_INVALID_STATE,
		       "archived");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_token_admits_its_number_and_no_more),
		WORLD_TEST(test_each_refusal_has_its_reason),
		WORLD_TEST(test_what_is_no_token_is_refused),
		WORLD_TEST(test_same_key_joins_again_without_a_use),
		WORLD_TEST(test_use_is_spent_only_with_a_certificate),
		WORLD_TEST(test_token_and_pool_decide_about_trust),
		WORLD_TEST(test_tenant_controlled_node_adds_nothing),
		WORLD_TEST(test_race_for_the_last_use_has_exactly_its_winners),
		WORLD_TEST(test_one_machine_racing_itself_is_one_node),
		WORLD_TEST(test_token_input_is_checked),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
