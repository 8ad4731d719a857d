/*
 * sim_pods: the pods of the node, as the API server has them, and what they go through.
 *
 * Pods      are what the kubelet's machine has (the stand-in is told of them directly), under the
 *           names that the API server has for them, for as long as it has them: one that is
 *           deleted by force is gone there while it still runs.
 * Bad       ones: some hear of their deletion minutes late, some have a finalizer, of these some for
 *           ever; some are static, and there a mirror; of some somebody sets the final phase while they run. Who is
 *           deleted by force, or whose manifest is removed, is off the kubelet's list at once and runs out its grace
 *           (programs.in_pod).
 */
#pragma once

#include "base/vec.h"
#include "sim/sim.h"

#include <jansson.h>

#define SIM_POD_NAME_SIZE 64

struct sim_pod {
	char uid[SIM_POD_NAME_SIZE], name[SIM_POD_NAME_SIZE];
	VEC(char *) allocations; /* whose devices it has had */
	bool newcomer;           /* under an old name, holds nothing */
	bool finalizer, gone;    /* gone: the API server has it no more */
	bool stays;              /* nobody ever takes the finalizer away */
	bool over;               /* its phase is final */
	bool runs;               /* the kubelet's machine has it */
	bool has_run;            /* on devices, */
	int64_t ran_ms;          /* since then */
	bool untold;             /* bcd ended before it had put on record what a list says of it */
	bool orphan;             /* the kubelet was started since the API server had it */
	bool failed;             /* somebody set its phase, its containers run on */
	int64_t spec_s;          /* its spec's grace */
	int64_t lives_until_ms; /* dropped by the kubelet its processes run out their grace; 0: none do */
	bool stuck; /* longer than that: its kubelet can't kill them, its mirror tells */
	bool deleting;
	int64_t deleted_ms, grace_s; /* of the gentlest deletion that is under way */
	int64_t late_ms;             /* the kubelet hears of a deletion so much later */
	int64_t told_s;              /* the grace that it hears of */
	int64_t heard_s, heard_ms;   /* and has heard of last, then; 0: of none */
	/* A static pod's: the API server has a mirror of it, which comes back while it runs. */
	char mirror[SIM_POD_NAME_SIZE]; /* its UID; "" for none */
	int64_t asked_ms; /* somebody's first deletion of it, or of a mirror of it; 0: none */
};

struct sim_pods VEC_BODY(struct sim_pod *);

void sim_pods_end(void);
void sim_pods_seen(const json_t *pods); /* as the kubelet's machine has them now */
bool sim_pods_knows(const char *uid);   /* the machine has it, or the API server does */
bool sim_pods_runs(void);               /* some pod, on devices */
uint64_t sim_pods_ran(void);            /* that ran on devices */
/* Its object is: who deletes by this name deletes nothing, or a newcomer. The kubelet has heard, or will. */
bool sim_pods_is_gone(const char *name);

/* The kubelet's checkpoint is lost: who has devices runs on, and the kubelet knows of none of them. On a machine
 * their owners end them sooner or later; in a pod bcd asks them to go, but for static ones. */
void sim_pods_devices_forgotten(void);

/* Somebody deletes it with no grace: it is gone there, and the kubelet hears of it when it can. */
void sim_pods_force(const char *name);
void sim_pods_force_one(void); /* that runs on devices */

/* Who isn't on the kubelet's list any more: do its processes run out their grace, as its object was deleted by
 * force, or its manifest removed? Until a kubelet that doesn't know it hears of its pods, when it goes meanwhile. */
bool sim_pods_lives_on(const char *uid);
bool sim_pods_outlived(void); /* do those of any, of whom a kubelet that runs counts the grace? */
void sim_pods_kubelet_goes(void);
void sim_pods_kubelet_hears(void);
void sim_pods_power_cut(void);
void sim_pods_bcd_ends(void);
bool sim_pods_untold(const char *uid);

/* --- for the API server's requests --- */

const struct sim_pods *sim_pods_all(void);
struct sim_pod *sim_pods_by_name(const char *name); /* who has it now; NULL: nobody */
const char *sim_pod_uid(const struct sim_pod *pod); /* as the API server has it */
/* Whoever made the pod has made another of its name, and the old one ends. */
void sim_pod_newcomer_takes(struct sim_pod *old);
void sim_pod_delete(struct sim_pod *pod, int64_t grace_s);

/* The kubelet hears that a pod is to end, unless it is away. The world's. */
void sim_world_pod_ends(const char *name, int64_t grace_s);
