/*
 * credentials: the kubeconfig and the files it names, as they are at this moment.
 *
 * Everything is read when a request is about to leave, so a rotated certificate or token is used
 * by the next one and nobody has to watch the files: the kubelet swaps a link
 * (/var/lib/kubelet/pki/kubelet-client-current.pem) at any time. A certificate and key in one file
 * are read in one go. Two files may be caught between the one's change and the other's: then they
 * don't fit, the connection isn't made, and the caller tries again. The kubeconfig itself is
 * parsed again only when one of its files has changed.
 *
 * Programs  (exec) are run when their last answer is about to run out or was refused, and then not
 *           again for CREDENTIALS_PAUSE_MS, whatever comes of it. Meanwhile a load isn't ready,
 *           and the owner hears when it is.
 * Errors    INVALID_CONFIG or what durable_read() says of a file; "a kubeconfig is not there" is
 *           NOT_FOUND.
 * Secrets   are overwritten when freed.
 * Threads   the loop's. Reads small local files.
 * Tests     tests/unit/kube/credentials_test.c (a scripted server), tests/peer/kube (a real one)
 */
#pragma once

#include "kube/core/config.h"
#include "sys/loop.h"

#define CREDENTIALS_PAUSE_MS  1000  /* between two runs of a program */
#define CREDENTIALS_EARLY_MS  10000 /* an answer isn't used this long before it runs out */
#define CREDENTIALS_MAX_FILES 16    /* of a KUBECONFIG list */
#define CREDENTIALS_MAX_SIZE  ((size_t)256 << 10) /* of a certificate, key or authorities file */
#define CREDENTIALS_MAX_TOKEN ((size_t)64 << 10)

struct credentials_options {
	/* Absolute paths with ':' between, as KUBECONFIG has them; of several, absent ones don't
	 * count. */
	const char *kubeconfig;
	const char *context; /* NULL: the current one */
};

struct credentials;
/* Copies the options. `ready` is called from the loop when a load that wasn't ready is to be tried
 * again. */
struct credentials *credentials_create(struct loop *loop, const struct credentials_options *options,
				       loop_fn *ready, void *arg);
void credentials_destroy(struct credentials *credentials);

/* What one request needs. Owned; `{0}` is empty. NULL where there is none. */
struct kube_identity {
	char *server;
	char *server_name, *proxy;
	char *ca_pem, *certificate_pem, *key_pem, *token;
	char *ca_source, *certificate_source, *trust_hint; /* for messages (http/multi.h) */
};
void kube_identity_deinit(struct kube_identity *identity);

static inline void kube_identity_cleanup(struct kube_identity *identity)
{
	kube_identity_deinit(identity);
}

/* `*ret_identity` must be empty, and stays so when *ret_ready is false: a program is being asked. */
MUST_CHECK bool credentials_load(struct credentials *credentials, bool *ret_ready,
				 struct kube_identity *ret_identity, struct error *error);
/* The API server doesn't know us: the next load asks the program again, if there is one. */
void credentials_renew(struct credentials *credentials);
