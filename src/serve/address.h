/*
 * address: where the API listens, and who calls it: numeric addresses with their ports.
 *
 * An IPv4 address that came over an IPv6 socket counts as what it is.
 * Tests     tests/unit/serve/address_test.c
 */
#pragma once

#include "base/error.h"

#include <netinet/in.h>
#include <sys/socket.h>

#define ADDRESS_SIZE 128 /* "[ADDRESS]:PORT" */

struct address {
	struct sockaddr_storage storage;
	socklen_t length;
};

/* "127.0.0.1:7480", "[::1]:0". */
MUST_CHECK bool address_parse(const char *text, struct address *ret_address, struct error *error);
struct address address_of(const struct sockaddr *peer); /* IPv4 or IPv6 */

/* Of this machine alone? */
bool address_is_loopback(const struct address *address);
/* What all addresses of one subscriber have in common: an IPv4 address, half of an IPv6 one. */
void address_network(const struct address *address, char out[INET6_ADDRSTRLEN]);

/* Without its port. */
void address_text(const struct address *address, char out[INET6_ADDRSTRLEN]);

/* A socket that listens there; `ret_bound` is the address with the port that it has now. */
MUST_CHECK bool address_listen(const struct address *address, int backlog, int *ret_fd,
			       char ret_bound[ADDRESS_SIZE], struct error *error);
