/* A client of an API server that is the test's, with credentials on disk: what the tests of this room share. */
#pragma once

#include "fake_api.h"
#include "kube/client.h"
#include "lib/test.h"
#include "unit/rpc/certs.h"

#define OK_BODY "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n0\"}}"
#define PAIR    "client-certificate: pair.pem, client-key: pair.pem"

extern const struct fake_api_answer FINE;
extern const struct kube_ref NODE;

/* A server, its certificates, and two client identities on disk. */
extern struct world {
	struct certs_pair ca, server, first, second;
	struct fake_api *api;
	struct loop *loop;
	struct kube_client *client;
	void **folder;
	/* what came back */
	int told;
	enum kube_reason reason;
	bool unknown;
	struct error error;
	char log[256]; /* one letter a callback */
} world;

void write_file(const char *path, const char *text);
void write_pair(const char *name, const struct certs_pair *certificate,
		const struct certs_pair *key);
/* `cluster_more`: behind its server; `user`: its members. */
void write_kubeconfig(const char *cluster_more, const char *user);
/* The server answers with these; the client has the first identity. */
void begin(void **state, const struct fake_api_answer *answers, size_t count);
const char *finish(void); /* what was asked, as fake_api_finish() says */
/* `letter`, or NULL, is added to world.log when it is answered. */
struct kube_call *send_as(struct kube_request request, enum kube_priority priority,
			  int64_t timeout_ms, const char *letter);
/* Sends one and runs until nothing is left to wait for. */
void call(struct kube_request request);
struct kube_request create_slice(void);
void stop(void *arg); /* the loop; a loop_fn */
size_t count_of(const char *text, const char *part);

/* Fixtures of a group. */
int make_world(void **state);
int drop_world(void **state);
