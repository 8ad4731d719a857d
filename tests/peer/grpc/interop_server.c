/*
 * The server of gRPC's interop cases.
 *
 *     interop_server unix:PATH | ADDR:PORT [--cert FILE --key FILE [--ca FILE]]
 *
 * Says "listening ADDRESS" when it does. On SIGTERM it drains: running calls go on, then it ends.
 */
#include "interop.h"

#include <signal.h>
#include <stdio.h>

#define MAX_PAYLOAD (16 << 20)

struct server {
	struct loop *loop;
	struct rpc_server *rpc;
	struct loop_signal *term;
	bool drained;
};

static void echo_metadata(struct rpc_call *call, void *arg)
{
	(void)arg;
	size_t length;
	const char *value = rpc_metadata(call, ECHO_INITIAL, &length);
	if (value)
		rpc_add_metadata(call, false, ECHO_INITIAL, value, length);
	value = rpc_metadata(call, ECHO_TRAILING, &length);
	if (value)
		rpc_add_metadata(call, true, ECHO_TRAILING, value, length);
}

/* SimpleResponse and StreamingOutputCallResponse look alike as far as we fill them. */
static bool send_payload(struct rpc_call *call, int32_t size, struct error *error)
{
	if (size < 0 || size > MAX_PAYLOAD)
		return error_field(error, "response_size", "%d is not in 0 to %d", size,
				   MAX_PAYLOAD);
	CLEANUP(free) uint8_t *zeros = mem_alloc((size_t)size);
	CLEANUP(buf) struct buf bytes = {0};
	Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;
	Grpc__Testing__SimpleResponse response = GRPC__TESTING__SIMPLE_RESPONSE__INIT;
	payload.body.data = zeros;
	payload.body.len = (size_t)size;
	response.payload = &payload;
	if (!simple_response_pack(&response, &bytes, error))
		return false;
	rpc_send(call, bytes.data, bytes.length);
	return true;
}

static void on_empty(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)arg, (void)data, (void)length;
	rpc_send(call, "", 0);
	rpc_finish(call, RPC_OK, NULL);
}

static void finish_echo(struct rpc_call *call, const Grpc__Testing__EchoStatus *status)
{
	rpc_finish(call, (enum rpc_code)status->code, status->message);
}

static void on_unary(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)arg;
	struct error error;
	CLEANUP(message) Grpc__Testing__SimpleRequest *request = NULL;
	if (!simple_request_unpack(data, length, &request, &error)) {
		rpc_finish(call, RPC_INTERNAL, error.what);
		return;
	}
	if (request->response_status && request->response_status->code)
		finish_echo(call, request->response_status);
	else if (!send_payload(call, request->response_size, &error))
		rpc_finish_error(call, &error);
	else
		rpc_finish(call, RPC_OK, NULL);
}

/* Answers one request with as many messages as it asks for; false: the call is finished. */
static bool answer(struct rpc_call *call, const uint8_t *data, size_t length)
{
	struct error error;
	CLEANUP(message) Grpc__Testing__StreamingOutputCallRequest *request = NULL;
	if (!output_request_unpack(data, length, &request, &error)) {
		rpc_finish(call, RPC_INTERNAL, error.what);
		return false;
	}
	if (request->response_status && request->response_status->code) {
		finish_echo(call, request->response_status);
		return false;
	}
	for (size_t i = 0; i < request->n_response_parameters; i++)
		if (!send_payload(call, request->response_parameters[i]->size, &error)) {
			rpc_finish_error(call, &error);
			return false;
		}
	return true;
}

static void on_output(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)arg;
	if (answer(call, data, length))
		rpc_finish(call, RPC_OK, NULL);
}

static void on_duplex(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)arg;
	answer(call, data, length);
}

static void on_duplex_end(struct rpc_call *call, void *arg)
{
	(void)arg;
	rpc_finish(call, RPC_OK, NULL);
}

/* --- StreamingInputCall --- */

/*
 * grpc-go's cancel_after_begin half-closes right after its cancel. A server that is quick can
 * answer before the cancel takes effect over there, so one without any input takes its time.
 */
#define EMPTY_INPUT_MS 300

struct input {
	struct rpc_call *call;
	int32_t sum;
	bool any;
	struct loop_timer *timer;
};

static void answer_input(void *arg)
{
	struct input *input = arg;
	struct error error;
	CLEANUP(buf) struct buf bytes = {0};
	Grpc__Testing__StreamingInputCallResponse response =
		GRPC__TESTING__STREAMING_INPUT_CALL_RESPONSE__INIT;
	response.aggregated_payload_size = input->sum;
	if (!input_response_pack(&response, &bytes, &error)) {
		rpc_finish_error(input->call, &error);
		return;
	}
	rpc_send(input->call, bytes.data, bytes.length);
	rpc_finish(input->call, RPC_OK, NULL);
}

static void on_input_start(struct rpc_call *call, void *arg)
{
	struct server *server = arg;
	struct input *input = mem_alloc(sizeof *input);
	input->call = call;
	input->timer = loop_timer_create(server->loop, answer_input, input);
	rpc_call_set_data(call, input);
}

static void on_input(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)arg;
	struct error error;
	struct input *input = rpc_call_data(call);
	CLEANUP(message) Grpc__Testing__StreamingInputCallRequest *request = NULL;
	if (!input_request_unpack(data, length, &request, &error)) {
		rpc_finish(call, RPC_INTERNAL, error.what);
		return;
	}
	input->any = true;
	input->sum += (int32_t)(request->payload ? request->payload->body.len : 0);
}

static void on_input_end(struct rpc_call *call, void *arg)
{
	(void)arg;
	struct input *input = rpc_call_data(call);
	loop_timer_start(input->timer, input->any ? 0 : EMPTY_INPUT_MS);
}

static void on_input_done(struct rpc_call *call, void *arg, const struct rpc_status *status)
{
	(void)arg, (void)status;
	struct input *input = rpc_call_data(call);
	loop_timer_destroy(input->timer);
	free(input);
}

static const struct rpc_method methods[] = {
	{.path = SERVICE "EmptyCall",
	 .unary = true,
	 .on_start = echo_metadata,
	 .on_message = on_empty},
	{.path = SERVICE "UnaryCall",
	 .unary = true,
	 .on_start = echo_metadata,
	 .on_message = on_unary},
	{.path = SERVICE "StreamingOutputCall", .unary = true, .on_message = on_output},
	{.path = SERVICE "StreamingInputCall",
	 .on_start = on_input_start,
	 .on_message = on_input,
	 .on_half_close = on_input_end,
	 .on_done = on_input_done},
	{.path = SERVICE "FullDuplexCall",
	 .on_start = echo_metadata,
	 .on_message = on_duplex,
	 .on_half_close = on_duplex_end},
};

static void on_drained(void *arg)
{
	struct server *server = arg;
	server->drained = true;
	loop_stop(server->loop);
}

static void on_term(void *arg)
{
	struct server *server = arg;
	rpc_server_drain(server->rpc, on_drained, server);
}

int main(int count, char **arguments)
{
	struct error error;
	struct interop_options options;
	struct rpc_tls *tls = NULL;
	if (count < 2)
		return 2;
	const char *address = arguments[1];
	interop_options_parse(&options, arguments + 2);
	const struct rpc_tls_server_options tls_options = {options.certificate, options.key,
							   options.ca};
	if (options.certificate && !rpc_tls_server_create(&tls_options, &tls, &error))
		interop_die("TLS", &error);

	signal(SIGPIPE, SIG_IGN);
	struct server server = {.loop = loop_create()};
	server.rpc = rpc_server_create(server.loop, methods, ARRAY_SIZE(methods), &server);
	bool done = str_starts(address, "unix:")
			    ? rpc_server_listen_unix(server.rpc, address + 5, 0600, &error)
			    : rpc_server_listen_tcp(server.rpc, address, tls, &error);
	if (!done)
		interop_die("listen", &error);
	server.term = loop_signal_create(server.loop, SIGTERM, on_term, &server);
	printf("listening %s\n", rpc_server_address(server.rpc));
	fflush(stdout);
	loop_run(server.loop);

	rpc_server_destroy(server.rpc);
	loop_signal_destroy(server.term);
	loop_run(server.loop);
	loop_destroy(server.loop);
	rpc_tls_destroy(tls);
	interop_options_deinit(&options);
	return server.drained ? 0 : 1;
}
