/*
 * sim_rpc: what the engine and the world ask of the simulated calls.
 *
 * Cut       at whole messages: they arrive in order, late, or never. Of a connection that is cut what
 *           was said before may still come, until the end that hears it has noticed.
 *           Each side of a cut connection notices by itself: at once on a unix socket whose process
 *           died, after up to half a minute when a machine or the network went silent.
 */
#pragma once

#include "sim/sim.h"

#define SIM_RPC_SILENCE_MS 30000 /* until keepalive notices */

void sim_rpc_begin(void);
void sim_rpc_end(void);
void sim_rpc_process_died(struct sim_process *process, enum sim_death death);
bool sim_rpc_listens(uint64_t inode);

/* Every connection over TCP breaks; while `apart` no new one comes about. */
void sim_rpc_cut_network(bool apart);
/* The same of one process alone. */
void sim_rpc_cut_off(struct sim_process *process, bool off);
/* Its peers give up who is silent for too long. */
void sim_rpc_process_frozen(struct sim_process *process, int64_t for_ms);

/* Puts one more message into the running client call of this path, to either end; false when there is
 * none. */
bool sim_rpc_inject(const char *path, bool to_server, const void *data, size_t length);

/* Called by sim_calls.c with each message as it leaves; the world's. */
void sim_world_message(const char *path, bool to_server, const uint8_t *data, size_t length);
