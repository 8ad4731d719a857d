/*
 * The client of gRPC's interop cases.
 *
 *     interop_client ADDRESS CASE [--ca FILE --name NAME [--cert FILE --key FILE]]
 *
 * Ends with 0 when the case came out as it should; else it says what didn't.
 */
#include "interop.h"

#include <signal.h>
#include <stdio.h>

#define GUARD_MS       20000
#define LARGE_REQUEST  271828
#define LARGE_RESPONSE 314159

static const int32_t request_sizes[] = {27182, 8, 1828, 45904};
static const int32_t response_sizes[] = {31415, 9, 2653, 58979};

/* One call of a case, and what it came to. */
struct trial {
	struct loop *loop;
	struct rpc_client *client;
	struct rpc_call *call;
	struct buf last; /* message */
	unsigned answers;
	bool done;
	enum rpc_code code;
	char text[256];
	char initial[64], trailing[64]; /* of the answer's metadata, "" if absent */
	size_t trailing_length;
	void (*on_answer)(struct trial *trial); /* NULL: nothing to do on a message */
};

static void die(const char *what, const struct trial *trial) NORETURN;
static void die(const char *what, const struct trial *trial)
{
	fprintf(stderr, "%s; answers %u, status %s '%s'\n", what, trial->answers,
		rpc_code_name(trial->code), trial->text);
	exit(1);
}

static void want(bool fine, const char *what, const struct trial *trial)
{
	if (!fine)
		die(what, trial);
}

static void on_message(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)call;
	struct trial *trial = arg;
	buf_clear(&trial->last);
	buf_add(&trial->last, data, length);
	trial->answers++;
	if (trial->on_answer)
		trial->on_answer(trial);
}

static void on_done(struct rpc_call *call, void *arg, const struct rpc_status *status)
{
	struct trial *trial = arg;
	size_t length;
	const char *value = rpc_metadata(call, ECHO_INITIAL, &length);
	str_copy(trial->initial, sizeof trial->initial, value ? value : "");
	value = rpc_metadata(call, ECHO_TRAILING, &length);
	if (value && length < sizeof trial->trailing) {
		memcpy(trial->trailing, value, length);
		trial->trailing_length = length;
	}
	trial->done = true;
	trial->code = status->code;
	str_copy(trial->text, sizeof trial->text, status->message);
	loop_stop(trial->loop);
}

static const struct rpc_call_handlers handlers = {.on_message = on_message, .on_done = on_done};

static void start(struct trial *trial, const char *method, int64_t deadline_ms)
{
	char path[96];
	snprintf(path, sizeof path, "%s%s", method[0] == '/' ? "" : SERVICE, method);
	buf_clear(&trial->last);
	trial->answers = 0;
	trial->done = false;
	trial->call = rpc_call_start(trial->client, path, deadline_ms, RPC_MAX_MESSAGE_DEFAULT,
				     &handlers, trial);
}

static void finish(struct trial *trial)
{
	while (!trial->done)
		loop_run(trial->loop);
}

/* --- messages --- */

static void send_simple(struct trial *trial, int32_t request_size, int32_t response_size,
			const char *status)
{
	struct error error;
	CLEANUP(free) uint8_t *zeros = mem_alloc((size_t)request_size);
	CLEANUP(buf) struct buf bytes = {0};
	Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;
	Grpc__Testing__EchoStatus echo = GRPC__TESTING__ECHO_STATUS__INIT;
	Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
	payload.body = (ProtobufCBinaryData){(size_t)request_size, zeros};
	request.payload = &payload;
	request.response_size = response_size;
	if (status) {
		echo.code = RPC_UNKNOWN;
		echo.message = message_text(status);
		request.response_status = &echo;
	}
	if (!simple_request_pack(&request, &bytes, &error))
		interop_die("pack", &error);
	rpc_send(trial->call, bytes.data, bytes.length);
}

static void send_output(struct trial *trial, int32_t request_size, const int32_t *sizes,
			size_t count, const char *status)
{
	struct error error;
	CLEANUP(free) uint8_t *zeros = mem_alloc((size_t)request_size);
	CLEANUP(buf) struct buf bytes = {0};
	Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;
	Grpc__Testing__EchoStatus echo = GRPC__TESTING__ECHO_STATUS__INIT;
	Grpc__Testing__ResponseParameters parameters[ARRAY_SIZE(response_sizes)];
	Grpc__Testing__ResponseParameters *pointers[ARRAY_SIZE(response_sizes)];
	Grpc__Testing__StreamingOutputCallRequest request =
		GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
	payload.body = (ProtobufCBinaryData){(size_t)request_size, zeros};
	for (size_t i = 0; i < count; i++) {
		grpc__testing__response_parameters__init(&parameters[i]);
		parameters[i].size = sizes[i];
		pointers[i] = &parameters[i];
	}
	request.payload = &payload;
	request.response_parameters = pointers;
	request.n_response_parameters = count;
	if (status) {
		echo.code = RPC_UNKNOWN;
		echo.message = message_text(status);
		request.response_status = &echo;
	}
	if (!output_request_pack(&request, &bytes, &error))
		interop_die("pack", &error);
	rpc_send(trial->call, bytes.data, bytes.length);
}

static void send_input(struct trial *trial, int32_t request_size)
{
	struct error error;
	CLEANUP(free) uint8_t *zeros = mem_alloc((size_t)request_size);
	CLEANUP(buf) struct buf bytes = {0};
	Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;
	Grpc__Testing__StreamingInputCallRequest request =
		GRPC__TESTING__STREAMING_INPUT_CALL_REQUEST__INIT;
	payload.body = (ProtobufCBinaryData){(size_t)request_size, zeros};
	request.payload = &payload;
	if (!input_request_pack(&request, &bytes, &error))
		interop_die("pack", &error);
	rpc_send(trial->call, bytes.data, bytes.length);
}

/* SimpleResponse and StreamingOutputCallResponse look alike as far as they are filled. */
static void want_payload(const struct trial *trial, int32_t size)
{
	struct error error;
	CLEANUP(message) Grpc__Testing__SimpleResponse *response = NULL;
	if (!simple_response_unpack(trial->last.data, trial->last.length, &response, &error))
		interop_die("unpack", &error);
	want(response->payload && response->payload->body.len == (size_t)size,
	     "the payload has another size", trial);
}

/* --- cases --- */

static void empty_unary(struct trial *trial)
{
	start(trial, "EmptyCall", 0);
	rpc_send(trial->call, "", 0);
	rpc_half_close(trial->call);
	finish(trial);
	want(trial->code == RPC_OK && trial->answers == 1 && trial->last.length == 0,
	     "no empty answer", trial);
}

static void large_unary(struct trial *trial)
{
	start(trial, "UnaryCall", 0);
	send_simple(trial, LARGE_REQUEST, LARGE_RESPONSE, NULL);
	rpc_half_close(trial->call);
	finish(trial);
	want(trial->code == RPC_OK && trial->answers == 1, "no answer", trial);
	want_payload(trial, LARGE_RESPONSE);
}

static void client_streaming(struct trial *trial)
{
	struct error error;
	start(trial, "StreamingInputCall", 0);
	for (size_t i = 0; i < ARRAY_SIZE(request_sizes); i++)
		send_input(trial, request_sizes[i]);
	rpc_half_close(trial->call);
	finish(trial);
	want(trial->code == RPC_OK && trial->answers == 1, "no answer", trial);
	CLEANUP(message) Grpc__Testing__StreamingInputCallResponse *response = NULL;
	if (!input_response_unpack(trial->last.data, trial->last.length, &response, &error))
		interop_die("unpack", &error);
	want(response->aggregated_payload_size == 74922, "another sum", trial);
}

static void want_next_size(struct trial *trial)
{
	want(trial->answers <= ARRAY_SIZE(response_sizes), "too many answers", trial);
	want_payload(trial, response_sizes[trial->answers - 1]);
}

static void server_streaming(struct trial *trial)
{
	trial->on_answer = want_next_size;
	start(trial, "StreamingOutputCall", 0);
	send_output(trial, 0, response_sizes, ARRAY_SIZE(response_sizes), NULL);
	rpc_half_close(trial->call);
	finish(trial);
	want(trial->code == RPC_OK && trial->answers == ARRAY_SIZE(response_sizes),
	     "not all answers", trial);
}

static void ping(struct trial *trial)
{
	size_t next = trial->answers;
	if (next > 0)
		want_next_size(trial);
	if (next < ARRAY_SIZE(request_sizes))
		send_output(trial, request_sizes[next], &response_sizes[next], 1, NULL);
	else
		rpc_half_close(trial->call);
}

static void ping_pong(struct trial *trial)
{
	trial->on_answer = ping;
	start(trial, "FullDuplexCall", 0);
	ping(trial);
	finish(trial);
	want(trial->code == RPC_OK && trial->answers == ARRAY_SIZE(response_sizes),
	     "not all answers", trial);
}

static void empty_stream(struct trial *trial)
{
	start(trial, "FullDuplexCall", 0);
	rpc_half_close(trial->call);
	finish(trial);
	want(trial->code == RPC_OK && trial->answers == 0, "not an empty end", trial);
}

static void timeout_on_sleeping_server(struct trial *trial)
{
	start(trial, "FullDuplexCall", 1);
	send_output(trial, 27182, NULL, 0, NULL);
	finish(trial);
	want(trial->code == RPC_DEADLINE_EXCEEDED, "no timeout", trial);
}

static void cancel_after_begin(struct trial *trial)
{
	start(trial, "StreamingInputCall", 0);
	rpc_cancel(trial->call);
	want(!trial->done, "told from inside the cancel", trial);
	finish(trial);
	want(trial->code == RPC_CANCELLED, "not cancelled", trial);
}

static void cancel_call(struct trial *trial)
{
	rpc_cancel(trial->call);
}

static void cancel_after_first_response(struct trial *trial)
{
	trial->on_answer = cancel_call;
	start(trial, "FullDuplexCall", 0);
	send_output(trial, 27182, &response_sizes[0], 1, NULL);
	finish(trial);
	want(trial->code == RPC_CANCELLED && trial->answers == 1, "not cancelled", trial);
}

static void status_code_and_message(struct trial *trial)
{
	static const char text[] = "test status message";
	start(trial, "UnaryCall", 0);
	send_simple(trial, 0, 0, text);
	rpc_half_close(trial->call);
	finish(trial);
	want(trial->code == RPC_UNKNOWN && str_equal(trial->text, text), "unary", trial);
	start(trial, "FullDuplexCall", 0);
	send_output(trial, 0, NULL, 0, text);
	rpc_half_close(trial->call);
	finish(trial);
	want(trial->code == RPC_UNKNOWN && str_equal(trial->text, text), "stream", trial);
}

static void special_status_message(struct trial *trial)
{
	static const char text[] =
		"\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";
	start(trial, "UnaryCall", 10000);
	send_simple(trial, 0, 0, text);
	rpc_half_close(trial->call);
	finish(trial);
	want(trial->code == RPC_UNKNOWN && str_equal(trial->text, text), "another text", trial);
}

static void add_echoes(struct trial *trial)
{
	rpc_add_metadata(trial->call, false, ECHO_INITIAL, "test_initial_metadata_value", 27);
	rpc_add_metadata(trial->call, false, ECHO_TRAILING, "\x0a\x0b\x0a\x0b\x0a\x0b", 6);
}

static void want_echoes(const struct trial *trial)
{
	want(trial->code == RPC_OK && trial->answers == 1, "no answer", trial);
	want(str_equal(trial->initial, "test_initial_metadata_value"), "initial metadata", trial);
	want(trial->trailing_length == 6 &&
		     memcmp(trial->trailing, "\x0a\x0b\x0a\x0b\x0a\x0b", 6) == 0,
	     "trailing metadata", trial);
}

static void half_close_call(struct trial *trial)
{
	rpc_half_close(trial->call);
}

static void custom_metadata(struct trial *trial)
{
	start(trial, "UnaryCall", 0);
	add_echoes(trial);
	send_simple(trial, 1, 1, NULL);
	rpc_half_close(trial->call);
	finish(trial);
	want_echoes(trial);
	trial->on_answer = half_close_call;
	start(trial, "FullDuplexCall", 0);
	add_echoes(trial);
	send_output(trial, 1, &(int32_t){1}, 1, NULL);
	finish(trial);
	want_echoes(trial);
}

static void want_unimplemented(struct trial *trial, const char *method)
{
	start(trial, method, 0);
	rpc_send(trial->call, "", 0);
	rpc_half_close(trial->call);
	finish(trial);
	want(trial->code == RPC_UNIMPLEMENTED, "not unimplemented", trial);
}

static void unimplemented_method(struct trial *trial)
{
	want_unimplemented(trial, "UnimplementedCall");
}

static void unimplemented_service(struct trial *trial)
{
	want_unimplemented(trial, "/grpc.testing.UnimplementedService/UnimplementedCall");
}

#define CASE(name) {#name, name}
static const struct {
	const char *name;
	void (*run)(struct trial *trial);
} cases[] = {
	CASE(empty_unary),
	CASE(large_unary),
	CASE(client_streaming),
	CASE(server_streaming),
	CASE(ping_pong),
	CASE(empty_stream),
	CASE(timeout_on_sleeping_server),
	CASE(cancel_after_begin),
	CASE(cancel_after_first_response),
	CASE(status_code_and_message),
	CASE(special_status_message),
	CASE(custom_metadata),
	CASE(unimplemented_method),
	CASE(unimplemented_service),
};

static bool run_case(struct trial *trial, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (str_equal(cases[i].name, name)) {
			cases[i].run(trial);
			return true;
		}
	return false;
}

static void on_down(void *arg, const struct error *error)
{
	(void)arg;
	fprintf(stderr, "%s\n", error->what); /* the calls' statuses decide */
}

static void on_guard(void *arg)
{
	die("took too long", arg);
}

int main(int count, char **arguments)
{
	static const struct rpc_client_handlers client_handlers = {.on_down = on_down};
	struct error error;
	struct interop_options options;
	struct rpc_tls *tls = NULL;
	if (count < 3)
		return 2;
	interop_options_parse(&options, arguments + 3);
	const struct rpc_tls_client_options tls_options = {
		.server_name = options.name,
		.ca_pem = options.ca,
		.certificate_pem = options.certificate,
		.key_pem = options.key,
	};
	if (options.ca && !rpc_tls_client_create(&tls_options, &tls, &error))
		interop_die("TLS", &error);

	signal(SIGPIPE, SIG_IGN);
	struct trial trial = {.loop = loop_create()};
	struct loop_timer *guard = loop_timer_create(trial.loop, on_guard, &trial);
	loop_timer_start(guard, GUARD_MS);
	trial.client = rpc_client_create(trial.loop, arguments[1], tls, 0, &client_handlers, NULL);
	bool known = run_case(&trial, arguments[2]);

	rpc_client_destroy(trial.client);
	loop_timer_destroy(guard);
	loop_run(trial.loop);
	loop_destroy(trial.loop);
	rpc_tls_destroy(tls);
	buf_deinit(&trial.last);
	interop_options_deinit(&options);
	return known ? 0 : 2;
}
