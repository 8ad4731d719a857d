/*
 * atom: the smallest thing that can be booked: a whole GPU, a MIG instance, or a slot.
 *
 * Owns      the three text forms: the atom id "gpu/<uuid>/gi1/ci0" (records, wire), the device name
 *           "gpu_<uuid>_gi1_ci0" (CDI), and what NVIDIA's tools call it ("GPU-…", "MIG-…").
 * Compared as a struct, printed as text (DP-51). A part of a GPU is a range of [0, ATOM_LEAVES).
 * Pure.
 */
#pragma once

#include "base/error.h"

#define ATOM_UUID_BYTES   16
#define ATOM_UUID_SIZE    37  /* text without "GPU-", and NUL */
#define ATOM_TEXT_SIZE    64  /* "gpu/<36>/gi<3>/ci<3>" and NUL, with room */
#define ATOM_VISIBLE_SIZE 64  /* "MIG-<36>" and NUL, with room */
#define ATOM_MAX_NUMBER   999 /* of a GPU instance, compute instance or slot */
#define ATOM_LEAVES       1024

enum atom_class {
	ATOM_GPU,
	ATOM_MIG,
	ATOM_SLOT,
};
#define ATOM_CLASSES 3

struct atom_uuid {
	uint8_t bytes[ATOM_UUID_BYTES];
};

static inline bool atom_uuid_equal(struct atom_uuid a, struct atom_uuid b)
{
	return memcmp(a.bytes, b.bytes, ATOM_UUID_BYTES) == 0;
}

struct atom {
	enum atom_class class;
	struct atom_uuid gpu;
	uint16_t gi, ci; /* ATOM_MIG, else 0 */
	uint16_t slot;   /* ATOM_SLOT, else 0 */
};

/* The part [lo, hi) of its GPU that an atom takes. */
struct atom_range {
	int32_t lo, hi;
};

const char *atom_class_name(enum atom_class class); /* "gpu", "gpu.mig", "gpu.slot" */
bool atom_class_parse(const char *name, enum atom_class *ret_class);

/* Lower-case hex with dashes; "GPU-" before it is taken too, and never written. */
bool atom_uuid_parse(const char *text, struct atom_uuid *ret_uuid);
void atom_uuid_format(char out[ATOM_UUID_SIZE], struct atom_uuid uuid);

/* Takes exactly what atom_format() writes. */
MUST_CHECK bool atom_parse(const char *text, struct atom *ret_atom, struct error *error);
void atom_format(char out[ATOM_TEXT_SIZE], const struct atom *atom);
void atom_device_name(char out[ATOM_TEXT_SIZE], const struct atom *atom); /* '/' as '_' */

/* A total order: by GPU, then class, then numbers. 0 means the same atom. */
int atom_compare(const struct atom *a, const struct atom *b);
static inline bool atom_equal(const struct atom *a, const struct atom *b)
{
	return atom_compare(a, b) == 0;
}

struct atom_range atom_whole(void);
struct atom_range atom_slot_range(int32_t slot, int32_t slots); /* slot < slots <= ATOM_LEAVES */
struct atom_range atom_mig_range(int32_t start, int32_t size);  /* in eighths of the GPU */
/* May both be in use at once? Parts of one GPU that meet may not. */
bool atom_overlap(struct atom_uuid a, struct atom_range a_range, struct atom_uuid b,
		  struct atom_range b_range);
