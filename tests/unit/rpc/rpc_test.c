/* The client and the server of one loop, over real unix sockets. */
#include "rpc/rpc.h"

#include "lib/test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
	struct loop *loop;
	struct loop_timer *guard, *later;
	struct rpc_server *server;
	struct rpc_client *client;
	char folder[64], socket[128], address[160];
	unsigned ups, downs, done, server_done, messages, drains;
	struct error down;
	enum rpc_code code, server_code;
	char text[256];
	struct buf answer;
	uint64_t id;
	struct rpc_call *held; /* server: of /t/Hold */
	bool drained;
	unsigned wanted; /* stop at so many on_done */
};

static void on_guard(void *arg)
{
	(void)arg;
	fail_msg("nothing happened for %d s", TEST_PATIENCE_MS / 1000);
}

/* --- the server's methods --- */

static void echo_message(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	struct world *world = arg;
	world->id = rpc_call_id(call);
	assert_int_equal(rpc_peer_uid(call), getuid());
	size_t size;
	const char *value = rpc_metadata(call, "x-echo-bin", &size);
	if (value)
		rpc_add_metadata(call, true, "x-echo-bin", value, size);
	rpc_add_metadata(call, false, "x-first", "one", 3);
	rpc_send(call, data, length);
	rpc_finish(call, RPC_OK, NULL);
}

static void chat_message(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)arg;
	rpc_send(call, data, length);
}

static void chat_half_close(struct rpc_call *call, void *arg)
{
	(void)arg;
	rpc_finish(call, RPC_OK, "bye");
}

static void refuse_message(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)arg, (void)data, (void)length;
	struct error error;
	error_set(&error, ERROR_NOT_FOUND, "no pool 'größe'");
	error_hint(&error, "List them.");
	rpc_finish_error(call, &error);
}

static void hold_start(struct rpc_call *call, void *arg)
{
	struct world *world = arg;
	world->held = call;
	rpc_call_set_data(call, world);
}

static void hold_message(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)arg, (void)data, (void)length;
	rpc_send(call, "here", 4);
}

static void hold_done(struct rpc_call *call, void *arg, const struct rpc_status *status)
{
	struct world *world = arg;
	assert_ptr_equal(rpc_call_data(call), world);
	world->held = NULL;
	world->server_done++;
	world->server_code = status->code;
}

static const struct rpc_method methods[] = {
	{.path = "/t/Echo", .unary = true, .on_message = echo_message},
	{.path = "/t/Chat", .on_message = chat_message, .on_half_close = chat_half_close},
	{.path = "/t/Refuse", .unary = true, .on_message = refuse_message},
	{.path = "/t/Small", .unary = true, .max_message = 10, .on_message = echo_message},
	{.path = "/t/Hold",
	 .on_start = hold_start,
	 .on_message = hold_message,
	 .on_done = hold_done},
};

/* --- the client's side --- */

static void on_up(void *arg)
{
	struct world *world = arg;
	world->ups++;
}

static void on_down(void *arg, const struct error *error)
{
	struct world *world = arg;
	world->downs++;
	world->down = *error;
	loop_stop(world->loop);
}

static const struct rpc_client_handlers client_handlers = {on_up, on_down};

static void count_done(struct world *world, const struct rpc_status *status)
{
	world->code = status->code;
	str_copy(world->text, sizeof world->text, status->message);
	if (++world->done == world->wanted)
		loop_stop(world->loop);
}

static void on_unary(void *arg, const struct rpc_status *status, const uint8_t *data, size_t length)
{
	struct world *world = arg;
	buf_clear(&world->answer);
	if (status->code == RPC_OK)
		buf_add(&world->answer, data, length);
	else
		assert_null(data);
	count_done(world, status);
}

static void on_message(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)call;
	struct world *world = arg;
	world->messages++;
	buf_clear(&world->answer);
	buf_add(&world->answer, data, length);
}

static void on_drain(struct rpc_call *call, void *arg)
{
	(void)call;
	struct world *world = arg;
	world->drains++;
}

static void on_done(struct rpc_call *call, void *arg, const struct rpc_status *status)
{
	(void)call;
	count_done(arg, status);
}

static const struct rpc_call_handlers call_handlers = {on_message, on_drain, on_done};

/* --- set up, take down --- */

static int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	struct error error;
	world->loop = loop_create();
	world->guard = loop_timer_create(world->loop, on_guard, world);
	loop_timer_start(world->guard, TEST_PATIENCE_MS);
	world->wanted = 1;
	strcpy(world->folder, "/tmp/rpc-test-XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	snprintf(world->socket, sizeof world->socket, "%s/s", world->folder);
	snprintf(world->address, sizeof world->address, "unix:%s", world->socket);
	world->server = rpc_server_create(world->loop, methods, ARRAY_SIZE(methods), world);
	expect_ok(rpc_server_listen_unix(world->server, world->socket, 0600, &error), &error);
	world->client =
		rpc_client_create(world->loop, world->address, NULL, 0, &client_handlers, world);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	rpc_client_destroy(world->client);
	rpc_server_destroy(world->server);
	loop_timer_destroy(world->guard);
	loop_timer_destroy(world->later);
	loop_run(world->loop);
	loop_destroy(world->loop);
	buf_deinit(&world->answer);
	unlink(world->socket);
	assert_int_equal(rmdir(world->folder), 0);
	free(world);
	return 0;
}

static void after(struct world *world, int64_t ms, loop_fn *fn)
{
	loop_timer_destroy(world->later);
	world->later = loop_timer_create(world->loop, fn, world);
	loop_timer_start(world->later, ms);
}

static void run_more(struct world *world, unsigned done)
{
	world->wanted = done;
	loop_run(world->loop);
}

/* --- tests --- */

static void test_unary(void **state)
{
	struct world *world = *state;
	struct stat status;
	assert_int_equal(stat(world->socket, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	rpc_unary(world->client, "/t/Echo", 5000, 0, "hello", 5, on_unary, world);
	assert_int_equal(world->done, 0); /* nothing from inside the call */
	loop_run(world->loop);
	assert_int_equal(world->code, RPC_OK);
	assert_string_equal(buf_text(&world->answer), "hello");
	assert_int_equal(world->ups, 1);
	assert_true(rpc_client_is_up(world->client));

	uint64_t first = world->id;
	rpc_unary(world->client, "/t/Echo", 0, 0, "", 0, on_unary, world);
	run_more(world, 2);
	assert_int_equal(world->code, RPC_OK);
	assert_int_equal(world->answer.length, 0);
	assert_int_not_equal(world->id, first);
}

static void test_large_message_and_limits(void **state)
{
	struct world *world = *state;
	CLEANUP(free) uint8_t *large = mem_alloc(RPC_MAX_MESSAGE_DEFAULT + 1);
	memset(large, 'x', RPC_MAX_MESSAGE_DEFAULT + 1);
	rpc_unary(world->client, "/t/Echo", 0, 0, large, RPC_MAX_MESSAGE_DEFAULT, on_unary, world);
	loop_run(world->loop);
	assert_int_equal(world->code, RPC_OK);
	assert_int_equal(world->answer.length, RPC_MAX_MESSAGE_DEFAULT);
	assert_memory_equal(world->answer.data, large, RPC_MAX_MESSAGE_DEFAULT);

	rpc_unary(world->client, "/t/Echo", 0, 0, large, RPC_MAX_MESSAGE_DEFAULT + 1, on_unary,
		  world);
	run_more(world, 2);
	assert_int_equal(world->code, RPC_RESOURCE_EXHAUSTED);

	rpc_unary(world->client, "/t/Small", 0, 0, large, 10, on_unary, world);
	run_more(world, 3);
	assert_int_equal(world->code, RPC_OK);
	rpc_unary(world->client, "/t/Small", 0, 0, large, 11, on_unary, world);
	run_more(world, 4);
	assert_int_equal(world->code, RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(world->text, "a message of 11 bytes is larger than the 10 allowed");

	/* The client's own limit, on what it takes. */
	rpc_unary(world->client, "/t/Echo", 0, 10, large, 11, on_unary, world);
	run_more(world, 5);
	assert_int_equal(world->code, RPC_RESOURCE_EXHAUSTED);
}

static void test_error_and_unknown_method(void **state)
{
	struct world *world = *state;
	struct error error;
	rpc_unary(world->client, "/t/Refuse", 0, 0, "", 0, on_unary, world);
	loop_run(world->loop);
	assert_int_equal(world->code, RPC_NOT_FOUND);
	assert_string_equal(world->text, "no pool 'größe'. List them.");
	struct rpc_status status = {world->code, world->text};
	assert_false(rpc_status_to_error(&status, &error));
	assert_int_equal(error.code, ERROR_NOT_FOUND);
	assert_string_equal(error.what, world->text);

	rpc_unary(world->client, "/t/Absent", 0, 0, "", 0, on_unary, world);
	run_more(world, 2);
	assert_int_equal(world->code, RPC_UNIMPLEMENTED);
	assert_string_equal(world->text, "unknown method '/t/Absent'");
}

static void metadata_done(struct rpc_call *call, void *arg, const struct rpc_status *status)
{
	size_t length = 0;
	const char *value = rpc_metadata(call, "x-echo-bin", &length);
	assert_non_null(value);
	assert_int_equal(length, 4);
	assert_memory_equal(value, "\0\xff\n,", 4);
	value = rpc_metadata(call, "x-first", &length);
	assert_string_equal(value, "one");
	assert_null(rpc_metadata(call, "x-absent", &length));
	count_done(arg, status);
}

static void test_metadata(void **state)
{
	struct world *world = *state;
	static const struct rpc_call_handlers handlers = {on_message, NULL, metadata_done};
	struct rpc_call *call = rpc_call_start(world->client, "/t/Echo", 0, 0, &handlers, world);
	rpc_send(call, "x", 1);
	rpc_half_close(call);
	rpc_add_metadata(call, false, "x-echo-bin", "\0\xff\n,", 4); /* same turn: in time */
	loop_run(world->loop);
	assert_int_equal(world->code, RPC_OK);
}

static void test_stream(void **state)
{
	struct world *world = *state;
	struct rpc_call *call =
		rpc_call_start(world->client, "/t/Chat", 0, 0, &call_handlers, world);
	for (unsigned i = 0; i < 100; i++)
		rpc_send(call, "ping", 4);
	assert_int_equal(rpc_queued(call), 100 * 9);
	rpc_half_close(call);
	loop_run(world->loop);
	assert_int_equal(world->code, RPC_OK);
	assert_string_equal(world->text, "bye");
	assert_int_equal(world->messages, 100);
}

static void stop(void *arg)
{
	struct world *world = arg;
	loop_stop(world->loop);
}

/* Runs the loop until `*count` is `wanted`. */
static void run_until(struct world *world, const unsigned *count, unsigned wanted)
{
	while (*count < wanted) {
		after(world, 2, stop);
		loop_run(world->loop);
	}
	assert_int_equal(*count, wanted);
}

static struct rpc_call *hold(struct world *world, int64_t deadline_ms)
{
	struct rpc_call *call =
		rpc_call_start(world->client, "/t/Hold", deadline_ms, 0, &call_handlers, world);
	rpc_send(call, "", 0);
	run_until(world, &world->messages, world->messages + 1); /* the server has it */
	return call;
}

static void test_deadline(void **state)
{
	struct world *world = *state;
	hold(world, 50);
	run_until(world, &world->done, 1);
	assert_int_equal(world->code, RPC_DEADLINE_EXCEEDED);
	/* The server's own timer, or our reset, ends it there as well. */
	run_until(world, &world->server_done, 1);
	assert_true(world->server_code == RPC_DEADLINE_EXCEEDED ||
		    world->server_code == RPC_CANCELLED);
}

static void test_cancel(void **state)
{
	struct world *world = *state;
	rpc_cancel(hold(world, 0));
	assert_int_equal(world->done, 0); /* not from inside */
	run_until(world, &world->done, 1);
	assert_int_equal(world->code, RPC_CANCELLED);
	run_until(world, &world->server_done, 1);
	assert_int_equal(world->server_code, RPC_CANCELLED);
}

static void test_server_goes_on_its_own(void **state)
{
	struct world *world = *state;
	hold(world, 0);
	rpc_send(world->held, "unasked", 7);
	run_until(world, &world->messages, 2);
	assert_string_equal(buf_text(&world->answer), "unasked");
	rpc_finish(world->held, RPC_ABORTED, "that is all");
	run_until(world, &world->done, 1);
	assert_int_equal(world->code, RPC_ABORTED);
	assert_string_equal(world->text, "that is all");
	run_until(world, &world->server_done, 1);
	assert_int_equal(world->server_code, RPC_ABORTED);
}

/* --- ends of connections --- */

static void test_client_destroyed_with_calls(void **state)
{
	struct world *world = *state;
	hold(world, 0);
	rpc_unary(world->client, "/t/Echo", 0, 0, "x", 1, on_unary, world); /* not sent yet */
	rpc_client_destroy(TAKE(world->client));
	assert_int_equal(world->done, 2); /* before destroy returned */
	assert_int_equal(world->code, RPC_UNAVAILABLE);
	assert_int_equal(world->downs, 0);
	run_until(world, &world->server_done, 1);
	assert_int_equal(world->server_code, RPC_CANCELLED);
}

static void test_server_destroyed_with_calls(void **state)
{
	struct world *world = *state;
	hold(world, 0);
	rpc_server_destroy(TAKE(world->server));
	assert_int_equal(world->server_done, 1);
	assert_int_equal(world->server_code, RPC_CANCELLED);
	run_until(world, &world->downs, 1);
	assert_int_equal(world->done, 1); /* calls end before the connection is told down */
	assert_int_equal(world->code, RPC_UNAVAILABLE);
	assert_non_null(strstr(world->down.what, world->address));
	assert_false(rpc_client_is_up(world->client));

	/* A call on what is down is a call all the same. */
	rpc_unary(world->client, "/t/Echo", 0, 0, "x", 1, on_unary, world);
	assert_int_equal(world->done, 1);
	run_until(world, &world->done, 2);
	assert_int_equal(world->code, RPC_UNAVAILABLE);
	assert_int_equal(world->downs, 1);
}

static void destroy_client_on_message(struct rpc_call *call, void *arg, const uint8_t *data,
				      size_t length)
{
	(void)call;
	struct world *world = arg;
	world->messages++;
	rpc_client_destroy(TAKE(world->client));
	assert_int_equal(world->done, 1);
	assert_int_equal(length, 4);
	assert_memory_equal(data, "here", 4); /* what is being told stays to be read */
}

static void test_client_destroyed_within_its_callback(void **state)
{
	struct world *world = *state;
	static const struct rpc_call_handlers handlers = {destroy_client_on_message, NULL, on_done};
	struct rpc_call *call = rpc_call_start(world->client, "/t/Hold", 0, 0, &handlers, world);
	rpc_send(call, "1", 1);
	rpc_send(call, "2", 1);
	run_until(world, &world->messages, 1);
	run_until(world, &world->server_done, 1);
}

static void destroy_client_on_done(struct rpc_call *call, void *arg,
				   const struct rpc_status *status)
{
	struct world *world = arg;
	rpc_client_destroy(TAKE(world->client));
	on_done(call, arg, status);
}

static void test_client_destroyed_within_on_done(void **state)
{
	struct world *world = *state;
	static const struct rpc_call_handlers handlers = {on_message, NULL, destroy_client_on_done};
	hold(world, 0);
	struct rpc_call *call = rpc_call_start(world->client, "/t/Chat", 0, 0, &handlers, world);
	rpc_half_close(call);
	run_until(world, &world->done, 2);
}

static void test_nobody_there(void **state)
{
	struct world *world = *state;
	rpc_client_destroy(world->client);
	rpc_server_destroy(TAKE(world->server));
	world->client =
		rpc_client_create(world->loop, world->address, NULL, 0, &client_handlers, world);
	rpc_unary(world->client, "/t/Echo", 0, 0, "x", 1, on_unary, world);
	assert_int_equal(world->done + world->downs, 0);
	run_until(world, &world->downs, 1);
	assert_int_equal(world->done, 1);
	assert_int_equal(world->code, RPC_UNAVAILABLE);
	assert_int_equal(world->down.code, ERROR_UNAVAILABLE);
	assert_int_equal(world->ups, 0);
}

static void test_destroyed_while_it_connects(void **state)
{
	struct world *world = *state;
	rpc_unary(world->client, "/t/Echo", 0, 0, "x", 1, on_unary, world);
	rpc_client_destroy(TAKE(world->client));
	assert_int_equal(world->done, 1);
	after(world, 20, stop);
	loop_run(world->loop);
	assert_int_equal(world->ups + world->downs, 0);
}

static void on_drained(void *arg)
{
	struct world *world = arg;
	world->drained = true;
	rpc_server_destroy(TAKE(world->server)); /* legal right here */
	loop_stop(world->loop);
}

static void test_drain(void **state)
{
	struct world *world = *state;
	hold(world, 0);
	rpc_server_drain(world->server, on_drained, world);
	after(world, 50, stop);
	loop_run(world->loop);
	assert_false(world->drained);
	rpc_unary(world->client, "/t/Echo", 0, 0, "x", 1, on_unary, world);
	run_until(world, &world->done, 1);
	assert_int_equal(world->code, RPC_UNAVAILABLE);
	rpc_finish(world->held, RPC_OK, NULL);
	run_until(world, &world->done, 2);
	assert_int_equal(world->code, RPC_OK);
	run_until(world, &world->downs, 1);
	while (!world->drained)
		loop_run(world->loop);
	assert_int_not_equal(access(world->socket, F_OK), 0);
}

static void test_drain_of_an_idle_server(void **state)
{
	struct world *world = *state;
	rpc_server_drain(world->server, on_drained, world);
	assert_false(world->drained); /* from the loop */
	while (!world->drained)
		loop_run(world->loop);
}

/* --- bounds --- */

static void test_connection_bound(void **state)
{
	struct world *world = *state;
	rpc_server_limit_connections(world->server, 2);
	run_until(world, &world->ups, 1);
	struct rpc_client *second =
		rpc_client_create(world->loop, world->address, NULL, 0, &client_handlers, world);
	run_until(world, &world->ups, 2);
	struct rpc_client *third =
		rpc_client_create(world->loop, world->address, NULL, 0, &client_handlers, world);
	run_until(world, &world->downs, 1);
	assert_int_equal(world->ups, 2);
	rpc_client_destroy(third);
	rpc_client_destroy(second);
	after(world, 20, stop);
	loop_run(world->loop);
	third = rpc_client_create(world->loop, world->address, NULL, 0, &client_handlers, world);
	run_until(world, &world->ups, 3); /* there is room again */
	rpc_client_destroy(third);
}

static void read_slowly(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)call, (void)data;
	struct world *world = arg;
	world->messages++;
	assert_int_equal(length, 100000);
}

/* 100 MB each way over one stream, never more in memory than the windows and queues allow. */
static void test_many_bytes(void **state)
{
	struct world *world = *state;
	static const struct rpc_call_handlers handlers = {read_slowly, on_drain, on_done};
	CLEANUP(free) uint8_t *piece = mem_alloc(100000);
	struct rpc_call *call = rpc_call_start(world->client, "/t/Chat", 0, 0, &handlers, world);
	for (unsigned sent = 0; sent < 1000; sent += 10) {
		for (unsigned i = 0; i < 10; i++)
			rpc_send(call, piece, 100000);
		run_until(world, &world->drains, sent / 10 + 1);
		assert_int_equal(rpc_queued(call), 0);
	}
	rpc_half_close(call);
	run_until(world, &world->done, 1);
	assert_int_equal(world->code, RPC_OK);
	assert_int_equal(world->messages, 1000);
}

static void test_many_calls_at_once(void **state)
{
	struct world *world = *state;
	for (unsigned i = 0; i < 1000; i++)
		rpc_unary(world->client, "/t/Echo", 0, 0, "x", 1, on_unary, world);
	run_until(world, &world->done, 1000);
	assert_int_equal(world->code, RPC_OK);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_unary),
		TEST(test_large_message_and_limits),
		TEST(test_error_and_unknown_method),
		TEST(test_metadata),
		TEST(test_stream),
		TEST(test_deadline),
		TEST(test_cancel),
		TEST(test_server_goes_on_its_own),
		TEST(test_client_destroyed_with_calls),
		TEST(test_server_destroyed_with_calls),
		TEST(test_client_destroyed_within_its_callback),
		TEST(test_client_destroyed_within_on_done),
		TEST(test_nobody_there),
		TEST(test_destroyed_while_it_connects),
		TEST(test_drain),
		TEST(test_drain_of_an_idle_server),
		TEST(test_connection_bound),
		TEST(test_many_bytes),
		TEST(test_many_calls_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
