#include "serve/stream_job.h"

#include "serve/issue.h"
#include "serve/outward.h"
#include "sys/clock.h"

struct stream_job *stream_job_create(enum stream_job_kind kind, uint64_t stream,
				     const struct cert_node *node, int64_t epoch,
				     const struct pki_folder *pki, Bettercompute__V1__Up *up)
{
	struct stream_job *job = mem_alloc(sizeof *job);

	job->kind = kind;
	job->stream = stream;
	job->node = *node;
	job->epoch = epoch;
	job->pki = pki;
	job->up = up;
	error_set(&job->error, ERROR_UNAVAILABLE, "the control plane is stopping");
	return job;
}

void stream_job_destroy(struct stream_job *job)
{
	message_free(job->up);
	pki_wipe(&job->down); /* it may hold a secret */
	free(job);
}

static bool hello(struct stream_job *job, struct control *control)
{
	struct control_hello hello = wire_hello(job->up->hello, job->node.node_id);

	return control_node_hello(control, &hello, &job->welcome, &job->error) &&
	       wire_pack_welcome(&job->welcome, job->node.node_id, &job->down, &job->error);
}

static bool report(struct stream_job *job, struct control *control)
{
	CLEANUP(arena) struct arena arena = {0};
	struct control_report report =
		wire_report(job->up->report, job->node.node_id, job->epoch, &arena);
	struct control_report_result result = {0};

	if (!control_node_report(control, &report, &result, &job->error))
		return false;
	job->look_again = result.look_again;
	return wire_pack_ack(result.acknowledged, &job->down, &job->error);
}

static bool heartbeat(struct stream_job *job, struct control *control)
{
	return control_node_heartbeat(control, job->node.node_id, job->epoch,
				      job->up->heartbeat->spec_generation, &job->error);
}

static bool secret(struct stream_job *job, struct control *control)
{
	const Bettercompute__V1__SecretRequest *asked = job->up->secret_request;
	const struct control_secret_request request = {
		.node = job->node.node_id,
		.epoch = job->epoch,
		.tenants_certificate = job->node.role == CERT_ROLE_NODE_TENANT,
		.reference = asked->reference,
		.allocation = asked->allocation,
	};
	struct control_secret secret;
	bool done;

	if (!control_secret_give(control, &request, &secret, &job->error))
		return false;
	done = wire_pack_secret(asked->reference, &secret, &job->down, &job->error);
	control_secret_deinit(&secret);
	return done;
}

/* A new certificate for the key the node joined with, and for what the node is now. */
static bool renewed(struct stream_job *job, struct control *control, struct buf *ret_pem,
		    struct error *error)
{
	const Bettercompute__V1__Renew *renew = job->up->renew;
	CLEANUP(pki_key) struct pki_key *key = NULL;
	struct control_node_identity identity;
	char pin[PIN_SIZE];

	if (!cert_request_check(renew->certificate_request_der.data,
				renew->certificate_request_der.len, &key, error) ||
	    !control_node_identify(control, job->node.node_id, &identity, error))
		return false;
	pki_key_pin(key, pin);
	if (!str_equal(pin, identity.machine_key))
		return error_set(error, ERROR_FORBIDDEN,
				 "the request is for another key than the node joined with");
	return issue_node(job->pki, key, job->node.node_id, identity.trust, clock_wall(), ret_pem,
			  error);
}

/* A refusal is an answer: the stream goes on. */
static bool renew(struct stream_job *job, struct control *control)
{
	CLEANUP(buf) struct buf pem = {0};
	struct error refused;

	if (renewed(job, control, &pem, &refused))
		return wire_pack_certificate(buf_text(&pem), NULL, &job->down, &job->error);
	if (refused.code == ERROR_UNAVAILABLE) {
		job->error = refused;
		return false;
	}
	outward_logged(control, "node", job->node.node_id, &refused);
	return wire_pack_certificate(NULL, refused.what, &job->down, &job->error);
}

static bool spec(struct stream_job *job, struct control *control)
{
	struct control_spec spec = {0};
	bool done;

	if (!control_spec_load(control, job->node.node_id, job->epoch, &spec, &job->error))
		return false;
	job->spec_generation = spec.generation;
	done = wire_pack_spec(&spec, &job->down, &job->error);
	control_spec_deinit(&spec);
	return done;
}

static bool run(struct stream_job *job, struct control *control)
{
	switch (job->kind) {
	case STREAM_JOB_HELLO:
		return hello(job, control);
	case STREAM_JOB_REPORT:
		return report(job, control);
	case STREAM_JOB_HEARTBEAT:
		return heartbeat(job, control);
	case STREAM_JOB_SECRET:
		return secret(job, control);
	case STREAM_JOB_RENEW:
		return renew(job, control);
	case STREAM_JOB_SPEC:
		return spec(job, control);
	case STREAM_JOB_GONE:
		return control_node_gone(control, job->node.node_id, job->epoch, &job->error);
	}
	abort();
}

void stream_job_work(void *arg, struct control *control)
{
	struct stream_job *job = arg;

	job->ok = run(job, control);
	if (!job->ok)
		outward_logged(control, "node", job->node.node_id, &job->error);
}
