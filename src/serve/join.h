/*
 * join: the join service: an envelope in, a signed answer with a certificate out (JOIN-38).
 *
 * Owns      the bound on guesses: JOIN_MAX_REFUSED refusals of one address, then one each
 *           JOIN_REFILL_MS. Joins that succeed cost nothing, nor do refusals of who has the whole of a
 *           token or certificate of ours, which is only no good any more: one machine or pod that
 *           tries on must not shut out the others behind its address.
 * Secrets   the token is seen by the worker alone and is in no log line and no status message.
 * Threads   the loop's; envelopes are opened and answers signed on workers.
 */
#pragma once

#include "base/error.h"
#include "pki/folder.h"
#include "sys/loop.h"

struct join_service;
struct rpc_call;
struct workers;

#define JOIN_MAX_REFUSED   20
#define JOIN_REFILL_MS     3000
#define JOIN_MAX_ADDRESSES 1024 /* remembered; the longest unseen is forgotten */
#define JOIN_RENEW_MS      ((int64_t)7 * 24 * 60 * 60 * 1000) /* after its end (JOIN-41) */
#define JOIN_MAX_CALLS     256                                /* under way at once */

/* `pki` is borrowed. */
struct join_service *join_service_create(struct loop *loop, struct workers *workers,
					 const struct pki_folder *pki);
/* For calls that come from now on; the one before must last until join_service_destroy(). */
void join_service_set_pki(struct join_service *service, const struct pki_folder *pki);
/* What nodes are told: "host:port" and the name in the gateway's certificate; both borrowed. Before
 * the first call. */
void join_service_tell(struct join_service *service, const char *gateway_address,
		       const char *gateway_server_name);
/* After workers_destroy(). Takes NULL. */
void join_service_destroy(struct join_service *service);

/* A call of Join.Join with its one message; it is finished later, or at once when refused. */
void join_service_ask(struct join_service *service, struct rpc_call *call, const uint8_t *data,
		      size_t length);
/* The call is gone: its answer, if still to come, has no taker. */
void join_service_gone(struct join_service *service, const struct rpc_call *call);
