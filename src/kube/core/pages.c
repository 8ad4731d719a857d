#include "kube/core/pages.h"

#include "text/tree.h"

void kube_pages_deinit(struct kube_pages *pages)
{
	if (!pages)
		return;
	json_decref(pages->items);
	free(pages->continue_token);
	*pages = (struct kube_pages){0};
}

static enum kube_pages_step start_again(struct kube_pages *pages, const struct error *said,
					struct error *error)
{
	int restarts = pages->restarts + 1;

	if (restarts > KUBE_PAGES_RESTARTS) {
		*error = *said;
		error_wrap(error, "the list ran out %d times", restarts);
		return KUBE_PAGES_FAILED;
	}
	kube_pages_deinit(pages);
	pages->restarts = restarts;
	return KUBE_PAGES_MORE;
}

static bool take_items(struct kube_pages *pages, json_t *items, struct error *error)
{
	if (!pages->items)
		pages->items = json_array();
	if (json_array_size(pages->items) + json_array_size(items) > KUBE_PAGES_MAX_ITEMS)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "the list has more than %d objects", KUBE_PAGES_MAX_ITEMS);
	if (json_is_array(items) && json_array_extend(pages->items, items) != 0)
		abort();
	return true;
}

/* The token of the next page; "" at the end. Never the one we came with: that would be a circle. */
static bool take_token(struct kube_pages *pages, const char *token, struct error *error)
{
	if (pages->continue_token && str_equal(token, pages->continue_token))
		return error_set(error, ERROR_INTERNAL,
				 "the list goes in a circle: a page names itself as the next");
	if (*token && pages->count >= KUBE_PAGES_MAX)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "the list has more than %d pages", KUBE_PAGES_MAX);
	free(pages->continue_token);
	pages->continue_token = *token ? mem_strdup(token) : NULL;
	return true;
}

enum kube_pages_step kube_pages_take(struct kube_pages *pages, const struct kube_answer *answer,
				     struct error *error)
{
	json_t *metadata, *items, *token;

	if (answer->reason == KUBE_EXPIRED && pages->continue_token)
		return start_again(pages, &answer->error, error);
	if (answer->reason != KUBE_DONE) {
		*error = answer->error;
		return KUBE_PAGES_FAILED;
	}
	metadata = json_object_get(answer->body, "metadata");
	items = json_object_get(answer->body, "items");
	token = json_object_get(metadata, "continue");
	/* Go's empty list is null, but it is there. What isn't a whole list is none: who isn't on a list counts
	 * as gone. */
	if (!(json_is_array(items) || json_is_null(items)) || !json_is_object(metadata) ||
	    !(!token || json_is_string(token))) {
		error_set(error, ERROR_UNAVAILABLE,
			  "the list that came lacks its items or its metadata");
		error_hint(error,
			   "Check that the kubeconfig's server is a Kubernetes API server, with "
			   "nothing before it that changes its answers.");
		return KUBE_PAGES_FAILED;
	}
	pages->count++;
	if (!take_items(pages, items, error) ||
	    !take_token(pages, token ? json_string_value(token) : "", error))
		return KUBE_PAGES_FAILED;
	return pages->continue_token ? KUBE_PAGES_MORE : KUBE_PAGES_DONE;
}
