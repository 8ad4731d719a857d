/*
 * wellknown: the document that tells where nodes join, and under which key (JOIN-16, JOIN-39).
 *
 * Carries no trust: anybody on the way could have written it. So a key is only taken from it when
 * its pin is the operator's; the gateway is judged by its certificate later.
 */
#pragma once

#include "pki/keys.h"

#define WELLKNOWN_PATH        "/.well-known/better-compute"
#define WELLKNOWN_MAX_SIZE    ((size_t)16 << 10)
#define WELLKNOWN_URL_SIZE    513
#define WELLKNOWN_SERVER_SIZE 256

struct wellknown {
	char gateway_url[WELLKNOWN_URL_SIZE]; /* https:// */
	char gateway_server_name[WELLKNOWN_SERVER_SIZE];
	struct pki_key *encryption_key; /* pinned: the current one, or while keys change the next */
	/* What it says of the other two; empty when it says nothing. Never to be pinned: they show
	 * an operator's mistake, no more. */
	struct pin_list ca_pins, signing_pins;
};
void wellknown_deinit(struct wellknown *wellknown);

static inline void wellknown_cleanup(struct wellknown *wellknown)
{
	wellknown_deinit(wellknown);
}

/* FORBIDDEN when it has no key of these pins, else INVALID_INPUT. `*ret` must be empty. */
MUST_CHECK bool wellknown_read(const struct buf *body, const struct pin_list *encryption_pins,
			       struct wellknown *ret, struct error *error);
