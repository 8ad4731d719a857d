#include "text/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *data, size_t length, struct buf *out)
{
	const uint8_t *bytes = data;
	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		uint32_t group = (uint32_t)bytes[i] << 16;
		if (left > 1)
			group |= (uint32_t)bytes[i + 1] << 8;
		if (left > 2)
			group |= bytes[i + 2];
		buf_add_char(out, alphabet[group >> 18]);
		buf_add_char(out, alphabet[group >> 12 & 63]);
		buf_add_char(out, left > 1 ? alphabet[group >> 6 & 63] : '=');
		buf_add_char(out, left > 2 ? alphabet[group & 63] : '=');
	}
}

bool base64_decode(const char *text, struct buf *out)
{
	size_t length = strlen(text);
	if (length % 4 != 0)
		return false;
	size_t padding = 0;
	while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < length; i += 4) {
		uint32_t group = 0;
		for (size_t k = i; k < i + 4; k++) {
			const char *at =
				k < length - padding ? strchr(alphabet, text[k]) : alphabet;
			if (!at || *at == '\0')
				return false;
			group = group << 6 | (uint32_t)(at - alphabet);
		}
		size_t bytes = i + 4 == length ? 3 - padding : 3;
		for (size_t k = 0; k < bytes; k++)
			buf_add_char(out, (char)(group >> (16 - 8 * k) & 255));
	}
	return true;
}
