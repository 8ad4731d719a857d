#include "kube/core/pages.h"

#include "text/tree.h"

static const struct kube_ref WEB = {&KUBE_POD, "ns", "web"};

static struct kube_request request_of(unsigned choice)
{
	static const struct kube_delete_options DELETION = {.uid = "u"};

	switch (choice % 4) {
	case 0:
		return kube_list(&KUBE_POD, &(struct kube_list_options){0});
	case 1:
		return kube_get(WEB);
	case 2:
		return kube_delete(WEB, &DELETION);
	default:
		return kube_evict(WEB, &DELETION);
	}
}

static bool has_kind(const uint8_t *data, size_t size, const char *kind)
{
	CLEANUP(tree) json_t *tree = NULL;
	struct error ignored;

	return tree_parse((const char *)data, size, KUBE_MAX_ANSWER, "answer", &tree, &ignored) &&
	       json_is_string(json_object_get(tree, "kind")) &&
	       str_equal(json_string_value(json_object_get(tree, "kind")), kind);
}

/* The first byte chooses status and request, the rest is the body. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int STATUS[] = {200, 201, 400, 401, 403, 404, 409, 410, 429, 500, 503, 302};
	CLEANUP(kube_request) struct kube_request request = {0};
	CLEANUP(kube_answer) struct kube_answer answer = {0};
	CLEANUP(kube_pages) struct kube_pages pages = {0};
	struct error error = {0};

	if (size == 0)
		return 0;
	request = request_of(data[0] / ARRAY_SIZE(STATUS));
	kube_answer_read(&request, STATUS[data[0] % ARRAY_SIZE(STATUS)], 0, data + 1, size - 1,
			 &answer);
	if ((answer.reason == KUBE_DONE) != (answer.error.code == ERROR_NONE) ||
	    (answer.reason == KUBE_DONE) != (answer.body != NULL))
		abort();
	if ((answer.reason == KUBE_NOT_FOUND || answer.reason == KUBE_CONFLICT) &&
	    !has_kind(data + 1, size - 1, "Status"))
		abort();
	for (const char *c = answer.error.what; *c; c++)
		if ((unsigned char)*c < ' ')
			abort();
	if (request.wanted.form != KUBE_FORM_LIST)
		return 0;
	if (answer.reason == KUBE_DONE && !has_kind(data + 1, size - 1, "PodList"))
		abort();
	if (kube_pages_take(&pages, &answer, &error) == KUBE_PAGES_FAILED &&
	    error.code == ERROR_NONE)
		abort();
	return 0;
}
