/*
 * serve: the control plane as one thing that starts and stops.
 *
 * Order     database, PKI, workers, then the gateway and the API: nobody is answered before what
 *           answers is there. Stopping goes the other way: answers under way are sent, streams are
 *           told to come back, then the workers end.
 * Blocks    serve_create() does, on the database and the disk.
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

struct serve;

#define SERVE_MAX_PEM ((size_t)64 << 10)

/* Borrowed for serve_create(). */
struct serve_options {
	const char *home;            /* a folder that is there */
	const char *database;        /* of store_open(); NULL: "sqlite:HOME/better-compute.db" */
	const char *listen;          /* the API's "ADDR:PORT" */
	const char *gateway_listen;  /* the nodes' */
	const char *gateway_address; /* what nodes are told, HOST:PORT; NULL: as bound */
	const char *gateway_name;    /* server name in the gateway's certificate */
	size_t workers;
	const char *tls_certificate_file, *tls_key_file; /* of the API; NULL: plain HTTP */
};

/* The database (made and brought up to date), the PKI if absent, and the first operator key:
 * `ret_key` is its text, "" when there was one. */
#define SERVE_KEY_SIZE 96
MUST_CHECK bool serve_init(const struct serve_options *options, char ret_key[SERVE_KEY_SIZE],
			   struct error *error);

MUST_CHECK bool serve_create(struct loop *loop, const struct serve_options *options,
			     struct serve **ret_serve, struct error *error);
const char *serve_api_address(const struct serve *serve);     /* as bound */
const char *serve_gateway_address(const struct serve *serve); /* as bound */
/* Ends politely, at the latest after SERVE_DRAIN_MS, then calls fn. */
#define SERVE_DRAIN_MS 10000
void serve_drain(struct serve *serve, loop_fn *fn, void *arg);
void serve_destroy(struct serve *serve); /* takes NULL */
