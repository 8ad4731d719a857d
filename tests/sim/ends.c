#include "sim/ends.h"

#include "sim/kubelet.h"
#include "sim/people.h"
#include "sim/programs.h"
#include "sim/sim_api.h"
#include "sim/sim_pods.h"
#include "sim/trouble.h"

#define MISSED_MS   15000
#define AWAY_MS     10000
#define LAST_ONES   3
#define LOOKS_MS    200
#define TOGETHER_MS 100
#define BOOKED_MIN  60
#define AGAIN_MS    1000
#define BOUND_MS    6000  /* in so long what is booked is bound, as a rule */
#define REFUSED_MS  40000 /* from then on */

static void in(int64_t least_ms, uint64_t more_ms, sim_fn *fn)
{
	sim_schedule(NULL, least_ms + (int64_t)sim_below(more_ms), fn, NULL);
}

/* The last bookings: their pods may run. */
static void release_last(void *arg UNUSED)
{
	size_t count = people.bookings.count;
	if (!programs_serving()) {
		in(AGAIN_MS, 1, release_last);
		return;
	}
	for (size_t i = count > LAST_ONES ? count - LAST_ONES : 0; i < count; i++)
		people_release(people.bookings.items[i].id);
}

static void kill_bcd(void *arg UNUSED)
{
	sim_process_kill(&programs.bcd, SIM_KILLED);
}

static void force_one(void *arg UNUSED)
{
	sim_pods_force_one();
}

void ends_while_kubelet_is_away(void)
{
	kubelet_trouble();
	in(0, MISSED_MS, release_last);
}

void ends_while_bcd_is_away(void)
{
	in(0, MISSED_MS, release_last);
	in(0, AWAY_MS, kill_bcd);
	in(0, AWAY_MS, force_one);
}

static void run_one(void *arg UNUSED)
{
	people_run_pod("gpu", 1, true, false);
}

void ends_as_it_begins(void)
{
	if (!programs_serving())
		return;
	people_reserve("gpu", 1, BOOKED_MIN, 0);
	in(BOUND_MS + TOGETHER_MS, 1, run_one);
	in(BOUND_MS, 2 * TOGETHER_MS, release_last);
}

/* --- untold --- */

static void kill_kubelet(void *arg UNUSED)
{
	sim_process_kill(&programs.kubelet, SIM_KILLED);
}

/* Who counts a grace doesn't come to its end. */
static void kill_while_it_counts(void *arg UNUSED)
{
	if (sim_pods_outlived())
		kill_kubelet(NULL);
	else if (!sim.calm)
		in(LOOKS_MS, 1, kill_while_it_counts);
}

static void force_newest(void *arg UNUSED)
{
	people_force_pod(people.pods);
	if (sim_below(2))
		kill_while_it_counts(NULL);
}

static void cut_power(void *arg UNUSED)
{
	sim_machine_cut(&programs.node);
}

static void damage(void *arg UNUSED)
{
	trouble_releases();
}

static void refuse(void *arg UNUSED)
{
	sim_api_refuses_bcd(REFUSED_MS);
}

void ends_untold(void)
{
	sim_fn *const meanwhile[] = {kill_kubelet, kill_bcd, force_one, cut_power, damage};

	if (!programs_serving())
		return;
	people_reserve("gpu", 1, BOOKED_MIN, 0);
	if (sim_below(2))
		in(BOUND_MS, 1, refuse);
	in(BOUND_MS + 1, 1, run_one);
	in(BOUND_MS + MISSED_MS, MISSED_MS, force_newest);
	in(sim_below(2) ? BOUND_MS : BOUND_MS + REFUSED_MS, REFUSED_MS, release_last);
	if (sim_below(2))
		in(BOUND_MS + MISSED_MS, REFUSED_MS, meanwhile[sim_below(ARRAY_SIZE(meanwhile))]);
}

/* --- slowly --- */

static void run_static(void *arg UNUSED)
{
	people_run_static_pod();
}

static void remove_manifest(void *arg UNUSED)
{
	people_remove_manifest();
}

void ends_slowly(void)
{
	if (!programs_serving())
		return;
	people_reserve("gpu", 1, BOOKED_MIN, 0);
	in(BOUND_MS + 1, 1, run_static);
	in(BOUND_MS + MISSED_MS, MISSED_MS, remove_manifest);
	in(BOUND_MS + MISSED_MS, MISSED_MS, release_last);
}

/* --- forgotten --- */

static void lose_state(void *arg UNUSED)
{
	trouble_state();
}

void ends_forgotten(void)
{
	if (people.pods > 0)
		people_delete_pod(people.pods);
	in(0, MISSED_MS, lose_state);
}
