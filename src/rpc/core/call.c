#include "rpc/core/session_internal.h"

#include "base/arena.h"
#include "rpc/core/timeout.h"

#include <stdio.h>

/* A buffer that a large message made large is given back when it is empty. */
#define OUT_KEEP ((size_t)64 << 10)

/* --- life --- */

struct call *call_create(struct session *session, int32_t stream)
{
	struct call *call = mem_alloc(sizeof *call);
	call->session = session;
	call->stream = stream;
	call->deadline = NEVER;
	*vec_push(&session->calls) = call;
	return call;
}

void call_destroy(struct call *call)
{
	if (!call)
		return;
	assert(!call->session);
	metadata_deinit(&call->received);
	metadata_deinit(&call->initial);
	metadata_deinit(&call->trailing);
	frame_deinit(&call->reader);
	buf_deinit(&call->held);
	buf_deinit(&call->out);
	buf_deinit(&call->text);
	free(call->path);
	free(call);
}

static void set_status(struct call *call, enum rpc_code code, const char *text)
{
	/* `text` may be the call's own. */
	struct buf copy = {0};
	buf_add_text(&copy, text);
	buf_deinit(&call->text);
	call->text = copy;
	call->code = code;
	call->has_status = true;
}

/* Keeps the session's sum of unfinished messages. */
static void count_input(struct call *call)
{
	size_t held = call->reader.message.length + call->held.length;
	call->session->buffered += held - call->counted;
	call->counted = held;
}

static void drop_input(struct call *call)
{
	frame_deinit(&call->reader);
	buf_deinit(&call->held);
	count_input(call);
}

void call_end(struct call *call, enum rpc_code code, const char *text)
{
	struct session *session = call->session;
	session_forget(session, call);
	if (call->waiting)
		session->unopened--;
	drop_input(call);
	set_status(call, code, text);
	call->session = NULL;
	if (call->announced)
		session_event(session, SESSION_END, call);
	else
		call_destroy(call);
}

void call_reset(struct call *call, uint32_t http2_error)
{
	if (!call->stream || call->reset)
		return;
	call->reset = true;
	session_checked(call->session,
			nghttp2_submit_rst_stream(call->session->h2, NGHTTP2_FLAG_NONE,
						  call->stream, http2_error));
}

/* --- headers to send --- */

struct headers {
	VEC(nghttp2_nv) fields;
	struct arena arena;
};

static void headers_cleanup(struct headers *headers)
{
	vec_deinit(&headers->fields);
	arena_deinit(&headers->arena);
}

/* nghttp2 copies both; it only wants them writable by type. */
static void add_field(struct headers *headers, const char *name, const char *value)
{
	nghttp2_nv *field = vec_push(&headers->fields);
	field->name = (uint8_t *)(uintptr_t)name;
	field->namelen = strlen(name);
	field->value = (uint8_t *)(uintptr_t)value;
	field->valuelen = strlen(value);
}

static void add_metadata(struct headers *headers, const struct metadata *metadata)
{
	CLEANUP(buf) struct buf value = {0};
	for (size_t i = 0; i < metadata->count; i++) {
		buf_clear(&value);
		metadata_value_encode(&value, &metadata->items[i]);
		add_field(headers, metadata->items[i].name,
			  arena_strdup(&headers->arena, buf_text(&value)));
	}
}

static void add_status(struct headers *headers, struct call *call)
{
	add_field(headers, "grpc-status", arena_printf(&headers->arena, "%d", (int)call->code));
	if (call->text.length) {
		CLEANUP(buf) struct buf text = {0};
		status_message_encode(&text, buf_text(&call->text));
		add_field(headers, "grpc-message", arena_strdup(&headers->arena, buf_text(&text)));
	}
	add_metadata(headers, &call->trailing);
}

static bool open_answer(struct call *call)
{
	CLEANUP(headers) struct headers headers = {0};
	bool only_trailers = call->out_closed && call->out.length == 0;
	nghttp2_data_provider body = h2_body();

	add_field(&headers, ":status", "200");
	add_field(&headers, "content-type", "application/grpc");
	if (call->refuse_compression)
		add_field(&headers, "grpc-accept-encoding", "identity");
	add_metadata(&headers, &call->initial);
	if (only_trailers) {
		add_status(&headers, call);
		call->out_ended = true;
	}
	return session_checked(call->session,
			       nghttp2_submit_response(call->session->h2, call->stream,
						       headers.fields.items, headers.fields.count,
						       only_trailers ? NULL : &body));
}

static bool open_request(struct call *call)
{
	struct session *session = call->session;
	CLEANUP(headers) struct headers headers = {0};
	nghttp2_data_provider body = h2_body();
	char timeout[TIMEOUT_SIZE];

	add_field(&headers, ":method", "POST");
	add_field(&headers, ":scheme", session->scheme);
	add_field(&headers, ":path", call->path);
	add_field(&headers, ":authority", session->authority);
	add_field(&headers, "te", "trailers");
	add_field(&headers, "content-type", "application/grpc");
	add_field(&headers, "user-agent", "better-compute/" BC_VERSION);
	if (call->deadline.ms != INT64_MAX) {
		timeout_format(timeout, mono_until(session->now, call->deadline));
		add_field(&headers, "grpc-timeout", timeout);
	}
	add_metadata(&headers, &call->initial);
	int32_t stream = nghttp2_submit_request(session->h2, NULL, headers.fields.items,
						headers.fields.count, &body, NULL);
	if (!session_checked(session, stream))
		return false;
	call->stream = stream;
	return true;
}

void call_open(struct call *call)
{
	struct session *session = call->session;
	call->waiting = false;
	call->opened = true;
	session->unopened--;
	if (session->server ? !open_answer(call) : !open_request(call))
		call_end(call, RPC_UNAVAILABLE, "no stream can be opened on this connection");
}

static void submit_trailers(struct call *call)
{
	CLEANUP(headers) struct headers headers = {0};
	add_status(&headers, call);
	call->out_ended = true;
	session_checked(call->session,
			nghttp2_submit_trailer(call->session->h2, call->stream,
					       headers.fields.items, headers.fields.count));
}

void call_refuse_http(struct call *call)
{
	CLEANUP(headers) struct headers headers = {0};
	add_field(&headers, ":status", arena_printf(&headers.arena, "%d", call->refuse_http));
	call->opened = call->out_closed = call->out_ended = true;
	session_checked(call->session,
			nghttp2_submit_response(call->session->h2, call->stream,
						headers.fields.items, headers.fields.count, NULL));
}

/* --- going out --- */

/* There is something new to send. */
static void kick(struct call *call)
{
	if (call->opened) {
		/* Not an error when DATA isn't waiting for us. */
		session_checked(call->session,
				nghttp2_session_resume_data(call->session->h2, call->stream));
	} else if (!call->waiting) {
		call->waiting = true;
		call->session->unopened++;
	}
}

size_t call_queued(const struct call *call)
{
	return call->out.length - call->out_offset;
}

void call_send(struct call *call, const void *message, size_t length)
{
	if (!call->session || call->out_closed)
		return;
	frame_write(&call->out, message, length);
	call->out_used = true;
	kick(call);
}

void call_finish(struct call *call, enum rpc_code code, const char *message)
{
	if (!call->session || call->out_closed)
		return;
	assert(call->session->server);
	set_status(call, code, message);
	call->out_closed = true;
	call->quiet = true;
	kick(call);
}

void call_half_close(struct call *call)
{
	if (!call->session || call->out_closed)
		return;
	assert(!call->session->server);
	call->out_closed = true;
	kick(call);
}

void call_cancel(struct call *call)
{
	if (!call->session)
		return;
	call->quiet = true;
	call_reset(call, NGHTTP2_CANCEL);
	call_end(call, RPC_CANCELLED, "cancelled");
}

void call_fail(struct call *call, enum rpc_code code, const char *text)
{
	if (!call->session->server) {
		call_reset(call, NGHTTP2_CANCEL);
		call_end(call, code, text);
		return;
	}
	if (call->input == CALL_INPUT_OPEN)
		call->input = CALL_INPUT_DEAF;
	drop_input(call);
	if (call->out_ended)
		return;
	set_status(call, code, text);
	call->failed = call->quiet = call->out_closed = true;
	buf_deinit(&call->out);
	call->out_offset = 0;
	/* DATA could be held up by the peer's window; trailers can't. */
	if (call->opened)
		submit_trailers(call);
	else
		kick(call);
}

void call_expire(struct call *call)
{
	call->deadline = NEVER;
	call_fail(call, RPC_DEADLINE_EXCEEDED, "deadline exceeded");
}

static void give_back_window(struct call *call)
{
	if (!call->withheld || call_queued(call) > SESSION_QUEUE_LOW)
		return;
	session_checked(call->session, nghttp2_session_consume_stream(
					       call->session->h2, call->stream, call->withheld));
	call->withheld = 0;
}

static void drained(struct call *call)
{
	call->out_offset = 0;
	if (call->out.capacity > OUT_KEEP)
		buf_deinit(&call->out);
	buf_clear(&call->out);
	if (call->out_used && !call->out_closed)
		session_event(call->session, SESSION_DRAINED, call);
	call->out_used = false;
}

ssize_t call_read(struct call *call, uint8_t *buffer, size_t length, uint32_t *flags)
{
	size_t queued = call_queued(call), taken = queued < length ? queued : length;
	if (call->out_ended)
		return NGHTTP2_ERR_DEFERRED;
	if (taken)
		memcpy(buffer, call->out.data + call->out_offset, taken);
	call->out_offset += taken;
	if (taken == queued)
		drained(call);
	give_back_window(call);
	if (taken < queued || !call->out_closed)
		return taken ? (ssize_t)taken : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (call->session->server) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		submit_trailers(call);
	}
	call->out_ended = true;
	return (ssize_t)taken;
}

/* --- coming in --- */

static void refuse_compressed(struct call *call)
{
	const struct metadata_entry *encoding = metadata_find(&call->received, "grpc-encoding");
	if (call->session->server && encoding && !str_equal((char *)encoding->value, "identity")) {
		call->refuse_compression = true;
		call_fail(call, RPC_UNIMPLEMENTED, "compressed messages are not supported");
		return;
	}
	call_fail(call, RPC_INTERNAL, "a message is compressed, and no compression was agreed on");
}

static struct buf take_buf(struct buf *from)
{
	struct buf taken = *from;
	*from = (struct buf){0};
	return taken;
}

static void message_event(struct call *call, struct buf message)
{
	struct session *session = call->session;
	session_event(session, SESSION_MESSAGE, call);
	session->events.items[session->events.count - 1].message = message;
}

static void take_message(struct call *call)
{
	struct buf message = take_buf(&call->reader.message);
	frame_next(&call->reader);
	if (!call->session->server || !call->method->one_request) {
		message_event(call, message);
		return;
	}
	if (call->has_held) {
		buf_deinit(&message);
		call_fail(call, RPC_INTERNAL, "more than one message in a unary call");
		return;
	}
	call->held = message;
	call->has_held = true;
}

static void too_large(struct call *call)
{
	char text[96];
	snprintf(text, sizeof text, "a message of %zu bytes is larger than the %zu allowed",
		 call->reader.expected, call->reader.max);
	call_fail(call, RPC_RESOURCE_EXHAUSTED, text);
}

static void read_messages(struct call *call, const uint8_t *data, size_t length)
{
	while (length && call->session && call->input == CALL_INPUT_OPEN) {
		switch (frame_read(&call->reader, &data, &length)) {
		case FRAME_MORE:
			break;
		case FRAME_MESSAGE:
			take_message(call);
			break;
		case FRAME_COMPRESSED:
			refuse_compressed(call);
			break;
		case FRAME_BAD_FLAG:
			call_fail(call, RPC_INTERNAL, "a message has an unknown flag");
			break;
		case FRAME_TOO_LARGE:
			too_large(call);
			break;
		}
	}
}

/* One message that the call may have by itself is none too many. */
static size_t buffered_max(const struct call *call)
{
	return call->reader.max > SESSION_MAX_BUFFERED ? call->reader.max : SESSION_MAX_BUFFERED;
}

void call_receive(struct call *call, const uint8_t *data, size_t length)
{
	read_messages(call, data, length);
	if (!call->session)
		return;
	count_input(call);
	if (call->session->buffered > buffered_max(call))
		call_fail(call, RPC_RESOURCE_EXHAUSTED,
			  "the connection's unfinished messages are too large");
}

/* The one request is told only now that it is certain to be the only one. */
static void request_is_whole(struct call *call)
{
	struct session *session = call->session;
	if (!call->method->one_request) {
		session_event(session, SESSION_HALF_CLOSE, call);
		return;
	}
	if (!call->has_held) {
		call_fail(call, RPC_INTERNAL, "no message in a unary call");
		return;
	}
	message_event(call, take_buf(&call->held));
	count_input(call);
}

static void answer_is_whole(struct call *call)
{
	if (!call->out_ended)
		call_reset(call, NGHTTP2_NO_ERROR);
	if (!call->has_status)
		call_end(call, RPC_INTERNAL, "the stream ended without a status");
	else if (frame_partial(&call->reader) && call->code == RPC_OK)
		call_end(call, RPC_INTERNAL, "a message is cut short");
	else
		call_end(call, call->code, buf_text(&call->text));
}

void call_receive_end(struct call *call)
{
	bool deaf = call->input != CALL_INPUT_OPEN;
	call->input = CALL_INPUT_CLOSED;
	if (!call->session->server)
		answer_is_whole(call);
	else if (call->refuse_http)
		call_refuse_http(call);
	else if (!deaf && !call->out_closed) {
		if (frame_partial(&call->reader))
			call_fail(call, RPC_INTERNAL, "a message is cut short");
		else
			request_is_whole(call);
	}
}

/* --- what its users see --- */

void call_add_metadata(struct call *call, bool trailing, const char *name, const void *value,
		       size_t length)
{
	if (call->session)
		metadata_add(trailing ? &call->trailing : &call->initial, name, value, length);
}

const struct metadata *call_metadata(const struct call *call)
{
	return &call->received;
}

const struct session_method *call_method(const struct call *call)
{
	return call->method;
}

void call_set_owner(struct call *call, void *owner)
{
	call->owner = owner;
}

void *call_owner(const struct call *call)
{
	return call->owner;
}

enum rpc_code call_code(const struct call *call)
{
	return call->code;
}

const char *call_text(const struct call *call)
{
	return buf_text(&call->text);
}
