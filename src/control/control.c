#include "control/control.h"

#include "control/keys.h"
#include "control/work.h"
#include "pki/token.h"

#include <stdio.h>

/* --- who asks --- */

struct authenticate_work {
	const char *id, *hash;
	struct control_principal principal;
	bool found;
};

static bool authenticate_body(struct store_connection *db, void *argument, struct error *error)
{
	struct authenticate_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	/* A key that was rotated has two secrets for a while. */
	if (!store_query(db,
			 "SELECT id, tenant, role FROM api_keys WHERE id = $1 AND revoked_ms IS "
			 "NULL AND (hash = $2 OR (old_hash = $2 AND old_until_ms > $3))",
			 STORE_PARAMS(store_text(work->id), store_text(work->hash),
				      store_int(store_now(db).ms)),
			 &rows, error))
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
	struct authenticate_work work = {.id = id, .hash = hash};

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

/* --- who asked --- */

static bool whoami(struct store_connection *db, const struct control_call *call,
		   json_t **ret_answer, struct error *error)
{
	const struct control_principal *principal = call->principal;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT k.name, t.name FROM api_keys k JOIN tenants t ON t.id = k.tenant "
			 "WHERE k.id = $1",
			 STORE_PARAMS(store_text(principal->key)), &rows, error))
		return false;
	if (rows.count == 0)
		return work_not_found(error, "key", principal->key);
	*ret_answer =
		json_pack("{s:s, s:o, s:s, s:o, s:s}", "keyId", principal->key, "keyName",
			  work_text_of(&rows, 0, 0), "tenantId", principal->tenant, "tenantName",
			  work_text_of(&rows, 0, 1), "role", control_role_name(principal->role));
	return true;
}
WORK_CALL(whoami, STORE_READ)

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
	return key_insert(db, tenant, "operator", "first", id, ret_key, error);
}

bool control_init(struct control *control, char ret_key[CONTROL_KEY_SIZE], struct error *error)
{
	_Static_assert(CONTROL_KEY_SIZE >= TOKEN_SIZE, "a key must fit");
	return store_run(control->connection, STORE_WRITE, init_body, ret_key, error);
}

static bool another_key_body(struct store_connection *db, void *argument, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct control_principal itself = {.role = CONTROL_ROLE_OPERATOR};
	char name[32];

	if (!store_query(db,
			 "SELECT tenant, (SELECT count(*) FROM api_keys) FROM api_keys WHERE role "
			 "= 'operator' ORDER BY created_ms, id LIMIT 1",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	if (rows.count == 0)
		return error_set(error, ERROR_NOT_FOUND, "this database has no operator key yet");
	str_copy(itself.tenant, ID_SIZE, store_get_text(&rows, 0, 0));
	/* The way back is open however often it was gone. */
	snprintf(name, sizeof name, "another-%lld", (long long)store_get_int(&rows, 0, 1));
	/* Nobody called: in the audit the key is who made itself. */
	return key_insert(db, itself.tenant, "operator", name, itself.key, argument, error) &&
	       work_audit(db, &itself, ACCESS_KEYS_CREATE, itself.tenant, itself.key,
			  json_pack("{s:s}", "role", "operator"), error);
}

bool control_another_key(struct control *control, char ret_key[CONTROL_KEY_SIZE],
			 struct error *error)
{
	return store_run(control->connection, STORE_WRITE, another_key_body, ret_key, error);
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
	return store_run(control->connection, STORE_READ, ping_body, NULL, error) &&
	       store_check_writes(control->connection, error);
}
