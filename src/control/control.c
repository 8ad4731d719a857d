#include "control/control.h"

#include "control/core/body.h"
#include "control/work.h"
#include "pki/token.h"

/* --- who asks --- */

struct authenticate_work {
	const char *hash;
	struct control_principal principal;
	bool found;
};

static bool authenticate_body(struct store_connection *db, void *argument, struct error *error)
{
	struct authenticate_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT id, tenant, role FROM api_keys "
			 "WHERE hash = $1 AND revoked_ms IS NULL",
			 STORE_PARAMS(store_text(work->hash)), &rows, error))
		return false;
	work->found = rows.count == 1;
	if (!work->found)
		return true;
	work->principal = (struct control_principal){0};
	str_copy(work->principal.key, ID_SIZE, store_get_text(&rows, 0, 0));
	str_copy(work->principal.tenant, ID_SIZE, store_get_text(&rows, 0, 1));
	return access_role_parse(store_get_text(&rows, 0, 2), &work->principal.role) ||
	       error_set(error, ERROR_INTERNAL, "key '%s': unknown role", work->principal.key);
}

bool control_authenticate(struct control *control, const char *key,
			  struct control_principal *ret_principal, struct error *error)
{
	char hash[TOKEN_HASH_SIZE], id[ID_SIZE];
	struct authenticate_work work = {.hash = hash};

	if (key && token_parse(key, TOKEN_PREFIX_KEY, "key", id)) {
		token_hash(key, hash);
		if (!store_run(control->connection, STORE_READ, authenticate_body, &work, error))
			return false;
	}
	if (!work.found) {
		error_set(error, ERROR_UNAUTHENTICATED, "no valid API key was given");
		return error_hint(error, "Send 'Authorization: Bearer bck_…' with a key that isn't "
					 "revoked.");
	}
	*ret_principal = work.principal;
	return true;
}

/* --- keys --- */

/* Makes a key of a role; `text` is what its holder gets, once. */
static bool insert_key(struct store_connection *db, const char *tenant, const char *role,
		       const char *name, char id[ID_SIZE], char text[TOKEN_SIZE],
		       struct error *error)
{
	char hash[TOKEN_HASH_SIZE];

	work_new_id(db, "key", id);
	token_make(text, TOKEN_PREFIX_KEY, id);
	token_hash(text, hash);
	return store_exec(db,
			  "INSERT INTO api_keys (id, tenant, role, name, hash, created_ms) "
			  "VALUES ($1, $2, $3, $4, $5, $6)",
			  STORE_PARAMS(store_text(id), store_text(tenant), store_text(role),
				       store_text(name), store_text(hash),
				       store_int(store_now(db).ms)),
			  error);
}

/* Columns of key_answer(). */
#define KEY_COLUMNS "id, tenant, role, name, created_ms, revoked_ms"

static json_t *key_answer(const struct store_rows *rows, size_t row)
{
	json_t *answer = json_pack("{s:o, s:o, s:o, s:o, s:o}", "id", work_text_of(rows, row, 0),
				   "tenantId", work_text_of(rows, row, 1), "role",
				   work_text_of(rows, row, 2), "name", work_text_of(rows, row, 3),
				   "createdAt", work_time(store_get_int(rows, row, 4)));

	work_set_time(answer, "revokedAt", rows, row, 5);
	return answer;
}

static bool load_key(struct store_connection *db, const struct control_call *call, const char *id,
		     struct store_rows *rows, struct error *error)
{
	if (!store_query(db, "SELECT " KEY_COLUMNS " FROM api_keys WHERE id = $1",
			 STORE_PARAMS(store_text(id)), rows, error))
		return false;
	if (rows->count == 0 || !access_reaches(call->principal, store_get_text(rows, 0, 1)))
		return work_not_found(error, "key", id);
	return true;
}

static bool check_tenant_exists(struct store_connection *db, const char *tenant,
				struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT 1 FROM tenants WHERE id = $1",
			 STORE_PARAMS(store_text(tenant)), &rows, error))
		return false;
	return rows.count == 1 || work_not_found(error, "tenant", tenant);
}

static bool key_create(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	static const char *const known[] = {"tenantId", "role", "name", NULL};
	static const char *const roles[] = {"viewer", "user", "owner", "operator", NULL};
	CLEANUP(store_rows) struct store_rows rows = {0};
	char id[ID_SIZE], text[TOKEN_SIZE];
	const char *tenant, *name;
	struct body body;
	int role;

	if (!access_check(call->principal, ACCESS_KEYS_CREATE, error) ||
	    !body_open(call->body, "", known, &body, error) ||
	    !body_id(&body, "tenantId", BODY_REQUIRED, "ten", &tenant, error) ||
	    !body_choice(&body, "role", BODY_REQUIRED, roles, &role, error) ||
	    !body_name(&body, "name", &name, error))
		return false;
	if (!access_reaches(call->principal, tenant))
		return work_not_found(error, "tenant", tenant);
	/* Nobody makes a key that does more than their own. */
	if ((enum control_role)role > call->principal->role)
		return error_set(error, ERROR_FORBIDDEN,
				 "the role %s may not make a key of role %s",
				 control_role_name(call->principal->role), roles[role]);
	if (!check_tenant_exists(db, tenant, error) ||
	    !insert_key(db, tenant, roles[role], name, id, text, error) ||
	    !work_audit(db, call->principal, ACCESS_KEYS_CREATE, tenant, id,
			json_pack("{s:s}", "role", roles[role]), error) ||
	    !load_key(db, call, id, &rows, error))
		return false;
	*ret_answer = key_answer(&rows, 0);
	json_object_set_new(*ret_answer, "key", json_string(text));
	return true;
}
WORK_CALL(key_create, STORE_WRITE)

static bool key_list(struct store_connection *db, const struct control_call *call,
		     json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct work_page page;

	if (!access_check(call->principal, ACCESS_KEYS_READ, error) ||
	    !work_page(call, "key", &page, error) ||
	    !store_query(db,
			 "SELECT " KEY_COLUMNS " FROM api_keys WHERE id > $1 AND "
			 "($2 = '' OR tenant = $2) ORDER BY id LIMIT $3",
			 STORE_PARAMS(store_text(page.after),
				      store_text(work_scope(call->principal)),
				      store_int(page.limit + 1)),
			 &rows, error))
		return false;
	*ret_answer = work_rows_answer(&rows, &page, key_answer);
	return true;
}
WORK_CALL(key_list, STORE_READ)

static bool key_revoke(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!access_check(call->principal, ACCESS_KEYS_REVOKE, error) ||
	    !work_path_id(call, "key", "key", error) || !load_key(db, call, call->id, &rows, error))
		return false;
	if (store_is_null(&rows, 0, 5) &&
	    (!store_exec(db, "UPDATE api_keys SET revoked_ms = $2 WHERE id = $1",
			 STORE_PARAMS(store_text(call->id), store_int(store_now(db).ms)), error) ||
	     !work_audit(db, call->principal, ACCESS_KEYS_REVOKE, store_get_text(&rows, 0, 1),
			 call->id, NULL, error) ||
	     !load_key(db, call, call->id, &rows, error)))
		return false;
	*ret_answer = key_answer(&rows, 0);
	return true;
}
WORK_CALL(key_revoke, STORE_WRITE)

bool control_whoami(struct control *control, const struct control_call *call, json_t **ret_answer,
		    struct error *error)
{
	const struct control_principal *principal = call->principal;

	(void)control;
	(void)error;
	*ret_answer = json_pack("{s:s, s:s, s:s}", "keyId", principal->key, "tenantId",
				principal->tenant, "role", control_role_name(principal->role));
	return true;
}

/* --- the first key --- */

static bool init_body(struct store_connection *db, void *argument, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	char *ret_key = argument;
	char tenant[ID_SIZE], id[ID_SIZE];

	ret_key[0] = '\0';
	if (!store_query(db,
			 "SELECT 1 FROM api_keys WHERE role = 'operator' AND revoked_ms IS NULL",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	if (rows.count > 0)
		return true;
	if (!store_query(db, "SELECT id FROM tenants WHERE name = 'platform'", STORE_NO_PARAMS,
			 &rows, error))
		return false;
	if (rows.count > 0) {
		str_copy(tenant, sizeof tenant, store_get_text(&rows, 0, 0));
	} else {
		work_new_id(db, "ten", tenant);
		if (!store_exec(db,
				"INSERT INTO tenants (id, name, created_ms) "
				"VALUES ($1, 'platform', $2)",
				STORE_PARAMS(store_text(tenant), store_int(store_now(db).ms)),
				error) ||
		    !store_exec(db, "INSERT INTO meta (name, value) VALUES ('root_tenant', $1)",
				STORE_PARAMS(store_text(tenant)), error))
			return false;
	}
	return insert_key(db, tenant, "operator", "first", id, ret_key, error);
}

bool control_init(struct control *control, char ret_key[CONTROL_KEY_SIZE], struct error *error)
{
	_Static_assert(CONTROL_KEY_SIZE >= TOKEN_SIZE, "a key must fit");
	return store_run(control->connection, STORE_WRITE, init_body, ret_key, error);
}

/* --- readiness --- */

static bool ping_body(struct store_connection *db, void *argument, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	(void)argument;
	return store_query(db, "SELECT value FROM counters WHERE name = 'outbox'", STORE_NO_PARAMS,
			   &rows, error);
}

bool control_ping(struct control *control, struct error *error)
{
	return store_run(control->connection, STORE_READ, ping_body, NULL, error);
}
