#include "control/core/body.h"
#include "control/pools.h"
#include "control/thing.h"
#include "pki/token.h"

#include "base/duration.h"
#include "base/utf8.h"

#define DEFAULT_HOSTED_USES 100
#define MAX_MACHINE_TEXT    253

/* --- tokens --- */

#define TOKEN_SELECT                                                                               \
	"SELECT t.id, t.pool, t.hosted, t.max_uses, t.uses, t.expires_ms, t.revoked_ms, "          \
	"t.created_ms, p.tenant FROM join_tokens t JOIN pools p ON p.id = t.pool WHERE "

static struct trust_token token_of(const struct store_rows *rows, size_t row)
{
	return (struct trust_token){
		.revoked = !store_is_null(rows, row, 6),
		.expires = {store_get_int(rows, row, 5)},
		.uses = store_get_int(rows, row, 4),
		.max_uses = store_get_int(rows, row, 3),
	};
}

static bool token_answer(struct store_connection *db, const struct store_rows *rows, size_t row,
			 json_t **ret_answer, struct error *error)
{
	struct trust_token token = token_of(rows, row);
	json_t *answer = json_pack("{s:o, s:o}", "id", work_text_of(rows, row, 0), "poolId",
				   work_text_of(rows, row, 1));

	(void)error;
	if (!store_is_null(rows, row, 2))
		json_object_set_new(answer, "hosted", work_text_of(rows, row, 2));
	json_object_set_new(answer, "maxUses", json_integer(token.max_uses));
	json_object_set_new(answer, "uses", json_integer(token.uses));
	work_set_time(answer, "expiresAt", rows, row, 5);
	work_set_time(answer, "revokedAt", rows, row, 6);
	json_object_set_new(
		answer, "state",
		work_text(trust_token_state_name(trust_token_state(&token, store_now(db)))));
	work_set_time(answer, "createdAt", rows, row, 7);
	*ret_answer = answer;
	return true;
}

static const struct thing TOKEN = {
	.kind = "join token",
	.prefix = "jt",
	.read = ACCESS_JOIN_TOKENS_READ,
	.one = TOKEN_SELECT "t.id = $1",
	.page = TOKEN_SELECT "t.id > $1 AND ($2 = '' OR p.tenant = $2) AND ($4 = '' OR t.pool = "
			     "$4) ORDER BY t.id LIMIT $3",
	.filters = 1,
	.tenant_column = 8,
	.answer = token_answer,
};

struct token_input {
	const char *pool, *key;
	int64_t ttl_ms, max_uses;
	bool hosted;
};

static bool read_input(const json_t *json, struct token_input *input, struct error *error)
{
	static const char *const known[] = {"poolId",         "ttl", "maxUses", "hosted",
					    "idempotencyKey", NULL};
	static const char *const hosts[] = {"kubernetes", NULL};
	const char *ttl;
	struct body body;
	int hosted = -1;

	input->ttl_ms = CONTROL_JOIN_MAX_TTL_MS;
	if (!body_open(json, "", known, &body, error) ||
	    !body_id(&body, "poolId", BODY_REQUIRED, "pool", &input->pool, error) ||
	    !body_text(&body, "ttl", BODY_OPTIONAL, 32, &ttl, error) ||
	    !body_choice(&body, "hosted", BODY_OPTIONAL, hosts, &hosted, error) ||
	    !body_idempotency_key(&body, &input->key, error))
		return false;
	if (ttl && !duration_parse(ttl, "ttl", CONTROL_JOIN_MIN_TTL_MS, CONTROL_JOIN_MAX_TTL_MS,
				   &input->ttl_ms, error))
		return false;
	input->hosted = hosted == 0;
	input->max_uses = input->hosted ? DEFAULT_HOSTED_USES : 1;
	return body_int(&body, "maxUses", BODY_OPTIONAL, 1, CONTROL_JOIN_MAX_USES, &input->max_uses,
			error);
}

static bool insert_token(struct store_connection *db, const struct token_input *input,
			 const char *id, const char *text, struct error *error)
{
	int64_t now_ms = store_now(db).ms;
	char hash[TOKEN_HASH_SIZE];

	token_hash(text, hash);
	return store_exec(db,
			  "INSERT INTO join_tokens (id, pool, hosted, hash, max_uses, uses, "
			  "expires_ms, created_ms) VALUES ($1, $2, $3, $4, $5, 0, $6, $7)",
			  STORE_PARAMS(store_text(id), store_text(input->pool),
				       store_text(input->hosted ? "kubernetes" : NULL),
				       store_text(hash), store_int(input->max_uses),
				       store_int(now_ms + input->ttl_ms), store_int(now_ms)),
			  error);
}

static bool join_token_create(struct store_connection *db, const struct control_call *call,
			      json_t **ret_answer, struct error *error)
{
	const enum access_action action = ACCESS_JOIN_TOKENS_CREATE;
	CLEANUP(pool) struct pool pool = {0};
	char id[ID_SIZE], text[TOKEN_SIZE] = "";
	struct token_input input;

	if (!access_check(call->principal, action, error) ||
	    !read_input(call->body, &input, error) || !pool_load(db, input.pool, &pool, error))
		return false;
	if (!access_reaches(call->principal, pool.tenant))
		return work_not_found(error, "pool", input.pool);
	if (!work_find_done(db, call, input.key, action, id, error))
		return false;
	/* The secret was shown then and is not kept: a repeat gets the record alone. */
	if (id[0] == '\0') {
		work_new_id(db, "jt", id);
		token_make(text, TOKEN_PREFIX_JOIN, id);
		if (!pool_check_active(&pool, error) ||
		    !insert_token(db, &input, id, text, error) ||
		    !work_remember_done(db, call, input.key, action, id, error) ||
		    !work_audit(db, call->principal, action, pool.tenant, id,
				json_pack("{s:s, s:I, s:b}", "poolId", input.pool, "maxUses",
					  input.max_uses, "hosted", input.hosted),
				error))
			return false;
	}
	if (!thing_answer(db, call, &TOKEN, id, ret_answer, error))
		return false;
	if (text[0] != '\0')
		json_object_set_new(*ret_answer, "token", json_string(text));
	return true;
}
WORK_MAKE(join_token_create)

static bool join_token_get(struct store_connection *db, const struct control_call *call,
			   json_t **ret_answer, struct error *error)
{
	return thing_get(db, call, &TOKEN, ret_answer, error);
}
WORK_CALL(join_token_get, STORE_READ)

static bool join_token_list(struct store_connection *db, const struct control_call *call,
			    json_t **ret_answer, struct error *error)
{
	return thing_list(db, call, &TOKEN, ret_answer, error);
}
WORK_CALL(join_token_list, STORE_READ)

static bool join_token_revoke(struct store_connection *db, const struct control_call *call,
			      json_t **ret_answer, struct error *error)
{
	CLEANUP(thing_change) struct thing_change change = {0};

	return thing_change_begin(db, call, &TOKEN, ACCESS_JOIN_TOKENS_REVOKE, &change, error) &&
	       store_exec(db,
			  "UPDATE join_tokens SET revoked_ms = $2 WHERE id = $1 AND revoked_ms IS "
			  "NULL",
			  STORE_PARAMS(store_text(call->id), store_int(store_now(db).ms)), error) &&
	       thing_change_end(db, call, &change, ret_answer, error);
}
WORK_CALL(join_token_revoke, STORE_WRITE)

/* --- joining --- */

struct join_work {
	const struct control_join_request *request;
	const char *token_id; /* as the token's text names it */
	char token_hash[TOKEN_HASH_SIZE];
	bool known;
	struct control_joined joined;
};

/* What the machine's key says about it. */
struct machine {
	bool known;
	char node[ID_SIZE], pool[ID_SIZE];
	char smbios_uuid[64];
};

static bool find_machine(struct store_connection *db, const struct control_join_request *request,
			 struct machine *ret_machine, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	*ret_machine = (struct machine){0};
	if (!store_query(db,
			 "SELECT id, pool, smbios_uuid FROM nodes WHERE machine_key = $1 AND "
			 "state NOT IN ('retired', 'lost')",
			 STORE_PARAMS(store_text(request->machine_key)), &rows, error))
		return false;
	if (rows.count == 0)
		return true;
	ret_machine->known = true;
	str_copy(ret_machine->node, ID_SIZE, store_get_text(&rows, 0, 0));
	str_copy(ret_machine->pool, ID_SIZE, store_get_text(&rows, 0, 1));
	str_copy(ret_machine->smbios_uuid, sizeof ret_machine->smbios_uuid,
		 store_get_text(&rows, 0, 2));
	return true;
}

/* What to do for another one, here and in trust.c, bcd says: it knows whether it is in a pod. */
static bool refuse_unknown_token(struct error *error)
{
	return error_set(error, ERROR_UNAUTHENTICATED, "the join token is unknown");
}

/* The reason why a token is no good is for who has all of it. */
static bool load_join_token(struct store_connection *db, const struct join_work *work,
			    struct store_rows *rows, struct error *error)
{
	if (!store_query(db, TOKEN_SELECT "t.id = $1 AND t.hash = $2",
			 STORE_PARAMS(store_text(work->token_id), store_text(work->token_hash)),
			 rows, error))
		return false;
	return rows->count == 1 || refuse_unknown_token(error);
}

/* A known key joins again only as what it is: the same machine, in the same pool. */
static bool check_machine(const struct machine *machine, const char *pool, const char *smbios,
			  struct error *error)
{
	if (!machine->known)
		return true;
	if (!str_equal(machine->pool, pool)) {
		error_set(error, ERROR_CONFLICT, "this machine is %s of another pool",
			  machine->node);
		return error_hint(error, "Retire that node first, or use a token of its pool.");
	}
	if (smbios && *smbios && machine->smbios_uuid[0] &&
	    !str_equal(smbios, machine->smbios_uuid)) {
		error_set(error, ERROR_CONFLICT, "the key of %s came from another machine",
			  machine->node);
		return error_hint(error, "Remove the copied identity from /var/lib/bcd and join "
					 "again.");
	}
	return true;
}

static bool insert_node(struct store_connection *db, const struct join_work *work, const char *pool,
			const char *trust, char id[ID_SIZE], struct error *error)
{
	const struct control_join_request *request = work->request;

	work_new_id(db, "node", id);
	return store_exec(
		       db,
		       "INSERT INTO nodes (id, pool, join_token, machine_key, smbios_uuid, trust, "
		       "state, hostname, kubernetes_node_name, boot_id, bcd_version, kernel, "
		       "driver_version, gpu_api, capabilities, vcpus, memory_bytes, simulated, "
		       "simulated_reason, has_inventory, has_conditions, spec_generation, "
		       "sent_generation, stored_generation, hello_sequence, acknowledged, "
		       "created_ms) VALUES ($1, $2, $3, $4, $5, $6, 'joining', $7, $7, $8, '', '', "
		       "'', '', '[]', 0, 0, 0, '', 0, 0, 1, 0, 0, 0, 0, $9)",
		       STORE_PARAMS(store_text(id), store_text(pool), store_text(work->token_id),
				    store_text(request->machine_key),
				    store_text(request->smbios_uuid ? request->smbios_uuid : ""),
				    store_text(trust), store_text(request->hostname),
				    store_text(request->boot_id), store_int(store_now(db).ms)),
		       error) &&
	       store_exec(db, "UPDATE join_tokens SET uses = uses + 1 WHERE id = $1",
			  STORE_PARAMS(store_text(work->token_id)), error);
}

/* JOIN-25: a token may lower what a node is trusted with; it never raises it. */
static bool lower_trust(struct store_connection *db, const char *node, enum control_trust *trust,
			struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	enum control_trust old;

	if (!store_query(db, "SELECT trust FROM nodes WHERE id = $1",
			 STORE_PARAMS(store_text(node)), &rows, error))
		return false;
	if (!control_trust_parse(store_get_text(&rows, 0, 0), &old))
		return error_set(error, ERROR_INTERNAL, "node '%s': unknown trust", node);
	if (old >= *trust) {
		*trust = old;
		return true;
	}
	return store_exec(db, "UPDATE nodes SET trust = $2 WHERE id = $1",
			  STORE_PARAMS(store_text(node), store_text(control_trust_name(*trust))),
			  error);
}

static bool audit_join(struct store_connection *db, const struct join_work *work,
		       const struct pool *pool, struct error *error)
{
	char id[ID_SIZE];

	work_new_id(db, "aud", id);
	return store_exec(db,
			  "INSERT INTO audit (id, at_ms, request, api_key, tenant, action, object, "
			  "detail) VALUES ($1, $2, '', $3, $4, 'compute:nodes:join', $5, $6)",
			  STORE_PARAMS(store_text(id), store_int(store_now(db).ms),
				       store_text(work->token_id), store_text(pool->tenant),
				       store_text(work->joined.node),
				       store_text(work->joined.rejoined ? "{\"rejoined\":true}"
									: "{\"rejoined\":false}")),
			  error);
}

static bool join_body(struct store_connection *db, void *argument, struct error *error)
{
	struct join_work *work = argument;
	const struct control_join_request *request = work->request;
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(pool) struct pool pool = {0};
	struct trust_token token;
	struct trust_pool trust;
	struct machine machine;

	control_joined_deinit(&work->joined);
	work->known = load_join_token(db, work, &rows, error);
	if (!work->known || !find_machine(db, request, &machine, error))
		return false;
	token = token_of(&rows, 0);
	if (!trust_token_admits(&token, machine.known, store_now(db), error) ||
	    !pool_load(db, store_get_text(&rows, 0, 1), &pool, error) ||
	    !pool_check_active(&pool, error) ||
	    !check_machine(&machine, pool.id, request->smbios_uuid, error))
		return false;
	trust = pool_trust(&pool);
	work->joined.trust = trust_of_join(&trust, !store_is_null(&rows, 0, 2));
	work->joined.rejoined = machine.known;
	if (machine.known) {
		str_copy(work->joined.node, ID_SIZE, machine.node);
		if (!lower_trust(db, machine.node, &work->joined.trust, error))
			return false;
	} else if (!insert_node(db, work, pool.id, control_trust_name(work->joined.trust),
				work->joined.node, error)) {
		return false;
	}
	return audit_join(db, work, &pool, error) &&
	       request->issue(request->issue_context, work->joined.node, work->joined.trust,
			      store_now(db), &work->joined.certificate, error);
}

/* What the machine says about itself is kept and shown: bounded text, nothing more. */
static bool check_request(const struct control_join_request *request, struct error *error)
{
	const char *smbios = request->smbios_uuid ? request->smbios_uuid : "";

	if (strlen(request->hostname) > MAX_MACHINE_TEXT)
		return error_field(error, "machine.hostname", "has over %d bytes",
				   MAX_MACHINE_TEXT);
	if (strlen(request->boot_id) > 64)
		return error_field(error, "machine.bootId", "has over 64 bytes");
	if (!utf8_valid(request->hostname) || !utf8_valid(request->boot_id) || !utf8_valid(smbios))
		return error_field(error, "machine", "holds bytes that are no UTF-8");
	return strlen(smbios) < 64 || error_field(error, "machine.smbiosUuid", "has over 63 bytes");
}

bool control_join(struct control *control, const struct control_join_request *request,
		  struct control_joined *ret_joined, struct error *error)
{
	char token_id[ID_SIZE];
	struct join_work work = {.request = request, .token_id = token_id};
	bool done;

	if (request->ret_known)
		*request->ret_known = false;
	if (!token_parse(request->token, TOKEN_PREFIX_JOIN, "jt", token_id))
		return refuse_unknown_token(error);
	if (!check_request(request, error))
		return false;
	token_hash(request->token, work.token_hash);
	done = store_run(control->connection, STORE_WRITE, join_body, &work, error);
	if (request->ret_known)
		*request->ret_known = work.known;
	if (!done) {
		control_joined_deinit(&work.joined);
		return false;
	}
	*ret_joined = work.joined;
	return true;
}

void control_joined_deinit(struct control_joined *joined)
{
	free(joined->certificate);
	*joined = (struct control_joined){0};
}
