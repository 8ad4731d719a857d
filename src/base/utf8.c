#include "base/utf8.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

static size_t length_by_first_byte(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >> 5 == 6)
		return 2;
	if (first >> 4 == 14)
		return 3;
	return first >> 3 == 30 ? 4 : 0;
}

size_t utf8_length(const char *text)
{
	static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = length_by_first_byte(bytes[0]);
	uint32_t point;

	if (length < 2)
		return length;
	point = bytes[0] & (0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		if (bytes[i] >> 6 != 2)
			return 0;
		point = point << 6 | (bytes[i] & 0x3fu);
	}
	/* overlong, beyond Unicode, or half a UTF-16 pair */
	return point < LEAST[length] || point > 0x10ffff || point >> 11 == 27 ? 0 : length;
}

bool utf8_valid(const char *text)
{
	while (*text) {
		size_t length = utf8_length(text);

		if (length == 0)
			return false;
		text += length;
	}
	return true;
}

void utf8_add_clean(struct buf *out, const char *text)
{
	while (*text) {
		size_t length = utf8_length(text);

		if (length)
			buf_add(out, text, length);
		else
			buf_add_text(out, UTF8_REPLACEMENT);
		text += length ? length : 1;
	}
}
