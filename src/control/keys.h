/*
 * keys: API keys. Private to this room.
 *
 * Owns      the rows of api_keys: a key's text is shown once, only hashes are kept, and there is
 *           always an operator's key that opens.
 */
#pragma once

#include "control/work.h"
#include "pki/token.h"

/* Makes a key of a role; `ret_text` is what its holder gets, once. */
MUST_CHECK bool key_insert(struct store_connection *db, const char *tenant, const char *role,
			   const char *name, char ret_id[ID_SIZE], char ret_text[TOKEN_SIZE],
			   struct error *error);
