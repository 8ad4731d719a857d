/*
 * fleet: many simulated machines in one process, each with its own certificate and its own TLS
 * stream through bcd's rpc client: Hello, inventory, conditions, heartbeats, and bookings that are
 * bound and released as soon as they are told.
 *
 * Threads   the loop's; fleet_open() and the other counts may be read from any.
 */
#pragma once

#include "base/error.h"
#include "base/id.h"
#include "sys/loop.h"

#include <stdatomic.h>

#define FLEET_GPUS         8
#define FLEET_HEARTBEAT_MS 10000 /* as bcd's */
#define FLEET_DIALS        64    /* connections that are being made at the same time */
#define FLEET_RETRY_MS     1000  /* at least, and as much again by chance: bcd's first pauses */

struct fleet;

/* What a machine is known by; owned by the fleet once given. */
struct fleet_identity {
	char node[ID_SIZE];
	char *key_pem, *certificate_pem;
};

struct fleet *fleet_create(struct loop *loop, const char *address, const char *server_name,
			   const char *pins);
void fleet_add(struct fleet *fleet, const struct fleet_identity *identity);
void fleet_start(struct fleet *fleet); /* connects, and reconnects from then on */
/* So many machines a second report another inventory: a GPU falls ill, or is well again. */
void fleet_churn(struct fleet *fleet, size_t nodes_a_second);
void fleet_destroy(struct fleet *fleet);

struct fleet_counts {
	atomic_size_t welcomed; /* streams that are open and were answered */
	atomic_size_t ready;    /* whose first reports are committed */
	atomic_size_t bound, released, failures, acks;
};
struct fleet_counts *fleet_counts(struct fleet *fleet);
