/*
 * clients: threads that ask the HTTP API over connections of their own and note how long each call
 * took. Blocking sockets, one thread a client.
 */
#pragma once

#include "base/error.h"

enum client_call {
	CLIENT_RESERVE, /* and its release, which is noted apart */
	CLIENT_RELEASE,
	CLIENT_PREVIEW,
	CLIENT_PREVIEW_NOWHERE, /* more than any node has: why, and when */
	CLIENT_LIST_NODES,
	CLIENT_LIST_RESERVATIONS,
	CLIENT_CALLS,
};

struct clients_options {
	int port;
	const char *key, *tenant, *pool;
	int threads;
	bool only_reserve; /* else each of them in turn */
	int pause_us;      /* after each call */
};

struct clients_result {
	double seconds;
	long calls[CLIENT_CALLS], failures, unplaced;
	double p50_ms[CLIENT_CALLS], p99_ms[CLIENT_CALLS];
};

const char *client_call_name(enum client_call call);

struct clients;
struct clients *clients_start(const struct clients_options *options);
/* Ends them and sums up what they noted. */
void clients_stop(struct clients *clients, struct clients_result *ret_result);

/* One call; the answer's body in `ret_body` (heap). False unless it was 200. */
bool client_ask(int port, const char *key, const char *method, const char *path, const char *body,
		char **ret_body);
