/*
 * state: what a node is made of, for the files of this room that make up its turn.
 *
 * Order of a turn (node.c): look at disk and GPUs, decide and record (converge.c, release.c), tell
 * the kubelet, the control plane and people. One durable list is under way at a time; until it is
 * done nothing else is decided that would change a record.
 */
#pragma once

#include "gpu/source.h"
#include "node/allocate.h"
#include "node/core/conditions.h"
#include "node/core/converge.h"
#include "node/core/exporter.h"
#include "node/core/outside.h"
#include "node/deviceplugin.h"
#include "node/holders.h"
#include "node/holds.h"
#include "node/node.h"
#include "node/podprocesses.h"
#include "node/reaper.h"
#include "node/uplink.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/machine.h"
#include "sys/watch.h"

#define NODE_TICK_MS        1000
#define NODE_HOLDS_MS       5000  /* between two reads of the holds that nothing asked for (DP-4) */
#define NODE_HOLDERS_MS     5000  /* between two questions to the kubelet while devices are bound */
#define NODE_STRAYS_MS      30000 /* and while none is: a pod may have one all the same (REL-27) */
#define NODE_REFRESH_MS     5000  /* between two lists that have the kubelet write its checkpoint */
#define NODE_WRITE_AGAIN_MS 1000  /* after a durable list that failed */

/* A pending release as it stands in this process. */
struct node_release {
	char allocation[ID_SIZE];
	bool bound; /* at the last look */
	struct mono withdrawn;
	struct release_plan plan;
};

/* The records as they will be once the durable list under way is done. */
struct node_write {
	struct spec *spec; /* NULL: as before */
	bool releases_changed, reports_changed, certificate_changed;
	struct releases releases;
	struct reports reports;
	struct buf certificate;
};

/* Outlives a node that is destroyed while its list is under way. */
struct node_ticket {
	struct node *node; /* NULL: gone */
};

/* What of the GPUs' source was logged last: each trouble is told once, when it comes and when it goes. */
struct node_told {
	char gpus[ERROR_WHAT_SIZE], log[ERROR_WHAT_SIZE], record[ERROR_WHAT_SIZE];
	uint64_t log_lost;
};

struct node {
	struct loop *loop;
	const struct config *config;
	struct identity *identity; /* NULL: not joined */
	struct machine machine;
	char boot_id[CLOCK_BOOT_ID_SIZE];
	struct wall started;
	bool stopping;

	struct loop_defer *turn;
	struct loop_timer *timer;
	struct mono timer_at;
	bool timer_set;

	/* paths */
	char *spec_path, *reports_path, *releases_path, *marker_path;
	char *plugin_folder, *pod_resources_path;

	/* what is on disk, as last read or written */
	struct holds holds;
	struct error holds_error; /* code NONE: `holds` is true */
	struct mono holds_read_at;
	bool holds_due;
	struct spec *spec; /* NULL: none, or unreadable */
	struct error spec_error;
	struct releases releases;
	bool marker;    /* releases could not be read (REL-32) */
	bool misplaced; /* and the file that couldn't be read is still where the next would go */
	struct mono marked;          /* since when this process knows of it */
	struct outside_plan outside; /* while the marker is there: who is in the way */
	struct reports reports;
	int64_t reports_stored; /* the highest number on disk */

	/* writing */
	struct node_ticket *ticket; /* of the durable list under way; NULL: none is */
	struct node_write write;
	struct mono write_after;
	struct mono numbers_again; /* when the numbers of the holds' device nodes are looked at */

	/* GPUs and what is offered */
	struct source *gpus;
	struct node_told gpus_told; /* of their trouble, in the log */
	struct allocator *allocator;
	struct offers offers;
	struct deviceplugin *plugins[ATOM_CLASSES];
	struct watch *cdi_watch, *plugin_watch;
	bool watches_due;

	/* releases */
	VEC(struct node_release) pending;
	struct holders *holders;
	struct podprocesses *podprocesses;
	struct holders_listing coming;        /* complete once the processes were looked at, too */
	struct holders_listing listing;       /* the last good one */
	struct podprocesses_answer processes; /* and what was found beside it */
	struct mono listed_at;                /* when it was asked for */
	bool listed;                          /* there is one */
	enum release_answer answered_how;     /* NONE, FAILED, or FREE for "see listing" */
	struct mono asked_at, answered_at;    /* the running question; the one behind the answer */
	struct durable_stamp kubelet;         /* pod-resources' socket */
	struct mono kubelet_since;
	struct mono refreshed; /* when the kubelet was last made to write its checkpoint */
	uint32_t holders_failures;
	struct mono holders_failing_since;
	char holders_error[ERROR_WHAT_SIZE];
	struct reaper *reaper;

	/* telling */
	struct uplink *uplink;
	char lineage[SPEC_LINEAGE_SIZE]; /* of the open stream; "" none */
	int64_t sent;                    /* highest sequence sent on the open stream */
	struct conditions conditions;
	struct buf inventory_told; /* packed, as last queued */
	bool inventory_due, conditions_due;
	struct status *status;
	struct exporter *exporter;
	struct exporter_figures figures;
};

void node_wake(void *node);                           /* a loop_fn: a turn is due */
void node_again(struct node *node, struct mono when); /* a turn is due then, at the latest */

/* --- release.c: the record, its damage, and who holds what --- */

/* Reads releasing.json; an unreadable one becomes marker and renamed file (REL-30..32, 48, 55). */
void release_load(struct node *node);
void release_look(struct node *node);            /* is the marker still there? (REL-42) */
bool release_is_worker(const struct node *node); /* REL-15 */
/* Follows kubelet and pending releases, and asks the kubelet when it is time. */
void release_step(struct node *node, struct mono now);
void release_on_holders(void *node, struct holders_listing *listing, const struct error *error);
void release_on_processes(void *node, struct podprocesses_answer *answer);
struct node_release *release_find(struct node *node, const char *allocation);

/* --- converge.c: one pass of deciding and recording --- */

void converge_load(struct node *node); /* spec.json and reports.json */
void converge_step(struct node *node, struct mono now);

/* --- report.c: inventory, conditions, and the queue up the stream --- */

void report_look(struct node *node, struct mono now); /* what changed is due to be told */
void report_step(struct node *node, struct mono now);
/* What of the host can be booked: all but what the configuration reserves. */
struct converge_host node_host(const struct node *node);
struct inventory_report report_inventory(const struct node *node);
/* Is the stream open, on the database that this node's numbers belong to? */
bool report_may_go(const struct node *node);

/* The API that this node's devices are served by: the pool's, else the configuration's. */
const char *node_gpu_api(const struct node *node);
