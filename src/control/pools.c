#include "control/pools.h"

#include "control/core/body.h"
#include "control/spec.h"

/* --- rows --- */

bool pool_load(struct store_connection *db, const char *id, struct pool *ret_pool,
	       struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct pool pool = {0};

	if (!store_query(db,
			 "SELECT p.id, p.tenant, p.site, s.tenant, s.kind, p.name, p.class, "
			 "p.gpu_model, p.policy, p.version, p.state, p.created_ms, "
			 "(SELECT value FROM meta WHERE name = 'root_tenant'), "
			 "(SELECT count(*) FROM nodes n WHERE n.pool = p.id AND n.state NOT IN "
			 "('retired', 'lost')) "
			 "FROM pools p JOIN sites s ON s.id = p.site WHERE p.id = $1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	if (rows.count == 0)
		return work_not_found(error, "pool", id);
	str_copy(pool.id, ID_SIZE, store_get_text(&rows, 0, 0));
	str_copy(pool.tenant, ID_SIZE, store_get_text(&rows, 0, 1));
	str_copy(pool.site, ID_SIZE, store_get_text(&rows, 0, 2));
	str_copy(pool.site_tenant, ID_SIZE, store_get_text(&rows, 0, 3));
	pool.site_is_custom = str_equal(store_get_text(&rows, 0, 4), "custom");
	str_copy(pool.name, sizeof pool.name, store_get_text(&rows, 0, 5));
	str_copy(pool.class, sizeof pool.class, store_get_text(&rows, 0, 6));
	str_copy(pool.gpu_model, sizeof pool.gpu_model, store_get_text(&rows, 0, 7));
	pool.version = store_get_int(&rows, 0, 9);
	pool.archived = str_equal(store_get_text(&rows, 0, 10), "archived");
	pool.created_ms = store_get_int(&rows, 0, 11);
	if (!store_is_null(&rows, 0, 12))
		str_copy(pool.root_tenant, ID_SIZE, store_get_text(&rows, 0, 12));
	pool.nodes = store_get_int(&rows, 0, 13);
	pool.policy_json = work_parse(store_get_text(&rows, 0, 8));
	if (!pool_policy_parse(pool.policy_json, &pool.policy, error)) {
		pool_deinit(&pool);
		error->code = ERROR_INTERNAL;
		return error_wrap(error, "pool '%s', as stored", id);
	}
	pool_deinit(ret_pool);
	*ret_pool = pool;
	return true;
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

static json_t *pool_answer(const struct pool *pool)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:O, s:I, s:s, s:I, s:o}", "id", pool->id,
			 "tenantId", pool->tenant, "siteId", pool->site, "name", pool->name,
			 "class", pool->class, "gpuModel", pool->gpu_model, "policy",
			 pool->policy_json, "version", pool->version, "state",
			 pool->archived ? "archived" : "active", "nodes", pool->nodes, "createdAt",
			 work_time(pool->created_ms));
}

/* Of the path or of another one: a pool that the principal may see. */
static bool load_visible(struct store_connection *db, const struct control_call *call,
			 const char *id, struct pool *ret_pool, struct error *error)
{
	if (!pool_load(db, id, ret_pool, error))
		return false;
	return access_reaches(call->principal, ret_pool->tenant) ||
	       work_not_found(error, "pool", id);
}

static bool answer_pool(struct store_connection *db, const struct control_call *call,
			const char *id, json_t **ret_answer, struct error *error)
{
	CLEANUP(pool) struct pool pool = {0};

	if (!load_visible(db, call, id, &pool, error))
		return false;
	*ret_answer = pool_answer(&pool);
	return true;
}

/* --- create --- */

struct pool_input {
	const char *tenant, *site, *name, *class, *model, *key;
	const json_t *policy_json;
	struct pool_policy policy;
};

static bool read_input(const json_t *json, struct pool_input *input, struct error *error)
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
	    !body_idempotency_key(&body, &input->key, error))
		return false;
	input->policy_json = json_object_get(json, "policy");
	return input->policy_json ? pool_policy_parse(input->policy_json, &input->policy, error)
				  : error_field(error, "policy", "is missing");
}

/* The site must be the tenant's own, or one of the platform; the name must be free. */
static bool check_place(struct store_connection *db, const struct pool_input *input,
			struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct trust_pool trust = {.pool_tenant = input->tenant,
				   .platform_operated = input->policy.platform_operated};

	if (!store_query(db,
			 "SELECT s.tenant, s.kind, (SELECT value FROM meta WHERE "
			 "name = 'root_tenant'), (SELECT id FROM tenants WHERE id = $2), "
			 "(SELECT id FROM pools WHERE tenant = $2 AND name = $3) "
			 "FROM sites s WHERE s.id = $1",
			 STORE_PARAMS(store_text(input->site), store_text(input->tenant),
				      store_text(input->name)),
			 &rows, error))
		return false;
	if (rows.count == 0)
		return work_not_found(error, "site", input->site);
	if (store_is_null(&rows, 0, 3))
		return work_not_found(error, "tenant", input->tenant);
	trust.site_tenant = store_get_text(&rows, 0, 0);
	trust.site_is_custom = str_equal(store_get_text(&rows, 0, 1), "custom");
	trust.root_tenant = store_get_text(&rows, 0, 2);
	if (trust.site_is_custom && !str_equal(trust.site_tenant, input->tenant))
		return work_not_found(error, "site", input->site);
	if (!store_is_null(&rows, 0, 4))
		return error_set(error, ERROR_CONFLICT, "pool '%s' exists already: %s", input->name,
				 store_get_text(&rows, 0, 4));
	return pool_policy_check_site(&input->policy, trust.site_is_custom,
				      trust_platform_counts(&trust), error);
}

static bool insert_pool(struct store_connection *db, const char *id, const struct pool_input *input,
			struct error *error)
{
	CLEANUP(free) char *policy = json_dumps(input->policy_json, JSON_COMPACT);

	return store_exec(db,
			  "INSERT INTO pools (id, tenant, site, name, class, gpu_model, policy, "
			  "version, state, created_ms) "
			  "VALUES ($1, $2, $3, $4, $5, $6, $7, 1, 'active', $8)",
			  STORE_PARAMS(store_text(id), store_text(input->tenant),
				       store_text(input->site), store_text(input->name),
				       store_text(input->class), store_text(input->model),
				       store_text(policy), store_int(store_now(db).ms)),
			  error);
}

static bool pool_create(struct store_connection *db, const struct control_call *call,
			json_t **ret_answer, struct error *error)
{
	const enum access_action action = ACCESS_POOLS_CREATE;
	struct pool_input input = {0};
	char id[ID_SIZE];

	if (!access_check(call->principal, action, error) || !read_input(call->body, &input, error))
		return false;
	if (!access_reaches(call->principal, input.tenant))
		return work_not_found(error, "tenant", input.tenant);
	if (!work_find_done(db, call, input.key, action, id, error))
		return false;
	if (id[0] != '\0')
		return answer_pool(db, call, id, ret_answer, error);
	work_new_id(db, "pool", id);
	return check_place(db, &input, error) && insert_pool(db, id, &input, error) &&
	       work_remember_done(db, call, input.key, action, id, error) &&
	       work_audit(db, call->principal, action, input.tenant, id,
			  json_pack("{s:s}", "name", input.name), error) &&
	       answer_pool(db, call, id, ret_answer, error);
}
WORK_CALL(pool_create, STORE_WRITE)

/* --- read --- */

static bool pool_get(struct store_connection *db, const struct control_call *call,
		     json_t **ret_answer, struct error *error)
{
	return access_check(call->principal, ACCESS_POOLS_READ, error) &&
	       work_path_id(call, "pool", "pool", error) &&
	       answer_pool(db, call, call->id, ret_answer, error);
}
WORK_CALL(pool_get, STORE_READ)

static bool pool_list(struct store_connection *db, const struct control_call *call,
		      json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows ids = {0};
	CLEANUP(json_ref) json_t *items = json_array();
	struct work_page page;

	if (!access_check(call->principal, ACCESS_POOLS_READ, error) ||
	    !work_page(call, "pool", &page, error) ||
	    !store_query(db,
			 "SELECT id FROM pools WHERE id > $1 AND ($2 = '' OR tenant = $2) "
			 "ORDER BY id LIMIT $3",
			 STORE_PARAMS(store_text(page.after),
				      store_text(work_scope(call->principal)),
				      store_int(page.limit + 1)),
			 &ids, error))
		return false;
	for (size_t i = 0; i < ids.count && i < (size_t)page.limit; i++) {
		CLEANUP(pool) struct pool pool = {0};

		if (!pool_load(db, store_get_text(&ids, i, 0), &pool, error))
			return false;
		json_array_append_new(items, pool_answer(&pool));
	}
	*ret_answer = work_items_answer(TAKE(items), &page, &ids);
	return true;
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

static bool update_policy(struct store_connection *db, const struct control_call *call,
			  const struct pool *pool, const json_t *policy_json,
			  const struct pool_policy *policy, struct error *error)
{
	CLEANUP(free) char *text = json_dumps(policy_json, JSON_COMPACT);

	if (!store_exec(db, "UPDATE pools SET policy = $2, version = version + 1 WHERE id = $1",
			STORE_PARAMS(store_text(pool->id), store_text(text)), error) ||
	    !work_audit(db, call->principal, ACCESS_POOLS_PATCH, pool->tenant, pool->id,
			json_pack("{s:I}", "version", pool->version + 1), error))
		return false;
	return str_equal(pool->policy.gpu_api, policy->gpu_api) || tell_nodes(db, pool->id, error);
}

/* POOL-13: what a change does not do is said in its answer. */
static void add_notes(const struct pool *before, const json_t *policy_json, json_t *answer)
{
	json_t *old = json_object_get(json_object_get(before->policy_json, "kubernetes"), "taints");
	json_t *new = json_object_get(json_object_get(policy_json, "kubernetes"), "taints");

	if (before->nodes == 0 || (!old && !new) || json_equal(old, new))
		return;
	json_object_set_new(answer, "notes",
			    json_pack("[s]", "Changed taints reach only machines that register "
					     "from now on: a node may not change its own taints."));
}

static bool pool_patch(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	static const char *const known[] = {"policy", "ifVersion", NULL};
	CLEANUP(pool) struct pool pool = {0};
	const json_t *policy_json;
	struct pool_policy policy;
	struct trust_pool trust;
	struct body body;
	int64_t version = 0;

	if (!access_check(call->principal, ACCESS_POOLS_PATCH, error) ||
	    !work_path_id(call, "pool", "pool", error) ||
	    !body_open(call->body, "", known, &body, error) ||
	    !body_int(&body, "ifVersion", BODY_OPTIONAL, 1, INT64_MAX, &version, error))
		return false;
	policy_json = json_object_get(call->body, "policy");
	if (!policy_json)
		return error_field(error, "policy", "is missing");
	if (!pool_policy_parse(policy_json, &policy, error) ||
	    !load_visible(db, call, call->id, &pool, error) || !pool_check_active(&pool, error))
		return false;
	if (version != 0 && version != pool.version)
		return error_set(error, ERROR_CONFLICT, "pool '%s' has version %lld, not %lld",
				 pool.name, (long long)pool.version, (long long)version);
	trust = pool_trust(&pool);
	trust.platform_operated = policy.platform_operated;
	if (!pool_policy_check_site(&policy, pool.site_is_custom, trust_platform_counts(&trust),
				    error) ||
	    !check_cluster_stays(&pool, &policy, error) ||
	    !update_policy(db, call, &pool, policy_json, &policy, error) ||
	    !answer_pool(db, call, call->id, ret_answer, error))
		return false;
	add_notes(&pool, policy_json, *ret_answer);
	return true;
}
WORK_CALL(pool_patch, STORE_WRITE)

static bool pool_archive(struct store_connection *db, const struct control_call *call,
			 json_t **ret_answer, struct error *error)
{
	CLEANUP(pool) struct pool pool = {0};

	if (!access_check(call->principal, ACCESS_POOLS_ARCHIVE, error) ||
	    !work_path_id(call, "pool", "pool", error) ||
	    !load_visible(db, call, call->id, &pool, error))
		return false;
	if (!pool.archived &&
	    (!store_exec(db,
			 "UPDATE pools SET state = 'archived', version = version + 1 WHERE id = $1",
			 STORE_PARAMS(store_text(pool.id)), error) ||
	     !work_audit(db, call->principal, ACCESS_POOLS_ARCHIVE, pool.tenant, pool.id, NULL,
			 error)))
		return false;
	return answer_pool(db, call, call->id, ret_answer, error);
}
WORK_CALL(pool_archive, STORE_WRITE)
