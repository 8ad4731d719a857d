/*
 * seal: secrets at rest, AES-256-GCM under a key of a file that only its owner may read.
 *
 * File      {"version":1,"keys":[{"id":"sek_…","key":"…"}]}, mode 0600. The first key seals; the
 *           others only open what was sealed before, until everything has been sealed anew.
 * Sealed    base64url of nonce, ciphertext and tag. `about` (whose secret this is) is bound to it:
 *           one that was copied to another row doesn't open there.
 * Secrets   keys and values are wiped, and appear in no message.
 * Threads   a struct seal_keys never changes: any number may use it.
 * Fuzzed    fuzz/seal_fuzz.c
 * Source    NIST SP 800-38D; a random 96-bit nonce each, so one key seals at most 2^32 values.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"

#define SEAL_MAX_KEYS  8
#define SEAL_FILE_MAX  ((size_t)4 << 10)
#define SEAL_MAX_VALUE ((size_t)64 << 10)

struct seal_keys;

/* FORBIDDEN when others may read the file, INVALID_CONFIG when it isn't such a file. */
MUST_CHECK bool seal_keys_load(const char *path, struct seal_keys **ret_keys, struct error *error);
/* The same from the file's text; `name` is told when it is wrong. */
MUST_CHECK bool seal_keys_parse(const char *text, size_t length, const char *name,
				struct seal_keys **ret_keys, struct error *error);
void seal_keys_destroy(struct seal_keys *keys); /* takes NULL */
DEFINE_CLEANUP(seal_keys, struct seal_keys *, seal_keys_destroy)

size_t seal_keys_count(const struct seal_keys *keys);
const char *seal_keys_id(const struct seal_keys *keys, size_t i); /* 0: the one that seals */

/* A new file with one key; CONFLICT when there is one. Then: one more key, which seals from now on;
 * and only the one that seals. */
MUST_CHECK bool seal_file_init(const char *path, struct wall now, struct error *error);
MUST_CHECK bool seal_file_rotate(const char *path, struct wall now, struct error *error);
MUST_CHECK bool seal_file_drop_old(const char *path, struct error *error);

/* Under the first key; text is added to `ret_sealed`. */
MUST_CHECK bool seal(const struct seal_keys *keys, const char *about, const void *value,
		     size_t length, struct buf *ret_sealed, struct error *error);
/* NOT_FOUND when the key isn't here; INTERNAL when what is stored isn't what was sealed. The value
 * is added to `ret_value`: pki_wipe() it. */
MUST_CHECK bool seal_open(const struct seal_keys *keys, const char *key_id, const char *about,
			  const char *sealed, struct buf *ret_value, struct error *error);
