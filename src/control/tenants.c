#include "control/tenants.h"

#include "control/core/body.h"
#include "control/thing.h"

/* --- tenants --- */

#define TENANT_SELECT "SELECT id, name, state, created_ms FROM tenants WHERE "

static bool tenant_answer(struct store_connection *db, const struct store_rows *rows, size_t row,
			  json_t **ret_answer, struct error *error)
{
	(void)db, (void)error;
	*ret_answer = json_pack("{s:o, s:o, s:o, s:o}", "id", work_text_of(rows, row, 0), "name",
				work_text_of(rows, row, 1), "state", work_text_of(rows, row, 2),
				"createdAt", work_time(store_get_int(rows, row, 3)));
	return true;
}

static const struct thing TENANT = {
	.kind = "tenant",
	.prefix = "ten",
	.read = ACCESS_TENANTS_READ,
	.one = TENANT_SELECT "id = $1",
	.page = TENANT_SELECT "id > $1 AND ($2 = '' OR id = $2) ORDER BY id LIMIT $3",
	.tenant_column = 0,
	.answer = tenant_answer,
};

bool tenant_check_active(struct store_connection *db, const char *id, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT state FROM tenants WHERE id = $1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	if (rows.count == 0)
		return work_not_found(error, "tenant", id);
	return str_equal(store_get_text(&rows, 0, 0), "active") ||
	       error_set(error, ERROR_INVALID_STATE, "tenant '%s' is archived", id);
}

static bool check_tenant_name(struct store_connection *db, const char *name, const char *but,
			      struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT id FROM tenants WHERE name = $1 AND id <> $2",
			 STORE_PARAMS(store_text(name), store_text(but)), &rows, error))
		return false;
	/* Whose it is isn't for everybody who may rename their own. */
	if (rows.count == 0)
		return true;
	error_set(error, ERROR_CONFLICT, "tenant '%s' exists already", name);
	return work_name_taken(error);
}

static bool insert_tenant(struct store_connection *db, const char *id, const void *input,
			  struct error *error)
{
	const char *name = input;

	return check_tenant_name(db, name, "", error) &&
	       store_exec(
		       db, "INSERT INTO tenants (id, name, created_ms) VALUES ($1, $2, $3)",
		       STORE_PARAMS(store_text(id), store_text(name), store_int(store_now(db).ms)),
		       error);
}

static bool tenant_create(struct store_connection *db, const struct control_call *call,
			  json_t **ret_answer, struct error *error)
{
	static const char *const known[] = {"name", "idempotencyKey", NULL};
	struct thing_create create = {
		.thing = &TENANT, .action = ACCESS_TENANTS_CREATE, .insert = insert_tenant};
	const char *name;
	struct body body;

	if (!access_check(call->principal, create.action, error) ||
	    !body_open(call->body, "", known, &body, error) ||
	    !body_name(&body, "name", &name, error) ||
	    !body_idempotency_key(&body, &create.key, error))
		return false;
	create.input = name;
	return thing_create(db, call, &create, ret_answer, error);
}
WORK_CALL(tenant_create, STORE_WRITE)

static bool tenant_get(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	return thing_get(db, call, &TENANT, ret_answer, error);
}
WORK_CALL(tenant_get, STORE_READ)

static bool tenant_list(struct store_connection *db, const struct control_call *call,
			json_t **ret_answer, struct error *error)
{
	return thing_list(db, call, &TENANT, ret_answer, error);
}
WORK_CALL(tenant_list, STORE_READ)

/* A body of one name, which must be there: a change that changes nothing was meant otherwise. */
static bool read_new_name(const json_t *json, const char **ret_name, struct error *error)
{
	static const char *const known[] = {"name", NULL};
	struct body body;

	return body_open(json, "", known, &body, error) &&
	       body_name(&body, "name", ret_name, error);
}

static bool tenant_patch(struct store_connection *db, const struct control_call *call,
			 json_t **ret_answer, struct error *error)
{
	CLEANUP(thing_change) struct thing_change change = {0};
	const char *name;

	return thing_change_begin(db, call, &TENANT, ACCESS_TENANTS_PATCH, &change, error) &&
	       read_new_name(call->body, &name, error) &&
	       tenant_check_active(db, call->id, error) &&
	       check_tenant_name(db, name, call->id, error) &&
	       store_exec(db, "UPDATE tenants SET name = $2 WHERE id = $1",
			  STORE_PARAMS(store_text(call->id), store_text(name)), error) &&
	       thing_change_end(db, call, &change, ret_answer, error);
}
WORK_CALL(tenant_patch, STORE_WRITE)

static bool tenant_archive(struct store_connection *db, const struct control_call *call,
			   json_t **ret_answer, struct error *error)
{
	CLEANUP(thing_change) struct thing_change change = {0};
	const char *id = call->id;

	return thing_change_begin(db, call, &TENANT, ACCESS_TENANTS_ARCHIVE, &change, error) &&
	       thing_check_unused(db, &TENANT, id,
				  "SELECT id FROM pools WHERE tenant = $1 AND state = 'active' "
				  "ORDER BY id LIMIT 1",
				  "an active pool", error) &&
	       thing_check_unused(db, &TENANT, id,
				  "SELECT id FROM sites WHERE tenant = $1 AND state = 'active' "
				  "ORDER BY id LIMIT 1",
				  "an active site", error) &&
	       thing_check_unused(
		       db, &TENANT, id,
		       "SELECT id FROM api_keys WHERE tenant = $1 AND revoked_ms IS NULL "
		       "ORDER BY id LIMIT 1",
		       "a live API key", error) &&
	       store_exec(db, "UPDATE tenants SET state = 'archived' WHERE id = $1",
			  STORE_PARAMS(store_text(id)), error) &&
	       thing_change_end(db, call, &change, ret_answer, error);
}
WORK_CALL(tenant_archive, STORE_WRITE)

/* --- sites --- */

#define SITE_SELECT "SELECT id, tenant, name, kind, state, created_ms FROM sites WHERE "
#define SITE_TENANT 1 /* columns */
#define SITE_STATE  4

static bool site_answer(struct store_connection *db, const struct store_rows *rows, size_t row,
			json_t **ret_answer, struct error *error)
{
	(void)db, (void)error;
	*ret_answer = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "id", work_text_of(rows, row, 0),
				"tenantId", work_text_of(rows, row, 1), "name",
				work_text_of(rows, row, 2), "kind", work_text_of(rows, row, 3),
				"state", work_text_of(rows, row, 4), "createdAt",
				work_time(store_get_int(rows, row, 5)));
	return true;
}

static const struct thing SITE = {
	.kind = "site",
	.prefix = "site",
	.read = ACCESS_SITES_READ,
	.one = SITE_SELECT "id = $1",
	.page = SITE_SELECT "id > $1 AND ($2 = '' OR tenant = $2) ORDER BY id LIMIT $3",
	.tenant_column = SITE_TENANT,
	.answer = site_answer,
};

static bool check_site_name(struct store_connection *db, const char *tenant, const char *name,
			    const char *but, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT id FROM sites WHERE tenant = $1 AND name = $2 AND id <> $3",
			 STORE_PARAMS(store_text(tenant), store_text(name), store_text(but)), &rows,
			 error))
		return false;
	if (rows.count == 0)
		return true;
	error_set(error, ERROR_CONFLICT, "site '%s' exists already: %s", name,
		  store_get_text(&rows, 0, 0));
	return work_name_taken(error);
}

struct site_input {
	const char *tenant, *name, *kind;
};

static bool insert_site(struct store_connection *db, const char *id, const void *argument,
			struct error *error)
{
	const struct site_input *input = argument;

	return tenant_check_active(db, input->tenant, error) &&
	       check_site_name(db, input->tenant, input->name, "", error) &&
	       store_exec(db,
			  "INSERT INTO sites (id, tenant, name, kind, created_ms) "
			  "VALUES ($1, $2, $3, $4, $5)",
			  STORE_PARAMS(store_text(id), store_text(input->tenant),
				       store_text(input->name), store_text(input->kind),
				       store_int(store_now(db).ms)),
			  error);
}

static bool site_create(struct store_connection *db, const struct control_call *call,
			json_t **ret_answer, struct error *error)
{
	static const char *const known[] = {"tenantId", "name", "kind", "idempotencyKey", NULL};
	static const char *const kinds[] = {"platform", "custom", NULL};
	struct thing_create create = {
		.thing = &SITE, .action = ACCESS_SITES_CREATE, .insert = insert_site};
	struct site_input input;
	struct body body;
	int kind;

	if (!access_check(call->principal, create.action, error) ||
	    !body_open(call->body, "", known, &body, error) ||
	    !body_id(&body, "tenantId", BODY_REQUIRED, "ten", &input.tenant, error) ||
	    !body_name(&body, "name", &input.name, error) ||
	    !body_choice(&body, "kind", BODY_REQUIRED, kinds, &kind, error) ||
	    !body_idempotency_key(&body, &create.key, error))
		return false;
	/* A platform's site makes platform nodes: that is the operator's to say. */
	if (kind == 0 && !access_check(call->principal, ACCESS_SITES_CREATE_PLATFORM, error))
		return false;
	input.kind = kinds[kind];
	create.tenant = input.tenant;
	create.input = &input;
	return thing_create(db, call, &create, ret_answer, error);
}
WORK_CALL(site_create, STORE_WRITE)

static bool site_get(struct store_connection *db, const struct control_call *call,
		     json_t **ret_answer, struct error *error)
{
	return thing_get(db, call, &SITE, ret_answer, error);
}
WORK_CALL(site_get, STORE_READ)

static bool site_list(struct store_connection *db, const struct control_call *call,
		      json_t **ret_answer, struct error *error)
{
	return thing_list(db, call, &SITE, ret_answer, error);
}
WORK_CALL(site_list, STORE_READ)

static bool check_site_active(const struct thing_change *change, struct error *error)
{
	return str_equal(store_get_text(&change->rows, 0, SITE_STATE), "active") ||
	       error_set(error, ERROR_INVALID_STATE, "site '%s' is archived",
			 store_get_text(&change->rows, 0, 0));
}

static bool site_patch(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	CLEANUP(thing_change) struct thing_change change = {0};
	const char *name;

	return thing_change_begin(db, call, &SITE, ACCESS_SITES_PATCH, &change, error) &&
	       read_new_name(call->body, &name, error) && check_site_active(&change, error) &&
	       check_site_name(db, store_get_text(&change.rows, 0, SITE_TENANT), name, call->id,
			       error) &&
	       store_exec(db, "UPDATE sites SET name = $2 WHERE id = $1",
			  STORE_PARAMS(store_text(call->id), store_text(name)), error) &&
	       thing_change_end(db, call, &change, ret_answer, error);
}
WORK_CALL(site_patch, STORE_WRITE)

static bool site_archive(struct store_connection *db, const struct control_call *call,
			 json_t **ret_answer, struct error *error)
{
	CLEANUP(thing_change) struct thing_change change = {0};

	return thing_change_begin(db, call, &SITE, ACCESS_SITES_ARCHIVE, &change, error) &&
	       thing_check_unused(db, &SITE, call->id,
				  "SELECT id FROM pools WHERE site = $1 AND state = 'active' "
				  "ORDER BY id LIMIT 1",
				  "an active pool", error) &&
	       store_exec(db, "UPDATE sites SET state = 'archived' WHERE id = $1",
			  STORE_PARAMS(store_text(call->id)), error) &&
	       thing_change_end(db, call, &change, ret_answer, error);
}
WORK_CALL(site_archive, STORE_WRITE)
