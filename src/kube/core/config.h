/*
 * config: kubeconfig files as kubectl reads them, merged, and what one context of them gives
 * access to.
 *
 * Owns      the rules: several files are one, in which the first to name a thing wins, whole;
 *           relative paths belong to the file's folder; *-data wins over the file beside it;
 *           tokenFile over token; unknown fields don't count, a known one of the wrong type
 *           refuses the file.
 * Stricter  than kubectl, since nobody sits beside bcd: https only, never
 *           insecure-skip-tls-verify, no passwords, no auth-provider, no impersonation, no exec
 *           program that must talk to a person; YAML 1.2 booleans, unique keys, no aliases
 *           (text/yaml.h).
 * Errors    INVALID_CONFIG, naming file and field, never a value of a user. Who resolves names the
 *           file.
 * Secrets   nothing of a proxy-url is in a message: a password with a '#' in it is no password to a parser. What a kube_access holds is overwritten when it is freed.
 * Source    kubeconfig (v1) of Kubernetes 1.37, k8s.io/client-go/tools/clientcmd; the peer test
 *           tests/peer/kube compares with kubectl.
 * Pure.
 * Tests     tests/unit/kube/core/config_test.c, fuzz/kubeconfig_fuzz.c, tests/peer/kube
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"

#define KUBE_CONFIG_MAX_SIZE    ((size_t)1 << 20) /* of one file */
#define KUBE_CONFIG_MAX_ENTRIES 4096              /* clusters, users or contexts of one file */
#define KUBE_CONFIG_MAX_TEXT    ((size_t)256 << 10)
#define KUBE_SERVER_SIZE        1024 /* of a URL, and NUL */

struct kube_config;
struct kube_config *kube_config_create(void);
void kube_config_destroy(struct kube_config *config);

static inline void kube_config_cleanup(struct kube_config **config)
{
	kube_config_destroy(*config);
}

/* Adds one file's content behind those added before. `path` is absolute. An empty file adds
 * nothing. */
MUST_CHECK bool kube_config_add(struct kube_config *config, const void *text, size_t length,
				const char *path, struct error *error);

/* A text that stands in the kubeconfig, or in a file that is read anew for each use; or neither. */
struct kube_source {
	char *text;
	char *path; /* absolute */
};

/* A program that is asked who we are. */
struct kube_exec {
	char *command; /* absolute, or a name without '/' that is looked for in PATH */
	char *api_version;
	VEC(char *) args, env; /* env as "NAME=value" */
	bool cluster_info;     /* it wants to know of the cluster */
	char *install_hint;    /* how to get it; NULL when nobody says */
};
#define KUBE_EXEC_MAX_WORDS 256 /* of args, and of env */

/* One cluster and who we are there. Owned; `{0}` is empty. NULL: the kubeconfig says nothing. */
struct kube_access {
	char *context, *cluster, *user; /* their names */
	char *server;                   /* "https://HOST[:PORT][/PATH]", no '/' at the end */
	char *server_name;
	char *proxy;     /* a URL that libcurl can read; may hold a password */
	char *namespace; /* that the context names */
	struct kube_source ca, certificate, key, token;
	struct kube_exec *exec; /* only when the user has none of the last three */
};
void kube_access_deinit(struct kube_access *access);

static inline void kube_access_cleanup(struct kube_access *access)
{
	kube_access_deinit(access);
}

/* `context` NULL: the current one. `*ret_access` must be empty. NOT_FOUND: no such context. */
MUST_CHECK bool kube_config_resolve(const struct kube_config *config, const char *context,
				    struct kube_access *ret_access, struct error *error);
