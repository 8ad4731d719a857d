/* nodes: a node's row. Private to this room. */
#pragma once

#include "control/core/trust.h"
#include "control/thing.h"

#define NODE_CAPABILITY_KUBERNETES "kubernetes-binding"
#define NODE_CAPABILITY_LIMITS     "assignment-limits"
#define NODE_CAPABILITY_DRA        "dra"
#define NODE_API_DRA               "dra" /* as its inventory says it; another is device plugins */

/* SQL: does node n offer its GPUs as a pool asks (node_filter.c)? `dra` is the parameter, 1 for DRA. */
#define NODE_OFFERS_BY(dra)                                                                        \
	"CASE WHEN n.gpu_api = '" NODE_API_DRA "' THEN 1 ELSE 0 END = " dra " AND (" dra           \
	" = 0 OR n.capabilities LIKE '%\"" NODE_CAPABILITY_DRA "\"%')"

/* Labels that placement looks at. The first counts only when the system set it. */
#define NODE_LABEL_CAPACITY      "bc.dev/capacity"
#define NODE_LABEL_RACK          "bc.dev/topology.rack"
#define NODE_LABEL_BLOCK         "bc.dev/topology.block"
#define NODE_LABEL_NVLINK_DOMAIN "bc.dev/topology.nvlinkDomain"

/* A condition of the control plane's own about a node; bcd's sets leave it alone. */
#define NODE_INVENTORY_REFUSED "InventoryRefused"

struct node {
	char id[ID_SIZE], pool[ID_SIZE], tenant[ID_SIZE];
	enum control_trust trust;
	char state[16], machine_key[64];
	json_t *capabilities; /* array of names */
	int64_t spec_generation, sent_generation, stored_generation;
	int64_t hello_sequence, acknowledged;
	bool has_inventory, has_conditions;
	/* of its stream */
	int64_t epoch; /* 0: it never had one */
	bool connected;
	int64_t seen_ms;
};

/* *ret_found is false when there is none. `ret_node` must be {0} or loaded. */
MUST_CHECK bool node_load(struct store_connection *db, const char *id, struct node *ret_node,
			  bool *ret_found, struct error *error);
void node_deinit(struct node *node);

bool node_has_capability(const json_t *capabilities, const char *name);

/* Changes the state, with its event; nothing when it has it already. */
MUST_CHECK bool node_set_state(struct store_connection *db, struct node *node, const char *state,
			       struct error *error);

/* How calls see it. */
extern const struct thing NODE_THING;

static inline void node_cleanup(struct node *node)
{
	node_deinit(node);
}
