/* sys/net.h: socket files are there; nobody connects. Streams of bytes have no part in the
 * simulation: rpc is cut at its messages (sim_links.c), and status sockets only have to exist. */
#include "sim/programs.h"
#include "sim/sim_faults.h"
#include "sim/sim_fs.h"
#include "sim/sim_rpc.h"
#include "sys/net.h"

#include <errno.h>

struct net_listener {
	char *path;
	uint64_t inode;
};

bool net_listen_unix(struct loop *loop UNUSED, const char *path, mode_t mode UNUSED,
		     net_accept_fn *on_accept UNUSED, void *arg UNUSED,
		     struct net_listener **ret_listener, struct error *error)
{
	uint64_t inode = 0;
	int failed = sim_fault(SIM_LISTEN, path);
	if (failed) {
		errno = failed;
		return error_os(error, "listen on '%s'", path);
	}
	if (!sim_fs_socket_make(path, &inode))
		return error_set(error, ERROR_CONFLICT, "listen on '%s': it is in use", path);
	struct net_listener *listener = mem_alloc(sizeof *listener);
	*listener = (struct net_listener){mem_strdup(path), inode};
	*ret_listener = listener;
	return true;
}

void net_listener_destroy(struct net_listener *listener)
{
	if (!listener)
		return;
	sim_fs_socket_remove(listener->path, listener->inode);
	free(listener->path);
	free(listener);
}

const char *net_listener_address(const struct net_listener *listener)
{
	return listener->path;
}

bool net_unix_alive(const char *path)
{
	return sim_rpc_listens(sim_fs_socket(path));
}

bool net_unix_is_socket(const char *path)
{
	return sim_fs_socket(path) != 0;
}

bool net_unix_peer(const char *path, int32_t *ret_pid, struct error *error)
{
	if (!net_unix_alive(path))
		return error_set(error, ERROR_UNAVAILABLE, "nobody listens on '%s'", path);
	*ret_pid = programs.in_pod ? 0 : 1;
	return true;
}

/* --- what has no part in it --- */

bool net_listen_tcp(struct loop *loop UNUSED, const char *address UNUSED,
		    net_accept_fn *on_accept UNUSED, void *arg UNUSED,
		    struct net_listener **ret_listener UNUSED, struct error *error UNUSED)
{
	abort();
}

struct net_dial *net_connect_unix(struct loop *loop UNUSED, const char *path UNUSED,
				  net_connect_fn *fn UNUSED, void *arg UNUSED)
{
	abort();
}

struct net_dial *net_connect_tcp(struct loop *loop UNUSED, const char *address UNUSED,
				 net_connect_fn *fn UNUSED, void *arg UNUSED)
{
	abort();
}

void net_dial_cancel(struct net_dial *dial UNUSED)
{
	abort();
}

void net_start(struct net_conn *conn UNUSED, const struct net_handlers *handlers UNUSED,
	       void *arg UNUSED)
{
	abort();
}

void net_pause(struct net_conn *conn UNUSED)
{
	abort();
}

void net_resume(struct net_conn *conn UNUSED)
{
	abort();
}

void net_write(struct net_conn *conn UNUSED, const void *data UNUSED, size_t length UNUSED)
{
	abort();
}

size_t net_queued(const struct net_conn *conn UNUSED)
{
	abort();
}

void net_close(struct net_conn *conn UNUSED)
{
	abort();
}

int64_t net_peer_uid(const struct net_conn *conn UNUSED)
{
	abort();
}

const char *net_peer(const struct net_conn *conn UNUSED)
{
	abort();
}
