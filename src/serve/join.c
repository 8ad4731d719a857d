#include "serve/join.h"

#include "base/vec.h"
#include "control/control.h"
#include "pki/envelope.h"
#include "pki/rotation.h"
#include "rpc/rpc.h"
#include "serve/issue.h"
#include "serve/outward.h"
#include "serve/wire.h"
#include "serve/workers.h"
#include "sys/clock.h"
#include "sys/log.h"

#define ADDRESS_SIZE 64

/* How much an address may still be refused; what is spent comes back with time. */
struct allowance {
	char address[ADDRESS_SIZE];
	struct mono seen;
	int64_t left_ms; /* JOIN_REFILL_MS a refusal */
};

struct pending {
	uint64_t id;
	struct rpc_call *call;
};

/* What a job reads on its worker: it has its own, as things were when it came. */
struct options {
	const struct pki_folder *pki;
	const char *gateway_address, *gateway_server_name;
};

struct join_service {
	struct loop *loop;
	struct workers *workers;
	struct options options;
	VEC(struct pending) calls;
	VEC(struct allowance) addresses;
};

struct job {
	struct options options;
	uint64_t call;
	char peer[ADDRESS_SIZE];
	struct buf envelope;
	const struct pki_folder *keys; /* that the asker knows: the folder's, or the next ones */
	/* the result */
	bool ok;
	bool known; /* what was shown is ours, live or not: no guess */
	struct error error;
	struct buf answer; /* a packed JoinAnswer */
	char node[ID_SIZE];
	bool rejoined;
};

/* --- on a worker --- */

struct issue {
	const struct pki_folder *pki;
	const struct pki_key *key;
};

static bool issue(void *context, const char *node_id, enum control_trust trust, struct wall now,
		  char **ret_certificate, struct error *error)
{
	const struct issue *issue = context;
	CLEANUP(buf) struct buf pem = {0};

	if (!issue_node(issue->pki, issue->key, node_id, trust, now, &pem, error))
		return false;
	*ret_certificate = buf_take_text(&pem);
	return true;
}

static bool sign(struct job *job, const struct join_request *request,
		 const struct control_joined *joined, struct error *error)
{
	Bettercompute__V1__JoinAnswer message = BETTERCOMPUTE__V1__JOIN_ANSWER__INIT;
	struct join_answer answer = {
		.trust = message_text(control_trust_name(joined->trust)),
		.certificate_pem = joined->certificate,
		.gateway_address = message_text(job->options.gateway_address),
		.gateway_server_name = message_text(job->options.gateway_server_name),
		.rejoined = joined->rejoined,
	};
	char *envelope;
	bool done;

	memcpy(answer.nonce, request->nonce, sizeof answer.nonce);
	memcpy(answer.node_id, joined->node, sizeof answer.node_id);
	if (!join_answer_sign(&answer, job->keys->join_signing_key, &envelope, error))
		return false;
	message.envelope = envelope;
	done = wire_join_answer_pack(&message, &job->answer, error);
	free(envelope);
	return done;
}

static bool join_by_token(struct job *job, struct control *control,
			  const struct join_request *request, const struct pki_key *key,
			  struct control_joined *ret_joined, struct error *error)
{
	struct issue context = {.pki = job->options.pki, .key = key};
	char pin[PIN_SIZE];

	pki_key_pin(key, pin);
	return control_join(control,
			    &(struct control_join_request){
				    .token = request->token,
				    .machine_key = pin,
				    .smbios_uuid = request->smbios_uuid,
				    .hostname = request->hostname,
				    .boot_id = request->boot_id,
				    .issue = issue,
				    .issue_context = &context,
				    .ret_known = &job->known,
			    },
			    ret_joined, error);
}

/* Was it ours, is it for this key, and did it end not too long ago? */
static bool check_expired(struct job *job, const char *pem, const struct pki_key *key,
			  struct wall now, struct cert_node *ret_node, struct error *error)
{
	if (!cert_read_node(pem, strlen(pem), ret_node, error) ||
	    !pki_folder_verify_node(job->options.pki, pem, ret_node->info.not_before, now, error) ||
	    !cert_check_key(pem, key, error)) {
		error->code = ERROR_UNAUTHENTICATED;
		return error_wrap(error, "the certificate to renew");
	}
	job->known = true;
	if (now.ms <= ret_node->info.not_after.ms + JOIN_RENEW_MS)
		return true;
	return error_set(error, ERROR_UNAUTHENTICATED,
			 "the certificate of '%s' expired more than 7 days ago", ret_node->node_id);
}

static bool join_by_certificate(struct job *job, struct control *control,
				const struct join_request *request, const struct pki_key *key,
				struct control_joined *ret_joined, struct error *error)
{
	struct issue context = {.pki = job->options.pki, .key = key};
	struct control_joined joined = {.rejoined = true};
	struct control_node_identity identity;
	struct wall now = clock_wall();
	struct cert_node node;
	char pin[PIN_SIZE];

	if (!check_expired(job, request->certificate_pem, key, now, &node, error) ||
	    !control_node_identify(control, node.node_id, &identity, error))
		return false;
	pki_key_pin(key, pin);
	if (!str_equal(pin, identity.machine_key))
		return error_set(error, ERROR_UNAUTHENTICATED,
				 "'%s' has joined with another key since", node.node_id);
	memcpy(joined.node, node.node_id, sizeof joined.node);
	joined.trust = identity.trust;
	if (!issue(&context, joined.node, joined.trust, now, &joined.certificate, error))
		return false;
	*ret_joined = joined;
	return true;
}

static bool admit(struct job *job, struct control *control, const struct join_request *request,
		  struct error *error)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	struct control_joined joined = {0};
	bool renews = request->token[0] == '\0' && request->certificate_pem;
	bool done;

	if (!cert_request_check(request->csr_pem, strlen(request->csr_pem), &key, error))
		return false;
	done = (renews ? join_by_certificate(job, control, request, key, &joined, error)
		       : join_by_token(job, control, request, key, &joined, error)) &&
	       sign(job, request, &joined, error);
	memcpy(job->node, joined.node, sizeof job->node);
	job->rejoined = joined.rejoined;
	control_joined_deinit(&joined);
	return done;
}

/* While keys change, who seals under the next encryption key pins the next signing key too. */
static bool open_envelope(struct job *job, const char *envelope, struct join_request *request,
			  struct error *error)
{
	const struct pki_folder *pki = job->options.pki;
	struct error ignored; /* the current key's is told */

	job->keys = pki;
	if (join_request_open(envelope, pki->join_encryption_key, request, error))
		return true;
	if (!pki->next ||
	    !join_request_open(envelope, pki->next->join_encryption_key, request, &ignored))
		return false;
	job->keys = pki->next;
	return true;
}

static void work(void *arg, struct control *control)
{
	struct job *job = arg;
	CLEANUP(message) Bettercompute__V1__JoinRequest *message = NULL;
	struct join_request request = {0};

	job->ok = wire_join_request_unpack(job->envelope.data, job->envelope.length, &message,
					   &job->error) &&
		  open_envelope(job, message->envelope, &request, &job->error) &&
		  admit(job, control, &request, &job->error);
	if (!job->ok)
		outward_logged(control, "peer", job->peer, &job->error);
	join_request_deinit(&request);
}

/* --- allowances --- */

/* "10.0.0.1:4711" and "[::1]:4711" without their ports. */
static void address_of(const struct rpc_call *call, char out[ADDRESS_SIZE])
{
	const char *peer = rpc_peer(call);
	const char *colon = strrchr(peer, ':');

	str_copy(out, ADDRESS_SIZE, peer);
	if (colon && colon - peer < ADDRESS_SIZE)
		out[colon - peer] = '\0';
}

static struct allowance *allowance_of(struct join_service *service, const char *address)
{
	struct mono now = loop_now(service->loop);
	struct allowance *oldest = NULL;

	vec_each (&service->addresses, struct allowance * allowance) {
		if (str_equal(allowance->address, address)) {
			int64_t left = allowance->left_ms + mono_until(allowance->seen, now);
			const int64_t most = (int64_t)JOIN_MAX_REFUSED * JOIN_REFILL_MS;

			allowance->left_ms = left < most ? left : most;
			allowance->seen = now;
			return allowance;
		}
		if (!oldest || mono_until(allowance->seen, oldest->seen) > 0)
			oldest = allowance;
	}
	if (service->addresses.count < JOIN_MAX_ADDRESSES)
		oldest = vec_push(&service->addresses);
	*oldest = (struct allowance){
		.seen = now,
		.left_ms = (int64_t)JOIN_MAX_REFUSED * JOIN_REFILL_MS,
	};
	str_copy(oldest->address, sizeof oldest->address, address);
	return oldest;
}

/* Only what a guesser would cause is charged: our own faults are not the peer's. */
static bool is_charged(const struct job *job)
{
	return !job->known &&
	       (job->error.code == ERROR_UNAUTHENTICATED || job->error.code == ERROR_INVALID_INPUT);
}

/* It may be a neighbour's doing. UNAVAILABLE: every bcd comes again. */
static void finish_limited(struct rpc_call *call, const char *address)
{
	struct error error;

	log_warn("join.limited", "too many refused joins from one address", "peer", address, NULL);
	error_set(&error, ERROR_UNAVAILABLE, "too many joins from address %s were refused",
		  address);
	error_hint(&error,
		   "Wait: one each %d s is heard. Meanwhile look for the machine or pod at this "
		   "address that is refused again and again: bcd's log there, join.refused in the "
		   "control plane's",
		   JOIN_REFILL_MS / 1000);
	rpc_finish_error(call, &error);
}

/* --- on the loop --- */

static struct rpc_call *take_call(struct join_service *service, uint64_t id)
{
	for (size_t i = 0; i < service->calls.count; i++) {
		struct rpc_call *call = service->calls.items[i].call;

		if (service->calls.items[i].id == id) {
			vec_remove(&service->calls, i);
			return call;
		}
	}
	return NULL;
}

static void on_worked(void *context, void *arg)
{
	struct join_service *service = context;
	struct job *job = arg;
	struct rpc_call *call = take_call(service, job->call);

	if (job->ok) {
		log_info("node.joined", job->rejoined ? "a known machine joined again" : "joined",
			 "node", job->node, "peer", job->peer, NULL);
	} else {
		log_warn("join.refused", job->error.what, "peer", job->peer, NULL);
		if (is_charged(job))
			allowance_of(service, job->peer)->left_ms -= JOIN_REFILL_MS;
	}
	if (call && job->ok) {
		rpc_send(call, job->answer.data, job->answer.length);
		rpc_finish(call, RPC_OK, "");
	} else if (call) {
		rpc_finish_error(call, &job->error);
	}
	buf_deinit(&job->envelope);
	buf_deinit(&job->answer);
	free(job);
}

void join_service_ask(struct join_service *service, struct rpc_call *call, const uint8_t *data,
		      size_t length)
{
	struct job *job;
	char address[ADDRESS_SIZE];

	address_of(call, address);
	if (allowance_of(service, address)->left_ms < JOIN_REFILL_MS) {
		finish_limited(call, address);
		return;
	}
	job = mem_alloc(sizeof *job);
	job->options = service->options;
	job->call = rpc_call_id(call);
	memcpy(job->peer, address, sizeof address);
	buf_add(&job->envelope, data, length);
	error_set(&job->error, ERROR_UNAVAILABLE, "the control plane is stopping");
	if (service->calls.count == JOIN_MAX_CALLS ||
	    !workers_submit(service->workers, work, on_worked, service, job)) {
		buf_deinit(&job->envelope);
		free(job);
		rpc_finish(call, RPC_UNAVAILABLE, "too many joins are under way: try again");
		return;
	}
	*vec_push(&service->calls) = (struct pending){rpc_call_id(call), call};
}

void join_service_gone(struct join_service *service, const struct rpc_call *call)
{
	(void)take_call(service, rpc_call_id(call));
}

struct join_service *join_service_create(struct loop *loop, struct workers *workers,
					 const struct pki_folder *pki)
{
	struct join_service *service = mem_alloc(sizeof *service);

	service->loop = loop;
	service->workers = workers;
	service->options.pki = pki;
	return service;
}

void join_service_set_pki(struct join_service *service, const struct pki_folder *pki)
{
	service->options.pki = pki;
}

void join_service_tell(struct join_service *service, const char *gateway_address,
		       const char *gateway_server_name)
{
	service->options.gateway_address = gateway_address;
	service->options.gateway_server_name = gateway_server_name;
}

void join_service_destroy(struct join_service *service)
{
	if (!service)
		return;
	vec_deinit(&service->calls);
	vec_deinit(&service->addresses);
	free(service);
}
