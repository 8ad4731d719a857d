/*
 * pair: a client's and a server's session that talk in memory, in pieces of any size, on a clock of
 * ours.
 */
#pragma once

#include "lib/test.h"
#include "rpc/core/call.h"

struct pair {
	struct session *client, *server;
	struct mono now;
	size_t piece; /* bytes a session_receive() */
};

extern const struct session_method pair_methods[3];
#define PAIR_UNARY  "/t/Unary"  /* one request, at most 4 MiB */
#define PAIR_STREAM "/t/Stream" /* any number of at most 4 MiB */
#define PAIR_SMALL  "/t/Small"  /* one request, at most 8 bytes */

struct pair *pair_create(void); /* both up, their SESSION_UP taken, and nothing under way */
void pair_destroy(struct pair *pair);

/* Moves bytes both ways until neither has any left. */
void pair_move(struct pair *pair);
/* Moves what the client has, once; nothing comes back. */
void pair_move_up(struct pair *pair);
/* Lets time go by and both tick; fails the test when one breaks. */
void pair_wait(struct pair *pair, int64_t ms);

/* A new call of the client without a deadline. */
struct call *pair_request(struct pair *pair, const char *path);

/* The next event must be of this kind. Its message is the caller's. */
struct session_event pair_expect(struct session *session, enum session_event_kind kind);
void pair_expect_message(struct session *session, const char *text);
void pair_expect_end(struct session *session, enum rpc_code code, const char *text);
void pair_expect_none(struct session *session);

/* One HTTP/2 frame as raw bytes. */
void pair_frame(struct buf *out, uint8_t type, uint8_t flags, uint32_t stream, const void *data,
		size_t length);
/* A header field, appended to a block as a literal that needs no table. */
void pair_field(struct buf *block, const char *name, const char *value);
#define PAIR_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
