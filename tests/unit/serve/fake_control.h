/*
 * fake_control: control.h with nothing behind it, so that a test decides what each call answers.
 *
 * It stands before the real one at link time. A test sets what is to come back and reads what was
 * asked; everything happens on the worker that asks, and workers_create(…, 0, …) makes that the
 * loop.
 */
#pragma once

#include "control/control.h"

#define FAKE_KEY_ID "key_01jd4z5x9f0123456789abcdef"
#define FAKE_KEY    "bck_" FAKE_KEY_ID "_secret"

struct fake {
	/* What comes back. A code of ERROR_NONE is success. */
	enum error_code call_code;
	const char *call_field;
	enum error_code hello_code, report_code, spec_code, heartbeat_code, ping_code, poll_code;
	int64_t epoch;       /* of the next hello; grows by one each */
	int64_t generation;  /* of the Spec */
	int64_t outbox_last; /* 0: as asked */
	int64_t event_end;   /* the last event there is */
	bool look_again;
	bool other_leads; /* another replica does */
	int64_t ping_takes_ms;
	enum control_trust trust;
	char machine_key[64];
	enum error_code join_code;
	bool join_known; /* the token is one of ours */
	const char *join_message;
	const char *secret; /* NULL: refused */
	/* What was asked. */
	int calls, reports, gones, heartbeats, rounds, beats, leads, ticks, polls;
	int resigned_after; /* so many ticks; 0: it did not */
	int64_t last_sequence, gone_epoch, last_after;
	char last_node[ID_SIZE];
	int64_t last_opened_ms; /* of a hello */
	enum control_report_kind last_kind;
	char last_token[128];
	char last_allocation[ID_SIZE];
	bool tenants_certificate;
	char *last_call; /* JSON: {call, id, body, limit, …} */
};

extern struct fake fake;
void fake_reset(void);
