/*
 * world: a control plane on a fresh database, with a tenant, a site, a pool and as many nodes as a
 * test wants, spoken to through control.h alone.
 */
#pragma once

#include "control/control.h"
#include "store/store.h"
#include "unit/store/database.h"

#define WORLD_GPUS 8

struct world {
	struct store *store;
	struct control control;
	struct control_principal operator;
	char tenant[ID_SIZE], site[ID_SIZE], pool[ID_SIZE];
};

/* cmocka setup and teardown around database_setup(); the state is the world. */
int world_setup(void **state);
int world_teardown(void **state);
#define WORLD_TEST(function) cmocka_unit_test_setup_teardown(function, world_setup, world_teardown)

/* Another worker, perhaps of another replica, on the same database. */
void world_connect(struct world *world, const char *replica, struct control *ret_control);
void world_disconnect(struct control *control);

/* --- calls --- */

typedef bool world_call_fn(struct control *control, const struct control_call *call,
			   json_t **ret_answer, struct error *error);

/* The body is JSON text made by printf; NULL for none. The answer lives until the world goes. */
json_t *world_call(struct world *world, world_call_fn *function, const char *id,
		   const char *body_format, ...) PRINTF(4, 5);
/* The same, which must fail with this code and a message that holds `text`. */
void world_refused(struct world *world, world_call_fn *function, const char *id,
		   enum error_code code, const char *text, const char *body_format, ...)
	PRINTF(6, 7);
/* With another principal, or with query texts. Takes the answer over from nobody: decref it. */
bool world_ask(struct world *world, world_call_fn *function, const struct control_call *call,
	       json_t **ret_answer, struct error *error);

/* Text and number at a path such as "allocations.0.nodeId"; fails the test when it isn't there. */
const char *world_text(const json_t *json, const char *path);
int64_t world_int(const json_t *json, const char *path);
bool world_has(const json_t *json, const char *path);

/* A principal of its own tenant with this role. */
struct control_principal world_principal(struct world *world, const char *tenant, const char *role);

/* Events of this type about this thing, so far. */
int64_t world_count_events(struct world *world, const char *type, const char *subject);

/* --- nodes --- */

struct world_node {
	char id[ID_SIZE];
	char machine_key[64];
	int64_t epoch, sequence;
	int64_t generation; /* of the Spec it stores */
	char uuids[WORLD_GPUS][40];
	/* What its inventory says; a test may change it before it reports again. */
	int gpus, slots;    /* slots on each GPU */
	int migs;           /* "1g.10gb" instances on each GPU */
	unsigned uncut;     /* bit by GPU: it has neither */
	unsigned unhealthy; /* bit by GPU */
	bool dra;           /* its own way to the kubelet */
	int32_t vcpus;
	int64_t memory_bytes;
	struct hugepages hugepages;
};

/* Joins with a fresh token of the world's pool; not connected yet. */
void world_join(struct world *world, struct world_node *ret_node);
/* Says hello with these capabilities (NULL-ended; NULL: both). */
void world_hello(struct world *world, struct world_node *node, const char *const *capabilities);
void world_inventory(struct world *world, struct world_node *node);
void world_conditions(struct world *world, struct world_node *node,
		      const struct control_condition *conditions, size_t count);
/* All of these: a ready node with `gpus` GPUs. */
void world_ready(struct world *world, struct world_node *ret_node, int gpus);
void world_heartbeat(struct world *world, struct world_node *node);

/* Sends a report as it is, with the next sequence. */
struct control_report_result world_report(struct world *world, struct world_node *node,
					  struct control_report report);
void world_bound(struct world *world, struct world_node *node, const char *allocation);
void world_released(struct world *world, struct world_node *node, const char *allocation);
void world_failed(struct world *world, struct world_node *node, const char *allocation,
		  const char *reason);

/* Loads the Spec and stores it: the node's generation is its. */
void world_take_spec(struct world *world, struct world_node *node, struct control_spec *ret_spec);
void world_store_spec(struct world *world, struct world_node *node); /* and throws it away */
bool world_spec_has(const struct control_spec *spec, const char *allocation);
/* Takes the Spec, throws it away, and binds what it holds of this allocation. */
void world_bind(struct world *world, struct world_node *node, const char *allocation);

void world_tick(struct world *world);

/* --- reservations --- */

/* `count` whole GPUs for an hour; the answer's. */
json_t *world_reserve(struct world *world, int count);
json_t *world_reservation(struct world *world, const char *id);
