/*
 * certs: throw-away certificate authorities and certificates for tests, as PEM.
 */
#pragma once

#include "base/base.h"

struct certs_pair {
	char *certificate, *key; /* PEM */
};

struct certs_options {
	const char *name; /* common name, and the one DNS name unless it is a CA */
	bool is_ca;
	const struct certs_pair *issuer; /* NULL: self-signed */
	int64_t from_s, to_s; /* validity, seconds from now; both 0: an hour either way */
};

struct certs_pair certs_make(const struct certs_options *options);
void certs_free(struct certs_pair *pair);
char *certs_pin(const struct certs_pair *pair); /* "sha256/…", heap */
