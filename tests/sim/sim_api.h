/*
 * sim_api: the API server of the node's cluster, as bcd's Kubernetes client meets it.
 *
 * Pods      are what the kubelet's machine has (the stand-in is told of them directly), under the
 *           names that the API server has for them, for as long as it has them: one that is
 *           deleted by force is gone here while it still runs there.
 * Bad       pods: some hear of their deletion minutes late, some have a finalizer. Bad requests:
 *           lost, refused, carried out without an answer. And now and then a name belongs to a
 *           newcomer by the time a deletion arrives.
 * Checks    7: no pod is deleted that holds nothing but what is bound on the node, and none that
 *           bcd didn't mean; no pod is forced before it had its minute.
 */
#pragma once

#include "sim/sim.h"

#include <jansson.h>

void sim_api_end(void);
void sim_api_pods(const json_t *pods); /* as the kubelet's machine has them now */
uint64_t sim_api_deletions(void);      /* that were carried out */
void sim_http_end(void);               /* what is still on its way */

/* One request that has arrived. `*ret_body` is the answer's. */
int sim_api_answer(const char *method, const char *path, const json_t *body, json_t **ret_body);

/* The kubelet hears that a pod is to end, unless it is away. The world's. */
void sim_world_pod_ends(const char *name, int64_t grace_s);
