/*
 * holds: what is bound on this machine, as CDI specs: one file a hold.
 *
 * Owns      the truth about bound GPUs (the files themselves; no copy in memory is trusted after a
 *           failed read) and the files' form: DP-54, DP-55, docs/formats/cdi.md.
 * Form      /etc/cdi/bcd.dev-<allocation>.json, kind bcd.dev/gpu, CDI 0.6.0. What bcd needs back is
 *           in annotations; the edits depend on the hold alone, so the same hold always gives the
 *           same bytes; it is written again when its devices' nodes are others (converge.h). Nodes that can't be found when the hold is made keep their paths only.
 * Errors    an unreadable hold is an error that names its file, never "no hold".
 * Pure.
 * Tests     tests/unit/node/core/holds_test.c, fuzz/holds_fuzz.c, tests/peer/cdi
 */
#pragma once

#include "base/buf.h"
#include "base/id.h"
#include "base/vec.h"
#include "gpu/core/inventory.h"
#include "node/core/admission.h"
#include "node/core/dra.h"

#define HOLDS_KIND         "bcd.dev/gpu"
#define HOLDS_PREFIX       "bcd.dev-"
#define HOLDS_SUFFIX       ".json"
#define HOLDS_MAX_FILE     ((size_t)1 << 20)
#define HOLDS_MAX          1024 /* files */
#define HOLDS_MAX_DEVICES  1024 /* of one hold */
#define HOLDS_NAME_SIZE    64   /* of a file */
#define HOLDS_ID_SIZE      128  /* "<device name>@<allocation>", and NUL */
#define HOLDS_BINDING_SIZE 16

struct hold_node {
	char path[INVENTORY_PATH_SIZE];      /* in the container */
	char host_path[INVENTORY_PATH_SIZE]; /* on the host */
	char type;                           /* 'c' or 'b'; 0 when the host has no such node */
	uint32_t major, minor;
};
struct hold_nodes VEC_BODY(struct hold_node);

struct hold_device {
	struct atom atom;
	struct atom_range range;
	char visible[ATOM_VISIBLE_SIZE]; /* what stood at the atom's place when it was bound */
	struct hold_nodes nodes;
};

struct hold {
	char allocation[ID_SIZE];
	char reservation[ID_SIZE]; /* "" when the control plane gave none */
	char binding[HOLDS_BINDING_SIZE];
	/* What is booked of the host for it. An older bcd wrote none for a reservation without limits:
	 * it counts as nothing here, as it did then; the control plane's bookings still count it. */
	struct admission_share share;
	struct hold_nodes common;        /* nodes that every GPU container needs */
	VEC(struct hold_device) devices; /* sorted by atom */
};
void hold_deinit(struct hold *hold);

/* `*ret_copy` must be empty. */
void hold_copy(const struct hold *from, struct hold *ret_copy);

static inline void hold_cleanup(struct hold *hold)
{
	hold_deinit(hold);
}

/* Sorted by allocation; `{0}` is "nothing bound". */
struct holds VEC_BODY(struct hold);
void holds_deinit(struct holds *holds);
const struct hold *holds_find(const struct holds *holds, const char *allocation);
/* The hold that has this kubelet id's device, and the device; false when none has. */
bool holds_find_id(const struct holds *holds, const char *id, const struct hold **ret_hold,
		   const struct hold_device **ret_device);

/* By which nodes a bound device is reached now: none when it isn't there, or when another one stands
 * at its place. Without numbers, which the shell adds. */
void holds_nodes_now(const struct inventory *inventory, const struct hold_device *device,
		     struct hold_nodes *nodes);
/* Are those others than the hold has? /dev/nvidia<number> is whoever the driver found in that turn: after a
 * GPU went, or a boot, it may be another allocation's. */
bool holds_moved(const struct inventory *inventory, const struct hold_device *device);

/* "bcd.dev-<allocation>.json" */
void holds_file_name(char out[HOLDS_NAME_SIZE], const char *allocation);
bool holds_is_file_name(const char *name); /* any bcd.dev-*.json */
/* "<device name>@<allocation>": the id that the kubelet knows (DP-7). */
void holds_device_id(char out[HOLDS_ID_SIZE], const struct hold_device *device,
		     const char *allocation);
/* The allocation in a kubelet id, or NULL when it has none. Borrowed from `id`. */
const char *holds_id_allocation(const char *id);

/* Does the id name this device of this allocation, be it a plugin's or a claimed one (dra.h)? A claimed
 * device may have its name alone: then its tag says whose it is. */
bool holds_id_is(const char *id, const struct atom *atom, const char *allocation);
bool holds_id_is_of(const char *id, const char *allocation); /* any device of it */
/* Which device of the machine it is, whosever; false: it is none of bcd's. */
bool holds_id_atom(const char *id, struct atom *ret_atom);

/* The spec's text. The hold has at least one device. */
void holds_format(const struct hold *hold, struct buf *out);
/* Can its file be read again, with the numbers of all its nodes? Beyond HOLDS_MAX_FILE it can't. */
bool holds_fit_file(const struct hold *hold);
/* `file_name` is where the text was found: the hold must be that file's. `*ret_hold` must be empty.
 */
MUST_CHECK bool holds_parse(const char *text, size_t length, const char *file_name,
			    struct hold *ret_hold, struct error *error);
