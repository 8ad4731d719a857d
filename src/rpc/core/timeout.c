#include "rpc/core/timeout.h"

#include <stdio.h>

#define TIMEOUT_MAX_DIGITS 8
#define TIMEOUT_MAX_NUMBER INT64_C(99999999)

/* Milliseconds a unit, or 0; below a millisecond the units a millisecond go to *ret_parts. */
static int64_t unit_ms(uint8_t unit, int64_t *ret_parts)
{
	*ret_parts = 1;
	switch (unit) {
	case 'H':
		return 3600000;
	case 'M':
		return 60000;
	case 'S':
		return 1000;
	case 'm':
		return 1;
	case 'u':
		*ret_parts = 1000;
		return 1;
	case 'n':
		*ret_parts = 1000000;
		return 1;
	default: /* any other byte a peer may send */
		return 0;
	}
}

bool timeout_parse(const uint8_t *text, size_t length, int64_t *ret_ms)
{
	int64_t number = 0, parts;
	if (length < 2 || length > TIMEOUT_MAX_DIGITS + 1)
		return false;
	for (size_t i = 0; i < length - 1; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		number = number * 10 + (text[i] - '0');
	}
	int64_t ms = unit_ms(text[length - 1], &parts);
	if (ms == 0)
		return false;
	*ret_ms = (number * ms + parts - 1) / parts;
	return true;
}

void timeout_format(char out[TIMEOUT_SIZE], int64_t ms)
{
	static const struct {
		int64_t ms;
		char unit;
	} units[] = {{1, 'm'}, {1000, 'S'}, {60000, 'M'}, {3600000, 'H'}};
	if (ms < 1)
		ms = 1;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		int64_t number = ms / units[i].ms + (ms % units[i].ms != 0);
		bool last = i + 1 == ARRAY_SIZE(units);
		if (number > TIMEOUT_MAX_NUMBER && !last)
			continue;
		if (number > TIMEOUT_MAX_NUMBER)
			number = TIMEOUT_MAX_NUMBER;
		snprintf(out, TIMEOUT_SIZE, "%d%c", (int)number, units[i].unit);
		return;
	}
}
