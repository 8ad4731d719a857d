#include "control/core/body.h"
#include "control/sealing.h"
#include "control/tenants.h"
#include "pki/keys.h"

static bool body_value(const struct body *body, enum body_need need, const char **ret_value,
		       struct error *error)
{
	const json_t *value = json_object_get(body->object, "value");

	*ret_value = NULL;
	if (!value)
		return need == BODY_OPTIONAL || error_field(error, "value", "is missing");
	if (!json_is_string(value))
		return error_field(error, "value", "is not a text");
	if (json_string_length(value) == 0 || json_string_length(value) > CONTROL_SECRET_MAX_VALUE)
		return error_field(error, "value", "must have 1 to %d bytes",
				   CONTROL_SECRET_MAX_VALUE);
	*ret_value = json_string_value(value);
	return true;
}

/* --- rows --- */

static json_t *secret_answer(const struct store_rows *rows, size_t row)
{
	char text[SEALING_REFERENCE_SIZE];

	sealing_reference(text, store_get_text(rows, row, 1), store_get_text(rows, row, 0));
	return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "id",
			 work_text_of(rows, row, 0), "tenantId", work_text_of(rows, row, 1), "name",
			 work_text_of(rows, row, 2), "reference", text, "sealedBy",
			 work_text_of(rows, row, 3), "version", work_int_of(rows, row, 4),
			 "createdAt", work_time(store_get_int(rows, row, 5)), "changedAt",
			 work_time(store_get_int(rows, row, 6)));
}

static bool load_visible(struct store_connection *db, const struct control_call *call,
			 const char *id, struct store_rows *rows, struct error *error)
{
	if (!store_query(db, "SELECT " SEALING_COLUMNS " FROM secrets WHERE id = $1",
			 STORE_PARAMS(store_text(id)), rows, error))
		return false;
	return (rows->count == 1 && access_reaches(call->principal, store_get_text(rows, 0, 1))) ||
	       work_not_found(error, "secret", id);
}

static bool answer_secret(struct store_connection *db, const struct control_call *call,
			  const char *id, json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!load_visible(db, call, id, &rows, error))
		return false;
	*ret_answer = secret_answer(&rows, 0);
	return true;
}

static bool check_name(struct store_connection *db, const char *tenant, const char *name,
		       const char *id, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT s.id FROM tenants t LEFT JOIN secrets s ON s.tenant = t.id AND "
			 "s.name = $2 AND s.id <> $3 WHERE t.id = $1",
			 STORE_PARAMS(store_text(tenant), store_text(name), store_text(id)), &rows,
			 error))
		return false;
	if (rows.count == 0)
		return work_not_found(error, "tenant", tenant);
	if (store_is_null(&rows, 0, 0))
		return true;
	error_set(error, ERROR_CONFLICT, "secret '%s' exists already: %s", name,
		  store_get_text(&rows, 0, 0));
	return work_name_taken(error);
}

/* --- calls that seal: the key file is read before the transaction --- */

struct secret_work {
	const struct control_call *call;
	const struct seal_keys *keys;
	bool (*function)(struct store_connection *db, const struct secret_work *work,
			 json_t **ret_answer, struct error *error);
	json_t *answer;
};

static bool secret_body(struct store_connection *db, void *argument, struct error *error)
{
	struct secret_work *work = argument;

	json_decref(work->answer); /* of a try that was lost */
	work->answer = NULL;
	return work->function(db, work, &work->answer, error);
}

static bool run_sealing(struct control *control, struct secret_work *work, json_t **ret_answer,
			struct error *error)
{
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;

	if (!sealing_keys(control, &keys, error))
		return false;
	work->keys = keys;
	if (!store_run(control->connection, STORE_WRITE, secret_body, work, error)) {
		json_decref(work->answer);
		return false;
	}
	*ret_answer = work->answer;
	return true;
}

/* --- create --- */

struct new_secret {
	const char *tenant, *name, *value, *key;
};

static bool parse_create(const struct control_call *call, struct new_secret *ret_new,
			 struct error *error)
{
	static const char *const known[] = {"tenantId", "name", "value", "idempotencyKey", NULL};
	struct body body;

	return body_open(call->body, "", known, &body, error) &&
	       body_id(&body, "tenantId", BODY_REQUIRED, "ten", &ret_new->tenant, error) &&
	       body_name(&body, "name", &ret_new->name, error) &&
	       body_value(&body, BODY_REQUIRED, &ret_new->value, error) &&
	       body_idempotency_key(&body, &ret_new->key, error);
}

/* A repeat must be of the same value; a hash of it could be guessed at, so the value itself is
 * looked at, unless it has been changed since. */
static bool answer_repeat(struct store_connection *db, const struct secret_work *work,
			  const struct new_secret *asked, const char *id, json_t **ret_answer,
			  struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct buf value = {0};
	bool same;

	if (!load_visible(db, work->call, id, &rows, error) ||
	    !sealing_open(work->keys, &rows, &value, error))
		return false;
	same = store_get_int(&rows, 0, 4) > 1 || str_equal(buf_text(&value), asked->value);
	pki_wipe(&value);
	if (!same) {
		error_set(error, ERROR_CONFLICT,
			  "the idempotency key was used for another input, which made %s", id);
		str_copy(error->field, sizeof error->field, "idempotencyKey");
		return error_hint(error, WORK_KEY_HINT);
	}
	*ret_answer = secret_answer(&rows, 0);
	return true;
}

static bool create(struct store_connection *db, const struct secret_work *work, json_t **ret_answer,
		   struct error *error)
{
	const enum access_action action = ACCESS_SECRETS_CREATE;
	CLEANUP(json_ref) json_t *open_part = json_copy((json_t *)work->call->body);
	struct control_call call = *work->call;
	struct new_secret asked;
	char id[ID_SIZE];
	int64_t now_ms = store_now(db).ms;

	json_object_del(open_part, "value");
	call.body = open_part;
	if (!parse_create(work->call, &asked, error))
		return false;
	if (!access_reaches(call.principal, asked.tenant))
		return work_not_found(error, "tenant", asked.tenant);
	if (!work_find_done(db, &call, asked.key, action, id, error))
		return false;
	if (id[0] != '\0')
		return answer_repeat(db, work, &asked, id, ret_answer, error);
	work_new_id(db, "sec", id);
	return tenant_check_active(db, asked.tenant, error) &&
	       check_name(db, asked.tenant, asked.name, "", error) &&
	       store_exec(db,
			  "INSERT INTO secrets (id, tenant, name, sealed_by, sealed, version, "
			  "created_ms, changed_ms) VALUES ($1, $2, $3, '', '', 1, $4, $4)",
			  STORE_PARAMS(store_text(id), store_text(asked.tenant),
				       store_text(asked.name), store_int(now_ms)),
			  error) &&
	       sealing_write(db, work->keys, asked.tenant, id, asked.value, strlen(asked.value),
			     error) &&
	       work_remember_done(db, &call, asked.key, action, id, error) &&
	       work_audit(db, call.principal, action, asked.tenant, id,
			  json_pack("{s:s}", "name", asked.name), error) &&
	       answer_secret(db, &call, id, ret_answer, error) &&
	       work_audit_hashes(db, call.principal, id, NULL, *ret_answer, error);
}

bool control_secret_create(struct control *control, const struct control_call *call,
			   json_t **ret_answer, struct error *error)
{
	struct secret_work work = {.call = call, .function = create};
	struct new_secret asked;

	return access_check(call->principal, ACCESS_SECRETS_CREATE, error) &&
	       parse_create(call, &asked, error) && run_sealing(control, &work, ret_answer, error);
}

/* --- patch --- */

struct secret_change {
	const char *name, *value; /* NULL: as it is */
};

static bool parse_patch(const struct control_call *call, struct secret_change *ret_change,
			struct error *error)
{
	static const char *const known[] = {"name", "value", NULL};
	struct body body;

	*ret_change = (struct secret_change){0};
	if (!work_path_id(call, "secret", "sec", error) ||
	    !body_open(call->body, "", known, &body, error) ||
	    (json_object_get(body.object, "name") &&
	     !body_name(&body, "name", &ret_change->name, error)) ||
	    !body_value(&body, BODY_OPTIONAL, &ret_change->value, error))
		return false;
	return ret_change->name || ret_change->value ||
	       error_field(error, "value", "is missing, and so is name");
}

static bool patch(struct store_connection *db, const struct secret_work *work, json_t **ret_answer,
		  struct error *error)
{
	const struct control_call *call = work->call;
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(json_ref) json_t *before = NULL;
	struct secret_change change;
	const char *tenant;

	if (!parse_patch(call, &change, error) || !load_visible(db, call, call->id, &rows, error))
		return false;
	tenant = store_get_text(&rows, 0, 1);
	before = secret_answer(&rows, 0);
	return (!change.name || check_name(db, tenant, change.name, call->id, error)) &&
	       store_exec(db,
			  "UPDATE secrets SET name = $2, version = version + $3, changed_ms = $4 "
			  "WHERE id = $1",
			  STORE_PARAMS(store_text(call->id),
				       store_text(change.name ? change.name
							      : store_get_text(&rows, 0, 2)),
				       store_int(change.value ? 1 : 0),
				       store_int(store_now(db).ms)),
			  error) &&
	       (!change.value || sealing_write(db, work->keys, tenant, call->id, change.value,
					       strlen(change.value), error)) &&
	       work_audit(db, call->principal, ACCESS_SECRETS_PATCH, tenant, call->id,
			  json_pack("{s:b, s:b}", "name", change.name != NULL, "value",
				    change.value != NULL),
			  error) &&
	       answer_secret(db, call, call->id, ret_answer, error) &&
	       work_audit_hashes(db, call->principal, call->id, before, *ret_answer, error);
}

bool control_secret_patch(struct control *control, const struct control_call *call,
			  json_t **ret_answer, struct error *error)
{
	struct secret_work work = {.call = call, .function = patch};
	struct secret_change change;

	return access_check(call->principal, ACCESS_SECRETS_PATCH, error) &&
	       parse_patch(call, &change, error) && run_sealing(control, &work, ret_answer, error);
}

/* --- calls that don't --- */

static bool secret_get(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	return access_check(call->principal, ACCESS_SECRETS_READ, error) &&
	       work_path_id(call, "secret", "sec", error) &&
	       answer_secret(db, call, call->id, ret_answer, error);
}
WORK_CALL(secret_get, STORE_READ)

static bool secret_list(struct store_connection *db, const struct control_call *call,
			json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct work_page page;

	if (!access_check(call->principal, ACCESS_SECRETS_READ, error) ||
	    !work_page(call, "sec", &page, error) ||
	    !store_query(db,
			 "SELECT " SEALING_COLUMNS " FROM secrets WHERE id > $1 AND "
			 "($2 = '' OR tenant = $2) AND ($3 = '' OR tenant = $3) "
			 "ORDER BY id LIMIT $4",
			 STORE_PARAMS(store_text(page.after),
				      store_text(work_scope(call->principal)),
				      store_text(call->tenant_id ? call->tenant_id : ""),
				      store_int(page.limit + 1)),
			 &rows, error))
		return false;
	*ret_answer = work_rows_answer(&rows, &page, secret_answer);
	return true;
}
WORK_CALL(secret_list, STORE_READ)

/* What a pool needs to let its machines join is not taken from under it. */
static bool check_unused(struct store_connection *db, const char *tenant, const char *id,
			 struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	char text[SEALING_REFERENCE_SIZE];

	sealing_reference(text, tenant, id);
	if (!store_query(db, "SELECT id, policy FROM pools WHERE tenant = $1 AND state = 'active'",
			 STORE_PARAMS(store_text(tenant)), &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		CLEANUP(json_ref) json_t *policy = work_parse(store_get_text(&rows, i, 1));
		const char *named = json_string_value(
			json_object_get(json_object_get(policy, "kubernetes"), "joinTokenRef"));

		if (named && str_equal(named, text)) {
			error_set(error, ERROR_INVALID_STATE, "pool '%s' refers to secret '%s'",
				  store_get_text(&rows, i, 0), id);
			return error_hint(error, "Change the pool's policy first.");
		}
	}
	return true;
}

static bool secret_delete(struct store_connection *db, const struct control_call *call,
			  json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!access_check(call->principal, ACCESS_SECRETS_DELETE, error) ||
	    !work_path_id(call, "secret", "sec", error) ||
	    !load_visible(db, call, call->id, &rows, error) ||
	    !check_unused(db, store_get_text(&rows, 0, 1), call->id, error) ||
	    !store_exec(db, "DELETE FROM secrets WHERE id = $1", STORE_PARAMS(store_text(call->id)),
			error) ||
	    !work_forget_done(db, call->id, error) ||
	    !work_audit(db, call->principal, ACCESS_SECRETS_DELETE, store_get_text(&rows, 0, 1),
			call->id, json_pack("{s:s}", "name", store_get_text(&rows, 0, 2)), error))
		return false;
	*ret_answer = secret_answer(&rows, 0);
	return true;
}
WORK_END(secret_delete, secret_get)
