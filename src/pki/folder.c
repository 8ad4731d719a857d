#include "pki/folder.h"

#include "sys/durable.h"
#include "sys/random.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE    4096
#define FOLDER_MODE  0700
#define PRIVATE_MODE 0600
#define PUBLIC_MODE  0644

static bool join(char out[PATH_SIZE], const char *folder, const char *name, struct error *error)
{
	if (snprintf(out, PATH_SIZE, "%s/%s", folder, name) < PATH_SIZE)
		return true;
	return error_set(error, ERROR_INVALID_INPUT, "the path '%.60s…/%s' is too long", folder,
			 name);
}

/* --- reading --- */

static bool check_private(const char *path, struct error *error)
{
	struct stat info;

	if (stat(path, &info) != 0)
		return error_os(error, "look at '%s'", path);
	if ((info.st_mode & 077) == 0)
		return true;
	error_set(error, ERROR_FORBIDDEN, "others may read the private file '%s' (mode %04o)", path,
		  (unsigned)(info.st_mode & 07777));
	return error_hint(error, "chmod 600 it, and make new keys if others could have read it.");
}

static bool read_file(const char *folder, const char *name, bool is_private,
		      struct buf *ret_content, struct error *error)
{
	char path[PATH_SIZE];

	return join(path, folder, name, error) && (!is_private || check_private(path, error)) &&
	       durable_read(path, PKI_PEM_MAX, ret_content, error);
}

static bool read_key(const char *folder, const char *name, struct pki_key **ret_key,
		     struct error *error)
{
	struct buf text = {0};
	bool done = read_file(folder, name, true, &text, error);

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
	bool done = read_file(folder, name, true, &text, error);

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

	if (!read_file(folder, name, false, &text, error))
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
	*folder = (struct pki_folder){0};
}

bool pki_folder_load(const char *path, struct pki_folder *ret_folder, struct error *error)
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
	return error_wrap(error, "load the PKI");
}

void pki_folder_pins(const struct pki_folder *folder, struct pki_pins *ret_pins)
{
	pki_key_pin(folder->serving_ca_key, ret_pins->gateway_ca);
	pki_key_pin(folder->join_signing_key, ret_pins->join_signing);
	pki_key_pin(folder->join_encryption_key, ret_pins->join_encryption);
}

/* --- making --- */

static bool write_file(const char *folder, const char *name, const struct buf *content, mode_t mode,
		       struct error *error)
{
	char path[PATH_SIZE];

	return join(path, folder, name, error) &&
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
	       write_file(folder, key_name, &secret, PRIVATE_MODE, error) &&
	       write_file(folder, pem_name, &pem, PUBLIC_MODE, error);
	pki_wipe(&secret);
	return done;
}

static bool write_jwk(const char *folder, const char *name, enum pki_use use, struct error *error)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	struct buf secret = {0};
	bool done = pki_key_generate(&key, error) &&
		    pki_key_to_jwk(key, use, true, &secret, error) &&
		    write_file(folder, name, &secret, PRIVATE_MODE, error);

	pki_wipe(&secret);
	return done;
}

static const char *const file_names[] = {
	"serving-ca.key", "serving-ca.pem",      "node-ca.key",
	"node-ca.pem",    "join-encryption.jwk", "join-signing.jwk",
};

/* What was begun and won't be used; a failure here leaves keys that nobody ever trusted. */
static void discard(const char *folder)
{
	struct error ignored;
	char path[PATH_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(file_names); i++) {
		if (join(path, folder, file_names[i], &ignored))
			(void)unlink(path);
	}
	(void)rmdir(folder);
}

bool pki_folder_init(const char *path, struct wall now, struct error *error)
{
	char draft[PATH_SIZE], id[ID_SIZE];

	random_id(id, "new", now);
	if (snprintf(draft, sizeof draft, "%s.%s", path, id) >= PATH_SIZE)
		return error_set(error, ERROR_INVALID_INPUT, "the PKI folder's path is too long");
	if (durable_stamp(path).exists) {
		error_set(error, ERROR_CONFLICT, "'%s' is there already", path);
		return error_hint(error, "Its keys are what nodes trust: it is never overwritten.");
	}
	if (!durable_make_folder(draft, FOLDER_MODE, error))
		return error_wrap(error, "make the PKI");
	if (write_ca(draft, "serving-ca", "better-compute serving CA", now, error) &&
	    write_ca(draft, "node-ca", "better-compute node CA", now, error) &&
	    write_jwk(draft, "join-encryption.jwk", PKI_USE_ENCRYPTION, error) &&
	    write_jwk(draft, "join-signing.jwk", PKI_USE_SIGNING, error) &&
	    durable_rename(draft, path, error))
		return true;
	discard(draft);
	return error_wrap(error, "make the PKI");
}

/* --- the gateway's own certificate --- */

/* What is on disk serves when it is whole, ours, for this name, and good for a third of its life.
 */
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
	       (info.not_after.ms - now.ms) > (info.not_after.ms - info.not_before.ms) / 3;
}

static bool gateway_make(const struct pki_folder *folder, const char *server_name, struct wall now,
			 struct buf *certificate, struct buf *secret, struct error *error)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	const struct cert_issuer issuer = {folder->serving_ca_pem, folder->serving_ca_key};

	return pki_key_generate(&key, error) && pki_key_to_pem(key, secret, error) &&
	       cert_issue_gateway(&issuer, key, &server_name, 1, now, certificate, error) &&
	       write_file(folder->path, "gateway.key", secret, PRIVATE_MODE, error) &&
	       write_file(folder->path, "gateway.pem", certificate, PUBLIC_MODE, error);
}

bool pki_folder_gateway(const struct pki_folder *folder, const char *server_name, struct wall now,
			struct buf *ret_certificate_pem, struct buf *ret_key_pem,
			struct error *error)
{
	struct buf certificate = {0}, secret = {0};
	bool found = read_file(folder->path, "gateway.key", true, &secret, error) &&
		     read_file(folder->path, "gateway.pem", false, &certificate, error);
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
