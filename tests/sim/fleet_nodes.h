/*
 * fleet_nodes: nodes of the fleet, which do what bcd does towards the control plane and nothing else: take
 * their Spec, bind what it has after a while, give back what it hasn't when their pods let go of it, and
 * say so; lose their connection, GPUs and the trust of the control plane by chance.
 */
#pragma once

#include "control/control.h"
#include "sim/fleet_model.h"

struct fleet_hold {
	char id[ID_SIZE];
	bool bound, leaving;
	int64_t asked_ms; /* to leave */
};

struct fleet_node {
	struct model_node *is;
	int64_t epoch, sequence, generation;
	VEC(struct fleet_hold) holds;
};

/* Joins so many nodes with a token; they are ready then. */
void fleet_nodes_begin(struct control *control, const char *token, int count);
void fleet_nodes_end(void);

struct fleet_node *fleet_node_any(void);

/* Of all that can be heard, when it is time. */
void fleet_nodes_beat(void);
/* The outbox has something new of it. */
void fleet_node_pushed(const char *id);

/* --- what happens to one --- */

void fleet_node_disconnect(struct fleet_node *node, int64_t for_ms);
void fleet_node_lose(struct fleet_node *node);
void fleet_node_sickens(struct fleet_node *node, bool well); /* one of its GPUs */
void fleet_node_condition(struct fleet_node *node, enum model_condition condition, bool on);
void fleet_node_loses_binding(struct fleet_node *node);
/* "Released" or "bound", by the Spec that still had it. */
void fleet_node_speaks_early(struct model_allocation *allocation);
void fleet_node_repeats_itself(struct fleet_node *node); /* what was said before, once more */

/* Milliseconds since 1970, as the control plane's clock has them. */
int64_t fleet_now(void);

/* Told by the nodes: something was committed that the leader may act on. */
void fleet_look_again(void);
/* Told after each commit: what it made of reservations is read; and of this one in any case. */
void fleet_look(const char *reservation);
void fleet_changed(void);
