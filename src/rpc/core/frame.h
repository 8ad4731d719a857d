/*
 * frame: gRPC messages in a stream of bytes: a flag, a length of four bytes, the message.
 *
 * Messages and HTTP/2 DATA frames have no relation: a message, its prefix too, may come in any
 * pieces. Memory grows with the bytes that came, never with the length that a peer claims. Pure.
 * Source    grpc.io "gRPC over HTTP2", Length-Prefixed-Message.
 */
#pragma once

#include "base/buf.h"

#define FRAME_PREFIX 5

struct frame_reader {
	size_t max; /* largest message allowed */
	uint8_t prefix[FRAME_PREFIX];
	size_t prefix_length;
	size_t expected; /* bytes of the message; known once the prefix is whole */
	struct buf message;
};

enum frame_result {
	FRAME_MORE,       /* all bytes are taken; the message isn't whole yet */
	FRAME_MESSAGE,    /* reader->message is one: take it, then frame_next() */
	FRAME_COMPRESSED, /* the compressed flag is set; we never agreed to that */
	FRAME_BAD_FLAG,
	FRAME_TOO_LARGE,
};

/* Takes bytes from the front of *data. After a result that is an error the reader is of no use. */
enum frame_result frame_read(struct frame_reader *reader, const uint8_t **data, size_t *length);
void frame_next(struct frame_reader *reader);          /* forgets the message that was read */
bool frame_partial(const struct frame_reader *reader); /* the stream ended within a message? */
void frame_deinit(struct frame_reader *reader);

/* Appends a message with its prefix. `length` is below 4 GiB. */
void frame_write(struct buf *out, const void *message, size_t length);
