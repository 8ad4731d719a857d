#include "proto/message.h"

#include <stdio.h>

/* --- memory --- */

struct budget {
	size_t left;
	bool exceeded;
};

static void *budget_alloc(void *data, size_t size)
{
	struct budget *budget = data;
	if (size > budget->left) {
		budget->exceeded = true;
		return NULL;
	}
	budget->left -= size;
	return mem_alloc(size);
}

/* Freed memory is not given back to the budget: it bounds the work too, and needs no bookkeeping.
 */
static void budget_free(void *data, void *memory)
{
	(void)data;
	free(memory);
}

/* --- checking encoded bytes against the descriptor --- */

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
};

struct reader {
	const uint8_t *data;
	size_t length;
};

static bool read_varint(struct reader *reader, uint64_t *ret_value)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		if (!reader->length)
			return false;
		uint8_t byte = *reader->data++;
		reader->length--;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static bool read_skip(struct reader *reader, uint64_t length)
{
	if (length > reader->length)
		return false;
	reader->data += length;
	reader->length -= (size_t)length;
	return true;
}

/* The length of the UTF-8 sequence at `text`, or 0: no overlong forms, no surrogates, no NUL. */
static size_t utf8_sequence(const uint8_t *text, size_t length)
{
	uint8_t first = text[0];
	if (first < 0x80)
		return first ? 1 : 0;
	size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	if (first < 0xc2 || first > 0xf4 || size > length)
		return 0;
	for (size_t i = 1; i < size; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
	    (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f))
		return 0;
	return size;
}

static bool check_text(const ProtobufCMessageDescriptor *descriptor,
		       const ProtobufCFieldDescriptor *field, struct reader text,
		       struct error *error)
{
	while (text.length) {
		size_t size = utf8_sequence(text.data, text.length);
		if (!size) {
			char name[ERROR_FIELD_SIZE];
			snprintf(name, sizeof name, "%s.%s", descriptor->name, field->name);
			return error_field(error, name,
					   text.data[0] ? "text is not UTF-8"
							: "text has a NUL byte in it");
		}
		text.data += size;
		text.length -= size;
	}
	return true;
}

static bool malformed(const ProtobufCMessageDescriptor *descriptor, struct error *error)
{
	return error_set(error, ERROR_INVALID_INPUT, "message '%s': not a valid encoding",
			 descriptor->name);
}

static bool check_message(const ProtobufCMessageDescriptor *descriptor, struct reader reader,
			  unsigned depth, struct error *error);

static bool check_bytes(const ProtobufCMessageDescriptor *descriptor, unsigned number,
			struct reader value, unsigned depth, struct error *error)
{
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field(descriptor, number);
	if (!field)
		return true;
	if (field->type == PROTOBUF_C_TYPE_STRING)
		return check_text(descriptor, field, value, error);
	if (field->type == PROTOBUF_C_TYPE_MESSAGE)
		return check_message(field->descriptor, value, depth + 1, error);
	return true;
}

/* Numbers are left to protobuf-c; what it doesn't look at is checked here. */
static bool check_message(const ProtobufCMessageDescriptor *descriptor, struct reader reader,
			  unsigned depth, struct error *error)
{
	if (depth > MESSAGE_MAX_DEPTH)
		return error_set(error, ERROR_INVALID_INPUT,
				 "message '%s': more than %d messages in one another",
				 descriptor->name, MESSAGE_MAX_DEPTH);
	while (reader.length) {
		uint64_t tag, value;
		/* Field numbers go from 1 to 2^29 - 1. */
		bool whole = read_varint(&reader, &tag) && tag >> 3 && tag <= UINT32_MAX;
		if (whole && (tag & 7) == WIRE_VARINT)
			whole = read_varint(&reader, &value);
		else if (whole && (tag & 7) == WIRE_FIXED64)
			whole = read_skip(&reader, 8);
		else if (whole && (tag & 7) == WIRE_FIXED32)
			whole = read_skip(&reader, 4);
		else if (whole && (tag & 7) == WIRE_BYTES) {
			whole = read_varint(&reader, &value);
			struct reader bytes = {reader.data, (size_t)value};
			whole = whole && read_skip(&reader, value);
			if (whole &&
			    !check_bytes(descriptor, (unsigned)(tag >> 3), bytes, depth, error))
				return false;
		} else
			whole = false;
		if (!whole)
			return malformed(descriptor, error);
	}
	return true;
}

/* --- the two ways --- */

bool message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data,
		    size_t length, ProtobufCMessage **ret_message, struct error *error)
{
	if (!check_message(descriptor, (struct reader){data, length}, 0, error))
		return false;
	assert(length <= (SIZE_MAX - MESSAGE_MEMORY_BASE) / MESSAGE_AMPLIFICATION);
	struct budget budget = {.left = MESSAGE_MEMORY_BASE + length * MESSAGE_AMPLIFICATION};
	size_t allowed = budget.left;
	ProtobufCAllocator allocator = {
		.alloc = budget_alloc, .free = budget_free, .allocator_data = &budget};
	ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, &allocator, length, data);
	if (!message && budget.exceeded)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "message '%s': %zu bytes need more than %zu bytes of memory",
				 descriptor->name, length, allowed);
	if (!message)
		return malformed(descriptor, error);
	*ret_message = message;
	return true;
}

bool message_pack(const ProtobufCMessage *message, struct buf *out, struct error *error)
{
	size_t before = out->length;
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = buf_extend(out, size);
	size_t packed = protobuf_c_message_pack(message, bytes);
	assert(packed == size);
	if (check_message(message->descriptor, (struct reader){bytes, size}, 0, error))
		return true;
	out->length = before;
	return false;
}

void message_free(void *message)
{
	if (message)
		protobuf_c_message_free_unpacked(message, NULL);
}
