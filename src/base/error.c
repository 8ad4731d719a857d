#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const char ELLIPSIS[] = "\xe2\x80\xa6";

/* One row a code, in enum order. */
static const struct {
	const char *name;
	int http, exit, grpc;
} CODES[] = {
	[ERROR_NONE] = {"NONE", 200, 0, 0},
	[ERROR_INVALID_INPUT] = {"INVALID_INPUT", 400, 2, 3},
	[ERROR_INVALID_CONFIG] = {"INVALID_CONFIG", 400, 2, 3},
	[ERROR_UNAUTHENTICATED] = {"UNAUTHENTICATED", 401, 5, 16},
	[ERROR_FORBIDDEN] = {"FORBIDDEN", 403, 5, 7},
	[ERROR_NOT_FOUND] = {"NOT_FOUND", 404, 1, 5},
	[ERROR_CONFLICT] = {"CONFLICT", 409, 3, 6},
	[ERROR_INVALID_STATE] = {"INVALID_STATE", 409, 3, 9},
	[ERROR_RESOURCES_EXHAUSTED] = {"RESOURCES_EXHAUSTED", 409, 3, 8},
	[ERROR_RATE_LIMITED] = {"RATE_LIMITED", 429, 4, 8},
	[ERROR_UNAVAILABLE] = {"UNAVAILABLE", 503, 4, 14},
	[ERROR_INTERNAL] = {"INTERNAL", 500, 1, 13},
};

/* Ends a text that vsnprintf cut with "…", on a character's boundary. */
static void mark_cut(char *text, size_t size, int wanted)
{
	size_t end = size - sizeof ELLIPSIS;

	if (wanted >= 0 && (size_t)wanted < size)
		return;
	while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	memcpy(text + end, ELLIPSIS, sizeof ELLIPSIS);
}

static void PRINTF(3, 0) format_into(char *text, size_t size, const char *format, va_list args)
{
	mark_cut(text, size, vsnprintf(text, size, format, args));
}

bool error_set(struct error *error, enum error_code code, const char *format, ...)
{
	va_list args;

	assert(code != ERROR_NONE);
	*error = (struct error){.code = code};
	va_start(args, format);
	format_into(error->what, sizeof error->what, format, args);
	va_end(args);
	return false;
}

static enum error_code code_of_errno(int os)
{
	switch (os) {
	case ENOENT:
		return ERROR_NOT_FOUND;
	case EACCES:
	case EPERM:
		return ERROR_FORBIDDEN;
	case ECONNREFUSED:
	case ECONNRESET:
	case EPIPE:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EAGAIN:
		return ERROR_UNAVAILABLE;
	default:
		return ERROR_INTERNAL;
	}
}

bool error_os(struct error *error, const char *format, ...)
{
	int os = errno;
	char what[ERROR_WHAT_SIZE];
	va_list args;

	va_start(args, format);
	format_into(what, sizeof what, format, args);
	va_end(args);
	error_set(error, code_of_errno(os), "%s: %s", what, strerror(os));
	error->os = os;
	return false;
}

bool error_field(struct error *error, const char *field, const char *format, ...)
{
	char what[ERROR_WHAT_SIZE];
	va_list args;

	va_start(args, format);
	format_into(what, sizeof what, format, args);
	va_end(args);
	error_set(error, ERROR_INVALID_INPUT, "%s: %s", field, what);
	str_copy(error->field, sizeof error->field, field);
	return false;
}

bool error_wrap(struct error *error, const char *format, ...)
{
	char before[ERROR_WHAT_SIZE], inner[ERROR_WHAT_SIZE];
	va_list args;

	assert(error->code != ERROR_NONE);
	memcpy(inner, error->what, sizeof inner);
	va_start(args, format);
	format_into(before, sizeof before, format, args);
	va_end(args);
	mark_cut(error->what, sizeof error->what,
		 snprintf(error->what, sizeof error->what, "%s: %s", before, inner));
	return false;
}

bool error_hint(struct error *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	format_into(error->hint, sizeof error->hint, format, args);
	va_end(args);
	return false;
}

const char *error_code_name(enum error_code code)
{
	assert((size_t)code < ARRAY_SIZE(CODES));
	return CODES[code].name;
}

bool error_code_parse(const char *name, enum error_code *ret_code)
{
	for (size_t i = 0; i < ARRAY_SIZE(CODES); i++) {
		if (!str_equal(CODES[i].name, name))
			continue;
		*ret_code = (enum error_code)i;
		return true;
	}
	return false;
}

int error_http_status(enum error_code code)
{
	assert((size_t)code < ARRAY_SIZE(CODES));
	return CODES[code].http;
}

int error_exit_status(enum error_code code)
{
	assert((size_t)code < ARRAY_SIZE(CODES));
	return CODES[code].exit;
}

int error_grpc_status(enum error_code code)
{
	assert((size_t)code < ARRAY_SIZE(CODES));
	return CODES[code].grpc;
}

enum error_code error_code_from_grpc(int grpc_status)
{
	for (size_t i = 0; i < ARRAY_SIZE(CODES); i++) {
		if (CODES[i].grpc == grpc_status)
			return (enum error_code)i;
	}
	/* 1 cancelled, 4 deadline: the work may be tried again; the rest is nobody's promise. */
	return grpc_status == 1 || grpc_status == 4 ? ERROR_UNAVAILABLE : ERROR_INTERNAL;
}
