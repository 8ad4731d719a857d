#include "control/work.h"

#include "control/core/body.h"
#include "control/core/reserve_request.h"
#include "control/core/timestamp.h"
#include "pki/token.h"
#include "sys/random.h"

#include <stdio.h>

#define GIB ((int64_t)1 << 30)
#define MIB ((int64_t)1 << 20)

#define AUDIT_HASH_SIZE (sizeof "sha256:" + TOKEN_HASH_SIZE)
#define CURSOR_PREFIX   "c1-" /* a change of what a cursor means gets another one */

/* A transaction that is undone when it has got to its end. */
struct attempt {
	store_body_fn *body;
	void *argument;
	bool done;
};

static bool attempt_body(struct store_connection *db, void *argument, struct error *error)
{
	struct attempt *attempt = argument;

	attempt->done = attempt->body(db, attempt->argument, error);
	return attempt->done && error_set(error, ERROR_INVALID_STATE, "it was only tried");
}

/* One that is only tried answers all the same. */
static bool run(struct control *control, enum store_mode mode, const struct control_call *call,
		store_body_fn *body, void *argument, struct error *error)
{
	struct attempt attempt = {.body = body, .argument = argument};

	if (!call->dry_run || !str_equal(call->dry_run, "true"))
		return store_run(control->connection, mode, body, argument, error);
	return store_run(control->connection, mode, attempt_body, &attempt, error) ||
	       (attempt.done && !store_is_to_blame(control->connection));
}

struct call_work {
	const struct control_call *call;
	work_call_fn *function;
	json_t *answer;
};

static bool call_body(struct store_connection *db, void *argument, struct error *error)
{
	struct call_work *work = argument;

	json_decref(work->answer); /* of a try that was lost */
	work->answer = NULL;
	return work->function(db, work->call, &work->answer, error);
}

bool work_run_call(struct control *control, enum store_mode mode, work_call_fn *function,
		   const struct control_call *call, json_t **ret_answer, struct error *error)
{
	struct call_work work = {.call = call, .function = function};

	if (!run(control, mode, call, call_body, &work, error)) {
		json_decref(work.answer);
		return false;
	}
	assert(work.answer);
	*ret_answer = work.answer;
	return true;
}

struct change_work {
	enum work_effect effect;
	work_call_fn *function, *get;
	const struct control_call *call;
	json_t *answer;
};

/* A thing that can't be seen has no hash; what to say of it is the call's own. */
static bool look_before(struct store_connection *db, const struct change_work *work,
			json_t **ret_before, struct error *error)
{
	struct error unseen;

	if (!work->get || work->get(db, work->call, ret_before, &unseen))
		return true;
	if (unseen.code == ERROR_NOT_FOUND || unseen.code == ERROR_FORBIDDEN)
		return true;
	*error = unseen;
	return false;
}

static bool change_body(struct store_connection *db, void *argument, struct error *error)
{
	struct change_work *work = argument;
	CLEANUP(json_ref) json_t *before = NULL;
	const char *object;

	json_decref(work->answer); /* of a try that was lost */
	work->answer = NULL;
	if (!look_before(db, work, &before, error) ||
	    !work->function(db, work->call, &work->answer, error))
		return false;
	object = json_string_value(json_object_get(work->answer, "id"));
	return work_audit_hashes(db, work->call->principal, object, before,
				 work->effect == WORK_EFFECT_ENDS ? NULL : work->answer, error);
}

bool work_run_change(struct control *control, enum work_effect effect, work_call_fn *function,
		     work_call_fn *get, const struct control_call *call, json_t **ret_answer,
		     struct error *error)
{
	struct change_work work = {
		.effect = effect, .function = function, .get = get, .call = call};

	if (!run(control, STORE_WRITE, call, change_body, &work, error)) {
		json_decref(work.answer);
		return false;
	}
	*ret_answer = work.answer;
	return true;
}

/* --- answers --- */

json_t *work_time(int64_t ms)
{
	char text[TIMESTAMP_SIZE];

	timestamp_format(text, (struct wall){ms});
	return json_string(text);
}

json_t *work_text(const char *text)
{
	json_t *json = json_string(text ? text : "");

	assert(json);
	return json;
}

json_t *work_text_of(const struct store_rows *rows, size_t row, size_t column)
{
	return work_text(store_get_text(rows, row, column));
}

json_t *work_int_of(const struct store_rows *rows, size_t row, size_t column)
{
	return json_integer(store_get_int(rows, row, column));
}

struct hugepages work_hugepages_of(const struct store_rows *rows, size_t row, size_t column)
{
	return (struct hugepages){{
		[HUGEPAGES_2MI] = store_get_int(rows, row, column),
		[HUGEPAGES_1GI] = store_get_int(rows, row, column + 1),
	}};
}

/* In whole ones of `unit` bytes. */
static void set_bytes(json_t *resources, const char *field, int64_t bytes, int64_t unit)
{
	if (bytes >= unit)
		json_object_set_new(resources, field, json_integer(bytes / unit));
}

json_t *work_host_share(const struct host_share *share)
{
	json_t *resources = json_object();

	if (share->vcpus > 0)
		json_object_set_new(resources, "vcpu", json_integer(share->vcpus));
	set_bytes(resources, "memoryGiB", share->memory_bytes, GIB);
	set_bytes(resources, "memoryMiB", share->memory_bytes, MIB);
	set_bytes(resources, RESERVE_HUGEPAGES_2MI, share->hugepages.bytes[HUGEPAGES_2MI], GIB);
	set_bytes(resources, RESERVE_HUGEPAGES_1GI, share->hugepages.bytes[HUGEPAGES_1GI], GIB);
	return resources;
}

void work_set_time(json_t *object, const char *field, const struct store_rows *rows, size_t row,
		   size_t column)
{
	if (!store_is_null(rows, row, column))
		json_object_set_new(object, field, work_time(store_get_int(rows, row, column)));
}

json_t *work_parse(const char *text)
{
	json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	assert(json);
	return json;
}

/* --- lists --- */

bool work_query_int(const char *text, const char *field, int64_t min, int64_t max, int64_t fallback,
		    int64_t *ret_number, struct error *error)
{
	size_t digits = text ? strspn(text, "0123456789") : 0;
	int64_t number;

	if (!text) {
		*ret_number = fallback;
		return true;
	}
	if (digits == 0 || digits > 18 || text[digits] != '\0')
		return error_field(error, field, "'%.40s' is not a number", text);
	number = strtoll(text, NULL, 10);
	if (number < min || number > max)
		return error_field(error, field, "is %lld, must be between %lld and %lld",
				   (long long)number, (long long)min, (long long)max);
	*ret_number = number;
	return true;
}

bool work_page(const struct control_call *call, const char *id_prefix, struct work_page *ret_page,
	       struct error *error)
{
	struct work_page page = {0};

	if (!work_query_int(call->limit, "limit", 1, CONTROL_MAX_PAGE, CONTROL_DEFAULT_PAGE,
			    &page.limit, error))
		return false;
	if (call->cursor) {
		const char *id = call->cursor + strlen(CURSOR_PREFIX);

		if (!str_starts(call->cursor, CURSOR_PREFIX) || !id_valid(id, id_prefix)) {
			error_field(error, "cursor", "is not one of this list");
			return error_hint(error, "Begin again without a cursor.");
		}
		str_copy(page.after, sizeof page.after, id);
	}
	*ret_page = page;
	return true;
}

json_t *work_items_answer(json_t *items, const struct work_page *page, const struct store_rows *ids)
{
	json_t *answer = json_pack("{s:o}", "items", items);

	if (ids->count > (size_t)page->limit)
		json_object_set_new(answer, "nextCursor",
				    json_sprintf("%s%s", CURSOR_PREFIX,
						 store_get_text(ids, (size_t)page->limit - 1, 0)));
	return answer;
}

json_t *work_rows_answer(const struct store_rows *rows, const struct work_page *page,
			 json_t *(*answer_row)(const struct store_rows *rows, size_t row))
{
	json_t *items = json_array();

	for (size_t i = 0; i < rows->count && i < (size_t)page->limit; i++)
		json_array_append_new(items, answer_row(rows, i));
	return work_items_answer(items, page, rows);
}

const char *work_scope(const struct control_principal *principal)
{
	return principal->role == CONTROL_ROLE_OPERATOR ? "" : principal->tenant;
}

bool work_tenant_asked(const struct control_call *call, const char **ret_tenant,
		       struct error *error)
{
	if (call->tenant_id && !access_reaches(call->principal, call->tenant_id))
		return work_not_found(error, "tenant", call->tenant_id);
	*ret_tenant = call->tenant_id ? call->tenant_id : work_scope(call->principal);
	return true;
}

static bool read_time(const char *text, const char *field, struct wall *time, struct error *error)
{
	return !text || timestamp_parse(text, field, time, error);
}

bool work_window_asked(const struct control_call *call, struct work_window otherwise,
		       struct work_window *ret_window, struct error *error)
{
	struct work_window window = otherwise;

	if (!read_time(call->from, "from", &window.from, error) ||
	    !read_time(call->to, "to", &window.to, error))
		return false;
	if (window.from.ms >= window.to.ms)
		return error_field(error, "to", "is not after from");
	*ret_window = window;
	return true;
}

/* --- records --- */

void work_new_id(struct store_connection *db, const char *prefix, char out[ID_SIZE])
{
	random_id(out, prefix, store_now(db));
}

/* "sha256:…" of a thing as an answer says it, without a secret that is shown once: equal for equal
 * things. */
static const char *hash_thing(const json_t *thing, char out[AUDIT_HASH_SIZE])
{
	CLEANUP(json_ref) json_t *plain = NULL;
	CLEANUP(free) char *text = NULL;
	char hash[TOKEN_HASH_SIZE];

	if (!thing)
		return NULL;
	plain = json_copy((json_t *)thing);
	json_object_del(plain, "token");
	json_object_del(plain, "key");
	text = json_dumps(plain, JSON_COMPACT | JSON_SORT_KEYS);
	assert(text);
	token_hash(text, hash);
	snprintf(out, AUDIT_HASH_SIZE, "sha256:%s", hash);
	return out;
}

/* Who is told of changes hears of this one, unless a change of state says it. */
static bool publish(struct store_connection *db, enum access_action action, const char *tenant,
		    const char *object, struct error *error)
{
	const char *event = access_action_event(action);

	return !event ||
	       work_event(db, tenant, event, object,
			  json_pack("{s:s}", "action", access_action_name(action)), error);
}

/* `detail` may be NULL, else is taken over. */
static bool insert_audit(struct store_connection *db, const struct control_principal *principal,
			 enum access_action action, const char *tenant, const char *object,
			 json_t *detail, const json_t *before, const json_t *after,
			 struct error *error)
{
	CLEANUP(json_ref) json_t *kept = detail ? detail : json_object();
	CLEANUP(free) char *text = NULL;
	char id[ID_SIZE], before_hash[AUDIT_HASH_SIZE], after_hash[AUDIT_HASH_SIZE];

	work_new_id(db, "aud", id);
	if (principal->address[0] != '\0')
		json_object_set_new(kept, WORK_AUDIT_ADDRESS, json_string(principal->address));
	text = json_dumps(kept, JSON_COMPACT);
	assert(text);
	return store_exec(db,
			  "INSERT INTO audit (id, at_ms, request, api_key, tenant, action, object, "
			  "detail, before_hash, after_hash) "
			  "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
			  STORE_PARAMS(store_text(id), store_int(store_now(db).ms),
				       store_text(principal->request), store_text(principal->key),
				       store_text(tenant), store_text(access_action_name(action)),
				       store_text(object), store_text(text),
				       store_text(hash_thing(before, before_hash)),
				       store_text(hash_thing(after, after_hash))),
			  error) &&
	       publish(db, action, tenant, object, error);
}

bool work_audit(struct store_connection *db, const struct control_principal *principal,
		enum access_action action, const char *tenant, const char *object, json_t *detail,
		struct error *error)
{
	return insert_audit(db, principal, action, tenant, object, detail, NULL, NULL, error);
}

bool work_audit_change(struct store_connection *db, const struct control_principal *principal,
		       enum access_action action, const char *tenant, const char *object,
		       const json_t *before, const json_t *after, struct error *error)
{
	return insert_audit(db, principal, action, tenant, object, NULL, before, after, error);
}

bool work_audit_hashes(struct store_connection *db, const struct control_principal *principal,
		       const char *object, const json_t *before, const json_t *after,
		       struct error *error)
{
	char before_hash[AUDIT_HASH_SIZE], after_hash[AUDIT_HASH_SIZE];

	return store_exec(
		db,
		"UPDATE audit SET before_hash = $4, after_hash = $5 WHERE object = $1 AND "
		"request = $2 AND at_ms = $3 AND before_hash IS NULL AND after_hash IS NULL",
		STORE_PARAMS(store_text(object), store_text(principal->request),
			     store_int(store_now(db).ms),
			     store_text(hash_thing(before, before_hash)),
			     store_text(hash_thing(after, after_hash))),
		error);
}

bool work_count(struct store_connection *db, const char *counter, struct error *error)
{
	return store_exec(db, "UPDATE counters SET value = value + 1 WHERE name = $1",
			  STORE_PARAMS(store_text(counter)), error);
}

bool work_event(struct store_connection *db, const char *tenant, const char *type,
		const char *subject, json_t *data, struct error *error)
{
	CLEANUP(free) char *text = json_dumps(data, JSON_COMPACT);

	json_decref(data);
	assert(text);
	return work_count(db, "events", error) &&
	       store_exec(db,
			  "INSERT INTO events (seq, at_ms, tenant, type, subject, data) "
			  "SELECT value, $1, $2, $3, $4, $5 FROM counters WHERE name = 'events'",
			  STORE_PARAMS(store_int(store_now(db).ms), store_text(tenant),
				       store_text(type), store_text(subject), store_text(text)),
			  error);
}

/* --- creates under an idempotency key --- */

static void hash_input(const struct control_call *call, char out[TOKEN_HASH_SIZE])
{
	CLEANUP(free) char *text = body_canonical(call->body);

	token_hash(text, out);
}

bool work_find_done(struct store_connection *db, const struct control_call *call, const char *key,
		    enum access_action action, char ret_object[ID_SIZE], struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	char hash[TOKEN_HASH_SIZE];

	ret_object[0] = '\0';
	if (!key)
		return true;
	if (!store_query(db,
			 "SELECT input_hash, object FROM idempotency "
			 "WHERE tenant = $1 AND operation = $2 AND idempotency_key = $3",
			 STORE_PARAMS(store_text(call->principal->tenant),
				      store_text(access_action_name(action)), store_text(key)),
			 &rows, error))
		return false;
	if (rows.count == 0)
		return true;
	hash_input(call, hash);
	if (!str_equal(store_get_text(&rows, 0, 0), hash)) {
		error_set(error, ERROR_CONFLICT,
			  "the idempotency key was used for another input, which made %s",
			  store_get_text(&rows, 0, 1));
		str_copy(error->field, sizeof error->field, "idempotencyKey");
		return error_hint(error, WORK_KEY_HINT);
	}
	str_copy(ret_object, ID_SIZE, store_get_text(&rows, 0, 1));
	return true;
}

bool work_forget_done(struct store_connection *db, const char *object, struct error *error)
{
	return store_exec(db, "DELETE FROM idempotency WHERE object = $1",
			  STORE_PARAMS(store_text(object)), error);
}

bool work_remember_done(struct store_connection *db, const struct control_call *call,
			const char *key, enum access_action action, const char *object,
			struct error *error)
{
	char hash[TOKEN_HASH_SIZE];

	if (!key)
		return true;
	hash_input(call, hash);
	return store_exec(
		db,
		"INSERT INTO idempotency (tenant, operation, idempotency_key, input_hash, "
		"object, created_ms) VALUES ($1, $2, $3, $4, $5, $6)",
		STORE_PARAMS(store_text(call->principal->tenant),
			     store_text(access_action_name(action)), store_text(key),
			     store_text(hash), store_text(object), store_int(store_now(db).ms)),
		error);
}

bool work_not_found(struct error *error, const char *kind, const char *id)
{
	return error_set(error, ERROR_NOT_FOUND, "%s '%.40s' not found", kind, id);
}

bool work_name_taken(struct error *error)
{
	str_copy(error->field, sizeof error->field, "name");
	return false;
}

bool work_path_id(const struct control_call *call, const char *kind, const char *prefix,
		  struct error *error)
{
	const char *id = call->id ? call->id : "";

	return id_valid(id, prefix) || work_not_found(error, kind, id);
}
