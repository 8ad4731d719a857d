/*
 * exec: what a kubeconfig's credential program is told, and what it answers.
 *
 * Pure      kube/program.h runs it.
 * Errors    INVALID_CONFIG, never with a word of the answer.
 * Source    client.authentication.k8s.io/v1 and v1beta1, "client-go credential plugins".
 * Tests     tests/unit/kube/core/exec_test.c, fuzz/kubeexec_fuzz.c
 */
#pragma once

#include "kube/core/config.h"

#define KUBE_EXEC_MAX_ANSWER ((size_t)256 << 10)

/* The value of KUBERNETES_EXEC_INFO. `ca_pem` NULL: the system's authorities. */
void kube_exec_info(const struct kube_access *access, const char *ca_pem, struct buf *out);

/* Owned; `{0}` is empty. A token, or a certificate and its key, or all three. */
struct kube_exec_answer {
	char *token, *certificate_pem, *key_pem;
	struct wall expires; /* {0}: it doesn't say */
};
void kube_exec_answer_deinit(struct kube_exec_answer *answer);

static inline void kube_exec_answer_cleanup(struct kube_exec_answer *answer)
{
	kube_exec_answer_deinit(answer);
}

/* `*ret_answer` must be empty. */
MUST_CHECK bool kube_exec_read(const struct kube_exec *exec, const void *text, size_t length,
			       struct kube_exec_answer *ret_answer, struct error *error);
