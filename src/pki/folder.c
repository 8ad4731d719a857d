#include "pki/folder_files.h"
#include "pki/rotation.h"

#include "pki/ossl.h"
#include "sys/durable.h"
#include "sys/random.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

bool pki_file_path(char out[PKI_PATH_SIZE], const char *folder, const char *name,
		   struct error *error)
{
	if (snprintf(out, PKI_PATH_SIZE, "%s/%s", folder, name) < PKI_PATH_SIZE)
		return true;
	return error_set(error, ERROR_INVALID_INPUT, "the path '%.60s…/%s' is too long", folder,
			 name);
}

/* --- reading --- */

bool pki_file_read(const char *folder, const char *name, bool is_private, struct buf *ret_content,
		   struct error *error)
{
	char path[PKI_PATH_SIZE];

	return pki_file_path(path, folder, name, error) &&
	       (is_private ? durable_read_private(path, PKI_PEM_MAX, ret_content, error)
			   : durable_read(path, PKI_PEM_MAX, ret_content, error));
}

static bool read_key(const char *folder, const char *name, struct pki_key **ret_key,
		     struct error *error)
{
	struct buf text = {0};
	bool done = pki_file_read(folder, name, true, &text, error);

	if (done && !pki_key_from_pem(buf_text(&text), text.length, ret_key, error))
		done = error_wrap(error, "'%s/%s'", folder, name);
	pki_wipe(&text);
	return done;
}

static bool read_jwk(const char *folder, const char *name, enum pki_use use,
		     struct pki_key **ret_key, struct error *error)
{
	struct buf text = {0};
	struct pki_key *key = NULL;
	bool done = pki_file_read(folder, name, true, &text, error);

	if (done && !pki_key_from_jwk(buf_text(&text), text.length, use, &key, error))
		done = error_wrap(error, "'%s/%s'", folder, name);
	pki_wipe(&text);
	if (done && !pki_key_is_private(key)) {
		pki_key_destroy(key);
		return error_set(error, ERROR_INVALID_CONFIG, "'%s/%s' lacks the private key",
				 folder, name);
	}
	if (done)
		*ret_key = key;
	return done;
}

static bool read_ca(const char *folder, const char *name, const struct pki_key *key, char **ret_pem,
		    struct error *error)
{
	CLEANUP(buf) struct buf text = {0};

	if (!pki_file_read(folder, name, false, &text, error))
		return false;
	if (!cert_check_key(buf_text(&text), key, error))
		return error_wrap(error, "'%s/%s'", folder, name);
	*ret_pem = buf_take_text(&text);
	return true;
}

void pki_folder_deinit(struct pki_folder *folder)
{
	if (!folder)
		return;
	free(folder->path);
	free(folder->serving_ca_pem);
	free(folder->node_ca_pem);
	pki_key_destroy(folder->serving_ca_key);
	pki_key_destroy(folder->node_ca_key);
	pki_key_destroy(folder->join_encryption_key);
	pki_key_destroy(folder->join_signing_key);
	free(folder->serving_cross_pem);
	free(folder->old_node_ca_pem);
	pki_folder_deinit(folder->next);
	free(folder->next);
	*folder = (struct pki_folder){0};
}

static bool load_keys(const char *path, struct pki_folder *ret_folder, struct error *error)
{
	struct pki_folder folder = {.path = mem_strdup(path)};

	if (read_key(path, "serving-ca.key", &folder.serving_ca_key, error) &&
	    read_ca(path, "serving-ca.pem", folder.serving_ca_key, &folder.serving_ca_pem, error) &&
	    read_key(path, "node-ca.key", &folder.node_ca_key, error) &&
	    read_ca(path, "node-ca.pem", folder.node_ca_key, &folder.node_ca_pem, error) &&
	    read_jwk(path, "join-encryption.jwk", PKI_USE_ENCRYPTION, &folder.join_encryption_key,
		     error) &&
	    read_jwk(path, "join-signing.jwk", PKI_USE_SIGNING, &folder.join_signing_key, error)) {
		*ret_folder = folder;
		return true;
	}
	pki_folder_deinit(&folder);
	return false;
}

/* The keys that are to come, and this serving CA signed by theirs. */
static bool load_next(struct pki_folder *folder, struct error *error)
{
	CLEANUP(buf) struct buf cross = {0};
	char path[PKI_PATH_SIZE];

	if (!pki_file_path(path, folder->path, PKI_NEXT, error))
		return false;
	if (durable_absent(path))
		return true;
	folder->next = mem_alloc(sizeof *folder->next);
	if (!load_keys(path, folder->next, error) ||
	    !pki_file_read(path, PKI_SERVING_CROSS, false, &cross, error)) {
		if (error->code == ERROR_NOT_FOUND) { /* the folder itself is there */
			error->code = ERROR_INVALID_CONFIG;
			error_hint(error, "Copy it whole from where the change was begun.");
		}
		return error_wrap(error, "the next keys");
	}
	folder->serving_cross_pem = buf_take_text(&cross);
	return true;
}

/* The node CA before this one, as long as its certificates may be about. */
static bool load_old(struct pki_folder *folder, struct error *error)
{
	CLEANUP(buf) struct buf old = {0};
	CLEANUP(tree) json_t *state = NULL;
	CLEANUP(buf) struct buf text = {0};

	if (!pki_file_read(folder->path, PKI_OLD_NODE_CA, false, &old, error))
		return error->code == ERROR_NOT_FOUND;
	if (!pki_file_read(folder->path, PKI_ROTATION, false, &text, error) ||
	    !ossl_json_read(buf_text(&text), text.length, PKI_JWK_MAX, PKI_ROTATION, &state, error))
		return false;
	folder->old_node_ca_pem = buf_take_text(&old);
	folder->finished.ms = json_integer_value(json_object_get(state, "finishedMs"));
	return true;
}

bool pki_folder_load(const char *path, struct pki_folder *ret_folder, struct error *error)
{
	struct pki_folder folder = {0};

	if (load_keys(path, &folder, error) && load_next(&folder, error) &&
	    load_old(&folder, error)) {
		*ret_folder = folder;
		return true;
	}
	pki_folder_deinit(&folder);
	return error_wrap(error, "load the PKI");
}

void pki_folder_pins(const struct pki_folder *folder, struct pki_pins *ret_pins)
{
	pki_key_pin(folder->serving_ca_key, ret_pins->gateway_ca);
	pki_key_pin(folder->join_signing_key, ret_pins->join_signing);
	pki_key_pin(folder->join_encryption_key, ret_pins->join_encryption);
}

/* --- making --- */

bool pki_file_write(const char *folder, const char *name, const struct buf *content, mode_t mode,
		    struct error *error)
{
	char path[PKI_PATH_SIZE];

	return pki_file_path(path, folder, name, error) &&
	       durable_replace(path, content->data, content->length, mode, error);
}

static bool write_ca(const char *folder, const char *stem, const char *common_name, struct wall now,
		     struct error *error)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	CLEANUP(buf) struct buf pem = {0};
	struct buf secret = {0};
	char key_name[32], pem_name[32];
	bool done;

	snprintf(key_name, sizeof key_name, "%s.key", stem);
	snprintf(pem_name, sizeof pem_name, "%s.pem", stem);
	done = pki_key_generate(&key, error) && pki_key_to_pem(key, &secret, error) &&
	       cert_make_ca(key, common_name, now, &pem, error) &&
	       pki_file_write(folder, key_name, &secret, PKI_PRIVATE_MODE, error) &&
	       pki_file_write(folder, pem_name, &pem, PKI_PUBLIC_MODE, error);
	pki_wipe(&secret);
	return done;
}

static bool write_jwk(const char *folder, const char *name, enum pki_use use, struct error *error)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	struct buf secret = {0};
	bool done = pki_key_generate(&key, error) &&
		    pki_key_to_jwk(key, use, true, &secret, error) &&
		    pki_file_write(folder, name, &secret, PKI_PRIVATE_MODE, error);

	pki_wipe(&secret);
	return done;
}

static const char *const file_names[] = {
	"serving-ca.key",      "serving-ca.pem",   "node-ca.key", "node-ca.pem",
	"join-encryption.jwk", "join-signing.jwk", "gateway.key", "gateway.pem",
	PKI_SERVING_CROSS,     PKI_OLD_NODE_CA,    PKI_ROTATION,
};

/* What was begun and won't be used, or is over; a failure here leaves keys that nobody trusts. */
void pki_files_discard(const char *folder)
{
	struct error ignored;
	char path[PKI_PATH_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(file_names); i++) {
		if (pki_file_path(path, folder, file_names[i], &ignored))
			(void)unlink(path);
	}
	if (pki_file_path(path, folder, file_names[0], &ignored))
		durable_tidy(path, (struct wall){INT64_MAX}); /* also what was written just now */
	(void)rmdir(folder);
}

void pki_folder_discard(const char *folder)
{
	struct error ignored;
	char next[PKI_PATH_SIZE];

	if (pki_file_path(next, folder, PKI_NEXT, &ignored))
		pki_files_discard(next);
	pki_files_discard(folder);
}

bool pki_files_make(const char *folder, const char *suffix, struct wall now, struct error *error)
{
	char serving[64], node[64];

	snprintf(serving, sizeof serving, "better-compute serving CA%s", suffix);
	snprintf(node, sizeof node, "better-compute node CA%s", suffix);
	return write_ca(folder, "serving-ca", serving, now, error) &&
	       write_ca(folder, "node-ca", node, now, error) &&
	       write_jwk(folder, "join-encryption.jwk", PKI_USE_ENCRYPTION, error) &&
	       write_jwk(folder, "join-signing.jwk", PKI_USE_SIGNING, error);
}

bool pki_folder_init(const char *path, struct wall now, struct error *error)
{
	char draft[PKI_PATH_SIZE], id[ID_SIZE];
	struct durable_lock *lock = NULL;
	bool done;

	random_id(id, PKI_DRAFT, now);
	if (snprintf(draft, sizeof draft, "%s.%s", path, id) >= PKI_PATH_SIZE)
		return error_set(error, ERROR_INVALID_INPUT, "the PKI folder's path is too long");
	if (durable_stamp(path).exists) {
		error_set(error, ERROR_CONFLICT, "'%s' is there already", path);
		return error_hint(error, "Its keys are what nodes trust: it is never overwritten.");
	}
	if (!durable_make_folder(draft, PKI_FOLDER_MODE, error))
		return error_wrap(error, "make the PKI");
	done = durable_lock_folder(draft, &lock, error) && pki_files_make(draft, "", now, error) &&
	       durable_rename(draft, path, error);
	if (!done)
		pki_files_discard(draft);
	durable_lock_destroy(lock);
	return done || error_wrap(error, "make the PKI");
}

/* --- the gateway's own certificate --- */

bool pki_gateway_due(struct wall not_before, struct wall not_after, struct wall now)
{
	return not_after.ms - now.ms <= (not_after.ms - not_before.ms) / 3;
}

/* What is on disk serves when it is whole, ours, for this name, and not due yet. */
static bool gateway_usable(const struct pki_folder *folder, const char *server_name,
			   struct wall now, const struct buf *certificate, const struct buf *secret)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	struct cert_info info;
	struct error ignored;
	const char *pem = buf_text(certificate);

	return pki_key_from_pem(buf_text(secret), secret->length, &key, &ignored) &&
	       cert_check_key(pem, key, &ignored) &&
	       cert_verify(pem, folder->serving_ca_pem, now, &ignored) &&
	       cert_has_dns_name(pem, server_name) &&
	       cert_read(pem, certificate->length, &info, &ignored) &&
	       !pki_gateway_due(info.not_before, info.not_after, now);
}

static bool gateway_make(const struct pki_folder *folder, const char *server_name, struct wall now,
			 struct buf *certificate, struct buf *secret, struct error *error)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	const struct cert_issuer issuer = {folder->serving_ca_pem, folder->serving_ca_key};

	return pki_key_generate(&key, error) && pki_key_to_pem(key, secret, error) &&
	       cert_issue_gateway(&issuer, key, &server_name, 1, now, certificate, error) &&
	       pki_file_write(folder->path, "gateway.key", secret, PKI_PRIVATE_MODE, error) &&
	       pki_file_write(folder->path, "gateway.pem", certificate, PKI_PUBLIC_MODE, error);
}

bool pki_folder_gateway(const struct pki_folder *folder, const char *server_name, struct wall now,
			struct buf *ret_certificate_pem, struct buf *ret_key_pem,
			struct error *error)
{
	struct buf certificate = {0}, secret = {0};
	bool found = pki_file_read(folder->path, "gateway.key", true, &secret, error) &&
		     pki_file_read(folder->path, "gateway.pem", false, &certificate, error);
	bool done = found || error->code == ERROR_NOT_FOUND;

	if (done && !(found && gateway_usable(folder, server_name, now, &certificate, &secret))) {
		pki_wipe(&secret);
		buf_clear(&certificate);
		done = gateway_make(folder, server_name, now, &certificate, &secret, error);
	}
	if (!done) {
		pki_wipe(&secret);
		buf_deinit(&certificate);
		return error_wrap(error, "the gateway's certificate");
	}
	*ret_certificate_pem = certificate;
	*ret_key_pem = secret;
	return true;
}
