#include "pki/rotation.h"

#include "pki/folder_files.h"
#include "sys/durable.h"
#include "sys/random.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_ENTRIES 10000 /* beside a PKI folder */

static const char *const stages[] = {
	[PKI_STEADY] = "steady",
	[PKI_CHANGING] = "changing",
	[PKI_RENEWING] = "renewing",
};

const char *pki_stage_name(enum pki_stage stage)
{
	return stages[stage];
}

bool pki_folder_has_old(const struct pki_folder *folder, struct wall now)
{
	return folder->old_node_ca_pem && now.ms < folder->finished.ms + PKI_OLD_NODE_MS;
}

enum pki_stage pki_folder_stage(const struct pki_folder *folder, struct wall now)
{
	if (folder->next)
		return PKI_CHANGING;
	return pki_folder_has_old(folder, now) ? PKI_RENEWING : PKI_STEADY;
}

/* --- begin --- */

static bool write_cross(const struct pki_folder *current, const char *draft, struct wall now,
			struct error *error)
{
	CLEANUP(buf) struct buf cross = {0};
	struct pki_folder made = {0};
	bool done;

	if (!pki_folder_load(draft, &made, error))
		return false;
	done = cert_cross_sign(&(struct cert_issuer){made.serving_ca_pem, made.serving_ca_key},
			       current->serving_ca_pem, now, &cross, error) &&
	       pki_file_write(draft, PKI_SERVING_CROSS, &cross, PKI_PUBLIC_MODE, error);
	pki_folder_deinit(&made);
	return done;
}

static bool check_begin(const struct pki_folder *folder, bool force, struct wall now,
			struct error *error)
{
	if (folder->next) {
		error_set(error, ERROR_INVALID_STATE, "a change of keys is under way already");
		return error_hint(error, "Finish it: better-compute pki rotate finish; or forget "
					 "the next keys: better-compute pki rotate cancel");
	}
	if (force || !pki_folder_has_old(folder, now))
		return true;
	error_set(error, ERROR_INVALID_STATE,
		  "nodes may still have certificates of the node CA before");
	return error_hint(error, "Wait until 37 days after the last change, by when all have "
				 "renewed; --force begins anyway, and its finish ends theirs.");
}

bool pki_rotate_begin(const char *path, bool force, struct wall now, struct error *error)
{
	char next[PKI_PATH_SIZE], draft[PKI_PATH_SIZE], id[ID_SIZE], suffix[16];
	struct durable_lock *lock = NULL;
	struct pki_folder folder = {0};
	bool done;

	pki_folder_tidy(path, now);
	random_id(id, PKI_DRAFT, now);
	/* A name of its own, so that nobody takes one authority for the other. */
	snprintf(suffix, sizeof suffix, " %s", id + strlen(id) - 8);
	if (!pki_file_path(next, path, PKI_NEXT, error) || !pki_file_path(draft, path, id, error) ||
	    !pki_folder_load(path, &folder, error))
		return false;
	done = check_begin(&folder, force, now, error);
	if (done) {
		done = durable_make_folder(draft, PKI_FOLDER_MODE, error) &&
		       durable_lock_folder(draft, &lock, error) &&
		       pki_files_make(draft, suffix, now, error) &&
		       write_cross(&folder, draft, now, error) &&
		       durable_rename(draft, next, error);
		if (!done)
			pki_files_discard(draft);
	}
	durable_lock_destroy(lock);
	pki_folder_deinit(&folder);
	return done || error_wrap(error, "begin the change of keys");
}

/* What becomes of the next keys is for one process to say: the folder they are in is locked. */
static bool lock_next(const char *path, struct durable_lock **ret_lock, struct error *error)
{
	char next[PKI_PATH_SIZE];

	return pki_file_path(next, path, PKI_NEXT, error) &&
	       durable_lock_folder(next, ret_lock, error);
}

/* --- finish --- */

static bool copy_next(const char *path, const char *draft, struct error *error)
{
	static const struct {
		const char *name;
		bool is_private;
	} files[] = {
		{"serving-ca.key", true}, {"serving-ca.pem", false},     {"node-ca.key", true},
		{"node-ca.pem", false},   {"join-encryption.jwk", true}, {"join-signing.jwk", true},
	};
	char next[PKI_PATH_SIZE];

	if (!pki_file_path(next, path, PKI_NEXT, error))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct buf content = {0};
		bool done =
			pki_file_read(next, files[i].name, files[i].is_private, &content, error) &&
			pki_file_write(draft, files[i].name, &content,
				       files[i].is_private ? PKI_PRIVATE_MODE : PKI_PUBLIC_MODE,
				       error);

		pki_wipe(&content);
		if (!done)
			return false;
	}
	return true;
}

static bool write_old(const struct pki_folder *folder, const char *draft, struct wall now,
		      struct error *error)
{
	CLEANUP(buf) struct buf old = {0};
	CLEANUP(buf) struct buf state = {0};

	buf_add_text(&old, folder->node_ca_pem);
	buf_printf(&state, "{\"version\":1,\"finishedMs\":%" PRId64 "}\n", now.ms);
	return pki_file_write(draft, PKI_OLD_NODE_CA, &old, PKI_PUBLIC_MODE, error) &&
	       pki_file_write(draft, PKI_ROTATION, &state, PKI_PUBLIC_MODE, error);
}

/* The whole folder is made anew beside, and takes the old one's place at one moment. */
bool pki_rotate_finish(const char *path, struct wall now, struct error *error)
{
	char draft[PKI_PATH_SIZE], id[ID_SIZE];
	struct durable_lock *lock = NULL, *next_lock = NULL;
	struct pki_folder folder = {0}, made = {0};
	bool done;

	pki_folder_tidy(path, now);
	random_id(id, PKI_DRAFT, now);
	if (snprintf(draft, sizeof draft, "%s.%s", path, id) >= PKI_PATH_SIZE)
		return error_set(error, ERROR_INVALID_INPUT, "the PKI folder's path is too long");
	if (!pki_folder_load(path, &folder, error))
		return false;
	if (!folder.next) {
		pki_folder_deinit(&folder);
		error_set(error, ERROR_INVALID_STATE, "no change of keys is under way");
		return error_hint(error, "Begin one: better-compute pki rotate begin");
	}
	done = lock_next(path, &next_lock, error) &&
	       durable_make_folder(draft, PKI_FOLDER_MODE, error) &&
	       durable_lock_folder(draft, &lock, error) && copy_next(path, draft, error) &&
	       write_old(&folder, draft, now, error) && pki_folder_load(draft, &made, error) &&
	       durable_exchange(draft, path, error);
	pki_folder_discard(draft); /* the old one when it is done, else the new one */
	durable_lock_destroy(lock);
	durable_lock_destroy(next_lock);
	pki_folder_deinit(&made);
	pki_folder_deinit(&folder);
	return done || error_wrap(error, "finish the change of keys");
}

/* --- cancel --- */

/* Also of next keys that are incomplete. They go at one moment, then for good. */
bool pki_rotate_cancel(const char *path, struct wall now, struct error *error)
{
	char next[PKI_PATH_SIZE], draft[PKI_PATH_SIZE], id[ID_SIZE];
	struct durable_lock *lock = NULL;
	bool done;

	pki_folder_tidy(path, now);
	random_id(id, PKI_DRAFT, now);
	if (!pki_file_path(next, path, PKI_NEXT, error) || !pki_file_path(draft, path, id, error))
		return false;
	if (durable_absent(next))
		return error_set(error, ERROR_INVALID_STATE, "no change of keys is under way");
	done = lock_next(path, &lock, error) && durable_rename(next, draft, error);
	if (done)
		pki_folder_discard(draft);
	durable_lock_destroy(lock);
	return done || error_wrap(error, "cancel the change of keys");
}

/* --- what was left --- */

/* One that nobody is at. */
static void discard_left(const char *folder)
{
	struct durable_lock *lock;
	struct error ignored;

	if (!durable_lock_folder(folder, &lock, &ignored))
		return;
	pki_folder_discard(folder);
	durable_lock_destroy(lock);
}

/* Entries "PREFIXnew_…" of `folder`. */
static void discard_drafts(const char *folder, const char *prefix)
{
	struct durable_names names = {0};
	struct error ignored;

	if (!durable_list(folder, MAX_ENTRIES, &names, &ignored))
		return;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.names[i];
		char path[PKI_PATH_SIZE];

		if (str_starts(name, prefix) && id_valid(name + strlen(prefix), PKI_DRAFT) &&
		    pki_file_path(path, folder, name, &ignored))
			discard_left(path);
	}
	durable_names_deinit(&names);
}

void pki_folder_tidy(const char *path, struct wall now)
{
	const char *slash = strrchr(path, '/');
	char folder[PKI_PATH_SIZE], file[PKI_PATH_SIZE], prefix[256];
	struct error ignored;

	discard_drafts(path, "");
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1,
		 slash ? path : ".");
	snprintf(prefix, sizeof prefix, "%s.", slash ? slash + 1 : path);
	discard_drafts(slash == path ? "/" : folder, prefix);
	if (pki_file_path(file, path, PKI_ROTATION, &ignored))
		durable_tidy(file, now);
	if (pki_file_path(file, path, PKI_NEXT "/" PKI_ROTATION, &ignored))
		durable_tidy(file, now);
}

/* --- what both sides are shown --- */

static void add_pin(char out[PKI_PINS_SIZE], const char *current, const char *next)
{
	snprintf(out, PKI_PINS_SIZE, "%s%s%s", current, next ? "," : "", next ? next : "");
}

void pki_folder_pin_texts(const struct pki_folder *folder, struct pki_pin_texts *ret_texts)
{
	struct pki_pins current, next;
	bool two = folder->next != NULL;

	pki_folder_pins(folder, &current);
	if (two)
		pki_folder_pins(folder->next, &next);
	add_pin(ret_texts->gateway_ca, current.gateway_ca, two ? next.gateway_ca : NULL);
	add_pin(ret_texts->join_signing, current.join_signing, two ? next.join_signing : NULL);
	add_pin(ret_texts->join_encryption, current.join_encryption,
		two ? next.join_encryption : NULL);
}

void pki_folder_gateway_chain(const struct pki_folder *folder, const char *certificate_pem,
			      struct buf *ret_pem)
{
	static const char end[] = "-----END CERTIFICATE-----\n";
	const char *leaf_end = strstr(certificate_pem, end);

	if (!folder->next || !leaf_end) {
		buf_add_text(ret_pem, certificate_pem);
		return;
	}
	/* Who pins the current CA finds its key in the cross certificate, who pins the next one
	 * finds that itself: each ends the other's way to the leaf. */
	buf_add(ret_pem, certificate_pem, (size_t)(leaf_end - certificate_pem) + strlen(end));
	buf_add_text(ret_pem, folder->serving_cross_pem);
	buf_add_text(ret_pem, folder->next->serving_ca_pem);
}

void pki_folder_node_cas(const struct pki_folder *folder, struct wall now, struct buf *ret_pem)
{
	buf_add_text(ret_pem, folder->node_ca_pem);
	if (folder->next)
		buf_add_text(ret_pem, folder->next->node_ca_pem);
	if (pki_folder_has_old(folder, now))
		buf_add_text(ret_pem, folder->old_node_ca_pem);
}

bool pki_folder_verify_node(const struct pki_folder *folder, const char *pem, struct wall at,
			    struct wall now, struct error *error)
{
	struct error ignored; /* the current CA's is told */

	return cert_verify(pem, folder->node_ca_pem, at, error) ||
	       (folder->next && cert_verify(pem, folder->next->node_ca_pem, at, &ignored)) ||
	       (pki_folder_has_old(folder, now) &&
		cert_verify(pem, folder->old_node_ca_pem, at, &ignored));
}
