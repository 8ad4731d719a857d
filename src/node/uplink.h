/*
 * uplink: bcd's stream to the control plane.
 *
 * Tries several addresses in turn; backs off from 1 s to 60 s with jitter, and only a stream that
 * stays for a while resets that. What comes down is noted here and taken by the turn; nothing is decided in a
 * callback. An expired certificate is renewed by its key (renew.h) before the next connection.
 * Threads   the loop's. uplink_step() is part of the turn.
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
	struct identity *identity;   /* key and certificate are replaced by those on disk */
	loop_fn *wake;
	void *arg;
};

struct uplink *uplink_create(struct loop *loop, const struct uplink_options *options);
void uplink_destroy(struct uplink *uplink);

enum uplink_phase {
	UPLINK_OFF,        /* no address, or not joined */
	UPLINK_WAITING,    /* until the next try */
	UPLINK_RENEWING,   /* the certificate, at the join service */
	UPLINK_CONNECTING, /* no Welcome yet */
	UPLINK_OPEN,
};
const char *uplink_phase_name(enum uplink_phase phase);

/* Connects, sends Hello and heartbeats. Returns when to look again. */
struct mono uplink_step(struct uplink *uplink, const struct uplink_hello *hello, struct mono now,
			bool *ret_timed);
enum uplink_phase uplink_phase(const struct uplink *uplink);

/* What the control plane takes this machine for. */
enum uplink_standing {
	UPLINK_ALONE,    /* there is none to ask, or nothing to ask as */
	UPLINK_UNHEARD,  /* it hasn't said since this process started */
	UPLINK_MEMBER,   /* one of its nodes */
	UPLINK_STRANGER, /* none: the node was retired, or isn't known there */
};
enum uplink_standing uplink_standing(const struct uplink *uplink);
const char *uplink_error(const struct uplink *uplink);   /* why it isn't open; "" */
const char *uplink_address(const struct uplink *uplink); /* that it uses or tried last */
struct wall uplink_since(const struct uplink *uplink);   /* of the phase open, or not open */
/* The control plane doesn't take this node's certificate any more, nor its key: somebody has to join it. Or
 * what it issues isn't valid by our clock: somebody has to set a clock. */
bool uplink_needs_somebody(const struct uplink *uplink);

/* --- what came down; each is told once --- */

/* A stream opened. */
struct uplink_welcome {
	char lineage[SPEC_LINEAGE_SIZE];              /* of the database */
	char site[ID_SIZE], pool[IDENTITY_NAME_SIZE]; /* "" not said */
};
bool uplink_take_welcome(struct uplink *uplink, struct uplink_welcome *ret_welcome);
/* The newest Spec; NULL: none. The caller frees it (spec_deinit, free). */
struct spec *uplink_take_spec(struct uplink *uplink);
/* Why the last Spec could not be read; "" when it could. */
const char *uplink_spec_error(const struct uplink *uplink);
/* As told on this stream; 0: nothing. Never more than its Hello and its reports have named. */
int64_t uplink_acknowledged(const struct uplink *uplink);
/* They could not be stored: they are there to be taken again, unless newer ones came. Takes both over. */
void uplink_return(struct uplink *uplink, struct spec *spec, struct buf *certificate);
/* Opens another stream: each begins with all that the control plane wants. */
void uplink_again(struct uplink *uplink);
/* A certificate to store; an empty buf: none. */
void uplink_take_certificate(struct uplink *uplink, struct buf *ret_pem);
struct uplink_operation {
	char id[ID_SIZE];
	char kind[OPERATION_KIND_SIZE];
	char argument[OPERATION_MAX_ARGUMENT + 1];
};
bool uplink_take_operation(struct uplink *uplink, struct uplink_operation *ret_operation);

/* --- what goes up; only while open --- */

/* `sequence`: of a report; 0: it has none, or is something else. */
void uplink_send(struct uplink *uplink, int64_t sequence, const struct buf *message);
void uplink_beat(struct uplink *uplink); /* a heartbeat at the next step: what it says changed */
bool uplink_full(const struct uplink *uplink); /* wait: uplink wakes when it isn't any more */
void uplink_hurry(struct uplink *uplink); /* what it waited for is there: tries at the next step */
/* Asks for a new certificate when the one we have is past two thirds of its life (JOIN-41). */
void uplink_renew(struct uplink *uplink, struct wall now);
