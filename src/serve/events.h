/*
 * events: who listens to what happens: server-sent events, without a socket (OBS-18, OBS-23).
 *
 * A stream is GET /v1/events asked again and again, each time with its key: one that is revoked
 * ends it. One look a second, or at once when something was changed here, tells which streams have
 * something new; each then gets one page at a time, and none before the last one was sent, so that
 * a slow reader costs one page.
 * Threads   the loop's; pages are made by workers.
 * Tests     tests/unit/serve/listener_test.c
 */
#pragma once

#include "serve/router.h"
#include "sys/loop.h"

#include <sys/types.h>

struct events;
struct event_stream;
struct workers;

#define EVENTS_MAX_STREAMS  256
#define EVENTS_MAX_PER_KEY  16
#define EVENTS_LOOK_MS      1000
#define EVENTS_HEARTBEAT_MS 15000

struct events *events_create(struct loop *loop, const struct router *router);
void events_set_workers(struct events *events, struct workers *workers); /* before any stream */
void events_destroy(struct events *events); /* takes NULL; after workers_destroy() */

/* Something was changed here. */
void events_look(struct events *events);
/* Every stream ends when what it has is read. */
void events_end(struct events *events);

/* Begins with the page that router_events() made of `request`; takes its text over. `wake` is
 * called when event_stream_read() has something again. RATE_LIMITED when there are too many. */
MUST_CHECK bool events_open(struct events *events, const struct request *request,
			    struct router_events *first, loop_fn *wake, void *arg,
			    struct event_stream **ret_stream, struct error *error);
/* Bytes written to `out`; 0: none now, wake() follows; -1: it is over. */
ssize_t event_stream_read(struct event_stream *stream, char *out, size_t size);
void event_stream_close(struct event_stream *stream); /* takes NULL */
