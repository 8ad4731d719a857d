#include "fake_control.h"

#include "base/vec.h"
#include "control/metrics.h"
#include "text/tree.h"

#include <pthread.h>

struct fake fake;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* workers call from several threads */

void fake_reset(void)
{
	free(fake.last_call);
	fake = (struct fake){.epoch = 1, .generation = 1};
}

static bool answer(enum error_code code, const char *what, struct error *error)
{
	if (code == ERROR_NONE)
		return true;
	return error_set(error, code, "%s", what);
}

const char *control_role_name(enum control_role role)
{
	(void)role;
	return "operator";
}

const char *control_trust_name(enum control_trust trust)
{
	return trust == CONTROL_TRUST_TENANT_CONTROLLED ? "tenant-controlled" : "platform";
}

bool control_authenticate(struct control *control, const char *key,
			  struct control_principal *ret_principal, struct error *error)
{
	(void)control;
	if (!key || !str_equal(key, FAKE_KEY))
		return error_set(error, ERROR_UNAUTHENTICATED, "no such key");
	*ret_principal =
		(struct control_principal){.key = FAKE_KEY_ID, .role = CONTROL_ROLE_OPERATOR};
	return true;
}

static void set(json_t *object, const char *name, const char *text)
{
	if (text)
		tree_set(object, name, tree_string(text));
}

static bool record(const char *name, const struct control_call *call, json_t **ret_answer,
		   struct error *error)
{
	json_t *seen = json_object();

	set(seen, "call", name);
	set(seen, "id", call->id);
	set(seen, "limit", call->limit);
	set(seen, "cursor", call->cursor);
	set(seen, "state", call->state);
	set(seen, "poolId", call->pool_id);
	set(seen, "after", call->after);
	set(seen, "action", call->action);
	set(seen, "request", call->principal->request);
	if (call->body)
		tree_set(seen, "body", json_deep_copy(call->body));
	pthread_mutex_lock(&lock);
	fake.calls++;
	free(fake.last_call);
	fake.last_call = json_dumps(seen, JSON_COMPACT | JSON_SORT_KEYS);
	pthread_mutex_unlock(&lock);
	if (fake.call_code != ERROR_NONE) {
		json_decref(seen);
		if (fake.call_field)
			error_field(error, fake.call_field, "refused");
		else
			error_set(error, ERROR_INTERNAL, "refused");
		error->code = fake.call_code;
		return false;
	}
	*ret_answer = seen;
	return true;
}

#define FAKE_CALL(name)                                                                            \
	bool control_##name(struct control *control, const struct control_call *call,              \
			    json_t **ret_answer, struct error *error)                              \
	{                                                                                          \
		(void)control;                                                                     \
		return record(#name, call, ret_answer, error);                                     \
	}

FAKE_CALL(tenant_create)
FAKE_CALL(tenant_get)
FAKE_CALL(tenant_list)
FAKE_CALL(tenant_patch)
FAKE_CALL(tenant_archive)
FAKE_CALL(site_create)
FAKE_CALL(site_get)
FAKE_CALL(site_list)
FAKE_CALL(site_patch)
FAKE_CALL(site_archive)
FAKE_CALL(pool_create)
FAKE_CALL(pool_get)
FAKE_CALL(pool_list)
FAKE_CALL(pool_patch)
FAKE_CALL(pool_archive)
FAKE_CALL(join_token_create)
FAKE_CALL(join_token_get)
FAKE_CALL(join_token_list)
FAKE_CALL(join_token_revoke)
FAKE_CALL(node_get)
FAKE_CALL(node_list)
FAKE_CALL(node_retire)
FAKE_CALL(node_patch)
FAKE_CALL(node_drain)
FAKE_CALL(node_undrain)
FAKE_CALL(reservation_create)
FAKE_CALL(reservation_get)
FAKE_CALL(reservation_list)
FAKE_CALL(reservation_pod_requests)
FAKE_CALL(reservation_release)
FAKE_CALL(reservation_cancel)
FAKE_CALL(reservation_patch)
FAKE_CALL(capacity_preview)
FAKE_CALL(capacity_get)
FAKE_CALL(usage_get)
FAKE_CALL(meter_list)
FAKE_CALL(quota_create)
FAKE_CALL(quota_get)
FAKE_CALL(quota_list)
FAKE_CALL(quota_patch)
FAKE_CALL(quota_delete)
FAKE_CALL(event_list)
FAKE_CALL(audit_list)
FAKE_CALL(whoami)
FAKE_CALL(pki_get)
FAKE_CALL(secret_create)
FAKE_CALL(secret_get)
FAKE_CALL(secret_list)
FAKE_CALL(secret_patch)
FAKE_CALL(secret_delete)
FAKE_CALL(key_create)
FAKE_CALL(key_get)
FAKE_CALL(key_patch)
FAKE_CALL(key_rotate)
FAKE_CALL(key_list)
FAKE_CALL(key_revoke)

bool control_join(struct control *control, const struct control_join_request *request,
		  struct control_joined *ret_joined, struct error *error)
{
	struct control_joined joined = {.trust = fake.trust};

	(void)control;
	*request->ret_known = fake.join_known;
	str_copy(fake.last_token, sizeof fake.last_token, request->token);
	str_copy(fake.machine_key, sizeof fake.machine_key, request->machine_key);
	if (!answer(fake.join_code, fake.join_message ? fake.join_message : "refused", error))
		return false;
	str_copy(joined.node, sizeof joined.node, "node_01jd4z5x9f0123456789abcdef");
	if (!request->issue(request->issue_context, joined.node, joined.trust,
			    (struct wall){1800000000000}, &joined.certificate, error))
		return false;
	*ret_joined = joined;
	return true;
}

void control_joined_deinit(struct control_joined *joined)
{
	free(joined->certificate);
}

bool control_node_identify(struct control *control, const char *node,
			   struct control_node_identity *ret_identity, struct error *error)
{
	(void)control, (void)error;
	str_copy(fake.last_node, sizeof fake.last_node, node);
	ret_identity->trust = fake.trust;
	str_copy(ret_identity->machine_key, sizeof ret_identity->machine_key, fake.machine_key);
	return true;
}

bool control_node_hello(struct control *control, const struct control_hello *hello,
			struct control_welcome *ret_welcome, struct error *error)
{
	(void)control;
	str_copy(fake.last_node, sizeof fake.last_node, hello->node);
	fake.last_opened_ms = hello->opened_ms;
	if (!answer(fake.hello_code, "this node is retired", error))
		return false;
	*ret_welcome = (struct control_welcome){
		.epoch = fake.epoch++,
		.acknowledged = hello->last_sequence,
		.site = "site_x",
		.pool = "h100",
		.now = {1800000000000},
		.lineage = "lineage",
	};
	return true;
}

bool control_node_heartbeat(struct control *control, const char *node, int64_t epoch,
			    int64_t spec_generation, struct error *error)
{
	(void)control, (void)node, (void)epoch, (void)spec_generation;
	fake.heartbeats++;
	return answer(fake.heartbeat_code, "void epoch", error);
}

bool control_nodes_seen(struct control *control, struct control_beat *beats, size_t count,
			struct error *error)
{
	(void)control;
	fake.rounds++;
	fake.beats += (int)count;
	for (size_t i = 0; i < count; i++)
		beats[i].known = fake.heartbeat_code != ERROR_CONFLICT;
	return fake.heartbeat_code == ERROR_CONFLICT ||
	       answer(fake.heartbeat_code, "does not answer", error);
}

bool control_node_gone(struct control *control, const char *node, int64_t epoch,
		       struct error *error)
{
	(void)control, (void)node, (void)error;
	fake.gones++;
	fake.gone_epoch = epoch;
	return true;
}

bool control_node_report(struct control *control, const struct control_report *report,
			 struct control_report_result *ret_result, struct error *error)
{
	(void)control;
	if (!answer(fake.report_code, "not committed", error))
		return false;
	fake.reports++;
	fake.last_kind = report->kind;
	fake.last_sequence = report->sequence;
	ret_result->acknowledged = report->sequence;
	ret_result->look_again = fake.look_again;
	return true;
}

bool control_spec_load(struct control *control, const char *node, int64_t epoch,
		       struct control_spec *ret_spec, struct error *error)
{
	static const struct control_spec_device device = {"gpu/1", "gpu", "GPU-1"};
	static const struct control_spec_assignment assignment = {
		.allocation = "alc_1",
		.reservation = "rsv_1",
		.devices = &device,
		.devices_count = 1,
		.limited = true,
		.vcpus = 3,
		.memory_bytes = 5,
		.hugepages = {{0, 7}},
	};

	(void)control, (void)node, (void)epoch;
	if (!answer(fake.spec_code, "void epoch", error))
		return false;
	*ret_spec = (struct control_spec){
		.lineage = "lineage",
		.generation = fake.generation,
		.gpu_api = "device-plugin",
		.assignments = &assignment,
		.assignments_count = 1,
	};
	return true;
}

void control_spec_deinit(struct control_spec *spec)
{
	(void)spec;
}

bool control_outbox_poll(struct control *control, int64_t after, struct control_outbox *ret_outbox,
			 struct error *error)
{
	(void)control;
	fake.polls++;
	fake.last_after = after;
	ret_outbox->last = fake.outbox_last ? fake.outbox_last : after;
	return answer(fake.poll_code, "no database", error);
}

void control_outbox_deinit(struct control_outbox *outbox)
{
	vec_deinit(outbox);
}

bool control_lead(struct control *control, bool *ret_leads, struct error *error)
{
	(void)control, (void)error;
	fake.leads++;
	*ret_leads = !fake.other_leads;
	return true;
}

bool control_resign(struct control *control, struct error *error)
{
	(void)control, (void)error;
	fake.resigned_after = fake.ticks;
	return true;
}

bool control_tick(struct control *control, struct error *error)
{
	(void)control, (void)error;
	fake.ticks++;
	return true;
}

bool control_secret_give(struct control *control, const struct control_secret_request *request,
			 struct control_secret *ret_secret, struct error *error)
{
	(void)control, (void)error;
	*ret_secret = (struct control_secret){0};
	str_copy(fake.last_allocation, sizeof fake.last_allocation, request->allocation);
	fake.tenants_certificate = request->tenants_certificate;
	if (fake.secret)
		buf_add_text(&ret_secret->value, fake.secret);
	else
		ret_secret->refusal = "the node's pool names no such secret";
	return true;
}

void control_secret_deinit(struct control_secret *secret)
{
	buf_deinit(&secret->value);
}

bool control_secrets_reseal(struct control *control, struct error *error)
{
	(void)control, (void)error;
	return true;
}

bool control_event_end(struct control *control, int64_t *ret_end, struct error *error)
{
	(void)control, (void)error;
	*ret_end = fake.event_end;
	return true;
}

bool control_ping(struct control *control, struct error *error)
{
	const struct timespec takes = {.tv_sec = fake.ping_takes_ms / 1000};

	nanosleep(&takes, NULL);
	(void)control;
	return answer(fake.ping_code, "the database does not answer", error);
}

bool control_init(struct control *control, char ret_key[CONTROL_KEY_SIZE], struct error *error)
{
	(void)control, (void)error;
	str_copy(ret_key, CONTROL_KEY_SIZE, FAKE_KEY);
	return true;
}

bool control_another_key(struct control *control, char ret_key[CONTROL_KEY_SIZE],
			 struct error *error)
{
	return control_init(control, ret_key, error);
}

bool control_metrics(struct control *control, struct control_metrics *ret_metrics,
		     struct error *error)
{
	(void)control;
	if (!answer(fake.ping_code, "the database does not answer", error))
		return false;
	*ret_metrics = (struct control_metrics){
		.nodes = {{{"ready", true, 3}, {"ready", false, 1}}, 2},
		.leads = true,
		.lease_left_ms = 1234,
	};
	return true;
}
