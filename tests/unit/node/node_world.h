/* One node on a folder of its own, with simulated GPUs and a kubelet: what the tests of its shell share. */
#pragma once

#include "core/fixture.h"
#include "kubelet.h"
#include "lib/folder.h"
#include "node/node.h"

#define GPU  "bcd.dev/gpu"
#define SLOT "bcd.dev/gpu.slot"

struct world {
	void *folder; /* lib/folder.h: a path */
	char path[512];
	struct loop *loop;
	struct config config;
	struct kubelet kubelet;
	struct node *node;
	struct inventory inventory;
};

/* Of a name below the folder; valid until the next call. */
const char *world_at(struct world *world, const char *name);
void write_text(struct world *world, const char *name, const char *text);
/* `change`: a key of the first GPU that is set to 1, or NULL. */
void write_gpus(struct world *world, const char *change);
/* GPU `k`'s node is /dev/full: its tests need one that is there for everybody. */
void give_node(struct world *world, size_t k);
/* Process 77, called python, with /dev/full open, as procfs shows it; then without. */
void put_process(struct world *world, const char *cgroup);
void close_node(struct world *world);
/* ALC_A has the whole GPUs 0 and 4, ALC_B two slots of GPU 7. */
void write_spec(struct world *world, bool with_a);
void start_node(struct world *world);
void stop_node(struct world *world);
/* Fixtures of cmocka: *state is the world. What is in it ends with it. */
int world_setup(void **state);
int world_teardown(void **state);
void start_kubelet(struct world *world);
/* NULL: the node has none of this type. */
const struct condition *condition(const struct world *world, const char *type);
/* `arg`: the world; for kubelet_until(). */
bool both_registered(void *arg);
void wait_registered(struct world *world);
enum rpc_code allocate(struct world *world, const char *id, char *names, char *message);

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
