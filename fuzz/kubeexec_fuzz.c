#include "kube/core/exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kube_exec exec = {.command = "a",
				       .api_version = "client.authentication.k8s.io/v1"};
	CLEANUP(kube_exec_answer) struct kube_exec_answer answer = {0};
	struct error error;

	if (!kube_exec_read(&exec, data, size, &answer, &error))
		return 0;
	if (!answer.certificate_pem != !answer.key_pem || (!answer.token && !answer.key_pem))
		abort();
	return 0;
}
