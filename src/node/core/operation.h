/*
 * operation: may what the control plane asks for beside Specs be done now?
 *
 * Owns      the claim rule for everything that isn't a binding (HOST-14): what touches a GPU asks
 *           converge_claimant() first, and is refused naming who claims it (REL-5, HOST-11).
 *           Nothing of it is done by this bcd: why not is told (GW-21, GW-22).
 * Argument  of the kinds that touch GPUs: {"gpu": "GPU-…"}; without it, all GPUs of the machine.
 * Pure.
 * Tests     tests/unit/node/core/operation_test.c, fuzz/operation_fuzz.c
 */
#pragma once

#include "node/core/converge.h"

#define OPERATION_KIND_SIZE    64
#define OPERATION_MAX_ARGUMENT ((size_t)1 << 10)

/* "gpu.reset", "diag.dcgm", and every unit of the host ("host.…"). */
bool operation_touches_gpus(const char *kind);

/* True: nobody claims what it would touch. False: `reason` and `message` say why not. */
bool operation_may(const struct converge_view *claims, const char *kind, const char *argument,
		   char reason[REPORTS_REASON_SIZE], char message[REPORTS_MESSAGE_SIZE]);

/* Why `kind` isn't done: it is a self-update ("daemon.…") or a reboot of the node, which bcd never does,
 * is claimed, or is none that bcd does. `hosted`: others own the host. */
void operation_refuse(const struct converge_view *claims, bool hosted, const char *kind,
		      const char *argument, char reason[REPORTS_REASON_SIZE],
		      char message[REPORTS_MESSAGE_SIZE]);
