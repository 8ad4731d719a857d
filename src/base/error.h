/*
 * error: the one shape of failure.
 *
 * A function that can fail is `MUST_CHECK bool f(..., T *ret_x, struct error *error)`: true means
 * done and ret_x set; false means *error set and ret_x untouched. `struct error` is a plain value on
 * the caller's stack: never allocated, never freed, never NULL. A failing line is one line:
 *
 *     return error_os(error, "open '%s'", path);
 *
 * Callers add what they were doing with error_wrap(), so messages read from the outside in:
 * "load pending releases: open '/var/lib/bcd/releasing.json': Permission denied".
 *
 * Messages   say what was tried, on which thing (named in single quotes), and why it failed; lower
 *            case, no full stop. The hint is a sentence that tells a person what to do next.
 * Truncation shows as "…" at the end.
 * Pure       no syscall; errno is read by error_os() only.
 */
#pragma once

#include "base/base.h"

#define ERROR_WHAT_SIZE  480
#define ERROR_HINT_SIZE  240
#define ERROR_FIELD_SIZE 96

/* The kinds, each mapped once to an API code, an HTTP status, a gRPC status and an exit code. */
enum error_code {
	ERROR_NONE,                /* not failed; the value of a zeroed struct */
	ERROR_INVALID_INPUT,       /* what the caller gave can't be right, whatever the state */
	ERROR_INVALID_CONFIG,      /* a configuration file or policy is wrong */
	ERROR_UNAUTHENTICATED,     /* who are you? */
	ERROR_FORBIDDEN,           /* you may not */
	ERROR_NOT_FOUND,           /* no such thing; also ENOENT of a file */
	ERROR_CONFLICT,            /* somebody else was there first, or other input under one key */
	ERROR_INVALID_STATE,       /* the thing isn't in a state that allows it */
	ERROR_RESOURCES_EXHAUSTED, /* no room: capacity, quota, a bound that was passed */
	ERROR_RATE_LIMITED,        /* later */
	ERROR_UNAVAILABLE,         /* can't be reached now; try again */
	ERROR_INTERNAL,            /* our fault, or the machine's (disk full, I/O error) */
};

struct error {
	enum error_code code;
	int os;                       /* errno, or 0 */
	char field[ERROR_FIELD_SIZE]; /* the input's field: "devices[0].count"; "" if none */
	char what[ERROR_WHAT_SIZE];
	char hint[ERROR_HINT_SIZE]; /* "" if none */
};

/* Setters: fill *error and return false. */
bool error_set(struct error *error, enum error_code code, const char *format, ...) PRINTF(3, 4);
bool error_os(struct error *error, const char *format, ...) PRINTF(2, 3); /* adds strerror(errno) */
bool error_field(struct error *error, const char *field, const char *format, ...)
	PRINTF(3, 4); /* INVALID_INPUT; message is "field: ..." */

/* Puts "text: " before the message; keeps code, field and hint. Returns false. */
bool error_wrap(struct error *error, const char *format, ...) PRINTF(2, 3);

/* Sets the sentence that says what to do. Returns false. */
bool error_hint(struct error *error, const char *format, ...) PRINTF(2, 3);

/* The code's API name, such as "INVALID_INPUT"; "NONE" for ERROR_NONE. Never NULL. */
const char *error_code_name(enum error_code code);
bool error_code_parse(const char *name, enum error_code *ret_code); /* false: unknown, untouched */

int error_http_status(enum error_code code); /* 400 ... 500; 200 for ERROR_NONE */
int error_exit_status(enum error_code code); /* ux: 0 done, 1 failed, 2 usage, 3 refused, 4, 5 */
int error_grpc_status(enum error_code code); /* a google.rpc.Code number */
enum error_code error_code_from_grpc(int grpc_status);
