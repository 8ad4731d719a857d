/*
 * spec: what the control plane wants of this node, as stored on disk.
 *
 * Owns      the record spec.json (docs/formats/spec.json.md), the reading of a Spec message, and
 * the rule which Spec counts: within one lineage of the database a newer generation; of another
 * lineage any (GW-26). Nothing is acted on before it is on disk. One bad assignment is kept with
 * its problem and harms no other (N01). Pure. Tests     tests/unit/node/core/spec_test.c,
 * fuzz/spec_fuzz.c
 */
#pragma once

#include "gpu/core/field.h"
#include "node/core/holds.h"
#include "proto/gateway.pb-c.h"

#define SPEC_FILE          "spec.json"
#define SPEC_VERSION       1
#define SPEC_MAX_FILE      ((size_t)4 << 20)
#define SPEC_LINEAGE_SIZE  64
#define SPEC_API_SIZE      16
#define SPEC_PROBLEM_SIZE  160
#define SPEC_REASON_SIZE   32
#define SPEC_MAX_WITHDRAWN 1024

struct spec_device {
	struct atom atom;
	char visible[ATOM_VISIBLE_SIZE];
};

struct spec_assignment {
	char allocation[ID_SIZE];
	char reservation[ID_SIZE];
	char binding[HOLDS_BINDING_SIZE];
	char problem[SPEC_PROBLEM_SIZE]; /* why it can't be carried out; "" when it can */
	char failed[SPEC_REASON_SIZE];   /* reason already reported for this generation; "" none */
	VEC(struct spec_device) devices; /* sorted by atom */
	struct admission_share share;    /* what is booked of the host for it */
	int64_t end_ms;                  /* wall clock, to be shown: a Spec ends it; 0 unknown */
};

/* An allocation whose release the control plane waits for. */
struct spec_withdrawn {
	char allocation[ID_SIZE];
};

struct spec {
	char lineage[SPEC_LINEAGE_SIZE];
	int64_t generation;
	char gpu_api[SPEC_API_SIZE]; /* "device-plugin", "dra", or "" when the Spec didn't say */
	VEC(struct spec_assignment) assignments;
	/* As it came; not in spec.json: what of it is pending stands in releasing.json. */
	VEC(struct spec_withdrawn) withdrawn;
};
void spec_deinit(struct spec *spec);

static inline void spec_cleanup(struct spec *spec)
{
	spec_deinit(spec);
}

struct spec_assignment *spec_find(const struct spec *spec, const char *allocation);

/* INVALID_INPUT when it can't be stored at all (no lineage, an allocation that is no id). */
MUST_CHECK bool spec_from_message(const Bettercompute__V1__Spec *message, struct spec *ret_spec,
				  struct error *error);
void spec_format(const struct spec *spec, struct buf *out);
MUST_CHECK bool spec_parse(const char *text, size_t length, struct spec *ret_spec,
			   struct error *error);

/* Does `next` replace what is stored (NULL: nothing is)? */
bool spec_accepts(const struct spec *stored, const struct spec *next);
