/*
 * call: one gRPC call within a session; either side's.
 *
 * Nothing goes out before session_send(), so a call's metadata may be added in any order within a
 * turn. A call that has ended takes all of these and does nothing. Lifetime   until call_destroy(),
 * which is the part of who takes its SESSION_END event. Pure.
 */
#pragma once

#include "rpc/core/metadata.h"
#include "rpc/core/session.h"

void call_send(struct call *call, const void *message, size_t length);
void call_finish(struct call *call, enum rpc_code code, const char *message); /* server */
void call_half_close(struct call *call);                                      /* client */
void call_cancel(struct call *call); /* ends CANCELLED, and the peer is told */

size_t call_queued(const struct call *call); /* bytes sent but not taken by session_send() */

/* For the headers, or the trailers (server). Too late once they went out: it is dropped. */
void call_add_metadata(struct call *call, bool trailing, const char *name, const void *value,
		       size_t length);
/* What the peer sent: a server sees the request's, a client the answer's headers and trailers. */
const struct metadata *call_metadata(const struct call *call);

const struct session_method *call_method(const struct call *call); /* server */

void call_set_owner(struct call *call, void *owner);
void *call_owner(const struct call *call);

/* After SESSION_END: what it has come to. The text is never NULL. */
enum rpc_code call_code(const struct call *call);
const char *call_text(const struct call *call);

void call_destroy(struct call *call);
