/*
 * stream_job: what a stream has done on a worker: one message, one commit, one answer.
 *
 * For gateway.c alone. A job owns all it touches; the answer comes packed, so that the loop only
 * sends it.
 */
#pragma once

#include "control/control.h"
#include "pki/cert.h"
#include "pki/folder.h"
#include "serve/wire.h"

enum stream_job_kind {
	STREAM_JOB_HELLO,     /* answers Welcome */
	STREAM_JOB_REPORT,    /* answers Ack */
	STREAM_JOB_HEARTBEAT, /* answers nothing */
	STREAM_JOB_SECRET,    /* answers Secret */
	STREAM_JOB_RENEW,     /* answers Certificate */
	STREAM_JOB_SPEC,      /* answers Spec */
	STREAM_JOB_GONE,      /* answers nothing */
};

struct stream_job {
	enum stream_job_kind kind;
	uint64_t stream;
	struct cert_node node;
	int64_t epoch;
	const struct pki_folder *pki;
	Bettercompute__V1__Up *up; /* owned; NULL for SPEC and GONE */
	/* the result */
	bool ok; /* false until it has run */
	struct error error;
	struct buf down; /* a packed Down, or empty */
	struct control_welcome welcome;
	int64_t spec_generation;
	bool look_again;
};

/* Takes `up` over. */
struct stream_job *stream_job_create(enum stream_job_kind kind, uint64_t stream,
				     const struct cert_node *node, int64_t epoch,
				     const struct pki_folder *pki, Bettercompute__V1__Up *up);
void stream_job_destroy(struct stream_job *job);
void stream_job_work(void *job, struct control *control);
