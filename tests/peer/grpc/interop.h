/*
 * interop: what the interop server and client share: TLS settings from files, the service's paths.
 */
#pragma once

#include "proto/grpc_testing.pb-c.h"
#include "proto/message.h"
#include "rpc/rpc.h"
#include "rpc/tls.h"

#define SERVICE       "/grpc.testing.TestService/"
#define ECHO_INITIAL  "x-grpc-test-echo-initial"
#define ECHO_TRAILING "x-grpc-test-echo-trailing-bin"

MESSAGE_TYPE(simple_request, Grpc__Testing__SimpleRequest, grpc__testing__simple_request)
MESSAGE_TYPE(simple_response, Grpc__Testing__SimpleResponse, grpc__testing__simple_response)
MESSAGE_TYPE(input_request, Grpc__Testing__StreamingInputCallRequest,
	     grpc__testing__streaming_input_call_request)
MESSAGE_TYPE(input_response, Grpc__Testing__StreamingInputCallResponse,
	     grpc__testing__streaming_input_call_response)
MESSAGE_TYPE(output_request, Grpc__Testing__StreamingOutputCallRequest,
	     grpc__testing__streaming_output_call_request)
MESSAGE_TYPE(output_response, Grpc__Testing__StreamingOutputCallResponse,
	     grpc__testing__streaming_output_call_response)

/* What stands after the address on the command line: --cert, --key, --ca, --name; all optional. */
struct interop_options {
	char *certificate, *key, *ca; /* the files' contents, or NULL */
	const char *name;
};

void interop_options_parse(struct interop_options *options, char **arguments);
void interop_options_deinit(struct interop_options *options);

/* Ends the program with the error's message. */
void interop_die(const char *doing, const struct error *error) NORETURN;
