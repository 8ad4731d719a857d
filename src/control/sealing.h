/*
 * sealing: the values of secrets, which stand in the database under this control plane's keys. Private to this
 * room.
 *
 * Owns      the key file, and the columns "sealed" and "sealed_by"; a pass of the tick seals anew what an
 *           older key sealed (control_secrets_reseal()).
 * Bound     what is sealed says whose it is: copied to another secret's row it can't be opened.
 */
#pragma once

#include "control/work.h"
#include "pki/seal.h"

/* Of a row of secrets, as sealing_open() takes it. */
#define SEALING_COLUMNS "id, tenant, name, sealed_by, version, created_ms, changed_ms, sealed"

#define SEALING_REFERENCE_SIZE (2 * ID_SIZE + 16)

/* Read anew each time: it is rare, and a key that was added counts at once. INVALID_STATE when there is no such
 * file, UNAVAILABLE, and the log says why, when it can't be used. */
MUST_CHECK bool sealing_keys(const struct control *control, struct seal_keys **ret_keys,
			     struct error *error);

/* "secret://<tenant>/<id>" */
void sealing_reference(char out[SEALING_REFERENCE_SIZE], const char *tenant, const char *id);

/* Seals the value into its row, as a new version of it. */
MUST_CHECK bool sealing_write(struct store_connection *db, const struct seal_keys *keys,
			      const char *tenant, const char *id, const void *value, size_t length,
			      struct error *error);

/* Of the first row, of SEALING_COLUMNS. The caller's, to wipe (pki_wipe()). */
MUST_CHECK bool sealing_open(const struct seal_keys *keys, const struct store_rows *rows,
			     struct buf *ret_value, struct error *error);
