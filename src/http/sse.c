#include "http/sse.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

void sse_deinit(struct sse *sse)
{
	buf_deinit(&sse->line);
	buf_deinit(&sse->data);
}

static bool add_data(struct sse *sse, const char *value, size_t length, struct error *error)
{
	if (sse->data.length + length >= SSE_MAX_EVENT)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "an event is larger than %zu bytes", SSE_MAX_EVENT);
	buf_add(&sse->data, value, length);
	buf_add_char(&sse->data, '\n');
	return true;
}

/* An id that can't be sent back is none. */
static void take_id(struct sse *sse, const char *value, size_t length)
{
	if (length >= SSE_ID_SIZE || memchr(value, '\0', length))
		return;
	memcpy(sse->id, value, length);
	sse->id[length] = '\0';
}

static bool field_is(const char *line, size_t name_length, const char *name)
{
	return name_length == strlen(name) && memcmp(line, name, name_length) == 0;
}

static bool take_field(struct sse *sse, const char *line, size_t length, struct error *error)
{
	const char *colon = memchr(line, ':', length), *end = line + length;
	size_t name_length = colon ? (size_t)(colon - line) : length;
	const char *value = colon ? colon + 1 : end;

	if (value < end && *value == ' ')
		value++;
	if (field_is(line, name_length, "data"))
		return add_data(sse, value, (size_t)(end - value), error);
	if (field_is(line, name_length, "id"))
		take_id(sse, value, (size_t)(end - value));
	return true; /* a comment, or what means nothing here */
}

/* An empty line ends an event; one without data is none. */
static bool take_line(struct sse *sse, sse_fn *on_event, void *arg, struct error *error)
{
	const char *line = buf_text(&sse->line);
	size_t length = sse->line.length, mark = strlen(BYTE_ORDER_MARK);
	bool ok = true;

	if (!sse->begun && length >= mark && memcmp(line, BYTE_ORDER_MARK, mark) == 0) {
		line += mark;
		length -= mark;
	}
	sse->begun = true;
	if (length > 0) {
		ok = take_field(sse, line, length, error);
	} else if (sse->data.length > 0) {
		sse->data.length--;
		sse->data.data[sse->data.length] = '\0';
		ok = on_event(arg, buf_text(&sse->data), sse->data.length, error);
		buf_clear(&sse->data);
	}
	buf_clear(&sse->line);
	return ok;
}

bool sse_read(struct sse *sse, const char *bytes, size_t length, sse_fn *on_event, void *arg,
	      struct error *error)
{
	for (size_t i = 0; i < length; i++) {
		bool returned = sse->after_return;

		sse->after_return = bytes[i] == '\r';
		if (bytes[i] == '\n' && returned)
			continue;
		if (bytes[i] == '\n' || bytes[i] == '\r') {
			if (!take_line(sse, on_event, arg, error))
				return false;
			continue;
		}
		if (sse->line.length >= SSE_MAX_EVENT)
			return error_set(error, ERROR_RESOURCES_EXHAUSTED,
					 "a line of an event is larger than %zu bytes",
					 SSE_MAX_EVENT);
		buf_add_char(&sse->line, bytes[i]);
	}
	return true;
}
