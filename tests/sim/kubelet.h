/*
 * kubelet: the kubelet's process, a stand-in, with what goes on around it on its machine.
 *
 * Hears     of its pods from the API server, now and then only a while after it has started, also in the calm:
 *           until then it lists none, lets none in and ends none, and keeps what its checkpoint says.
 * Folders   below NODE_KUBELET "/pods", as long as something of a pod is left, or the API server has it.
 *           Where bcd runs in a pod itself (programs.in_pod) it can't see them: there are none then.
 */
#pragma once

#include "sim/sim.h"

#include <jansson.h>

/* The pod that bcd is, where it is one: it has no device, and nobody touches it. */
#define KUBELET_BCD "bcd"

void kubelet_prepare(struct sim_process *process);
void kubelet_end(void);

/* From here on bcd can see the pods' folders, unless it is in a pod, and one in so many starts of it hears
 * late. */
void kubelet_begin(uint64_t unheard_one_in);
bool kubelet_is_well(void); /* it is there, and has heard of its pods */
int64_t kubelet_heard_ms(void);
/* For so long at least it was there without having heard of them: its listings counted, and had none. */
bool kubelet_is_unheard(int64_t for_ms);
/* Its checkpoint was lost: pods may have devices of which it says nothing. */
bool kubelet_has_forgotten(void);
/* It dies; and now and then somebody removes its checkpoint before it is back. */
void kubelet_trouble(void);

/* The pods as it has them now; the API server's are up to date. */
void kubelet_pods(const json_t *pods);
/* The API server has forgotten a pod: what is left of it on the machine goes. */
void kubelet_folders_go(void);
