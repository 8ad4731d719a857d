#include "sys/net.h"

#include "sys/net_uv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Unix sockets refuse a connect that finds the queue full: a burst of clients must fit. */
#define NET_BACKLOG 1024

struct net_listener {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_pipe_t pipe;
		uv_tcp_t tcp;
	} uv;
	struct loop *loop;
	bool is_unix;
	net_accept_fn *on_accept;
	void *arg;
	char *address;
	int folder; /* unix: the socket file's folder, and what the file was when we made it */
	char *name;
	dev_t device;
	ino_t inode;
};

/* --- errors, names and paths --- */

bool net_error(struct error *error, int status, const char *doing, const char *address)
{
	if (status == UV_EADDRINUSE)
		return error_set(error, ERROR_CONFLICT, "%s '%s': it is in use", doing, address);
	if (status <= UV_EAI_ADDRFAMILY && status >= UV_EAI_PROTOCOL)
		return error_set(error, ERROR_UNAVAILABLE, "%s '%s': %s", doing, address,
				 uv_strerror(status));
	errno = -status;
	return error_os(error, "%s '%s'", doing, address);
}

bool net_address_parse(const char *text, struct net_address *ret_address, struct error *error)
{
	const char *colon = strrchr(text, ':'), *host = text;
	size_t host_length = colon ? (size_t)(colon - text) : 0, port_length;
	struct net_address address = {0};

	if (host[0] == '[' && host_length > 2 && host[host_length - 1] == ']') {
		host++;
		host_length -= 2;
	} else if (host[0] == '[' || memchr(host, ':', host_length)) {
		host_length = 0; /* half a pair of brackets, or an IPv6 address without them */
	}
	port_length = colon ? strlen(colon + 1) : 0;
	if (host_length == 0 || host_length >= NET_HOST_SIZE || port_length == 0 ||
	    port_length >= NET_PORT_SIZE || strspn(colon + 1, "0123456789") != port_length ||
	    strtoul(colon + 1, NULL, 10) > UINT16_MAX)
		return error_set(error, ERROR_INVALID_INPUT,
				 "address '%s' is not ADDR:PORT or [ADDR6]:PORT", text);
	memcpy(address.host, host, host_length);
	memcpy(address.port, colon + 1, port_length);
	*ret_address = address;
	return true;
}

bool net_unix_path_open(const char *path, struct net_unix_path *ret_path)
{
	const char *slash = strrchr(path, '/');
	struct net_unix_path out = {.name = slash ? slash + 1 : path};
	CLEANUP(free) char *folder = mem_strdup(slash ? path : ".");
	int length;

	if (slash)
		folder[slash == path ? 1 : slash - path] = '\0';
	if (!*out.name)
		return errno = EISDIR, false;
	out.folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (out.folder < 0)
		return false;
	length = snprintf(out.short_path, sizeof out.short_path, "/proc/self/fd/%d/%s", out.folder,
			  out.name);
	if ((size_t)length >= sizeof out.short_path) {
		close(out.folder);
		return errno = ENAMETOOLONG, false;
	}
	*ret_path = out;
	return true;
}

static void format_address(char out[NET_PEER_SIZE], const struct sockaddr_storage *address)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (address->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)address;

		uv_ip6_name(in6, host, sizeof host);
		snprintf(out, NET_PEER_SIZE, "[%s]:%u", host, ntohs(in6->sin6_port));
	} else {
		const struct sockaddr_in *in = (const void *)address;

		uv_ip4_name(in, host, sizeof host);
		snprintf(out, NET_PEER_SIZE, "%s:%u", host, ntohs(in->sin_port));
	}
}

/* --- connections --- */

static void free_conn(uv_handle_t *handle)
{
	free(handle->data);
}

struct net_conn *net_conn_create(struct loop *loop, bool is_unix)
{
	struct net_conn *conn = mem_alloc(sizeof *conn);

	conn->loop = loop;
	conn->peer_uid = -1;
	str_copy(conn->peer, sizeof conn->peer, is_unix ? "unix" : "?");
	loop_must(is_unix ? uv_pipe_init(loop_uv(loop), &conn->uv.pipe, 0)
			  : uv_tcp_init(loop_uv(loop), &conn->uv.tcp));
	conn->uv.handle.data = conn;
	return conn;
}

void net_conn_identify(struct net_conn *conn)
{
	struct sockaddr_storage address = {0};
	int length = sizeof address;
	struct ucred peer;
	socklen_t peer_size = sizeof peer;
	uv_os_fd_t fd;

	if (conn->uv.handle.type == UV_TCP) {
		uv_tcp_nodelay(&conn->uv.tcp, 1);
		if (uv_tcp_getpeername(&conn->uv.tcp, (struct sockaddr *)&address, &length) == 0)
			format_address(conn->peer, &address);
	} else if (uv_fileno(&conn->uv.handle, &fd) == 0 &&
		   getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) == 0) {
		conn->peer_uid = peer.uid;
	}
}

struct net_conn *net_take_unix(struct loop *loop, int fd)
{
	struct net_conn *conn = net_conn_create(loop, true);

	loop_must(uv_pipe_open(&conn->uv.pipe, fd));
	net_conn_identify(conn);
	return conn;
}

void net_close(struct net_conn *conn)
{
	if (conn->closing)
		return;
	/* What is queued was offered to the kernel at each wake-up and not taken. */
	conn->closing = true;
	uv_close(&conn->uv.handle, free_conn);
}

/* The connection's end, told once; the struct lives until libuv has let go. */
static void end_conn(struct net_conn *conn, const struct error *error)
{
	const struct net_handlers *handlers = conn->handlers;
	void *arg = conn->arg;

	net_close(conn);
	if (handlers)
		handlers->on_close(arg, error);
}

static void end_conn_status(struct net_conn *conn, int status, const char *doing)
{
	struct error error;

	net_error(&error, status, doing, conn->peer);
	end_conn(conn, &error);
}

static void give_buffer(uv_handle_t *handle, size_t suggested UNUSED, uv_buf_t *ret)
{
	struct net_conn *conn = handle->data;

	*ret = uv_buf_init((char *)loop_read_buffer(conn->loop), LOOP_READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buf)
{
	struct net_conn *conn = stream->data;

	if (length > 0)
		conn->handlers->on_data(conn->arg, (const uint8_t *)buf->base, (size_t)length);
	else if (length == UV_EOF)
		end_conn(conn, NULL);
	else if (length < 0)
		end_conn_status(conn, (int)length, "read from");
}

void net_start(struct net_conn *conn, const struct net_handlers *handlers, void *arg)
{
	conn->own = *handlers;
	conn->handlers = &conn->own;
	conn->arg = arg;
	net_resume(conn);
}

void net_pause(struct net_conn *conn)
{
	if (conn->closing || !conn->reading)
		return;
	conn->reading = false;
	uv_read_stop(&conn->uv.stream);
}

void net_resume(struct net_conn *conn)
{
	assert(conn->handlers);
	if (conn->closing || conn->reading)
		return;
	conn->reading = true;
	loop_must(uv_read_start(&conn->uv.stream, give_buffer, on_read));
}

struct net_write {
	uv_write_t uv;
	struct net_conn *conn;
	uint8_t data[];
};

/* A peer that answers and closes at once: its last words are read before the end is told. */
static void read_last_words(struct net_conn *conn)
{
	uv_os_fd_t fd;

	if (uv_fileno(&conn->uv.handle, &fd) != 0)
		return;
	while (conn->reading && !conn->closing) {
		uint8_t *buffer = loop_read_buffer(conn->loop);
		ssize_t length = recv(fd, buffer, LOOP_READ_SIZE, MSG_DONTWAIT);

		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0)
			return;
		conn->handlers->on_data(conn->arg, buffer, (size_t)length);
	}
}

static void on_written(uv_write_t *uv, int status)
{
	struct net_write *write = uv->data;
	struct net_conn *conn = write->conn;

	free(write);
	if (conn->closing)
		return;
	if (status < 0) {
		read_last_words(conn);
		if (!conn->closing)
			end_conn_status(conn, status, "write to");
	} else if (net_queued(conn) == 0 && conn->handlers && conn->handlers->on_drain) {
		conn->handlers->on_drain(conn->arg);
	}
}

void net_write(struct net_conn *conn, const void *data, size_t length)
{
	uv_buf_t buf = uv_buf_init((char *)data, (unsigned int)length);
	struct net_write *write;
	int taken;

	assert(length <= UINT32_MAX);
	if (conn->closing || length == 0)
		return;
	/* An error shows again below and is then told from the loop, not from inside this call. */
	taken = uv_try_write(&conn->uv.stream, &buf, 1);
	if (taken < 0)
		taken = 0;
	length -= (size_t)taken;
	if (length == 0)
		return;
	write = mem_alloc(sizeof *write + length);
	write->conn = conn;
	write->uv.data = write;
	memcpy(write->data, (const uint8_t *)data + taken, length);
	buf = uv_buf_init((char *)write->data, (unsigned int)length);
	loop_must(uv_write(&write->uv, &conn->uv.stream, &buf, 1, on_written));
}

size_t net_queued(const struct net_conn *conn)
{
	return uv_stream_get_write_queue_size(&conn->uv.stream);
}

int64_t net_peer_uid(const struct net_conn *conn)
{
	return conn->peer_uid;
}

const char *net_peer(const struct net_conn *conn)
{
	return conn->peer;
}

/* --- listeners --- */

static void on_connection(uv_stream_t *stream, int status)
{
	struct net_listener *listener = stream->data;
	struct net_conn *conn;

	if (status < 0) {
		/* One peer's or one moment's trouble; only a broken listener is for good. */
		if (status == UV_EBADF || status == UV_EINVAL || status == UV_ENOTSOCK)
			listener->on_accept(listener->arg, NULL);
		return;
	}
	conn = net_conn_create(listener->loop, listener->is_unix);
	if (uv_accept(stream, &conn->uv.stream) < 0) {
		net_close(conn);
		return;
	}
	net_conn_identify(conn);
	listener->on_accept(listener->arg, conn);
}

static struct net_listener *listener_create(struct loop *loop, bool is_unix,
					    net_accept_fn *on_accept, void *arg)
{
	struct net_listener *listener = mem_alloc(sizeof *listener);

	*listener = (struct net_listener){
		.loop = loop,
		.is_unix = is_unix,
		.on_accept = on_accept,
		.arg = arg,
		.folder = -1,
	};
	loop_must(is_unix ? uv_pipe_init(loop_uv(loop), &listener->uv.pipe, 0)
			  : uv_tcp_init(loop_uv(loop), &listener->uv.tcp));
	listener->uv.handle.data = listener;
	return listener;
}

/* Binds by hand: libuv would cut long paths, and remove whatever is there when it closes. */
static bool bind_unix(int fd, const struct net_unix_path *path, mode_t mode,
		      struct net_listener *listener)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat made;

	str_copy(address.sun_path, sizeof address.sun_path, path->short_path);
	/* The socket's own mode, less the umask, is the file's from its first moment. */
	if (fchmod(fd, mode) < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0)
		return false;
	if (chmod(path->short_path, mode) < 0 ||
	    fstatat(path->folder, path->name, &made, AT_SYMLINK_NOFOLLOW) < 0) {
		unlinkat(path->folder, path->name, 0);
		return false;
	}
	listener->name = mem_strdup(path->name);
	listener->device = made.st_dev;
	listener->inode = made.st_ino;
	return true;
}

static int listen_unix(struct net_listener *listener, const char *path, mode_t mode)
{
	struct net_unix_path opened;
	int fd, status;

	if (!net_unix_path_open(path, &opened))
		return -errno;
	listener->folder = opened.folder;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!bind_unix(fd, &opened, mode, listener)) {
		status = -errno;
		close(fd);
		return status;
	}
	loop_must(uv_pipe_open(&listener->uv.pipe, fd));
	return uv_listen(&listener->uv.stream, NET_BACKLOG, on_connection);
}

bool net_listen_unix(struct loop *loop, const char *path, mode_t mode, net_accept_fn *on_accept,
		     void *arg, struct net_listener **ret_listener, struct error *error)
{
	struct net_listener *listener = listener_create(loop, true, on_accept, arg);
	int status = listen_unix(listener, path, mode);

	if (status < 0) {
		net_listener_destroy(listener);
		if (status == UV_EADDRINUSE)
			return error_set(error, ERROR_CONFLICT,
					 "listen on '%s': the path exists already", path);
		return net_error(error, status, "listen on", path);
	}
	listener->address = mem_strdup(path);
	*ret_listener = listener;
	return true;
}

static int listen_tcp(struct net_listener *listener, const struct net_address *address)
{
	struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	uv_getaddrinfo_t lookup;
	int status = uv_getaddrinfo(loop_uv(listener->loop), &lookup, NULL, address->host,
				    address->port, &hints);

	if (status < 0)
		return status;
	status = uv_tcp_bind(&listener->uv.tcp, lookup.addrinfo->ai_addr, 0);
	uv_freeaddrinfo(lookup.addrinfo);
	return status < 0 ? status : uv_listen(&listener->uv.stream, NET_BACKLOG, on_connection);
}

bool net_listen_tcp(struct loop *loop, const char *address, net_accept_fn *on_accept, void *arg,
		    struct net_listener **ret_listener, struct error *error)
{
	struct net_address parts;
	struct net_listener *listener;
	struct sockaddr_storage bound = {0};
	int length = sizeof bound, status;
	char text[NET_PEER_SIZE];

	if (!net_address_parse(address, &parts, error))
		return false;
	listener = listener_create(loop, false, on_accept, arg);
	status = listen_tcp(listener, &parts);
	if (status == 0)
		status = uv_tcp_getsockname(&listener->uv.tcp, (struct sockaddr *)&bound, &length);
	if (status < 0) {
		net_listener_destroy(listener);
		return net_error(error, status, "listen on", address);
	}
	format_address(text, &bound);
	listener->address = mem_strdup(text);
	*ret_listener = listener;
	return true;
}

const char *net_listener_address(const struct net_listener *listener)
{
	return listener->address;
}

/* While our socket lives its inode number can't be given to another file: the same is ours. */
static void remove_socket_file(const struct net_listener *listener)
{
	struct stat now;

	if (fstatat(listener->folder, listener->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    now.st_dev == listener->device && now.st_ino == listener->inode)
		unlinkat(listener->folder, listener->name, 0);
}

static void free_listener(uv_handle_t *handle)
{
	struct net_listener *listener = handle->data;

	free(listener->address);
	free(listener->name);
	free(listener);
}

void net_listener_destroy(struct net_listener *listener)
{
	if (!listener)
		return;
	if (listener->name)
		remove_socket_file(listener);
	if (listener->folder >= 0)
		close(listener->folder);
	uv_close(&listener->uv.handle, free_listener);
}

bool net_unix_alive(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct net_unix_path opened;
	bool alive;
	int fd;

	if (!net_unix_path_open(path, &opened))
		return false;
	str_copy(address.sun_path, sizeof address.sun_path, opened.short_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	/* A full queue is somebody's queue. */
	alive = fd >= 0 && (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ||
			    errno == EAGAIN || errno == EINPROGRESS);
	if (fd >= 0)
		close(fd);
	close(opened.folder);
	return alive;
}

bool net_unix_peer(const char *path, int32_t *ret_pid, struct error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct net_unix_path opened;
	struct ucred peer;
	socklen_t size = sizeof peer;
	bool known;
	int fd;

	if (!net_unix_path_open(path, &opened))
		return error_os(error, "open the folder of '%s'", path);
	str_copy(address.sun_path, sizeof address.sun_path, opened.short_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	known = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
	if (!known)
		error_os(error, "ask who listens on '%s'", path);
	if (fd >= 0)
		close(fd);
	close(opened.folder);
	if (known)
		*ret_pid = peer.pid;
	return known;
}

bool net_unix_is_socket(const char *path)
{
	struct stat file;

	return lstat(path, &file) == 0 && S_ISSOCK(file.st_mode);
}
