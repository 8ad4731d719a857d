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
	bool echo;      /* the body is what was sent, as of a create */
	bool slam;      /* close without a byte of answer */
	bool cut;       /* close after the headers */
	enum fake_api_stream {
		FAKE_API_WHOLE,
		FAKE_API_ENDS,   /* the body comes as a stream that ends at once, */
		FAKE_API_BREAKS, /* or is broken off, */
		FAKE_API_HOLDS,  /* or says nothing more until the client has closed */
	} stream;
	size_t after; /* its body waits until so many requests have been counted */
};

struct fake_api_options {
	const char *certificate_pem, *key_pem;
	const struct fake_api_answer *answers;
	size_t count;
	/* What is asked below this path gets its own answer, and is neither counted nor remembered. */
	const char *aside; /* NULL: nothing is */
	struct fake_api_answer aside_answer;
	struct fake_api_answer
		deletion; /* of every DELETE; status 0: they are requests like others */
	/* Watches ("watch=true") have answers of their own, the last one again and again, and are neither
	 * counted nor remembered. NULL: they are requests like others. */
	const struct fake_api_answer *watches;
	size_t watches_count;
};

struct fake_api;
struct fake_api *fake_api_start(const struct fake_api_options *options);
/* Before anybody asks: `deletion` of the options, for a server that is there already. */
void fake_api_delete_with(struct fake_api *api, struct fake_api_answer answer);
int fake_api_port(const struct fake_api *api); /* on 127.0.0.1 */
/* For each request: "#CONNECTION CN=name\n", then its bytes. Stops the server. */
const char *fake_api_finish(struct fake_api *api);
size_t fake_api_requests(struct fake_api *api); /* so far; any thread */
void fake_api_destroy(struct fake_api *api);
