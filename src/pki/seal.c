#include "pki/seal.h"

#include "pki/folder_files.h"
#include "pki/ossl.h"
#include "sys/durable.h"
#include "sys/random.h"

#include <jose/b64.h>
#include <openssl/crypto.h>

#define VERSION     1
#define KEY_BYTES   32
#define KEY_LENGTH  43 /* of its base64url */
#define NONCE_BYTES 12
#define TAG_BYTES   16

DEFINE_CLEANUP(cipher_ctx, EVP_CIPHER_CTX *, EVP_CIPHER_CTX_free)

struct seal_key {
	char id[ID_SIZE];
	uint8_t bytes[KEY_BYTES];
};

struct seal_keys {
	size_t count;
	struct seal_key items[SEAL_MAX_KEYS];
};

/* --- the file --- */

void seal_keys_destroy(struct seal_keys *keys)
{
	if (!keys)
		return;
	OPENSSL_cleanse(keys, sizeof *keys);
	free(keys);
}

static bool read_key(const json_t *json, struct seal_key *key)
{
	const char *id = json_string_value(json_object_get(json, "id"));
	const char *text = json_string_value(json_object_get(json, "key"));

	if (!id || !text || json_object_size(json) != 2 || !id_valid(id, "sek") ||
	    strlen(text) != KEY_LENGTH ||
	    jose_b64_dec_buf(text, KEY_LENGTH, key->bytes, KEY_BYTES) != KEY_BYTES)
		return false;
	str_copy(key->id, ID_SIZE, id);
	return true;
}

static bool read_keys(const json_t *file, struct seal_keys *keys)
{
	const json_t *list = json_object_get(file, "keys");
	size_t count = json_array_size(list);

	if (json_object_size(file) != 2 || count == 0 || count > SEAL_MAX_KEYS ||
	    json_integer_value(json_object_get(file, "version")) != VERSION)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!read_key(json_array_get(list, i), &keys->items[i]))
			return false;
		for (size_t j = 0; j < i; j++) {
			if (str_equal(keys->items[j].id, keys->items[i].id))
				return false;
		}
	}
	keys->count = count;
	return true;
}

bool seal_keys_parse(const char *text, size_t length, const char *name, struct seal_keys **ret_keys,
		     struct error *error)
{
	CLEANUP(seal_keys) struct seal_keys *keys = mem_alloc(sizeof *keys);
	CLEANUP(tree) json_t *file = NULL;

	if (!ossl_json_read(text, length, SEAL_FILE_MAX, name, &file, error))
		return false;
	if (!read_keys(file, keys))
		return error_set(error, ERROR_INVALID_CONFIG, "'%s' is no secret key file", name);
	*ret_keys = TAKE(keys);
	return true;
}

bool seal_keys_load(const char *path, struct seal_keys **ret_keys, struct error *error)
{
	struct buf text = {0};
	bool done = durable_read_private(path, SEAL_FILE_MAX, &text, error) &&
		    seal_keys_parse(buf_text(&text), text.length, path, ret_keys, error);

	pki_wipe(&text);
	return done || error_wrap(error, "the secret key file");
}

size_t seal_keys_count(const struct seal_keys *keys)
{
	return keys->count;
}

const char *seal_keys_id(const struct seal_keys *keys, size_t i)
{
	assert(i < keys->count);
	return keys->items[i].id;
}

static void format_keys(const struct seal_keys *keys, struct buf *text)
{
	buf_printf(text, "{\"version\":%d,\"keys\":[", VERSION);
	for (size_t i = 0; i < keys->count; i++) {
		char key[KEY_LENGTH + 1] = "";

		jose_b64_enc_buf(keys->items[i].bytes, KEY_BYTES, key, KEY_LENGTH);
		buf_printf(text, "%s\n{\"id\":\"%s\",\"key\":\"%s\"}", i ? "," : "",
			   keys->items[i].id, key);
		OPENSSL_cleanse(key, sizeof key);
	}
	buf_add_text(text, "\n]}\n");
}

static void make_key(struct seal_key *key, struct wall now)
{
	random_id(key->id, "sek", now);
	random_bytes(key->bytes, sizeof key->bytes);
}

bool seal_file_init(const char *path, struct wall now, struct error *error)
{
	CLEANUP(seal_keys) struct seal_keys *keys = mem_alloc(sizeof *keys);
	struct buf text = {0};
	bool done;

	keys->count = 1;
	make_key(&keys->items[0], now);
	format_keys(keys, &text);
	done = durable_create(path, text.data, text.length, PKI_PRIVATE_MODE, error);
	pki_wipe(&text);
	if (!done && error->code == ERROR_CONFLICT)
		error_hint(error, "Its keys open the secrets: it is never overwritten.");
	return done;
}

static bool replace(const char *path, const struct seal_keys *keys, struct error *error)
{
	struct buf text = {0};
	bool done;

	format_keys(keys, &text);
	done = durable_replace(path, text.data, text.length, PKI_PRIVATE_MODE, error);
	pki_wipe(&text);
	return done;
}

bool seal_file_rotate(const char *path, struct wall now, struct error *error)
{
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;

	durable_tidy(path, now);
	if (!seal_keys_load(path, &keys, error))
		return false;
	if (keys->count == SEAL_MAX_KEYS) {
		error_set(error, ERROR_INVALID_STATE, "'%s' holds %d keys already", path,
			  SEAL_MAX_KEYS);
		return error_hint(error, "Drop the old ones first.");
	}
	memmove(&keys->items[1], &keys->items[0], keys->count * sizeof keys->items[0]);
	keys->count++;
	make_key(&keys->items[0], now);
	return replace(path, keys, error);
}

bool seal_file_drop_old(const char *path, struct error *error)
{
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;

	if (!seal_keys_load(path, &keys, error))
		return false;
	keys->count = 1;
	return replace(path, keys, error);
}

/* --- sealing --- */

static bool encrypt(EVP_CIPHER_CTX *ctx, const struct seal_key *key, const char *about,
		    const void *value, size_t length, uint8_t *out)
{
	uint8_t *nonce = out, *text = out + NONCE_BYTES, *tag = text + length;
	int used;

	random_bytes(nonce, NONCE_BYTES);
	return EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key->bytes, nonce) == 1 &&
	       EVP_EncryptUpdate(ctx, NULL, &used, (const uint8_t *)about, (int)strlen(about)) ==
		       1 &&
	       EVP_EncryptUpdate(ctx, text, &used, value, (int)length) == 1 &&
	       EVP_EncryptFinal_ex(ctx, text + used, &used) == 1 &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, tag) == 1;
}

bool seal(const struct seal_keys *keys, const char *about, const void *value, size_t length,
	  struct buf *ret_sealed, struct error *error)
{
	CLEANUP(cipher_ctx) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	size_t size = NONCE_BYTES + length + TAG_BYTES,
	       text_length = jose_b64_enc_buf(NULL, size, NULL, 0);
	CLEANUP(free) uint8_t *bytes = NULL;
	CLEANUP(free) char *text = NULL;

	assert(length <= SEAL_MAX_VALUE);
	bytes = mem_alloc(size);
	text = mem_alloc(text_length + 1);
	if (!ctx || !encrypt(ctx, &keys->items[0], about, value, length, bytes))
		return ossl_error(error, "seal a secret");
	jose_b64_enc_buf(bytes, size, text, text_length);
	buf_add(ret_sealed, text, text_length);
	return true;
}

static const struct seal_key *find_key(const struct seal_keys *keys, const char *id)
{
	for (size_t i = 0; i < keys->count; i++) {
		if (str_equal(keys->items[i].id, id))
			return &keys->items[i];
	}
	return NULL;
}

static bool decrypt(EVP_CIPHER_CTX *ctx, const struct seal_key *key, const char *about,
		    uint8_t *bytes, size_t size, uint8_t *out)
{
	size_t length = size - NONCE_BYTES - TAG_BYTES;
	uint8_t *text = bytes + NONCE_BYTES, *tag = text + length;
	int used;

	return EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key->bytes, bytes) == 1 &&
	       EVP_DecryptUpdate(ctx, NULL, &used, (const uint8_t *)about, (int)strlen(about)) ==
		       1 &&
	       EVP_DecryptUpdate(ctx, out, &used, text, (int)length) == 1 &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) == 1 &&
	       EVP_DecryptFinal_ex(ctx, out + used, &used) == 1;
}

bool seal_open(const struct seal_keys *keys, const char *key_id, const char *about,
	       const char *sealed, struct buf *ret_value, struct error *error)
{
	CLEANUP(cipher_ctx) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	const struct seal_key *key = find_key(keys, key_id);
	size_t length = strlen(sealed), size = jose_b64_dec_buf(sealed, length, NULL, 0);
	CLEANUP(free) uint8_t *bytes = NULL;
	CLEANUP(free) uint8_t *value = NULL;
	bool done;

	if (!key)
		return error_set(error, ERROR_NOT_FOUND, "the secret key '%s' is not here", key_id);
	if (size == SIZE_MAX || size < NONCE_BYTES + TAG_BYTES ||
	    size > NONCE_BYTES + SEAL_MAX_VALUE + TAG_BYTES)
		return error_set(error, ERROR_INTERNAL, "a stored secret is broken");
	bytes = mem_alloc(size);
	value = mem_alloc(size);
	done = ctx && jose_b64_dec_buf(sealed, length, bytes, size) == size &&
	       decrypt(ctx, key, about, bytes, size, value);
	if (done)
		buf_add(ret_value, value, size - NONCE_BYTES - TAG_BYTES);
	OPENSSL_cleanse(value, size);
	return done || ossl_error(error, "a stored secret is broken, or isn't its owner's");
}
