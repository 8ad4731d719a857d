/* A PostgreSQL server that vanishes or falls silent must not hang a worker. The server here is a
 * socket of the test: it answers as far as a test wants, then says nothing. */
#include "lib/test.h"
#include "store/driver.h"
#include "sys/clock.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct server {
	int listener;
	char conninfo[256];
	int answers; /* to queries, before it falls silent; -1: not even a greeting */
	pthread_t thread;
};

/* --- the server --- */

static void start(struct server *server, const char *more)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof address;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(server->listener, 1), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
	snprintf(server->conninfo, sizeof server->conninfo,
		 "host=127.0.0.1 port=%d user=u dbname=d sslmode=disable gssencmode=disable %s",
		 ntohs(address.sin_port), more);
}

static bool read_all(int fd, void *data, size_t size)
{
	return recv(fd, data, size, MSG_WAITALL) == (ssize_t)size;
}

/* A message is a letter, a length that counts itself, and a body; the first has no letter. */
static bool skip_message(int fd, bool first)
{
	char letter, body[4096];
	uint32_t length;

	if ((!first && !read_all(fd, &letter, 1)) || !read_all(fd, &length, sizeof length))
		return false;
	length = ntohl(length) - 4;
	return length <= sizeof body && read_all(fd, body, length);
}

#define GREETING "R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"
#define DONE     "C\0\0\0\x08SET\0Z\0\0\0\x05I"

/* Serves one connection until its end, and takes no other. */
static void *serve(void *argument)
{
	struct server *server = argument;
	int fd = accept(server->listener, NULL, NULL), left = server->answers;
	char rest[256];

	close(server->listener);
	if (left >= 0 && skip_message(fd, true) &&
	    send(fd, GREETING, sizeof GREETING - 1, MSG_NOSIGNAL) > 0) {
		while (left > 0 && skip_message(fd, false) &&
		       send(fd, DONE, sizeof DONE - 1, MSG_NOSIGNAL) > 0)
			left--;
	}
	while (recv(fd, rest, sizeof rest, 0) > 0)
		;
	close(fd);
	return NULL;
}

static void run(struct server *server)
{
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- what our end of the connection is set to --- */

static int option_of(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof value;

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, name, &value, &size), 0);
	return value;
}

/* The descriptor that is connected to the port at fd's other end. */
static int client_of(int accepted)
{
	struct sockaddr_in theirs, mine;
	socklen_t size = sizeof theirs;

	assert_int_equal(getpeername(accepted, (struct sockaddr *)&theirs, &size), 0);
	for (int fd = 3; fd < 64; fd++) {
		size = sizeof mine;
		if (fd != accepted && getsockname(fd, (struct sockaddr *)&mine, &size) == 0 &&
		    mine.sin_family == AF_INET && mine.sin_port == theirs.sin_port)
			return fd;
	}
	fail_msg("no descriptor has the port");
	return -1;
}

static bool connect_with(const char *conninfo, struct error *error)
{
	struct store store = {
		.driver = &store_postgres,
		.url = (char *)conninfo,
		.silence_ms = 300,
	};
	struct store_connection *connection;

	if (!store_connect(&store, &connection, error))
		return false;
	store_disconnect(connection);
	return true;
}

static void *connect_in_thread(void *argument)
{
	struct error error;

	expect_error(connect_with(argument, &error), &error, ERROR_UNAVAILABLE, "connect");
	return NULL;
}

static void expect_options(const char *more, int idle_s, int interval_s, int count, int unheard_ms)
{
	struct server server;
	pthread_t thread;
	int accepted, client;

	start(&server, more);
	assert_int_equal(pthread_create(&thread, NULL, connect_in_thread, server.conninfo), 0);
	accepted = accept(server.listener, NULL, NULL);
	close(server.listener);
	client = client_of(accepted);
	assert_int_equal(option_of(client, TCP_KEEPIDLE), idle_s);
	assert_int_equal(option_of(client, TCP_KEEPINTVL), interval_s);
	assert_int_equal(option_of(client, TCP_KEEPCNT), count);
	assert_int_equal(option_of(client, TCP_USER_TIMEOUT), unheard_ms);
	close(accepted);
	pthread_join(thread, NULL);
}

static void test_a_vanished_host_is_noticed_by_the_kernel(void **state)
{
	(void)state;
	expect_options("", 10, 5, 3, 25000);
}

static void test_the_conninfo_knows_better(void **state)
{
	(void)state;
	expect_options("keepalives_idle=60 tcp_user_timeout=90000", 60, 5, 3, 90000);
}

static void test_connecting_ends(void **state)
{
	struct server server = {.answers = -1};
	int64_t began = now_ms();
	struct error error;

	(void)state;
	start(&server, "connect_timeout=2");
	run(&server);
	expect_error(connect_with(server.conninfo, &error), &error, ERROR_UNAVAILABLE, "timeout");
	assert_in_range(now_ms() - began, 1000, 4000);
	pthread_join(server.thread, NULL);
}

/* --- a server that stops in the middle --- */

static bool never_reached(struct store_connection *connection, void *argument, struct error *error)
{
	(void)connection, (void)argument, (void)error;
	fail_msg("the transaction never began");
	return false;
}

/* The transaction may be tried again, so the second try finds that nobody listens any more. */
static void test_a_silent_server_is_given_up(void **state)
{
	struct server server = {.answers = 1};
	struct store_counters counters[2] = {0};
	struct store_writes writes = {0};
	struct store store = {.driver = &store_postgres,
			      .silence_ms = 300,
			      .counters = counters,
			      .writes = &writes};
	struct store_connection *connection;
	int64_t began;
	struct error error;

	(void)state;
	start(&server, "");
	run(&server);
	store.url = server.conninfo;
	expect_ok(store_connect(&store, &connection, &error), &error);
	began = now_ms();
	expect_error(store_run(connection, STORE_READ, never_reached, NULL, &error), &error,
		     ERROR_UNAVAILABLE, "connect to the database");
	assert_in_range(now_ms() - began, 250, 3000);
	store_disconnect(connection);
	pthread_join(server.thread, NULL);
}

/* However long it may be silent otherwise. Once it is late nothing begins at all. */
static void test_a_deadline_ends_the_silence(void **state)
{
	struct server server = {.answers = 1};
	struct store_counters counters[2] = {0};
	struct store_writes writes = {0};
	struct store store = {.driver = &store_postgres,
			      .silence_ms = 75000,
			      .counters = counters,
			      .writes = &writes};
	struct store_connection *connection;
	int64_t began;
	struct error error;

	(void)state;
	start(&server, "");
	run(&server);
	store.url = server.conninfo;
	expect_ok(store_connect(&store, &connection, &error), &error);
	began = now_ms();
	store_set_deadline(connection, mono_after(clock_mono(), 600));
	expect_error(store_run(connection, STORE_READ, never_reached, NULL, &error), &error,
		     ERROR_UNAVAILABLE, "said nothing for 1 s");
	assert_in_range(now_ms() - began, 500, 3000);
	expect_error(store_run(connection, STORE_READ, never_reached, NULL, &error), &error,
		     ERROR_UNAVAILABLE, "waited for too long");
	store_set_deadline(connection, (struct mono){0});
	expect_error(store_run(connection, STORE_READ, never_reached, NULL, &error), &error,
		     ERROR_UNAVAILABLE, "connect to the database");
	store_disconnect(connection);
	pthread_join(server.thread, NULL);
}

static void *hurry_in_thread(void *argument)
{
	const struct timespec while_it_waits = {.tv_nsec = 300000000};

	nanosleep(&while_it_waits, NULL);
	store_hurry(argument);
	return NULL;
}

/* Neither waited for nor connected to again. */
static void test_who_stops_waits_for_no_silent_server(void **state)
{
	struct server server = {.answers = 1};
	struct store_counters counters[2] = {0};
	struct store_writes writes = {0};
	struct store store = {.driver = &store_postgres,
			      .silence_ms = 75000,
			      .counters = counters,
			      .writes = &writes};
	struct store_connection *connection;
	pthread_t hurrying;
	int64_t began;
	struct error error;

	(void)state;
	start(&server, "");
	run(&server);
	store.url = server.conninfo;
	expect_ok(store_connect(&store, &connection, &error), &error);
	assert_int_equal(pthread_create(&hurrying, NULL, hurry_in_thread, &store), 0);
	began = now_ms();
	expect_error(store_run(connection, STORE_READ, never_reached, NULL, &error), &error,
		     ERROR_UNAVAILABLE, "is stopping");
	assert_in_range(now_ms() - began, STORE_HURRIED_MS - 500, STORE_HURRIED_MS + 3000);
	store_disconnect(connection);
	pthread_join(hurrying, NULL);
	pthread_join(server.thread, NULL);
}

static void test_a_silence_is_named(void **state)
{
	struct server server = {.answers = 0};
	struct error error;

	(void)state;
	start(&server, "");
	run(&server);
	expect_error(connect_with(server.conninfo, &error), &error, ERROR_UNAVAILABLE,
		     "set up the session: the database server said nothing");
	pthread_join(server.thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_vanished_host_is_noticed_by_the_kernel),
		cmocka_unit_test(test_the_conninfo_knows_better),
		cmocka_unit_test(test_connecting_ends),
		cmocka_unit_test(test_a_silent_server_is_given_up),
		cmocka_unit_test(test_a_deadline_ends_the_silence),
		cmocka_unit_test(test_who_stops_waits_for_no_silent_server),
		cmocka_unit_test(test_a_silence_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
