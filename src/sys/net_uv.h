/*
 * net_uv: what net.c and net_dial.c share; nobody else includes it.
 */
#pragma once

#include "sys/loop_uv.h"
#include "sys/net.h"

#define NET_PEER_SIZE 64

struct net_conn {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_pipe_t pipe;
		uv_tcp_t tcp;
	} uv;
	struct loop *loop;
	const struct net_handlers *handlers; /* a copy in `own`, NULL until net_start() */
	struct net_handlers own;
	void *arg;
	bool reading, closing;
	int64_t peer_uid;
	char peer[NET_PEER_SIZE];
};

/* A connection that has no socket yet; net_close() also takes one that never gets one. */
struct net_conn *net_conn_create(struct loop *loop, bool is_unix);

/* Notes who the peer is, once the socket is connected. */
void net_conn_identify(struct net_conn *conn);

/* "ADDR:PORT" or "[ADDR6]:PORT" into its parts. */
#define NET_HOST_SIZE 256
#define NET_PORT_SIZE 6
struct net_address {
	char host[NET_HOST_SIZE], port[NET_PORT_SIZE];
};
MUST_CHECK bool net_address_parse(const char *text, struct net_address *ret_address,
				  struct error *error);

/* As error_os() for a libuv status, with the kinds that sockets need. */
bool net_error(struct error *error, int status, const char *doing, const char *address);

/*
 * A unix socket's path of any length: the folder is opened, and the socket is named by
 * /proc/self/fd/<folder>/<last component>. False with errno.
 */
struct net_unix_path {
	int folder; /* O_PATH; the user closes it */
	const char *name;
	char short_path[108];
};
bool net_unix_path_open(const char *path, struct net_unix_path *ret_path);
