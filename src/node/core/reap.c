#include "node/core/reap.h"

#include <stdio.h>

enum step {
	STEP_HOLDING,
	STEP_ASKED, /* the gentle deletion was taken */
	STEP_FORCED,
	STEP_ABSENT,
};

/* A time of the boot-time clock, and what it was by the wall clock when it was set: two clocks that are
 * read again and again would tell it differently each time. */
struct moment {
	struct mono at; /* {0}: none */
	struct wall wall;
};

/* One pod that holds a released device. */
struct claimant {
	char uid[REAP_UID_SIZE];
	VEC(char *)
	claims; /* by which it does, of those that are followed; none: a plugin gave it */
	struct mono since; /* it holds what isn't its own */
	struct mono first; /* the listing that it was first seen in */
	enum step step;
	struct mono asked;        /* of STEP_ASKED */
	struct mono retry;        /* no deletion before this */
	struct moment done, next; /* reap_times */
	bool in_flight, forcing, is_static;
	bool unlisted; /* the kubelet lists it with no device that isn't its own */
	bool seen;     /* in the view at hand */
	struct mono last_unlisted;
};

/* A claim that has one. Its pods are claimants as soon as they are known. */
struct claim {
	char *name;        /* its key */
	struct mono since; /* as of a claimant */
	struct mono first;
	struct mono retry; /* the API server isn't asked for its pods before this */
	struct moment next;
	bool orphan; /* it was, and knew none */
	bool seen;
};

struct reap {
	VEC(struct claimant) claimants;
	VEC(struct claim) claims;
	struct mono begun[REAP_PER_S]; /* the last deletions that were begun; a ring */
	size_t begun_count;
	bool nameless;
};

struct reap *reap_create(void)
{
	return mem_alloc(sizeof(struct reap));
}

static void forget_claims(struct claimant *claimant)
{
	vec_each (&claimant->claims, char **claim)
		free(*claim);
	vec_clear(&claimant->claims);
}

static void claimant_deinit(struct claimant *claimant)
{
	forget_claims(claimant);
	vec_deinit(&claimant->claims);
}

void reap_destroy(struct reap *reap)
{
	if (!reap)
		return;
	vec_each (&reap->claimants, struct claimant * claimant)
		claimant_deinit(claimant);
	vec_each (&reap->claims, struct claim * claim)
		free(claim->name);
	vec_deinit(&reap->claimants);
	vec_deinit(&reap->claims);
	free(reap);
}

void reap_plan_deinit(struct reap_plan *plan)
{
	vec_deinit(&plan->deletions);
}

static struct claimant *find(const struct reap *reap, const char *uid)
{
	for (size_t i = 0; i < reap->claimants.count; i++)
		if (str_equal(reap->claimants.items[i].uid, uid))
			return &reap->claimants.items[i];
	return NULL;
}

static struct claim *find_claim(const struct reap *reap, const char *name)
{
	for (size_t i = 0; i < reap->claims.count; i++)
		if (str_equal(reap->claims.items[i].name, name))
			return &reap->claims.items[i];
	return NULL;
}

static bool has_claim(const struct claimant *claimant, const char *claim)
{
	vec_each (&claimant->claims, char *const *one)
		if (str_equal(*one, claim))
			return true;
	return false;
}

/* A pod that has a device by this claim; NULL: none is known. */
static struct claimant *find_pod_of(const struct reap *reap, const char *claim)
{
	for (size_t i = 0; i < reap->claimants.count; i++)
		if (has_claim(&reap->claimants.items[i], claim))
			return &reap->claimants.items[i];
	return NULL;
}

/* Does it mean anything that the API server's list lacks a pod, or who has a claim? */
static bool tells_absence(const struct reap_view *view)
{
	return view->pods_known && !view->pods_partial;
}

/* --- grounds --- */

static const struct reap_release *release_of(const struct reap_view *view, const char *allocation)
{
	for (size_t i = 0; i < view->releases_count; i++)
		if (str_equal(view->releases[i].allocation, allocation))
			return &view->releases[i];
	return NULL;
}

static bool is_bound(const struct reap_view *view, const char *allocation)
{
	for (size_t i = 0; i < view->bound_count; i++)
		if (str_equal(view->bound[i], allocation))
			return true;
	return false;
}

/* Has this holder no right to its device? Then since when at the latest. */
static bool has_ground(const struct reap_view *view, const struct reap_holder *holder,
		       struct mono now, struct mono *ret_since)
{
	const struct reap_release *release = release_of(view, holder->allocation);

	if (!release && (!view->bound_known || is_bound(view, holder->allocation)))
		return false;
	*ret_since = release && release->asked.ms < now.ms ? release->asked : now;
	return true;
}

static void follow_claim(struct reap *reap, const struct reap_view *view,
			 const struct reap_holder *holder, struct mono since)
{
	struct claim *claim = find_claim(reap, holder->claim);

	if (!claim) {
		claim = vec_push(&reap->claims);
		claim->name = mem_strdup(holder->claim);
		claim->since = since;
		claim->first = view->listed_at;
	} else if (since.ms < claim->since.ms) {
		claim->since = since;
	}
	claim->seen = true;
	if (tells_absence(view))
		return;
	/* Who its pods are was known before, and is asked again when it matters. */
	vec_each (&reap->claimants, struct claimant * claimant)
		claimant->seen |= has_claim(claimant, holder->claim);
}

static void follow_pod(struct reap *reap, const struct reap_view *view,
		       const struct reap_holder *holder, struct mono since)
{
	struct claimant *claimant = find(reap, holder->uid);

	if (!claimant) {
		claimant = vec_push(&reap->claimants);
		str_copy(claimant->uid, sizeof claimant->uid, holder->uid);
		claimant->since = since;
		claimant->first = view->listed_at;
	} else if (since.ms < claimant->since.ms) {
		claimant->since = since;
	}
	if (holder->claim && !has_claim(claimant, holder->claim))
		*vec_push(&claimant->claims) = mem_strdup(holder->claim);
	claimant->unlisted = holder->unlisted && (claimant->unlisted || !claimant->seen);
	claimant->seen = true;
}

/* Claims that are no longer followed. */
static void drop_claims(const struct reap *reap, struct claimant *claimant)
{
	for (size_t i = claimant->claims.count; i-- > 0;) {
		if (find_claim(reap, claimant->claims.items[i]))
			continue;
		free(claimant->claims.items[i]);
		vec_remove(&claimant->claims, i);
	}
}

static void forget_the_unseen(struct reap *reap)
{
	for (size_t i = reap->claimants.count; i-- > 0;) {
		if (reap->claimants.items[i].seen || reap->claimants.items[i].in_flight)
			continue;
		claimant_deinit(&reap->claimants.items[i]);
		vec_remove(&reap->claimants, i);
	}
	for (size_t i = reap->claims.count; i-- > 0;) {
		if (reap->claims.items[i].seen)
			continue;
		free(reap->claims.items[i].name);
		vec_remove(&reap->claims, i);
	}
	vec_each (&reap->claimants, struct claimant * claimant)
		drop_claims(reap, claimant);
}

/* Brings the claimants up to what the view shows. */
static void follow_holders(struct reap *reap, const struct reap_view *view, struct mono now)
{
	reap->nameless = false;
	vec_each (&reap->claimants, struct claimant * claimant) {
		claimant->seen = false;
		if (tells_absence(view)) /* and so is who has which claim */
			forget_claims(claimant);
	}
	vec_each (&reap->claims, struct claim * claim)
		claim->seen = false;
	for (size_t i = 0; i < view->holders_count; i++) {
		const struct reap_holder *holder = &view->holders[i];
		bool named = *holder->uid && strlen(holder->uid) < REAP_UID_SIZE;
		struct mono since;

		if (!has_ground(view, holder, now, &since))
			continue;
		if (holder->claim)
			follow_claim(reap, view, holder, since);
		if (named)
			follow_pod(reap, view, holder, since);
		else if (!holder->claim)
			reap->nameless = true;
	}
	forget_the_unseen(reap);
	vec_each (&reap->claimants, struct claimant * claimant)
		if (claimant->unlisted)
			claimant->last_unlisted = now;
}

/* --- who it is for the API server --- */

/* A pod may say that it is another's mirror, and the other one be there: it is that one. */
static const struct reap_pod *pod_of(const struct reap_view *view, const char *uid)
{
	for (size_t i = 0; i < view->pods_count; i++)
		if (str_equal(view->pods[i].uid, uid))
			return &view->pods[i];
	for (size_t i = 0; i < view->pods_count; i++)
		if (str_equal(view->pods[i].static_uid, uid))
			return &view->pods[i];
	return NULL;
}

static const struct reap_holder *holder_of(const struct reap_view *view, const char *uid)
{
	for (size_t i = 0; i < view->holders_count; i++) {
		const struct reap_holder *holder = &view->holders[i];
		struct mono since;

		if (str_equal(holder->uid, uid) &&
		    has_ground(view, holder, (struct mono){0}, &since))
			return holder;
	}
	return NULL;
}

/* Has the wall clock kept step with the boot-time clock since the release was recorded? Not over a reboot. */
static bool clocks_agree(const struct reap_view *view, const struct reap_release *release,
			 struct mono now)
{
	int64_t drift = (view->wall.ms - release->since.ms) - mono_until(release->asked, now);

	return drift > -REAP_SKEW_MS && drift < REAP_SKEW_MS;
}

/* A deletion that is under way with no more grace than ours is as good as ours: bcd may have asked
 * for it before it was restarted. */
static void take_over(struct claimant *claimant, const struct reap_view *view,
		      const struct reap_pod *pod, const struct reap_holder *holder, struct mono now)
{
	const struct reap_release *release = release_of(view, holder->allocation);
	int64_t age_ms = view->wall.ms - (pod->deletion.ms - pod->grace_s * 1000);

	if (!pod->deleting || pod->grace_s > REAP_GRACE_S)
		return;
	claimant->step = STEP_ASKED;
	claimant->asked = now;
	if (!release || !clocks_agree(view, release, now))
		return;
	if (age_ms > 0)
		claimant->asked.ms -= age_ms;
	/* Nobody of us has asked before it was due. */
	if (claimant->asked.ms < claimant->since.ms + REAP_HOLD_MS)
		claimant->asked.ms = claimant->since.ms + REAP_HOLD_MS;
	if (claimant->asked.ms > now.ms)
		claimant->asked = now;
}

/* --- when --- */

/* It has its minute from when the kubelet could hear of it. */
static struct mono force_due(const struct claimant *claimant)
{
	bool later = mono_until(claimant->asked, claimant->last_unlisted) > 0;

	return mono_after(later ? claimant->last_unlisted : claimant->asked, REAP_FORCE_MS);
}

/* When this claimant's next deletion is due; false when there is none to come. */
static bool next_due(const struct claimant *claimant, struct mono *ret_due)
{
	struct mono due = {0};

	switch (claimant->step) {
	case STEP_HOLDING:
		due = mono_after(claimant->since, REAP_HOLD_MS);
		break;
	case STEP_ASKED:
		if (claimant->unlisted)
			return false;
		due = force_due(claimant);
		break;
	case STEP_ABSENT:
		break;
	case STEP_FORCED:
		return false;
	}
	if (claimant->in_flight)
		return false;
	if (due.ms < claimant->retry.ms)
		due = claimant->retry;
	*ret_due = due;
	return true;
}

static size_t in_flight(const struct reap *reap)
{
	size_t count = 0;

	for (size_t i = 0; i < reap->claimants.count; i++)
		count += reap->claimants.items[i].in_flight;
	return count;
}

/* From when on one more may be begun. */
static struct mono rate_allows(const struct reap *reap)
{
	if (reap->begun_count < REAP_PER_S)
		return (struct mono){INT64_MIN};
	return mono_after(reap->begun[reap->begun_count % REAP_PER_S], 1000);
}

static void sooner(struct reap_plan *plan, struct mono time)
{
	if (time.ms < plan->again.ms)
		plan->again = time;
}

/* --- what --- */

static void begin(struct reap *reap, struct claimant *claimant, const struct reap_pod *pod,
		  const struct reap_holder *holder, struct mono now, struct reap_plan *plan)
{
	struct reap_deletion *deletion = vec_push(&plan->deletions);

	claimant->in_flight = true;
	claimant->forcing = claimant->step == STEP_ASKED;
	claimant->is_static = *pod->static_uid;
	reap->begun[reap->begun_count++ % REAP_PER_S] = now;
	str_copy(deletion->holder, sizeof deletion->holder, claimant->uid);
	str_copy(deletion->uid, sizeof deletion->uid, pod->uid);
	str_copy(deletion->namespace, sizeof deletion->namespace, pod->namespace);
	str_copy(deletion->name, sizeof deletion->name, pod->name);
	str_copy(deletion->allocation, sizeof deletion->allocation, holder->allocation);
	str_copy(deletion->device, sizeof deletion->device, holder->device);
	deletion->forced = claimant->forcing;
	deletion->why = deletion->forced
				? "it still holds the device a minute after it was asked to go"
				: "it holds a device of an allocation that has ended";
}

/* A mirror pod comes back under another UID while its static pod runs; and one that isn't known may be a static
 * one whose mirror somebody has just deleted. */
static void set_absent(struct claimant *claimant, struct mono now)
{
	claimant->retry = mono_after(now, claimant->is_static ? REAP_RETRY_MS : REAP_ORPHAN_MS);
	if (!claimant->is_static)
		claimant->step = STEP_ABSENT;
}

/* One that is due: who is it, and may it be now? */
static void act(struct reap *reap, struct claimant *claimant, const struct reap_view *view,
		struct mono now, struct reap_plan *plan)
{
	const struct reap_holder *holder = holder_of(view, claimant->uid);
	struct mono newer = claimant->step == STEP_ABSENT ? claimant->retry : claimant->first;
	bool known = view->pods_known && view->pods_asked.ms >= newer.ms;
	const struct reap_pod *pod = known ? pod_of(view, claimant->uid) : NULL;
	struct mono due, allowed = rate_allows(reap);

	assert(holder || (claimant->claims.count > 0 && !tells_absence(view)));
	if (!known || !holder || (!pod && view->pods_partial)) {
		plan->need_pods = true;
		return;
	}
	if (!pod) {
		set_absent(claimant, now);
		if (next_due(claimant, &due))
			sooner(plan, due);
		return;
	}
	if (claimant->step == STEP_ABSENT)
		claimant->step = STEP_HOLDING;
	if (claimant->step == STEP_HOLDING)
		take_over(claimant, view, pod, holder, now);
	if (!next_due(claimant, &due))
		return;
	if (due.ms > now.ms) {
		sooner(plan, due);
		return;
	}
	if (in_flight(reap) >= REAP_IN_FLIGHT)
		return; /* one that ends wakes us */
	if (allowed.ms > now.ms)
		sooner(plan, allowed);
	else
		begin(reap, claimant, pod, holder, now, plan);
}

/* One whose pods aren't known yet, or that had none. */
static void look_for_pods(struct claim *claim, const struct reap_view *view, struct mono now,
			  struct reap_plan *plan)
{
	struct mono due = mono_after(claim->since, REAP_HOLD_MS);

	if (due.ms < claim->retry.ms)
		due = claim->retry;
	if (due.ms > now.ms) {
		sooner(plan, due);
	} else if (!tells_absence(view) || view->pods_asked.ms < claim->first.ms) {
		plan->need_pods = true;
	} else {
		claim->orphan = true;
		claim->retry = mono_after(now, REAP_ORPHAN_MS);
		sooner(plan, claim->retry);
	}
}

static void set_moment(struct moment *moment, struct mono at, const struct reap_view *view,
		       struct mono now)
{
	if (moment->at.ms != at.ms)
		*moment = (struct moment){at, {view->wall.ms + mono_until(now, at)}};
}

static void keep_times(struct reap *reap, const struct reap_view *view, struct mono now)
{
	vec_each (&reap->claimants, struct claimant * claimant) {
		bool was_asked = claimant->step == STEP_ASKED || claimant->step == STEP_FORCED;

		if (was_asked)
			set_moment(&claimant->done, claimant->asked, view, now);
		if (claimant->step == STEP_HOLDING)
			set_moment(&claimant->next, mono_after(claimant->since, REAP_HOLD_MS), view,
				   now);
		else if (claimant->step == STEP_ASKED && !claimant->unlisted)
			set_moment(&claimant->next, force_due(claimant), view, now);
		else
			claimant->next = (struct moment){0};
	}
	vec_each (&reap->claims, struct claim * claim)
		set_moment(&claim->next, mono_after(claim->since, REAP_HOLD_MS), view, now);
}

static void decide_all(struct reap *reap, const struct reap_view *view, struct mono now,
		       struct reap_plan *ret_plan)
{
	follow_holders(reap, view, now);
	vec_each (&reap->claimants, struct claimant * claimant) {
		struct mono due;

		if (!claimant->seen || !next_due(claimant, &due))
			continue;
		if (due.ms > now.ms)
			sooner(ret_plan, due);
		else
			act(reap, claimant, view, now, ret_plan);
	}
	vec_each (&reap->claims, struct claim * claim) {
		if (find_pod_of(reap, claim->name))
			claim->orphan = false;
		else
			look_for_pods(claim, view, now, ret_plan);
	}
	assert(ret_plan->deletions.count <= REAP_PER_S);
}

void reap_decide(struct reap *reap, const struct reap_view *view, struct mono now,
		 struct reap_plan *ret_plan)
{
	*ret_plan = (struct reap_plan){.again = {INT64_MAX}};
	if (view->listed)
		decide_all(reap, view, now, ret_plan);
	keep_times(reap, view, now);
}

void reap_told(struct reap *reap, const char *holder, enum reap_outcome outcome, struct mono now)
{
	struct claimant *claimant = find(reap, holder);

	if (!claimant || !claimant->in_flight)
		return; /* it let go meanwhile */
	claimant->in_flight = false;
	switch (outcome) {
	case REAP_DELETED:
		claimant->step = claimant->forcing ? STEP_FORCED : STEP_ASKED;
		claimant->asked = now;
		break;
	case REAP_GONE:
		set_absent(claimant, now);
		break;
	case REAP_FAILED:
		claimant->retry = mono_after(now, REAP_RETRY_MS);
		break;
	}
}

/* --- for people --- */

static const struct claimant *find_holder(const struct reap *reap, const char *holder)
{
	return strchr(holder, '/') ? find_pod_of(reap, holder) : find(reap, holder);
}

enum reap_state reap_state(const struct reap *reap, const char *holder)
{
	const struct claimant *claimant = find_holder(reap, holder);
	const struct claim *claim = find_claim(reap, holder);

	if (!*holder)
		return reap->nameless ? REAP_NAMELESS : REAP_NOTHING;
	if (!claimant && claim)
		return claim->orphan ? REAP_ORPHAN : REAP_HOLDING;
	if (!claimant)
		return REAP_NOTHING;
	switch (claimant->step) {
	case STEP_HOLDING:
		return REAP_HOLDING;
	case STEP_ASKED:
		return REAP_ASKED;
	case STEP_FORCED:
		return claimant->is_static ? REAP_STATIC : REAP_FORCED;
	case STEP_ABSENT:
		return REAP_ABSENT;
	}
	abort();
}

bool reap_next(const struct reap *reap, const char *holder, struct mono *ret_due)
{
	const struct claimant *claimant = find_holder(reap, holder);
	const struct claim *claim = find_claim(reap, holder);

	if (!claimant && claim && !claim->orphan) {
		*ret_due = mono_after(claim->since, REAP_HOLD_MS);
		return true;
	}
	return claimant && claimant->step != STEP_ABSENT && next_due(claimant, ret_due);
}

bool reap_times(const struct reap *reap, const char *holder, struct reap_times *ret_times)
{
	const struct claimant *claimant = find_holder(reap, holder);
	const struct claim *claim = find_claim(reap, holder);

	*ret_times = (struct reap_times){0};
	if (claimant)
		*ret_times = (struct reap_times){claimant->done.wall, claimant->next.wall,
						 claimant->unlisted};
	else if (claim && !claim->orphan)
		ret_times->next = claim->next.wall;
	return ret_times->done.ms > 0 || ret_times->next.ms > 0;
}

bool reap_idle(const struct reap *reap)
{
	return reap->claimants.count == 0 && reap->claims.count == 0 && !reap->nameless;
}

const char *reap_state_name(enum reap_state state)
{
	static const char *const NAMES[] = {
		[REAP_NOTHING] = "holds nothing released",
		[REAP_HOLDING] = "has its time to go by itself",
		[REAP_ASKED] = "asked to go",
		[REAP_FORCED] = "deleted by force, still there",
		[REAP_ABSENT] = "unknown to the API server, still there",
		[REAP_STATIC] = "static: only removing its manifest ends it",
		[REAP_NAMELESS] = "its UID is unknown, so it isn't touched",
		[REAP_ORPHAN] =
			"no pod of this node is known to have it; the kubelet hasn't unprepared it",
	};

	return NAMES[state];
}
