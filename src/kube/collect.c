#include "kube/client.h"
#include "kube/core/pages.h"
#include "text/tree.h"

struct kube_collect {
	struct kube_client *kube;
	const struct kube_resource *resource;
	char *namespace, *label_selector, *field_selector;
	struct kube_call_options options;
	struct kube_pages pages;
	struct kube_call *call;
	kube_items_fn *fn;
	void *arg;
};

static void collect_destroy(struct kube_collect *collect)
{
	kube_pages_deinit(&collect->pages);
	free(collect->namespace);
	free(collect->label_selector);
	free(collect->field_selector);
	free(collect);
}

void kube_collect_cancel(struct kube_collect *collect)
{
	if (!collect)
		return;
	kube_call_cancel(collect->call);
	collect_destroy(collect);
}

static void ask(struct kube_collect *collect);

static void on_page(void *arg, struct kube_answer *answer)
{
	struct kube_collect *collect = arg;
	struct error error = {0};
	enum kube_pages_step step = kube_pages_take(&collect->pages, answer, &error);

	collect->call = NULL;
	if (step == KUBE_PAGES_MORE) {
		ask(collect);
		return;
	}
	kube_items_fn *fn = collect->fn;
	void *to = collect->arg;
	CLEANUP(tree) json_t *items = NULL;
	if (step == KUBE_PAGES_DONE)
		items = TAKE(collect->pages.items);
	collect_destroy(collect);
	fn(to, &items, step == KUBE_PAGES_DONE ? NULL : &error);
}

static void ask(struct kube_collect *collect)
{
	struct kube_request request = kube_list(
		collect->resource, &(struct kube_list_options){
					   .namespace = collect->namespace,
					   .label_selector = collect->label_selector,
					   .field_selector = collect->field_selector,
					   .limit = KUBE_PAGES_LIMIT,
					   .continue_token = collect->pages.continue_token,
				   });

	collect->call = kube_send(collect->kube, &request, collect->options, on_page, collect);
}

struct kube_collect *kube_collect(struct kube_client *kube, const struct kube_resource *resource,
				  const struct kube_list_options *query,
				  struct kube_call_options options, kube_items_fn *fn, void *arg)
{
	struct kube_collect *collect = mem_alloc(sizeof *collect);

	*collect = (struct kube_collect){
		.kube = kube,
		.resource = resource,
		.namespace = mem_strdup(query->namespace),
		.label_selector = mem_strdup(query->label_selector),
		.field_selector = mem_strdup(query->field_selector),
		.options = options,
		.fn = fn,
		.arg = arg,
	};
	ask(collect);
	return collect;
}
