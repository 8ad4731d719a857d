#include "node/core/release.h"

#include "node/state.h"
#include "sys/log.h"

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
	int64_t seconds = clock_wall().ms / 1000;

	do {
		buf_clear(&aside);
		buf_printf(&aside, "%s.unreadable-%lld", node->releases_path, (long long)seconds++);
	} while (durable_stamp(buf_text(&aside)).exists);
	return durable_rename(node->releases_path, buf_text(&aside), error);
}

/* Marker first, then the rename: no state in between reads as "none pending" (REL-48). `again`: it
 * was tried before, and said so. */
static void set_aside(struct node *node, const struct error *why, bool again)
{
	struct error error = {0};

	node->marker = true;
	node->marked = loop_now(node->loop);
	node->misplaced = !write_marker(node, why, &error) || !move_aside(node, &error);
	if (!again)
		log_failure(LOG_ERROR, "releases.unreadable", why,
			    "every GPU of this node is claimed until no pod can hold one");
	if (!again && node->misplaced)
		log_failure(LOG_ERROR, "releases.aside", &error,
			    "nothing is bound or released until the file is out of the way");
	if (again && !node->misplaced)
		log_info("releases.aside", "the unreadable file is out of the way", NULL);
}

void release_load(struct node *node)
{
	bool again = node->misplaced;
	struct error error = {0};

	node->marker = !durable_absent(node->marker_path);
	node->misplaced = false;
	releases_deinit(&node->releases);
	node->releases = (struct releases){0};
	if (read_releases(node->releases_path, &node->releases, &error))
		return;
	if (error.code != ERROR_NOT_FOUND)
		set_aside(node, &error, again);
}

/* The marker may be removed by an operator; a file that couldn't be set aside is tried again. */
void release_look(struct node *node)
{
	bool before = node->marker, there = !durable_absent(node->marker_path);

	if (node->ticket) /* disk is between two states */
		return;
	if (node->misplaced || (node->marker && !there))
		release_load(node);
	else
		node->marker = there;
	if (node->marker && !before)
		node->marked = loop_now(node->loop);
}

bool release_is_worker(const struct node *node)
{
	const char *root = str_equal(node->config->root, "/") ? "" : node->config->root;
	CLEANUP(buf) struct buf path = {0};

	if (config_hosted(node->config) || !durable_absent(node->pod_resources_path) ||
	    !durable_absent(node->config->kubeconfig))
		return true;
	buf_printf(&path, "%s/config.yaml", node->config->kubelet);
	if (!durable_absent(buf_text(&path)))
		return true;
	buf_clear(&path);
	buf_printf(&path, "%s/var/lib/bcd-hostconfig/k8s-join.json", root);
	return !durable_absent(buf_text(&path));
}

/* --- who holds what --- */

/* A kubelet that is another one than before knows little at first. */
static void follow_kubelet(struct node *node, struct mono now)
{
	struct durable_stamp stamp = durable_stamp(node->pod_resources_path);

	if (durable_stamp_equal(stamp, node->kubelet))
		return;
	node->kubelet = stamp;
	node->kubelet_since = now;
	node->answered_how = RELEASE_ANSWER_NONE;
}

/* Whole GPUs whose holders matter: a process can't be told apart by less (REL-11). */
static void want_gpu(struct podprocesses_gpus *gpus, struct atom_uuid gpu)
{
	vec_each (gpus, const struct podprocesses_gpu *one)
		if (memcmp(one->gpu.bytes, gpu.bytes, ATOM_UUID_BYTES) == 0)
			return;
	if (gpus->count < INVENTORY_MAX_GPUS) /* what isn't looked at counts as held */
		vec_push(gpus)->gpu = gpu;
}

static struct outside_live live_set(const struct node *node)
{
	return (struct outside_live){node->spec, &node->holds, &node->releases};
}

static void ask_processes(struct node *node)
{
	const struct inventory *inventory = source_inventory(node->gpus);
	const struct outside_live live = live_set(node);
	struct podprocesses_gpus gpus = {0};

	vec_each (&node->releases.entries, const struct release_entry *entry)
		for (size_t i = 0; !entry->reported && i < entry->devices.count; i++)
			if (entry->devices.items[i].atom.class == ATOM_GPU)
				want_gpu(&gpus, entry->devices.items[i].atom.gpu);
	vec_each (&inventory->gpus, const struct inventory_gpu *gpu)
		if (node->marker && !outside_has_gpu(&live, gpu->uuid))
			want_gpu(&gpus, gpu->uuid);
	podprocesses_ask(node->podprocesses, &gpus, inventory);
	vec_deinit(&gpus);
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
		ask_processes(node);
		return;
	}
	node_wake(node);
	node->answered_at = node->asked_at;
	if (node->holders_failures++ == 0)
		node->holders_failing_since = now;
	node->answered_how = RELEASE_ANSWER_FAILED;
	str_copy(node->holders_error, sizeof node->holders_error, error->what);
}

void release_on_processes(void *arg, struct podprocesses_answer *answer)
{
	struct node *node = arg;

	follow_kubelet(node, loop_now(node->loop));
	node_wake(node);
	node->answered_at = node->asked_at;
	node->holders_failures = 0;
	node->answered_how = RELEASE_ANSWER_FREE;
	node->listed = true;
	node->listed_at = node->asked_at;
	holders_listing_deinit(&node->listing);
	node->listing = node->coming;
	node->coming = (struct holders_listing){0};
	podprocesses_answer_deinit(&node->processes);
	node->processes = *answer;
	*answer = (struct podprocesses_answer){0};
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
	bool this_boot = str_equal(entry->boot_id, node->boot_id);

	if (!gpu)
		return RELEASE_ANSWER_UNSEEN; /* it was asked before this was pending */
	if (answer->off)
		return RELEASE_ANSWER_FREE;
	if (answer->error.code != ERROR_NONE)
		return RELEASE_ANSWER_UNSEEN;
	if (podprocesses_find(answer, uuid))
		return RELEASE_ANSWER_OPEN;
	/* Nothing of an earlier boot is alive. */
	if (gpu->node == PODPROCESSES_UNKNOWN && this_boot)
		return RELEASE_ANSWER_UNSEEN;
	return RELEASE_ANSWER_FREE;
}

static enum release_answer answer_for(const struct node *node, const struct release_entry *entry)
{
	enum release_answer answer = node->answered_how;

	if (answer == RELEASE_ANSWER_FREE &&
	    holders_listing_holds(&node->listing, entry->allocation))
		return RELEASE_ANSWER_HELD;
	/* Its devices may be in the record that was lost. */
	if (answer == RELEASE_ANSWER_FREE && entry->devices.count == 0 && node->marker)
		return RELEASE_ANSWER_UNSEEN;
	for (size_t i = 0; answer == RELEASE_ANSWER_FREE && i < entry->devices.count; i++)
		if (entry->devices.items[i].atom.class == ATOM_GPU)
			answer = answer_of_gpu(node, entry, entry->devices.items[i].atom.gpu);
	return answer;
}

static struct mono given(const struct node *node)
{
	struct mono last = {0};

	for (size_t i = 0; i < ATOM_CLASSES; i++)
		if (mono_until(last, deviceplugin_given(node->plugins[i])) > 0)
			last = deviceplugin_given(node->plugins[i]);
	return last;
}

static struct release_view view_of(const struct node *node, const struct release_entry *entry,
				   const struct node_release *release, bool worker, struct mono now)
{
	return (struct release_view){
		.asked = release_asked(entry, node->boot_id, now),
		.withdrawn = release->withdrawn,
		.given = given(node),
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

/* The kubelet is asked now and then: who holds devices, and does it answer? */
static void ask_now_and_then(struct node *node, struct mono now)
{
	bool any = node->holds.count > 0 || node->releases.entries.count > 0 ||
		   node->listing.holders.count > 0 || node->marker;
	struct mono again = mono_after(node->asked_at, any ? NODE_HOLDERS_MS : NODE_STRAYS_MS);

	if (node->holds.count == 0 && node->releases.entries.count == 0)
		node->holders_failures = 0;
	if (node->answered_how == RELEASE_ANSWER_NONE || mono_until(now, again) <= 0)
		ask(node, now);
	else
		node_again(node, again);
}

/* Until the marker may go: who is in the way (REL-36..41). */
static void look_outside(struct node *node, bool worker)
{
	VEC(struct outside_holder) holders = {0};
	char process[PODPROCESSES_NAME_SIZE];
	struct outside_view view = {
		.worker = worker,
		.holds_known = node->holds_error.code == ERROR_NONE,
		.inventory_unsure = !source_settled(node->gpus) || source_error(node->gpus),
		.live = live_set(node),
		.answer = node->answered_how,
		.answered = node->answered_at,
		.marked = node->marked,
		.given = given(node),
		.kubelet_since = node->kubelet_since,
	};

	vec_each (&node->listing.holders, const struct holder *holder)
		*vec_push(&holders) = (struct outside_holder){holder->id, holder->name};
	view.holders = holders.items;
	view.holder_count = holders.count;
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

static bool only_in_checkpoint(const struct node *node)
{
	vec_each (&node->listing.holders, const struct holder *holder) {
		const char *allocation = holds_id_allocation(holder->id);
		const struct release_entry *entry =
			allocation ? releases_find(&node->releases, allocation) : NULL;

		if (!holder->pod && entry && !entry->reported)
			return true;
	}
	return false;
}

/* A pod that is over, but that somebody keeps (a finished one, a finalizer), has its folder for as long.
 * Its entry goes from the checkpoint when the kubelet writes that anew, as it does whenever a plugin
 * sends its list. One that hasn't heard of its pods drops no entry. */
static void refresh_checkpoint(struct node *node, struct mono now)
{
	struct mono again = mono_after(node->refreshed, NODE_REFRESH_MS);

	if (node->answered_how != RELEASE_ANSWER_FREE || !only_in_checkpoint(node) ||
	    mono_until(now, again) > 0)
		return;
	node->refreshed = now;
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		deviceplugin_changed(node->plugins[i]);
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
	if (node->holds_error.code != ERROR_NONE)
		return; /* nothing is decided on a failed read (REL-41) */
	for (size_t i = 0; i < node->releases.entries.count; i++) {
		const struct release_entry *entry = &node->releases.entries.items[i];
		struct node_release *release = release_find(node, entry->allocation);
		struct release_view view = view_of(node, entry, release, worker, now);

		release->plan = release_decide(&view, now);
		if (release->plan.step != RELEASE_ASK)
			continue;
		if (mono_until(now, release->plan.again) <= 0)
			ask(node, now);
		else
			node_again(node, release->plan.again);
	}
}
