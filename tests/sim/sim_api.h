/*
 * sim_api: the API server of the node's cluster, as bcd's Kubernetes client meets it.
 *
 * Requests  are lost, refused, carried out without an answer (sim_http.c); lists have a pod that can't be read; the
 *           server is away, or refuses bcd alone, or something else answers in its place. And now and then a name belongs to a newcomer by the time a deletion
 *           arrives.
 * Checks    7: no pod is deleted that holds nothing but what is bound on the node, and none that
 *           bcd didn't mean; no pod is forced before it had its minute, nor while bcd has no other
 *           word for it than the API server's.
 */
#pragma once

#include "sim/sim.h"

#include <jansson.h>

void sim_api_begin(bool strange); /* may something else answer in its place? Not in a scene */
void sim_api_end(void);
uint64_t sim_api_deletions(void); /* that were carried out */
void sim_http_end(void);          /* what is still on its way */
void sim_http_tell(void);         /* whoever watches, of what has changed */
void sim_http_cut(void);          /* watches break: what is told isn't heard */

/* Nobody reaches it, nor does the kubelet. 0: it is back. */
void sim_api_goes_away(int64_t for_ms);
bool sim_api_is_away(void);
/* It has trouble with bcd alone: whose requests it refuses, by an answer. Others go on. */
void sim_api_refuses_bcd(int64_t for_ms);
bool sim_api_is_refusing(void);

#define SIM_API_SERVER "api.test"

/* One request that has arrived. `*ret_body` is the answer's. */
int sim_api_answer(const char *method, const char *path, const json_t *body, json_t **ret_body);
/* A request to watch pods: 200, and after which version, -1 for anew; or with the whole of an answer. */
int sim_api_watch(const char *path, int64_t *ret_version, json_t **ret_body);
int sim_api_refuse(json_t **ret_body); /* the answer of a server that is in trouble */
