#include "sim/kubelet.h"

#include "sim/programs.h"
#include "sim/sim_api.h"
#include "sim/sim_fs.h"
#include "sim/sim_pods.h"
#include "standin/checkpoint.h"
#include "standin/standin.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <stdio.h>

#define PODS         NODE_KUBELET "/pods"
#define CHECKPOINT   NODE_KUBELET "/device-plugins/" CHECKPOINT_NAME
#define UNHEARD_MS   40000  /* mostly at most so long */
#define UNHEARD_LONG 200000 /* and one in three times */
#define FOLDER_MS    1000   /* a pod's folder goes so long after its end, to twice that */
#define AGAIN_MS     2000

/* A pod whose folder goes soon. */
struct leaving {
	char uid[64];
	int64_t at_ms;
};

static struct {
	int64_t unheard_ms; /* since when it is there and hasn't heard; -1: it has, or is away */
	int64_t heard_ms;   /* when it did last */
	bool begun;
	bool forgot;             /* which pod has which device */
	uint64_t unheard_one_in; /* starts of it */
	VEC(struct leaving) leaving;
} kubelet;

/* --- its process --- */

static void on_hears(void *arg UNUSED)
{
	if (!programs.standin || kubelet.unheard_ms < 0)
		return;
	if (sim_api_is_away()) {
		sim_schedule(&programs.kubelet, AGAIN_MS, on_hears, NULL);
		return;
	}
	sim_trace("it hears of its pods");
	kubelet.unheard_ms = -1;
	kubelet.heard_ms = sim.now_ms;
	sim_pods_kubelet_hears();
	standin_hears(programs.standin);
}

static bool begins_unheard(void)
{
	return kubelet.begun && !sim.calm &&
	       (sim_api_is_away() || sim_below(kubelet.unheard_one_in) == 0);
}

static void on_answer(void *arg UNUSED, json_t *answer UNUSED)
{
}

/* It runs bcd's own pod, which has no device, wherever bcd is a pod: also after the power cut that it was
 * forgotten by. */
static void runs_bcd(void *arg UNUSED)
{
	CLEANUP(tree)
	json_t *request = json_pack("{s:s, s:s}", "verb", "run-pod", "name", KUBELET_BCD);

	if (programs.standin && sim_effective())
		standin_request(programs.standin, request, on_answer, NULL);
}

static void run_bcd(void)
{
	if (kubelet.begun && programs.in_pod && programs.kubelet.running)
		sim_schedule(&programs.kubelet, 0, runs_bcd, NULL);
}

static void start(struct sim_process *process)
{
	static const char *const cdi[] = {NODE_CDI};
	const struct standin_options options = {NODE_KUBELET, cdi, 1, .unheard = begins_unheard()};
	struct loop *loop = loop_create();
	struct error error;
	kubelet.unheard_ms = options.unheard ? sim.now_ms : -1;
	if (!options.unheard) {
		kubelet.heard_ms = sim.now_ms;
		sim_pods_kubelet_hears();
	} else
		sim_schedule(process, (int64_t)sim_below(sim_below(3) ? UNHEARD_MS : UNHEARD_LONG),
			     on_hears, NULL);
	if (!standin_create(loop, &options, &programs.standin, &error))
		programs.standin = NULL; /* it died of a crash point on the way */
	run_bcd();
}

static void destroy(struct sim_process *process UNUSED)
{
	sim_pods_kubelet_goes();
	kubelet.unheard_ms = -1;
	standin_destroy(TAKE(programs.standin));
}

void kubelet_prepare(struct sim_process *process)
{
	kubelet.unheard_ms = -1;
	kubelet.begun = false;
	process->start = start;
	process->destroy = destroy;
}

void kubelet_end(void)
{
	vec_deinit(&kubelet.leaving);
}

void kubelet_begin(uint64_t unheard_one_in)
{
	kubelet.begun = true;
	kubelet.forgot = false;
	kubelet.unheard_one_in = unheard_one_in;
	if (!programs.in_pod)
		sim_fs_put(PODS "/made", "");
	run_bcd();
}

bool kubelet_is_well(void)
{
	return programs.standin && kubelet.unheard_ms < 0;
}

bool kubelet_has_forgotten(void)
{
	return kubelet.forgot;
}

int64_t kubelet_heard_ms(void)
{
	return kubelet.heard_ms;
}

bool kubelet_is_unheard(int64_t for_ms)
{
	return programs.standin && kubelet.unheard_ms >= 0 &&
	       sim.now_ms - kubelet.unheard_ms >= for_ms;
}

void kubelet_trouble(void)
{
	struct error error;
	sim_process_kill(&programs.kubelet, SIM_KILLED);
	if (sim_below(8) || !sim_fs_exists(CHECKPOINT))
		return;
	sim_trace("the kubelet's checkpoint is removed");
	kubelet.forgot = true;
	if (!durable_remove(CHECKPOINT, &error))
		sim_broken("%s", error.what);
	sim_pods_devices_forgotten();
}

/* --- the pods' folders --- */

static void path_of(char out[256], const char *uid)
{
	snprintf(out, 256, PODS "/%s", uid);
}

static void on_left(void *arg UNUSED)
{
	char path[256];
	struct error error;
	for (size_t i = kubelet.leaving.count; i-- > 0;) {
		const struct leaving *leaving = &kubelet.leaving.items[i];
		if (leaving->at_ms > sim.now_ms)
			continue;
		path_of(path, leaving->uid);
		vec_remove(&kubelet.leaving, i);
		if (!durable_remove(path, &error))
			sim_broken("%s", error.what);
	}
}

static bool is_leaving(const char *uid)
{
	vec_each (&kubelet.leaving, const struct leaving *leaving)
		if (str_equal(leaving->uid, uid))
			return true;
	return false;
}

static void leave(const char *uid)
{
	int64_t after_ms = FOLDER_MS + (int64_t)sim_below(FOLDER_MS);
	struct leaving *leaving = vec_push(&kubelet.leaving);
	str_copy(leaving->uid, sizeof leaving->uid, uid);
	leaving->at_ms = sim.now_ms + after_ms;
	sim_schedule(NULL, after_ms, on_left, NULL);
}

/* One that a power cut brought back goes, too. */
void kubelet_folders_go(void)
{
	struct durable_names names = {0};
	struct error error;
	if (!kubelet.begun || programs.in_pod || !durable_list(PODS, 4096, &names, &error))
		return;
	for (size_t i = 0; i < names.count; i++)
		if (!str_equal(names.names[i], "made") && !sim_pods_knows(names.names[i]) &&
		    !is_leaving(names.names[i]))
			leave(names.names[i]);
	durable_names_deinit(&names);
}

void kubelet_pods(const json_t *pods)
{
	const json_t *pod;
	size_t i;
	char path[256];
	if (!kubelet.begun || programs.in_pod)
		return;
	json_array_foreach(pods, i, pod)
	{
		path_of(path, json_string_value(json_object_get(pod, "uid")));
		if (str_equal(json_string_value(json_object_get(pod, "phase")), "Running") &&
		    !sim_fs_exists(path))
			sim_fs_put(path, "");
	}
	kubelet_folders_go();
}
