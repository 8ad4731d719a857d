#include "node/reaper.h"

#include "kube/client.h"
#include "kube/core/pod.h"
#include "kube/events.h"
#include "node/core/reap.h"
#include "node/state.h"
#include "sys/log.h"
#include "text/tree.h"

#include <stdio.h>

#define PODS_MS 5000 /* so long a list of pods is believed */

/* One that is under way. */
struct deletion {
	struct reaper *reaper;
	struct reap_deletion what;
	struct kube_call *call;
};

/* Why a pod may stay that was deleted: it is static, or somebody's finalizer keeps it. */
struct obstacle {
	char uid[REAP_UID_SIZE]; /* the kubelet's */
	char source[16];         /* of a static pod */
	char finalizer[REAP_NAME_SIZE];
};

struct reaper {
	struct node *node;
	struct reap *reap;
	struct kube_client *kube; /* NULL until somebody is due */
	struct kube_events *events;
	struct kube_collect *asking;
	struct mono asked;         /* when the question under way was asked */
	struct mono ask_after;     /* after one that failed */
	json_t *items;             /* the last list; NULL none */
	VEC(struct reap_pod) pods; /* borrowed from it */
	struct mono pods_asked;
	VEC(struct obstacle) obstacles; /* of the last list */
	VEC(struct deletion *) deletions;
	/* Of lists and of deletions; code NONE: none. */
	struct error list_trouble, trouble;
};

/* --- the pods of this node --- */

static void forget_pods(struct reaper *reaper)
{
	json_decref(TAKE(reaper->items));
	vec_clear(&reaper->pods);
}

static bool take_pod(struct reaper *reaper, const json_t *item, struct error *error)
{
	struct kube_pod pod;

	if (!kube_pod_read(item, &pod, error))
		return error_wrap(error, "the API server's list of pods");
	*vec_push(&reaper->pods) = (struct reap_pod){
		.uid = pod.uid,
		.static_uid = pod.static_uid,
		.namespace = pod.namespace,
		.name = pod.name,
		.deleting = pod.deleting,
		.deletion = pod.deletion,
		.grace_s = pod.grace_s,
	};
	if (*pod.static_uid || *pod.finalizer) {
		struct obstacle *obstacle = vec_push(&reaper->obstacles);

		str_copy(obstacle->uid, sizeof obstacle->uid,
			 *pod.static_uid ? pod.static_uid : pod.uid);
		str_copy(obstacle->source, sizeof obstacle->source, pod.static_source);
		str_copy(obstacle->finalizer, sizeof obstacle->finalizer, pod.finalizer);
	}
	return true;
}

static void set_trouble(struct error *trouble, const struct error *error)
{
	if (!str_equal(trouble->what, error->what))
		log_failure(LOG_WARN, "reaper.api", error,
			    "no pod is deleted; what pods hold stays held");
	*trouble = *error;
}

static void on_pods(void *arg, json_t **items, const struct error *failure)
{
	struct reaper *reaper = arg;
	struct error error = {0};
	bool good = *items;

	reaper->asking = NULL;
	forget_pods(reaper);
	vec_clear(&reaper->obstacles);
	if (!good)
		error = *failure;
	for (size_t i = 0; good && i < json_array_size(*items); i++)
		good = take_pod(reaper, json_array_get(*items, i), &error);
	if (good) {
		reaper->items = TAKE(*items);
		reaper->pods_asked = reaper->asked;
		reaper->list_trouble = (struct error){0};
	} else {
		vec_clear(&reaper->pods);
		reaper->ask_after = mono_after(loop_now(reaper->node->loop), REAP_RETRY_MS);
		set_trouble(&reaper->list_trouble, &error);
	}
	node_wake(reaper->node);
}

static void connect_api(struct reaper *reaper)
{
	const struct config *config = reaper->node->config;
	const struct credentials_options options = {.kubeconfig = config->kubeconfig};

	if (reaper->kube)
		return;
	reaper->kube = kube_client_create(reaper->node->loop, &options);
	reaper->events = kube_events_create(reaper->kube, reaper->node->loop, config->node_name);
}

static void ask_for_pods(struct reaper *reaper, struct mono now)
{
	const char *name = reaper->node->config->node_name;
	CLEANUP(buf) struct buf selector = {0};
	struct error error;

	if (reaper->asking)
		return;
	if (mono_until(now, reaper->ask_after) > 0) {
		node_again(reaper->node, reaper->ask_after);
		return;
	}
	if (!*name) {
		error_set(&error, ERROR_INVALID_CONFIG, "kubernetes.node_name isn't set");
		set_trouble(&reaper->list_trouble, &error);
		return;
	}
	connect_api(reaper);
	buf_printf(&selector, "spec.nodeName=%s", name);
	reaper->asked = now;
	reaper->asking =
		kube_collect(reaper->kube, &KUBE_POD,
			     &(struct kube_list_options){.field_selector = buf_text(&selector)},
			     (struct kube_call_options){.priority = KUBE_URGENT}, on_pods, reaper);
}

/* --- deleting --- */

static void log_deletion(const struct reap_deletion *what)
{
	char grace[16];

	snprintf(grace, sizeof grace, "%d", what->forced ? 0 : REAP_GRACE_S);
	log_warn("reaper.delete", "a pod is deleted", "namespace", what->namespace, "pod",
		 what->name, "uid", what->uid, "device", what->device, "allocation",
		 what->allocation, "reason", what->why, "graceSeconds", grace, NULL);
}

static void tell_event(struct reaper *reaper, const struct reap_deletion *what)
{
	CLEANUP(buf) struct buf note = {0};

	buf_printf(&note, "bcd deleted this pod%s: %s: %s", what->forced ? " by force" : "",
		   what->why, what->device);
	kube_events_tell(reaper->events,
			 &(struct kube_event){
				 .regarding = {&KUBE_POD, what->namespace, what->name},
				 .uid = what->uid,
				 .warning = true,
				 .reason = "DeviceReleased",
				 .action = what->forced ? "ForceDelete" : "Delete",
				 .note = buf_text(&note),
			 });
}

static enum reap_outcome outcome_of(struct reaper *reaper, const struct kube_answer *answer)
{
	if (!kube_answer_deleted(answer)) {
		set_trouble(&reaper->trouble, &answer->error);
		return REAP_FAILED;
	}
	reaper->trouble = (struct error){0};
	return answer->reason == KUBE_DONE ? REAP_DELETED : REAP_GONE;
}

static void on_deleted(void *arg, struct kube_answer *answer)
{
	struct deletion *deletion = arg;
	struct reaper *reaper = deletion->reaper;
	enum reap_outcome outcome = outcome_of(reaper, answer);

	if (outcome == REAP_DELETED)
		tell_event(reaper, &deletion->what);
	reap_told(reaper->reap, deletion->what.holder, outcome, loop_now(reaper->node->loop));
	for (size_t i = 0; i < reaper->deletions.count; i++) {
		if (reaper->deletions.items[i] != deletion)
			continue;
		vec_remove(&reaper->deletions, i);
		break;
	}
	free(deletion);
	node_wake(reaper->node);
}

static void start_deletion(struct reaper *reaper, const struct reap_deletion *what)
{
	struct deletion *deletion = mem_alloc(sizeof *deletion);
	const struct kube_delete_options options = {
		.uid = what->uid,
		.grace_period_s = what->forced ? 0 : REAP_GRACE_S,
	};
	struct kube_request request =
		kube_delete((struct kube_ref){&KUBE_POD, what->namespace, what->name}, &options);

	log_deletion(what);
	*vec_push(&reaper->deletions) = deletion;
	deletion->reaper = reaper;
	deletion->what = *what;
	deletion->call = kube_send(reaper->kube, &request,
				   (struct kube_call_options){.priority = KUBE_URGENT}, on_deleted,
				   deletion);
}

/* --- the view --- */

/* Texts are borrowed from the node. */
struct view {
	VEC(struct reap_holder) holders;
	VEC(struct reap_release) releases;
	VEC(const char *) bound;
};

static void view_cleanup(struct view *view)
{
	vec_deinit(&view->holders);
	vec_deinit(&view->releases);
	vec_deinit(&view->bound);
}

/* By the Spec on disk, or the one that is being written. */
static bool is_wanted(const struct node *node, const char *allocation)
{
	return (node->spec && spec_find(node->spec, allocation)) ||
	       (node->write.spec && spec_find(node->write.spec, allocation));
}

static void see_holders(struct view *view, const struct node *node)
{
	vec_each (&node->listing.holders, const struct holder *holder) {
		const char *allocation = holds_id_allocation(holder->id);

		if (allocation)
			*vec_push(&view->holders) = (struct reap_holder){
				.uid = holder->uid,
				.namespace = holder->namespace ? holder->namespace : "",
				.name = holder->pod ? holder->pod : "",
				.allocation = allocation,
				.device = holder->id,
			};
	}
}

static void see_releases(struct view *view, const struct node *node, struct mono now)
{
	vec_each (&node->releases.entries, const struct release_entry *entry)
		if (!entry->reported && !is_wanted(node, entry->allocation))
			*vec_push(&view->releases) = (struct reap_release){
				.allocation = entry->allocation,
				.asked = release_asked(entry, node->boot_id, now),
				.since = {entry->since * 1000},
				.this_boot = str_equal(entry->boot_id, node->boot_id),
			};
}

/* What isn't bound yet but wanted is nobody's reason to end a pod (REL-25). */
static void see_bound(struct view *view, const struct node *node)
{
	vec_each (&node->holds, const struct hold *hold)
		*vec_push(&view->bound) = hold->allocation;
	for (size_t i = 0; node->spec && i < node->spec->assignments.count; i++)
		*vec_push(&view->bound) = node->spec->assignments.items[i].allocation;
	for (size_t i = 0; node->write.spec && i < node->write.spec->assignments.count; i++)
		*vec_push(&view->bound) = node->write.spec->assignments.items[i].allocation;
}

static struct reap_view view_of(const struct reaper *reaper, const struct view *view,
				struct mono now)
{
	const struct node *node = reaper->node;

	return (struct reap_view){
		.listed = node->answered_how == RELEASE_ANSWER_FREE,
		.listed_at = node->listed_at,
		.holders = view->holders.items,
		.holders_count = view->holders.count,
		.releases = view->releases.items,
		.releases_count = view->releases.count,
		.bound_known =
			node->holds_error.code == ERROR_NONE && node->spec_error.code == ERROR_NONE,
		.bound = view->bound.items,
		.bound_count = view->bound.count,
		.pods_known = reaper->items && mono_until(reaper->pods_asked, now) < PODS_MS,
		.pods_asked = reaper->pods_asked,
		.pods = reaper->pods.items,
		.pods_count = reaper->pods.count,
		.wall = clock_wall(),
	};
}

void reaper_step(struct reaper *reaper, struct mono now)
{
	struct node *node = reaper->node;
	CLEANUP(reap_plan) struct reap_plan plan = {0};
	CLEANUP(view) struct view seen = {0};
	struct reap_view view;

	if (!release_is_worker(node))
		return;
	if (mono_until(reaper->pods_asked, now) >= PODS_MS)
		forget_pods(reaper);
	see_holders(&seen, node);
	see_releases(&seen, node, now);
	see_bound(&seen, node);
	view = view_of(reaper, &seen, now);
	reap_decide(reaper->reap, &view, now, &plan);
	vec_each (&plan.deletions, const struct reap_deletion *what)
		start_deletion(reaper, what);
	if (plan.need_pods)
		ask_for_pods(reaper, now);
	if (reap_idle(reaper->reap))
		reaper->list_trouble = reaper->trouble = (struct error){0};
	if (plan.again.ms != INT64_MAX)
		node_again(node, plan.again);
}

/* --- for people --- */

static void describe_obstacle(const struct reaper *reaper, const char *uid, struct buf *out)
{
	vec_each (&reaper->obstacles, const struct obstacle *obstacle) {
		if (!str_equal(obstacle->uid, uid))
			continue;
		if (*obstacle->source)
			buf_printf(out, " (the kubelet has it from: %s)", obstacle->source);
		if (*obstacle->finalizer)
			buf_printf(out, " (its finalizer '%s' keeps it)", obstacle->finalizer);
	}
}

void clingers_deinit(struct clingers *clingers)
{
	vec_each (clingers, struct clinger * clinger) {
		free(clinger->name);
		free(clinger->state);
	}
	vec_deinit(clingers);
}

static void add_holder(const struct reaper *reaper, const struct holder *holder,
		       struct clingers *clingers)
{
	enum reap_state state = reap_state(reaper->reap, holder->uid);
	struct clinger *clinger = vec_push(clingers);
	struct buf text = {0};

	if (state != REAP_NOTHING)
		buf_add_text(&text, reap_state_name(state));
	if (state != REAP_NOTHING && state != REAP_HOLDING)
		describe_obstacle(reaper, holder->uid, &text);
	clinger->name = mem_strdup(holder->name);
	clinger->uid = holder->uid;
	str_copy(clinger->id, sizeof clinger->id, holder->id);
	clinger->state = buf_take_text(&text);
	clinger->timed = reap_next(reaper->reap, holder->uid, &clinger->due);
}

/* A process of somebody who isn't among them yet. */
static void add_process(const struct podprocesses_holder *process, const char *id,
			struct clingers *clingers)
{
	char name[PODPROCESSES_NAME_SIZE];
	struct clinger *clinger;

	vec_each (clingers, const struct clinger *known)
		if (str_equal(known->uid, process->of.pod))
			return;
	podprocesses_name(name, process);
	clinger = vec_push(clingers);
	clinger->name = mem_strdup(name);
	clinger->uid = process->of.pod;
	str_copy(clinger->id, sizeof clinger->id, id);
	clinger->state = mem_strdup("has it open; bcd ends no process");
}

void reaper_clingers(const struct reaper *reaper, const struct release_entry *entry,
		     struct clingers *ret_clingers)
{
	const struct node *node = reaper->node;

	vec_each (&node->listing.holders, const struct holder *holder) {
		const char *of = holds_id_allocation(holder->id);

		if (of && str_equal(of, entry->allocation))
			add_holder(reaper, holder, ret_clingers);
	}
	vec_each (&entry->devices, const struct release_device *released) {
		const struct hold_device device = {.atom = released->atom};
		char id[HOLDS_ID_SIZE];

		holds_device_id(id, &device, entry->allocation);
		vec_each (&node->processes.holders, const struct podprocesses_holder *process)
			if (released->atom.class == ATOM_GPU && !entry->reported &&
			    memcmp(process->gpu.bytes, released->atom.gpu.bytes, ATOM_UUID_BYTES) ==
				    0)
				add_process(process, id, ret_clingers);
	}
}

const struct error *reaper_trouble(const struct reaper *reaper)
{
	return reaper->list_trouble.code != ERROR_NONE ? &reaper->list_trouble
	       : reaper->trouble.code != ERROR_NONE    ? &reaper->trouble
						       : NULL;
}

/* --- life --- */

struct reaper *reaper_create(struct node *node)
{
	struct reaper *reaper = mem_alloc(sizeof *reaper);

	reaper->node = node;
	reaper->reap = reap_create();
	return reaper;
}

void reaper_destroy(struct reaper *reaper)
{
	if (!reaper)
		return;
	kube_collect_cancel(reaper->asking);
	vec_each (&reaper->deletions, struct deletion * *deletion) {
		kube_call_cancel((*deletion)->call);
		free(*deletion);
	}
	vec_deinit(&reaper->deletions);
	kube_events_destroy(reaper->events);
	kube_client_destroy(reaper->kube);
	forget_pods(reaper);
	vec_deinit(&reaper->pods);
	vec_deinit(&reaper->obstacles);
	reap_destroy(reaper->reap);
	free(reaper);
}
