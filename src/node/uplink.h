/*
 * uplink: bcd's stream to the control plane.
 *
 * Tries several addresses in turn; backs off from 1 s to 60 s with jitter, and only a Welcome
 * resets that. What comes down is noted here and taken by the turn; nothing is decided in a
 * callback. Threads   the loop's. uplink_step() is part of the turn.
 */
#pragma once

#include "node/core/config.h"
#include "node/core/operation.h"
#include "node/core/uplink.h"
#include "node/identity.h"
#include "sys/loop.h"

struct uplink;

struct uplink_options {
	const struct config *config; /* these outlive it */
	const struct identity *identity;
	loop_fn *wake;
	void *arg;
};

struct uplink *uplink_create(struct loop *loop, const struct uplink_options *options);
void uplink_destroy(struct uplink *uplink);

enum uplink_phase {
	UPLINK_OFF,        /* no address, or not joined */
	UPLINK_WAITING,    /* until the next try */
	UPLINK_CONNECTING, /* no Welcome yet */
	UPLINK_OPEN,
};
const char *uplink_phase_name(enum uplink_phase phase);

/* Connects, sends Hello and heartbeats. Returns when to look again. */
struct mono uplink_step(struct uplink *uplink, const struct uplink_hello *hello, struct mono now,
			bool *ret_timed);
enum uplink_phase uplink_phase(const struct uplink *uplink);
const char *uplink_error(const struct uplink *uplink);   /* why it isn't open; "" */
const char *uplink_address(const struct uplink *uplink); /* that it uses or tried last */
struct wall uplink_since(const struct uplink *uplink);   /* of the phase open, or not open */

/* --- what came down; each is told once --- */

/* A stream opened, on a database of this lineage. */
bool uplink_take_welcome(struct uplink *uplink, char ret_lineage[SPEC_LINEAGE_SIZE]);
/* The newest Spec; NULL: none. The caller frees it (spec_deinit, free). */
struct spec *uplink_take_spec(struct uplink *uplink);
/* Why the last Spec could not be read; "" when it could. */
const char *uplink_spec_error(const struct uplink *uplink);
int64_t uplink_acknowledged(const struct uplink *uplink); /* told on this stream; 0: nothing */
/* A certificate to store; an empty buf: none. */
void uplink_take_certificate(struct uplink *uplink, struct buf *ret_pem);
struct uplink_operation {
	char id[ID_SIZE];
	char kind[OPERATION_KIND_SIZE];
	char argument[OPERATION_MAX_ARGUMENT + 1];
};
bool uplink_take_operation(struct uplink *uplink, struct uplink_operation *ret_operation);

/* --- what goes up; only while open --- */

void uplink_send(struct uplink *uplink, const struct buf *message);
void uplink_beat(struct uplink *uplink); /* a heartbeat at the next step: what it says changed */
bool uplink_full(const struct uplink *uplink); /* wait: uplink wakes when it isn't any more */
/* Asks for a new certificate when the one we have is past two thirds of its life (JOIN-41). */
void uplink_renew(struct uplink *uplink, struct wall now);
