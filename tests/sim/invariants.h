/*
 * invariants: what must hold at every step, whatever happens. A broken one goes to sim_broken().
 *
 *   1  No part of a GPU is in the hands of two running pods, nor bound by two holds on disk, nor
 *      bound by one while a pod runs on it by another.
 *   2  AllocationReleased is not sent while a pod runs on a device of that allocation, and no pod
 *      runs on one afterwards.
 *  2b  The same of a process that has a whole GPU open and outlives its pod.
 *      Of both a bcd that runs in a pod itself knows less, and only so much less as sim_api.h says.
 *   3  The number of a report on an allocation stands for one content, and an acknowledged number
 *      stays acknowledged, within one lineage of the database.
 *   4  A Spec's generation never falls on a live stream's sending side, within one lineage.
 *   5  When everything is calm: what is booked is bound and offered, and what was released is gone
 *      from the disk, the kubelet and the records (calm.c asks for that).
 *   6  When everything is calm: each allocation that is over was billed once, and not past its end
 *      (calm.c).
 * A database that went back may give an allocation anew that was released; then 2 begins again.
 */
#pragma once

#include "sim/sim.h"

#include <jansson.h>

void invariants_end(void);

/* The pods as the kubelet's machine has them now. A pod that runs, runs on while the kubelet is
 * away; after a power cut none runs until the kubelet says so. */
void invariants_pods(const json_t *pods);
void invariants_no_pods(void);
void invariants_holds(void); /* the folder of CDI specs has changed */
/* The database's clock leapt: for it all streams have been silent for long, and a late Hello of an older
 * one may come through and take the numbers back to its own. What was committed stays so. */
void invariants_time_leapt(void);
/* The machine is another node from now on, and counts its reports and Specs from the beginning. */
void invariants_another_node(void);
void invariants_message(bool to_server, const uint8_t *data, size_t length);

/* Is this device, "gpu_<uuid>...", a part of the same piece of a GPU as that one? */
bool invariants_overlap(const char *a, const char *b);
