/*
 * apitls: the API's certificate and key, taken up anew when their files change.
 *
 * Owns      the pair that new connections are greeted with, and those before it for as long as a
 *           connection was greeted with them. A new pair that doesn't fit together, can't be read or
 *           is out of date is refused with a line in the log, and the one before goes on; the files
 *           are looked at again when they change.
 * Threads   the loop's; files are read on its workers.
 * Tests     tests/unit/serve/apitls_test.c
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

#include <gnutls/gnutls.h>

struct apitls;
struct apitls_pair;

#define APITLS_MAX_PEM ((size_t)64 << 10)
#define APITLS_LOOK_MS 2000

/* Blocks: at start-up. */
MUST_CHECK bool apitls_create(struct loop *loop, const char *certificate_file, const char *key_file,
			      struct apitls **ret_tls, struct error *error);
/* Looks now, also at files that look the same. */
void apitls_reload(struct apitls *tls);
void apitls_destroy(struct apitls *tls); /* takes NULL; when every pair was given back */

/* Greets with the newest pair, which is there until it is given back. */
struct apitls_pair *apitls_greet(struct apitls *tls, gnutls_session_t session);
void apitls_give_back(struct apitls_pair *pair); /* takes NULL */
