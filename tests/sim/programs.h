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

/* The replicas', in order. */
#define GATEWAY_ADDRESS   "gateway.test:7443"
#define GATEWAY_ADDRESS_2 "gateway-2.test:7443"

#define PROGRAMS_REPLICAS 2 /* at most */

/* A program that died is back after at most so long. */
#define PROGRAMS_BACK_MS 20000

struct pki_folder;
struct standin;
struct store;

struct programs {
	struct sim_machine node, servers[PROGRAMS_REPLICAS];
	struct sim_process bcd, kubelet, control[PROGRAMS_REPLICAS];
	int replicas;            /* of the control plane, over one database */
	struct standin *standin; /* NULL while the kubelet is away */
	bool in_pod; /* so bcd runs: it sees neither pods' folders nor their processes */
	char pool[ID_SIZE], tenant[ID_SIZE], node_id[ID_SIZE];
};
extern struct programs programs;

/* Makes the database, a pool and a joined node, writes the node's files, and starts everything. */
void programs_begin(int replicas);
void programs_end(void); /* after sim_end() */

/* The others end, for good. */
void programs_leave_one_replica(void);

/* A replica that can answer now, any of them; NULL: none can. */
struct sim_process *programs_serving(void);

/* An API call as the operator, committed when it returns; the gateway of a replica that serves hears of
 * it soon, the other's by the outbox. NULL when it was refused. Takes `body` over. Only while one serves.
 */
typedef bool programs_call_fn(struct control *control, const struct control_call *call,
			      json_t **ret_answer, struct error *error);
json_t *programs_call(programs_call_fn *fn, const char *id, json_t *body);

/* The same without the gateway hearing of it: for looking. */
json_t *programs_look(programs_call_fn *fn, const char *id);

/* The database as it is now, and as it was then: with the lineage of a new database, since that is what
 * a restore is. The control plane dies of it and comes back. Without a backup nothing happens. */
void programs_backup(void);
bool programs_restore(void);

/* The machine loses all that bcd had on its disk, it is declared lost while its pods run on, and it joins as
 * another node. Only while a replica serves. */
void programs_join_anew(void);

/* What all replicas have in common. */
struct store *programs_store(void);
const struct pki_folder *programs_pki(void);

/* --- control.c: what serve.c puts together, but for the HTTP listener --- */

void control_prepare(struct sim_process *process, int number);
/* A call changed something: its gateway looks. An event's function; `arg` is the process. */
void control_changed(void *process);

/* --- bcd.c --- */

/* Its configuration and its identity, as `bcd join` leaves them. */
void bcd_prepare(const char *node_id, const char *certificate_pem, const char *key_pem);
void bcd_start(struct sim_process *process);
void bcd_destroy(struct sim_process *process);
void bcd_show(void);      /* its status, for whoever looks for what went wrong */
json_t *bcd_status(void); /* what `bcd status` shows; the caller's; {} while it is away */
