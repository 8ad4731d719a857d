/*
 * pin: "sha256/" and base64 of the SHA-256 of a public key (JOIN-37).
 *
 * A configuration names one pin, or two while a key changes, comma-separated.
 * Source    RFC 7469 section 2.4: over the DER of the SubjectPublicKeyInfo.
 */
#pragma once

#include "base/error.h"

#define PIN_SIZE     52 /* "sha256/", 44 characters, NUL */
#define PIN_LIST_MAX 2

/* `{0}` is the empty list: it matches nothing. */
struct pin_list {
	size_t count;
	char pins[PIN_LIST_MAX][PIN_SIZE];
};

void pin_of_spki(const void *der, size_t length, char out[PIN_SIZE]);

/* One or two pins; anything else is INVALID_CONFIG naming `field`. */
MUST_CHECK bool pin_list_parse(const char *text, const char *field, struct pin_list *ret_pins,
			       struct error *error);
bool pin_list_has(const struct pin_list *pins, const char *pin);

/* FORBIDDEN unless `pin` is in the list; the message says that `thing` has this pin and which were
 * expected. */
MUST_CHECK bool pin_check(const struct pin_list *pins, const char *pin, const char *thing,
			  struct error *error);
