/*
 * serve: the control plane as one thing that starts and stops.
 *
 * Order     PKI and the API's socket, which says "starting"; then, on a thread, the database, which
 *           may have to be waited for and migrated; then workers and the gateway, and it is ready.
 *           Stopping goes the other way: /readyz says so first, answers under way are sent, streams
 *           are told to come back, then the workers end.
 * Blocks    serve_create() does, on the disk.
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

struct serve;

/* Borrowed until on_ready or on_failed. */
struct serve_options {
	const char *home;            /* a folder that is there */
	const char *database;        /* of store_open(); NULL: "sqlite:HOME/better-compute.db" */
	const char *listen;          /* the API's "ADDR:PORT" */
	const char *gateway_listen;  /* the nodes' */
	const char *gateway_address; /* what nodes are told, HOST:PORT; NULL: as bound */
	const char *gateway_name;    /* server name in the gateway's certificate */
	size_t workers;
	const char *tls_certificate_file, *tls_key_file; /* of the API; NULL: plain HTTP */
	const char *const *trusted_proxies; /* networks whose word about who calls counts */
	size_t trusted_proxies_count;
	int64_t key_calls, address_calls; /* a second, twice as many at once; 0: any number */
	bool another_key; /* serve_init() makes an operator key also where there is one */
	bool migrate;     /* a PostgreSQL database of an older version is brought up to date */
	const char *secret_key_file; /* of pki/seal.h; NULL: no secret is kept */
	/* How long it goes on with /readyz saying no, so that whoever spreads requests over
	 * replicas sees it; 0: none. */
	int64_t drain_delay_ms;
};

/* One of the two follows, once; not after serve_drain(). */
struct serve_handlers {
	loop_fn *on_ready;
	void (*on_failed)(void *arg, const struct error *error);
	void *arg;
};

/* Of store_open(): the one given, or the home's own. A heap text that may hold a password. */
MUST_CHECK bool serve_database_url(const char *home, const char *database, char **ret_url,
				   struct error *error);
void serve_forget_url(char *url); /* wiped and freed */

/* The database (made and brought up to date), the PKI if absent, and the first operator key:
 * `ret_key` is its text, "" when there was one. */
#define SERVE_KEY_SIZE 96
MUST_CHECK bool serve_init(const struct serve_options *options, char ret_key[SERVE_KEY_SIZE],
			   struct error *error);

#define SERVE_RETRY_MS 1000 /* between two looks for a database that isn't there */
MUST_CHECK bool serve_create(struct loop *loop, const struct serve_options *options,
			     const struct serve_handlers *handlers, struct serve **ret_serve,
			     struct error *error);
const char *serve_api_address(const struct serve *serve);     /* as bound */
const char *serve_gateway_address(const struct serve *serve); /* as bound; once it is ready */
/* Reads the API's certificate again, which otherwise is noticed when it changes. */
void serve_reload(struct serve *serve);
/* Ends politely, at the latest SERVE_DRAIN_MS after the delay, then calls fn. */
#define SERVE_DRAIN_MS 10000
void serve_drain(struct serve *serve, loop_fn *fn, void *arg);
void serve_destroy(struct serve *serve); /* takes NULL */
