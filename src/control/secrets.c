#include "control/core/secrets.h"
#include "control/core/body.h"
#include "control/nodes.h"
#include "control/pools.h"
#include "control/stream.h"
#include "control/tenants.h"
#include "pki/keys.h"
#include "pki/seal.h"
#include "sys/log.h"

#include <stdio.h>

#define ABOUT_SIZE          (2 * ID_SIZE)
#define REFERENCE_SCHEME    "secret://"
#define REFERENCE_SIZE      (2 * ID_SIZE + 16)
#define MAX_RESEALED_A_PASS 100

/* --- keys and values --- */

/* Read anew each time: it is rare, and a key that was added counts at once. */
static bool load_keys(const struct control *control, struct seal_keys **ret_keys,
		      struct error *error)
{
	struct error failed;

	if (!control->secret_key_file) {
		error_set(error, ERROR_INVALID_STATE,
			  "this control plane keeps no secrets: it has no secret key file");
		return error_hint(error, "Make one with 'better-compute secret-key init' and give "
					 "it to serve with --secret-key-file.");
	}
	if (seal_keys_load(control->secret_key_file, ret_keys, &failed))
		return true;
	/* Whoever asked can't mend it. */
	log_failure(LOG_ERROR, "secret-key", &failed, "no secret can be kept or given");
	return error_set(error, ERROR_UNAVAILABLE, "the secret key file can't be used");
}

/* What is sealed says whose it is. */
static void about(char out[ABOUT_SIZE], const char *tenant, const char *id)
{
	snprintf(out, ABOUT_SIZE, "%s/%s", tenant, id);
}

static void reference(char out[REFERENCE_SIZE], const char *tenant, const char *id)
{
	snprintf(out, REFERENCE_SIZE, REFERENCE_SCHEME "%s/%s", tenant, id);
}

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

#define SECRET_COLUMNS "id, tenant, name, sealed_by, version, created_ms, changed_ms, sealed"

static json_t *secret_answer(const struct store_rows *rows, size_t row)
{
	char text[REFERENCE_SIZE];

	reference(text, store_get_text(rows, row, 1), store_get_text(rows, row, 0));
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
	if (!store_query(db, "SELECT " SECRET_COLUMNS " FROM secrets WHERE id = $1",
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
	return store_is_null(&rows, 0, 0) ||
	       error_set(error, ERROR_CONFLICT, "secret '%s' exists already: %s", name,
			 store_get_text(&rows, 0, 0));
}

/* Seals the value into its row, as a new version of it. */
static bool write_value(struct store_connection *db, const struct seal_keys *keys,
			const char *tenant, const char *id, const void *value, size_t length,
			struct error *error)
{
	CLEANUP(buf) struct buf sealed = {0};
	char whose[ABOUT_SIZE];

	about(whose, tenant, id);
	return seal(keys, whose, value, length, &sealed, error) &&
	       store_exec(db, "UPDATE secrets SET sealed_by = $2, sealed = $3 WHERE id = $1",
			  STORE_PARAMS(store_text(id), store_text(seal_keys_id(keys, 0)),
				       store_text(buf_text(&sealed))),
			  error);
}

/* Of a row of SECRET_COLUMNS; wipe it. */
static bool open_value(const struct seal_keys *keys, const struct store_rows *rows,
		       struct buf *ret_value, struct error *error)
{
	char whose[ABOUT_SIZE];

	about(whose, store_get_text(rows, 0, 1), store_get_text(rows, 0, 0));
	return seal_open(keys, store_get_text(rows, 0, 3), whose, store_get_text(rows, 0, 7),
			 ret_value, error) ||
	       error_wrap(error, "secret '%s'", store_get_text(rows, 0, 0));
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

	if (!load_keys(control, &keys, error))
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
	    !open_value(work->keys, &rows, &value, error))
		return false;
	same = store_get_int(&rows, 0, 4) > 1 || str_equal(buf_text(&value), asked->value);
	pki_wipe(&value);
	if (!same)
		return error_set(error, ERROR_CONFLICT,
				 "the idempotency key was used for another input, which made %s",
				 id);
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
	       write_value(db, work->keys, asked.tenant, id, asked.value, strlen(asked.value),
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
	       (!change.value || write_value(db, work->keys, tenant, call->id, change.value,
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
			 "SELECT " SECRET_COLUMNS " FROM secrets WHERE id > $1 AND "
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
	char text[REFERENCE_SIZE];

	reference(text, tenant, id);
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

/* --- the broker --- */

struct give_work {
	const struct control_secret_request *request;
	struct secret_view view;
	char id[ID_SIZE];
	struct store_rows rows; /* of the secret; empty when it is refused, or isn't there */
};

/* "secret://<tenant>/<id>" of this tenant; *id is "" when it isn't such a text. */
static bool is_of_tenant(const char *text, const char *tenant, char id[ID_SIZE])
{
	char expected[REFERENCE_SIZE];
	const char *last = strrchr(text, '/');

	id[0] = '\0';
	if (!last || !id_valid(last + 1, "sec"))
		return false;
	str_copy(id, ID_SIZE, last + 1);
	reference(expected, tenant, id);
	return str_equal(text, expected);
}

static bool look_at_allocation(struct store_connection *db, struct give_work *work,
			       struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	const char *state;

	work->view.for_allocation = work->request->allocation[0] != '\0';
	if (!work->view.for_allocation)
		return true;
	if (!store_query(db,
			 "SELECT state FROM allocations WHERE id = $1 AND node = $2 AND "
			 "assigned_generation IS NOT NULL",
			 STORE_PARAMS(store_text(work->request->allocation),
				      store_text(work->request->node)),
			 &rows, error))
		return false;
	work->view.allocation_here = rows.count == 1;
	state = rows.count == 1 ? store_get_text(&rows, 0, 0) : "";
	work->view.allocation_leaving = !str_equal(state, "placed") && !str_equal(state, "bound");
	return true;
}

static bool give_body(struct store_connection *db, void *argument, struct error *error)
{
	struct give_work *work = argument;
	const struct control_secret_request *request = work->request;
	CLEANUP(pool) struct pool pool = {0};
	CLEANUP(node) struct node node = {0};

	store_rows_deinit(&work->rows);
	work->view = (struct secret_view){.tenants_certificate = request->tenants_certificate};
	if (!stream_check(db, request->node, request->epoch, &node, error) ||
	    !pool_load(db, node.pool, &pool, error))
		return false;
	work->view.tenant_controlled = node.trust == CONTROL_TRUST_TENANT_CONTROLLED;
	work->view.working = str_equal(node.state, "joining") ||
			     str_equal(node.state, "adopting") || str_equal(node.state, "ready");
	work->view.named = !pool.archived && pool.policy.joins &&
			   str_equal(pool.policy.join_token_ref, request->reference);
	work->view.own_tenant = is_of_tenant(request->reference, pool.tenant, work->id);
	if (!look_at_allocation(db, work, error))
		return false;
	return secret_refusal(&work->view) ||
	       store_query(db, "SELECT " SECRET_COLUMNS " FROM secrets WHERE id = $1",
			   STORE_PARAMS(store_text(work->id)), &work->rows, error);
}

static bool open_for(struct control *control, const struct give_work *work,
		     struct control_secret *ret_secret, struct error *error)
{
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;

	if (work->rows.count == 0) {
		ret_secret->refusal = "the secret that the node's pool names is not there";
		return true;
	}
	if (!load_keys(control, &keys, error) ||
	    !open_value(keys, &work->rows, &ret_secret->value, error)) {
		/* The stream goes on: the node asks again. */
		log_failure(LOG_ERROR, "secret.open", error, "it is not given");
		ret_secret->refusal = "the secret can't be opened now";
	}
	return true;
}

bool control_secret_give(struct control *control, const struct control_secret_request *request,
			 struct control_secret *ret_secret, struct error *error)
{
	struct give_work work = {.request = request};
	struct control_secret secret = {0};
	bool done = store_run(control->connection, STORE_READ, give_body, &work, error);

	if (done) {
		secret.refusal = secret_refusal(&work.view);
		done = secret.refusal || open_for(control, &work, &secret, error);
	}
	if (done && secret.refusal)
		log_warn("secret.refused", secret.refusal, "node", request->node, NULL);
	else if (done)
		log_info("secret.given", "given to a node that its pool's policy names it for",
			 "node", request->node, "secret", work.id, NULL);
	store_rows_deinit(&work.rows);
	if (done)
		*ret_secret = secret;
	return done;
}

void control_secret_deinit(struct control_secret *secret)
{
	pki_wipe(&secret->value);
}

/* --- sealing anew, under a newer key --- */

struct reseal_work {
	const struct seal_keys *keys;
	const char *old; /* the key whose secrets are looked for */
	const char *id;  /* one of them */
	struct store_rows rows;
};

static bool find_body(struct store_connection *db, void *argument, struct error *error)
{
	struct reseal_work *work = argument;

	return store_query(db, "SELECT id FROM secrets WHERE sealed_by = $1 ORDER BY id LIMIT $2",
			   STORE_PARAMS(store_text(work->old), store_int(MAX_RESEALED_A_PASS)),
			   &work->rows, error);
}

static bool reseal_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct reseal_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct buf value = {0};
	bool done;

	if (!store_query(db, "SELECT " SECRET_COLUMNS " FROM secrets WHERE id = $1",
			 STORE_PARAMS(store_text(work->id)), &rows, error))
		return false;
	if (rows.count == 0)
		return true;
	done = open_value(work->keys, &rows, &value, error) &&
	       write_value(db, work->keys, store_get_text(&rows, 0, 1), work->id, value.data,
			   value.length, error);
	pki_wipe(&value);
	return done;
}

static bool reseal_from(struct control *control, const struct seal_keys *keys, const char *old,
			struct error *error)
{
	struct reseal_work work = {.keys = keys, .old = old};
	bool done = store_run(control->connection, STORE_READ, find_body, &work, error);

	for (size_t i = 0; done && i < work.rows.count; i++) {
		struct reseal_work one = {.keys = keys, .id = store_get_text(&work.rows, i, 0)};
		struct error failed;

		if (!store_run(control->connection, STORE_WRITE, reseal_body, &one, &failed))
			log_failure(LOG_ERROR, "secret.reseal", &failed,
				    "it stays under the key it has");
	}
	store_rows_deinit(&work.rows);
	return done;
}

/* What a key sealed that isn't here any more stays so: who asks for it is told. */
bool control_secrets_reseal(struct control *control, struct error *error)
{
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;

	if (!control->secret_key_file)
		return true;
	if (!load_keys(control, &keys, error))
		return false;
	for (size_t i = 1; i < seal_keys_count(keys); i++) {
		if (!reseal_from(control, keys, seal_keys_id(keys, i), error))
			return false;
	}
	return true;
}
