#include "pki/token.h"

#include "sys/random.h"

#include <jose/b64.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>

#define TOKEN_SECRET_BYTES  32
#define TOKEN_SECRET_LENGTH 43

static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void token_make(char out[TOKEN_SIZE], const char *prefix, const char *id)
{
	uint8_t secret[TOKEN_SECRET_BYTES];
	char text[TOKEN_SECRET_LENGTH + 1] = "";

	random_bytes(secret, sizeof secret);
	jose_b64_enc_buf(secret, sizeof secret, text, TOKEN_SECRET_LENGTH);
	snprintf(out, TOKEN_SIZE, "%s_%s_%s", prefix, id, text);
	OPENSSL_cleanse(secret, sizeof secret);
	OPENSSL_cleanse(text, sizeof text);
}

bool token_parse(const char *text, const char *prefix, const char *id_prefix, char ret_id[ID_SIZE])
{
	/* Both an id and base64url may hold '_', so the parts are found by their lengths. */
	size_t prefix_length = strlen(prefix);
	size_t id_length = strlen(id_prefix) + 1 + ID_ULID_LENGTH;
	size_t length = strnlen(text, TOKEN_SIZE);
	char id[ID_SIZE] = "";

	assert(id_length < ID_SIZE);
	if (length != prefix_length + 1 + id_length + 1 + TOKEN_SECRET_LENGTH)
		return false;
	if (!str_starts(text, prefix) || text[prefix_length] != '_' ||
	    text[prefix_length + 1 + id_length] != '_')
		return false;
	memcpy(id, text + prefix_length + 1, id_length);
	if (!id_valid(id, id_prefix))
		return false;
	if (strspn(text + length - TOKEN_SECRET_LENGTH, base64url) != TOKEN_SECRET_LENGTH)
		return false;
	memcpy(ret_id, id, sizeof id);
	return true;
}

void token_hash(const char *text, char out[TOKEN_HASH_SIZE])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)text, strlen(text), digest);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
