/*
 * proxies: who calls, when the request came through a proxy that we were told to trust.
 *
 * Each proxy adds the address that it was called from to the end of X-Forwarded-For, and what stood
 * there before is hearsay. So the list is read from its end, for as long as the one who added to it
 * is trusted; the first address that isn't is the caller.
 * Pure.
 * Tests     tests/unit/serve/proxies_test.c
 */
#pragma once

#include "serve/address.h"

#define PROXIES_MAX      64 /* networks */
#define PROXIES_MAX_HOPS 32 /* of a request */

struct proxies {
	struct {
		unsigned char address[16]; /* IPv4 as ::ffff:a.b.c.d */
		int bits;
	} networks[PROXIES_MAX];
	size_t count;
};

/* "10.0.0.0/8", "fd00::/8", or an address alone. */
MUST_CHECK bool proxies_add(struct proxies *proxies, const char *cidr, struct error *error);
bool proxies_trust(const struct proxies *proxies, const struct address *address);

/* `forwarded`: all of X-Forwarded-For, in order, with commas between; NULL without. What can't be
 * read ends it: the last hop that is known for sure is the caller. */
struct address proxies_caller(const struct proxies *proxies, const struct address *peer,
			      const char *forwarded);
