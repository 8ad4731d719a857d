#include "serve/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

static const struct in6_addr *v6_of(const struct address *address)
{
	return &((const struct sockaddr_in6 *)(const void *)&address->storage)->sin6_addr;
}

static const struct in_addr *v4_of(const struct address *address)
{
	return &((const struct sockaddr_in *)(const void *)&address->storage)->sin_addr;
}

static bool malformed(const char *text, struct error *error)
{
	error_set(error, ERROR_INVALID_INPUT, "'%.100s' is not ADDRESS:PORT", text);
	return error_hint(error, "Give a numeric address, such as 127.0.0.1:7480.");
}

bool address_parse(const char *text, struct address *ret_address, struct error *error)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				 .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	const char *colon = strrchr(text, ':'), *start = text;
	char host[ADDRESS_SIZE];
	size_t length = colon ? (size_t)(colon - text) : 0;

	if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
		start++;
		length -= 2;
	}
	if (length == 0 || length >= sizeof host)
		return malformed(text, error);
	memcpy(host, start, length);
	host[length] = '\0';
	if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
		return malformed(text, error);
	*ret_address = address_of(found->ai_addr);
	freeaddrinfo(found);
	return true;
}

struct address address_of(const struct sockaddr *peer)
{
	struct address address = {0};

	address.length = peer->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						     : sizeof(struct sockaddr_in);
	memcpy(&address.storage, peer, address.length);
	return address;
}

/* Is it IPv4, in whichever form? */
static bool as_v4(const struct address *address, struct in_addr *ret_v4)
{
	bool mapped =
		address->storage.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6_of(address));

	if (mapped)
		memcpy(ret_v4, v6_of(address)->s6_addr + 12, sizeof *ret_v4);
	else if (address->storage.ss_family == AF_INET)
		*ret_v4 = *v4_of(address);
	return mapped || address->storage.ss_family == AF_INET;
}

bool address_is_loopback(const struct address *address)
{
	struct in_addr v4;

	if (as_v4(address, &v4))
		return ntohl(v4.s_addr) >> 24 == 127;
	return address->storage.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(v6_of(address));
}

void address_text(const struct address *address, char out[INET6_ADDRSTRLEN])
{
	struct in_addr v4;

	if (as_v4(address, &v4))
		inet_ntop(AF_INET, &v4, out, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, v6_of(address), out, INET6_ADDRSTRLEN);
}

void address_network(const struct address *address, char out[INET6_ADDRSTRLEN])
{
	struct in6_addr v6;
	struct in_addr v4;

	out[0] = '\0';
	if (as_v4(address, &v4)) {
		inet_ntop(AF_INET, &v4, out, INET6_ADDRSTRLEN);
		return;
	}
	v6 = *v6_of(address);
	memset(v6.s6_addr + 8, 0, 8);
	inet_ntop(AF_INET6, &v6, out, INET6_ADDRSTRLEN);
}

/* --- listening --- */

static bool describe(const struct address *address, char out[ADDRESS_SIZE], struct error *error)
{
	char host[64], port[8];

	if (getnameinfo((const struct sockaddr *)&address->storage, address->length, host,
			sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return error_set(error, ERROR_INTERNAL, "name the API's socket");
	snprintf(out, ADDRESS_SIZE, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	return true;
}

static bool describe_bound(int fd, char out[ADDRESS_SIZE], struct error *error)
{
	struct address bound = {.length = sizeof bound.storage};

	if (getsockname(fd, (struct sockaddr *)&bound.storage, &bound.length) != 0)
		return error_os(error, "name the API's socket");
	return describe(&bound, out, error);
}

bool address_listen(const struct address *address, int backlog, int *ret_fd,
		    char ret_bound[ADDRESS_SIZE], struct error *error)
{
	const int on = 1;
	char text[ADDRESS_SIZE];
	int fd;

	if (!describe(address, text, error))
		return false;
	fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_os(error, "make a socket for '%s'", text);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
	    bind(fd, (const struct sockaddr *)&address->storage, address->length) != 0 ||
	    listen(fd, backlog) != 0) {
		error_os(error, "listen on '%s'", text);
		close(fd);
		return false;
	}
	if (!describe_bound(fd, ret_bound, error)) {
		close(fd);
		return false;
	}
	*ret_fd = fd;
	return true;
}
