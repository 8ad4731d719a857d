/* nghttp2's callbacks: they find the stream's call, or nobody, and note what came. */
#include "rpc/core/session_internal.h"

#include "rpc/core/timeout.h"

#include <stdio.h>
#include <strings.h>

/* --- memory: out of memory aborts, as everywhere --- */

static void *h2_malloc(size_t size, void *arg)
{
	(void)arg;
	return mem_alloc(size);
}

static void h2_free(void *memory, void *arg)
{
	(void)arg;
	free(memory);
}

static void *h2_calloc(size_t count, size_t size, void *arg)
{
	(void)arg;
	return memset(mem_resize(NULL, count, size), 0, count * size);
}

static void *h2_realloc(void *memory, size_t size, void *arg)
{
	(void)arg;
	return mem_resize(memory, size, 1);
}

/* --- headers --- */

static bool is(const uint8_t *text, size_t length, const char *wanted)
{
	return length == strlen(wanted) && memcmp(text, wanted, length) == 0;
}

static bool is_grpc(const uint8_t *type, size_t length)
{
	static const char wanted[] = "application/grpc";
	size_t size = sizeof wanted - 1;
	return length >= size && strncasecmp((const char *)type, wanted, size) == 0 &&
	       (length == size || type[size] == '+' || type[size] == ';');
}

static void note_bad(struct call *call, enum rpc_code code, const char *why)
{
	if (call->bad_headers == RPC_OK) {
		call->bad_headers = code;
		call->bad_headers_why = why;
	}
}

static void keep_metadata(struct call *call, const uint8_t *name, size_t name_length,
			  const uint8_t *value, size_t length)
{
	if (!metadata_add_wire(&call->received, name, name_length, value, length))
		note_bad(call, RPC_INTERNAL, "a metadata value is not base64");
}

static void request_header(struct call *call, const uint8_t *name, size_t name_length,
			   const uint8_t *value, size_t length)
{
	int64_t timeout_ms;
	if (is(name, name_length, ":path") && !call->path) {
		call->path = mem_alloc(length + 1);
		memcpy(call->path, value, length);
	} else if (is(name, name_length, ":method")) {
		call->is_post = is(value, length, "POST");
	} else if (is(name, name_length, "content-type")) {
		call->is_grpc = is_grpc(value, length);
	} else if (is(name, name_length, "grpc-timeout")) {
		if (timeout_parse(value, length, &timeout_ms))
			call->deadline = mono_after(call->session->now, timeout_ms);
		else
			note_bad(call, RPC_INTERNAL, "malformed grpc-timeout");
	} else if (name[0] != ':') {
		keep_metadata(call, name, name_length, value, length);
	}
}

static void answer_header(struct call *call, const uint8_t *name, size_t name_length,
			  const uint8_t *value, size_t length)
{
	if (is(name, name_length, ":status")) {
		/* nghttp2 has seen to it that these are three digits. */
		call->http_status =
			(value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0');
	} else if (is(name, name_length, "content-type")) {
		call->is_grpc = is_grpc(value, length);
	} else if (is(name, name_length, "grpc-status")) {
		call->code = status_parse(value, length);
		call->has_status = true;
	} else if (is(name, name_length, "grpc-message")) {
		buf_clear(&call->text);
		status_message_decode(&call->text, value, length);
	} else if (name[0] != ':') {
		keep_metadata(call, name, name_length, value, length);
	}
}

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	(void)h2;
	struct session *session = arg;
	struct call *call = session_find(session, frame->hd.stream_id);
	if (call)
		call->header_bytes = 0;
	else if (session->server && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		call_create(session, frame->hd.stream_id);
	return 0;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_length, const uint8_t *value, size_t length, uint8_t flags,
		     void *arg)
{
	(void)h2, (void)flags;
	struct session *session = arg;
	struct call *call = session_find(session, frame->hd.stream_id);
	if (!call)
		return 0;
	call->header_bytes += name_length + length + 32;
	if (call->header_bytes > SESSION_MAX_HEADERS)
		note_bad(call, RPC_RESOURCE_EXHAUSTED, "the headers are larger than allowed");
	else if (!session->server)
		answer_header(call, name, name_length, value, length);
	else if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		request_header(call, name, name_length, value, length);
	return 0; /* a request's trailers mean nothing */
}

static const struct session_method *find_method(const struct session *session, const char *path)
{
	for (size_t i = 0; i < session->methods_count; i++)
		if (str_equal(session->methods[i].path, path))
			return &session->methods[i];
	return NULL;
}

static void request_headers_end(struct session *session, struct call *call)
{
	if (call->bad_headers != RPC_OK) {
		call_fail(call, call->bad_headers, call->bad_headers_why);
		return;
	}
	if (!call->is_post || !call->is_grpc) {
		call->refuse_http = call->is_post ? 415 : 405;
		call->input = CALL_INPUT_DEAF;
		return;
	}
	call->method = call->path ? find_method(session, call->path) : NULL;
	if (!call->method) {
		char text[160];
		snprintf(text, sizeof text, "unknown method '%s'", call->path ? call->path : "");
		call_fail(call, RPC_UNIMPLEMENTED, text);
		return;
	}
	call->reader.max = call->method->max_message;
	call->announced = true;
	session_event(session, SESSION_START, call);
}

static void answer_headers_end(struct call *call)
{
	if (call->http_status / 100 == 1)
		return; /* the real ones follow */
	char text[64];
	if (call->bad_headers != RPC_OK) {
		call_fail(call, call->bad_headers, call->bad_headers_why);
	} else if (!call->headers_seen && call->http_status != 200 && !call->has_status) {
		snprintf(text, sizeof text, "the server answered with HTTP status %d",
			 call->http_status);
		call_fail(call, status_from_http(call->http_status), text);
	} else if (!call->headers_seen && !call->is_grpc && !call->has_status) {
		call_fail(call, RPC_UNKNOWN, "the server's answer is not gRPC");
	}
	call->headers_seen = true;
}

/* --- frames --- */

static void on_ping(struct session *session, const nghttp2_ping *ping)
{
	if (ping->hd.flags & NGHTTP2_FLAG_ACK) {
		session->ping_out = false;
		if (session->drain_by.ms != INT64_MAX &&
		    memcmp(ping->opaque_data, H2_DRAIN_PING, sizeof ping->opaque_data) == 0)
			session_goaway(session, NGHTTP2_NO_ERROR, "");
		return;
	}
	if (!session->server)
		return;
	bool early = session->ping_seen &&
		     mono_until(session->last_ping, session->now) < SESSION_PING_MIN_MS;
	session->ping_seen = true;
	session->last_ping = session->now;
	if (!early || ++session->strikes <= SESSION_PING_STRIKES || session->broken)
		return;
	session_goaway(session, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
	session_break(session, ERROR_RATE_LIMITED, "the peer pings too often");
}

static void note_goaway(struct session *session, const nghttp2_goaway *goaway, const char *who)
{
	if (goaway->error_code == NGHTTP2_NO_ERROR || session->reason)
		return;
	error_set(session_own_reason(session), ERROR_UNAVAILABLE, "%s: %s%s%.*s", who,
		  nghttp2_http2_strerror(goaway->error_code), goaway->opaque_data_len ? ", " : "",
		  (int)(goaway->opaque_data_len < 128 ? goaway->opaque_data_len : 128),
		  goaway->opaque_data_len ? (const char *)goaway->opaque_data : "");
}

static void on_stream_frame(struct session *session, const nghttp2_frame *frame)
{
	struct call *call = session_find(session, frame->hd.stream_id);
	if (call && frame->hd.type == NGHTTP2_HEADERS) {
		if (!session->server)
			answer_headers_end(call);
		else if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
			request_headers_end(session, call);
	}
	if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return;
	call = session_find(session, frame->hd.stream_id); /* it may have ended just now */
	if (call)
		call_receive_end(call);
}

static int on_frame_recv(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	(void)h2;
	struct session *session = arg;
	uint8_t type = frame->hd.type;
	if (type == NGHTTP2_HEADERS || type == NGHTTP2_DATA) {
		on_stream_frame(session, frame);
	} else if (type == NGHTTP2_PING) {
		on_ping(session, &frame->ping);
	} else if (type == NGHTTP2_GOAWAY && !session->server) {
		session->draining = true;
		note_goaway(session, &frame->goaway, "the server ended the connection");
	} else if (type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK) &&
		   !session->up) {
		session->up = true;
		session_event(session, SESSION_UP, NULL);
	}
	return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *data,
		   size_t length, void *arg)
{
	(void)flags;
	struct session *session = arg;
	struct call *call = session_find(session, stream);
	session_checked(session, nghttp2_session_consume_connection(h2, length));
	if (call)
		call_receive(call, data,
			     length); /* it may end, but lives until its event is taken */
	/* Only servers hold peers up: if both sides did, two full queues would wait for each other.
	 */
	if (session->server && call && call->session && call_queued(call) > SESSION_QUEUE_HIGH)
		call->withheld += length;
	else
		session_checked(session, nghttp2_session_consume_stream(h2, stream, length));
	return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t stream, uint32_t error, void *arg)
{
	(void)h2;
	struct session *session = arg;
	struct call *call = session_find(session, stream);
	if (!call)
		return 0;
	char text[64];
	snprintf(text, sizeof text, "the stream was reset: %s", nghttp2_http2_strerror(error));
	if (!session->server && error == NGHTTP2_CANCEL && call->deadline.ms <= session->now.ms)
		call_end(call, RPC_DEADLINE_EXCEEDED,
			 "deadline exceeded"); /* its timer was quicker */
	else if (!session->server)
		call_end(call, status_from_reset(error), text);
	else if (call->failed || (call->out_ended && error == NGHTTP2_NO_ERROR))
		call_end(call, call->code, buf_text(&call->text));
	else
		call_end(call, RPC_CANCELLED, "cancelled by the peer");
	return 0;
}

static int on_frame_send(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	(void)h2;
	struct session *session = arg;
	uint8_t type = frame->hd.type;
	if (type == NGHTTP2_GOAWAY)
		note_goaway(session, &frame->goaway, "the peer broke the rules of HTTP/2");
	if (!session->server || (type != NGHTTP2_HEADERS && type != NGHTTP2_DATA))
		return 0;
	/* Who gets answers may measure the way with pings. */
	session->ping_seen = false;
	session->strikes = 0;
	struct call *call = session_find(session, frame->hd.stream_id);
	if (call && type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
	    call->input != CALL_INPUT_CLOSED)
		call_reset(call,
			   NGHTTP2_NO_ERROR); /* else it would count against the peer's streams */
	return 0;
}

static int on_frame_not_send(nghttp2_session *h2, const nghttp2_frame *frame, int error, void *arg)
{
	(void)h2;
	struct session *session = arg;
	struct call *call = frame->hd.type == NGHTTP2_HEADERS
				    ? session_find(session, frame->hd.stream_id)
				    : NULL;
	if (call && session->server)
		call_reset(call, NGHTTP2_INTERNAL_ERROR);
	else if (call)
		call_end(call, RPC_UNAVAILABLE, nghttp2_strerror(error));
	return 0;
}

static ssize_t read_body(nghttp2_session *h2, int32_t stream, uint8_t *buffer, size_t length,
			 uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	(void)h2, (void)source;
	struct call *call = session_find(arg, stream);
	return call ? call_read(call, buffer, length, flags)
		    : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

nghttp2_data_provider h2_body(void)
{
	return (nghttp2_data_provider){.read_callback = read_body};
}

/* --- setting up; with memory that never fails, only a wrong argument can --- */

static void must(int status)
{
	assert(status == 0);
}

static void submit_settings(struct session *session, nghttp2_session *h2)
{
	const nghttp2_settings_entry entries[] = {
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)SESSION_MAX_HEADERS},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, SESSION_STREAM_WINDOW},
		session->server ? (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
							   SESSION_MAX_STREAMS}
				: (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	};
	must(nghttp2_submit_settings(h2, NGHTTP2_FLAG_NONE, entries, ARRAY_SIZE(entries)));
	must(nghttp2_session_set_local_window_size(h2, NGHTTP2_FLAG_NONE, 0, SESSION_WINDOW));
}

nghttp2_session *h2_create(struct session *session)
{
	nghttp2_mem mem = {NULL, h2_malloc, h2_free, h2_calloc, h2_realloc};
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	nghttp2_session *h2;

	must(nghttp2_session_callbacks_new(&callbacks));
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_send);
	must(nghttp2_option_new(&option));
	nghttp2_option_set_no_auto_window_update(option, 1);
	must(session->server ? nghttp2_session_server_new3(&h2, callbacks, session, option, &mem)
			     : nghttp2_session_client_new3(&h2, callbacks, session, option, &mem));
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	submit_settings(session, h2);
	return h2;
}
