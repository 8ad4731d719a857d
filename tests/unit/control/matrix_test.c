/*
 * Who may call what: every route with the key of every role, of its own tenant and of another one,
 * against a matrix that is written down here and nowhere else.
 */
#include "unit/control/world.h"

#include "base/buf.h"
#include "lib/folder.h"
#include "pki/seal.h"
#include "serve/routes.h"

#include <stdio.h>

/* What a key of another tenant, of the role that the call needs, is told. */
enum foreign {
	SAME,   /* as at home: nothing of any tenant is in it */
	EMPTY,  /* done, and nothing of ours is in it */
	HIDDEN, /* NOT_FOUND, as if there were none */
	BARRED, /* FORBIDDEN */
};

struct row {
	const char *route;
	const char *least; /* the least role that may */
	enum foreign foreign;
	const char *body; /* $tenant, $site, $pool: the world's; $n: a number of its own */
};

#define BOOKING                                                                                    \
	"{\"tenantId\":\"$tenant\",\"poolId\":\"$pool\",\"devices\":[{\"class\":\"gpu\","          \
	"\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\"}"

/* clang-format off */
static const struct row MATRIX[] = {
	{"tenant_create", "operator", BARRED, "{\"name\":\"t$n\"}"},
	{"tenant_list", "viewer", EMPTY, NULL},
	{"tenant_get", "viewer", HIDDEN, NULL},
	{"tenant_patch", "owner", HIDDEN, "{\"name\":\"t$n\"}"},
	{"tenant_archive", "operator", BARRED, NULL},
	{"site_create", "owner", HIDDEN, "{\"tenantId\":\"$tenant\",\"name\":\"s$n\",\"kind\":\"custom\"}"},
	{"site_list", "viewer", EMPTY, NULL},
	{"site_get", "viewer", HIDDEN, NULL},
	{"site_patch", "owner", HIDDEN, "{\"name\":\"s$n\"}"},
	{"site_archive", "owner", HIDDEN, NULL},
	{"pool_create", "owner", HIDDEN,
	 "{\"tenantId\":\"$tenant\",\"siteId\":\"$site\",\"name\":\"p$n\",\"class\":\"metal-host\",\"gpuModel\":\"H100\",\"policy\":{}}"},
	{"pool_list", "viewer", EMPTY, NULL},
	{"pool_get", "viewer", HIDDEN, NULL},
	{"pool_patch", "owner", HIDDEN, "{\"name\":\"p$n\"}"},
	{"pool_archive", "owner", HIDDEN, NULL},
	{"join_token_create", "owner", HIDDEN, "{\"poolId\":\"$pool\"}"},
	{"join_token_list", "viewer", EMPTY, NULL},
	{"join_token_get", "viewer", HIDDEN, NULL},
	{"join_token_revoke", "owner", HIDDEN, NULL},
	{"node_list", "viewer", EMPTY, NULL},
	{"node_get", "viewer", HIDDEN, NULL},
	{"node_patch", "owner", HIDDEN, "{\"labels\":{\"n\":\"l$n\"}}"},
	{"node_drain", "owner", HIDDEN, NULL},
	{"node_undrain", "owner", HIDDEN, NULL},
	{"node_retire", "owner", HIDDEN, NULL},
	{"reservation_create", "user", BARRED, BOOKING},
	{"reservation_list", "viewer", EMPTY, NULL},
	{"reservation_get", "viewer", HIDDEN, NULL},
	{"reservation_pod_requests", "viewer", HIDDEN, NULL},
	{"reservation_patch", "user", HIDDEN, "{\"duration\":\"$nm\"}"},
	{"reservation_release", "user", HIDDEN, NULL},
	{"reservation_cancel", "user", HIDDEN, NULL},
	{"capacity_preview", "viewer", BARRED, BOOKING},
	{"capacity_get", "viewer", EMPTY, NULL},
	{"event_list", "viewer", EMPTY, NULL},
	{"usage_get", "viewer", EMPTY, NULL},
	{"meter_list", "viewer", EMPTY, NULL},
	{"quota_create", "operator", BARRED, "{\"tenantId\":\"$tenant\",\"maxDevices\":$n}"},
	{"quota_list", "viewer", EMPTY, NULL},
	{"quota_get", "viewer", HIDDEN, NULL},
	{"quota_patch", "operator", BARRED, "{\"maxDevices\":$n}"},
	{"quota_delete", "operator", BARRED, NULL},
	{"secret_create", "owner", HIDDEN, "{\"tenantId\":\"$tenant\",\"name\":\"s$n\",\"value\":\"x\"}"},
	{"secret_list", "owner", EMPTY, NULL},
	{"secret_get", "owner", HIDDEN, NULL},
	{"secret_patch", "owner", HIDDEN, "{\"name\":\"s$n\"}"},
	{"secret_delete", "owner", HIDDEN, NULL},
	{"audit_list", "owner", EMPTY, NULL},
	{"pki_get", "operator", BARRED, NULL},
	{"whoami", "viewer", SAME, NULL},
	{"key_create", "owner", HIDDEN, "{\"tenantId\":\"$tenant\",\"role\":\"viewer\",\"name\":\"k$n\"}"},
	{"key_list", "owner", EMPTY, NULL},
	{"key_get", "owner", HIDDEN, NULL},
	{"key_patch", "owner", HIDDEN, "{\"name\":\"k$n\"}"},
	{"key_rotate", "owner", HIDDEN, NULL},
	{"key_revoke", "owner", HIDDEN, NULL},
};
/* clang-format on */

DEFINE_CLEANUP(json_ref, json_t *, json_decref)

static int number = 100; /* of names that must differ */

static const struct row *find_row(const char *route)
{
	for (size_t i = 0; i < ARRAY_SIZE(MATRIX); i++) {
		if (str_equal(MATRIX[i].route, route))
			return &MATRIX[i];
	}
	fail_msg("say in MATRIX who may call %s", route);
	return NULL;
}

static json_t *fill_body(const struct world *world, const char *body)
{
	char n[16];
	const struct {
		const char *name, *value;
	} words[] = {{"$tenant", world->tenant},
		     {"$site", world->site},
		     {"$pool", world->pool},
		     {"$n", n}};
	CLEANUP(buf) struct buf text = {0};
	json_t *json;

	snprintf(n, sizeof n, "%d", ++number);
	while (body && *body) {
		size_t i = 0;

		while (i < ARRAY_SIZE(words) && !str_starts(body, words[i].name))
			i++;
		if (i == ARRAY_SIZE(words)) {
			buf_add_char(&text, *body++);
			continue;
		}
		buf_add_text(&text, words[i].value);
		body += strlen(words[i].name);
	}
	json = text.length > 0 ? json_loads(buf_text(&text), 0, NULL) : NULL;
	assert_true(text.length == 0 || json);
	return json;
}

/* A thing of the world's tenant that the path can name; some must be fresh for each call. */
static const char *thing_of(struct world *world, const char *prefix, const char *node)
{
	const char *tenant = world->tenant;

	if (str_equal(prefix, "ten"))
		return tenant;
	if (str_equal(prefix, "site"))
		return world->site;
	if (str_equal(prefix, "pool"))
		return world->pool;
	if (str_equal(prefix, "node"))
		return node;
	number++;
	if (str_equal(prefix, "jt"))
		return world_text(world_call(world, control_join_token_create, NULL,
					     "{\"poolId\":\"%s\"}", world->pool),
				  "id");
	if (str_equal(prefix, "rsv"))
		return world_text(world_reserve(world, 1), "id");
	if (str_equal(prefix, "quo"))
		return world_text(
			world_call(
				world, control_quota_create, NULL,
				"{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"maxDevices\":9}", tenant,
				world_text(world_call(world, control_pool_create, NULL,
						      "{\"tenantId\":\"%s\",\"siteId\":\"%s\","
						      "\"name\":\"q%d\",\"class\":\"metal-host\","
						      "\"gpuModel\":\"H100\",\"policy\":{}}",
						      tenant, world->site, number),
					   "id")),
			"id");
	if (str_equal(prefix, "sec"))
		return world_text(world_call(world, control_secret_create, NULL,
					     "{\"tenantId\":\"%s\",\"name\":\"x%d\",\"value\":"
					     "\"x\"}",
					     tenant, number),
				  "id");
	if (str_equal(prefix, "key"))
		return world_text(world_call(world, control_key_create, NULL,
					     "{\"tenantId\":\"%s\",\"role\":\"viewer\",\"name\":"
					     "\"x%d\"}",
					     tenant, number),
				  "id");
	fail_msg("say here how to make a %s_", prefix);
	return NULL;
}

static const char *prefix_of(const struct route *route)
{
	const struct schema_type *type = schema_type_find(route->answer_type);

	for (const struct schema_field *field = type->fields; field->name; field++) {
		if (str_equal(field->name, "id"))
			return field->of;
	}
	fail_msg("%s answers nothing with an id", route->name);
	return NULL;
}

/* Let in, whatever the thing's state says to it? */
static bool is_let_in(bool done, const struct error *error)
{
	return done || (error->code != ERROR_FORBIDDEN && error->code != ERROR_NOT_FOUND &&
			error->code != ERROR_UNAUTHENTICATED && error->code != ERROR_INVALID_INPUT);
}

static void check_call(struct world *world, const struct route *route, const struct row *row,
		       const struct control_principal *principal, const char *node, bool own)
{
	const char *role = control_role_name(principal->role);
	CLEANUP(json_ref) json_t *body = fill_body(world, row->body);
	CLEANUP(json_ref) json_t *answer = NULL;
	struct control_call call = {.principal = principal, .body = body};
	struct error error = {0};
	enum control_role least;
	bool done;

	assert_true(access_role_parse(row->least, &least));
	if (strstr(route->path, "{id}"))
		call.id = thing_of(world, prefix_of(route), node);
	done = route->call(&world->control, &call, &answer, &error);
	if (principal->role < least || (!own && row->foreign == BARRED)) {
		if (done || error.code != ERROR_FORBIDDEN)
			fail_msg("%s as %s of %s tenant: not FORBIDDEN: %s", route->name, role,
				 own ? "its own" : "another", done ? "done" : error.what);
	} else if (!own && row->foreign == HIDDEN) {
		if (done || error.code != ERROR_NOT_FOUND)
			fail_msg("%s as %s of another tenant: not NOT_FOUND: %s", route->name, role,
				 done ? "done" : error.what);
	} else if (!is_let_in(done, &error)) {
		fail_msg("%s as %s: %s", route->name, role, error.what);
	}
	if (done && !own) {
		CLEANUP(free) char *shown = json_dumps(answer, 0);

		assert_null(strstr(shown, world->tenant));
		assert_null(strstr(shown, world->pool));
	}
}

/* proves: POOL-4 RES-6 JOIN-1 ADM-2 */
static void test_every_route_and_every_role(void **state)
{
	static const char *const roles[] = {"viewer", "user", "owner", "operator"};
	struct world *world = *state;
	const char *stranger = world_text(
		world_call(world, control_tenant_create, NULL, "{\"name\":\"other\"}"), "id");
	struct world_node node;
	char key_file[512];
	struct error error;
	void *folder;

	folder_make(&folder);
	str_copy(key_file, sizeof key_file, folder_path(&folder, "secret.key"));
	expect_ok(seal_file_init(key_file, (struct wall){DATABASE_EPOCH_MS}, &error), &error);
	world->control.secret_key_file = key_file;
	world_ready(world, &node, 8);
	for (size_t role = 0; role < ARRAY_SIZE(roles); role++) {
		struct control_principal own = world_principal(world, world->tenant, roles[role]);
		struct control_principal other = world_principal(world, stranger, roles[role]);

		for (size_t i = 0; i < ROUTES_COUNT; i++) {
			const struct row *row = find_row(ROUTES[i].name);

			/* An operator's reach has no tenant. */
			if (!str_equal(roles[role], "operator"))
				check_call(world, &ROUTES[i], row, &other, node.id, false);
			check_call(world, &ROUTES[i], row, &own, node.id, true);
		}
	}
	assert_int_equal(ARRAY_SIZE(MATRIX), ROUTES_COUNT);
	folder_remove(&folder);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_every_route_and_every_role),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
