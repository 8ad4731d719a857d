/* The API on a real socket, over a fake control plane; requests are bytes. */
#include "serve/listener.h"

#include "fake_control.h"
#include "lib/test.h"
#include "serve/events.h"
#include "serve/proxies.h"
#include "serve/workers.h"
#include "store/store.h"
#include "sys/net.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define AUTH "Authorization: Bearer " FAKE_KEY "\r\n"
#define JSON "Content-Type: application/json\r\n"
#define HOST "Host: api\r\n"
#define END  "Connection: close\r\n\r\n"

struct world {
	struct loop *loop;
	struct store *store;
	struct workers *workers;
	struct listener *listener;
	struct router router;
	struct loop_timer *timeout;
	int changes;
	bool drained;
};

/* One connection that sends `text` and takes what comes until the end. */
struct client {
	struct world *world;
	struct net_conn *conn;
	const char *text;
	size_t length;
	struct buf answer;
	bool closed;
};

static void on_timeout(void *arg)
{
	(void)arg;
	fail_msg("no answer within %d s", TEST_PATIENCE_MS / 1000);
}

static void on_change(void *arg)
{
	((struct world *)arg)->changes++;
}

static int set_up_with(void **state, size_t threads)
{
	struct world *world = mem_alloc(sizeof *world);
	struct error error;

	fake_reset();
	world->loop = loop_create();
	world->router.well_known = "{}\n";
	expect_ok(store_open("sqlite::memory:", &world->store, &error), &error);
	expect_ok(
		workers_create(world->loop, world->store, "rep", threads, &world->workers, &error),
		&error);
	expect_ok(listener_create(world->loop, &(struct listener_options){.address = "127.0.0.1:0"},
				  &world->router, world->workers, on_change, world,
				  &world->listener, &error),
		  &error);
	world->timeout = loop_timer_create(world->loop, on_timeout, NULL);
	loop_timer_start(world->timeout, TEST_PATIENCE_MS);
	*state = world;
	return 0;
}

static int set_up(void **state)
{
	return set_up_with(state, 0);
}

static int set_up_threads(void **state)
{
	return set_up_with(state, 2);
}

static int tear_down(void **state)
{
	struct world *world = *state;

	loop_timer_destroy(world->timeout);
	workers_destroy(world->workers);
	listener_destroy(world->listener);
	store_destroy(world->store);
	loop_run(world->loop);
	loop_destroy(world->loop);
	free(world);
	return 0;
}

static void on_data(void *arg, const uint8_t *data, size_t length)
{
	buf_add(&((struct client *)arg)->answer, data, length);
}

static void on_close(void *arg, const struct error *error)
{
	struct client *client = arg;

	(void)error;
	client->conn = NULL;
	client->closed = true;
	loop_stop(client->world->loop);
}

static void on_connect(void *arg, struct net_conn *conn, const struct error *error)
{
	static const struct net_handlers handlers = {.on_data = on_data, .on_close = on_close};
	struct client *client = arg;

	if (error)
		fail_msg("connect: %s", error->what);
	client->conn = conn;
	net_start(conn, &handlers, client);
	net_write(conn, client->text, client->length);
}

static void begin(struct client *client, struct world *world, const char *text, size_t length)
{
	*client = (struct client){.world = world, .text = text, .length = length};
	net_connect_tcp(world->loop, listener_address(world->listener), on_connect, client);
}

static const char *finish(struct client *client)
{
	while (!client->closed)
		loop_run(client->world->loop);
	return buf_text(&client->answer);
}

static void client_deinit(struct client *client)
{
	buf_deinit(&client->answer);
}

static void check(struct world *world, const char *text, const char *const *wanted)
{
	struct client client;
	const char *answer;

	begin(&client, world, text, strlen(text));
	answer = finish(&client);
	for (; *wanted; wanted++) {
		if (!strcasestr(answer, *wanted))
			fail_msg("\"%s\" is not in the answer to\n%s\n%s", *wanted, text, answer);
	}
	client_deinit(&client);
}

#define CHECK(world, text, ...) check(world, text, (const char *const[]){__VA_ARGS__, NULL})

/* --- tests --- */

static void test_answers(void **state)
{
	struct world *world = *state;

	CHECK(world, "GET /healthz HTTP/1.1\r\n" HOST END, "HTTP/1.1 200", "X-Request-Id: req_",
	      "ok");
	CHECK(world, "GET http://api/healthz HTTP/1.1\r\n" HOST END, "HTTP/1.1 200");
	CHECK(world, "GET HTTPS://api/v1/pools?limit=3 HTTP/1.1\r\n" HOST AUTH END, "HTTP/1.1 200",
	      "\"limit\": \"3\"");
	CHECK(world, "GET http://api HTTP/1.1\r\n" HOST AUTH END, "HTTP/1.1 404", "nothing at '/'");
	CHECK(world, "GET /v1/pools HTTP/1.1\r\n" HOST END, "HTTP/1.1 401",
	      "WWW-Authenticate: Bearer", "UNAUTHENTICATED", "Cache-Control: no-store");
	CHECK(world, "GET /v1/pools?limit=3 HTTP/1.1\r\n" HOST AUTH END, "HTTP/1.1 200",
	      "application/json", "\"limit\": \"3\"");
	CHECK(world, "DELETE /v1/pools HTTP/1.1\r\n" HOST AUTH END, "HTTP/1.1 405",
	      "Allow: POST, GET");
	CHECK(world, "HEAD /healthz HTTP/1.1\r\n" HOST END, "HTTP/1.1 200", "Content-Length: 3");
	assert_int_equal(world->changes, 0);
	CHECK(world,
	      "POST /v1/pools HTTP/1.1\r\n" HOST AUTH JSON "Content-Length: 7\r\n" END "{\"a\":1}",
	      "HTTP/1.1 200", "pool_create", "\"a\": 1");
	assert_int_equal(world->changes, 1);
	CHECK(world,
	      "POST /v1/pools HTTP/1.1\r\n" HOST AUTH JSON "Transfer-Encoding: chunked\r\n" END
	      "4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n",
	      "HTTP/1.1 200", "\"a\": 1");
	fake.call_code = ERROR_CONFLICT;
	CHECK(world, "POST /v1/pools HTTP/1.1\r\n" HOST AUTH JSON "Content-Length: 2\r\n" END "{}",
	      "HTTP/1.1 409", "CONFLICT");
	assert_int_equal(world->changes, 2);
}

static void test_keeps_alive(void **state)
{
	struct world *world = *state;

	CHECK(world,
	      "GET /healthz HTTP/1.1\r\n" HOST "\r\n"
	      "POST /v1/keys HTTP/1.1\r\n" HOST AUTH JSON "Content-Length: 2\r\n\r\n{}"
	      "GET /v1/whoami HTTP/1.1\r\n" HOST AUTH END,
	      "ok\n", "key_create", "whoami");
}

static void test_malformed(void **state)
{
	struct world *world = *state;

	CHECK(world, "GET /healthz HTTP/1.1\r\n" END, "HTTP/1.1 400"); /* no Host */
	CHECK(world, "rubbish\r\n\r\n", "");
	CHECK(world, "POST /v1/pools HTTP/1.1\r\n" HOST AUTH JSON "Content-Length: x\r\n" END,
	      "400");
	assert_int_equal(fake.calls, 0);
}

/* What could be read in two ways is refused, and nothing more is read of it: the next request may be
 * hidden in it. */
static void test_ambiguous(void **state)
{
	struct world *world = *state;
	static const struct {
		const char *headers, *complaint;
	} rows[] = {
		{AUTH "Content-Length: 2\r\nContent-Length: 40\r\n",
		 "more than one Content-Length"},
		{AUTH "Content-Length: 2\r\nContent-length: 2\r\n", "more than one Content-Length"},
		{AUTH "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
		 "both Content-Length and Transfer-Encoding"},
		{AUTH "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
		 "both Content-Length and Transfer-Encoding"},
		{AUTH "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
		 "more than one Transfer-Encoding"},
		{AUTH "Content-Length: 2\r\nauthorization: Bearer bck_x\r\n",
		 "more than one Authorization"},
		{AUTH "Content-Length: 2\r\nHost: other\r\n", "more than one Host"},
		{AUTH "Content-Length: 2\r\nContent-Type: text/plain\r\n",
		 "more than one Content-Type"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(buf) struct buf text = {0};
		struct client client;
		const char *answer;

		buf_printf(&text, "POST /v1/pools HTTP/1.1\r\n" HOST JSON "%s\r\n{}%s",
			   rows[i].headers, "GET /v1/whoami HTTP/1.1\r\n" HOST AUTH END);
		begin(&client, world, buf_text(&text), text.length);
		answer = finish(&client);
		if (!str_starts(answer, "HTTP/1.1 400") || !strstr(answer, rows[i].complaint) ||
		    !strstr(answer, "INVALID_INPUT") || strstr(answer + 1, "HTTP/1.1"))
			fail_msg("%s is answered with %s", rows[i].headers, answer);
		client_deinit(&client);
	}
	assert_int_equal(fake.calls, 0);
}

/* What is too large is refused, and how much is read of it is bounded. */
static void test_too_large(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf text = {0};
	struct client client;

	CHECK(world, "POST /v1/pools HTTP/1.1\r\n" HOST AUTH JSON "Content-Length: 1048577\r\n" END,
	      "HTTP/1.1 413", "over 1048576 bytes");
	buf_add_text(&text, "POST /v1/pools HTTP/1.1\r\n" HOST AUTH JSON
			    "Transfer-Encoding: chunked\r\n" END "100001\r\n");
	for (size_t i = 0; i < 0x100001; i++)
		buf_add_char(&text, ' ');
	buf_add_text(&text, "\r\n0\r\n\r\n");
	begin(&client, world, buf_text(&text), text.length);
	assert_non_null(strstr(finish(&client), "HTTP/1.1 413"));
	client_deinit(&client);
	buf_clear(&text);
	buf_add_text(&text, "GET /");
	for (size_t i = 0; i < ROUTER_MAX_TARGET; i++)
		buf_add_char(&text, 'a');
	buf_add_text(&text, " HTTP/1.1\r\n" HOST END);
	CHECK(world, buf_text(&text), "HTTP/1.1 414");
	assert_int_equal(fake.calls, 0);
}

static void test_many_at_once(void **state)
{
	struct world *world = *state;
	const char *text =
		"POST /v1/pools HTTP/1.1\r\n" HOST AUTH JSON "Content-Length: 2\r\n" END "{}";
	struct client clients[100];

	for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
		begin(&clients[i], world, text, strlen(text));
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
		assert_non_null(strstr(finish(&clients[i]), "HTTP/1.1 200"));
		client_deinit(&clients[i]);
	}
}

/* Whoever connects and asks nothing keeps nobody out; the one that came first goes first. */
static void test_idle_ones_make_room(void **state)
{
	static struct client idle[LISTENER_MAX_CONNECTIONS];
	struct world *world = *state;
	struct rlimit files = {0};

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	assert_true(files.rlim_max > 2 * LISTENER_MAX_CONNECTIONS + 100);
	files.rlim_cur = 2 * LISTENER_MAX_CONNECTIONS + 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
		begin(&idle[i], world, "", 0);
		while (!idle[i].conn) {
			loop_stop(world->loop);
			loop_run(world->loop); /* one turn */
		}
	}
	CHECK(world, "GET /healthz HTTP/1.1\r\n" HOST END, "200");
	finish(&idle[0]);
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
		assert_true(i == 0 || !idle[i].closed);
		if (idle[i].conn)
			net_close(idle[i].conn);
		client_deinit(&idle[i]);
	}
}

static void on_drained(void *arg)
{
	struct world *world = arg;

	world->drained = true;
	loop_stop(world->loop);
}

static int connect_to(const char *address)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
	return fd;
}

/* Who has connected is answered, even if its request is still on its way.
 * proves: ADM-7 */
static void test_drain(void **state)
{
	struct world *world = *state;
	const char *text = "GET /v1/whoami HTTP/1.1\r\n" HOST AUTH END;
	struct client idle, asking;

	begin(&idle, world, "", 0);
	begin(&asking, world, text, strlen(text));
	while (!idle.conn || !asking.conn) {
		loop_stop(world->loop);
		loop_run(world->loop); /* one turn */
	}
	listener_drain(world->listener, on_drained, world);
	assert_non_null(strstr(finish(&asking), "HTTP/1.1 200"));
	assert_non_null(strstr(buf_text(&asking.answer), "Connection: close"));
	(void)finish(&idle); /* has its moment, and is closed without waiting for a request */
	while (!world->drained)
		loop_run(world->loop);
	client_deinit(&asking);
	client_deinit(&idle);
}

/* Many have connected and asked, and the listener hasn't taken one of them yet.
 * proves: ADM-7 */
static void test_drain_hears_who_waits(void **state)
{
	static const char text[] = "GET /v1/whoami HTTP/1.1\r\n" HOST AUTH END;
	struct world *world = *state;
	int sockets[40];

	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++) {
		sockets[i] = connect_to(listener_address(world->listener));
		assert_int_equal(send(sockets[i], text, sizeof text - 1, 0), sizeof text - 1);
	}
	listener_drain(world->listener, on_drained, world);
	while (!world->drained)
		loop_run(world->loop);
	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++) {
		char answer[4096] = "";

		assert_true(recv(sockets[i], answer, sizeof answer - 1, 0) > 0);
		assert_non_null(strstr(answer, "HTTP/1.1 200"));
		close(sockets[i]);
	}
}

/* A client that goes away while its answer is being made harms nobody. */
static void test_vanishing(void **state)
{
	struct world *world = *state;
	const char *text = "GET /v1/whoami HTTP/1.1\r\n" HOST AUTH "\r\n";

	for (int i = 0; i < 50; i++) {
		struct client client;

		begin(&client, world, text, strlen(text));
		while (!client.conn) {
			loop_stop(world->loop);
			loop_run(world->loop);
		}
		net_close(client.conn);
		client_deinit(&client);
	}
	CHECK(world, "GET /healthz HTTP/1.1\r\n" HOST END, "200");
}

/* Whoever is in a hurry ends it without a drain, while a stream sleeps.
 * proves: OBS-23 */
static void test_ends_under_a_stream(void **state)
{
	struct world *world = *state;
	const char *text =
		"GET /v1/events HTTP/1.1\r\n" HOST AUTH "Accept: text/event-stream\r\n\r\n";
	struct client client;

	begin(&client, world, text, strlen(text));
	while (!strstr(buf_text(&client.answer), "retry:")) {
		loop_stop(world->loop);
		loop_run(world->loop); /* one turn */
	}
	workers_destroy(world->workers);
	listener_destroy(world->listener);
	world->workers = NULL;
	world->listener = NULL;
	assert_non_null(strstr(finish(&client), "text/event-stream"));
	client_deinit(&client);
}

/* Whoever comes back after its streams broke off has their places at the second try.
 * proves: OBS-23 */
static void test_streams_that_broke_off_make_room(void **state)
{
	struct world *world = *state;
	const char *text =
		"GET /v1/events HTTP/1.1\r\n" HOST AUTH "Accept: text/event-stream\r\n" END;
	struct client clients[EVENTS_MAX_PER_KEY], again;
	int tries = 0;

	for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
		begin(&clients[i], world, text, strlen(text));
		while (!strstr(buf_text(&clients[i].answer), "retry:")) {
			loop_stop(world->loop);
			loop_run(world->loop); /* one turn */
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
		net_close(clients[i].conn);
	for (bool opened = false; !opened; tries++) {
		begin(&again, world, text, strlen(text));
		while (!again.closed && !strstr(buf_text(&again.answer), "retry:")) {
			loop_stop(world->loop);
			loop_run(world->loop); /* one turn */
		}
		opened = !again.closed;
		if (again.conn)
			net_close(again.conn);
		client_deinit(&again);
		usleep(100000);
	}
	assert_in_range(tries, 1, 30);
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
		client_deinit(&clients[i]);
}

/* A guess that was let in where no key is needed is still one where a key is.
 * proves: ADM-5 */
static void test_guesses(void **state)
{
	struct world *world = *state;
	char text[256];
	struct error error;
	int refused = 0;

	listener_destroy(world->listener);
	expect_ok(listener_create(world->loop,
				  &(struct listener_options){.address = "127.0.0.1:0",
							     .key_rate = {1000, 2000},
							     .address_rate = {1, 2}},
				  &world->router, world->workers, on_change, world,
				  &world->listener, &error),
		  &error);
	for (int i = 0; i < 6; i++) {
		struct client client;

		snprintf(text, sizeof text,
			 "GET /%s HTTP/1.1\r\n" HOST "Authorization: Bearer guess%d\r\n" END,
			 i % 2 ? "v1/whoami" : "readyz", i / 2);
		begin(&client, world, text, strlen(text));
		refused += strstr(finish(&client), "HTTP/1.1 429") != NULL;
		client_deinit(&client);
	}
	assert_int_equal(refused, 2); /* after two guesses: the third's two calls */
	CHECK(world, "GET /v1/openapi.json HTTP/1.1\r\n" HOST END, "HTTP/1.1 429");
	CHECK(world, "GET /healthz HTTP/1.1\r\n" HOST END, "200");
}

static void test_addresses(void **state)
{
	struct world *world = *state;
	static const char *const bad[] = {
		"", ":80", "localhost", "127.0.0.1", "127.0.0.1:x", "[::1]", "localhost:80"};
	struct listener *listener = NULL;
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct listener_options options = {.address = bad[i]};

		assert_false(listener_create(world->loop, &options, &world->router, world->workers,
					     on_change, world, &listener, &error));
	}
	expect_error(listener_create(
			     world->loop, &(struct listener_options){.address = "0.0.0.0:0"},
			     &world->router, world->workers, on_change, world, &listener, &error),
		     &error, ERROR_INVALID_CONFIG, "not a loopback address");
	expect_error(
		listener_create(
			world->loop,
			&(struct listener_options){.address = listener_address(world->listener)},
			&world->router, world->workers, on_change, world, &listener, &error),
		&error, ERROR_INTERNAL, "listen on");
	assert_null(listener);
}

/* Nobody waits for a database that doesn't answer, and the answer that comes late is nobody's.
 * proves: ADM-10 */
static void test_readiness_is_told_in_time(void **state)
{
	struct world *world = *state;
	struct timespec began, ended;

	fake.ping_takes_ms = 3000;
	clock_gettime(CLOCK_MONOTONIC, &began);
	CHECK(world, "GET /readyz HTTP/1.1\r\n" HOST END, "HTTP/1.1 503", "Retry-After: 1",
	      "the database didn't answer within 1500 ms");
	clock_gettime(CLOCK_MONOTONIC, &ended);
	assert_in_range(ended.tv_sec - began.tv_sec, 1, 2);
	CHECK(world, "GET /v1/whoami HTTP/1.1\r\n" HOST AUTH END, "HTTP/1.1 200"); /* the other */
	fake.ping_takes_ms = 0;
	CHECK(world, "GET /readyz HTTP/1.1\r\n" HOST END, "HTTP/1.1 200");
}

/* The list's last word counts, and only when a proxy that is trusted brought it.
 * proves: ADM-5 */
static void test_guesses_through_a_proxy(void **state)
{
	struct world *world = *state;
	struct proxies proxies = {0};
	char text[256];
	struct error error;
	int refused = 0;

	listener_destroy(world->listener);
	expect_ok(proxies_add(&proxies, "127.0.0.0/8", &error), &error);
	expect_ok(listener_create(world->loop,
				  &(struct listener_options){.address = "127.0.0.1:0",
							     .key_rate = {1000, 2000},
							     .address_rate = {1, 2},
							     .proxies = &proxies},
				  &world->router, world->workers, on_change, world,
				  &world->listener, &error),
		  &error);
	for (int i = 0; i < 8; i++) {
		struct client client;

		/* One caller that names itself anew each time, and between its guesses others. */
		snprintf(text, sizeof text,
			 "GET /v1/whoami HTTP/1.1\r\n" HOST "X-Forwarded-For: 198.51.100.%d\r\n"
			 "X-Forwarded-For: 203.0.113.%d\r\nAuthorization: Bearer guess%d\r\n" END,
			 i, i % 2 ? 100 + i : 1, i);
		begin(&client, world, text, strlen(text));
		refused += strstr(finish(&client), "HTTP/1.1 429") != NULL;
		client_deinit(&client);
	}
	assert_int_equal(refused, 2); /* of four guesses by one */
	/* Whoever asks through a proxy isn't on this machine. */
	CHECK(world, "GET /metrics HTTP/1.1\r\n" HOST END, "HTTP/1.1 401");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_keeps_alive, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_malformed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ambiguous, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_large, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_at_once, set_up_threads, tear_down),
		cmocka_unit_test_setup_teardown(test_idle_ones_make_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_drain, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_drain_hears_who_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_vanishing, set_up_threads, tear_down),
		cmocka_unit_test_setup_teardown(test_ends_under_a_stream, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_streams_that_broke_off_make_room, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_readiness_is_told_in_time, set_up_threads,
						tear_down),
		cmocka_unit_test_setup_teardown(test_guesses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_guesses_through_a_proxy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_addresses, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
