/*
 * frame: what bcd and its NVML child say to each other: JSON objects, each behind its length.
 *
 * Form      4 bytes, big-endian: how many follow; then one JSON object of 2 to FRAME_MAX_BYTES bytes.
 *           bcd asks     {"op": "read"}
 *           child says   {"reading": {…}}                      once for each question (reading.h)
 *                        {"error": "…", "code": "NOT_FOUND"}   and ends: NVML can't be used
 *                        {"xid": {"xid": 79, …}}               at any moment
 *                        {"look": "why"}                       at any moment: ask now
 * Errors    INVALID_INPUT: what came is no frame, and the stream can't be followed any further.
 * Pure.
 */
#pragma once

#include "base/buf.h"
#include "gpu/core/reading.h"

#define FRAME_HEAD_BYTES 4
#define FRAME_MAX_BYTES  READING_MAX_BYTES
#define FRAME_MAX_XID    99999 /* the largest that NVIDIA has is three digits */

/* Adds one frame to `out`. RESOURCES_EXHAUSTED when the object is too large. */
MUST_CHECK bool frame_put(struct buf *out, const json_t *object, struct error *error);

/* Takes the first frame off `in`: `*ret_object` is the caller's to drop; NULL when it isn't whole
 * yet. What is left stays. */
MUST_CHECK bool frame_take(struct buf *in, json_t **ret_object, struct error *error);

/* An XID as the driver told it, and of which GPU. */
struct frame_xid {
	int32_t xid;
	char pci[INVENTORY_PCI_SIZE]; /* "" unknown */
	bool has_uuid;
	struct atom_uuid uuid;
	int32_t gi, ci; /* -1: of no MIG instance in particular */
};

/* {"xid": {…}}, the caller's to drop. */
json_t *frame_xid(const struct frame_xid *xid);
/* The object of "xid". */
MUST_CHECK bool frame_read_xid(const json_t *object, struct frame_xid *ret_xid,
			       struct error *error);
