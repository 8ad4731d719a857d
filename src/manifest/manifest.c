#include "manifest/manifest.h"
#include "manifest/core/nodeconfig.h"
#include "pki/keys.h"

#include <openssl/sha.h>
#include <stdio.h>

static bool check_pins(const struct settings *settings, struct pin_list *ret_encryption,
		       struct error *error)
{
	const struct {
		const char *field, *text;
		struct pin_list *pins;
	} rows[] = {
		{"pins.servingCaPin", settings->serving_ca_pin, &(struct pin_list){0}},
		{"pins.joinSigningPin", settings->join_signing_pin, &(struct pin_list){0}},
		{"pins.joinEncryptionPin", settings->join_encryption_pin, ret_encryption},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].text &&
		    !pin_list_parse(rows[i].text, rows[i].field, rows[i].pins, error))
			return false;
	}
	return true;
}

/* The key must be the one that is pinned, or no node could join by it. */
static bool check_jwk(const struct settings *settings, const struct pin_list *pins,
		      struct error *error)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	char pin[PIN_SIZE];

	if (!settings->join_jwk)
		return true;
	if (!pki_key_from_jwk(settings->join_jwk, strlen(settings->join_jwk), PKI_USE_ENCRYPTION,
			      &key, error)) {
		error->code = ERROR_INVALID_CONFIG;
		return error_wrap(error, "joinEncryptionJwk");
	}
	pki_key_pin(key, pin);
	if (pins->count == 0 || pin_check(pins, pin, "joinEncryptionJwk", error))
		return true;
	error->code = ERROR_INVALID_CONFIG;
	return false;
}

bool manifest_read(const json_t *options, struct settings *ret_settings, struct error *error)
{
	CLEANUP(settings) struct settings settings = {0};
	struct pin_list encryption = {0};

	if (!settings_read(options, &settings, error) ||
	    !check_pins(&settings, &encryption, error) || !check_jwk(&settings, &encryption, error))
		return false;
	*ret_settings = settings;
	settings = (struct settings){0};
	return true;
}

static void hash_of(const struct buf *text, char out[OBJECTS_HASH_SIZE])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];

	SHA256(text->data, text->length, digest);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

bool manifest_objects(const struct settings *settings, json_t **ret_objects, struct error *error)
{
	CLEANUP(buf) struct buf config = {0};
	char hash[OBJECTS_HASH_SIZE];

	if (!settings_check_complete(settings, error))
		return false;
	nodeconfig_write(settings, &config);
	hash_of(&config, hash);
	*ret_objects = objects_make(settings, buf_text(&config), hash);
	return true;
}
