/*
 * programs: the processes of the world, made and unmade as their mains make them.
 */
#pragma once

#include "control/control.h"
#include "sim/sim.h"

/* Host paths of the machine "node". */
#define NODE_ROOT    "/node"
#define NODE_CDI     NODE_ROOT "/etc/cdi"
#define NODE_DATA    NODE_ROOT "/var/lib/bcd"
#define NODE_KUBELET NODE_ROOT "/var/lib/kubelet"
#define NODE_GPUS    NODE_ROOT "/gpus.toml"

#define GATEWAY_ADDRESS "gateway.test:7443"

/* A program that died is back after at most so long. */
#define PROGRAMS_BACK_MS 20000

struct standin;

struct programs {
	struct sim_machine node, server;
	struct sim_process bcd, kubelet, control;
	struct standin *standin; /* NULL while the kubelet is away */
	char pool[ID_SIZE], tenant[ID_SIZE], node_id[ID_SIZE];
};
extern struct programs programs;

/* Makes the database, a pool and a joined node, writes the node's files, and starts everything. */
void programs_begin(void);
void programs_end(void); /* after sim_end() */

/* An API call as the operator, committed when it returns; the gateway hears of it soon. NULL when
 * it was refused. Takes `body` over. Only while the control plane runs. */
typedef bool programs_call_fn(struct control *control, const struct control_call *call,
			      json_t **ret_answer, struct error *error);
json_t *programs_call(programs_call_fn *fn, const char *id, json_t *body);

/* The same without the gateway hearing of it: for looking. */
json_t *programs_look(programs_call_fn *fn, const char *id);

/* The database as it is now, and as it was then: with the lineage of a new database, since that is what
 * a restore is. The control plane dies of it and comes back. Without a backup nothing happens. */
void programs_backup(void);
bool programs_restore(void);

/* --- bcd.c --- */

/* Its configuration and its identity, as `bcd join` leaves them. */
void bcd_prepare(const char *node_id, const char *certificate_pem, const char *key_pem);
void bcd_start(struct sim_process *process);
void bcd_destroy(struct sim_process *process);
void bcd_show(void); /* its status, for whoever looks for what went wrong */
