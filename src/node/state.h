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
#include "node/core/strays.h"
#include "node/deviceplugin.h"
#include "node/exposure.h"
#include "node/holders.h"
#include "node/holds.h"
#include "node/labels.h"
#include "node/node.h"
#include "node/podprocesses.h"
#include "node/podwatch.h"
#include "node/reaper.h"
#include "node/strays.h"
#include "node/unlisted.h"
#include "node/uplink.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/machine.h"
#include "sys/watch.h"

#define NODE_TICK_MS        1000
#define NODE_HOLDS_MS       5000  /* between two reads of the holds that nothing asked for (DP-4) */
#define NODE_HOLDERS_MS     5000  /* between two questions to the kubelet while devices are bound */
#define NODE_CLOSE_MS       500   /* and while one is to be missed at once (unlisted.h) */
#define NODE_STRAYS_MS      30000 /* and while none is: a pod may have one all the same (REL-27) */
#define NODE_REFRESH_MS     5000  /* between two lists that have the kubelet write its checkpoint */
#define NODE_WRITE_AGAIN_MS 1000  /* after a durable list that failed */
#define NODE_REFUSED_MS     5000  /* for the control plane to withdraw what couldn't be bound */
#define NODE_CDI_MODE       0755

/* A pending release as it stands in this process. */
struct node_release {
	char allocation[ID_SIZE];
	bool bound; /* at the last look */
	struct mono withdrawn;
	struct release_plan plan;
};

/* Where this node is, as the control plane said: kept with its identity. */
struct node_place {
	char site[ID_SIZE], pool[IDENTITY_NAME_SIZE];
};

/* Pods that had a device of an allocation that is bound or pending, as the kubelet's checkpoint named
 * them: one may be forgotten by the kubelet, and its processes live on. */
struct node_users {
	char allocation[ID_SIZE];
	struct release_pods pods;
};

/* The records as they will be once the durable list under way is done. */
struct node_write {
	struct spec *spec;  /* NULL: as before */
	struct spec *again; /* the stored one, that came again and named releases; NULL: none */
	bool releases_changed, reports_changed, certificate_changed, place_changed;
	bool no_longer_fresh; /* the identity: a Spec of this node is stored */
	bool sync;            /* nothing else: the folders are synced */
	struct releases releases;
	struct reports reports;
	struct buf certificate;
	struct node_place place;
};

/* Outlives a node that is destroyed while its list is under way. */
struct node_ticket {
	struct node *node; /* NULL: gone */
	struct durable_job *job;
	struct mono since;
};

/* A GPU's health as it was logged last. */
struct node_health {
	struct atom_uuid gpu;
	char cause[HEALTH_CAUSE_SIZE]; /* "": healthy */
	struct wall since;             /* of this cause, as far as this process has seen */
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
	struct spec *spec;       /* NULL: none, or unreadable */
	struct error spec_error; /* why the one that was stored is lost, until there is another */
	struct releases releases;
	size_t crowded; /* with so many entries there was no room for their pods; 0: there was */
	bool boot_unrecorded; /* the record on disk is of an earlier boot */
	bool marker;          /* releases could not be read (REL-32) */
	struct error
		marker_error; /* it can't be looked at: nothing is decided; code NONE: it can */
	bool misplaced; /* and the file that couldn't be read is still where the next would go */
	char misplaced_why[ERROR_WHAT_SIZE];
	struct mono marked;          /* since when this process knows of it */
	struct outside_plan outside; /* while the marker is there: who is in the way */
	struct reports reports;
	int64_t reports_stored;     /* the highest number on disk */
	struct error reports_error; /* why those of before are lost, until all is told anew */
	int64_t reports_anew;       /* the last number of that */
	bool unread;   /* spec.json or reports.json: nothing is known of them (records.h) */
	bool unsynced; /* what was read may be gone after a power cut */

	/* writing */
	struct node_ticket *ticket; /* of the durable list under way; NULL: none is */
	struct node_write write;
	struct mono write_after;
	struct error write_error; /* why records can't be written or read; code NONE: they can */
	struct error write_told;  /* of the last failure, until there was none for a while */
	struct mono write_failing_since, write_failed_at; /* the first and the last of those */
	struct error write_hangs; /* of the list under way; code NONE: it doesn't */
	bool tidy;                /* temporary files may have been left: they are looked for then */
	struct mono tidy_at;
	struct mono refused_at;    /* when something couldn't be bound, or bcd came to know of it */
	struct mono numbers_again; /* when the numbers of the holds' device nodes are looked at */

	/* GPUs and what is offered */
	struct source *gpus;
	struct node_told gpus_told; /* of their trouble, in the log */
	VEC(struct node_health) health;
	struct allocator *allocator;
	struct offers offers;
	struct deviceplugin *plugins[ATOM_CLASSES];
	struct watch *cdi_watch, *plugin_watch;
	bool watches_due;

	/* releases */
	VEC(struct node_release) pending;
	struct holders *holders;
	VEC(struct node_users) users;
	struct podprocesses *podprocesses;
	struct holders_listing coming;        /* complete once the processes were looked at, too */
	struct holders_listing listing;       /* the last good one */
	struct podprocesses_answer processes; /* and what was found beside it */
	struct unlisted unlisted;             /* pods that the API server is asked about */
	struct unlisted words;                /* what its events said of others */
	struct podwatch *podwatch;            /* which it tells of them */
	bool blind; /* the host's processes can't be seen: the pods' ends are to be proven */
	/* Blind, and who is given a device now can't be put on record: none is given. Its code NONE: they are. */
	struct error withheld;
	struct strays strays; /* who has what isn't bound, while it is known what is */
	bool doubted;         /* a bind waits until that is known */
	struct mono doubted_since;
	struct mono listed_at;             /* when it was asked for */
	bool listed;                       /* there is one */
	enum release_answer answered_how;  /* NONE, FAILED, or FREE for "see listing" */
	struct mono asked_at, answered_at; /* the running question; the one behind the answer */
	struct durable_stamp kubelet;      /* pod-resources' socket */
	struct mono kubelet_since;
	struct mono
		kubelet_heard; /* since when it is known to have heard of its pods; NEVER (unlisted.h) */
	bool checkpoint_stale; /* the last listing had somebody by it alone who is over */
	struct mono refreshed; /* when the kubelet was last made to write its checkpoint */
	uint32_t holders_failures;
	struct mono holders_failing_since;
	char holders_error[ERROR_WHAT_SIZE];
	bool processes_failing;
	struct mono processes_failing_since;
	struct reaper *reaper;
	struct kube_client *kube; /* NULL until something is asked: see node_kube() */
	struct labels *labels;    /* of this machine's Node */
	struct exposure *exposure;

	/* telling */
	struct uplink *uplink;
	char lineage[SPEC_LINEAGE_SIZE]; /* of the open stream; "" none */
	int64_t sent;                    /* highest sequence sent on the open stream */
	struct conditions conditions;
	struct buf inventory_told; /* packed, as last queued */
	bool gpus_changed;         /* since their inventory was last compared with that */
	bool inventory_due, conditions_due, place_due;
	bool conditions_untold;  /* on this stream, while nothing can be recorded */
	struct node_place place; /* as the newest Welcome said */
	struct status *status;
	const struct confinement *confinement; /* NULL: not said */
	struct exporter *exporter;
	struct exporter_figures figures;
};

/* Since when this GPU's health is what it is, as far as this process has seen; 0: not known. */
struct wall node_health_since(const struct node *node, struct atom_uuid gpu);
void node_wake(void *node); /* a loop_fn: a turn is due */
/* Is what is offered offered to pods? The machine's Node, as far as is known, is there. */
bool node_serves_kubelet(const struct node *node);
/* Asks the API server with the kubelet's identity ([kubernetes] kubeconfig, which isn't ""). */
struct kube_client *node_kube(struct node *node);
void node_again(struct node *node, struct mono when); /* a turn is due then, at the latest */

/* --- release.c: the record, its damage, and who holds what --- */

/* Reads releasing.json; an unreadable one becomes marker and renamed file (REL-30..32, 48, 55). */
void release_load(struct node *node);
void release_look(struct node *node);            /* is the marker still there? (REL-42) */
bool release_is_worker(const struct node *node); /* REL-15 */
/* Is there a kubelet's trace on this machine? A hosted node counts as a worker without one. */
bool release_has_kubelet(const struct node *node);
/* When this process last answered an Allocate; {0}: never. */
struct mono release_given(const struct node *node);
/* Asks the kubelet at this time, unless a question is under way. */
void release_ask(struct node *node, struct mono now, struct mono when);
/* Follows kubelet and pending releases, and asks the kubelet when it is time. */
void release_step(struct node *node, struct mono now);
void release_on_holders(void *node, struct holders_listing *listing, const struct error *error);
void release_on_processes(void *node, struct podprocesses_answer *answer);
struct node_release *release_find(struct node *node, const char *allocation);
/* Does a release, or the marker, wait for this holder to be gone? */
bool release_waits_for(const struct node *node, const struct holder *holder);
/* Does one wait for somebody whom only the kubelet's checkpoint names? Or names it somebody who is over? A bcd that
 * lost its records would wait for him. */
bool release_only_in_checkpoint(const struct node *node);
/* Who may yet have a device of it: of this boot, on record or seen since. `*ret_pods` must be empty. */
void release_pods(const struct node *node, const struct release_entry *entry,
		  struct release_pods *ret_pods);
/* This pod has, or had, a device of the allocation. */
void release_remember(struct node *node, const char *allocation, const char *uid);
void release_deinit(struct node *node);

/* --- converge.c: one pass of deciding and recording --- */

void converge_step(struct node *node, struct mono now);

/* --- report.c: inventory, conditions, and the queue up the stream --- */

void report_look(struct node *node, struct mono now); /* what changed is due to be told */
void report_step(struct node *node, struct mono now);
/* What of the host can be booked: all but what the configuration reserves. */
struct admission_share node_host(const struct node *node);
struct inventory_report report_inventory(const struct node *node);
/* Is the stream open, on the database that this node's numbers belong to? */
bool report_may_go(const struct node *node);

/* Is what is bound offered by the API that pods ask (gpu_api.h)? False: `why` gets what is in the way. */
bool node_offers(const struct node *node, struct buf *why);
