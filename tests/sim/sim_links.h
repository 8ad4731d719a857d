/*
 * sim_links: the links between machines and between processes of one: who listens, who is connected, and what is
 * on its way. Whose call a frame is of, and what becomes of it, is sim_calls.c's.
 *
 * Shared    by these two alone; what the world asks of them is sim_rpc.h.
 */
#pragma once

#include "rpc/rpc.h"
#include "sim/sim.h"

struct link {
	uint64_t id;
	struct rpc_client *client; /* NULL: destroyed */
	struct rpc_server *server;
	struct sim_process *ends[2]; /* [1] is the server */
	bool cut, local;
	int64_t last_ms[2]; /* the arrival of the last message; [1] is to the server */
	struct buf der;     /* the client's certificate */
	/* Of a cut one, by direction: what is on its way is lost, or comes at this time, or until
	 * that end has noticed. */
	bool lost[2], noticed[2];
	int64_t late_ms[2];
};

enum frame_kind {
	FRAME_START,
	FRAME_MESSAGE,
	FRAME_HALF_CLOSE,
	FRAME_FINISH,
	FRAME_CANCEL,
};

struct frame {
	uint64_t link;
	uint64_t call; /* the client's id for it */
	bool to_server;
	enum frame_kind kind;
	struct buf data;
	enum rpc_code code;
	bool late; /* it has waited for late_ms */
};

struct rpc_client {
	struct sim_process *process;
	char *address;
	struct buf der;
	struct rpc_client_handlers handlers;
	void *arg;
	uint64_t link;
	bool up, down;
	struct sim_event *event;     /* connecting, or up */
	VEC(struct frame *) waiting; /* until it is up */
};

struct rpc_server {
	struct sim_process *process;
	const struct rpc_method *methods;
	size_t count;
	void *arg;
};

struct link *links_get(uint64_t id); /* NULL: there is none */
/* Takes it over; it arrives as calls_take() unless it is lost. */
void links_send(struct link *link, struct frame *frame);
void frame_free(struct frame *frame);

/* --- sim_calls.c, as links tell it what happens --- */

void calls_begin(void);
void calls_end(void);

/* One arrives; it is freed by who calls. */
void calls_take(struct link *link, const struct frame *frame);
/* The client is connected: its calls go over that link now. */
void calls_of_client_begin(struct rpc_client *client);
/* Those that haven't ended hear that the connection is down; at the server's side by its link. */
void calls_of_client_fail(struct rpc_client *client, const char *why);
void calls_of_link_fail(struct link *link, const char *why);
/* All of them go. */
void calls_of_client_end(struct rpc_client *client);
void calls_of_server_end(struct rpc_server *server);
