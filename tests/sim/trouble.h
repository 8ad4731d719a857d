/*
 * trouble: what goes wrong but for a program's death: the network, messages that come twice or too late,
 * replicas of the control plane that are frozen, cut off or without their database, clocks that jump, files
 * and sockets of the node, a database that goes back to its backup.
 */
#pragma once

#include "sim/sim.h"

void trouble_begin(void);
void trouble_end(void);

void trouble_network_breaks(void);
void trouble_message_again(void); /* an old one, within what a stream allows */
void trouble_replica(void);       /* frozen, cut off, or without its database */
void trouble_clock(void);         /* a wall clock jumps, by a day at most */
void trouble_socket(void);        /* of a plugin is deleted */
void trouble_record(void);        /* one of the node's is damaged */
void trouble_releases(void);
/* that of its releases is */ /* of bcd's is damaged, when it isn't there to write it */
void trouble_api(void);       /* Kubernetes' is away for a while */
void trouble_disk(void);      /* is full for a while */
void trouble_state(void);     /* the node's is lost, and it joins anew while its pods run */
void trouble_database(void);  /* a backup is made, or put back */

/* It is calm: all of it ends, and the clocks are right again. */
void trouble_ends(void);

/* Each message of a node's stream as it leaves; what is to come again later is kept. */
void trouble_message(bool to_server, const uint8_t *data, size_t length);
/* The database went back: what was sent before can't come any more. */
void trouble_forget(void);
