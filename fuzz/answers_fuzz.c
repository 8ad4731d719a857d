/*
 * A client's session under a server's bytes, with a unary call and a stream under way. The first
 * byte says in how large pieces they come.
 */
#include "rpc/core/call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool turn(struct session *session, struct mono now)
{
	struct session_event event;
	struct error error;
	CLEANUP(buf) struct buf out = {0};
	while (session_next(session, &event)) {
		if (event.kind == SESSION_MESSAGE && event.message.length == 1)
			call_cancel(event.call);
		else if (event.kind == SESSION_MESSAGE)
			call_send(event.call, event.message.data, event.message.length);
		if (event.kind == SESSION_END)
			call_destroy(event.call);
		buf_deinit(&event.message);
	}
	if (!session_send(session, 1 << 20, now, &out, &error) || session_is_over(session))
		return false;
	return session_tick(session, now, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t settings[9] = {0, 0, 0, 4};
	const struct session_options options = {
		.scheme = "http", .authority = "localhost", .keepalive_ms = 1000};
	struct mono now = {0};
	struct error error;
	if (size == 0)
		return 0;
	size_t piece = data[0] ? data[0] : size;
	struct session *session = session_create(&options, now);
	struct call *unary = session_request(session, "/t/Unary", (struct mono){5000}, 4096);
	struct call *stream = session_request(session, "/t/Stream", (struct mono){INT64_MAX}, 4096);
	call_send(unary, "question", 8);
	call_half_close(unary);
	call_send(stream, "first", 5);
	bool going = session_receive(session, settings, sizeof settings, now, &error) &&
		     turn(session, now);
	for (size_t at = 1; at < size && going; at += piece) {
		size_t length = size - at < piece ? size - at : piece;
		now.ms += 100;
		going = session_receive(session, data + at, length, now, &error);
		going = turn(session, now) && going;
	}
	session_close(session, RPC_UNAVAILABLE, "over");
	turn(session, now);
	session_destroy(session);
	return 0;
}
