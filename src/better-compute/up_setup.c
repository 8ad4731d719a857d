#include "better-compute/up_setup.h"
#include "base/id.h"
#include "cli/api.h"
#include "cli/view.h"
#include "sys/clock.h"
#include "sys/durable.h"

#include <poll.h>

#define POLL_MS         50
#define MAX_KEY         ((size_t)1 << 10)
#define TOKEN_TTL       "10m"
#define CALL_TIMEOUT_MS 10000

struct session {
	struct up_setup *setup;
	struct arena *arena;
	struct context context;
	struct api *api;
};

static void session_cleanup(struct session *session)
{
	api_destroy(session->api);
}

static bool session_open(struct up_setup *setup, struct session *ret_session)
{
	CLEANUP(buf) struct buf key = {0};
	struct session session = {.setup = setup, .arena = &setup->arena};

	if (!durable_read(setup->files->admin_key, MAX_KEY, &key, &setup->error))
		return false;
	session.context.values[CONTEXT_API] = (struct context_value){setup->api, "up"};
	session.context.values[CONTEXT_STATE] = (struct context_value){setup->files->state, "up"};
	session.context.key =
		arena_strndup(session.arena, buf_text(&key), strcspn(buf_text(&key), "\r\n"));
	buf_wipe(&key);
	*ret_session = session;
	ret_session->api = api_create(&ret_session->context);
	api_set_timeout(ret_session->api, CALL_TIMEOUT_MS);
	return true;
}

/* The id of the thing with this name, made from `body` (taken over) when there is none. */
static bool ensure(struct session *session, const char *path, const char *name, json_t *body,
		   const char **ret_id)
{
	CLEANUP(tree) json_t *owned = body, *items = NULL, *made = NULL;
	struct error *error = &session->setup->error;
	const char *id = NULL;
	size_t index;
	json_t *item;

	if (!api_list(session->api, path, NULL, &items, error))
		return false;
	json_array_foreach(items, index, item)
	{
		const char *here = view_text(item, "name");
		if (here && str_equal(here, name))
			id = view_text(item, "id");
	}
	if (!id) {
		tree_set(owned, "name", tree_string(name));
		if (!api_call(session->api, "POST", path, owned, &made, error))
			return error_wrap(error, "make '%s' at %s", name, path);
		id = view_text(made, "id");
	}
	if (!id)
		return error_set(error, ERROR_INTERNAL, "%s '%s' has no id", path, name);
	*ret_id = arena_strdup(session->arena, id);
	return true;
}

/* "H100" is booked in the pool "h100". */
static const char *pool_name(struct arena *arena, const char *model)
{
	char *name = arena_strdup(arena, model);

	for (char *at = name; *at; at++) {
		if (*at >= 'A' && *at <= 'Z')
			*at = (char)(*at - 'A' + 'a');
		else if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9')))
			*at = '-';
	}
	return name;
}

/* The operator key's own tenant is the deployment's root: what it owns is the platform's, so the
 * node is trusted and its GPUs can be booked (POOL-18, POOL-20). */
static bool own_tenant(struct session *session, const char **ret_tenant)
{
	struct error *error = &session->setup->error;
	CLEANUP(tree) json_t *answer = NULL;
	const char *tenant;

	if (!api_call(session->api, "GET", "/v1/whoami", NULL, &answer, error) ||
	    !tree_get_string(answer, "tenantId", "", ID_SIZE - 1, &tenant, error))
		return error_wrap(error, "ask whose the first key is");
	*ret_tenant = arena_strdup(session->arena, tenant);
	return true;
}

static bool ensure_pool(struct session *session, const char **ret_tenant, const char **ret_pool)
{
	const char *model = session->setup->files->pool_model, *site;

	if (!own_tenant(session, ret_tenant) ||
	    !ensure(session, "/v1/sites", "local",
		    json_pack("{s:s, s:s}", "tenantId", *ret_tenant, "kind", "platform"), &site))
		return false;
	return ensure(session, "/v1/pools", pool_name(session->arena, model),
		      json_pack("{s:s, s:s, s:s, s:s, s:{s:{s:b}}}", "tenantId", *ret_tenant,
				"siteId", site, "class", "metal-host", "gpuModel", model, "policy",
				"kubernetes", "platformOperated", 1),
		      ret_pool);
}

/* What an earlier start has chosen is kept: the pool may have been renamed since. */
static bool known_pool(const struct session *session, const char **ret_tenant,
		       const char **ret_pool)
{
	const char *path = session->setup->files->context;
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error ignored; /* absent or unusable: made again */
	const char *tenant, *pool;

	if (!durable_read(path, MAX_KEY * 8, &text, &ignored) ||
	    !tree_parse(text.data, text.length, MAX_KEY * 8, path, &tree, &ignored) ||
	    !tree_get_string(tree, "tenant", "", ID_SIZE - 1, &tenant, &ignored) ||
	    !tree_get_string(tree, "pool", "", ID_SIZE - 1, &pool, &ignored))
		return false;
	*ret_tenant = arena_strdup(session->arena, tenant);
	*ret_pool = arena_strdup(session->arena, pool);
	return true;
}

static bool write_context(const struct session *session, const char *tenant, const char *pool)
{
	const struct up_setup *setup = session->setup;
	CLEANUP(tree) json_t *tree = json_object();
	CLEANUP(buf) struct buf text = {0};

	tree_set(tree, "version", json_integer(1));
	tree_set(tree, "api", tree_string(setup->api));
	tree_set(tree, "key", tree_string(session->context.key));
	tree_set(tree, "tenant", tree_string(tenant));
	tree_set(tree, "pool", tree_string(pool));
	tree_set(tree, "bcdConfig", tree_string(setup->files->config));
	tree_dump_pretty(&text, tree);
	return durable_replace(setup->files->context, text.data, text.length, 0600,
			       &session->setup->error);
}

static bool make_token(struct session *session, const char *pool)
{
	CLEANUP(tree) json_t *answer = NULL;
	CLEANUP(tree)
	json_t *body = json_pack("{s:s, s:s, s:i, s:s}", "poolId", pool, "ttl", TOKEN_TTL,
				 "maxUses", 1, "hosted", "kubernetes");
	struct error *error = &session->setup->error;
	const char *token;

	if (!api_call(session->api, "POST", "/v1/join-tokens", body, &answer, error) ||
	    !tree_get_string(answer, "token", "", 256, &token, error))
		return error_wrap(error, "make a join token");
	return durable_replace(session->setup->files->token, token, strlen(token), 0600, error);
}

static bool prepare(struct up_setup *setup)
{
	CLEANUP(session) struct session session = {0};
	const char *tenant, *pool;

	if (!session_open(setup, &session))
		return false;
	if (!known_pool(&session, &tenant, &pool) && !ensure_pool(&session, &tenant, &pool))
		return false;
	if (!write_context(&session, tenant, pool))
		return false;
	setup->joined = durable_stamp(setup->files->identity).exists;
	return setup->joined || make_token(&session, pool);
}

void up_setup_prepare(void *arg)
{
	struct up_setup *setup = arg;

	setup->ok = prepare(setup);
}

/* One look at the nodes: the first that is ready and connected is this machine's. */
static void look_for_node(struct session *session)
{
	struct up_setup *setup = session->setup;
	CLEANUP(tree) json_t *items = NULL;
	struct error ignored; /* serve may be starting again */
	size_t index;
	json_t *item;

	if (!api_list(session->api, "/v1/nodes", NULL, &items, &ignored))
		return;
	json_array_foreach(items, index, item)
	{
		const char *state = view_text(item, "state"), *id = view_text(item, "id");
		if (!id || !state || !str_equal(state, "ready") ||
		    !json_is_true(json_object_get(item, "connected")))
			continue;
		setup->node_id = arena_strdup(session->arena, id);
		setup->gpus = view_gpus(session->arena, item);
		setup->simulated_reason =
			arena_strdup(session->arena, view_text(item, "simulatedReason"));
		return;
	}
}

void up_setup_wait_node(void *arg)
{
	struct up_setup *setup = arg;
	CLEANUP(session) struct session session = {0};
	struct mono end = mono_after(clock_mono(), UP_SETUP_NODE_MS);

	setup->ok = session_open(setup, &session);
	while (setup->ok && !setup->node_id && !atomic_load(&setup->stop) &&
	       mono_until(clock_mono(), end) > 0) {
		look_for_node(&session);
		if (!setup->node_id)
			(void)poll(NULL, 0, POLL_MS);
	}
}
