/*
 * scrape: one HTTP request for the metrics, and its answer.
 *
 * Why       by hand, and not libmicrohttpd as in serve: Prometheus sends one GET on a path that never
 *           changes, and bcd answers and closes. sys/net serves both kinds of socket already and is
 *           replaced in the simulation; the library costs little memory (160 KiB resident), but its
 *           own sockets, epoll and a stand-in for it would be more code than these sixty lines.
 * Takes     GET and HEAD of /metrics by HTTP/1.x, a query or not; header fields are not looked at, and
 *           a body isn't waited for. Whatever else is told so, and closed as well.
 * Source    RFC 9112 sections 2 to 3.
 * Pure.
 * Tests     tests/unit/node/core/scrape_test.c, fuzz/scrape_fuzz.c
 */
#pragma once

#include "base/buf.h"

#define SCRAPE_MAX_REQUEST ((size_t)8 << 10)

enum scrape {
	SCRAPE_MORE, /* not whole yet */
	SCRAPE_GET,
	SCRAPE_HEAD,
	SCRAPE_BAD,         /* no HTTP/1.x request */
	SCRAPE_NOT_FOUND,   /* another path */
	SCRAPE_NOT_ALLOWED, /* another method */
	SCRAPE_TOO_LONG,    /* SCRAPE_MAX_REQUEST bytes and no end */
};

/* What all that came so far asks for. */
enum scrape scrape_parse(const void *data, size_t length);

/* The whole answer, headers and body; `metrics` is used for SCRAPE_GET and SCRAPE_HEAD. */
void scrape_answer(enum scrape scrape, const struct buf *metrics, struct buf *out);
