#include "node/podwatch.h"

#include "kube/watch.h"
#include "node/state.h"
#include "sys/log.h"

struct podwatch {
	struct node *node;
	struct kube_watch *watch; /* NULL: nothing need be heard */
};

/* Who can see processes needs no word, and without a device nobody holds one. */
static bool is_needed(const struct node *node)
{
	return node->blind && *node->config->node_name && *node->config->kubeconfig &&
	       (node->holds.count > 0 || node->releases.entries.count > 0 ||
		node->unlisted.count > 0 || node->users.count > 0);
}

static void on_event(void *arg, enum kube_watch_kind kind, json_t *object)
{
	const struct podwatch *watch = arg;
	struct kube_pod pod;
	struct error error; /* the lists tell of it */

	if (!kube_pod_read(object, &pod, &error))
		return;
	unlisted_on_word(watch->node, &pod, kind == KUBE_WATCH_DELETED);
	node_wake(watch->node);
}

static void on_state(void *arg UNUSED, const struct error *error)
{
	if (error)
		log_failure(LOG_WARN, "podwatch.api", error,
			    "the last word of a pod may be missed: what it had is released "
			    "then once its grace is over");
	else
		log_info("podwatch.api", "pods are heard as they change", NULL);
}

static void start(struct podwatch *watch)
{
	CLEANUP(buf) struct buf selector = {0};

	buf_printf(&selector, "spec.nodeName=%s", watch->node->config->node_name);
	watch->watch =
		kube_watch_start(node_kube(watch->node), &KUBE_POD,
				 &(struct kube_list_options){.field_selector = buf_text(&selector)},
				 on_event, on_state, watch);
}

void podwatch_step(struct podwatch *watch)
{
	bool needed = is_needed(watch->node);

	if (needed && !watch->watch)
		start(watch);
	if (!needed)
		kube_watch_stop(TAKE(watch->watch));
}

void podwatch_hurry(struct podwatch *watch)
{
	kube_watch_hurry(watch->watch);
}

bool podwatch_is_live(const struct podwatch *watch)
{
	return kube_watch_live(watch->watch);
}

struct podwatch *podwatch_create(struct node *node)
{
	struct podwatch *watch = mem_alloc(sizeof *watch);

	watch->node = node;
	return watch;
}

void podwatch_destroy(struct podwatch *watch)
{
	if (!watch)
		return;
	kube_watch_stop(watch->watch);
	free(watch);
}
