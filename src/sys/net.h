/*
 * net: byte streams over unix sockets and TCP.
 *
 * Reads arrive through on_data until net_pause(); writes are queued without bound here, so writers
 * watch net_queued() and wait for on_drain. After on_close nothing more is called; the connection
 * is then already gone (don't call net_close on it). net_close() closes silently, at any moment.
 *
 * Unix socket paths may be longer than 107 bytes: they are bound and dialled through
 * /proc/self/fd/N/name; only the last component is limited.
 * Threads   the loop's.
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

#include <sys/types.h>

struct net_conn;
struct net_listener;

struct net_handlers {
	void (*on_data)(void *arg, const uint8_t *data, size_t length);
	void (*on_drain)(void *arg); /* the queue is empty again; may be NULL */
	void (*on_close)(void *arg, const struct error *error); /* NULL: the peer ended it */
};

/* `conn` starts paused; set handlers with net_start(). Called with conn NULL and error set when
 * accepting failed for good. */
typedef void net_accept_fn(void *arg, struct net_conn *conn);
/* One of conn and error is NULL. */
typedef void net_connect_fn(void *arg, struct net_conn *conn, const struct error *error);

/* The socket file is made with `mode`. An existing path is CONFLICT: the caller decides what to do
 * with a leftover (net_unix_alive). Closing removes the file only if it is still ours (same inode). */
MUST_CHECK bool net_listen_unix(struct loop *loop, const char *path, mode_t mode,
				net_accept_fn *on_accept, void *arg,
				struct net_listener **ret_listener, struct error *error);
/* "ADDR:PORT", "[ADDR6]:PORT"; port 0 takes a free one: see net_listener_address(). */
MUST_CHECK bool net_listen_tcp(struct loop *loop, const char *address, net_accept_fn *on_accept,
			       void *arg, struct net_listener **ret_listener, struct error *error);
const char *net_listener_address(const struct net_listener *listener); /* as bound */
void net_listener_destroy(struct net_listener *listener);

/* Does a connect to this socket file succeed right now? Blocks only for a local connect. */
bool net_unix_alive(const char *path);
bool net_unix_is_socket(const char *path); /* the file's kind; links are not followed */
/* Who listens on this socket file: its process id as this process sees it, 0 when it can't see it
 * because it isn't in this PID namespace or one below. Blocks only for a local connect. */
MUST_CHECK bool net_unix_peer(const char *path, int32_t *ret_pid, struct error *error);

/* Takes over a connected unix stream socket. */
struct net_conn *net_take_unix(struct loop *loop, int fd);

struct net_dial; /* a connect under way */
struct net_dial *net_connect_unix(struct loop *loop, const char *path, net_connect_fn *fn,
				  void *arg);
struct net_dial *net_connect_tcp(struct loop *loop, const char *address, net_connect_fn *fn,
				 void *arg); /* resolves names too; first address that answers */
void net_dial_cancel(struct net_dial *dial); /* legal until fn was called */

void net_start(struct net_conn *conn, const struct net_handlers *handlers, void *arg);
void net_pause(struct net_conn *conn);
void net_resume(struct net_conn *conn);
void net_write(struct net_conn *conn, const void *data, size_t length); /* copies what it queues */
size_t net_queued(const struct net_conn *conn);
void net_close(struct net_conn *conn); /* what is queued is tried once, then dropped */

/* The peer's uid on a unix socket, or -1. */
int64_t net_peer_uid(const struct net_conn *conn);
const char *net_peer(const struct net_conn *conn); /* for logs: "10.0.0.1:4711", "unix" */
