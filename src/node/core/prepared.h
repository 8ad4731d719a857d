/*
 * prepared: the record of which claims have which devices prepared, prepared.json (DRA-45).
 *
 * Why       the kubelet lists claimed devices only with a feature gate, and forgets them with its own
 *           state; a device is in use until its claim was unprepared, whatever it says (REL-8).
 * Written   by the DRA driver before it answers a prepare; read here by whoever asks for holders.
 *           Format: docs/formats/prepared.json.md.
 * Doubt     Anything that isn't such a record in full is an error, and then every device counts as
 *           prepared (REL-9). A record of an earlier boot counts for nothing: no process is left.
 * Pure.
 * Tests     tests/unit/node/core/prepared_test.c, fuzz/prepared_fuzz.c
 */
#pragma once

#include "base/buf.h"
#include "base/vec.h"
#include "node/core/dra.h"

#include <jansson.h>

#define PREPARED_FILE        "plugins/" DRA_DRIVER "/prepared.json" /* below the kubelet's root */
#define PREPARED_VERSION     1
#define PREPARED_MAX_FILE    ((size_t)1 << 20)
#define PREPARED_MAX_CLAIMS  1024
#define PREPARED_MAX_DEVICES 32 /* of one claim: Kubernetes allows no more */
#define PREPARED_UID_SIZE    65
#define PREPARED_NAME_SIZE   254

struct prepared_device {
	char device[DRA_NAME_SIZE];
	char pool[PREPARED_NAME_SIZE]; /* the Node's name */
	char allocation[ID_SIZE];
};

struct prepared_claim {
	char uid[PREPARED_UID_SIZE];
	char namespace[PREPARED_NAME_SIZE], name[PREPARED_NAME_SIZE];
	VEC(struct prepared_device) devices;
	json_t *extra; /* members of a newer bcd, kept as they are; NULL for none */
};

/* In order of recording; `{0}` is "nothing is prepared". A device is one claim's. */
struct prepared {
	char boot_id[40];
	VEC(struct prepared_claim) claims;
	json_t *extra;
};
void prepared_deinit(struct prepared *prepared);

static inline void prepared_cleanup(struct prepared *prepared)
{
	prepared_deinit(prepared);
}

/* Is it of this boot? Where either can't be told, it counts. */
bool prepared_counts(const struct prepared *prepared, const char *boot_id);
void prepared_format(const struct prepared *prepared, struct buf *out);
/* `*ret_prepared` must be empty. */
MUST_CHECK bool prepared_parse(const char *text, size_t length, struct prepared *ret_prepared,
			       struct error *error);
