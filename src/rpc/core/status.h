/*
 * status: gRPC status codes, and the texts that carry them over HTTP/2.
 *
 * Pure      no syscall, no state.
 * Source    grpc.io "gRPC over HTTP2" (Responses, HTTP2 errors), "HTTP to gRPC status code
 * mapping".
 */
#pragma once

#include "base/buf.h"

/* A google.rpc.Code. */
enum rpc_code {
	RPC_OK = 0,
	RPC_CANCELLED = 1,
	RPC_UNKNOWN = 2,
	RPC_INVALID_ARGUMENT = 3,
	RPC_DEADLINE_EXCEEDED = 4,
	RPC_NOT_FOUND = 5,
	RPC_ALREADY_EXISTS = 6,
	RPC_PERMISSION_DENIED = 7,
	RPC_RESOURCE_EXHAUSTED = 8,
	RPC_FAILED_PRECONDITION = 9,
	RPC_ABORTED = 10,
	RPC_OUT_OF_RANGE = 11,
	RPC_UNIMPLEMENTED = 12,
	RPC_INTERNAL = 13,
	RPC_UNAVAILABLE = 14,
	RPC_DATA_LOSS = 15,
	RPC_UNAUTHENTICATED = 16,
};

#define STATUS_MESSAGE_MAX                                                                         \
	((size_t)4096) /* bytes of a message before encoding; the rest is cut                      \
			*/

const char *rpc_code_name(enum rpc_code code); /* "UNAVAILABLE"; "UNKNOWN" for any other number */

/* The text of grpc-status; a number that is no code, and text that is no number, are UNKNOWN. */
enum rpc_code status_parse(const uint8_t *text, size_t length);

/* What a call has come to when the peer's HTTP answer carries no grpc-status. */
enum rpc_code status_from_http(int http_status);

/* What a call has come to when the peer reset its stream with this HTTP/2 error code. */
enum rpc_code status_from_reset(uint32_t http2_error);

/* grpc-message: everything but printable ASCII, and '%', is percent-encoded. Appends to `out`. */
void status_message_encode(struct buf *out, const char *message);
/* Broken escapes stay as they are; a NUL becomes '?'. Appends to `out`. */
void status_message_decode(struct buf *out, const uint8_t *text, size_t length);
