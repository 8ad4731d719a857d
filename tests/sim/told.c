#include "sim/told.h"

#include "sim/programs.h"
#include "text/tree.h"

#include <errno.h>

/* It goes on if it fails so long after it did so often in a row; an answer that never comes is waited for 15 s. */
#define NAMED_MS 20000
#define LOOK_MS  2000
#define HANG_MS  15000 /* bcd waits for 10 s, and looks now and then */
#define AGAIN_MS 5000
#define LOOKS    2 /* in a row: a stream that has just come may not have told all */

static struct {
	int64_t looked_ms;
	uint64_t unnamed; /* looks in a row at which something was */
} told;

/* --- what names it --- */

/* A path's folder, in the same buffer. */
static void cut_name(char *path)
{
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
}

static bool names_place(const char *text, enum sim_effect effect, const char *target, bool alone)
{
	char place[256];
	if (str_starts(target, "unix:"))
		target += strlen("unix:");
	str_copy(place, sizeof place, target);
	if (effect < SIM_CONNECT && (!alone || sim_faults_stem(target) < strlen(target)))
		cut_name(place);
	return strstr(text, place);
}

/* One reason for all that fails. */
static bool is_common(int error)
{
	return error == ENOSPC || error == EMFILE;
}

/* Does this text name what fails, or what it fails of? */
static bool names_failed(const char *text, const void *arg UNUSED)
{
	const struct sim_failed *failed = sim_faults_failed();
	return names_place(text, failed->effect, failed->target, false) ||
	       (is_common(failed->error) && strstr(text, strerror(failed->error)));
}

/* Both of them? */
static bool names_streak(const char *text, const void *arg)
{
	const struct sim_streak *streak = arg;
	if (streak->error < SIM_FAULT_SILENT && !strstr(text, strerror(streak->error)))
		return false;
	return is_common(streak->error) ||
	       names_place(text, streak->effect, streak->target, sim_faults_failed()->alone);
}

typedef bool names_fn(const char *text, const void *arg);

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

/* The type of the condition that does, or NULL. */
static const char *find_condition(const json_t *conditions, names_fn *names, const void *arg)
{
	const json_t *condition;
	size_t i;
	json_array_foreach(conditions, i, condition)
	{
		if (names(text_of(condition, "message"), arg))
			return text_of(condition, "type");
	}
	return NULL;
}

/* The stream and the plugins have a place of their own in the status. */
static const char *find_place(const json_t *status, names_fn *names, const void *arg)
{
	const json_t *resource;
	size_t i;
	if (names(text_of(json_object_get(status, "gateway"), "error"), arg))
		return "status: gateway";
	json_array_foreach(json_object_get(status, "resources"), i, resource)
	{
		if (names(text_of(resource, "error"), arg))
			return "status: resources";
	}
	return NULL;
}

static bool is_connected(const json_t *status)
{
	return str_equal(text_of(json_object_get(status, "gateway"), "state"), "connected");
}

/* --- what stays undone --- */

void told_of_undone(const struct sim_process *process, const char *undone, char *ret_where,
		    size_t size)
{
	/* What the control plane can't read or write, its log tells. */
	if (process != &programs.bcd) {
		if (sim_faults_failed()->logged == 0)
			sim_broken("%s, and no log tells why", undone);
		str_copy(ret_where, size, "log");
		return;
	}
	CLEANUP(tree) json_t *status = bcd_status();
	CLEANUP(tree) json_t *node = programs_look(control_node_get, programs.node_id);
	const char *where =
		find_condition(json_object_get(status, "conditions"), names_failed, NULL);
	if (where && is_connected(status) &&
	    !find_condition(json_object_get(node, "conditions"), names_failed, NULL))
		sim_broken("the control plane isn't told of %s", where);
	if (!where && !is_connected(status))
		where = find_place(status, names_failed, NULL);
	if (!where)
		sim_broken("%s, and nothing tells of it", undone);
	else
		str_copy(ret_where, size, where);
}

/* --- what fails again and again --- */

static const struct exception {
	enum sim_effect effect;
	const char *target;
	bool when_idle; /* only then */
} EXCEPTIONS[] = {
	/* Who has devices is nobody's question while nothing is bound or released (GW-11). */
	{SIM_STAT, NODE_KUBELET "/pod-resources/kubelet.sock", true},
	{SIM_CONNECT, "unix:" NODE_KUBELET "/pod-resources/kubelet.sock", true},
	{SIM_CALL, "unix:" NODE_KUBELET "/pod-resources/kubelet.sock", true},
	{SIM_OPEN, NODE_KUBELET "/device-plugins/kubelet_internal_checkpoint", true},
	{SIM_READ, NODE_KUBELET "/device-plugins/kubelet_internal_checkpoint", true},
	{SIM_STAT, NODE_KUBELET "/pods", true},
	/* A file that can't be looked at any more was read anew then. That it can't be read is named. */
	{SIM_STAT, NODE_GPUS, false},
	{SIM_STAT, NODE_ROOT "/etc/kubernetes/kubelet.conf", false},
};

static bool is_excepted(const struct sim_streak *streak, bool idle)
{
	for (size_t i = 0; i < ARRAY_SIZE(EXCEPTIONS); i++)
		if (streak->effect == EXCEPTIONS[i].effect &&
		    str_equal(streak->target, EXCEPTIONS[i].target))
			return idle || !EXCEPTIONS[i].when_idle;
	return false;
}

/* Asked for as late as can be: most seconds nothing is due. */
struct seen {
	json_t *status, *node;
};

static bool is_named(const struct sim_streak *streak, struct seen *seen)
{
	if (!seen->status) {
		seen->status = bcd_status();
		seen->node = programs_look(control_node_get, programs.node_id);
	}
	if (is_connected(seen->status))
		return find_condition(json_object_get(seen->node, "conditions"), names_streak,
				      streak);
	return find_condition(json_object_get(seen->status, "conditions"), names_streak, streak) ||
	       find_place(seen->status, names_streak, streak);
}

void told_begin(void)
{
	told.unnamed = 0;
	told.looked_ms = sim.now_ms;
}

void told_of_streaks(bool idle)
{
	const struct sim_streak *unnamed = NULL;
	struct seen seen = {0};
	if (sim.now_ms - told.looked_ms < LOOK_MS)
		return;
	told.looked_ms = sim.now_ms;
	vec_each (sim_faults_streaks(), const struct sim_streak *streak) {
		if (streak->times >= SIM_STREAK && streak->last_ms - streak->row_ms >= NAMED_MS &&
		    !is_excepted(streak, idle) && !is_named(streak, &seen))
			unnamed = streak;
	}
	json_decref(seen.status);
	json_decref(seen.node);
	told.unnamed = unnamed ? told.unnamed + 1 : 0;
	if (told.unnamed == LOOKS)
		sim_broken("%s of %s has failed %llu times in a row (%s), and nothing names it",
			   sim_effect_name(unnamed->effect), unnamed->target,
			   (unsigned long long)unnamed->times, sim_fault_text(unnamed->error));
}

/* --- what hangs --- */

static bool names_hang(const char *text, const void *arg UNUSED)
{
	return strstr(text, "it hangs");
}

static void hang_look(void *arg UNUSED)
{
	CLEANUP(tree) json_t *status = NULL;
	int64_t since_ms;
	const char *path = sim_hang(&since_ms), *type;

	if (!path || sim.now_ms - since_ms < HANG_MS)
		return;
	/* Who was frozen had no time to look. */
	if (sim.now_ms - programs.bcd.frozen_until_ms >= HANG_MS) {
		status = bcd_status();
		type = find_condition(json_object_get(status, "conditions"), names_hang, NULL);
		if (!type || !str_equal(type, "RecordsUnwritable"))
			sim_broken("%s has hung for %lld s, and nothing tells of it", path,
				   (long long)(sim.now_ms - since_ms) / 1000);
	}
	sim_schedule(NULL, AGAIN_MS, hang_look, NULL);
}

void told_of_hang(void)
{
	sim_schedule(NULL, HANG_MS, hang_look, NULL);
}
