#include "pki/pin.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>

#define PIN_PREFIX        "sha256/"
#define PIN_PREFIX_LENGTH (sizeof PIN_PREFIX - 1)
#define PIN_LENGTH        ((size_t)PIN_SIZE - 1)

void pin_of_spki(const void *der, size_t length, char out[PIN_SIZE])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];

	SHA256(der, length, digest);
	memcpy(out, PIN_PREFIX, PIN_PREFIX_LENGTH);
	EVP_EncodeBlock((unsigned char *)out + PIN_PREFIX_LENGTH, digest, sizeof digest);
}

/* 43 characters of base64 and one '=': 32 bytes, in the one way to write them. */
static bool pin_valid(const char *text, size_t length)
{
	uint8_t digest[SHA256_DIGEST_LENGTH + 1];
	char again[PIN_SIZE];

	if (length != PIN_LENGTH || memcmp(text, PIN_PREFIX, PIN_PREFIX_LENGTH) != 0)
		return false;
	if (EVP_DecodeBlock(digest, (const unsigned char *)text + PIN_PREFIX_LENGTH,
			    (int)(PIN_LENGTH - PIN_PREFIX_LENGTH)) != (int)sizeof digest)
		return false;
	EVP_EncodeBlock((unsigned char *)again, digest, SHA256_DIGEST_LENGTH);
	return memcmp(again, text + PIN_PREFIX_LENGTH, PIN_LENGTH - PIN_PREFIX_LENGTH) == 0;
}

bool pin_list_parse(const char *text, const char *field, struct pin_list *ret_pins,
		    struct error *error)
{
	struct pin_list pins = {0};

	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");
		const char *start = at + strspn(at, " ");
		size_t size = length - (size_t)(start - at);

		while (size > 0 && start[size - 1] == ' ')
			size--;
		if (pins.count == PIN_LIST_MAX || !pin_valid(start, size)) {
			if (*text)
				error_field(error, field,
					    "is '%.120s', not one or two comma-separated pins",
					    text);
			else
				error_field(error, field, "is missing");
			error->code = ERROR_INVALID_CONFIG;
			return error_hint(error, "A pin is sha256/ and 44 characters of base64; "
						 "'better-compute pki show' prints them.");
		}
		memcpy(pins.pins[pins.count++], start, size);
		at += length;
		if (*at == '\0')
			break;
	}
	*ret_pins = pins;
	return true;
}

bool pin_list_has(const struct pin_list *pins, const char *pin)
{
	for (size_t i = 0; i < pins->count; i++) {
		if (str_equal(pins->pins[i], pin))
			return true;
	}
	return false;
}

bool pin_check(const struct pin_list *pins, const char *pin, const char *thing, struct error *error)
{
	char wanted[PIN_LIST_MAX * (PIN_SIZE + 4)] = "none";

	if (pin_list_has(pins, pin))
		return true;
	if (pins->count == 1)
		snprintf(wanted, sizeof wanted, "'%s'", pins->pins[0]);
	else if (pins->count == 2)
		snprintf(wanted, sizeof wanted, "'%s' or '%s'", pins->pins[0], pins->pins[1]);
	error_set(error, ERROR_FORBIDDEN, "%s has pin '%s', but pinned is %s", thing, pin, wanted);
	return error_hint(error, "Somebody is in between, or the key was changed: compare with "
				 "'better-compute pki show' on the control plane's host.");
}
