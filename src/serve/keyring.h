/*
 * keyring: the PKI folder as serve uses it, read anew when it changes.
 *
 * Owns      the gateway's certificate, which is made when it is absent or near its end, also while
 *           serve runs; noticing a change of keys (pki/rotation.h), and the day when the node CA
 *           before it counts no more. Connections that are there go on under what they were made
 *           with.
 * Keeps     what was read before for KEYRING_KEEP_MS: jobs on workers may still look at it.
 * Threads   the loop's; folders are read on its workers.
 */
#pragma once

#include "base/error.h"
#include "pki/rotation.h"
#include "sys/loop.h"

struct keyring;
struct rpc_tls;

#define KEYRING_LOOK_MS 2000
#define KEYRING_KEEP_MS ((int64_t)60 * 60 * 1000) /* no job lives that long */

/* Blocks: at start-up. Removes what a change of keys that was killed left. */
MUST_CHECK bool keyring_create(struct loop *loop, const char *path, const char *gateway_name,
			       struct keyring **ret_keyring, struct error *error);
/* Looks each `look_ms`; `on_change` is called when there is something new. */
void keyring_watch(struct keyring *keyring, int64_t look_ms, loop_fn *on_change, void *arg);
/* After workers_destroy(). Takes NULL. */
void keyring_destroy(struct keyring *keyring);

/* As of now; good for KEYRING_KEEP_MS after on_change. */
const struct pki_folder *keyring_pki(const struct keyring *keyring);
struct rpc_tls *keyring_tls(const struct keyring *keyring);
struct wall keyring_gateway_end(const struct keyring *keyring); /* of the certificate */
size_t keyring_kept(const struct keyring *keyring);             /* readings, the newest included */
