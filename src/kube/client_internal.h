/* client_internal: what calls (client.c) and watches (watch.c) have of one client. For this room only. */
#pragma once

#include "http/multi.h"
#include "kube/client.h"

struct kube_client {
	struct loop *loop;
	struct http_multi *multi;
	struct credentials *credentials;
	struct loop_defer *pump;
	struct kube_call *calls;
	struct kube_watch *watches;
	size_t waiting, flying;
	bool asking; /* for credentials: nothing is sent before they are there */
	bool *gone;  /* set while callbacks run: destroyed by one of them */
};

/* Who asks with these; borrowed from them. */
static inline struct http_identity kube_who(const struct kube_identity *identity, bool fresh)
{
	return (struct http_identity){
		.bearer = identity->token,
		.certificate_pem = identity->certificate_pem,
		.key_pem = identity->key_pem,
		.ca_pem = identity->ca_pem,
		.server_name = identity->server_name,
		.proxy = identity->proxy,
		.ca_source = identity->ca_source,
		.certificate_source = identity->certificate_source,
		.trust_hint = identity->trust_hint,
		.https_only = true,
		.fresh = fresh,
	};
}

/* The credentials that were asked for are there, or not to be had: who waits for them tries again. */
void kube_watches_ready(struct kube_client *kube);
