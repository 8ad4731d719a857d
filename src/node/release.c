#include "node/core/release.h"

#include "node/state.h"
#include "sys/log.h"

#include <errno.h>
#include <stdio.h>

/* --- the record --- */

static bool read_releases(const char *path, struct releases *releases, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};

	return durable_read_record(path, RELEASES_MAX_FILE, &text, error) &&
	       releases_parse(buf_text(&text), text.length, releases, error);
}

static bool write_marker(const struct node *node, const struct error *why, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};

	buf_printf(&text, "%lld %s\n", (long long)(clock_wall().ms / 1000), why->what);
	return durable_replace(node->marker_path, text.data, text.length, 0600, error);
}

static bool move_aside(const struct node *node, struct error *error)
{
	CLEANUP(buf) struct buf aside = {0};

	return durable_set_aside(node->releases_path, clock_wall(), &aside, error);
}

/* Marker first, then the rename: no state in between reads as "none pending" (REL-48). `again`: it
 * was tried before, and said so. */
static void set_aside(struct node *node, const struct error *why, bool again)
{
	struct error error = {0};

	node->marker = true;
	node->marked = loop_now(node->loop);
	node->misplaced = !write_marker(node, why, &error) || !move_aside(node, &error);
	str_copy(node->misplaced_why, sizeof node->misplaced_why, error.what);
	if (!again)
		log_failure(LOG_ERROR, "releases.unreadable", why,
			    "every GPU of this node is claimed until no pod can hold one");
	if (!again && node->misplaced)
		log_failure(LOG_ERROR, "releases.aside", &error,
			    "nothing is bound or released until the file is out of the way");
	if (again && !node->misplaced)
		log_info("releases.aside", "the unreadable file is out of the way", NULL);
}

/* One that can't be looked at counts as there, but nothing is refused for it: it may be a moment's
 * trouble, and a refusal is for good. */
static bool look_for_marker(struct node *node)
{
	struct durable_stamp stamp = durable_stamp(node->marker_path);

	errno = stamp.os;
	node->marker_error = (struct error){0};
	if (stamp.os)
		error_os(&node->marker_error, "stat '%s'", node->marker_path);
	else if (!stamp.exists && !durable_absent(node->marker_path))
		error_set(&node->marker_error, ERROR_INTERNAL,
			  "'%s' can't be looked at, or is a link to nowhere: remove it then",
			  node->marker_path);
	return stamp.exists || node->marker_error.code != ERROR_NONE;
}

void release_load(struct node *node)
{
	bool again = node->misplaced;
	struct error error = {0};

	node->marker = look_for_marker(node);
	node->misplaced = false;
	releases_deinit(&node->releases);
	node->releases = (struct releases){0};
	if (read_releases(node->releases_path, &node->releases, &error)) {
		node->boot_unrecorded = releases_begin_boot(
			&node->releases, node->holds_error.code == ERROR_NONE ? &node->holds : NULL,
			node->boot_id, loop_now(node->loop));
		unlisted_recall(node);
		return;
	}
	if (error.code != ERROR_NOT_FOUND)
		set_aside(node, &error, again);
}

/* The marker may be removed by an operator; a file that couldn't be set aside is tried again. */
void release_look(struct node *node)
{
	bool before = node->marker, there;

	if (node->ticket) /* disk is between two states */
		return;
	there = look_for_marker(node);
	if (node->misplaced || (node->marker && !there))
		release_load(node);
	else
		node->marker = there;
	if (node->marker && !before)
		node->marked = loop_now(node->loop);
}

static bool kubelet_has(const struct node *node, const char *name)
{
	CLEANUP(buf) struct buf path = {0};

	buf_printf(&path, "%s/%s", node->config->kubelet, name);
	return !durable_absent(buf_text(&path));
}

bool release_is_worker(const struct node *node)
{
	return config_hosted(node->config) || release_has_kubelet(node);
}

bool release_has_kubelet(const struct node *node)
{
	const char *root = str_equal(node->config->root, "/") ? "" : node->config->root;
	CLEANUP(buf) struct buf path = {0};

	if (!durable_absent(node->pod_resources_path) ||
	    !durable_absent(node->config->kubeconfig) || kubelet_has(node, "config.yaml") ||
	    kubelet_has(node, GIVEN_FILE))
		return true;
	buf_printf(&path, "%s/var/lib/bcd-hostconfig/k8s-join.json", root);
	return !durable_absent(buf_text(&path));
}

/* --- who holds what --- */

/* A kubelet that is another one than before knows little at first. */
static void follow_kubelet(struct node *node, struct mono now)
{
	struct durable_stamp stamp = durable_stamp(node->pod_resources_path);

	if (stamp.os || durable_stamp_equal(stamp, node->kubelet))
		return;
	node->kubelet = stamp;
	node->kubelet_since = now;
	node->kubelet_heard = UNLISTED_NEVER;
	node->answered_how = RELEASE_ANSWER_NONE;
}

/* Whether it is the one that was asked can't be told of a socket that can't be looked at. */
static bool know_kubelet(const struct node *node, struct error *error)
{
	int os = durable_stamp(node->pod_resources_path).os;

	errno = os;
	return os == 0 || error_os(error, "stat '%s'", node->pod_resources_path);
}

static void answer_failed(struct node *node, struct mono now, const struct error *error)
{
	node_wake(node);
	node->answered_at = node->asked_at;
	if (node->holders_failures++ == 0)
		node->holders_failing_since = now;
	node->answered_how = RELEASE_ANSWER_FAILED;
	str_copy(node->holders_error, sizeof node->holders_error, error->what);
}

static struct node_users *find_users(const struct node *node, const char *allocation)
{
	vec_each (&node->users, struct node_users * users)
		if (str_equal(users->allocation, allocation))
			return users;
	return NULL;
}

static void forget_users(struct node *node)
{
	for (size_t i = node->users.count; i-- > 0;) {
		struct node_users *users = &node->users.items[i];

		if (node->holds_error.code != ERROR_NONE ||
		    holds_find(&node->holds, users->allocation) ||
		    releases_find(&node->releases, users->allocation))
			continue;
		vec_deinit(&users->pods);
		vec_remove(&node->users, i);
	}
}

void release_remember(struct node *node, const char *allocation, const char *uid)
{
	struct node_users *users = find_users(node, allocation);

	if (!users) {
		users = vec_push(&node->users);
		str_copy(users->allocation, sizeof users->allocation, allocation);
	}
	release_pods_add(&users->pods, uid);
}

/* Who has a device now may have it yet when nobody says so any more. */
static void remember_users(struct node *node, const struct holders_listing *listing)
{
	forget_users(node);
	vec_each (&listing->holders, const struct holder *holder) {
		const char *allocation = holds_id_allocation(holder->id);

		if (allocation && *holder->uid)
			release_remember(node, allocation, holder->uid);
	}
}

void release_pods(const struct node *node, const struct release_entry *entry,
		  struct release_pods *ret_pods)
{
	const struct node_users *users = find_users(node, entry->allocation);

	vec_each (&entry->pods, const struct release_pod *pod)
		release_pods_add(ret_pods, pod->uid);
	for (size_t i = 0; users && i < users->pods.count; i++)
		release_pods_add(ret_pods, users->pods.items[i].uid);
}

void release_deinit(struct node *node)
{
	vec_each (&node->users, struct node_users * users)
		vec_deinit(&users->pods);
	vec_deinit(&node->users);
	vec_deinit(&node->unlisted);
	vec_deinit(&node->words);
}

/* A manifest may give a UID of its own, of a form that isn't looked for in cgroups. */
static bool names_cgroups(const char *uid)
{
	return strlen(uid) < PODPROCESS_UID_SIZE;
}

static void want_pods(const struct node *node, const struct release_entry *entry,
		      struct podprocesses_pods *to)
{
	struct release_pods pods = {0};

	release_pods(node, entry, &pods);
	vec_each (&pods, const struct release_pod *pod)
		if (names_cgroups(pod->uid))
			str_copy(vec_push(to)->uid, PODPROCESS_UID_SIZE, pod->uid);
	vec_deinit(&pods);
}

static struct outside_live live_set(const struct node *node)
{
	return (struct outside_live){node->spec, &node->holds, &node->releases};
}

/* Of whole GPUs: a process can't be told apart by less (REL-11). */
static void ask_processes(struct node *node)
{
	const struct inventory *inventory = source_inventory(node->gpus);
	const struct outside_live live = live_set(node);
	struct podprocesses_gpus gpus = {0};
	struct podprocesses_pods pods = {0};

	vec_each (&node->releases.entries, const struct release_entry *entry)
		for (size_t i = 0; !entry->reported && i < entry->devices.count; i++)
			if (entry->devices.items[i].atom.class == ATOM_GPU)
				podprocesses_gpus_add(&gpus, entry->devices.items[i].atom.gpu);
	vec_each (&node->releases.entries, const struct release_entry *entry)
		if (!entry->reported)
			want_pods(node, entry, &pods);
	strays_want_gpus(node, &gpus);
	vec_each (&inventory->gpus, const struct inventory_gpu *gpu)
		if (node->marker && !outside_has_gpu(&live, gpu->uuid))
			podprocesses_gpus_add(&gpus, gpu->uuid);
	podprocesses_ask(node->podprocesses, &gpus, &pods, inventory);
	vec_deinit(&gpus);
	vec_deinit(&pods);
}

void release_on_holders(void *arg, struct holders_listing *listing, const struct error *error)
{
	struct node *node = arg;
	struct mono now = loop_now(node->loop);

	follow_kubelet(node, now);
	if (listing) {
		holders_listing_deinit(&node->coming);
		node->coming = *listing;
		*listing = (struct holders_listing){0};
		remember_users(node, &node->coming);
		ask_processes(node);
		return;
	}
	answer_failed(node, now, error);
}

static void follow_processes(struct node *node, const struct podprocesses_answer *answer)
{
	bool failing = !answer->off && answer->error.code != ERROR_NONE;

	if (failing && !node->processes_failing)
		node->processes_failing_since = loop_now(node->loop);
	node->processes_failing = failing;
	node->blind = answer->off || (node->blind && !answer->on);
}

void release_on_processes(void *arg, struct podprocesses_answer *answer)
{
	struct node *node = arg;
	struct error error = {0};

	follow_kubelet(node, loop_now(node->loop));
	if (!know_kubelet(node, &error)) {
		answer_failed(node, loop_now(node->loop), &error);
		return;
	}
	node_wake(node);
	node->answered_at = node->asked_at;
	node->holders_failures = 0;
	node->answered_how = RELEASE_ANSWER_FREE;
	node->listed = true;
	node->listed_at = node->asked_at;
	holders_listing_deinit(&node->listing);
	node->listing = node->coming;
	node->coming = (struct holders_listing){0};
	follow_processes(node, answer);
	podprocesses_answer_deinit(&node->processes);
	node->processes = *answer;
	*answer = (struct podprocesses_answer){0};
	unlisted_on_listing(node);
}

struct node_release *release_find(struct node *node, const char *allocation)
{
	for (size_t i = 0; i < node->pending.count; i++)
		if (str_equal(node->pending.items[i].allocation, allocation))
			return &node->pending.items[i];
	return NULL;
}

/* One for each entry of the record; what isn't withdrawn yet counts from now. */
static void follow_entries(struct node *node, struct mono now)
{
	for (size_t i = node->pending.count; i-- > 0;)
		if (!releases_find(&node->releases, node->pending.items[i].allocation))
			vec_remove(&node->pending, i);
	for (size_t i = 0; i < node->releases.entries.count; i++) {
		const char *allocation = node->releases.entries.items[i].allocation;
		struct node_release *release = release_find(node, allocation);
		bool bound = node->holds_error.code != ERROR_NONE ||
			     holds_find(&node->holds, allocation);

		if (!release) {
			release = vec_push(&node->pending);
			str_copy(release->allocation, sizeof release->allocation, allocation);
			release->withdrawn = now;
		}
		/* Gone since the last look at the latest: it counts from this one. */
		if (bound || release->bound)
			release->withdrawn = now;
		release->bound = bound;
	}
}

/* What the pods' processes say of one released device. */
static enum release_answer answer_of_gpu(const struct node *node, const struct release_entry *entry,
					 struct atom_uuid uuid)
{
	const struct podprocesses_answer *answer = &node->processes;
	const struct podprocesses_gpu *gpu = podprocesses_find_gpu(answer, uuid);

	if (!gpu)
		return RELEASE_ANSWER_UNSEEN; /* it was asked before this was pending */
	if (answer->off)
		return RELEASE_ANSWER_FREE;
	if (answer->error.code != ERROR_NONE)
		return RELEASE_ANSWER_UNSEEN;
	if (podprocesses_find(answer, uuid))
		return RELEASE_ANSWER_OPEN;
	/* It may have gone with the reboot. */
	if (gpu->node == PODPROCESSES_UNKNOWN && !entry->outlived)
		return RELEASE_ANSWER_UNSEEN;
	return RELEASE_ANSWER_FREE;
}

/* What they say of the pods that had a device of it, open or not. */
static enum release_answer answer_of_pods(const struct node *node,
					  const struct release_entry *entry)
{
	const struct podprocesses_answer *answer = &node->processes;
	enum release_answer worst = RELEASE_ANSWER_FREE;
	struct release_pods pods = {0};

	release_pods(node, entry, &pods);
	for (size_t i = 0; answer->off && i < pods.count; i++)
		if (!unlisted_is_over(node, pods.items[i].uid))
			worst = RELEASE_ANSWER_UNSURE;
	if (pods.count > 0 && !answer->off && answer->error.code != ERROR_NONE)
		worst = RELEASE_ANSWER_UNSEEN;
	for (size_t i = 0; worst == RELEASE_ANSWER_FREE && !answer->off && i < pods.count; i++) {
		const struct podprocesses_pod *pod =
			podprocesses_find_pod(answer, pods.items[i].uid);

		if (!names_cgroups(pods.items[i].uid))
			continue;
		if (!pod)
			worst = RELEASE_ANSWER_UNSEEN; /* it was asked before this was known */
		else if (pod->pid)
			worst = RELEASE_ANSWER_ALIVE;
	}
	vec_deinit(&pods);
	return worst;
}

static enum release_answer answer_for(const struct node *node, const struct release_entry *entry)
{
	enum release_answer answer = node->answered_how;

	if (answer == RELEASE_ANSWER_FREE &&
	    holders_listing_holds(&node->listing, entry->allocation))
		return RELEASE_ANSWER_HELD;
	if (answer == RELEASE_ANSWER_FREE && node->listing.record.code != ERROR_NONE)
		return RELEASE_ANSWER_UNREAD;
	/* Its devices may be in the record that was lost; and, where only the record remembers them, who had them. */
	if (answer == RELEASE_ANSWER_FREE && node->marker && entry->devices.count == 0)
		return RELEASE_ANSWER_UNSEEN;
	if (answer == RELEASE_ANSWER_FREE && node->marker && node->blind)
		return RELEASE_ANSWER_UNSURE;
	for (size_t i = 0; answer == RELEASE_ANSWER_FREE && i < entry->devices.count; i++)
		if (entry->devices.items[i].atom.class == ATOM_GPU)
			answer = answer_of_gpu(node, entry, entry->devices.items[i].atom.gpu);
	if (answer == RELEASE_ANSWER_FREE)
		answer = answer_of_pods(node, entry);
	return answer;
}

struct mono release_given(const struct node *node)
{
	struct mono last = {0};

	for (size_t i = 0; i < ATOM_CLASSES; i++)
		if (mono_until(last, deviceplugin_given(node->plugins[i])) > 0)
			last = deviceplugin_given(node->plugins[i]);
	return last;
}

static struct release_view view_of(const struct node *node, const struct release_entry *entry,
				   const struct node_release *release, bool worker)
{
	return (struct release_view){
		.asked = {entry->since_boot_ms},
		.withdrawn = release->withdrawn,
		.given = release_given(node),
		.wanted = node->spec && spec_find(node->spec, entry->allocation),
		.bound = holds_find(&node->holds, entry->allocation),
		.reported = entry->reported,
		.worker = worker,
		.answer = answer_for(node, entry),
		.answered = node->answered_at,
		.kubelet_since = node->kubelet_since,
	};
}

static void ask(struct node *node, struct mono now)
{
	if (holders_asking(node->holders) || podprocesses_asking(node->podprocesses))
		return;
	node->asked_at = now;
	holders_ask(node->holders);
}

void release_ask(struct node *node, struct mono now, struct mono when)
{
	if (mono_until(now, when) <= 0)
		ask(node, now);
	else
		node_again(node, when);
}

/* The kubelet is asked now and then: who holds devices, and does it answer? */
static void ask_now_and_then(struct node *node, struct mono now)
{
	bool any = node->holds.count > 0 || node->releases.entries.count > 0 ||
		   node->listing.holders.count > 0 || node->marker ||
		   node->strays.items.count > 0 || node->checkpoint_stale || strays_matter(node);
	struct mono again = mono_after(node->asked_at, unlisted_are_close(node) ? NODE_CLOSE_MS
						       : any                    ? NODE_HOLDERS_MS
										: NODE_STRAYS_MS);
	struct mono given_on_record = mono_after(release_given(node), RELEASE_SETTLE_MS);

	/* Who was given one is to be known soon: it may be forgotten as soon. */
	if (mono_until(node->asked_at, given_on_record) > 0 &&
	    mono_until(again, given_on_record) < 0)
		again = given_on_record;

	if (node->holds.count == 0 && node->releases.entries.count == 0 && !strays_matter(node))
		node->holders_failures = 0;
	release_ask(node, now, node->answered_how == RELEASE_ANSWER_NONE ? now : again);
}

static const char *who_has(const struct node *node, const struct holder *holder,
			   struct arena *arena)
{
	CLEANUP(buf) struct buf text = {0};

	if (!holder->unlisted || !release_waits_for(node, holder))
		return holder->name;
	buf_printf(&text, "%s (", holder->name);
	unlisted_describe(node, holder, &text);
	buf_add_text(&text, ")");
	return arena_strdup(arena, buf_text(&text));
}

/* Until the marker may go: who is in the way (REL-36..41). */
static void look_outside(struct node *node, bool worker)
{
	CLEANUP(arena) struct arena texts = {0};
	VEC(struct outside_holder) holders = {0};
	char process[PODPROCESSES_NAME_SIZE];
	struct outside_view view = {
		.worker = worker,
		.holds_known = node->holds_error.code == ERROR_NONE,
		.blind = node->blind,
		.inventory_unsure = !source_settled(node->gpus) || source_error(node->gpus),
		.live = live_set(node),
		.answer = node->answered_how,
		.answered = node->answered_at,
		.marked = node->marked,
		.given = release_given(node),
		.kubelet_since = node->kubelet_since,
	};

	vec_each (&node->listing.holders, const struct holder *holder)
		*vec_push(&holders) =
			(struct outside_holder){holder->id, who_has(node, holder, &texts)};
	view.holders = holders.items;
	view.holder_count = holders.count;
	if (node->listing.record.code != ERROR_NONE)
		view.record_error = node->listing.record.what;
	if (node->processes.error.code != ERROR_NONE)
		view.process_error = node->processes.error.what;
	vec_each (&source_inventory(node->gpus)->gpus, const struct inventory_gpu *gpu) {
		const struct podprocesses_holder *found =
			podprocesses_find(&node->processes, gpu->uuid);
		const struct podprocesses_gpu *looked =
			podprocesses_find_gpu(&node->processes, gpu->uuid);

		if (node->processes.off || outside_has_gpu(&view.live, gpu->uuid))
			continue;
		if (!looked || looked->node == PODPROCESSES_UNKNOWN)
			view.process_error = "a GPU's number can't be told";
		if (!found)
			continue;
		podprocesses_name(process, found);
		view.process = process;
	}
	outside_decide(&view, &node->outside);
	vec_deinit(&holders);
}

bool release_waits_for(const struct node *node, const struct holder *holder)
{
	const char *allocation = holds_id_allocation(holder->id);
	const struct release_entry *entry =
		allocation ? releases_find(&node->releases, allocation) : NULL;
	const struct outside_live live = live_set(node);

	return (entry && !entry->reported) || !outside_is_live(&live, holder->id);
}

bool release_only_in_checkpoint(const struct node *node)
{
	vec_each (&node->listing.holders, const struct holder *holder)
		if (!holder->pod && !holder->claim && release_waits_for(node, holder))
			return true;
	return node->checkpoint_stale;
}

/* A pod that is over, but that somebody keeps (a finished one, a finalizer), has its folder for as long,
 * and where the folders can't be seen each counts. Its entry goes from the checkpoint when the kubelet writes that anew, as it does whenever a plugin
 * sends its list. One that hasn't heard of its pods drops no entry. */
static void refresh_checkpoint(struct node *node, struct mono now)
{
	struct mono again = mono_after(node->refreshed, NODE_REFRESH_MS);

	if (node->answered_how != RELEASE_ANSWER_FREE || !release_only_in_checkpoint(node) ||
	    mono_until(now, again) > 0)
		return;
	node->refreshed = now;
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		deviceplugin_changed(node->plugins[i]);
}

/* On a failed read, and what was decided before it doesn't count any more (REL-41). */
static void decide_nothing(struct node *node)
{
	vec_each (&node->pending, struct node_release * release)
		release->plan = (struct release_plan){.step = RELEASE_ASK,
						      .stuck = release->plan.stuck,
						      .why = "what is bound can't be read"};
}

void release_step(struct node *node, struct mono now)
{
	bool worker = release_is_worker(node);

	follow_kubelet(node, now);
	follow_entries(node, now);
	if (worker)
		ask_now_and_then(node, now);
	refresh_checkpoint(node, now);
	if (node->marker)
		look_outside(node, worker);
	if (node->holds_error.code != ERROR_NONE) {
		decide_nothing(node);
		return;
	}
	for (size_t i = 0; i < node->releases.entries.count; i++) {
		const struct release_entry *entry = &node->releases.entries.items[i];
		struct node_release *release = release_find(node, entry->allocation);
		struct release_view view = view_of(node, entry, release, worker);
		bool stuck;

		stuck = release->plan.stuck;
		release->plan = release_decide(&view, now);
		if (release->plan.stuck && !stuck)
			log_warn("release.stuck",
				 "a release doesn't end, its devices count as held", "allocation",
				 entry->allocation, "why", release->plan.why, NULL);
		if (release->plan.step == RELEASE_ASK)
			release_ask(node, now, release->plan.again);
	}
}
