#include "sys/random.h"

#include <unistd.h>

#define RANDOM_STEP 256 /* what getentropy() gives at once */

/* getentropy() is getrandom() without flags; libc's <sys/random.h> is hidden by our own. */
void random_bytes(void *out, size_t length)
{
	uint8_t *at = out;

	while (length > 0) {
		size_t step = length < RANDOM_STEP ? length : RANDOM_STEP;

		if (getentropy(at, step) < 0)
			abort();
		at += step;
		length -= step;
	}
}

uint64_t random_below(uint64_t bound)
{
	uint64_t value, fair;

	assert(bound > 0);
	fair = UINT64_MAX - UINT64_MAX % bound; /* whole multiples of bound only: no bias */
	do
		random_bytes(&value, sizeof value);
	while (value >= fair);
	return value % bound;
}

void random_id(char out[ID_SIZE], const char *prefix, struct wall now)
{
	uint8_t bytes[ID_RANDOM_SIZE];

	random_bytes(bytes, sizeof bytes);
	id_format(out, prefix, now, bytes);
}
