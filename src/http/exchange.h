/*
 * exchange: one request and its answer on a libcurl handle: what the blocking client and the one on
 * the loop have in common. For this room only.
 */
#pragma once

#include "http/client.h"
#include "sys/clock.h"

#include <curl/curl.h>

/* What one exchange collects. `{0}` is empty; the bounds come with exchange_prepare(). */
struct exchange {
	CURL *curl;
	struct http_answer answer;
	size_t max_answer;
	bool too_large;
	/* of a stream */
	http_take_fn *take; /* NULL: it is none */
	void *arg;
	int64_t patience_ms;
	struct mono heard; /* when the last byte came */
	bool refused;      /* by who takes it, with `error` */
	struct error error;
	struct curl_slist *headers; /* borrowed by the handle */
	const char *ca_source, *certificate_source,
		*trust_hint; /* as struct http_identity's; borrowed */
	bool much_later;     /* Retry-After is more than any number */
	char detail[CURL_ERROR_SIZE];
};
/* Not before the handle has let go of it: another request, or its end. */
void exchange_deinit(struct exchange *exchange);

static inline void exchange_cleanup(struct exchange *exchange)
{
	exchange_deinit(exchange);
}

/* The parts of a URL that decide where a request goes. */
struct target {
	char *scheme, *host, *port; /* curl's memory; an IPv6 host in brackets */
};
void target_cleanup(struct target *target);
MUST_CHECK bool target_parse(const char *text, struct target *ret_target, struct error *error);
bool target_is_loopback(const struct target *target);
/* May a request go there? A key never goes unencrypted to another machine. */
MUST_CHECK bool target_allowed(const struct target *target, const char *url, bool https_only,
			       const char *bearer, struct error *error);

/* Sets all but trust on a handle without options. `bearer` may be NULL. */
void exchange_prepare(struct exchange *exchange, CURL *curl, const struct http_request *request,
		      const char *url, const char *bearer);
/* After a transfer that came to its end. */
void exchange_finish(struct exchange *exchange, CURL *curl);
/* After one that failed. Returns false. */
bool exchange_failed(const struct exchange *exchange, CURLcode rc, const char *url,
		     struct error *error);
