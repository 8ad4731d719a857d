#include "sys/net.h"

#include "base/buf.h"
#include "lib/folder.h"
#include "lib/test.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct loop *loop;
static struct loop_timer *end;

/* One end of a connection and what it saw. */
struct peer {
	struct net_conn *conn;
	struct buf got;
	size_t wanted; /* stops the loop when so many bytes are there */
	bool closed, drained, echo;
	struct error error;
};

static struct peer server, client;

static void give_up(void *arg UNUSED)
{
	fail_msg("the test took too long");
}

static int make(void **state)
{
	loop = loop_create();
	end = loop_timer_create(loop, give_up, NULL);
	loop_timer_start(end, 10000);
	server = client = (struct peer){0};
	return folder_make(state);
}

static void drop_peer(struct peer *peer)
{
	if (peer->conn && !peer->closed)
		net_close(peer->conn);
	buf_deinit(&peer->got);
}

static int drop(void **state)
{
	drop_peer(&server);
	drop_peer(&client);
	loop_timer_destroy(end);
	loop_destroy(loop);
	return folder_remove(state);
}

static void on_data(void *arg, const uint8_t *data, size_t length)
{
	struct peer *peer = arg;

	buf_add(&peer->got, data, length);
	if (peer->echo)
		net_write(peer->conn, data, length);
	if (peer->wanted && peer->got.length >= peer->wanted)
		loop_stop(loop);
}

static void on_drain(void *arg)
{
	struct peer *peer = arg;

	peer->drained = true;
}

static void on_close(void *arg, const struct error *error)
{
	struct peer *peer = arg;

	assert_false(peer->closed);
	peer->closed = true;
	if (error)
		peer->error = *error;
	loop_stop(loop);
}

static const struct net_handlers HANDLERS = {on_data, on_drain, on_close};

static void on_accept(void *arg, struct net_conn *conn)
{
	struct peer *peer = arg;

	assert_non_null(conn);
	assert_null(peer->conn);
	peer->conn = conn;
	net_start(conn, &HANDLERS, peer);
	if (client.conn)
		loop_stop(loop);
}

static void on_connect(void *arg, struct net_conn *conn, const struct error *error)
{
	struct peer *peer = arg;

	if (error) {
		peer->error = *error;
		loop_stop(loop);
		return;
	}
	peer->conn = conn;
	net_start(conn, &HANDLERS, peer);
	if (server.conn)
		loop_stop(loop);
}

/* Listens on the path, dials it, and waits until both ends stand. */
static struct net_listener *connect_both(const char *path)
{
	struct net_listener *listener;
	struct error error;

	expect_ok(net_listen_unix(loop, path, 0600, on_accept, &server, &listener, &error), &error);
	net_connect_unix(loop, path, on_connect, &client);
	loop_run(loop);
	assert_non_null(server.conn);
	assert_non_null(client.conn);
	return listener;
}

static void test_bytes_both_ways(void **state)
{
	struct net_listener *listener = connect_both(folder_path(state, "s"));

	server.echo = true;
	client.wanted = 5;
	net_write(client.conn, "hello", 5);
	loop_run(loop);
	assert_string_equal(buf_text(&client.got), "hello");
	assert_string_equal(net_peer(server.conn), "unix");
	assert_int_equal(net_peer_uid(server.conn), getuid());
	assert_int_equal(net_peer_uid(client.conn), getuid());
	net_listener_destroy(listener);
}

static void test_large_writes_queue_and_drain(void **state)
{
	struct net_listener *listener = connect_both(folder_path(state, "s"));
	size_t size = 8 << 20;
	uint8_t *data = mem_alloc(size);

	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 7 + i / 1000);
	net_pause(server.conn);
	net_write(client.conn, data, size);
	assert_true(net_queued(client.conn) > 0);
	server.wanted = size;
	net_resume(server.conn);
	loop_run(loop);
	assert_int_equal(server.got.length, size);
	assert_memory_equal(server.got.data, data, size);
	assert_int_equal(net_queued(client.conn), 0);
	assert_true(client.drained);
	free(data);
	net_listener_destroy(listener);
}

static void test_the_peers_end_is_told_once(void **state)
{
	struct net_listener *listener = connect_both(folder_path(state, "s"));

	net_write(client.conn, "bye", 3);
	net_close(TAKE(client.conn));
	loop_run(loop);
	assert_true(server.closed);
	assert_int_equal(server.error.code, ERROR_NONE);
	assert_string_equal(buf_text(&server.got), "bye");
	net_listener_destroy(listener);
}

static void test_writing_to_a_gone_peer_is_an_error_not_a_signal(void **state)
{
	struct net_listener *listener = connect_both(folder_path(state, "s"));

	net_write(client.conn, "last words", 10);
	net_close(TAKE(client.conn));
	net_write(server.conn, "x", 1);
	net_write(server.conn, "y", 1);
	assert_false(server.closed); /* told from the loop, not from inside the write */
	loop_run(loop);
	assert_true(server.closed);
	assert_string_equal(buf_text(&server.got), "last words");
	net_listener_destroy(listener);
}

static void test_paths_may_be_long(void **state)
{
	char path[400];
	struct net_listener *listener;
	struct stat stat_now;
	size_t length = (size_t)snprintf(path, sizeof path, "%s/", (char *)*state);

	memset(path + length, 'd', 200);
	path[length + 200] = '\0';
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/a-socket.sock");
	listener = connect_both(path);
	assert_string_equal(net_listener_address(listener), path);
	assert_int_equal(stat(path, &stat_now), 0);
	assert_true(S_ISSOCK(stat_now.st_mode));
	assert_int_equal(stat_now.st_mode & 07777, 0600);
	assert_true(net_unix_alive(path));
	net_listener_destroy(listener);
	assert_int_equal(stat(path, &stat_now), -1);
	assert_false(net_unix_alive(path));
}

static void test_a_component_too_long_is_refused(void **state)
{
	char name[120];
	struct net_listener *listener;
	struct error error;

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	expect_error(net_listen_unix(loop, folder_path(state, name), 0600, on_accept, NULL,
				     &listener, &error),
		     &error, ERROR_INTERNAL, "File name too long");
}

static void test_an_existing_path_is_a_conflict(void **state)
{
	const char *path = folder_path(state, "s");
	struct net_listener *listener, *other;
	struct error error;

	listener = connect_both(path);
	expect_error(net_listen_unix(loop, path, 0600, on_accept, NULL, &other, &error), &error,
		     ERROR_CONFLICT, "exists already");
	assert_true(net_unix_alive(path)); /* the failed attempt removed nothing */
	net_listener_destroy(listener);
}

static void test_a_newer_socket_in_our_place_stays(void **state)
{
	const char *path = folder_path(state, "s");
	struct net_listener *listener = connect_both(path), *newer;
	struct error error;

	assert_int_equal(unlink(path), 0);
	expect_ok(net_listen_unix(loop, path, 0600, on_accept, NULL, &newer, &error), &error);
	net_listener_destroy(listener);
	assert_true(net_unix_alive(path));
	net_listener_destroy(newer);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_a_leftover_is_not_alive(void **state)
{
	const char *path = folder_path(state, "s");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	str_copy(address.sun_path, sizeof address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
	assert_int_equal(access(path, F_OK), 0);
	assert_false(net_unix_alive(path));
	assert_false(net_unix_alive(folder_path(state, "none")));
	assert_false(net_unix_alive(folder_path(state, "absent/s")));
}

static void test_failed_connects_come_from_the_loop(void **state)
{
	net_connect_unix(loop, folder_path(state, "none"), on_connect, &client);
	assert_int_equal(client.error.code, ERROR_NONE);
	loop_run(loop);
	assert_int_equal(client.error.code, ERROR_NOT_FOUND);

	net_connect_unix(loop, folder_path(state, "absent/s"), on_connect, &client);
	client.error = (struct error){0};
	loop_run(loop);
	assert_int_equal(client.error.code, ERROR_NOT_FOUND);

	net_connect_tcp(loop, "127.0.0.1:1", on_connect, &client);
	loop_run(loop);
	assert_int_equal(client.error.code, ERROR_UNAVAILABLE);
	assert_non_null(strstr(client.error.what, "connect to '127.0.0.1:1'"));

	net_connect_tcp(loop, "no-port", on_connect, &client);
	loop_run(loop);
	assert_int_equal(client.error.code, ERROR_INVALID_INPUT);
}

static void never(void *arg UNUSED, struct net_conn *conn UNUSED, const struct error *error UNUSED)
{
	fail_msg("a cancelled connect was answered");
}

static void stop(void *arg UNUSED)
{
	loop_stop(loop);
}

static void test_a_cancelled_connect_is_silent(void **state)
{
	struct net_listener *listener = connect_both(folder_path(state, "s"));
	struct loop_timer *timer = loop_timer_create(loop, stop, NULL);

	net_dial_cancel(net_connect_unix(loop, folder_path(state, "none"), never, NULL));
	net_dial_cancel(net_connect_unix(loop, folder_path(state, "absent/s"), never, NULL));
	net_dial_cancel(net_connect_tcp(loop, "127.0.0.1:1", never, NULL));
	net_dial_cancel(net_connect_tcp(loop, "x", never, NULL));
	net_dial_cancel(NULL);
	loop_timer_start(timer, 50);
	loop_run(loop);
	loop_timer_destroy(timer);
	net_listener_destroy(listener);
}

static void test_tcp_on_a_free_port(void **state UNUSED)
{
	struct net_listener *listener, *other;
	struct error error;
	int64_t uid;

	expect_ok(net_listen_tcp(loop, "127.0.0.1:0", on_accept, &server, &listener, &error),
		  &error);
	assert_int_equal(strncmp(net_listener_address(listener), "127.0.0.1:", 10), 0);
	assert_string_not_equal(net_listener_address(listener), "127.0.0.1:0");
	expect_error(net_listen_tcp(loop, net_listener_address(listener), on_accept, &server,
				    &other, &error),
		     &error, ERROR_CONFLICT, "it is in use");
	net_connect_tcp(loop, net_listener_address(listener), on_connect, &client);
	loop_run(loop);
	assert_string_equal(net_peer(client.conn), net_listener_address(listener));
	uid = net_peer_uid(server.conn);
	assert_int_equal(uid, -1);
	net_write(server.conn, "hi", 2);
	client.wanted = 2;
	loop_run(loop);
	assert_string_equal(buf_text(&client.got), "hi");
	net_listener_destroy(listener);
}

static void test_names_are_looked_up(void **state UNUSED)
{
	struct net_listener *listener;
	struct error error;
	char address[64];

	expect_ok(net_listen_tcp(loop, "localhost:0", on_accept, &server, &listener, &error),
		  &error);
	snprintf(address, sizeof address, "localhost%s",
		 strrchr(net_listener_address(listener), ':'));
	net_connect_tcp(loop, address, on_connect, &client);
	loop_run(loop);
	assert_non_null(client.conn);
	net_listener_destroy(listener);
}

static void test_bad_addresses_are_refused(void **state UNUSED)
{
	static const char *const BAD[] = {"",       "127.0.0.1",   ":80",           "1.2.3.4:",
					  "::1:80", "1.2.3.4:x80", "1.2.3.4:65536", "[::1]80",
					  "[]:80",  "1.2.3.4:-1"};
	struct net_listener *listener;
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(BAD); i++)
		expect_error(net_listen_tcp(loop, BAD[i], on_accept, NULL, &listener, &error),
			     &error, ERROR_INVALID_INPUT, "is not ADDR:PORT");
}

static void count_accept(void *arg, struct net_conn *conn)
{
	size_t *count = arg;

	net_close(conn);
	if (++*count == 500)
		loop_stop(loop);
}

static void test_a_burst_of_clients_fits(void **state)
{
	const char *path = folder_path(state, "s");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct net_listener *listener;
	static int fds[500];
	size_t count = 0;
	struct rlimit limit = {4096, 4096};
	struct error error;

	setrlimit(RLIMIT_NOFILE, &limit);
	expect_ok(net_listen_unix(loop, path, 0600, count_accept, &count, &listener, &error),
		  &error);
	str_copy(address.sun_path, sizeof address.sun_path, path);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&address, sizeof address), 0);
	}
	loop_run(loop);
	assert_int_equal(count, 500);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	net_listener_destroy(listener);
}

#define NET_TEST(test) cmocka_unit_test_setup_teardown(test, make, drop)

/* The exit status is the id as it is seen, or 99. */
static int peer_seen(const char *path)
{
	struct error error;
	int32_t pid;

	return !net_unix_peer(path, &pid, &error) ? 99 : pid == 0 ? 0 : pid == getppid() ? 1 : 2;
}

static int peer_seen_by_child(const char *path, int flags)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (flags && (unshare(flags) != 0 || (pid = fork()) < 0))
			_exit(98);
		if (flags && pid > 0)
			_exit(waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 97);
		_exit(peer_seen(path));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

/* Who listens can't be seen from a PID namespace of one's own. proves: REL-13 */
static void test_who_listens(void **state)
{
	const char *path = folder_path(state, "socket");
	struct net_listener *listener;
	struct error error;
	int32_t pid;

	assert_false(net_unix_peer(path, &pid, &error));
	expect_ok(net_listen_unix(loop, path, 0600, on_accept, NULL, &listener, &error), &error);
	expect_ok(net_unix_peer(path, &pid, &error), &error);
	assert_int_equal(pid, getpid());
	assert_int_equal(peer_seen_by_child(path, 0), 1);
	assert_int_equal(peer_seen_by_child(path, CLONE_NEWUSER | CLONE_NEWPID), 0);
	net_listener_destroy(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		NET_TEST(test_bytes_both_ways),
		NET_TEST(test_large_writes_queue_and_drain),
		NET_TEST(test_the_peers_end_is_told_once),
		NET_TEST(test_writing_to_a_gone_peer_is_an_error_not_a_signal),
		NET_TEST(test_paths_may_be_long),
		NET_TEST(test_a_component_too_long_is_refused),
		NET_TEST(test_an_existing_path_is_a_conflict),
		NET_TEST(test_a_newer_socket_in_our_place_stays),
		NET_TEST(test_a_leftover_is_not_alive),
		NET_TEST(test_who_listens),
		NET_TEST(test_failed_connects_come_from_the_loop),
		NET_TEST(test_a_cancelled_connect_is_silent),
		NET_TEST(test_tcp_on_a_free_port),
		NET_TEST(test_names_are_looked_up),
		NET_TEST(test_bad_addresses_are_refused),
		NET_TEST(test_a_burst_of_clients_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
