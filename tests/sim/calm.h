/*
 * calm: nothing goes wrong any more: everything must come to rest where it should, first with what is booked,
 * then with nothing.
 *
 * Rest      what is booked is bound and offered, what is over is gone from the disk, the kubelet and the
 *           records (invariant 5), each allocation was billed as it should be (6), and the control plane
 *           knows of nothing that is wrong with the node.
 */
#pragma once

#include "sim/sim.h"

void calm_prepare(void); /* of a new world */
/* The storm ends. `restores`: the database went back, so that a binding may have been lost for good. */
void calm_begin(bool restores);
bool calm_is_over(void); /* it came to rest, or is broken */

/* Is everything where it should be now? `why` says what is not. */
bool calm_at_rest(char *why, size_t size);
/* Is what is booked bound and offered, and what is over gone? */
bool calm_is_settled(char *why, size_t size);
/* And does the control plane know of nothing that is wrong with the node? */
bool calm_node_is_well(char *why, size_t size);
bool calm_has_releases(void); /* on disk */
void calm_check_bills(void);
