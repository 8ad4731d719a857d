#include "rpc/core/metadata.h"

static bool is_binary(const char *name)
{
	return str_ends(name, "-bin");
}

static bool is_name(const char *name)
{
	return *name && name[strspn(name, "0123456789abcdefghijklmnopqrstuvwxyz_-.")] == '\0';
}

static struct metadata_entry *add(struct metadata *metadata, const void *name, size_t name_length,
				  const void *value, size_t length)
{
	struct metadata_entry *entry = vec_push(metadata);
	entry->name = mem_alloc(name_length + 1);
	memcpy(entry->name, name, name_length);
	entry->value = mem_alloc(length + 1);
	if (length)
		memcpy(entry->value, value, length);
	entry->length = length;
	return entry;
}

void metadata_add(struct metadata *metadata, const char *name, const void *value, size_t length)
{
	assert(is_name(name));
	struct metadata_entry *entry = add(metadata, name, strlen(name), value, length);
	if (is_binary(name))
		return;
	for (size_t i = 0; i < length; i++)
		if (entry->value[i] < 0x20 || entry->value[i] > 0x7e)
			entry->value[i] = '?';
}

static int base64_value(uint8_t digit)
{
	if (digit >= 'A' && digit <= 'Z')
		return digit - 'A';
	if (digit >= 'a' && digit <= 'z')
		return digit - 'a' + 26;
	if (digit >= '0' && digit <= '9')
		return digit - '0' + 52;
	return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

/* With or without padding, as gRPC wants it. Several values joined by commas: the first counts. */
static bool base64_decode(struct buf *out, const uint8_t *text, size_t length)
{
	const uint8_t *comma = length ? memchr(text, ',', length) : NULL;
	uint32_t bits = 0;
	if (comma)
		length = (size_t)(comma - text);
	size_t padding = length && length % 4 == 0 ? 2 : 0;
	for (; padding && text[length - 1] == '='; padding--)
		length--;
	if (length % 4 == 1)
		return false;
	for (size_t i = 0; i < length; i++) {
		int value = base64_value(text[i]);
		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t)value;
		if (i % 4 != 0)
			buf_add_char(out, (char)(bits >> (6 - i % 4 * 2)));
	}
	return true;
}

bool metadata_add_wire(struct metadata *metadata, const uint8_t *name, size_t name_length,
		       const uint8_t *value, size_t length)
{
	struct metadata_entry *entry = add(metadata, name, name_length, value, length);
	if (!is_binary(entry->name))
		return true;
	CLEANUP(buf) struct buf bytes = {0};
	if (!base64_decode(&bytes, value, length))
		return false;
	memcpy(entry->value, buf_text(&bytes), bytes.length + 1);
	entry->length = bytes.length;
	return true;
}

void metadata_value_encode(struct buf *out, const struct metadata_entry *entry)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	if (!is_binary(entry->name)) {
		buf_add(out, entry->value, entry->length);
		return;
	}
	for (size_t i = 0; i < entry->length; i += 3) {
		size_t left = entry->length - i;
		uint32_t bits = (uint32_t)entry->value[i] << 16;
		if (left > 1)
			bits |= (uint32_t)entry->value[i + 1] << 8;
		if (left > 2)
			bits |= entry->value[i + 2];
		for (size_t digit = 0; digit < (left > 2 ? 4 : left + 1); digit++)
			buf_add_char(out, digits[bits >> (18 - digit * 6) & 63]);
	}
}

const struct metadata_entry *metadata_find(const struct metadata *metadata, const char *name)
{
	for (size_t i = 0; i < metadata->count; i++)
		if (str_equal(metadata->items[i].name, name))
			return &metadata->items[i];
	return NULL;
}

void metadata_deinit(struct metadata *metadata)
{
	for (size_t i = 0; i < metadata->count; i++) {
		free(metadata->items[i].name);
		free(metadata->items[i].value);
	}
	vec_deinit(metadata);
}
