#include "control/pools.h"

#include "control/core/body.h"
#include "control/nodes.h"
#include "control/spec.h"
#include "control/tenants.h"
#include "control/thing.h"

/* --- rows --- */

/* `nodes` counts them, which takes a look at each: only who shows it asks. */
#define POOL_SELECT(nodes)                                                                         \
	"SELECT p.id, p.tenant, p.site, s.tenant, s.kind, p.name, p.class, p.gpu_model, "          \
	"p.policy, p.version, p.state, p.created_ms, (SELECT value FROM meta WHERE name = "        \
	"'root_tenant'), " nodes " FROM pools p JOIN sites s ON s.id = p.site WHERE "
#define COUNT_NODES                                                                                \
	"(SELECT count(*) FROM nodes n WHERE n.pool = p.id AND n.state NOT IN ('retired', "        \
	"'lost'))"

static bool read_row(const struct store_rows *rows, size_t row, struct pool *ret_pool,
		     struct error *error)
{
	struct pool pool = {0};

	str_copy(pool.id, ID_SIZE, store_get_text(rows, row, 0));
	str_copy(pool.tenant, ID_SIZE, store_get_text(rows, row, 1));
	str_copy(pool.site, ID_SIZE, store_get_text(rows, row, 2));
	str_copy(pool.site_tenant, ID_SIZE, store_get_text(rows, row, 3));
	pool.site_is_custom = str_equal(store_get_text(rows, row, 4), "custom");
	str_copy(pool.name, sizeof pool.name, store_get_text(rows, row, 5));
	str_copy(pool.class, sizeof pool.class, store_get_text(rows, row, 6));
	str_copy(pool.gpu_model, sizeof pool.gpu_model, store_get_text(rows, row, 7));
	pool.version = store_get_int(rows, row, 9);
	pool.archived = str_equal(store_get_text(rows, row, 10), "archived");
	pool.created_ms = store_get_int(rows, row, 11);
	if (!store_is_null(rows, row, 12))
		str_copy(pool.root_tenant, ID_SIZE, store_get_text(rows, row, 12));
	pool.nodes = store_get_int(rows, row, 13);
	pool.policy_json = work_parse(store_get_text(rows, row, 8));
	if (!pool_policy_parse(pool.policy_json, &pool.policy, error)) {
		error->code = ERROR_INTERNAL;
		error_wrap(error, "pool '%s', as stored", pool.id);
		pool_deinit(&pool);
		return false;
	}
	pool_deinit(ret_pool);
	*ret_pool = pool;
	return true;
}

bool pool_load(struct store_connection *db, const char *id, struct pool *ret_pool,
	       struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, POOL_SELECT("0") "p.id = $1", STORE_PARAMS(store_text(id)), &rows,
			 error))
		return false;
	if (rows.count == 0)
		return work_not_found(error, "pool", id);
	return read_row(&rows, 0, ret_pool, error);
}

void pool_deinit(struct pool *pool)
{
	json_decref(pool->policy_json);
	*pool = (struct pool){0};
}

struct trust_pool pool_trust(const struct pool *pool)
{
	return (struct trust_pool){
		.pool_tenant = pool->tenant,
		.site_tenant = pool->site_tenant,
		.root_tenant = pool->root_tenant[0] ? pool->root_tenant : NULL,
		.site_is_custom = pool->site_is_custom,
		.platform_operated = pool->policy.platform_operated,
	};
}

bool pool_check_active(const struct pool *pool, struct error *error)
{
	return !pool->archived ||
	       error_set(error, ERROR_INVALID_STATE, "pool '%s' is archived", pool->name);
}

/* --- answers --- */

static bool pool_answer(struct store_connection *db, const struct store_rows *rows, size_t row,
			json_t **ret_answer, struct error *error)
{
	CLEANUP(pool) struct pool pool = {0};

	(void)db;
	if (!read_row(rows, row, &pool, error))
		return false;
	*ret_answer =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:O, s:I, s:s, s:I, s:o}", "id", pool.id,
			  "tenantId", pool.tenant, "siteId", pool.site, "name", pool.name, "class",
			  pool.class, "gpuModel", pool.gpu_model, "policy", pool.policy_json,
			  "version", pool.version, "state", pool.archived ? "archived" : "active",
			  "nodes", pool.nodes, "createdAt", work_time(pool.created_ms));
	return true;
}

static const struct thing POOL = {
	.kind = "pool",
	.prefix = "pool",
	.read = ACCESS_POOLS_READ,
	.one = POOL_SELECT(COUNT_NODES) "p.id = $1",
	.page = POOL_SELECT(
		COUNT_NODES) "p.id > $1 AND ($2 = '' OR p.tenant = $2) ORDER BY p.id LIMIT $3",
	.tenant_column = 1,
	.answer = pool_answer,
};

/* --- create --- */

struct pool_input {
	const char *tenant, *site, *name, *class, *model;
	const json_t *policy_json;
	struct pool_policy policy;
};

static bool read_input(const json_t *json, struct pool_input *input, const char **ret_key,
		       struct error *error)
{
	static const char *const known[] = {"tenantId", "siteId", "name",           "class",
					    "gpuModel", "policy", "idempotencyKey", NULL};
	struct body body;

	if (!body_open(json, "", known, &body, error) ||
	    !body_id(&body, "tenantId", BODY_REQUIRED, "ten", &input->tenant, error) ||
	    !body_id(&body, "siteId", BODY_REQUIRED, "site", &input->site, error) ||
	    !body_name(&body, "name", &input->name, error) ||
	    !body_text(&body, "class", BODY_REQUIRED, 64, &input->class, error) ||
	    !pool_policy_check_class(input->class, error) ||
	    !body_ascii(&body, "gpuModel", BODY_REQUIRED, POOL_MODEL_MAX, &input->model, error) ||
	    !body_idempotency_key(&body, ret_key, error))
		return false;
	input->policy_json = json_object_get(json, "policy");
	return input->policy_json ? pool_policy_parse(input->policy_json, &input->policy, error)
				  : error_field(error, "policy", "is missing");
}

static bool check_name(struct store_connection *db, const char *tenant, const char *name,
		       const char *but, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT id FROM pools WHERE tenant = $1 AND name = $2 AND id <> $3",
			 STORE_PARAMS(store_text(tenant), store_text(name), store_text(but)), &rows,
			 error))
		return false;
	if (rows.count == 0)
		return true;
	error_set(error, ERROR_CONFLICT, "pool '%s' exists already: %s", name,
		  store_get_text(&rows, 0, 0));
	return work_name_taken(error);
}

/* The site must be the tenant's own, or one of the platform. */
static bool check_site(struct store_connection *db, const struct pool_input *input,
		       struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct trust_pool trust = {.pool_tenant = input->tenant,
				   .platform_operated = input->policy.platform_operated};

	if (!store_query(db,
			 "SELECT tenant, kind, (SELECT value FROM meta WHERE name = "
			 "'root_tenant'), state FROM sites WHERE id = $1",
			 STORE_PARAMS(store_text(input->site)), &rows, error))
		return false;
	if (rows.count == 0)
		return work_not_found(error, "site", input->site);
	trust.site_tenant = store_get_text(&rows, 0, 0);
	trust.site_is_custom = str_equal(store_get_text(&rows, 0, 1), "custom");
	trust.root_tenant = store_get_text(&rows, 0, 2);
	if (trust.site_is_custom && !str_equal(trust.site_tenant, input->tenant)) {
		work_not_found(error, "site", input->site);
		return error_hint(error,
				  "A pool of tenant '%s' takes a site of that tenant, or "
				  "one of the platform.",
				  input->tenant);
	}
	if (!str_equal(store_get_text(&rows, 0, 3), "active"))
		return error_set(error, ERROR_INVALID_STATE, "site '%s' is archived", input->site);
	return pool_policy_check_site(&input->policy, trust.site_is_custom,
				      trust_platform_counts(&trust), error);
}

static bool insert_pool(struct store_connection *db, const char *id, const void *argument,
			struct error *error)
{
	const struct pool_input *input = argument;
	CLEANUP(free) char *policy = json_dumps(input->policy_json, JSON_COMPACT);

	return tenant_check_active(db, input->tenant, error) && check_site(db, input, error) &&
	       check_name(db, input->tenant, input->name, "", error) &&
	       store_exec(db,
			  "INSERT INTO pools (id, tenant, site, name, class, gpu_model, policy, "
			  "version, state, created_ms) "
			  "VALUES ($1, $2, $3, $4, $5, $6, $7, 1, 'active', $8)",
			  STORE_PARAMS(store_text(id), store_text(input->tenant),
				       store_text(input->site), store_text(input->name),
				       store_text(input->class), store_text(input->model),
				       store_text(policy), store_int(store_now(db).ms)),
			  error);
}

static void add_note(json_t *answer, const char *text)
{
	json_t *notes = json_object_get(answer, "notes");

	if (!notes)
		json_object_set_new(answer, "notes", notes = json_array());
	json_array_append_new(notes, json_string(text));
}

/* A pool may ask for what none of its nodes does yet; who sets it is told that nothing comes of it. */
static bool note_api(struct store_connection *db, const struct pool_policy *policy, json_t *answer,
		     struct error *error)
{
	const char *id = json_string_value(json_object_get(answer, "id"));
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!str_equal(policy->gpu_api, NODE_API_DRA))
		return true;
	if (!store_query(db,
			 "SELECT n.id FROM nodes n WHERE n.pool = $1 AND n.state NOT IN "
			 "('retired', 'lost') AND " NODE_OFFERS_BY("$2") " LIMIT 1",
			 STORE_PARAMS(store_text(id), store_int(1)), &rows, error))
		return false;
	if (rows.count == 0)
		add_note(answer,
			 "No node of this pool offers GPUs by DRA, so its reservations wait "
			 "(DraUnsupported): the bcd of this release has no DRA driver. With "
			 "gpuApi device-plugin they can be booked.");
	return true;
}

static bool pool_create(struct store_connection *db, const struct control_call *call,
			json_t **ret_answer, struct error *error)
{
	struct pool_input input = {0};
	struct thing_create create = {.thing = &POOL,
				      .action = ACCESS_POOLS_CREATE,
				      .insert = insert_pool,
				      .input = &input};

	if (!access_check(call->principal, create.action, error) ||
	    !read_input(call->body, &input, &create.key, error))
		return false;
	create.tenant = input.tenant;
	return thing_create(db, call, &create, ret_answer, error) &&
	       note_api(db, &input.policy, *ret_answer, error);
}
WORK_CALL(pool_create, STORE_WRITE)

/* --- read --- */

static bool pool_get(struct store_connection *db, const struct control_call *call,
		     json_t **ret_answer, struct error *error)
{
	return thing_get(db, call, &POOL, ret_answer, error);
}
WORK_CALL(pool_get, STORE_READ)

static bool pool_list(struct store_connection *db, const struct control_call *call,
		      json_t **ret_answer, struct error *error)
{
	return thing_list(db, call, &POOL, ret_answer, error);
}
WORK_CALL(pool_list, STORE_READ)

/* --- patch --- */

static bool same_text(const char *a, const char *b)
{
	return a && b ? str_equal(a, b) : a == b;
}

/* POOL-28: the cluster of machines that have joined it can't be swapped under them. */
static bool check_cluster_stays(const struct pool *pool, const struct pool_policy *policy,
				struct error *error)
{
	if (!pool->policy.joins || !policy->joins || pool->nodes == 0)
		return true;
	if (same_text(pool->policy.api_server, policy->api_server) &&
	    same_text(pool->policy.ca_cert_sha256, policy->ca_cert_sha256))
		return true;
	error_set(error, ERROR_INVALID_STATE,
		  "pool '%s': apiServer and caCertSha256 can't change while %lld nodes have joined",
		  pool->name, (long long)pool->nodes);
	return error_hint(error, "Drop policy.kubernetes first, wait until the nodes have left.");
}

/* DRA-2: a GPU that one way gave to a pod must not be offered the other way meanwhile. */
static bool check_api_stays(struct store_connection *db, const struct pool *pool,
			    const struct pool_policy *policy, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (str_equal(pool->policy.gpu_api, policy->gpu_api))
		return true;
	if (!store_query(db,
			 "SELECT id FROM reservations WHERE pool = $1 AND state IN ('placed', "
			 "'active', 'releasing') ORDER BY id LIMIT 1",
			 STORE_PARAMS(store_text(pool->id)), &rows, error))
		return false;
	if (rows.count == 0)
		return true;
	error_set(error, ERROR_INVALID_STATE,
		  "pool '%s': gpuApi can't change from %s to %s while a reservation has GPUs: %s",
		  pool->name, pool->policy.gpu_api, policy->gpu_api, store_get_text(&rows, 0, 0));
	return error_hint(error, "Release the pool's reservations, or wait until they are over.");
}

/* A change that every node of the pool is told. */
static bool tell_nodes(struct store_connection *db, const char *pool, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t generation;

	if (!store_query(db,
			 "SELECT id FROM nodes WHERE pool = $1 AND state <> 'retired' ORDER BY id",
			 STORE_PARAMS(store_text(pool)), &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		if (!spec_changed(db, store_get_text(&rows, i, 0), &generation, error))
			return false;
	}
	return true;
}

static bool update_policy(struct store_connection *db, const struct pool *pool,
			  const json_t *policy_json, const struct pool_policy *policy,
			  struct error *error)
{
	CLEANUP(free) char *text = json_dumps(policy_json, JSON_COMPACT);

	return store_exec(db, "UPDATE pools SET policy = $2 WHERE id = $1",
			  STORE_PARAMS(store_text(pool->id), store_text(text)), error) &&
	       (str_equal(pool->policy.gpu_api, policy->gpu_api) ||
		tell_nodes(db, pool->id, error));
}

/* POOL-13: what a change does not do is said in its answer. */
static bool taints_come_late(const struct pool *before, const json_t *policy_json)
{
	json_t *old = json_object_get(json_object_get(before->policy_json, "kubernetes"), "taints");
	json_t *new = json_object_get(json_object_get(policy_json, "kubernetes"), "taints");

	return before->nodes > 0 && (old || new) && !json_equal(old, new);
}

struct pool_change {
	const char *name;          /* NULL: stays */
	const json_t *policy_json; /* NULL: stays */
	struct pool_policy policy;
	int64_t version; /* 0: any */
};

static bool read_change(const json_t *json, struct pool_change *change, struct error *error)
{
	static const char *const known[] = {"name", "policy", "ifVersion", NULL};
	struct body body;

	if (!body_open(json, "", known, &body, error) ||
	    !body_int(&body, "ifVersion", BODY_OPTIONAL, 1, CONTROL_MAX_SEQUENCE, &change->version,
		      error))
		return false;
	if (json_object_get(json, "name") && !body_name(&body, "name", &change->name, error))
		return false;
	change->policy_json = json_object_get(json, "policy");
	if (change->policy_json)
		return pool_policy_parse(change->policy_json, &change->policy, error);
	return change->name || error_field(error, "policy", "is missing, and so is name");
}

static bool change_policy(struct store_connection *db, const struct pool *pool,
			  const struct pool_change *change, struct error *error)
{
	struct trust_pool trust = pool_trust(pool);

	trust.platform_operated = change->policy.platform_operated;
	return pool_policy_check_site(&change->policy, pool->site_is_custom,
				      trust_platform_counts(&trust), error) &&
	       check_cluster_stays(pool, &change->policy, error) &&
	       check_api_stays(db, pool, &change->policy, error) &&
	       update_policy(db, pool, change->policy_json, &change->policy, error);
}

static bool apply_change(struct store_connection *db, const struct pool *pool,
			 const struct pool_change *change, struct error *error)
{
	if (!pool_check_active(pool, error))
		return false;
	if (change->version != 0 && change->version != pool->version)
		return error_set(error, ERROR_CONFLICT, "pool '%s' has version %lld, not %lld",
				 pool->name, (long long)pool->version, (long long)change->version);
	if (change->name &&
	    (!check_name(db, pool->tenant, change->name, pool->id, error) ||
	     !store_exec(db, "UPDATE pools SET name = $2 WHERE id = $1",
			 STORE_PARAMS(store_text(pool->id), store_text(change->name)), error)))
		return false;
	if (change->policy_json && !change_policy(db, pool, change, error))
		return false;
	return store_exec(db, "UPDATE pools SET version = version + 1 WHERE id = $1",
			  STORE_PARAMS(store_text(pool->id)), error);
}

static bool pool_patch(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	CLEANUP(thing_change) struct thing_change change = {0};
	CLEANUP(pool) struct pool pool = {0};
	struct pool_change input = {0};

	if (!thing_change_begin(db, call, &POOL, ACCESS_POOLS_PATCH, &change, error) ||
	    !read_change(call->body, &input, error) || !read_row(&change.rows, 0, &pool, error) ||
	    !apply_change(db, &pool, &input, error) ||
	    !thing_change_end(db, call, &change, ret_answer, error))
		return false;
	if (input.policy_json && taints_come_late(&pool, input.policy_json))
		add_note(*ret_answer, "Changed taints reach only machines that register from now "
				      "on: a node may not change its own taints.");
	return !input.policy_json || note_api(db, &input.policy, *ret_answer, error);
}
WORK_CALL(pool_patch, STORE_WRITE)

/* --- archive --- */

static bool pool_archive(struct store_connection *db, const struct control_call *call,
			 json_t **ret_answer, struct error *error)
{
	CLEANUP(thing_change) struct thing_change change = {0};

	return thing_change_begin(db, call, &POOL, ACCESS_POOLS_ARCHIVE, &change, error) &&
	       thing_check_unused(db, &POOL, call->id,
				  "SELECT id FROM reservations WHERE pool = $1 AND state IN "
				  "('placed', 'active', 'releasing') ORDER BY id LIMIT 1",
				  "a live reservation", error) &&
	       thing_check_unused(db, &POOL, call->id,
				  "SELECT id FROM nodes WHERE pool = $1 AND state NOT IN "
				  "('retired', 'lost') ORDER BY id LIMIT 1",
				  "a node", error) &&
	       store_exec(db,
			  "UPDATE pools SET state = 'archived', version = version + 1 "
			  "WHERE id = $1 AND state = 'active'",
			  STORE_PARAMS(store_text(call->id)), error) &&
	       thing_change_end(db, call, &change, ret_answer, error);
}
WORK_CALL(pool_archive, STORE_WRITE)
