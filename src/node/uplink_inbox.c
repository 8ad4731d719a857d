/* uplink's inbox: what the control plane says is noted here, and taken by the turn. */
#include "node/uplink_internal.h"

#include "proto/gateway.pb-c.h"
#include "proto/message.h"
#include "sys/clock.h"
#include "sys/log.h"

#define MAX_OPERATIONS 64

MESSAGE_TYPE(down, Bettercompute__V1__Down, bettercompute__v1__down)

static void drop_spec(struct uplink *uplink)
{
	spec_deinit(uplink->spec);
	free(TAKE(uplink->spec));
}

void uplink_inbox_deinit(struct uplink *uplink)
{
	drop_spec(uplink);
	buf_deinit(&uplink->certificate);
	vec_deinit(&uplink->operations);
}

/* One that nobody has named acknowledges nothing: by what it says reports would be dropped untold. */
static bool is_named(const struct uplink *uplink, int64_t sequence)
{
	if (sequence >= 0 && sequence <= uplink->numbered)
		return true;
	log_error("uplink.acknowledged",
		  "the control plane acknowledges a report that was never sent: it is ignored",
		  "gateway", uplink_address(uplink), NULL);
	return false;
}

static void take_welcome(struct uplink *uplink, const Bettercompute__V1__Welcome *welcome)
{
	struct uplink_welcome *told = &uplink->welcome;

	str_copy(told->lineage, sizeof told->lineage, welcome->lineage);
	str_copy(told->site, sizeof told->site, welcome->site);
	str_copy(told->pool, sizeof told->pool, welcome->pool);
	uplink->welcomed = true;
	uplink->acknowledged = is_named(uplink, welcome->acknowledged) ? welcome->acknowledged : 0;
	uplink->phase = UPLINK_OPEN;
	uplink->heard = uplink->member = true;
	uplink->since = clock_wall();
	uplink->error[0] = '\0';
	uplink->renewal_exit = JOIN_DONE;
	uplink->clocks_differ = false;
	uplink->renewal_told[0] = '\0';
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
	if (uplink->spec && !spec_accepts(uplink->spec, &spec)) { /* it comes late, or again */
		spec_deinit(&spec);
		return;
	}
	drop_spec(uplink);
	uplink->spec = mem_dup(&spec, sizeof spec);
}

static void take_certificate(struct uplink *uplink, const Bettercompute__V1__Certificate *message)
{
	CLEANUP(buf) struct buf pem = {0};
	struct error error = {0};

	if (!message->ok) {
		log_warn("certificate.refused", "the node's certificate was not renewed", "why",
			 message->message, NULL);
		return;
	}
	if (message->certificate_pem.len > PKI_PEM_MAX)
		return;
	buf_add(&pem, message->certificate_pem.data, message->certificate_pem.len);
	buf_add(&pem, "", 1);
	pem.length--;
	if (!identity_check_clock(&pem, clock_wall(), &error)) {
		log_failure(LOG_WARN, "certificate.refused", &error, "the one of before stays");
		return;
	}
	buf_deinit(&uplink->certificate);
	uplink->certificate = pem;
	pem = (struct buf){0};
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

void uplink_on_message(struct rpc_call *call UNUSED, void *arg, const uint8_t *data, size_t length)
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
		if (message->ack->sequence > uplink->acknowledged &&
		    is_named(uplink, message->ack->sequence))
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

bool uplink_take_welcome(struct uplink *uplink, struct uplink_welcome *ret_welcome)
{
	if (!uplink->welcomed)
		return false;
	uplink->welcomed = false;
	*ret_welcome = uplink->welcome;
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

void uplink_return(struct uplink *uplink, struct spec *spec, struct buf *certificate)
{
	/* Of one lineage the newer is wanted, whichever came last. */
	if (spec && (!uplink->spec || (str_equal(uplink->spec->lineage, spec->lineage) &&
				       spec_accepts(uplink->spec, spec)))) {
		drop_spec(uplink);
		uplink->spec = spec;
	} else if (spec) {
		spec_deinit(spec);
		free(spec);
	}
	if (uplink->certificate.length == 0) {
		buf_deinit(&uplink->certificate);
		uplink->certificate = *certificate;
		*certificate = (struct buf){0};
	}
}

bool uplink_take_operation(struct uplink *uplink, struct uplink_operation *ret_operation)
{
	if (uplink->operations.count == 0)
		return false;
	*ret_operation = uplink->operations.items[0];
	vec_remove(&uplink->operations, 0);
	return true;
}
