#include "node/core/release.h"

#include "node/state.h"
#include "sys/log.h"

#include <errno.h>
#include <stdio.h>

#define READ_TRIES 3

/* --- the record --- */

/* A moment's trouble, not damage (REL-55). */
static bool is_passing(const struct error *error)
{
	return error->os == EIO || error->os == EMFILE || error->os == ENFILE ||
	       error->os == ENOMEM;
}

static bool read_releases(const char *path, struct releases *releases, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	bool ok = false;

	for (int i = 0; i < READ_TRIES && !ok; i++) {
		ok = durable_read(path, RELEASES_MAX_FILE, &text, error);
		if (!ok && !is_passing(error))
			return false;
	}
	return ok && releases_parse(buf_text(&text), text.length, releases, error);
}

/* Marker first, then the rename: no state in between reads as "none pending" (REL-48). */
static void set_aside(struct node *node, const struct error *why)
{
	CLEANUP(buf) struct buf text = {0}, aside = {0};
	int64_t seconds = clock_wall().ms / 1000;
	struct error error = {0};

	node->marker = true;
	log_failure(LOG_ERROR, "releases.unreadable", why,
		    "every GPU of this node is claimed until no pod can hold one");
	buf_printf(&text, "%lld %s\n", (long long)seconds, why->what);
	if (!durable_replace(node->marker_path, text.data, text.length, 0600, &error)) {
		log_failure(LOG_ERROR, "releases.marker", &error,
			    "the unreadable file stays where it is");
		return;
	}
	do {
		buf_clear(&aside);
		buf_printf(&aside, "%s.unreadable-%lld", node->releases_path, (long long)seconds++);
	} while (durable_stamp(buf_text(&aside)).exists);
	if (!durable_rename(node->releases_path, buf_text(&aside), &error))
		log_failure(LOG_ERROR, "releases.rename", &error, "it is tried at the next start");
}

void release_load(struct node *node)
{
	struct error error = {0};

	node->marker = !durable_absent(node->marker_path);
	releases_deinit(&node->releases);
	node->releases = (struct releases){0};
	if (read_releases(node->releases_path, &node->releases, &error))
		return;
	if (error.code != ERROR_NOT_FOUND)
		set_aside(node, &error);
}

/* The marker may be removed by an operator; a file that couldn't be set aside is tried again. */
void release_look(struct node *node)
{
	bool there = !durable_absent(node->marker_path);

	if (node->marker && !there)
		release_load(node);
	else if (!node->marker && there)
		node->marker = true;
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

void release_on_holders(void *arg, struct holders_listing *listing, const struct error *error)
{
	struct node *node = arg;
	struct mono now = loop_now(node->loop);

	follow_kubelet(node, now);
	node->answered_at = node->asked_at;
	node_wake(node);
	if (!listing) {
		if (node->holders_failures++ == 0)
			node->holders_failing_since = now;
		node->answered_how = RELEASE_ANSWER_FAILED;
		str_copy(node->holders_error, sizeof node->holders_error, error->what);
		return;
	}
	node->holders_failures = 0;
	node->answered_how = RELEASE_ANSWER_FREE;
	node->listed = true;
	node->listed_at = node->asked_at;
	holders_listing_deinit(&node->listing);
	node->listing = *listing;
	*listing = (struct holders_listing){0};
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

static enum release_answer answer_for(const struct node *node, const char *allocation)
{
	if (node->answered_how == RELEASE_ANSWER_FREE &&
	    holders_listing_holds(&node->listing, allocation))
		return RELEASE_ANSWER_HELD;
	return node->answered_how;
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
		.answer = answer_for(node, entry->allocation),
		.answered = node->answered_at,
		.kubelet_since = node->kubelet_since,
	};
}

static void ask(struct node *node, struct mono now)
{
	if (holders_asking(node->holders))
		return;
	node->asked_at = now;
	holders_ask(node->holders);
}

/* The kubelet is asked now and then: who holds devices, and does it answer? */
static void ask_now_and_then(struct node *node, struct mono now)
{
	bool any = node->holds.count > 0 || node->releases.entries.count > 0 ||
		   node->listing.holders.count > 0;
	struct mono again = mono_after(node->asked_at, any ? NODE_HOLDERS_MS : NODE_STRAYS_MS);

	if (node->holds.count == 0 && node->releases.entries.count == 0)
		node->holders_failures = 0;
	if (node->answered_how == RELEASE_ANSWER_NONE || mono_until(now, again) <= 0)
		ask(node, now);
	else
		node_again(node, again);
}

void release_step(struct node *node, struct mono now)
{
	bool worker = release_is_worker(node);

	follow_kubelet(node, now);
	follow_entries(node, now);
	if (worker)
		ask_now_and_then(node, now);
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
