#include "node/podlist.h"

#include "kube/client.h"
#include "node/podclaims.h"
#include "node/state.h"
#include "node/staticpods.h"
#include "sys/log.h"
#include "text/tree.h"

#define PODS_MS 5000 /* so long a list is believed */

/* Why a pod may stay that was deleted: it is static, or somebody's finalizer keeps it. */
struct obstacle {
	char uid[REAP_UID_SIZE];           /* the kubelet's */
	char source[16];                   /* of a static pod */
	char manifest[STATICPOD_MAX_PATH]; /* its file; "" not found */
	char finalizer[REAP_NAME_SIZE];
};

struct podlist {
	struct node *node;
	struct reap *reap; /* who is in the way */
	struct kube_collect *asking;
	struct mono asked;                  /* when the question under way was asked */
	struct mono ask_after;              /* after one that failed */
	json_t *items;                      /* the last list; NULL none */
	VEC(struct reap_pod) pods;          /* borrowed from it */
	VEC(struct unlisted_listed) listed; /* the same, while it is taken in */
	struct podclaims *podclaims;        /* of it */
	bool here;                          /* list and claims */
	bool unread; /* some pod of it: who isn't among the others may be it */
	struct mono pods_asked;
	VEC(struct obstacle) obstacles; /* of the last list */
	struct error trouble;           /* code NONE: none */
};

static void forget(struct podlist *list)
{
	podclaims_forget(list->podclaims);
	list->here = false;
	json_decref(TAKE(list->items));
	vec_clear(&list->pods);
}

/* Of this node's mirrors only those that are in the way are told of, so few are asked for. */
static void find_manifest(const struct podlist *list, const struct kube_pod *pod,
			  struct obstacle *obstacle)
{
	const struct config *config = list->node->config;
	const struct staticpods_question question = {
		.root = config->root,
		.kubelet = config->kubelet,
		.node = config->node_name,
		.namespace = pod->namespace,
		.mirror = pod->name,
	};

	if (reap_state(list->reap, pod->static_uid) == REAP_NOTHING ||
	    !str_equal(pod->static_source, "file") ||
	    !staticpods_find(&question, obstacle->manifest))
		*obstacle->manifest = '\0';
}

static bool take_pod(struct podlist *list, const json_t *item, struct error *error)
{
	struct kube_pod pod;

	if (!kube_pod_read(item, &pod, error))
		return false;
	*vec_push(&list->pods) = (struct reap_pod){
		.uid = pod.uid,
		.static_uid = pod.static_uid,
		.namespace = pod.namespace,
		.name = pod.name,
		.deleting = pod.deleting,
		.deletion = pod.deletion,
		.grace_s = pod.grace_s,
	};
	*vec_push(&list->listed) = unlisted_of(&pod);
	if (*pod.static_uid || *pod.finalizer) {
		struct obstacle *obstacle = vec_push(&list->obstacles);

		str_copy(obstacle->uid, sizeof obstacle->uid,
			 *pod.static_uid ? pod.static_uid : pod.uid);
		str_copy(obstacle->source, sizeof obstacle->source, pod.static_source);
		str_copy(obstacle->finalizer, sizeof obstacle->finalizer, pod.finalizer);
		if (*pod.static_uid)
			find_manifest(list, &pod, obstacle);
	}
	return true;
}

static void note_trouble(struct error *trouble, const struct error *error, const char *follows)
{
	if (!str_equal(trouble->what, error->what))
		log_failure(LOG_WARN, "reaper.api", error, follows);
	*trouble = *error;
}

void podlist_note_trouble(struct error *trouble, const struct error *error)
{
	note_trouble(trouble, error, "no pod is deleted; what pods hold stays held");
}

static void on_claims(void *arg, const struct error *trouble)
{
	struct podlist *list = arg;

	if (trouble)
		podlist_note_trouble(&list->trouble, trouble);
	list->here = true;
	list->pods_asked = list->asked;
	node_wake(list->node);
}

/* As far as it says itself who it is. */
static const char *text_in(const json_t *item, const char *name)
{
	const char *text =
		json_string_value(json_object_get(json_object_get(item, "metadata"), name));

	return text && *text && strlen(text) < REAP_NAME_SIZE &&
			       !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.")]
		       ? text
		       : "?";
}

/* One that can't be read costs itself, no other; but then it can't be told who is gone. */
static void take_pods(struct podlist *list, struct mono now)
{
	struct error first = {0};

	for (size_t i = 0; i < json_array_size(list->items);) {
		const json_t *item = json_array_get(list->items, i);
		struct error error;

		if (take_pod(list, item, &error)) {
			i++;
			continue;
		}
		if (first.code == ERROR_NONE) {
			first = error;
			error_wrap(&first, "the API server's list of pods: '%s/%s' can't be read",
				   text_in(item, "namespace"), text_in(item, "name"));
		}
		json_array_remove(list->items, i);
	}
	list->unread = first.code != ERROR_NONE;
	if (list->unread) {
		list->ask_after = mono_after(now, REAP_RETRY_MS);
		note_trouble(&list->trouble, &first,
			     "it can't be told which pods are gone; what they had stays held");
		return;
	}
	list->trouble = (struct error){0};
	unlisted_on_pods(list->node, list->listed.items, list->listed.count, list->asked);
}

static void on_pods(void *arg, json_t **items, const struct error *failure)
{
	struct podlist *list = arg;
	struct mono now = loop_now(list->node->loop);

	list->asking = NULL;
	forget(list);
	vec_clear(&list->obstacles);
	vec_clear(&list->listed);
	if (*items) {
		list->items = TAKE(*items);
		take_pods(list, now);
		podwatch_hurry(list->node->podwatch);
		podclaims_ask(list->podclaims, node_kube(list->node), &list->node->listing,
			      list->items);
	} else {
		list->ask_after = mono_after(now, REAP_RETRY_MS);
		podlist_note_trouble(&list->trouble, failure);
	}
	node_wake(list->node);
}

/* False, with the trouble set: there is nobody to ask. */
static bool connect_api(struct podlist *list)
{
	const struct config *config = list->node->config;
	struct error error;

	if (!*config->node_name)
		error_set(&error, ERROR_INVALID_CONFIG, "kubernetes.node_name isn't set");
	else if (!*config->kubeconfig)
		error_set(&error, ERROR_INVALID_CONFIG, "kubernetes.kubeconfig is empty");
	else
		return true;
	error_hint(&error,
		   "Set it in config.toml: bcd deletes pods as the kubelet, by its kubeconfig.");
	podlist_note_trouble(&list->trouble, &error);
	return false;
}

void podlist_ask(struct podlist *list, struct mono now)
{
	CLEANUP(buf) struct buf selector = {0};

	if (list->asking || podclaims_asking(list->podclaims))
		return;
	if (mono_until(now, list->ask_after) > 0) {
		node_again(list->node, list->ask_after);
		return;
	}
	if (!connect_api(list))
		return;
	buf_printf(&selector, "spec.nodeName=%s", list->node->config->node_name);
	list->asked = now;
	list->asking =
		kube_collect(node_kube(list->node), &KUBE_POD,
			     &(struct kube_list_options){.field_selector = buf_text(&selector)},
			     (struct kube_call_options){.priority = KUBE_URGENT}, on_pods, list);
}

void podlist_describe(const struct podlist *list, const char *uid, struct buf *out)
{
	vec_each (&list->obstacles, const struct obstacle *obstacle) {
		if (!str_equal(obstacle->uid, uid))
			continue;
		if (*obstacle->manifest)
			buf_printf(out, " (%s)", obstacle->manifest);
		else if (*obstacle->source)
			buf_printf(out, " (the kubelet has it from: %s)", obstacle->source);
		if (*obstacle->finalizer)
			buf_printf(out, " (its finalizer '%s' keeps it)", obstacle->finalizer);
	}
}

bool podlist_here(const struct podlist *list)
{
	return list->here;
}

bool podlist_whole(const struct podlist *list)
{
	return list->here && !list->unread;
}

struct mono podlist_asked(const struct podlist *list)
{
	return list->pods_asked;
}

const struct reap_pod *podlist_pods(const struct podlist *list, size_t *ret_count)
{
	*ret_count = list->pods.count;
	return list->pods.items;
}

bool podlist_has_claim(const struct podlist *list, size_t pod, const struct holder *holder)
{
	return podclaims_has(list->podclaims, holder, json_array_get(list->items, pod));
}

bool podlist_claim_unasked(const struct podlist *list, const struct holder *holder)
{
	return list->here && !podclaims_asked(list->podclaims, holder) &&
	       podclaims_named(holder, list->items);
}

const struct error *podlist_trouble(const struct podlist *list)
{
	return list->trouble.code != ERROR_NONE ? &list->trouble : NULL;
}

void podlist_age(struct podlist *list, struct mono now)
{
	if (list->here && mono_until(list->pods_asked, now) >= PODS_MS)
		forget(list);
}

void podlist_not_needed(struct podlist *list)
{
	list->trouble = (struct error){0};
}

struct podlist *podlist_create(struct node *node, struct reap *reap)
{
	struct podlist *list = mem_alloc(sizeof *list);

	list->node = node;
	list->reap = reap;
	list->podclaims = podclaims_create(on_claims, list);
	return list;
}

void podlist_destroy(struct podlist *list)
{
	if (!list)
		return;
	kube_collect_cancel(list->asking);
	forget(list);
	podclaims_destroy(list->podclaims);
	vec_deinit(&list->pods);
	vec_deinit(&list->listed);
	vec_deinit(&list->obstacles);
	free(list);
}
