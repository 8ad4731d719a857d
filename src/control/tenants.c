#include "control/core/body.h"
#include "control/work.h"

/* --- tenants --- */

static json_t *tenant_answer(const struct store_rows *rows, size_t row)
{
	return json_pack("{s:o, s:o, s:o}", "id", work_text_of(rows, row, 0), "name",
			 work_text_of(rows, row, 1), "createdAt",
			 work_time(store_get_int(rows, row, 2)));
}

static bool answer_tenant(struct store_connection *db, const struct control_call *call,
			  const char *id, json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT id, name, created_ms FROM tenants WHERE id = $1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	if (rows.count == 0 || !access_reaches(call->principal, id))
		return work_not_found(error, "tenant", id);
	*ret_answer = tenant_answer(&rows, 0);
	return true;
}

static bool check_tenant_name(struct store_connection *db, const char *name, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT id FROM tenants WHERE name = $1",
			 STORE_PARAMS(store_text(name)), &rows, error))
		return false;
	return rows.count == 0 || error_set(error, ERROR_CONFLICT, "tenant '%s' exists already: %s",
					    name, store_get_text(&rows, 0, 0));
}

static bool tenant_create(struct store_connection *db, const struct control_call *call,
			  json_t **ret_answer, struct error *error)
{
	static const char *const known[] = {"name", "idempotencyKey", NULL};
	const enum access_action action = ACCESS_TENANTS_CREATE;
	const char *name, *key;
	char id[ID_SIZE];
	struct body body;

	if (!access_check(call->principal, action, error) ||
	    !body_open(call->body, "", known, &body, error) ||
	    !body_name(&body, "name", &name, error) || !body_idempotency_key(&body, &key, error) ||
	    !work_find_done(db, call, key, action, id, error))
		return false;
	if (id[0] != '\0')
		return answer_tenant(db, call, id, ret_answer, error);
	work_new_id(db, "ten", id);
	return check_tenant_name(db, name, error) &&
	       store_exec(
		       db, "INSERT INTO tenants (id, name, created_ms) VALUES ($1, $2, $3)",
		       STORE_PARAMS(store_text(id), store_text(name), store_int(store_now(db).ms)),
		       error) &&
	       work_remember_done(db, call, key, action, id, error) &&
	       work_audit(db, call->principal, action, id, id, json_pack("{s:s}", "name", name),
			  error) &&
	       answer_tenant(db, call, id, ret_answer, error);
}
WORK_CALL(tenant_create, STORE_WRITE)

static bool tenant_get(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	return access_check(call->principal, ACCESS_TENANTS_READ, error) &&
	       work_path_id(call, "tenant", "ten", error) &&
	       answer_tenant(db, call, call->id, ret_answer, error);
}
WORK_CALL(tenant_get, STORE_READ)

static bool tenant_list(struct store_connection *db, const struct control_call *call,
			json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct work_page page;

	if (!access_check(call->principal, ACCESS_TENANTS_READ, error) ||
	    !work_page(call, "ten", &page, error) ||
	    !store_query(db,
			 "SELECT id, name, created_ms FROM tenants WHERE id > $1 AND "
			 "($2 = '' OR id = $2) ORDER BY id LIMIT $3",
			 STORE_PARAMS(store_text(page.after),
				      store_text(work_scope(call->principal)),
				      store_int(page.limit + 1)),
			 &rows, error))
		return false;
	*ret_answer = work_rows_answer(&rows, &page, tenant_answer);
	return true;
}
WORK_CALL(tenant_list, STORE_READ)

/* --- sites --- */

#define SITE_COLUMNS "id, tenant, name, kind, created_ms"

static json_t *site_answer(const struct store_rows *rows, size_t row)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "id", work_text_of(rows, row, 0), "tenantId",
			 work_text_of(rows, row, 1), "name", work_text_of(rows, row, 2), "kind",
			 work_text_of(rows, row, 3), "createdAt",
			 work_time(store_get_int(rows, row, 4)));
}

static bool answer_site(struct store_connection *db, const struct control_call *call,
			const char *id, json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT " SITE_COLUMNS " FROM sites WHERE id = $1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	if (rows.count == 0 || !access_reaches(call->principal, store_get_text(&rows, 0, 1)))
		return work_not_found(error, "site", id);
	*ret_answer = site_answer(&rows, 0);
	return true;
}

static bool check_site_name(struct store_connection *db, const char *tenant, const char *name,
			    struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(
		    db,
		    "SELECT t.id, s.id FROM tenants t LEFT JOIN sites s ON s.tenant = t.id AND "
		    "s.name = $2 WHERE t.id = $1",
		    STORE_PARAMS(store_text(tenant), store_text(name)), &rows, error))
		return false;
	if (rows.count == 0)
		return work_not_found(error, "tenant", tenant);
	return store_is_null(&rows, 0, 1) ||
	       error_set(error, ERROR_CONFLICT, "site '%s' exists already: %s", name,
			 store_get_text(&rows, 0, 1));
}

static bool site_create(struct store_connection *db, const struct control_call *call,
			json_t **ret_answer, struct error *error)
{
	static const char *const known[] = {"tenantId", "name", "kind", "idempotencyKey", NULL};
	static const char *const kinds[] = {"platform", "custom", NULL};
	const char *tenant, *name, *key;
	enum access_action action;
	char id[ID_SIZE];
	struct body body;
	int kind;

	if (!body_open(call->body, "", known, &body, error) ||
	    !body_id(&body, "tenantId", BODY_REQUIRED, "ten", &tenant, error) ||
	    !body_name(&body, "name", &name, error) ||
	    !body_choice(&body, "kind", BODY_REQUIRED, kinds, &kind, error) ||
	    !body_idempotency_key(&body, &key, error))
		return false;
	/* A platform's site makes platform nodes: that is the operator's to say. */
	action = kind == 0 ? ACCESS_SITES_CREATE_PLATFORM : ACCESS_SITES_CREATE;
	if (!access_check(call->principal, action, error))
		return false;
	if (!access_reaches(call->principal, tenant))
		return work_not_found(error, "tenant", tenant);
	if (!work_find_done(db, call, key, ACCESS_SITES_CREATE, id, error))
		return false;
	if (id[0] != '\0')
		return answer_site(db, call, id, ret_answer, error);
	work_new_id(db, "site", id);
	return check_site_name(db, tenant, name, error) &&
	       store_exec(db,
			  "INSERT INTO sites (id, tenant, name, kind, created_ms) "
			  "VALUES ($1, $2, $3, $4, $5)",
			  STORE_PARAMS(store_text(id), store_text(tenant), store_text(name),
				       store_text(kinds[kind]), store_int(store_now(db).ms)),
			  error) &&
	       work_remember_done(db, call, key, ACCESS_SITES_CREATE, id, error) &&
	       work_audit(db, call->principal, action, tenant, id,
			  json_pack("{s:s, s:s}", "name", name, "kind", kinds[kind]), error) &&
	       answer_site(db, call, id, ret_answer, error);
}
WORK_CALL(site_create, STORE_WRITE)

static bool site_get(struct store_connection *db, const struct control_call *call,
		     json_t **ret_answer, struct error *error)
{
	return access_check(call->principal, ACCESS_SITES_READ, error) &&
	       work_path_id(call, "site", "site", error) &&
	       answer_site(db, call, call->id, ret_answer, error);
}
WORK_CALL(site_get, STORE_READ)

static bool site_list(struct store_connection *db, const struct control_call *call,
		      json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct work_page page;

	if (!access_check(call->principal, ACCESS_SITES_READ, error) ||
	    !work_page(call, "site", &page, error) ||
	    !store_query(db,
			 "SELECT " SITE_COLUMNS " FROM sites WHERE id > $1 AND "
			 "($2 = '' OR tenant = $2) ORDER BY id LIMIT $3",
			 STORE_PARAMS(store_text(page.after),
				      store_text(work_scope(call->principal)),
				      store_int(page.limit + 1)),
			 &rows, error))
		return false;
	*ret_answer = work_rows_answer(&rows, &page, site_answer);
	return true;
}
WORK_CALL(site_list, STORE_READ)
