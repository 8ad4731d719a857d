/*
 * sim_changes: what changes of the pods that the API server has, in order, as whoever watches them is told.
 *
 * Versions  count changes. One that is too old is forgotten (410): the server keeps the last SIM_CHANGES_KEPT, and now
 *           and then fewer.
 * Deleted   objects are told of as they were last, or with the deletion on them: servers differ.
 */
#pragma once

#include "sim/sim_pods.h"

#define SIM_CHANGES_KEPT 64

json_t *sim_changes_object(const struct sim_pod *pod); /* as the API server has it */
void sim_changes_look(
	void); /* after each event: what has changed? Nobody watches but a bcd in a pod */
json_t *sim_changes_all(void); /* with which a watch begins: an event of each that is there now */
int64_t sim_changes_version(void);
/* The watch event after this version, borrowed; NULL: there is none. */
const json_t *sim_changes_after(int64_t version);
bool sim_changes_forgot(int64_t version);
void sim_changes_end(void);
