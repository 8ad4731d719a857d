#include "rpc/core/status.h"

static const char *const code_names[] = {
	[RPC_OK] = "OK",
	[RPC_CANCELLED] = "CANCELLED",
	[RPC_UNKNOWN] = "UNKNOWN",
	[RPC_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
	[RPC_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
	[RPC_NOT_FOUND] = "NOT_FOUND",
	[RPC_ALREADY_EXISTS] = "ALREADY_EXISTS",
	[RPC_PERMISSION_DENIED] = "PERMISSION_DENIED",
	[RPC_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
	[RPC_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
	[RPC_ABORTED] = "ABORTED",
	[RPC_OUT_OF_RANGE] = "OUT_OF_RANGE",
	[RPC_UNIMPLEMENTED] = "UNIMPLEMENTED",
	[RPC_INTERNAL] = "INTERNAL",
	[RPC_UNAVAILABLE] = "UNAVAILABLE",
	[RPC_DATA_LOSS] = "DATA_LOSS",
	[RPC_UNAUTHENTICATED] = "UNAUTHENTICATED",
};

const char *rpc_code_name(enum rpc_code code)
{
	return (size_t)code < ARRAY_SIZE(code_names) ? code_names[code] : code_names[RPC_UNKNOWN];
}

enum rpc_code status_parse(const uint8_t *text, size_t length)
{
	unsigned number = 0;
	if (length == 0 || length > 2)
		return RPC_UNKNOWN;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return RPC_UNKNOWN;
		number = number * 10 + (text[i] - (unsigned)'0');
	}
	return number < ARRAY_SIZE(code_names) ? (enum rpc_code)number : RPC_UNKNOWN;
}

enum rpc_code status_from_http(int http_status)
{
	switch (http_status) {
	case 400:
		return RPC_INTERNAL;
	case 401:
		return RPC_UNAUTHENTICATED;
	case 403:
		return RPC_PERMISSION_DENIED;
	case 404:
		return RPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return RPC_UNAVAILABLE;
	default: /* any other number a peer may say */
		return RPC_UNKNOWN;
	}
}

/* The error codes of RFC 9113 section 7 that mean something of their own to gRPC. */
enum reset {
	RESET_REFUSED_STREAM = 7,
	RESET_CANCEL = 8,
	RESET_ENHANCE_YOUR_CALM = 11,
	RESET_INADEQUATE_SECURITY = 12,
};

enum rpc_code status_from_reset(uint32_t http2_error)
{
	if (http2_error == RESET_REFUSED_STREAM)
		return RPC_UNAVAILABLE;
	if (http2_error == RESET_CANCEL)
		return RPC_CANCELLED;
	if (http2_error == RESET_ENHANCE_YOUR_CALM)
		return RPC_RESOURCE_EXHAUSTED;
	if (http2_error == RESET_INADEQUATE_SECURITY)
		return RPC_PERMISSION_DENIED;
	return RPC_INTERNAL;
}

void status_message_encode(struct buf *out, const char *message)
{
	static const char digits[] = "0123456789ABCDEF";
	for (size_t i = 0; message[i] && i < STATUS_MESSAGE_MAX; i++) {
		uint8_t byte = (uint8_t)message[i];
		if (byte >= 0x20 && byte <= 0x7e && byte != '%') {
			buf_add_char(out, message[i]);
			continue;
		}
		buf_add_char(out, '%');
		buf_add_char(out, digits[byte >> 4]);
		buf_add_char(out, digits[byte & 15]);
	}
}

static int hex_value(uint8_t digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

void status_message_decode(struct buf *out, const uint8_t *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		int byte = text[i];
		if (byte == '%' && i + 2 < length && hex_value(text[i + 1]) >= 0 &&
		    hex_value(text[i + 2]) >= 0) {
			byte = hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]);
			i += 2;
		}
		buf_add_char(out, (char)(byte ? byte : '?'));
	}
}
