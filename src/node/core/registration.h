/*
 * registration: when does a device plugin make a socket, and when does it register?
 *
 * Owns      DP-2, 16, 31, 32, 46, 47: one live registration for a class; a new socket name for each
 *           try; none while the kubelet's stream lives, unless our socket was taken away; tries
 *           that fail back off from 100 ms to 5 s and never end. A kubelet that knew a path refuses
 *           it until it restarts, so no name is used twice.
 * Pure. node/registration.c gathers the view and carries the step out.
 * Tests     tests/unit/node/core/registration_test.c (every view)
 */
#pragma once

#include "base/base.h"

#define REGISTRATION_BACKOFF_MIN_MS 100
#define REGISTRATION_BACKOFF_MAX_MS 5000
#define REGISTRATION_STREAM_MS      5000 /* from a good Register to the kubelet's ListAndWatch */
#define REGISTRATION_CALL_MS        10000
#define REGISTRATION_NAME_SIZE      40

struct registration_view {
	bool wanted;          /* the class is offered */
	bool kubelet_present; /* kubelet.sock exists */
	bool kubelet_new;     /* and isn't the one of the last try */
	bool up;              /* we have a server and a socket */
	bool own_lost;        /* our socket file is gone, or another's stands in its place */
	bool calling;         /* Register is under way */
	bool streaming;       /* a ListAndWatch of this server lives */
	bool accepted;        /* the last try was answered OK */
	struct mono tried;    /* when the last try ended; meaningless without a try */
	bool ever_tried;
	uint32_t failures; /* tries in a row that led to no stream */
	uint32_t jitter;   /* random, fixed for one wait */
};

enum registration_step {
	REGISTRATION_NOTHING,  /* look again when something happens, or at `again` */
	REGISTRATION_STOP,     /* end streams, take the socket away */
	REGISTRATION_REGISTER, /* stop what there is; serve a new socket; then call Register */
};

struct registration_plan {
	enum registration_step step;
	struct mono again; /* valid when `timed` */
	bool timed;
	const char *why; /* static text */
};

struct registration_plan registration_decide(const struct registration_view *view, struct mono now);

/* 100 ms doubling to 5 s, then three quarters to all of it by jitter. */
int64_t registration_backoff(uint32_t failures, uint32_t jitter);

/* "bcd-gpu.mig-0123abcd.sock" */
void registration_name(char out[REGISTRATION_NAME_SIZE], const char *class_name, uint32_t random);
/* Was this file made by a bcd? */
bool registration_is_name(const char *name);
