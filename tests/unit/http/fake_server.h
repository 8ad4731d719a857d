/*
 * fake_server: an HTTP server on a thread that answers from a list and remembers what it was asked.
 *
 * Each connection carries one exchange. Answers are given in order, the last one again and again.
 */
#pragma once

#include "base/buf.h"

struct fake_answer {
	int status;
	const char *headers; /* whole lines with "\r\n", or NULL */
	const char *body;
	int delay_ms;    /* before the first byte */
	bool cut;        /* close after the headers */
	const char *raw; /* instead of all that: these bytes */
	bool hold;       /* then say nothing more until the client has closed */
};

struct fake_server;
struct fake_server *fake_server_start(const struct fake_answer *answers, size_t count);
const char *fake_server_url(const struct fake_server *server); /* "http://127.0.0.1:PORT" */
/* All requests as received, one after the other; stops the thread. */
const char *fake_server_finish(struct fake_server *server);
void fake_server_destroy(struct fake_server *server);
