/*
 * dra: what bcd's devices are called where pods claim them (Dynamic Resource Allocation).
 *
 * Owns      DRA-10, DRA-48: "gpu-<uuid>", "gpu-<uuid>-gi<g>-ci<c>" or "gpu-<uuid>-s<k>", then "-"
 *           and the tag, the first 8 hex characters of SHA-256 of the allocation's id. So a GPU bound
 *           to another allocation is another device.
 * Tag       names an allocation to whoever knows it; it can't be turned back into one.
 * Pure.
 * Tests     tests/unit/node/core/dra_test.c
 */
#pragma once

#include "base/id.h"
#include "gpu/core/atom.h"

#define DRA_DRIVER    "gpu.bcd.dev"
#define DRA_NAME_SIZE 64 /* a DNS label, and NUL */
#define DRA_TAG_SIZE  9

void dra_tag(char out[DRA_TAG_SIZE], const char *allocation);
void dra_name(char out[DRA_NAME_SIZE], const struct atom *atom, const char *allocation);
/* Takes exactly what dra_name() writes. */
bool dra_name_parse(const char *name, struct atom *ret_atom, char ret_tag[DRA_TAG_SIZE]);
