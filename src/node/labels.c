#include "node/labels.h"

#include "kube/client.h"
#include "node/core/labels.h"
#include "node/state.h"
#include "sys/log.h"
#include "text/tree.h"

struct labels {
	struct node *node;
	json_t *wanted;  /* when something was asked last; NULL never */
	bool gpus_known; /* then */
	bool heard;      /* then: the control plane had said whose node this is */
	bool withheld;   /* as it hadn't, what differed wasn't changed */
	struct kube_call *call;
	struct mono asked;
	bool node_unknown;
	struct error trouble; /* code NONE: none */
};

static bool know_gpus(const struct node *node)
{
	return source_inventory(node->gpus)->gpus.count > 0 || !source_error(node->gpus);
}

static bool is_stranger(const struct node *node)
{
	return uplink_standing(node->uplink) == UPLINK_STRANGER;
}

static bool is_heard(const struct node *node)
{
	return uplink_standing(node->uplink) != UPLINK_UNHEARD;
}

static json_t *wanted_now(const struct node *node)
{
	const struct inventory *inventory = source_inventory(node->gpus);
	const struct identity *identity = node->identity;

	return labels_wanted(&(struct labels_view){
		.stranger = is_stranger(node),
		.node_id = identity ? identity->node_id : "",
		.site = identity && *identity->site ? identity->site : node->config->site_id,
		.pool = identity ? identity->pool : "",
		.inventory = know_gpus(node) ? inventory : NULL,
	});
}

/* --- what comes of it --- */

static void set_unknown(struct labels *labels, bool unknown)
{
	const char *name = labels->node->config->node_name;

	if (unknown && !labels->node_unknown)
		log_error("labels.node-unknown",
			  "the cluster has no Node of this name: nothing is "
			  "offered",
			  "node", name, NULL);
	if (!unknown && labels->node_unknown)
		log_info("labels.node-unknown", "the Node is there now", "node", name, NULL);
	labels->node_unknown = unknown;
}

static void set_trouble(struct labels *labels, const struct error *error)
{
	if (error && !str_equal(labels->trouble.what, error->what))
		log_failure(LOG_WARN, "labels.api", error, "the Node's labels stay as they are");
	if (!error && labels->trouble.code != ERROR_NONE)
		log_info("labels.api", "it works again", NULL);
	labels->trouble = error ? *error : (struct error){0};
}

/* The Node, or why it isn't there. */
static bool take_answer(struct labels *labels, const struct kube_answer *answer)
{
	labels->call = NULL;
	node_wake(labels->node);
	if (answer->reason != KUBE_DONE && answer->reason != KUBE_NOT_FOUND) {
		set_trouble(labels, &answer->error);
		return false;
	}
	set_unknown(labels, answer->reason == KUBE_NOT_FOUND);
	set_trouble(labels, NULL);
	return answer->reason == KUBE_DONE;
}

static void on_patched(void *arg, struct kube_answer *answer)
{
	struct labels *labels = arg;

	if (!take_answer(labels, answer))
		return;
	log_info("labels.set",
		 json_object_size(labels->wanted) > 0
			 ? "the Node's labels were changed"
			 : "the Node's labels were removed: its control plane has no such node",
		 "node", labels->node->config->node_name, NULL);
}

static void on_node(void *arg, struct kube_answer *answer)
{
	static const struct kube_call_options options = {.priority = KUBE_NORMAL};
	struct labels *labels = arg;
	CLEANUP(tree) json_t *changes = NULL;
	struct kube_request request;

	if (!take_answer(labels, answer))
		return;
	changes = labels_changes(labels->wanted, labels->gpus_known, answer->body);
	if (!changes)
		return;
	/* A node that was retired is started again like any other: it may be one. What is heard meanwhile changes
	 * what is wanted. */
	labels->withheld = !labels->heard;
	if (labels->withheld)
		return;
	request = kube_node_labels(labels->node->config->node_name, changes, NULL);
	labels->call = kube_send(node_kube(labels->node), &request, options, on_patched, labels);
}

/* --- when --- */

static struct mono due(const struct labels *labels, const json_t *wanted, struct mono now)
{
	bool settled = labels->trouble.code == ERROR_NONE && !labels->node_unknown;

	if (!labels->wanted || (labels->withheld && is_heard(labels->node)))
		return now;
	return mono_after(labels->asked, settled && json_equal(wanted, labels->wanted)
						 ? LABELS_CHECK_MS
						 : LABELS_MS);
}

static void ask(struct labels *labels, json_t *wanted, struct mono now)
{
	static const struct kube_call_options options = {.priority = KUBE_NORMAL};
	const struct node *node = labels->node;
	struct kube_request request =
		kube_get((struct kube_ref){&KUBE_NODE, "", node->config->node_name});

	json_decref(labels->wanted);
	labels->wanted = json_incref(wanted);
	labels->gpus_known = is_stranger(node) || know_gpus(node);
	labels->heard = is_heard(node);
	labels->withheld = false;
	labels->asked = now;
	labels->call = kube_send(node_kube(labels->node), &request, options, on_node, labels);
}

void labels_step(struct labels *labels, struct mono now)
{
	struct node *node = labels->node;
	CLEANUP(tree) json_t *wanted = NULL;
	struct mono again;

	if (!*node->config->node_name || !*node->config->kubeconfig || labels->call ||
	    !source_settled(node->gpus))
		return;
	wanted = wanted_now(node);
	again = due(labels, wanted, now);
	if (mono_until(now, again) <= 0)
		ask(labels, wanted, now);
	else
		node_again(node, again);
}

bool labels_node_unknown(const struct labels *labels)
{
	return labels->node_unknown;
}

const struct error *labels_trouble(const struct labels *labels)
{
	return labels->trouble.code != ERROR_NONE ? &labels->trouble : NULL;
}

/* --- life --- */

struct labels *labels_create(struct node *node)
{
	struct labels *labels = mem_alloc(sizeof *labels);

	labels->node = node;
	return labels;
}

void labels_destroy(struct labels *labels)
{
	if (!labels)
		return;
	kube_call_cancel(labels->call);
	json_decref(labels->wanted);
	free(labels);
}
