/*
 * world: a gateway on loopback with real TLS, over a fake control plane.
 */
#pragma once

#include "fake_control.h"
#include "lib/test.h"
#include "pki/folder.h"
#include "rpc/tls.h"
#include "serve/gateway.h"
#include "serve/workers.h"

#define NODE         "node_01jd4z5x9f0123456789abcdef"
#define OTHER        "node_01jd4z5x9f0123456789abcdeg"
#define GATEWAY_NAME "gateway.test"

struct world {
	struct loop *loop;
	struct store *store;
	struct workers *workers;
	struct join_service *join;
	struct gateway *gateway;
	struct passes *passes; /* passes_test.c's own */
	struct pki_folder pki;
	struct rpc_tls *tls;
	struct loop_timer *timeout;
	int looks;
	bool drained, paused;
};

/* cmocka's set up and tear down of one test. */
int world_set_up(void **state);
int world_tear_down(void **state);

/* Runs the loop until something calls loop_stop(); a test that waits over TEST_PATIENCE_MS fails. */
void world_wait(struct world *world);
/* Runs the loop until that has come, or fails. */
void world_until(struct world *world, bool (*has_come)(void));
/* Runs the loop for a while in which nothing ought to happen. */
void world_idle(struct world *world);
/* Runs the loop for so long. */
void world_run(struct world *world, int64_t ms);
/* The pin that a client of this gateway trusts. */
void world_pin(const struct world *world, char out[PIN_SIZE]);
