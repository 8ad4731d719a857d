#include "node/reaper.h"

#include "kube/client.h"
#include "kube/events.h"
#include "node/core/clinging.h"
#include "node/core/reap.h"
#include "node/podlist.h"
#include "node/state.h"
#include "sys/durable.h"
#include "sys/log.h"

#include <stdio.h>

_Static_assert(REAP_IN_FLIGHT <= KUBE_IN_FLIGHT, "deletions must not wait for each other");

/* One that is under way. */
struct deletion {
	struct reaper *reaper;
	struct reap_deletion what;
	struct kube_call *call;
};

struct reaper {
	struct node *node;
	struct reap *reap;
	struct podlist *pods;
	struct kube_events *events; /* NULL until a pod was deleted */
	VEC(struct deletion *) deletions;
	struct error trouble; /* of deletions; code NONE: none */
};

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

	if (!reaper->events)
		reaper->events = kube_events_create(node_kube(reaper->node), reaper->node->loop,
						    reaper->node->config->node_name);
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
		podlist_note_trouble(&reaper->trouble, &answer->error);
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
	deletion->call = kube_send(node_kube(reaper->node), &request,
				   (struct kube_call_options){.priority = KUBE_URGENT}, on_deleted,
				   deletion);
}

/* --- the view --- */

/* Texts are borrowed from the node. */
struct view {
	VEC(struct reap_holder) holders;
	VEC(struct reap_release) releases;
	VEC(const char *) bound;
	bool unasked; /* some claim of a known pod hasn't been asked for */
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

/* Whose device it is. What nothing here knows of is bound nowhere. */
static const char *allocation_of(const struct node *node, const char *id)
{
	const char *named = holds_id_allocation(id);

	if (named)
		return named;
	vec_each (&node->releases.entries, const struct release_entry *entry)
		if (holds_id_is_of(id, entry->allocation))
			return entry->allocation;
	vec_each (&node->holds, const struct hold *hold)
		if (holds_id_is_of(id, hold->allocation))
			return hold->allocation;
	for (size_t i = 0; node->spec && i < node->spec->assignments.count; i++)
		if (holds_id_is_of(id, node->spec->assignments.items[i].allocation))
			return node->spec->assignments.items[i].allocation;
	for (size_t i = 0; node->write.spec && i < node->write.spec->assignments.count; i++)
		if (holds_id_is_of(id, node->write.spec->assignments.items[i].allocation))
			return node->write.spec->assignments.items[i].allocation;
	return id;
}

/* Who has the claim, as far as the pods are known; nobody: the claim alone. */
static void see_claim(struct view *view, const struct reaper *reaper, const struct holder *holder,
		      struct reap_holder seen)
{
	size_t before = view->holders.count, count;
	const struct reap_pod *pods = podlist_pods(reaper->pods, &count);

	view->unasked |= podlist_claim_unasked(reaper->pods, holder);
	for (size_t i = 0; podlist_here(reaper->pods) && i < count; i++) {
		if (!podlist_has_claim(reaper->pods, i, holder))
			continue;
		seen.uid = pods[i].uid;
		*vec_push(&view->holders) = seen;
	}
	if (view->holders.count == before)
		*vec_push(&view->holders) = seen;
}

static void see_holders(struct view *view, const struct reaper *reaper)
{
	vec_each (&reaper->node->listing.holders, const struct holder *holder) {
		const struct reap_holder seen = {
			.uid = holder->uid,
			.namespace = holder->namespace ? holder->namespace : "",
			.name = holder->pod ? holder->pod : "",
			.allocation = allocation_of(reaper->node, holder->id),
			.device = holder->id,
			.claim = holder->claim,
			.unlisted = holder->unlisted,
		};

		if (holder->claim)
			see_claim(view, reaper, holder, seen);
		else
			*vec_push(&view->holders) = seen;
	}
}

/* Who had a device and is there yet, though nothing names it as a holder any more: it may have it open. */
static void see_users(struct view *view, const struct node *node)
{
	vec_each (&node->releases.entries, const struct release_entry *entry) {
		struct release_pods pods = {0};

		if (entry->reported)
			continue;
		release_pods(node, entry, &pods);
		vec_each (&pods, const struct release_pod *pod) {
			const struct unlisted_pod *had = unlisted_find(&node->unlisted, pod->uid);

			if (unlisted_clings(node, pod->uid))
				*vec_push(&view->holders) = (struct reap_holder){
					.uid = had->uid,
					.namespace = "",
					.name = "",
					.allocation = entry->allocation,
					.device = entry->allocation,
					.unlisted = true,
				};
		}
		vec_deinit(&pods);
	}
}

/* What could not be withdrawn yet is bound: whoever ends a pod for it makes room for the next one. */
static void see_releases(struct view *view, const struct node *node)
{
	if (node->unread)
		return; /* it may be wanted again */
	vec_each (&node->releases.entries, const struct release_entry *entry)
		if (!entry->reported && !is_wanted(node, entry->allocation) &&
		    !holds_find(&node->holds, entry->allocation))
			*vec_push(&view->releases) = (struct reap_release){
				.allocation = entry->allocation,
				.asked = {entry->since_boot_ms},
				.since = {entry->since * 1000},
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

static struct reap_view view_of(const struct reaper *reaper, const struct view *view)
{
	const struct node *node = reaper->node;
	size_t count;
	const struct reap_pod *pods = podlist_pods(reaper->pods, &count);

	return (struct reap_view){
		.listed = node->answered_how == RELEASE_ANSWER_FREE,
		.listed_at = node->listed_at,
		.holders = view->holders.items,
		.holders_count = view->holders.count,
		.releases = view->releases.items,
		.releases_count = view->releases.count,
		.bound_known = node->holds_error.code == ERROR_NONE &&
			       node->spec_error.code == ERROR_NONE && !node->unread,
		.bound = view->bound.items,
		.bound_count = view->bound.count,
		.pods_known = podlist_here(reaper->pods) && !view->unasked,
		.pods_partial = !podlist_whole(reaper->pods),
		.pods_asked = podlist_asked(reaper->pods),
		.pods = pods,
		.pods_count = count,
		.wall = clock_wall(),
	};
}

void reaper_step(struct reaper *reaper, struct mono now)
{
	struct node *node = reaper->node;
	CLEANUP(reap_plan) struct reap_plan plan = {0};
	CLEANUP(view) struct view seen = {0};
	struct reap_view view;
	bool need_pods;

	if (!release_is_worker(node))
		return;
	podlist_age(reaper->pods, now);
	see_holders(&seen, reaper);
	see_users(&seen, node);
	see_releases(&seen, node);
	see_bound(&seen, node);
	view = view_of(reaper, &seen);
	reap_decide(reaper->reap, &view, now, &plan);
	vec_each (&plan.deletions, const struct reap_deletion *what)
		start_deletion(reaper, what);
	need_pods = unlisted_need_pods(node, now) || plan.need_pods;
	if (need_pods)
		podlist_ask(reaper->pods, now);
	if (reap_idle(reaper->reap) && !need_pods) {
		podlist_not_needed(reaper->pods);
		reaper->trouble = (struct error){0};
	}
	if (plan.again.ms != INT64_MAX)
		node_again(node, plan.again);
}

/* --- for people --- */

void clingers_deinit(struct clingers *clingers)
{
	vec_each (clingers, struct clinger * clinger) {
		free(clinger->name);
		free(clinger->state);
		free(clinger->plan);
	}
	vec_deinit(clingers);
}

/* What is due and can't be done; the condition says why. */
static bool is_refused(const struct reaper *reaper, struct mono due)
{
	return reaper_trouble(reaper) && mono_until(loop_now(reaper->node->loop), due) <= 0;
}

/* From the beginning nothing comes of it here, and nobody is to wait for it: what a person does. False: bcd has
 * whom to ask. */
static bool is_powerless(const struct reaper *reaper, struct buf *what_to_do)
{
	const struct config *config = reaper->node->config;
	bool one_file = !strchr(config->kubeconfig, ':');

	if (!*config->node_name)
		buf_add_text(what_to_do, "bcd can't end it, kubernetes.node_name isn't set: delete "
					 "the pod, or set it");
	else if (!*config->kubeconfig)
		buf_add_text(what_to_do, "bcd can't end it, kubernetes.kubeconfig is empty: delete "
					 "the pod, or name the kubelet's kubeconfig there");
	else if (one_file && durable_absent(config->kubeconfig))
		buf_printf(what_to_do,
			   "bcd can't end it, there is no kubeconfig at '%s': delete the pod, or "
			   "give bcd the kubelet's ([kubernetes] kubeconfig)",
			   config->kubeconfig);
	return what_to_do->length > 0;
}

static const char *refused_name(enum reap_state state)
{
	return state == REAP_ASKED ? "asked to go, and can't be forced (KubernetesApiUnavailable)"
				   : "can't be asked to go (KubernetesApiUnavailable)";
}

/* Whom the reaper may end. */
struct cling {
	const char *name, *uid, *id;
	const char *key;   /* of the reaper: its UID, or its claim's */
	const char *known; /* of its end; "": the kubelet lists it */
};

/* How it stands with it: its state alone, or with times. */
static char *describe_state(const struct reaper *reaper, const struct cling *cling,
			    const char *state, bool done)
{
	struct buf text = {0};

	buf_add_text(&text, cling->known);
	if (*state)
		buf_printf(&text, "%s%s", text.length > 0 ? "; " : "", state);
	if (done)
		podlist_describe(reaper->pods, cling->uid, &text);
	return buf_take_text(&text);
}

static void add_clinger(const struct reaper *reaper, const struct cling *cling, struct wall since,
			struct clingers *clingers)
{
	enum reap_state state = reap_state(reaper->reap, cling->key);
	struct clinger *clinger = vec_push(clingers);
	struct mono due = {0};
	struct reap_times times;
	CLEANUP(buf) struct buf plan = {0}, what_to_do = {0};
	bool powerless = state == REAP_HOLDING && is_powerless(reaper, &what_to_do);
	bool timed = !powerless && reap_next(reaper->reap, cling->key, &due);
	bool refused = timed && is_refused(reaper, due);
	bool done = state != REAP_NOTHING && state != REAP_HOLDING;
	const char *name = powerless               ? buf_text(&what_to_do)
			   : state == REAP_NOTHING ? ""
						   : reap_state_name(state);

	if (!powerless && !refused && reap_times(reaper->reap, cling->key, &times))
		clinging_plan(state, &times, since, &plan);
	clinger->state = describe_state(reaper, cling, refused ? refused_name(state) : name, done);
	clinger->plan = plan.length > 0 ? describe_state(reaper, cling, buf_text(&plan), done)
					: mem_strdup(clinger->state);
	clinger->name = mem_strdup(cling->name);
	clinger->uid = cling->uid;
	str_copy(clinger->id, sizeof clinger->id, cling->id);
	clinger->timed = timed;
	clinger->due = due;
	clinger->forced = state == REAP_ASKED;
}

static void add_holder(const struct reaper *reaper, const struct holder *holder, struct wall since,
		       struct clingers *clingers)
{
	CLEANUP(buf) struct buf known = {0};

	if (holder->unlisted)
		unlisted_describe(reaper->node, holder, &known);
	add_clinger(reaper,
		    &(struct cling){.name = holder->name,
				    .uid = holder->uid,
				    .id = holder->id,
				    .key = holder->claim ? holder->claim : holder->uid,
				    .known = buf_text(&known)},
		    since, clingers);
}

static bool is_among(const struct clingers *clingers, const char *uid)
{
	vec_each (clingers, const struct clinger *known)
		if (str_equal(known->uid, uid))
			return true;
	return false;
}

/* A process of somebody who isn't among them yet. */
static void add_process(const char *name, const char *uid, const char *id, const char *state,
			struct clingers *clingers)
{
	struct clinger *clinger;

	if (is_among(clingers, uid))
		return;
	clinger = vec_push(clingers);
	clinger->name = mem_strdup(name);
	clinger->uid = uid;
	str_copy(clinger->id, sizeof clinger->id, id);
	clinger->state = mem_strdup(state);
	clinger->plan = mem_strdup(state);
}

/* Of pods that had a device and that the kubelet has forgotten; which device isn't known. */
static void add_living(const struct node *node, const struct release_entry *entry,
		       struct clingers *clingers)
{
	char name[PODPROCESSES_NAME_SIZE];
	struct release_pods pods = {0};

	release_pods(node, entry, &pods);
	vec_each (&pods, const struct release_pod *pod) {
		const struct podprocesses_pod *found =
			podprocesses_find_pod(&node->processes, pod->uid);
		struct podprocesses_holder process;

		if (!found || !found->pid)
			continue;
		process = (struct podprocesses_holder){.pid = found->pid, .of = found->of};
		str_copy(process.command, sizeof process.command, found->command);
		podprocesses_name(name, &process);
		add_process(name, found->uid, "", "had a device and lives on; bcd ends no process",
			    clingers);
	}
	vec_deinit(&pods);
}

/* Of pods that had a device and that nobody may list any more: who isn't over for sure. */
static void add_unsure(const struct reaper *reaper, const struct release_entry *entry,
		       struct clingers *clingers)
{
	const struct node *node = reaper->node;
	struct release_pods pods = {0};

	if (node->processes.off)
		release_pods(node, entry, &pods);
	vec_each (&pods, const struct release_pod *had) {
		const struct unlisted_pod *pod = unlisted_find(&node->unlisted, had->uid);
		CLEANUP(buf) struct buf name = {0}, state = {0};

		if (!pod || unlisted_is_over(node, had->uid) || is_among(clingers, had->uid))
			continue;
		buf_printf(&name, "%s%s", *pod->name ? "" : "pod ",
			   *pod->name ? pod->name : pod->uid);
		unlisted_describe_user(node, pod, &state);
		add_clinger(reaper,
			    &(struct cling){.name = buf_text(&name),
					    .uid = pod->uid,
					    .id = "",
					    .key = pod->uid,
					    .known = buf_text(&state)},
			    (struct wall){entry->since * 1000}, clingers);
	}
	vec_deinit(&pods);
}

void reaper_clingers(const struct reaper *reaper, const struct release_entry *entry,
		     struct clingers *ret_clingers)
{
	const struct node *node = reaper->node;
	char name[PODPROCESSES_NAME_SIZE];

	vec_each (&node->listing.holders, const struct holder *holder)
		if (holds_id_is_of(holder->id, entry->allocation))
			add_holder(reaper, holder, (struct wall){entry->since * 1000},
				   ret_clingers);
	vec_each (&entry->devices, const struct release_device *released) {
		const struct hold_device device = {.atom = released->atom};
		char id[HOLDS_ID_SIZE];

		holds_device_id(id, &device, entry->allocation);
		vec_each (&node->processes.holders, const struct podprocesses_holder *process) {
			if (released->atom.class != ATOM_GPU || entry->reported ||
			    !atom_uuid_equal(process->gpu, released->atom.gpu))
				continue;
			podprocesses_name(name, process);
			add_process(name, process->of.pod, id, "has it open; bcd ends no process",
				    ret_clingers);
		}
	}
	if (entry->reported)
		return;
	add_living(node, entry, ret_clingers);
	add_unsure(reaper, entry, ret_clingers);
}

const struct error *reaper_trouble(const struct reaper *reaper)
{
	const struct error *of_list = podlist_trouble(reaper->pods);

	return of_list || reaper->trouble.code == ERROR_NONE ? of_list : &reaper->trouble;
}

bool reaper_partial(const struct reaper *reaper)
{
	return podlist_here(reaper->pods) && !podlist_whole(reaper->pods);
}

/* --- life --- */

struct reaper *reaper_create(struct node *node)
{
	struct reaper *reaper = mem_alloc(sizeof *reaper);

	reaper->node = node;
	reaper->reap = reap_create();
	reaper->pods = podlist_create(node, reaper->reap);
	return reaper;
}

void reaper_destroy(struct reaper *reaper)
{
	if (!reaper)
		return;
	vec_each (&reaper->deletions, struct deletion * *deletion) {
		kube_call_cancel((*deletion)->call);
		free(*deletion);
	}
	vec_deinit(&reaper->deletions);
	kube_events_destroy(reaper->events);
	podlist_destroy(reaper->pods);
	reap_destroy(reaper->reap);
	free(reaper);
}
