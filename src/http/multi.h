/*
 * multi: HTTPS requests on the loop, several at a time, none of which blocks it: for bcd, whose
 * one thread must keep its turn while a server is slow.
 *
 * Owns      the same rule of what may leave as client.h, connections that are kept for the next
 *           request of the same identity, and their bounds.
 * Identity  comes with each request as texts: a connection is used again only by a request with
 *           the same certificate, key, authorities and server name, so new ones need no word to
 *           anybody.
 * Redirects are not followed: a 3xx is an answer.
 * Errors    as client.h; and INVALID_CONFIG for a certificate and key that don't fit each other.
 * Secrets   keys, tokens and a proxy's URL are in no message.
 * Threads   the loop's. Callbacks come from a turn's deferred functions.
 */
#pragma once

#include "http/client.h"
#include "sys/loop.h"

#define HTTP_MULTI_CONNECTIONS 10 /* open at a time; further requests wait for one */
#define HTTP_MULTI_IDLE_S      60 /* not used again after this */

/* Of a stream: after so much silence the server's system is asked whether it is still there, and again
 * each HTTP_MULTI_PROBE_S; of nine (Linux' tcp_keepalive_probes) without an answer the connection ends. */
#define HTTP_MULTI_SILENCE_S 10
#define HTTP_MULTI_PROBE_S   3

struct http_multi;
struct http_multi *http_multi_create(struct loop *loop);
/* Legal at any moment, also from a callback; requests under way end silently. */
void http_multi_destroy(struct http_multi *multi);

/* Who asks, and whom we believe. Borrowed for the call that starts a request. NULL where absent. */
struct http_identity {
	const char *bearer;
	const char *certificate_pem,
		*key_pem;   /* both or neither; other blocks in them are skipped */
	const char *ca_pem; /* trusted instead of the system's authorities */
	const char
		*server_name; /* that the server's certificate is for, instead of the URL's host */
	const char *proxy;    /* URL; NULL: as the environment says */
	/* What messages say of them; NULL: nothing. */
	const char *ca_source;          /* "the certificate-authority '/ca.crt' of cluster 'c'" */
	const char *certificate_source; /* "the client-certificate and client-key of user 'u'" */
	const char *trust_hint;         /* what to do when the server isn't trusted */
	bool https_only;
	bool fresh; /* on a new connection: the server may know the old ones by an old identity */
};

/* How far a request came, for who decides whether to try again. */
enum http_way {
	HTTP_ANSWERED,
	HTTP_UNSENT,      /* nothing of it has left: trying again can't do it twice */
	HTTP_BROKEN,      /* no answer; the server may have carried it out */
	HTTP_CREDENTIALS, /* our certificate and key can't be used together; nothing has left */
	HTTP_HOPELESS,    /* URL, proxy, trust or bound: the next try ends in the same way */
};

/* HTTP_ANSWERED: `answer` is there, whatever its status, and the callback may take its body; else
 * `error` is. The call is gone. */
typedef void http_multi_fn(void *arg, enum http_way way, struct http_answer *answer,
			   const struct error *error);

/* Copies all it needs. `fn` follows exactly once and never from here, also for a bad URL. */
struct http_call *http_multi_start(struct http_multi *multi, const struct http_identity *identity,
				   const struct http_request *request, http_multi_fn *fn,
				   void *arg);

/* The same for an answer that takes its time, on connections that are no ordinary request's: as many
 * again. The body of a 200 isn't collected: `on_data` gets it as it comes, from a turn's deferred
 * functions, and before that, as soon as the answer has begun, once with no bytes. When it returns false
 * the request ends, as HTTP_BROKEN with its error. `fn` follows exactly once after the last of them; only
 * of an answer that isn't a 200 is there a body. `timeout_ms` is for all of it; an answer that is cut off
 * or whose server is gone is HTTP_BROKEN. What one wake-up of the loop has brought is held at most: no more
 * than libcurl reads at a time (1.6 MB). `request`'s own take stays NULL. */
struct http_call *http_multi_stream(struct http_multi *multi, const struct http_identity *identity,
				    const struct http_request *request, http_take_fn *on_data,
				    http_multi_fn *fn, void *arg);

/* Neither is called after this, nor the call valid after `fn`. Legal in any callback. */
void http_call_cancel(struct http_call *call);
