#include "pair.h"

const struct session_method pair_methods[3] = {
	{PAIR_UNARY, true, (size_t)4 << 20},
	{PAIR_STREAM, false, (size_t)4 << 20},
	{PAIR_SMALL, true, 8},
};

struct pair *pair_create(void)
{
	struct pair *pair = mem_alloc(sizeof *pair);
	const struct session_options client = {.scheme = "http", .authority = "localhost"};
	const struct session_options server = {
		.server = true, .methods = pair_methods, .methods_count = ARRAY_SIZE(pair_methods)};
	pair->now = (struct mono){1000000};
	pair->piece = SIZE_MAX;
	pair->client = session_create(&client, pair->now);
	pair->server = session_create(&server, pair->now);
	pair_move(pair);
	pair_expect(pair->client, SESSION_UP);
	pair_expect(pair->server, SESSION_UP);
	return pair;
}

void pair_destroy(struct pair *pair)
{
	session_destroy(pair->client);
	session_destroy(pair->server);
	free(pair);
}

static bool move(struct pair *pair, struct session *from, struct session *to)
{
	struct error error;
	CLEANUP(buf) struct buf bytes = {0};
	expect_ok(session_send(from, SIZE_MAX, pair->now, &bytes, &error), &error);
	for (size_t at = 0; at < bytes.length;) {
		size_t length = bytes.length - at < pair->piece ? bytes.length - at : pair->piece;
		expect_ok(session_receive(to, bytes.data + at, length, pair->now, &error), &error);
		at += length;
	}
	return bytes.length > 0;
}

void pair_move(struct pair *pair)
{
	bool up, down;
	do {
		up = move(pair, pair->client, pair->server);
		down = move(pair, pair->server, pair->client);
	} while (up || down);
}

void pair_move_up(struct pair *pair)
{
	move(pair, pair->client, pair->server);
}

void pair_wait(struct pair *pair, int64_t ms)
{
	struct error error;
	pair->now = mono_after(pair->now, ms);
	expect_ok(session_tick(pair->client, pair->now, &error), &error);
	expect_ok(session_tick(pair->server, pair->now, &error), &error);
}

struct call *pair_request(struct pair *pair, const char *path)
{
	return session_request(pair->client, path, (struct mono){INT64_MAX}, (size_t)4 << 20);
}

struct session_event pair_expect(struct session *session, enum session_event_kind kind)
{
	struct session_event event;
	if (!session_next(session, &event))
		fail_msg("no event where kind %d was due", (int)kind);
	assert_int_equal(event.kind, kind);
	return event;
}

void pair_expect_message(struct session *session, const char *text)
{
	struct session_event event = pair_expect(session, SESSION_MESSAGE);
	assert_string_equal(buf_text(&event.message), text);
	assert_int_equal(event.message.length, strlen(text));
	buf_deinit(&event.message);
}

void pair_expect_end(struct session *session, enum rpc_code code, const char *text)
{
	struct session_event event = pair_expect(session, SESSION_END);
	assert_string_equal(call_text(event.call), text);
	assert_string_equal(rpc_code_name(call_code(event.call)), rpc_code_name(code));
	call_destroy(event.call);
}

void pair_expect_none(struct session *session)
{
	struct session_event event;
	if (session_next(session, &event))
		fail_msg("an event of kind %d where none was due", (int)event.kind);
}

void pair_frame(struct buf *out, uint8_t type, uint8_t flags, uint32_t stream, const void *data,
		size_t length)
{
	const uint8_t header[] = {
		(uint8_t)(length >> 16),
		(uint8_t)(length >> 8),
		(uint8_t)length,
		type,
		flags,
		(uint8_t)(stream >> 24),
		(uint8_t)(stream >> 16),
		(uint8_t)(stream >> 8),
		(uint8_t)stream,
	};
	buf_add(out, header, sizeof header);
	if (length)
		buf_add(out, data, length);
}

void pair_field(struct buf *block, const char *name, const char *value)
{
	assert_true(strlen(name) < 127 && strlen(value) < 127);
	buf_add_char(block, 0);
	buf_add_char(block, (char)strlen(name));
	buf_add_text(block, name);
	buf_add_char(block, (char)strlen(value));
	buf_add_text(block, value);
}
