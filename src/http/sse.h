/*
 * sse: server-sent events, out of bytes as they come.
 *
 * Owns      the form of `text/event-stream`: lines that end in \n, \r\n or \r, fields, comments, the
 *           last event's id. What `retry` says is left to whoever connects again.
 * Limits    an event of at most SSE_MAX_EVENT bytes, an id of at most SSE_ID_SIZE - 1.
 * Source    HTML Living Standard, 9.2 "Server-sent events".
 * Pure.
 * Tests     tests/unit/http/sse_test.c, fuzz/sse_fuzz.c
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#define SSE_MAX_EVENT ((size_t)1 << 20)
#define SSE_ID_SIZE   64

/* `{0}` is a stream's beginning. */
struct sse {
	struct buf line, data;
	char id[SSE_ID_SIZE]; /* of the last event that had one: where to go on */
	bool begun;           /* a byte order mark may stand before the first line alone */
	bool after_return;    /* a newline now belongs to the \r before it */
};
void sse_deinit(struct sse *sse);

static inline void sse_cleanup(struct sse *sse)
{
	sse_deinit(sse);
}

/* One event's data, its lines joined by newlines; `sse->id` is its id. false stops the reading. */
typedef bool sse_fn(void *arg, const char *data, size_t length, struct error *error);

/* The next bytes; `on_event` is called for each event that they complete. RESOURCES_EXHAUSTED for
 * one that is too large. */
MUST_CHECK bool sse_read(struct sse *sse, const char *bytes, size_t length, sse_fn *on_event,
			 void *arg, struct error *error);
