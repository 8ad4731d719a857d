#include "control/sealing.h"
#include "control/lead.h"
#include "pki/keys.h"
#include "sys/log.h"

#include <stdio.h>

#define ABOUT_SIZE          (2 * ID_SIZE)
#define REFERENCE_SCHEME    "secret://"
#define MAX_RESEALED_A_PASS 100

bool sealing_keys(const struct control *control, struct seal_keys **ret_keys, struct error *error)
{
	struct error failed;

	if (!control->secret_key_file) {
		error_set(error, ERROR_INVALID_STATE,
			  "this control plane keeps no secrets: it has no secret key file");
		return error_hint(error, "Make one with 'better-compute secret-key init' and give "
					 "it to serve with --secret-key-file.");
	}
	if (seal_keys_load(control->secret_key_file, ret_keys, &failed))
		return true;
	/* Whoever asked can't mend it. */
	log_failure(LOG_ERROR, "secret-key", &failed, "no secret can be kept or given");
	return error_set(error, ERROR_UNAVAILABLE, "the secret key file can't be used");
}

/* What is sealed says whose it is. */
static void about(char out[ABOUT_SIZE], const char *tenant, const char *id)
{
	snprintf(out, ABOUT_SIZE, "%s/%s", tenant, id);
}

void sealing_reference(char out[SEALING_REFERENCE_SIZE], const char *tenant, const char *id)
{
	snprintf(out, SEALING_REFERENCE_SIZE, REFERENCE_SCHEME "%s/%s", tenant, id);
}

bool sealing_write(struct store_connection *db, const struct seal_keys *keys, const char *tenant,
		   const char *id, const void *value, size_t length, struct error *error)
{
	CLEANUP(buf) struct buf sealed = {0};
	char whose[ABOUT_SIZE];

	about(whose, tenant, id);
	return seal(keys, whose, value, length, &sealed, error) &&
	       store_exec(db, "UPDATE secrets SET sealed_by = $2, sealed = $3 WHERE id = $1",
			  STORE_PARAMS(store_text(id), store_text(seal_keys_id(keys, 0)),
				       store_text(buf_text(&sealed))),
			  error);
}

bool sealing_open(const struct seal_keys *keys, const struct store_rows *rows,
		  struct buf *ret_value, struct error *error)
{
	char whose[ABOUT_SIZE];

	about(whose, store_get_text(rows, 0, 1), store_get_text(rows, 0, 0));
	return seal_open(keys, store_get_text(rows, 0, 3), whose, store_get_text(rows, 0, 7),
			 ret_value, error) ||
	       error_wrap(error, "secret '%s'", store_get_text(rows, 0, 0));
}

/* --- sealing anew, under a newer key --- */

struct reseal_work {
	const struct seal_keys *keys;
	const char *old; /* the key whose secrets are looked for */
	const char *id;  /* one of them */
	struct store_rows rows;
};

static bool find_body(struct store_connection *db, void *argument, struct error *error)
{
	struct reseal_work *work = argument;

	return store_query(db, "SELECT id FROM secrets WHERE sealed_by = $1 ORDER BY id LIMIT $2",
			   STORE_PARAMS(store_text(work->old), store_int(MAX_RESEALED_A_PASS)),
			   &work->rows, error);
}

static bool reseal_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct reseal_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct buf value = {0};
	bool done;

	if (!store_query(db, "SELECT " SEALING_COLUMNS " FROM secrets WHERE id = $1",
			 STORE_PARAMS(store_text(work->id)), &rows, error))
		return false;
	if (rows.count == 0)
		return true;
	done = sealing_open(work->keys, &rows, &value, error) &&
	       sealing_write(db, work->keys, store_get_text(&rows, 0, 1), work->id, value.data,
			     value.length, error);
	pki_wipe(&value);
	return done;
}

static bool reseal_from(struct control *control, const struct seal_keys *keys, const char *old,
			int64_t fence, bool *leads, struct error *error)
{
	struct reseal_work work = {.keys = keys, .old = old};
	bool done = store_run(control->connection, STORE_READ, find_body, &work, error);

	for (size_t i = 0; done && *leads && i < work.rows.count; i++) {
		struct reseal_work one = {.keys = keys, .id = store_get_text(&work.rows, i, 0)};
		struct error failed;

		if (!lead_run(control, fence, reseal_body, &one, leads, &failed))
			log_failure(LOG_ERROR, "secret.reseal", &failed,
				    "it stays under the key it has");
	}
	store_rows_deinit(&work.rows);
	return done;
}

/* What a key sealed that isn't here any more stays so: who asks for it is told. */
bool control_secrets_reseal(struct control *control, struct error *error)
{
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;
	int64_t fence;
	bool leads;

	if (!control->secret_key_file)
		return true;
	if (!sealing_keys(control, &keys, error) || !lead_take(control, &fence, error))
		return false;
	leads = fence != 0;
	for (size_t i = 1; leads && i < seal_keys_count(keys); i++) {
		if (!reseal_from(control, keys, seal_keys_id(keys, i), fence, &leads, error))
			return false;
	}
	return true;
}
