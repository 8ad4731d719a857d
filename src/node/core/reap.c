#include "node/core/reap.h"

#include <stdio.h>

enum step {
	STEP_HOLDING,
	STEP_ASKED, /* the gentle deletion was taken */
	STEP_FORCED,
	STEP_ABSENT,
};

/* One pod that holds a released device. */
struct claimant {
	char uid[REAP_UID_SIZE];
	struct mono since; /* it holds what isn't its own */
	struct mono first; /* the listing that it was first seen in */
	enum step step;
	struct mono asked; /* of STEP_ASKED */
	struct mono retry; /* no deletion before this */
	bool in_flight, forcing, is_static;
	bool seen; /* in the view at hand */
};

struct reap {
	VEC(struct claimant) claimants;
	struct mono begun[REAP_PER_S]; /* the last deletions that were begun; a ring */
	size_t begun_count;
	bool nameless;
};

struct reap *reap_create(void)
{
	return mem_alloc(sizeof(struct reap));
}

void reap_destroy(struct reap *reap)
{
	if (!reap)
		return;
	vec_deinit(&reap->claimants);
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

/* Brings the claimants up to what the view shows. */
static void follow_holders(struct reap *reap, const struct reap_view *view, struct mono now)
{
	reap->nameless = false;
	vec_each (&reap->claimants, struct claimant * claimant)
		claimant->seen = false;
	for (size_t i = 0; i < view->holders_count; i++) {
		const struct reap_holder *holder = &view->holders[i];
		struct claimant *claimant;
		struct mono since;

		if (!has_ground(view, holder, now, &since))
			continue;
		if (!*holder->uid || strlen(holder->uid) >= REAP_UID_SIZE) {
			reap->nameless = true;
			continue;
		}
		claimant = find(reap, holder->uid);
		if (!claimant) {
			claimant = vec_push(&reap->claimants);
			str_copy(claimant->uid, sizeof claimant->uid, holder->uid);
			claimant->since = since;
			claimant->first = view->listed_at;
		} else if (since.ms < claimant->since.ms) {
			claimant->since = since;
		}
		claimant->seen = true;
	}
	for (size_t i = reap->claimants.count; i-- > 0;)
		if (!reap->claimants.items[i].seen && !reap->claimants.items[i].in_flight)
			vec_remove(&reap->claimants, i);
}

/* --- who it is for the API server --- */

static const struct reap_pod *pod_of(const struct reap_view *view, const char *uid)
{
	for (size_t i = 0; i < view->pods_count; i++)
		if (str_equal(view->pods[i].uid, uid) || str_equal(view->pods[i].static_uid, uid))
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

/* Has the wall clock kept step with the boot-time clock since the release was recorded? */
static bool clocks_agree(const struct reap_view *view, const struct reap_release *release,
			 struct mono now)
{
	int64_t drift = (view->wall.ms - release->since.ms) - mono_until(release->asked, now);

	return release->this_boot && drift > -REAP_SKEW_MS && drift < REAP_SKEW_MS;
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

/* When this claimant's next deletion is due; false when there is none to come. */
static bool next_due(const struct claimant *claimant, struct mono *ret_due)
{
	struct mono due = {0};

	switch (claimant->step) {
	case STEP_HOLDING:
		due = mono_after(claimant->since, REAP_HOLD_MS);
		break;
	case STEP_ASKED:
		due = mono_after(claimant->asked, REAP_FORCE_MS);
		break;
	case STEP_FORCED:
	case STEP_ABSENT:
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

/* A mirror pod comes back under another UID while its static pod runs. */
static void set_absent(struct claimant *claimant, struct mono now)
{
	if (claimant->is_static)
		claimant->retry = mono_after(now, REAP_RETRY_MS);
	else
		claimant->step = STEP_ABSENT;
}

/* One that is due: who is it, and may it be now? */
static void act(struct reap *reap, struct claimant *claimant, const struct reap_view *view,
		struct mono now, struct reap_plan *plan)
{
	const struct reap_holder *holder = holder_of(view, claimant->uid);
	bool known = view->pods_known && view->pods_asked.ms >= claimant->first.ms;
	const struct reap_pod *pod = known ? pod_of(view, claimant->uid) : NULL;
	struct mono due, allowed = rate_allows(reap);

	assert(holder);
	if (!known) {
		plan->need_pods = true;
		return;
	}
	if (!pod) {
		set_absent(claimant, now);
		if (next_due(claimant, &due))
			sooner(plan, due);
		return;
	}
	if (claimant->step == STEP_HOLDING)
		take_over(claimant, view, pod, holder, now);
	if (!next_due(claimant, &due) || due.ms > now.ms) {
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

void reap_decide(struct reap *reap, const struct reap_view *view, struct mono now,
		 struct reap_plan *ret_plan)
{
	*ret_plan = (struct reap_plan){.again = {INT64_MAX}};
	if (!view->listed)
		return;
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
	assert(ret_plan->deletions.count <= REAP_PER_S);
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

enum reap_state reap_state(const struct reap *reap, const char *holder)
{
	const struct claimant *claimant = find(reap, holder);

	if (!*holder)
		return reap->nameless ? REAP_NAMELESS : REAP_NOTHING;
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
	const struct claimant *claimant = find(reap, holder);

	return claimant && next_due(claimant, ret_due);
}

bool reap_idle(const struct reap *reap)
{
	return reap->claimants.count == 0 && !reap->nameless;
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
	};

	return NAMES[state];
}
