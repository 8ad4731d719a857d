/*
 * wire: the gateway's messages to and from what control takes and gives.
 *
 * Lifetimes  what is made from a message borrows its texts: the message must outlive it.
 * Source     proto/gateway.proto, proto/join.proto
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "control/control.h"
#include "proto/gateway.pb-c.h"
#include "proto/join.pb-c.h"
#include "proto/message.h"

MESSAGE_TYPE(wire_up, Bettercompute__V1__Up, bettercompute__v1__up)
MESSAGE_TYPE(wire_down, Bettercompute__V1__Down, bettercompute__v1__down)
MESSAGE_TYPE(wire_join_request, Bettercompute__V1__JoinRequest, bettercompute__v1__join_request)
MESSAGE_TYPE(wire_join_answer, Bettercompute__V1__JoinAnswer, bettercompute__v1__join_answer)

/* `node` is the certificate's. */
struct control_hello wire_hello(const Bettercompute__V1__Hello *hello, const char *node);
/* Arrays are made in `arena`. A body that this program doesn't know is CONTROL_REPORT_UNKNOWN. */
struct control_report wire_report(const Bettercompute__V1__Report *report, const char *node,
				  int64_t epoch, struct arena *arena);

/* Each appends one packed Down to `out`. */
MUST_CHECK bool wire_pack_welcome(const struct control_welcome *welcome, const char *node,
				  struct buf *out, struct error *error);
MUST_CHECK bool wire_pack_spec(const struct control_spec *spec, struct buf *out,
			       struct error *error);
MUST_CHECK bool wire_pack_ack(int64_t sequence, struct buf *out, struct error *error);
/* The caller wipes `out`, which holds the value. */
MUST_CHECK bool wire_pack_secret(const char *reference, const struct control_secret *secret,
				 struct buf *out, struct error *error);
/* `pem` NULL: refused, `message` says why. */
MUST_CHECK bool wire_pack_certificate(const char *pem, const char *message, struct buf *out,
				      struct error *error);
