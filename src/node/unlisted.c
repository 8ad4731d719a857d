#include "node/unlisted.h"

#include "base/utc.h"
#include "node/state.h"

static bool has_heard(const struct node *node)
{
	return node->kubelet_heard.ms != UNLISTED_NEVER.ms;
}

/* Who isn't in the checkpoint (yet) may be any of those that are looked for. */
static const struct holder *without_uid(const struct node *node)
{
	vec_each (&node->listing.holders, const struct holder *holder)
		if (!holder->claim && !*holder->uid)
			return holder;
	return NULL;
}

static struct unlisted_end end_of(const struct node *node, const struct unlisted_pod *pod)
{
	return unlisted_end(pod, node->kubelet_heard, loop_now(node->loop));
}

/* Where processes can be seen they tell of what a list lacks. */
static bool is_gone(const struct node *node, const struct unlisted_pod *pod)
{
	return node->blind ? end_of(node, pod).state == UNLISTED_OVER : unlisted_absent(pod);
}

static void drop_gone(struct node *node)
{
	for (size_t i = node->listing.holders.count; i-- > 0;) {
		struct holder *holder = &node->listing.holders.items[i];
		const struct unlisted_pod *pod =
			holder->unlisted ? unlisted_find(&node->unlisted, holder->uid) : NULL;

		if (!pod || !is_gone(node, pod))
			continue;
		holder_deinit(holder);
		vec_remove(&node->listing.holders, i);
		node->checkpoint_stale = true;
	}
}

static bool is_coming(const struct node *node, const char *uid)
{
	vec_each (&node->coming.holders, const struct holder *holder)
		if (str_equal(holder->uid, uid))
			return true;
	return false;
}

static bool is_recorded(const struct node *node, const char *allocation, const char *uid)
{
	const struct release_entry *entry = releases_find(&node->releases, allocation);

	for (size_t i = 0; entry && i < entry->pods.count; i++)
		if (str_equal(entry->pods.items[i].uid, uid))
			return true;
	return false;
}

/* Who is over has no device any more; a pending release that names it hears so, too. While the checkpoint has it
 * a restart must find it on record: it would be one that no list ever had. */
static void prune_users(struct node *node)
{
	vec_each (&node->users, struct node_users * users)
		for (size_t i = users->pods.count; i-- > 0;) {
			const char *uid = users->pods.items[i].uid;
			const struct unlisted_pod *pod = unlisted_find(&node->unlisted, uid);

			if (pod && pod->over && !pod->given && !is_coming(node, uid) &&
			    !is_recorded(node, users->allocation, uid))
				vec_remove(&users->pods, i);
		}
}

/* What time has proven stays so, and what is told of it changes only with it. */
static void settle(struct node *node)
{
	vec_each (&node->unlisted, struct unlisted_pod * pod) {
		struct unlisted_end end = end_of(node, pod);

		pod->over |= node->blind && end.state == UNLISTED_OVER;
		if (pod->until.ms == end.until.ms)
			continue;
		pod->until = end.until;
		if (end.until.ms != UNLISTED_NEVER.ms)
			pod->ends.ms =
				clock_wall().ms + mono_until(loop_now(node->loop), end.until);
	}
	drop_gone(node);
	if (node->blind)
		prune_users(node);
}

struct seen VEC_BODY(struct unlisted_seen);

static void see_pods(const struct release_pods *pods, bool waited, struct seen *seen)
{
	vec_each (pods, const struct release_pod *pod)
		*vec_push(seen) = (struct unlisted_seen){.uid = pod->uid, .waited = waited};
}

static void see_users(const struct node *node, struct seen *seen)
{
	vec_each (&node->releases.entries, const struct release_entry *entry)
		if (!entry->reported)
			see_pods(&entry->pods, true, seen);
	vec_each (&node->users, const struct node_users *users) {
		const struct release_entry *entry =
			releases_find(&node->releases, users->allocation);

		see_pods(&users->pods, entry && !entry->reported, seen);
	}
}

void unlisted_on_listing(struct node *node)
{
	struct mono settled = mono_after(node->kubelet_since, RELEASE_KUBELET_SETTLE_MS);
	static const struct unlisted_names none;
	struct seen seen = {0};

	node->checkpoint_stale = false;
	vec_each (&node->listing.holders, const struct holder *holder) {
		if (holder->claim || !*holder->uid || (!holder->unlisted && !node->blind))
			continue;
		*vec_push(&seen) = (struct unlisted_seen){
			.uid = holder->uid,
			.namespace = holder->namespace,
			.name = holder->pod,
			.listed = !holder->unlisted,
			.given = true,
			.waited = release_waits_for(node, holder),
		};
	}
	if (node->blind)
		see_users(node, &seen);
	unlisted_follow(&node->unlisted, &node->words,
			&(struct unlisted_view){
				.seen = seen.items,
				.count = seen.count,
				.names = node->blind ? &node->listing.names : &none,
				.counts = node->blind && has_heard(node) && !node->listing.cut &&
					  !without_uid(node) &&
					  release_counts(settled, node->listed_at),
			},
			loop_now(node->loop));
	vec_deinit(&seen);
	settle(node);
}

void unlisted_on_pods(struct node *node, const struct unlisted_listed *pods, size_t count,
		      struct mono asked)
{
	if (!has_heard(node) && release_counts(node->kubelet_since, node->listed_at) &&
	    unlisted_heard(&node->listing.names, pods, count))
		node->kubelet_heard = loop_now(node->loop);
	unlisted_take(&node->unlisted, pods, count, asked, loop_now(node->loop));
	settle(node);
}

struct unlisted_listed unlisted_of(const struct kube_pod *pod)
{
	return (struct unlisted_listed){
		.uid = pod->uid,
		.static_uid = pod->static_uid,
		.namespace = pod->namespace,
		.name = pod->name,
		.over = pod->over,
		.deleting = pod->deleting,
		.deletion_s = pod->grace_s,
		.grace_s = pod->termination_s,
	};
}

void unlisted_on_word(struct node *node, const struct kube_pod *pod, bool deleted)
{
	const struct unlisted_listed word = unlisted_of(pod);

	unlisted_hear(&node->unlisted, &node->words, &word, deleted, loop_now(node->loop));
	settle(node);
}

bool unlisted_need_pods(struct node *node, struct mono now)
{
	const struct unlisted_asking asking = {
		.heard = !node->blind || has_heard(node),
		.watched = podwatch_is_live(node->podwatch),
	};
	bool need = false;

	vec_each (&node->unlisted, const struct unlisted_pod *pod) {
		struct mono due = unlisted_due(pod, asking, now);

		if ((pod->over && !pod->listed) || (!node->blind && !pod->waited))
			continue;
		if (due.ms <= now.ms)
			need = true;
		else if (due.ms != UNLISTED_NEVER.ms)
			node_again(node, due);
		else if (pod->waited && mono_until(now, pod->until) > 0)
			node_again(node, pod->until);
	}
	return need;
}

bool unlisted_are_close(const struct node *node)
{
	bool watched = podwatch_is_live(node->podwatch);

	vec_each (&node->unlisted, const struct unlisted_pod *pod)
		if (node->blind && unlisted_is_closing(pod, watched))
			return true;
	return false;
}

bool unlisted_is_over(const struct node *node, const char *uid)
{
	const struct unlisted_pod *pod = unlisted_find(&node->unlisted, uid);

	return pod && end_of(node, pod).state == UNLISTED_OVER;
}

bool unlisted_clings(const struct node *node, const char *uid)
{
	const struct unlisted_pod *pod = unlisted_find(&node->unlisted, uid);

	if (!node->blind || !pod || !pod->there || pod->over)
		return false;
	vec_each (&node->listing.holders, const struct holder *holder)
		if (str_equal(holder->uid, uid))
			return false;
	return true;
}

/* --- for people --- */

/* Why what the kubelet's list lacks counts for nothing. */
static void describe_doubt(const struct node *node, struct buf *out)
{
	const struct holder *nameless = without_uid(node);

	if (!has_heard(node))
		buf_add_text(out, "; the kubelet lists no pod that the API server has: nothing is "
				  "counted until it has heard of its pods");
	else if (nameless)
		buf_printf(out,
			   "; nothing is counted while the kubelet's checkpoint doesn't say the "
			   "UID of %s: it may be this one",
			   nameless->name);
	else if (node->listing.cut)
		buf_printf(out, "; nothing is counted while the kubelet lists more than %d pods",
			   HOLDERS_MAX_NAMES);
}

static void describe_end(const struct node *node, const struct unlisted_pod *pod, struct buf *out)
{
	struct unlisted_end end = end_of(node, pod);
	bool trouble = reaper_trouble(node->reaper);
	char ends[UTC_SIZE];

	utc_format(ends, pod->ends);
	switch (end.state) {
	case UNLISTED_LISTED:
	case UNLISTED_OVER:
		buf_add_text(out, "the API server is asked about it");
		break;
	case UNLISTED_UNASKED:
		buf_add_text(out, trouble ? "the API server can't be asked whether it is there"
					  : "the API server is asked whether it is there");
		break;
	case UNLISTED_THERE:
		buf_add_text(out, trouble ? "the API server had it, and can't be asked now"
					  : "the API server has it");
		if (node->blind && pod->until.ms != UNLISTED_NEVER.ms)
			buf_printf(out, "; its grace ends at %s", ends);
		break;
	case UNLISTED_GRACE:
		buf_add_text(out, "the API server doesn't have it: it may run yet");
		if (pod->until.ms != UNLISTED_NEVER.ms)
			buf_printf(out, ", and counts until its grace %s at %s",
				   pod->grace_s > 0 ? "ends" : "(not known: an hour) ends", ends);
		else if (node->blind)
			describe_doubt(node, out);
		break;
	}
}

void unlisted_describe(const struct node *node, const struct holder *holder, struct buf *out)
{
	const struct unlisted_pod *pod = unlisted_find(&node->unlisted, holder->uid);

	buf_add_text(out, pod && pod->named ? "the kubelet lists it without a device, its "
					      "checkpoint has it with one, and "
					    : "only the kubelet's checkpoint names it, and ");
	if (pod)
		describe_end(node, pod, out);
}

void unlisted_describe_user(const struct node *node, const struct unlisted_pod *pod,
			    struct buf *out)
{
	buf_add_text(out, pod->named ? "had a device, the kubelet lists it without one, and "
				     : "had a device, the kubelet doesn't list it any more, and ");
	describe_end(node, pod, out);
}

/* --- the record --- */

void unlisted_recall(struct node *node)
{
	bool this_boot = str_equal(node->releases.users_boot_id, node->boot_id);
	struct mono now = loop_now(node->loop);

	/* it was so when they were recorded: until the contrary is seen */
	node->blind |= node->releases.users.count > 0;
	vec_each (&node->releases.users, const struct release_user *user) {
		struct unlisted_pod pod = user->pod;

		if (this_boot) {
			release_remember(node, user->allocation, pod.uid);
		} else { /* nothing of it is alive, but it may be started again */
			pod.over = false;
			pod.deletion_s = 0;
			pod.lost = pod.missing = UNLISTED_NEVER;
		}
		unlisted_add(&node->unlisted, &pod, now);
	}
}

bool unlisted_record(const struct node *node, struct release_users *ret_users)
{
	if (!node->listed)
		return false;
	vec_each (&node->users, const struct node_users *users)
		for (size_t i = 0; node->blind && i < users->pods.count; i++) {
			const struct unlisted_pod *pod =
				unlisted_find(&node->unlisted, users->pods.items[i].uid);
			struct release_user *user;

			if (!pod)
				continue;
			user = vec_push(ret_users);
			str_copy(user->allocation, sizeof user->allocation, users->allocation);
			user->pod = *pod;
		}
	return true;
}
