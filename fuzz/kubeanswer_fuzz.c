#include "kube/core/pages.h"

/* The first byte chooses the status, the rest is the body. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int STATUS[] = {200, 201, 400, 401, 403, 404, 409, 410, 429, 500, 503, 302};
	CLEANUP(kube_request)
	struct kube_request request = kube_list(&KUBE_POD, &(struct kube_list_options){0});
	CLEANUP(kube_answer) struct kube_answer answer = {0};
	CLEANUP(kube_pages) struct kube_pages pages = {0};
	struct error error = {0};

	if (size == 0)
		return 0;
	kube_answer_read(&request, STATUS[data[0] % ARRAY_SIZE(STATUS)], 0, data + 1, size - 1,
			 &answer);
	if ((answer.reason == KUBE_DONE) != (answer.error.code == ERROR_NONE) ||
	    (answer.reason == KUBE_DONE) != (answer.body != NULL))
		abort();
	for (const char *c = answer.error.what; *c; c++)
		if ((unsigned char)*c < ' ')
			abort();
	if (kube_pages_take(&pages, &answer, &error) == KUBE_PAGES_FAILED &&
	    error.code == ERROR_NONE)
		abort();
	return 0;
}
