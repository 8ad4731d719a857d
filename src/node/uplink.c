#include "node/uplink_internal.h"

#include "pki/cert.h"
#include "proto/methods.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/random.h"

#include <stdio.h>

#define MAX_QUEUED     ((size_t)1 << 20)
#define RENEW_RETRY_MS ((int64_t)3600 * 1000)
#define RENEW_STORE_MS ((int64_t)10 * 1000) /* for the turn to store a certificate */

const char *uplink_phase_name(enum uplink_phase phase)
{
	switch (phase) {
	case UPLINK_OFF:
		return "off";
	case UPLINK_WAITING:
		return "waiting";
	case UPLINK_RENEWING:
		return "renewing";
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
	renewal_destroy(uplink->renewal);
	close_stream(uplink);
	uplink_inbox_deinit(uplink);
	free(uplink);
}

/* --- the stream's callbacks --- */

static void on_drain(struct rpc_call *call UNUSED, void *arg)
{
	struct uplink *uplink = arg;

	uplink->options.wake(uplink->options.arg);
}

/* With what to do about it: `bcd status` shows both. */
static void say(struct uplink *uplink, const struct error *error)
{
	snprintf(uplink->error, sizeof uplink->error, "%s%s%s", error->what,
		 *error->hint ? ". " : "", error->hint);
}

static void note_end(struct uplink *uplink, const struct error *error)
{
	if (!uplink->ended) {
		say(uplink, error);
		uplink->unknown = error->code == ERROR_UNAUTHENTICATED;
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
	if (error.code == ERROR_FORBIDDEN) { /* by its peer in a handshake that went well */
		uplink->heard = true;
		uplink->member = false;
	}
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

void uplink_again(struct uplink *uplink)
{
	uplink->again = true;
}

/* --- connecting --- */

enum uplink_phase uplink_phase(const struct uplink *uplink)
{
	return uplink->phase;
}

enum uplink_standing uplink_standing(const struct uplink *uplink)
{
	if (uplink->phase == UPLINK_OFF)
		return UPLINK_ALONE;
	if (!uplink->heard)
		return UPLINK_UNHEARD;
	return uplink->member ? UPLINK_MEMBER : UPLINK_STRANGER;
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

bool uplink_needs_somebody(const struct uplink *uplink)
{
	return uplink->renewal_exit == JOIN_TOKEN || uplink->clocks_differ;
}

static void retry_later(struct uplink *uplink, struct mono now)
{
	const struct config *config = uplink->options.config;

	/* One that is greeted and ended at once, by the next thing that it says or by its twin, isn't well. */
	if (uplink->phase == UPLINK_OPEN &&
	    mono_until(uplink->connected_at, now) >= UPLINK_STEADY_MS)
		uplink->failures = 0;
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
	log_info("uplink.anew", "what this machine has or can do changed: it connects again", NULL);
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

/* --- a certificate that is no good any more (JOIN-41) --- */

static void on_renewed(void *arg, enum join_exit exit, struct buf *certificate,
		       const struct error *error)
{
	struct uplink *uplink = arg;

	uplink->options.wake(uplink->options.arg);
	uplink->renewal_over = true;
	uplink->renewal_exit = exit;
	uplink->clocks_differ =
		exit == JOIN_DONE &&
		!identity_check_clock(certificate, clock_wall(), &uplink->renewal_error);
	if (uplink->clocks_differ)
		uplink->renewal_exit = JOIN_FAILED; /* it would be expired again at once */
	else if (exit != JOIN_DONE)
		uplink->renewal_error = *error;
	if (uplink->renewal_exit != JOIN_DONE)
		return;
	buf_deinit(&uplink->certificate);
	uplink->certificate = *certificate;
	*certificate = (struct buf){0};
}

/* A person may have joined the node again while we tried. */
static void renew_now(struct uplink *uplink, struct mono now)
{
	struct uplink_options *options = &uplink->options;

	uplink->unknown = false;
	if (identity_refresh(options->identity, options->config->data)) {
		log_info("certificate.found",
			 "the node was joined again: its new certificate counts", NULL);
		connect_now(uplink, now);
		return;
	}
	uplink->phase = UPLINK_RENEWING;
	uplink->renewal =
		renewal_start(uplink->loop, options->config, options->identity, on_renewed, uplink);
}

/* Told once, until it is another reason. */
static void say_refused(struct uplink *uplink)
{
	struct error now = uplink->renewal_error;

	error_wrap(&now, "the node's certificate has expired or isn't taken any more, and was not "
			 "renewed");
	if (uplink->renewal_exit == JOIN_TOKEN)
		joining_hint_token(uplink->options.config, NULL, &now);
	say(uplink, &now);
	if (!str_equal(uplink->renewal_told, now.what))
		log_failure(LOG_ERROR, "certificate.expired", &now,
			    "what is bound stays bound and is served; it is tried again");
	str_copy(uplink->renewal_told, sizeof uplink->renewal_told, now.what);
}

static void end_renewal(struct uplink *uplink, struct mono now)
{
	renewal_destroy(TAKE(uplink->renewal));
	uplink->renewal_over = false;
	if (uplink->renewal_exit != JOIN_DONE) {
		say_refused(uplink);
		retry_later(uplink, now);
		return;
	}
	uplink->phase = UPLINK_WAITING; /* for the turn to store it */
	uplink->retry_at = mono_after(now, RENEW_STORE_MS);
}

void uplink_hurry(struct uplink *uplink)
{
	if (uplink->phase == UPLINK_WAITING)
		uplink->retry_at = loop_now(uplink->loop);
}

static void try_now(struct uplink *uplink, struct mono now)
{
	if (uplink->unknown || identity_expired(uplink->options.identity, clock_wall()))
		renew_now(uplink, now);
	else
		connect_now(uplink, now);
}

static void say_hello(struct uplink *uplink, const struct uplink_hello *hello, struct mono now)
{
	static const struct rpc_call_handlers handlers = {
		.on_message = uplink_on_message, .on_drain = on_drain, .on_done = on_done};
	CLEANUP(buf) struct buf message = {0};
	struct uplink_hello mine = *hello;
	struct error error = {0};

	uplink->up = uplink->again = false;
	uplink->heartbeat_at = mono_after(now, UPLINK_HEARTBEAT_MS);
	/* Two within a millisecond differ as well. */
	uplink->opened_ms = now.ms > uplink->opened_ms ? now.ms : uplink->opened_ms + 1;
	mine.opened_ms = uplink->opened_ms;
	uplink->capable = uplink_hello_is_capable(hello);
	uplink->numbered = hello->last_sequence;
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
	if (hello->spec && str_equal(hello->spec->lineage, uplink->welcome.lineage))
		generation = hello->spec->generation;
	uplink->heartbeat_at = mono_after(now, UPLINK_HEARTBEAT_MS);
	if (uplink_pack_heartbeat(generation, &message, &error))
		uplink_send(uplink, 0, &message);
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
	if (uplink->renewal_over)
		end_renewal(uplink, now);
	if (uplink->phase == UPLINK_OPEN &&
	    (uplink->again || uplink_hello_is_capable(hello) != uplink->capable))
		say_anew(uplink, now);
	if (uplink->phase == UPLINK_WAITING && !hello->unready &&
	    mono_until(now, uplink->retry_at) <= 0)
		try_now(uplink, now);
	if (uplink->phase == UPLINK_CONNECTING && uplink->up && !hello->unready)
		say_hello(uplink, hello, now);
	if (uplink->phase == UPLINK_CONNECTING && mono_until(now, due(uplink)) <= 0) {
		str_copy(uplink->error, sizeof uplink->error, "the control plane doesn't answer");
		retry_later(uplink, now);
	}
	if (uplink->phase == UPLINK_OPEN && mono_until(now, uplink->heartbeat_at) <= 0)
		beat(uplink, hello, now);
	*ret_timed = uplink->phase != UPLINK_OFF && uplink->phase != UPLINK_RENEWING &&
		     !(uplink->phase == UPLINK_WAITING && hello->unready);
	return due(uplink);
}

/* --- what goes up --- */

void uplink_send(struct uplink *uplink, int64_t sequence, const struct buf *message)
{
	if (uplink->phase != UPLINK_OPEN || !uplink->stream)
		return;
	rpc_send(uplink->stream, message->data, message->length);
	if (sequence > uplink->numbered)
		uplink->numbered = sequence;
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

	if (uplink->phase != UPLINK_OPEN ||
	    mono_until(loop_now(uplink->loop), uplink->renew_after) > 0)
		return;
	uplink->renew_after = mono_after(loop_now(uplink->loop), RENEW_RETRY_MS);
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
	uplink_send(uplink, 0, &message);
	return;
fail:
	log_failure(LOG_WARN, "certificate.renew", &error, "it is tried again in an hour");
}
