/*
 * message: protobuf messages to and from bytes, with bounds that protobuf-c lacks.
 *
 * Unpacking  refuses what costs much more memory than it has bytes (a 4 MiB message of empty
 * entries would take 180 MiB), strings that are not UTF-8 (one of them fails the whole call at the
 * kubelet), and strings with a NUL inside (C would read a shorter one than the peer wrote). Packing
 * makes the same checks on what we send. Absent     sub-messages are NULL, absent strings "". Maps
 * are arrays of ...Entry messages. Owns       an unpacked message is freed by message_free(), or by
 * CLEANUP(message) on its pointer. Pure.
 *
 *     MESSAGE_TYPE(allocate_request, V1beta1__AllocateRequest, v1beta1__allocate_request)
 *     ...
 *     CLEANUP(message) V1beta1__AllocateRequest *request = NULL;
 *     if (!allocate_request_unpack(data, length, &request, error))
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <protobuf-c/protobuf-c.h>

/* Memory that one message may take unpacked, scratch space included: a base, and so many times its
 * bytes. */
#define MESSAGE_MEMORY_BASE   ((size_t)64 << 10)
#define MESSAGE_AMPLIFICATION 16
#define MESSAGE_MAX_DEPTH     32 /* messages in messages */

/* INVALID_INPUT with the field's name when the bytes are wrong; RESOURCES_EXHAUSTED past the memory
 * bound. */
MUST_CHECK bool message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data,
			       size_t length, ProtobufCMessage **ret_message, struct error *error);

/* Appends the message's bytes to `out`; on failure `out` is as before. */
MUST_CHECK bool message_pack(const ProtobufCMessage *message, struct buf *out, struct error *error);

void message_free(void *message); /* of message_unpack(); takes NULL */

static inline void message_cleanup(void *slot)
{
	message_free(*(void **)slot);
}

/* Text that a message to be packed borrows; protobuf-c's fields are `char *` but packing only
 * reads. */
static inline char *message_text(const char *text)
{
	return (char *)(uintptr_t)text;
}

/* Typed NAME_unpack() and NAME_pack() of one message; `symbol` is protobuf-c's name for it. */
#define MESSAGE_TYPE(name, type, symbol)                                                           \
	MUST_CHECK UNUSED static inline bool name##_unpack(                                        \
		const uint8_t *data, size_t length, type **ret_message, struct error *error)       \
	{                                                                                          \
		ProtobufCMessage *message;                                                         \
		if (!message_unpack(&symbol##__descriptor, data, length, &message, error))         \
			return false;                                                              \
		*ret_message = (type *)message;                                                    \
		return true;                                                                       \
	}                                                                                          \
	MUST_CHECK UNUSED static inline bool name##_pack(const type *message, struct buf *out,     \
							 struct error *error)                      \
	{                                                                                          \
		return message_pack(&message->base, out, error);                                   \
	}
