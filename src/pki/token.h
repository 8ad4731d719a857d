/*
 * token: bearer secrets that are shown once: join tokens and API keys (JOIN-36).
 *
 * Form "<prefix>_<id>_<43 characters>": the last part is 32 random bytes in base64url. Only the
 * hash is ever stored. The whole secret is random, so one SHA-256 is enough and a lookup by hash
 * leaks nothing by its time.
 */
#pragma once

#include "base/error.h"
#include "base/id.h"

#define TOKEN_PREFIX_JOIN "bcj1"
#define TOKEN_PREFIX_KEY  "bck"
#define TOKEN_SIZE        96
#define TOKEN_HASH_SIZE   65 /* hex, and NUL */

void token_make(char out[TOKEN_SIZE], const char *prefix, const char *id);
/* Exactly this form, with an id of prefix `id_prefix` ("jt", "key"); else false. */
bool token_parse(const char *text, const char *prefix, const char *id_prefix, char ret_id[ID_SIZE]);
void token_hash(const char *text, char out[TOKEN_HASH_SIZE]);
