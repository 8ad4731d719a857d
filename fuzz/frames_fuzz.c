/*
 * A server's session under a client's bytes. The first byte says in how large pieces they come; the
 * preface and SETTINGS are there already. The application answers, finishes and waits as its kind
 * does.
 */
#include "rpc/core/call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct session_method methods[] = {
	{"/t/Unary", true, 4096},
	{"/t/Stream", false, 4096},
};

static void handle(struct session_event *event)
{
	switch (event->kind) {
	case SESSION_UP:
	case SESSION_DRAINED:
		break;
	case SESSION_START:
		call_add_metadata(event->call, true, "x-bin", "\0", 1);
		break;
	case SESSION_MESSAGE:
		call_send(event->call, event->message.data, event->message.length);
		if (call_method(event->call) == &methods[0])
			call_finish(event->call, RPC_OK, "");
		else if (event->message.length == 1)
			call_cancel(event->call);
		break;
	case SESSION_HALF_CLOSE:
		call_finish(event->call, RPC_ABORTED, "done");
		break;
	case SESSION_END:
		call_destroy(event->call);
		break;
	}
}

static bool turn(struct session *session, struct mono now)
{
	struct session_event event;
	struct error error;
	CLEANUP(buf) struct buf out = {0};
	while (session_next(session, &event)) {
		handle(&event);
		buf_deinit(&event.message);
	}
	if (!session_send(session, 1 << 20, now, &out, &error) || session_is_over(session))
		return false;
	return session_tick(session, now, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
	const struct session_options options = {
		.server = true, .methods = methods, .methods_count = ARRAY_SIZE(methods)};
	struct mono now = {0};
	struct error error;
	if (size == 0)
		return 0;
	size_t piece = data[0] ? data[0] : size;
	struct session *session = session_create(&options, now);
	bool going = session_receive(session, hello, sizeof hello, now, &error);
	for (size_t at = 1; at < size && going; at += piece) {
		size_t length = size - at < piece ? size - at : piece;
		now.ms += 100;
		going = session_receive(session, data + at, length, now, &error);
		going = turn(session, now) && going;
		if (data[at] == 0xfe)
			session_drain(session, now);
	}
	session_close(session, RPC_CANCELLED, "over");
	turn(session, now);
	session_destroy(session);
	return 0;
}
