/*
 * fake_api: an HTTPS server that answers from a script and remembers what it was asked.
 *
 * Connections are served side by side and stay open; answers are given in the order in which
 * requests come, the last one again and again. Who asks is the subject of the client certificate,
 * which is wanted but, as at an API server, not demanded.
 */
#pragma once

#include "base/buf.h"

struct fake_api_answer {
	int status;
	const char *headers; /* whole lines with "\r\n", or NULL */
	const char *body;
	size_t padding; /* blanks behind the body */
	int delay_ms;   /* before the first byte */
	bool slam;      /* close without a byte of answer */
	bool cut;       /* close after the headers */
};

struct fake_api_options {
	const char *certificate_pem, *key_pem;
	const struct fake_api_answer *answers;
	size_t count;
};

struct fake_api;
struct fake_api *fake_api_start(const struct fake_api_options *options);
int fake_api_port(const struct fake_api *api); /* on 127.0.0.1 */
/* For each request: "#CONNECTION CN=name\n", then its bytes. Stops the server. */
const char *fake_api_finish(struct fake_api *api);
size_t fake_api_requests(struct fake_api *api); /* so far; any thread */
void fake_api_destroy(struct fake_api *api);
