/*
 * exposure: looks whether something else than bcd may give pods GPUs of this machine; while that is
 * so, nothing is offered.
 *
 * Owns      node/core/exposure.h's effects: what [kubernetes] runtime_config and toolkit_config name is
 *           read, a folder with the files in it, each EXPOSURE_MS. Told of nothing, it finds nothing.
 *           What two looks in a row find counts, the first one's at the start at once: who rewrites its
 *           files is no exposure, nor is what goes from a folder between its list and its reading.
 * Threads   the loop's.
 * Tests     tests/unit/node/exposure_test.c
 */
#pragma once

#include "node/core/exposure.h"
#include "sys/clock.h"

#define EXPOSURE_MS       5000
#define EXPOSURE_AGAIN_MS 1000 /* after a look that found something */
#define EXPOSURE_MAX_FILE ((size_t)4 << 20)
#define EXPOSURE_MAX_LIST 1024               /* entries of a folder */
#define EXPOSURE_MAX_ALL  ((size_t)16 << 20) /* of all that is read in one look */

struct exposure;
struct exposure *exposure_create(const struct config *config); /* borrowed; looks at once */
void exposure_destroy(struct exposure *exposure);

void exposure_look(struct exposure *exposure, struct mono now);
/* What is open, and how to close it; NULL: nothing. */
const char *exposure_open(const struct exposure *exposure);
