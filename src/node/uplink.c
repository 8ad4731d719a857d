#include "node/uplink.h"

#include "pki/cert.h"
#include "proto/gateway.pb-c.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "rpc/rpc.h"
#include "rpc/tls.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/random.h"

#define MAX_QUEUED     ((size_t)1 << 20)
#define MAX_OPERATIONS 64
#define RENEW_RETRY_MS ((int64_t)3600 * 1000)

MESSAGE_TYPE(down, Bettercompute__V1__Down, bettercompute__v1__down)

struct uplink {
	struct loop *loop;
	struct uplink_options options;
	enum uplink_phase phase;
	struct rpc_tls *tls;
	struct rpc_client *client;
	struct rpc_call *stream;
	size_t address; /* index of the one in use, or tried next */
	uint32_t failures, jitter;
	struct mono retry_at, connected_at, heartbeat_at;
	int64_t opened_ms; /* of the newest stream */
	struct wall since, renewed_at;
	bool up, ended; /* noted by callbacks, for the turn */
	bool capable;   /* as the Hello of the stream said */
	char error[ERROR_WHAT_SIZE];
	/* inbox */
	bool welcomed;
	char lineage[SPEC_LINEAGE_SIZE];
	struct spec *spec;
	char spec_error[ERROR_WHAT_SIZE];
	int64_t acknowledged;
	struct buf certificate; /* as told, until the turn stores it */
	VEC(struct uplink_operation) operations;
};

const char *uplink_phase_name(enum uplink_phase phase)
{
	switch (phase) {
	case UPLINK_OFF:
		return "off";
	case UPLINK_WAITING:
		return "waiting";
	case UPLINK_CONNECTING:
		return "connecting";
	case UPLINK_OPEN:
		return "connected";
	}
	assert(false && "a phase of no name");
	return "";
}

struct uplink *uplink_create(struct loop *loop, const struct uplink_options *options)
{
	struct uplink *uplink = mem_alloc(sizeof *uplink);

	uplink->loop = loop;
	uplink->options = *options;
	uplink->since = clock_wall();
	uplink->retry_at = (struct mono){0};
	if (options->identity && options->config->address_count > 0)
		uplink->phase = UPLINK_WAITING;
	else
		str_copy(uplink->error, sizeof uplink->error,
			 options->identity ? "no [gateway] is configured"
					   : "this machine has not joined");
	return uplink;
}

static void drop_spec(struct uplink *uplink)
{
	spec_deinit(uplink->spec);
	free(TAKE(uplink->spec));
}

static void close_stream(struct uplink *uplink)
{
	uplink->stream = NULL;
	uplink->ended = true; /* what ends now ends by us: its reason is not news */
	rpc_client_destroy(TAKE(uplink->client));
	rpc_tls_destroy(TAKE(uplink->tls));
	uplink->up = uplink->ended = false;
}

void uplink_destroy(struct uplink *uplink)
{
	if (!uplink)
		return;
	close_stream(uplink);
	drop_spec(uplink);
	buf_deinit(&uplink->certificate);
	vec_deinit(&uplink->operations);
	free(uplink);
}

/* --- what comes down --- */

static void take_welcome(struct uplink *uplink, const Bettercompute__V1__Welcome *welcome)
{
	str_copy(uplink->lineage, sizeof uplink->lineage, welcome->lineage);
	uplink->welcomed = true;
	uplink->acknowledged = welcome->acknowledged;
	uplink->phase = UPLINK_OPEN;
	uplink->failures = 0;
	uplink->since = clock_wall();
	uplink->error[0] = '\0';
	log_info("uplink.open", "connected to the control plane", "gateway", uplink_address(uplink),
		 NULL);
}

static void take_spec(struct uplink *uplink, const Bettercompute__V1__Spec *message)
{
	struct spec spec = {0};
	struct error error = {0};

	if (!spec_from_message(message, &spec, &error)) {
		log_failure(LOG_ERROR, "spec.invalid", &error, "the stored one stays in force");
		str_copy(uplink->spec_error, sizeof uplink->spec_error, error.what);
		return;
	}
	uplink->spec_error[0] = '\0';
	drop_spec(uplink);
	uplink->spec = mem_dup(&spec, sizeof spec);
}

static void take_certificate(struct uplink *uplink, const Bettercompute__V1__Certificate *message)
{
	if (!message->ok) {
		log_warn("certificate.refused", "the node's certificate was not renewed", "why",
			 message->message, NULL);
		return;
	}
	if (message->certificate_pem.len > PKI_PEM_MAX)
		return;
	buf_clear(&uplink->certificate);
	buf_add(&uplink->certificate, message->certificate_pem.data, message->certificate_pem.len);
	buf_add(&uplink->certificate, "", 1);
	uplink->certificate.length--;
}

static void take_operation(struct uplink *uplink, const Bettercompute__V1__Operation *message)
{
	struct uplink_operation *operation;

	if (uplink->operations.count == MAX_OPERATIONS)
		return; /* the control plane sends what has no result again */
	operation = vec_push(&uplink->operations);
	if (!str_copy(operation->id, sizeof operation->id, message->operation) ||
	    !str_copy(operation->kind, sizeof operation->kind, message->kind))
		vec_remove(&uplink->operations, uplink->operations.count - 1);
	else /* cut, it is refused as unreadable */
		(void)str_copy(operation->argument, sizeof operation->argument, message->argument);
}

static void on_message(struct rpc_call *call UNUSED, void *arg, const uint8_t *data, size_t length)
{
	CLEANUP(message) Bettercompute__V1__Down *message = NULL;
	struct uplink *uplink = arg;
	struct error error = {0};

	uplink->options.wake(uplink->options.arg);
	if (!down_unpack(data, length, &message, &error)) {
		log_failure(LOG_ERROR, "uplink.message", &error, "it is ignored");
		return;
	}
	if (uplink->phase != UPLINK_OPEN &&
	    message->body_case != BETTERCOMPUTE__V1__DOWN__BODY_WELCOME)
		return; /* before Welcome nothing counts */
	switch (message->body_case) {
	case BETTERCOMPUTE__V1__DOWN__BODY_WELCOME:
		take_welcome(uplink, message->welcome);
		return;
	case BETTERCOMPUTE__V1__DOWN__BODY_SPEC:
		take_spec(uplink, message->spec);
		return;
	case BETTERCOMPUTE__V1__DOWN__BODY_ACK:
		if (message->ack->sequence > uplink->acknowledged)
			uplink->acknowledged = message->ack->sequence;
		return;
	case BETTERCOMPUTE__V1__DOWN__BODY_CERTIFICATE:
		take_certificate(uplink, message->certificate);
		return;
	case BETTERCOMPUTE__V1__DOWN__BODY_OPERATION:
		take_operation(uplink, message->operation);
		return;
	case BETTERCOMPUTE__V1__DOWN__BODY_SECRET: /* none was asked for */
	case BETTERCOMPUTE__V1__DOWN__BODY__NOT_SET:
	case _BETTERCOMPUTE__V1__DOWN__BODY__CASE_IS_INT_SIZE:
		return;
	}
}

static void on_drain(struct rpc_call *call UNUSED, void *arg)
{
	struct uplink *uplink = arg;

	uplink->options.wake(uplink->options.arg);
}

static void note_end(struct uplink *uplink, const struct error *error)
{
	if (!uplink->ended) {
		str_copy(uplink->error, sizeof uplink->error, error->what);
		if (*error->hint)
			log_failure(LOG_WARN, "uplink.closed", error, "it is tried again");
	}
	uplink->ended = true;
	uplink->options.wake(uplink->options.arg);
}

static void on_done(struct rpc_call *call UNUSED, void *arg, const struct rpc_status *status)
{
	struct uplink *uplink = arg;
	struct error error = {0};

	uplink->stream = NULL;
	if (status->code == RPC_OK)
		error_set(&error, ERROR_UNAVAILABLE, "the control plane ended the stream");
	else
		rpc_status_to_error(status, &error);
	note_end(uplink, &error);
}

static void on_up(void *arg)
{
	struct uplink *uplink = arg;

	uplink->up = true;
	uplink->options.wake(uplink->options.arg);
}

static void on_down(void *arg, const struct error *error)
{
	struct error none = {0};

	if (!error)
		error_set(&none, ERROR_UNAVAILABLE, "the connection ended");
	note_end(arg, error ? error : &none);
}

bool uplink_take_welcome(struct uplink *uplink, char ret_lineage[SPEC_LINEAGE_SIZE])
{
	if (!uplink->welcomed)
		return false;
	uplink->welcomed = false;
	str_copy(ret_lineage, SPEC_LINEAGE_SIZE, uplink->lineage);
	return true;
}

struct spec *uplink_take_spec(struct uplink *uplink)
{
	return TAKE(uplink->spec);
}

const char *uplink_spec_error(const struct uplink *uplink)
{
	return uplink->spec_error;
}

int64_t uplink_acknowledged(const struct uplink *uplink)
{
	return uplink->acknowledged;
}

void uplink_take_certificate(struct uplink *uplink, struct buf *ret_pem)
{
	buf_deinit(ret_pem);
	*ret_pem = uplink->certificate;
	uplink->certificate = (struct buf){0};
}

bool uplink_take_operation(struct uplink *uplink, struct uplink_operation *ret_operation)
{
	if (uplink->operations.count == 0)
		return false;
	*ret_operation = uplink->operations.items[0];
	vec_remove(&uplink->operations, 0);
	return true;
}

/* --- connecting --- */

enum uplink_phase uplink_phase(const struct uplink *uplink)
{
	return uplink->phase;
}

const char *uplink_error(const struct uplink *uplink)
{
	return uplink->error;
}

const char *uplink_address(const struct uplink *uplink)
{
	const struct config *config = uplink->options.config;

	return config->address_count > 0 ? config->addresses[uplink->address] : "";
}

struct wall uplink_since(const struct uplink *uplink)
{
	return uplink->since;
}

static void retry_later(struct uplink *uplink, struct mono now)
{
	const struct config *config = uplink->options.config;

	if (uplink->phase == UPLINK_OPEN || uplink->failures == 0) {
		uplink->since = clock_wall();
		log_warn("uplink.closed", "no stream to the control plane", "gateway",
			 uplink_address(uplink), "why", uplink->error, NULL);
	}
	close_stream(uplink);
	uplink->phase = UPLINK_WAITING;
	uplink->failures++;
	random_bytes(&uplink->jitter, sizeof uplink->jitter);
	/* Every address once before any is waited for. */
	uplink->address = (uplink->address + 1) % config->address_count;
	if (uplink->failures % config->address_count != 0)
		uplink->retry_at = mono_after(now, (int64_t)(uplink->jitter % 100));
	else
		uplink->retry_at = mono_after(
			now, uplink_backoff(uplink->failures / (uint32_t)config->address_count,
					    uplink->jitter));
}

/* A Hello is the first word of a stream: one that would differ now needs another stream. */
static void say_anew(struct uplink *uplink, struct mono now)
{
	log_info("uplink.anew", "what this machine can do changed: it connects again", NULL);
	close_stream(uplink);
	uplink->phase = UPLINK_WAITING;
	uplink->since = clock_wall();
	uplink->retry_at = now;
}

static bool make_tls(struct uplink *uplink, struct error *error)
{
	const struct identity *identity = uplink->options.identity;
	const struct rpc_tls_client_options options = {
		.server_name = uplink->options.config->server_name,
		.pins = uplink->options.config->ca_pins,
		.certificate_pem = buf_text(&identity->certificate_pem),
		.key_pem = buf_text(&identity->key_pem),
	};

	return rpc_tls_client_create(&options, &uplink->tls, error);
}

static void connect_now(struct uplink *uplink, struct mono now)
{
	static const struct rpc_client_handlers handlers = {.on_up = on_up, .on_down = on_down};
	struct error error = {0};

	if (!make_tls(uplink, &error)) {
		str_copy(uplink->error, sizeof uplink->error, error.what);
		retry_later(uplink, now);
		return;
	}
	uplink->phase = UPLINK_CONNECTING;
	uplink->connected_at = now;
	uplink->client = rpc_client_create(uplink->loop, uplink_address(uplink), uplink->tls,
					   UPLINK_KEEPALIVE_MS, &handlers, uplink);
}

static void say_hello(struct uplink *uplink, const struct uplink_hello *hello, struct mono now)
{
	static const struct rpc_call_handlers handlers = {
		.on_message = on_message, .on_drain = on_drain, .on_done = on_done};
	CLEANUP(buf) struct buf message = {0};
	struct uplink_hello mine = *hello;
	struct error error = {0};

	uplink->up = false;
	uplink->heartbeat_at = mono_after(now, UPLINK_HEARTBEAT_MS);
	/* Two within a millisecond differ as well. */
	uplink->opened_ms = now.ms > uplink->opened_ms ? now.ms : uplink->opened_ms + 1;
	mine.opened_ms = uplink->opened_ms;
	uplink->capable = uplink_hello_is_capable(hello);
	if (!uplink_pack_hello(&mine, &message, &error)) {
		str_copy(uplink->error, sizeof uplink->error, error.what);
		retry_later(uplink, now);
		return;
	}
	uplink->stream = rpc_call_start(uplink->client, METHOD_GATEWAY_CONNECT, 0,
					UPLINK_MAX_MESSAGE, &handlers, uplink);
	rpc_send(uplink->stream, message.data, message.length);
}

static void beat(struct uplink *uplink, const struct uplink_hello *hello, struct mono now)
{
	CLEANUP(buf) struct buf message = {0};
	struct error error = {0};
	int64_t generation = 0;

	/* A number of another lineage says nothing here. */
	if (hello->spec && str_equal(hello->spec->lineage, uplink->lineage))
		generation = hello->spec->generation;
	uplink->heartbeat_at = mono_after(now, UPLINK_HEARTBEAT_MS);
	if (uplink_pack_heartbeat(generation, &message, &error))
		uplink_send(uplink, &message);
	else
		log_failure(LOG_ERROR, "uplink.heartbeat", &error, "none is sent");
}

/* When it is due again, whatever else happens. */
static struct mono due(const struct uplink *uplink)
{
	if (uplink->phase == UPLINK_WAITING)
		return uplink->retry_at;
	if (uplink->phase == UPLINK_CONNECTING)
		return mono_after(uplink->connected_at, UPLINK_WELCOME_MS);
	return uplink->heartbeat_at;
}

struct mono uplink_step(struct uplink *uplink, const struct uplink_hello *hello, struct mono now,
			bool *ret_timed)
{
	if (uplink->ended)
		retry_later(uplink, now);
	if (uplink->phase == UPLINK_OPEN && uplink_hello_is_capable(hello) != uplink->capable)
		say_anew(uplink, now);
	if (uplink->phase == UPLINK_WAITING && mono_until(now, uplink->retry_at) <= 0)
		connect_now(uplink, now);
	if (uplink->phase == UPLINK_CONNECTING && uplink->up)
		say_hello(uplink, hello, now);
	if (uplink->phase == UPLINK_CONNECTING && mono_until(now, due(uplink)) <= 0) {
		str_copy(uplink->error, sizeof uplink->error, "the control plane doesn't answer");
		retry_later(uplink, now);
	}
	if (uplink->phase == UPLINK_OPEN && mono_until(now, uplink->heartbeat_at) <= 0)
		beat(uplink, hello, now);
	*ret_timed = uplink->phase != UPLINK_OFF;
	return due(uplink);
}

/* --- what goes up --- */

void uplink_send(struct uplink *uplink, const struct buf *message)
{
	if (uplink->phase == UPLINK_OPEN && uplink->stream)
		rpc_send(uplink->stream, message->data, message->length);
}

void uplink_beat(struct uplink *uplink)
{
	uplink->heartbeat_at = loop_now(uplink->loop);
}

bool uplink_full(const struct uplink *uplink)
{
	return uplink->phase != UPLINK_OPEN || !uplink->stream ||
	       rpc_queued(uplink->stream) > MAX_QUEUED;
}

void uplink_renew(struct uplink *uplink, struct wall now)
{
	const struct identity *identity = uplink->options.identity;
	CLEANUP(pki_key) struct pki_key *key = NULL;
	CLEANUP(buf) struct buf request = {0}, message = {0};
	struct cert_info info;
	struct error error = {0};

	if (uplink->phase != UPLINK_OPEN || now.ms - uplink->renewed_at.ms < RENEW_RETRY_MS)
		return;
	uplink->renewed_at = now;
	if (!cert_read(buf_text(&identity->certificate_pem), identity->certificate_pem.length,
		       &info, &error))
		goto fail;
	if (now.ms - info.not_before.ms < (info.not_after.ms - info.not_before.ms) / 3 * 2)
		return;
	if (!pki_key_from_pem(buf_text(&identity->key_pem), identity->key_pem.length, &key,
			      &error) ||
	    !cert_request_make(key, NULL, &request, &error) ||
	    !uplink_pack_renew(&request, &message, &error))
		goto fail;
	uplink_send(uplink, &message);
	return;
fail:
	log_failure(LOG_WARN, "certificate.renew", &error, "it is tried again in an hour");
}
