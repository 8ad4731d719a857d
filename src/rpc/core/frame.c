#include "rpc/core/frame.h"

/* A reader keeps its buffer from message to message, unless a large one has made it large. */
#define FRAME_KEEP ((size_t)64 << 10)

static size_t take(size_t wanted, const uint8_t **data, size_t *length, const uint8_t **ret_bytes)
{
	size_t taken = wanted < *length ? wanted : *length;
	*ret_bytes = *data;
	*data += taken;
	*length -= taken;
	return taken;
}

static enum frame_result check_prefix(struct frame_reader *reader)
{
	const uint8_t *prefix = reader->prefix;
	if (prefix[0] > 1)
		return FRAME_BAD_FLAG;
	if (prefix[0] == 1)
		return FRAME_COMPRESSED;
	reader->expected = (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 |
			   (size_t)prefix[3] << 8 | prefix[4];
	return reader->expected > reader->max ? FRAME_TOO_LARGE : FRAME_MORE;
}

enum frame_result frame_read(struct frame_reader *reader, const uint8_t **data, size_t *length)
{
	const uint8_t *bytes;
	if (reader->prefix_length < FRAME_PREFIX) {
		size_t taken = take(FRAME_PREFIX - reader->prefix_length, data, length, &bytes);
		if (taken)
			memcpy(reader->prefix + reader->prefix_length, bytes, taken);
		reader->prefix_length += taken;
		if (reader->prefix_length < FRAME_PREFIX)
			return FRAME_MORE;
		enum frame_result result = check_prefix(reader);
		if (result != FRAME_MORE)
			return result;
	}
	size_t taken = take(reader->expected - reader->message.length, data, length, &bytes);
	if (taken)
		buf_add(&reader->message, bytes, taken);
	return reader->message.length == reader->expected ? FRAME_MESSAGE : FRAME_MORE;
}

void frame_next(struct frame_reader *reader)
{
	reader->prefix_length = 0;
	reader->expected = 0;
	if (reader->message.capacity > FRAME_KEEP)
		buf_deinit(&reader->message);
	buf_clear(&reader->message);
}

bool frame_partial(const struct frame_reader *reader)
{
	return reader->prefix_length > 0;
}

void frame_deinit(struct frame_reader *reader)
{
	buf_deinit(&reader->message);
}

void frame_write(struct buf *out, const void *message, size_t length)
{
	assert(length <= UINT32_MAX);
	uint8_t *prefix = buf_extend(out, FRAME_PREFIX);
	prefix[0] = 0;
	prefix[1] = (uint8_t)(length >> 24);
	prefix[2] = (uint8_t)(length >> 16);
	prefix[3] = (uint8_t)(length >> 8);
	prefix[4] = (uint8_t)length;
	if (length)
		buf_add(out, message, length);
}
