#include "control/keys.h"

#include "base/duration.h"
#include "control/core/body.h"
#include "control/tenants.h"

static const char *const ROLES[] = {"viewer", "user", "owner", "operator", NULL};

/* --- rows --- */

bool key_insert(struct store_connection *db, const char *tenant, const char *role, const char *name,
		char ret_id[ID_SIZE], char ret_text[TOKEN_SIZE], struct error *error)
{
	char hash[TOKEN_HASH_SIZE];

	work_new_id(db, "key", ret_id);
	token_make(ret_text, TOKEN_PREFIX_KEY, ret_id);
	token_hash(ret_text, hash);
	return store_exec(db,
			  "INSERT INTO api_keys (id, tenant, role, name, hash, created_ms) "
			  "VALUES ($1, $2, $3, $4, $5, $6)",
			  STORE_PARAMS(store_text(ret_id), store_text(tenant), store_text(role),
				       store_text(name), store_text(hash),
				       store_int(store_now(db).ms)),
			  error);
}

/* Columns of key_answer(). */
#define KEY_COLUMNS "id, tenant, role, name, created_ms, revoked_ms, rotated_ms, old_until_ms"

static json_t *key_answer(const struct store_rows *rows, size_t row)
{
	json_t *answer = json_pack("{s:o, s:o, s:o, s:o, s:o}", "id", work_text_of(rows, row, 0),
				   "tenantId", work_text_of(rows, row, 1), "role",
				   work_text_of(rows, row, 2), "name", work_text_of(rows, row, 3),
				   "createdAt", work_time(store_get_int(rows, row, 4)));

	work_set_time(answer, "revokedAt", rows, row, 5);
	work_set_time(answer, "rotatedAt", rows, row, 6);
	work_set_time(answer, "oldSecretEndsAt", rows, row, 7);
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

static bool answer_key(struct store_connection *db, const struct control_call *call, const char *id,
		       json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!load_key(db, call, id, &rows, error))
		return false;
	*ret_answer = key_answer(&rows, 0);
	return true;
}

/* --- who may --- */

/* Nobody makes or touches a key that does more than their own. */
static bool check_role(const struct control_call *call, const char *role, const char *what,
		       struct error *error)
{
	enum control_role needed;

	if (!access_role_parse(role, &needed))
		return error_set(error, ERROR_INTERNAL, "a key has the unknown role '%s'", role);
	return needed <= call->principal->role ||
	       error_set(error, ERROR_FORBIDDEN, "the role %s may not %s a key of role %s",
			 control_role_name(call->principal->role), what, role);
}

/* The key of the path, which may be changed by who asks. */
static bool load_mine(struct store_connection *db, const struct control_call *call,
		      enum access_action action, const char *what, struct store_rows *rows,
		      struct error *error)
{
	return access_check(call->principal, action, error) &&
	       work_path_id(call, "key", "key", error) &&
	       load_key(db, call, call->id, rows, error) &&
	       check_role(call, store_get_text(rows, 0, 2), what, error);
}

/* The last operator's key that opens stays one: without it nobody could make another. */
static bool check_not_last(struct store_connection *db, const struct store_rows *key,
			   struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!str_equal(store_get_text(key, 0, 2), "operator") || !store_is_null(key, 0, 5))
		return true;
	if (!store_query(db,
			 "SELECT 1 FROM api_keys WHERE role = 'operator' AND revoked_ms IS NULL "
			 "AND id <> $1 LIMIT 1",
			 STORE_PARAMS(store_text(store_get_text(key, 0, 0))), &rows, error))
		return false;
	if (rows.count > 0)
		return true;
	error_set(error, ERROR_INVALID_STATE, "key '%s' is the last operator key",
		  store_get_text(key, 0, 0));
	return error_hint(error, "Make another operator key first.");
}

static bool check_live(const struct store_rows *key, struct error *error)
{
	return store_is_null(key, 0, 5) ||
	       error_set(error, ERROR_INVALID_STATE, "key '%s' is revoked",
			 store_get_text(key, 0, 0));
}

/* A name means one key that opens: whoever made it twice, or revokes it by name, is told. */
static bool check_name(struct store_connection *db, const char *tenant, const char *name,
		       const char *but, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT id FROM api_keys WHERE tenant = $1 AND name = $2 AND id <> $3 AND "
			 "revoked_ms IS NULL LIMIT 1",
			 STORE_PARAMS(store_text(tenant), store_text(name), store_text(but)), &rows,
			 error))
		return false;
	if (rows.count == 0)
		return true;
	error_set(error, ERROR_CONFLICT, "the tenant has a key of the name '%s' already: %s", name,
		  store_get_text(&rows, 0, 0));
	error_hint(error, "Give another name, or revoke that key first.");
	return work_name_taken(error);
}

/* --- calls --- */

static bool key_create(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	static const char *const known[] = {"tenantId", "role", "name", NULL};
	char id[ID_SIZE], text[TOKEN_SIZE];
	const char *tenant, *name;
	struct body body;
	int role;

	if (!access_check(call->principal, ACCESS_KEYS_CREATE, error) ||
	    !body_open(call->body, "", known, &body, error) ||
	    !body_id(&body, "tenantId", BODY_REQUIRED, "ten", &tenant, error) ||
	    !body_choice(&body, "role", BODY_REQUIRED, ROLES, &role, error) ||
	    !body_name(&body, "name", &name, error))
		return false;
	if (!access_reaches(call->principal, tenant))
		return work_not_found(error, "tenant", tenant);
	if (!check_role(call, ROLES[role], "make", error) ||
	    !tenant_check_active(db, tenant, error) || !check_name(db, tenant, name, "", error) ||
	    !key_insert(db, tenant, ROLES[role], name, id, text, error) ||
	    !work_audit(db, call->principal, ACCESS_KEYS_CREATE, tenant, id,
			json_pack("{s:s}", "role", ROLES[role]), error) ||
	    !answer_key(db, call, id, ret_answer, error))
		return false;
	json_object_set_new(*ret_answer, "key", json_string(text));
	return true;
}
WORK_MAKE(key_create)

static bool key_get(struct store_connection *db, const struct control_call *call,
		    json_t **ret_answer, struct error *error)
{
	return access_check(call->principal, ACCESS_KEYS_READ, error) &&
	       work_path_id(call, "key", "key", error) &&
	       answer_key(db, call, call->id, ret_answer, error);
}
WORK_CALL(key_get, STORE_READ)

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

static bool key_patch(struct store_connection *db, const struct control_call *call,
		      json_t **ret_answer, struct error *error)
{
	static const char *const known[] = {"name", "role", NULL};
	const enum access_action action = ACCESS_KEYS_PATCH;
	CLEANUP(store_rows) struct store_rows rows = {0};
	const char *name = NULL, *new_role;
	struct body body;
	int role = -1;

	if (!load_mine(db, call, action, "change", &rows, error) ||
	    !body_open(call->body, "", known, &body, error) ||
	    (json_object_get(body.object, "name") && !body_name(&body, "name", &name, error)) ||
	    !body_choice(&body, "role", BODY_OPTIONAL, ROLES, &role, error))
		return false;
	if (!name && role < 0)
		return error_field(error, "name", "is missing, and so is role");
	new_role = role >= 0 ? ROLES[role] : store_get_text(&rows, 0, 2);
	if (!check_live(&rows, error) || !check_role(call, new_role, "make", error) ||
	    (!str_equal(new_role, "operator") && !check_not_last(db, &rows, error)) ||
	    (name && !check_name(db, store_get_text(&rows, 0, 1), name, call->id, error)))
		return false;
	return store_exec(db, "UPDATE api_keys SET name = $2, role = $3 WHERE id = $1",
			  STORE_PARAMS(store_text(call->id),
				       store_text(name ? name : store_get_text(&rows, 0, 3)),
				       store_text(new_role)),
			  error) &&
	       work_audit(db, call->principal, action, store_get_text(&rows, 0, 1), call->id,
			  json_pack("{s:s}", "role", new_role), error) &&
	       answer_key(db, call, call->id, ret_answer, error);
}
WORK_CHANGE(key_patch, key_get)

static bool parse_overlap(const struct control_call *call, int64_t *ret_ms, struct error *error)
{
	static const char *const known[] = {"overlap", NULL};
	const char *overlap;
	struct body body;

	*ret_ms = 0;
	if (!call->body)
		return true;
	return body_open(call->body, "", known, &body, error) &&
	       body_text(&body, "overlap", BODY_OPTIONAL, DURATION_TEXT_SIZE, &overlap, error) &&
	       (!overlap || duration_parse(overlap, "overlap", CONTROL_KEY_MIN_OVERLAP_MS,
					   CONTROL_KEY_MAX_OVERLAP_MS, ret_ms, error));
}

/* The old secret ends after the overlap; an even older one ends now. */
static bool key_rotate(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	const enum access_action action = ACCESS_KEYS_ROTATE;
	CLEANUP(store_rows) struct store_rows rows = {0};
	char text[TOKEN_SIZE], hash[TOKEN_HASH_SIZE];
	int64_t overlap_ms, now_ms = store_now(db).ms;

	if (!load_mine(db, call, action, "rotate", &rows, error) ||
	    !parse_overlap(call, &overlap_ms, error) || !check_live(&rows, error))
		return false;
	token_make(text, TOKEN_PREFIX_KEY, call->id);
	token_hash(text, hash);
	if (!store_exec(db,
			"UPDATE api_keys SET old_hash = hash, old_until_ms = $3, rotated_ms = $4, "
			"hash = $2 WHERE id = $1",
			STORE_PARAMS(store_text(call->id), store_text(hash),
				     store_int(now_ms + overlap_ms), store_int(now_ms)),
			error) ||
	    !work_audit(db, call->principal, action, store_get_text(&rows, 0, 1), call->id, NULL,
			error) ||
	    !answer_key(db, call, call->id, ret_answer, error))
		return false;
	json_object_set_new(*ret_answer, "key", json_string(text));
	return true;
}
WORK_CHANGE(key_rotate, key_get)

static bool key_revoke(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	const enum access_action action = ACCESS_KEYS_REVOKE;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!load_mine(db, call, action, "revoke", &rows, error) ||
	    !check_not_last(db, &rows, error))
		return false;
	if (store_is_null(&rows, 0, 5) &&
	    (!store_exec(db, "UPDATE api_keys SET revoked_ms = $2 WHERE id = $1",
			 STORE_PARAMS(store_text(call->id), store_int(store_now(db).ms)), error) ||
	     !work_audit(db, call->principal, action, store_get_text(&rows, 0, 1), call->id, NULL,
			 error)))
		return false;
	return answer_key(db, call, call->id, ret_answer, error);
}
WORK_CHANGE(key_revoke, key_get)
