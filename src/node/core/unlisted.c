#include "node/core/unlisted.h"

#include "base/buf.h"
#include "gpu/core/field.h"

#include <stdio.h>

static int compare_seen(const void *a, const void *b)
{
	return strcmp(((const struct unlisted_seen *)a)->uid,
		      ((const struct unlisted_seen *)b)->uid);
}

static int compare_pod(const void *uid, const void *pod)
{
	return strcmp(uid, ((const struct unlisted_pod *)pod)->uid);
}

struct unlisted_pod *unlisted_find(const struct unlisted *unlisted, const char *uid)
{
	if (unlisted->count == 0)
		return NULL;
	return bsearch(uid, unlisted->items, unlisted->count, sizeof *unlisted->items, compare_pod);
}

/* --- names --- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void unlisted_names_sort(struct unlisted_names *names)
{
	vec_sort(names, compare_names);
}

/* The first that isn't before it; NULL: all are. */
static const char *find_name(const struct unlisted_names *names, const char *name)
{
	size_t i = vec_lower(names->count, at, strcmp(names->items[at], name) < 0);

	return i < names->count ? names->items[i] : NULL;
}

/* One that was cut is there if any begins so. */
static bool has_name(const struct unlisted_names *names, const char name[UNLISTED_NAME_SIZE])
{
	const char *found = find_name(names, name);

	return found && (strlen(name) + 1 == UNLISTED_NAME_SIZE ? str_starts(found, name)
								: str_equal(found, name));
}

void unlisted_names_deinit(struct unlisted_names *names)
{
	vec_each (names, char **name)
		free(*name);
	vec_deinit(names);
}

/* --- times --- */

static bool is_never(struct mono time)
{
	return time.ms == INT64_MAX;
}

static bool is_asked(const struct unlisted_pod *pod)
{
	return pod->asked.ms >= pod->first.ms;
}

/* --- what is seen of it --- */

static void name_it(char out[UNLISTED_NAME_SIZE], const char *namespace, const char *name)
{
	snprintf(out, UNLISTED_NAME_SIZE, "%s/%s", namespace, name);
}

/* Gone from both: from now on. */
static void settle(struct unlisted_pod *pod, struct mono now)
{
	if (pod->listed || pod->named || pod->there)
		pod->missing = UNLISTED_NEVER;
	else if (is_never(pod->missing) && !is_never(pod->lost) && is_asked(pod))
		pod->missing = now;
}

/* A static pod's UID comes again. Of another's last word a listing that was asked for before it takes nothing
 * back. */
static void come_again(struct unlisted_pod *pod)
{
	if (pod->is_static || pod->grace_s == 0)
		pod->over = false;
}

static struct unlisted_pod *insert(struct unlisted *unlisted, const struct unlisted_pod *pod)
{
	size_t at = unlisted->count;

	(void)vec_push(unlisted);
	for (; at > 0 && strcmp(unlisted->items[at - 1].uid, pod->uid) > 0; at--)
		unlisted->items[at] = unlisted->items[at - 1];
	unlisted->items[at] = *pod;
	return &unlisted->items[at];
}

static void forget_words(struct unlisted *words, struct mono now)
{
	for (size_t i = words->count; i-- > 0;)
		if (mono_until(words->items[i].first, now) >= UNLISTED_WORDS_MS)
			vec_remove(words, i);
}

/* One that comes to be known, with what was said of it before. */
static struct unlisted_pod begin(struct unlisted *words, const char *uid, struct mono now)
{
	struct unlisted_pod *word = words ? unlisted_find(words, uid) : NULL;
	struct unlisted_pod pod = {0};

	if (word) {
		pod = *word;
		vec_remove(words, (size_t)(word - words->items));
	}
	str_copy(pod.uid, sizeof pod.uid, uid);
	pod.lost = pod.missing = pod.until = UNLISTED_NEVER;
	pod.first = now;
	pod.asked = (struct mono){INT64_MIN};
	return pod;
}

static void see(struct unlisted_pod *pod, const struct unlisted_seen *seen,
		const struct unlisted_view *view, struct mono now)
{
	if (seen->name)
		name_it(pod->name, seen->namespace, seen->name);
	pod->called |= seen->name != NULL;
	pod->listed = seen->listed;
	pod->given = seen->given;
	pod->waited = seen->waited;
	pod->named =
		seen->listed || (*pod->name && !pod->replaced && has_name(view->names, pod->name));
	if (pod->listed || (pod->named && !pod->said))
		come_again(pod);
	if (pod->named)
		pod->lost = UNLISTED_NEVER;
	else if (view->counts && is_never(pod->lost))
		pod->lost = now;
	settle(pod, now);
}

void unlisted_follow(struct unlisted *unlisted, struct unlisted *words,
		     const struct unlisted_view *view, struct mono now)
{
	VEC(struct unlisted_seen) sorted = {0};
	struct unlisted next = {0};

	forget_words(words, now);
	for (size_t i = 0; i < view->count; i++)
		*vec_push(&sorted) = view->seen[i];
	vec_sort(&sorted, compare_seen);
	for (size_t i = 0; i < view->count;) {
		struct unlisted_seen all = sorted.items[i];
		const struct unlisted_pod *known = unlisted_find(unlisted, all.uid);
		struct unlisted_pod *pod = vec_push(&next);

		for (; i < view->count && str_equal(sorted.items[i].uid, all.uid); i++) {
			const struct unlisted_seen *one = &sorted.items[i];

			all.listed |= one->listed;
			all.given |= one->given;
			all.waited |= one->waited;
			if (one->name) {
				all.namespace = one->namespace;
				all.name = one->name;
			}
		}
		*pod = known ? *known : begin(words, all.uid, now);
		see(pod, &all, view, now);
	}
	vec_deinit(&sorted);
	vec_deinit(unlisted);
	*unlisted = next;
}

void unlisted_add(struct unlisted *unlisted, const struct unlisted_pod *pod, struct mono now)
{
	struct unlisted_pod row = *pod;

	if (unlisted_find(unlisted, pod->uid))
		return;
	row.first = now;
	row.asked = (struct mono){INT64_MIN};
	row.until = UNLISTED_NEVER;
	row.listed = row.given = row.waited = row.there = false;
	row.named = row.replaced = row.said = false;
	insert(unlisted, &row);
}

/* --- what is said of it --- */

/* The kubelet makes up its own UIDs, in another form than the API server's. */
static bool may_be_static(const char *uid)
{
	return *uid && !(strlen(uid) == 36 && uid[8] == '-' && uid[13] == '-' && uid[18] == '-' &&
			 uid[23] == '-');
}

/* The known pod whose mirror this is: anybody may say so, but not by the name that the kubelet has for it. */
static struct unlisted_pod *find_mirrored(struct unlisted *unlisted,
					  const struct unlisted_listed *listed)
{
	struct unlisted_pod *pod =
		*listed->static_uid ? unlisted_find(unlisted, listed->static_uid) : NULL;
	char name[UNLISTED_NAME_SIZE];

	name_it(name, listed->namespace, listed->name);
	return pod && (!pod->called || str_equal(pod->name, name)) ? pod : NULL;
}

/* A manifest may have given the UID, or the mirror be none: it is believed as far as that lengthens what is waited for. */
static void lengthen(struct unlisted_pod *pod, const struct unlisted_listed *listed,
		     struct mono asked)
{
	int64_t grace_s = pod->grace_s > 0 ? pod->grace_s : UNLISTED_UNKNOWN_S;

	if (!pod->called)
		return;
	if (listed->grace_s > grace_s)
		pod->grace_s = listed->grace_s;
	pod->there |= !listed->over && asked.ms >= pod->first.ms;
}

static void learn_spec(struct unlisted_pod *pod, const struct unlisted_listed *listed,
		       bool is_static)
{
	int64_t grace_s = listed->grace_s > 0 ? listed->grace_s : 1;

	name_it(pod->name, listed->namespace, listed->name);
	pod->grace_s = is_static && pod->grace_s > grace_s ? pod->grace_s : grace_s;
	pod->is_static = is_static;
}

/* A deletion that came sooner or with another grace than was said last counts from now: what is
 * shortened is counted long. Without a grace the kubelet takes the spec's. */
static void learn_deletion(struct unlisted_pod *pod, const struct unlisted_listed *listed,
			   struct mono now)
{
	int64_t deletion = listed->deletion_s > 0 ? listed->deletion_s : listed->grace_s;

	deletion = deletion > 0 ? deletion : 1;
	if (pod->deletion_s != deletion)
		pod->deleted = now;
	pod->deletion_s = deletion;
}

static void learn(struct unlisted_pod *pod, const struct unlisted_listed *listed, bool is_static,
		  struct mono asked, struct mono now)
{
	learn_spec(pod, listed, is_static);
	if (!is_static && listed->deleting)
		learn_deletion(pod, listed, now);
	pod->over |= listed->over;
	pod->said |= listed->over;
	pod->there |= !listed->over && asked.ms >= pod->first.ms;
}

/* An object that was deleted is as it was before: that somebody wanted it to go is no deletion that the kubelet heard
 * of. */
static void hear(struct unlisted_pod *pod, const struct unlisted_listed *listed, bool is_static,
		 bool deleted, struct mono now)
{
	learn_spec(pod, listed, is_static);
	if (!is_static && listed->deleting && !deleted)
		learn_deletion(pod, listed, now);
	if (is_static && !deleted && !listed->over)
		pod->over = pod->said = false;
	pod->over |= listed->over;
	pod->said |= listed->over;
}

static struct unlisted_pod *make_word(struct unlisted *words, const char *uid, struct mono now)
{
	struct unlisted_pod *word = unlisted_find(words, uid), fresh;
	size_t oldest = 0;

	if (word)
		return word;
	for (size_t i = 1; i < words->count; i++)
		if (words->items[i].first.ms < words->items[oldest].first.ms)
			oldest = i;
	if (words->count == UNLISTED_WORDS)
		vec_remove(words, oldest);
	fresh = begin(NULL, uid, now);
	return insert(words, &fresh);
}

void unlisted_hear(struct unlisted *unlisted, struct unlisted *words,
		   const struct unlisted_listed *listed, bool deleted, struct mono now)
{
	struct unlisted_pod *mirrored = find_mirrored(unlisted, listed);
	struct unlisted_pod *pod = unlisted_find(unlisted, listed->uid);

	forget_words(words, now);
	if (mirrored && may_be_static(mirrored->uid))
		hear(mirrored, listed, true, deleted, now);
	/* no device is given to a mirror, nor to a UID that is longer than a kubelet's */
	if (!pod && (may_be_static(listed->static_uid) || strlen(listed->uid) >= GIVEN_UID_SIZE))
		return;
	if (!pod) {
		pod = make_word(words, listed->uid, now);
		pod->first = now;
	}
	hear(pod, listed, false, deleted, now);
}

/* Who has the name of one that this list lacks: a static pod that was made anew has another UID, too. */
static void note_name(struct unlisted *unlisted, const struct unlisted_listed *listed)
{
	const char *uid = *listed->static_uid ? listed->static_uid : listed->uid;
	char name[UNLISTED_NAME_SIZE];

	name_it(name, listed->namespace, listed->name);
	vec_each (unlisted, struct unlisted_pod * pod)
		pod->replaced |= str_equal(pod->name, name) && !str_equal(pod->uid, uid);
}

bool unlisted_heard(const struct unlisted_names *names, const struct unlisted_listed *pods,
		    size_t count)
{
	bool heard = false;

	for (size_t i = 0; i < count && !heard; i++) {
		CLEANUP(buf) struct buf name = {0};
		const char *found;

		buf_printf(&name, "%s/%s", pods[i].namespace, pods[i].name);
		found = find_name(names, buf_text(&name));
		heard = !*pods[i].static_uid && found && str_equal(found, buf_text(&name));
	}
	return heard;
}

void unlisted_take(struct unlisted *unlisted, const struct unlisted_listed *pods, size_t count,
		   struct mono asked, struct mono now)
{
	vec_each (unlisted, struct unlisted_pod * pod) {
		if (asked.ms < pod->first.ms)
			continue;
		pod->asked = asked;
		pod->there = pod->replaced = pod->said = false;
	}
	for (size_t i = 0; i < count; i++) {
		const struct unlisted_listed *listed = &pods[i];
		struct unlisted_pod *same = unlisted_find(unlisted, listed->uid);
		struct unlisted_pod *mirrored = find_mirrored(unlisted, listed);

		if (same)
			learn(same, listed, false, asked, now);
		if (mirrored && !may_be_static(mirrored->uid))
			lengthen(mirrored, listed, asked);
		else if (mirrored)
			learn(mirrored, listed, true, asked, now);
		note_name(unlisted, listed);
	}
	vec_each (unlisted, struct unlisted_pod * pod)
		settle(pod, now);
}

/* --- what follows --- */

bool unlisted_absent(const struct unlisted_pod *pod)
{
	return pod->over || (is_asked(pod) && !pod->there);
}

static struct mono grace_after(struct mono from, int64_t seconds)
{
	return mono_after(from, seconds * 1000 + UNLISTED_MARGIN_MS);
}

static struct mono end_of_grace(const struct unlisted_pod *pod, struct mono heard)
{
	int64_t grace_s = pod->grace_s > 0 ? pod->grace_s : UNLISTED_UNKNOWN_S;
	struct mono deleted = UNLISTED_NEVER, vanished = UNLISTED_NEVER;

	if (pod->is_static)
		return is_never(pod->lost) ? pod->lost : grace_after(pod->lost, grace_s);
	if (pod->deletion_s > 0)
		deleted = grace_after(mono_later(pod->deleted, heard), pod->deletion_s);
	if (!is_never(pod->missing))
		vanished = grace_after(pod->missing, grace_s);
	if (is_never(deleted) || is_never(vanished))
		return is_never(deleted) ? vanished : deleted;
	return mono_later(deleted, vanished);
}

struct unlisted_end unlisted_end(const struct unlisted_pod *pod, struct mono heard, struct mono now)
{
	struct mono until = is_never(heard) ? UNLISTED_NEVER : end_of_grace(pod, heard);

	if (!is_never(until))
		until = mono_later(until, mono_after(heard, UNLISTED_KUBELET_MS));
	if (pod->listed)
		return (struct unlisted_end){UNLISTED_LISTED, until};
	if (pod->over)
		return (struct unlisted_end){UNLISTED_OVER, until};
	if (!is_asked(pod))
		return (struct unlisted_end){UNLISTED_UNASKED, until};
	if (pod->there)
		return (struct unlisted_end){UNLISTED_THERE, until};
	if (pod->named)
		return (struct unlisted_end){UNLISTED_LISTED, until};
	if (!is_never(pod->missing) && mono_until(now, until) <= 0)
		return (struct unlisted_end){UNLISTED_OVER, until};
	return (struct unlisted_end){UNLISTED_GRACE, until};
}

static bool is_awaited(const struct unlisted_pod *pod)
{
	return pod->waited || pod->deletion_s > 0;
}

bool unlisted_is_closing(const struct unlisted_pod *pod, bool watched)
{
	return pod->listed && is_awaited(pod) && (!watched || pod->over);
}

/* The kubelet has just dropped it, or should be killing it about now. */
static bool is_close(const struct unlisted_pod *pod, struct mono now)
{
	if (is_never(pod->lost) || !is_awaited(pod))
		return false;
	return mono_until(pod->lost, now) < UNLISTED_CLOSE_FOR_MS ||
	       (!is_never(pod->until) &&
		mono_until(now, pod->until) < UNLISTED_MARGIN_MS + UNLISTED_LATER_MS &&
		mono_until(pod->until, now) < UNLISTED_CLOSE_FOR_MS);
}

struct mono unlisted_due(const struct unlisted_pod *pod, struct unlisted_asking asking,
			 struct mono now)
{
	if (!is_asked(pod))
		return pod->first;
	if (!asking.heard)
		return mono_after(pod->asked, UNLISTED_ASK_MS);
	if (pod->named ? !pod->waited && pod->grace_s > 0 : !pod->there)
		return UNLISTED_NEVER;
	if (!asking.watched && is_close(pod, now))
		return mono_after(pod->asked, UNLISTED_CLOSE_MS);
	return mono_after(pod->asked, pod->waited && !is_never(pod->lost) ? UNLISTED_LATER_MS
									  : UNLISTED_ASK_MS);
}

/* --- the record --- */

static void set_time(json_t *row, const char *key, struct mono time)
{
	if (!is_never(time))
		json_object_set_new(row, key, json_integer(time.ms));
}

void unlisted_set(json_t *row, const struct unlisted_pod *pod)
{
	json_object_set_new(row, "uid", json_string(pod->uid));
	if (*pod->name)
		json_object_set_new(row, "name", json_string(pod->name));
	if (pod->called)
		json_object_set_new(row, "called", json_true());
	if (pod->grace_s > 0)
		json_object_set_new(row, "graceSeconds", json_integer(pod->grace_s));
	if (pod->is_static)
		json_object_set_new(row, "static", json_true());
	if (pod->over)
		json_object_set_new(row, "over", json_true());
	if (pod->deletion_s > 0) {
		json_object_set_new(row, "deletionSeconds", json_integer(pod->deletion_s));
		set_time(row, "deletedMs", pod->deleted);
	}
	set_time(row, "lostMs", pod->lost);
	set_time(row, "missingMs", pod->missing);
}

#define MAX_S  ((int64_t)1 << 40)
#define MAX_MS ((int64_t)1 << 50)

bool unlisted_parse(json_t *row, const char *where, struct unlisted_pod *ret_pod,
		    struct error *error)
{
	struct unlisted_pod pod = {.lost = UNLISTED_NEVER, .missing = UNLISTED_NEVER};

	if (!field_text(row, where, "uid", true, pod.uid, sizeof pod.uid, error) ||
	    !field_text(row, where, "name", false, pod.name, sizeof pod.name, error) ||
	    !field_bool(row, where, "called", false, &pod.called, error) ||
	    !field_number(row, where, "graceSeconds", false, 0, MAX_S, &pod.grace_s, error) ||
	    !field_bool(row, where, "static", false, &pod.is_static, error) ||
	    !field_bool(row, where, "over", false, &pod.over, error) ||
	    !field_number(row, where, "deletionSeconds", false, 0, MAX_S, &pod.deletion_s, error) ||
	    !field_number(row, where, "deletedMs", pod.deletion_s > 0, 0, MAX_MS, &pod.deleted.ms,
			  error) ||
	    !field_number(row, where, "lostMs", false, 0, MAX_MS, &pod.lost.ms, error) ||
	    !field_number(row, where, "missingMs", false, 0, MAX_MS, &pod.missing.ms, error))
		return false;
	*ret_pod = pod;
	return true;
}

bool unlisted_same_row(const struct unlisted_pod *a, const struct unlisted_pod *b)
{
	return str_equal(a->uid, b->uid) && str_equal(a->name, b->name) && a->called == b->called &&
	       a->grace_s == b->grace_s && a->is_static == b->is_static && a->over == b->over &&
	       a->deletion_s == b->deletion_s &&
	       (a->deletion_s == 0 || a->deleted.ms == b->deleted.ms) && a->lost.ms == b->lost.ms &&
	       a->missing.ms == b->missing.ms;
}
