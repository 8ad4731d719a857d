#include "sim/invariants.h"

#include "base/hash.h"
#include "base/id.h"
#include "node/core/release.h"
#include "proto/gateway.pb-c.h"
#include "proto/message.h"
#include "sim/programs.h"
#include "sim/sim_api.h"
#include "sim/sim_fs.h"
#include "sim/sim_processes.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <stdio.h>

#define GPU_NAME_LENGTH 40 /* "gpu_" and a UUID */
#define ID_LENGTH       128
#define FORGETFUL_MS    20000 /* a node that begins anew has asked its kubelet by then */

MESSAGE_TYPE(up, Bettercompute__V1__Up, bettercompute__v1__up)
MESSAGE_TYPE(down, Bettercompute__V1__Down, bettercompute__v1__down)

struct used {
	char pod[ID_SIZE]; /* uid; "" for a hold on disk */
	char device[ID_LENGTH];
	char allocation[ID_SIZE];
};
struct used_list VEC_BODY(struct used);

struct said {
	int64_t sequence;
	uint64_t hash;
};

/* What was last said of an allocation, under which Spec. */
struct mention {
	char allocation[ID_SIZE];
	int64_t generation;
};
struct mentions VEC_BODY(struct mention);

static struct {
	struct used_list pods, holds;
	struct mentions released; /* by the node */
	struct mentions given;    /* by a database that went back */
	VEC(struct said) said;
	char lineage[ID_SIZE]; /* of the newest Welcome; numbers count within one */
	int lineages;          /* that there were */
	int64_t acknowledged;
	int64_t generation; /* the newest Spec that was sent */
	int64_t forgot_ms;  /* the machine's state was lost; 0: never */
} seen;

/* A database that went back has forgotten what was released to it, too: it may hand that out again
 * under the old name. */
static void forget_lineage(void)
{
	vec_deinit(&seen.released);
	vec_deinit(&seen.given);
	seen.acknowledged = seen.generation = 0;
	seen.lineage[0] = '\0';
}

void invariants_time_leapt(void)
{
	seen.acknowledged = 0;
}

void invariants_another_node(void)
{
	vec_clear(&seen.said);
	seen.acknowledged = seen.generation = 0;
	seen.forgot_ms = sim.now_ms;
}

void invariants_end(void)
{
	forget_lineage();
	seen.forgot_ms = 0;
	seen.lineages = 0;
	vec_deinit(&seen.pods);
	vec_deinit(&seen.holds);
	vec_deinit(&seen.said);
}

/* An id may follow the device's name. */
static bool is_whole(const char *device)
{
	return device[GPU_NAME_LENGTH] == '\0' || device[GPU_NAME_LENGTH] == '@';
}

bool invariants_overlap(const char *a, const char *b)
{
	if (strlen(a) < GPU_NAME_LENGTH || strncmp(a, b, GPU_NAME_LENGTH) != 0)
		return false;
	return is_whole(a) || is_whole(b) || str_equal(a, b);
}

static struct mention *mention_find(const struct mentions *mentions, const char *allocation)
{
	vec_each (mentions, struct mention * one)
		if (str_equal(one->allocation, allocation))
			return one;
	return NULL;
}

static void mention(struct mentions *mentions, const char *allocation, int64_t generation)
{
	struct mention *one = mention_find(mentions, allocation);
	if (!one) {
		one = vec_push(mentions);
		str_copy(one->allocation, sizeof one->allocation, allocation);
	}
	if (generation > one->generation)
		one->generation = generation;
}

/* For good. But a database that went back may have it still to come: the node had to release it, and
 * gets it by a later Spec. */
static bool is_released(const char *allocation)
{
	const struct mention *released = mention_find(&seen.released, allocation);
	const struct mention *given = mention_find(&seen.given, allocation);
	return released && !(given && given->generation > released->generation);
}

/* --- 1 and 2 --- */

static void pods_check(void)
{
	vec_each (&seen.pods, const struct used *a) {
		if (is_released(a->allocation))
			sim_broken("pod %s runs on %s after %s was reported as released", a->pod,
				   a->device, a->allocation);
		vec_each (&seen.pods, const struct used *b)
			if (a < b && invariants_overlap(a->device, b->device))
				sim_broken("%s of %s and %s of %s are in two pods", a->device,
					   a->allocation, b->device, b->allocation);
	}
}

/* proves: REL-4 */
static void holds_check(void)
{
	vec_each (&seen.holds, const struct used *a) {
		vec_each (&seen.holds, const struct used *b)
			if (a < b && invariants_overlap(a->device, b->device))
				sim_broken("%s is bound to %s and %s to %s", a->device,
					   a->allocation, b->device, b->allocation);
		vec_each (&seen.pods, const struct used *pod)
			if (invariants_overlap(a->device, pod->device) &&
			    !str_equal(a->allocation, pod->allocation))
				sim_broken("%s is bound to %s while a pod runs on it by %s",
					   a->device, a->allocation, pod->allocation);
	}
}

/* Does bcd's record say that the pod had a device of it, and that all is released? It stays until that
 * is acknowledged. */
static bool is_on_record(const char *allocation, const char *pod)
{
	const struct buf *text = sim_fs_content(NODE_DATA "/" RELEASES_FILE);
	CLEANUP(releases) struct releases releases = {0};
	const struct release_entry *entry;
	struct error error; /* damage is another check's */
	if (!text || !releases_parse((const char *)text->data, text->length, &releases, &error))
		return false;
	entry = releases_find(&releases, allocation);
	for (size_t i = 0; entry && entry->reported && i < entry->pods.count; i++)
		if (str_equal(entry->pods.items[i].uid, pod))
			return true;
	return false;
}

/* By which allocation it has its GPU nobody can tell whose state was lost after the pod was, or just before: the
 * GPU is claimed, but an allocation of which it was a part may be reported. */
static bool is_known(const struct sim_pod_process *process)
{
	return seen.forgot_ms == 0 || process->alone_ms > seen.forgot_ms + FORGETFUL_MS;
}

/* A process that outlives its pod still has its GPU: nobody may hear that it is free, and nobody else
 * may get it. proves: REL-10 REL-12 */
static void lingering_check(void)
{
	vec_each (sim_processes_lingering(), const struct sim_pod_process *process) {
		const char *allocation = strchr(process->device, '@') + 1;
		/* That one without an open device has one is known to who remembers its pod. */
		if (process->opens_ms > sim.now_ms) {
			if (is_on_record(allocation, process->pod))
				sim_broken("pod %s lives on, and %s was reported as released",
					   process->pod, process->device);
			continue;
		}
		if (is_released(allocation) && is_known(process))
			sim_broken("a process of pod %s has %s open after it was reported as "
				   "released",
				   process->pod, process->device);
		vec_each (&seen.holds, const struct used *hold)
			if (invariants_overlap(hold->device, process->device) &&
			    !str_equal(hold->allocation, allocation))
				sim_broken("%s is bound to %s while a process of pod %s has it "
					   "open by %s",
					   hold->device, hold->allocation, process->pod,
					   allocation);
	}
}

static void used_add(struct used_list *list, const char *pod, const char *id)
{
	struct used used = {0};
	const char *at = strchr(id, '@');
	if (!at) {
		sim_broken("a device's id is '%s', without its allocation", id);
		return;
	}
	snprintf(used.device, sizeof used.device, "%.*s", (int)(at - id), id);
	str_copy(used.pod, sizeof used.pod, pod);
	str_copy(used.allocation, sizeof used.allocation, at + 1);
	*vec_push(list) = used;
}

void invariants_no_pods(void)
{
	vec_clear(&seen.pods);
}

void invariants_pods(const json_t *pods)
{
	vec_clear(&seen.pods);
	for (size_t i = 0; i < json_array_size(pods); i++) {
		const json_t *pod = json_array_get(pods, i);
		if (!str_equal(json_string_value(json_object_get(pod, "phase")), "Running"))
			continue;
		const json_t *devices = json_object_get(pod, "devices");
		for (size_t k = 0; k < json_array_size(devices); k++)
			used_add(&seen.pods, json_string_value(json_object_get(pod, "uid")),
				 json_string_value(
					 json_object_get(json_array_get(devices, k), "id")));
	}
	pods_check();
	holds_check();
	lingering_check();
}

/* A spec that can't be read yet is about to be replaced, or torn by a power cut: bcd's to notice.
 */
static void hold_read(const char *name)
{
	char path[512], id[ID_LENGTH];
	snprintf(path, sizeof path, NODE_CDI "/%s", name);
	const struct buf *text = sim_fs_content(path);
	CLEANUP(tree) json_t *spec = NULL;
	struct error error;
	if (!text || !tree_parse(text->data, text->length, 1 << 20, path, &spec, &error))
		return;
	const json_t *devices = json_object_get(spec, "devices");
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const char *device =
			json_string_value(json_object_get(json_array_get(devices, i), "name"));
		const char *end = strchr(name, '.') ? strrchr(name, '.') : name;
		const char *allocation = name + strlen("bcd.dev-");
		/* A device's CDI name may carry its allocation already. */
		snprintf(id, sizeof id, "%.*s@%.*s", (int)strcspn(device, "@"), device,
			 (int)(end - allocation), allocation);
		used_add(&seen.holds, "", id);
	}
}

void invariants_holds(void)
{
	struct durable_names names = {0};
	struct error error;
	vec_clear(&seen.holds);
	if (!durable_list(NODE_CDI, 4096, &names, &error))
		return;
	for (size_t i = 0; i < names.count; i++)
		if (str_starts(names.names[i], "bcd.dev-"))
			hold_read(names.names[i]);
	durable_names_deinit(&names);
	holds_check();
	lingering_check();
}

/* --- 2, 3 and 4: what is said --- */

/* proves: REL-2 GW-17 */
static void released_check(const char *allocation, int64_t generation)
{
	mention(&seen.released, allocation, generation);
	if (!is_released(allocation))
		return;
	vec_each (&seen.pods, const struct used *pod)
		if (str_equal(pod->allocation, allocation))
			sim_broken("%s is reported as released while pod %s runs on %s", allocation,
				   pod->pod, pod->device);
	lingering_check();
}

static void sequence_check(int64_t sequence, const uint8_t *data, size_t length)
{
	uint64_t hash = hash_add(HASH_START, data, length);

	vec_each (&seen.said, const struct said *said) {
		if (said->sequence != sequence)
			continue;
		if (said->hash != hash)
			sim_broken("report %lld stands for two contents", (long long)sequence);
		return;
	}
	*vec_push(&seen.said) = (struct said){sequence, hash};
}

static void up_check(const uint8_t *data, size_t length)
{
	CLEANUP(message) Bettercompute__V1__Up *message = NULL;
	struct error error;
	if (!up_unpack(data, length, &message, &error)) {
		sim_broken("the node sends what can't be read: %s", error.what);
		return;
	}
	if (message->body_case != BETTERCOMPUTE__V1__UP__BODY_REPORT)
		return;
	const Bettercompute__V1__Report *report = message->report;
	sim_trace("report %lld of generation %lld, kind %d", (long long)report->sequence,
		  (long long)report->spec_generation, (int)report->body_case);
	/* Of inventory and conditions what is sent is what is true then. */
	if (report->body_case != BETTERCOMPUTE__V1__REPORT__BODY_INVENTORY &&
	    report->body_case != BETTERCOMPUTE__V1__REPORT__BODY_CONDITIONS)
		sequence_check(report->sequence, data, length);
	if (report->body_case == BETTERCOMPUTE__V1__REPORT__BODY_RELEASED)
		released_check(report->released->allocation, report->spec_generation);
}

static void welcome_check(const char *lineage, int64_t acknowledged)
{
	sim_trace("welcome, acknowledged %lld", (long long)acknowledged);
	if (!str_equal(lineage, seen.lineage)) {
		forget_lineage();
		seen.lineages++;
		str_copy(seen.lineage, sizeof seen.lineage, lineage);
	}
	if (acknowledged < seen.acknowledged)
		sim_broken("report %lld was acknowledged and is not any more: only %lld is",
			   (long long)seen.acknowledged, (long long)acknowledged);
	seen.acknowledged = acknowledged;
}

static void down_check(const uint8_t *data, size_t length)
{
	CLEANUP(message) Bettercompute__V1__Down *message = NULL;
	struct error error;
	if (!down_unpack(data, length, &message, &error)) {
		sim_broken("the control plane sends what can't be read: %s", error.what);
		return;
	}
	if (message->body_case == BETTERCOMPUTE__V1__DOWN__BODY_ACK) {
		sim_trace("ack %lld", (long long)message->ack->sequence);
		if (message->ack->sequence > seen.acknowledged)
			seen.acknowledged = message->ack->sequence;
	} else if (message->body_case == BETTERCOMPUTE__V1__DOWN__BODY_WELCOME) {
		welcome_check(message->welcome->lineage, message->welcome->acknowledged);
	} else if (message->body_case == BETTERCOMPUTE__V1__DOWN__BODY_SPEC) {
		sim_trace("spec %lld with %zu assignments", (long long)message->spec->generation,
			  message->spec->n_assignments);
		if (message->spec->generation < seen.generation)
			sim_broken("Spec %lld was sent after %lld",
				   (long long)message->spec->generation,
				   (long long)seen.generation);
		seen.generation = message->spec->generation;
		for (size_t i = 0; seen.lineages > 1 && i < message->spec->n_assignments; i++)
			mention(&seen.given, message->spec->assignments[i]->allocation,
				message->spec->generation);
	}
}

void invariants_message(bool to_server, const uint8_t *data, size_t length)
{
	if (to_server)
		up_check(data, length);
	else
		down_check(data, length);
}
