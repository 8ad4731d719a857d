#include "base/id.h"

static const char ALPHABET[] = "0123456789abcdefghjkmnpqrstvwxyz";

void id_format(char out[ID_SIZE], const char *prefix, struct wall now,
	       const uint8_t random[ID_RANDOM_SIZE])
{
	uint8_t bits[16];
	size_t at = strlen(prefix);
	unsigned int held = 0, held_bits = 2; /* 130 = 26 * 5 bits: two zero bits lead */
	size_t next = 0;

	assert(at > 0 && at <= 8);
	assert(now.ms >= 0 && now.ms < (int64_t)1 << 48);
	for (int i = 0; i < 6; i++)
		bits[i] = (uint8_t)((uint64_t)now.ms >> (40 - 8 * i));
	memcpy(bits + 6, random, ID_RANDOM_SIZE);

	memcpy(out, prefix, at);
	out[at++] = '_';
	for (int i = 0; i < ID_ULID_LENGTH; i++) {
		if (held_bits < 5) {
			held = (held & 0xff) << 8 | bits[next++];
			held_bits += 8;
		}
		held_bits -= 5;
		out[at++] = ALPHABET[held >> held_bits & 31];
	}
	out[at] = '\0';
}

bool id_valid(const char *text, const char *prefix)
{
	size_t prefix_length = strlen(prefix);

	if (!str_starts(text, prefix) || text[prefix_length] != '_')
		return false;
	text += prefix_length + 1;
	if (strlen(text) != ID_ULID_LENGTH || text[0] > '7')
		return false;
	return strspn(text, ALPHABET) == ID_ULID_LENGTH;
}
