/* A node whose uplink is the test's, on a folder of its own, for what it tells and what it keeps of that. No
 * kubelet was ever here, so nothing is to be waited for. */
#pragma once

#include "core/fixture.h"
#include "kubelet.h"
#include "node/core/reports.h"
#include "node/node.h"
#include "node/state.h"
#include "node/uplink.h"

#include <sys/resource.h>

#define MAX_SENT 64

/* node/uplink.h: always open; what comes down is set by the test, which calls tell() then. */
struct uplink {
	struct uplink_options options;
	const char *welcome;   /* lineage, until it is taken */
	const char *pool;      /* that the welcome names, at site_x; NULL: none */
	struct spec *spec;     /* until it is taken */
	int64_t acknowledged;  /* on this stream */
	bool unready;          /* no Hello could be said, at the last step */
	const char *operation; /* its kind, until it is taken; NULL: none */
	size_t sent_count;
	struct sent {
		int64_t sequence, generation;
		char told[2048]; /* what it says: an operation's reason and message, conditions */
		Bettercompute__V1__Report__BodyCase kind;
	} sent[MAX_SENT];
};
extern struct uplink *uplink; /* the node's */

struct world {
	void *folder; /* lib/folder.h: a path */
	char path[512];
	struct loop *loop;
	struct config config;
	struct node *node;
	struct inventory inventory;
};

/* Of a name below the folder; valid until the next call. */
const char *at(struct world *world, const char *name);
void write_text(struct world *world, const char *name, const struct buf *text);
/* ALC_A is wanted, or it isn't. */
struct spec *make_spec(struct world *world, const char *lineage, int64_t generation, bool with_a);
void write_spec(struct world *world, const char *lineage, int64_t generation, bool with_a);
/* ALC_A's is pending, or reported; `filling`: so much that a newer bcd may have written beside it. */
void write_releases(struct world *world, bool reported, size_t filling);
/* Until nothing of the node is under way. */
void settle(struct world *world);
/* The same after its clocks went so far. */
void pass(struct world *world, int64_t ms);
/* What is set in `uplink` has come. */
void tell(struct world *world);
/* Started and settled, with a stream of this database. */
void start_node(struct world *world, const char *lineage);
void stop_node(struct world *world);
/* The newest of its kind that was sent; NULL: none was. */
const struct sent *last_sent(Bettercompute__V1__Report__BodyCase kind);
/* No file may be longer: as on a full disk. */
void limit_files(rlim_t bytes);
int setup(void **state);
int teardown(void **state);

#define BOUND      BETTERCOMPUTE__V1__REPORT__BODY_BOUND
#define RELEASED   BETTERCOMPUTE__V1__REPORT__BODY_RELEASED
#define INVENTORY  BETTERCOMPUTE__V1__REPORT__BODY_INVENTORY
#define CONDITIONS BETTERCOMPUTE__V1__REPORT__BODY_CONDITIONS
#define RESULT     BETTERCOMPUTE__V1__REPORT__BODY_OPERATION_RESULT

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
