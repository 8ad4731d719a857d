#include "serve/proxies.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#define MAPPED_BITS 96 /* before an IPv4 address in its IPv6 form */

/* Both families as one: IPv4 in its mapped form. */
static void bytes_of(const struct address *address, unsigned char out[16])
{
	const struct sockaddr *any = (const struct sockaddr *)&address->storage;

	if (any->sa_family == AF_INET6) {
		memcpy(out, &((const struct sockaddr_in6 *)(const void *)any)->sin6_addr, 16);
		return;
	}
	memset(out, 0, 10);
	memset(out + 10, 0xff, 2);
	memcpy(out + 12, &((const struct sockaddr_in *)(const void *)any)->sin_addr, 4);
}

/* A numeric address without a port. */
static bool read_host(const char *text, struct address *ret_address)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct sockaddr_in v4 = {.sin_family = AF_INET};

	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		*ret_address = address_of((const struct sockaddr *)&v4);
	else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
		*ret_address = address_of((const struct sockaddr *)&v6);
	else
		return false;
	return true;
}

static bool malformed(const char *cidr, struct error *error)
{
	error_set(error, ERROR_INVALID_INPUT, "'%.100s' is no network of addresses", cidr);
	return error_hint(error, "Give it as 10.0.0.0/8 or fd00::/8, or one address alone.");
}

static bool read_bits(const char *text, int max, int *ret_bits)
{
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 3 || text[digits] != '\0')
		return false;
	*ret_bits = (int)strtol(text, NULL, 10);
	return *ret_bits <= max;
}

bool proxies_add(struct proxies *proxies, const char *cidr, struct error *error)
{
	size_t length = strcspn(cidr, "/");
	char host[INET6_ADDRSTRLEN];
	struct address address;
	int most, bits;

	if (length >= sizeof host)
		return malformed(cidr, error);
	memcpy(host, cidr, length);
	host[length] = '\0';
	if (!read_host(host, &address))
		return malformed(cidr, error);
	most = bits = address.storage.ss_family == AF_INET ? 32 : 128;
	if (cidr[length] == '/' && !read_bits(cidr + length + 1, most, &bits))
		return malformed(cidr, error);
	if (proxies->count == PROXIES_MAX)
		return error_set(error, ERROR_INVALID_INPUT, "more than %d networks of proxies",
				 PROXIES_MAX);
	bytes_of(&address, proxies->networks[proxies->count].address);
	proxies->networks[proxies->count++].bits = most == 32 ? MAPPED_BITS + bits : bits;
	return true;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, int bits)
{
	int whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, (size_t)whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

bool proxies_trust(const struct proxies *proxies, const struct address *address)
{
	unsigned char bytes[16];

	bytes_of(address, bytes);
	for (size_t i = 0; i < proxies->count; i++) {
		if (same_bits(bytes, proxies->networks[i].address, proxies->networks[i].bits))
			return true;
	}
	return false;
}

/* One hop: "192.0.2.1", "192.0.2.1:4711", "2001:db8::1", "[2001:db8::1]:4711". */
static bool read_hop(const char *text, size_t length, struct address *ret_address)
{
	char hop[ADDRESS_SIZE];
	char *end;

	while (length > 0 && (*text == ' ' || *text == '\t'))
		text++, length--;
	while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		length--;
	if (length == 0 || length >= sizeof hop)
		return false;
	memcpy(hop, text, length);
	hop[length] = '\0';
	if (hop[0] == '[') {
		end = strchr(hop, ']');
		if (!end)
			return false;
		*end = '\0';
		return read_host(hop + 1, ret_address);
	}
	end = strchr(hop, ':');
	if (end && !strchr(end + 1, ':'))
		*end = '\0';
	return read_host(hop, ret_address);
}

struct address proxies_caller(const struct proxies *proxies, const struct address *peer,
			      const char *forwarded)
{
	struct address caller = *peer;
	size_t end = forwarded ? strlen(forwarded) : 0;

	for (int hops = 0; end > 0 && hops < PROXIES_MAX_HOPS && proxies_trust(proxies, &caller);
	     hops++) {
		size_t start = end;
		struct address before;

		while (start > 0 && forwarded[start - 1] != ',')
			start--;
		if (!read_hop(forwarded + start, end - start, &before))
			break;
		caller = before;
		end = start > 0 ? start - 1 : 0;
	}
	return caller;
}
