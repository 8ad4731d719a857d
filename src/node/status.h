/*
 * status: what this node is doing, as one JSON object a connection on run/bcd.sock.
 *
 * Answered from what the last turn left, by the loop: a loop that doesn't turn doesn't answer, and
 * that is what `bcd status` as a liveness probe finds out.
 * Threads   the loop's.
 */
#pragma once

#include "base/error.h"

#include <jansson.h>

struct node;
struct status;

#define STATUS_SOCKET   "bcd.sock"
#define STATUS_MAX_SIZE ((size_t)16 << 20)

MUST_CHECK bool status_create(struct node *node, struct status **ret_status, struct error *error);
void status_destroy(struct status *status);

/* docs/formats/status.md; a new reference. */
json_t *status_describe(const struct node *node);
