#include "node/core/registration.h"

#include <stdio.h>

#define NAME_PREFIX "bcd-"
#define NAME_SUFFIX ".sock"

void registration_name(char out[REGISTRATION_NAME_SIZE], const char *class_name, uint32_t random)
{
	snprintf(out, REGISTRATION_NAME_SIZE, NAME_PREFIX "%s-%08x" NAME_SUFFIX, class_name,
		 (unsigned)random);
}

bool registration_is_name(const char *name)
{
	return str_starts(name, NAME_PREFIX) && str_ends(name, NAME_SUFFIX);
}

int64_t registration_backoff(uint32_t failures, uint32_t jitter)
{
	int64_t wait = REGISTRATION_BACKOFF_MIN_MS;

	for (uint32_t i = 1; i < failures && wait < REGISTRATION_BACKOFF_MAX_MS; i++)
		wait *= 2;
	if (wait > REGISTRATION_BACKOFF_MAX_MS)
		wait = REGISTRATION_BACKOFF_MAX_MS;
	return wait - (int64_t)(jitter % (uint32_t)(wait / 4 + 1));
}

static struct registration_plan plan(enum registration_step step, const char *why)
{
	return (struct registration_plan){.step = step, .why = why};
}

static struct registration_plan wait_until(struct mono when, const char *why)
{
	return (struct registration_plan){
		.step = REGISTRATION_NOTHING, .again = when, .timed = true, .why = why};
}

/* No stream, and the kubelet is there: now, or after a pause? */
static struct registration_plan decide_try(const struct registration_view *view, struct mono now)
{
	struct mono when;

	if (!view->ever_tried || view->kubelet_new)
		return plan(REGISTRATION_REGISTER, "a kubelet is there");
	if (view->own_lost) {
		when = mono_after(view->tried, REGISTRATION_BACKOFF_MIN_MS);
		if (mono_until(now, when) > 0)
			return wait_until(when, "our socket was taken away again");
		return plan(REGISTRATION_REGISTER, "our socket was taken away");
	}
	if (view->accepted && view->up) {
		when = mono_after(view->tried, REGISTRATION_STREAM_MS);
		if (mono_until(now, when) > 0)
			return wait_until(when, "waits for the kubelet's stream");
	}
	when = mono_after(view->tried, registration_backoff(view->failures, view->jitter));
	if (mono_until(now, when) > 0)
		return wait_until(when, "the last try failed");
	return plan(REGISTRATION_REGISTER, "tries again");
}

struct registration_plan registration_decide(const struct registration_view *view, struct mono now)
{
	if (!view->wanted)
		return view->up ? plan(REGISTRATION_STOP, "not offered")
				: plan(REGISTRATION_NOTHING, "not offered");
	if (view->calling)
		return plan(REGISTRATION_NOTHING, "registering");
	if (view->streaming && !view->own_lost)
		return plan(REGISTRATION_NOTHING, "registered");
	if (!view->kubelet_present && view->streaming)
		return plan(REGISTRATION_NOTHING, "registered; the kubelet's socket is gone");
	if (!view->kubelet_present)
		return view->up ? plan(REGISTRATION_STOP, "no kubelet")
				: plan(REGISTRATION_NOTHING, "no kubelet");
	return decide_try(view, now);
}
