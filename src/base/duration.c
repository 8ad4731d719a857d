#include "base/duration.h"

#include <stdio.h>

static const struct {
	char letter;
	const char *people;
	int64_t ms;
} UNITS[] = {
	{'d', "d", 86400000},
	{'h', "h", 3600000},
	{'m', "min", 60000},
	{'s', "s", 1000},
};

#define DURATION_UNITS "Its units are d, h, m and s, the larger first"

/* Reads digits; false on none or on a number that can't be a duration. */
static bool read_number(const char **at, int64_t *ret_number)
{
	int64_t number = 0;
	const char *start = *at;

	for (; **at >= '0' && **at <= '9'; (*at)++) {
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, **at - '0', &number))
			return false;
	}
	*ret_number = number;
	return *at > start;
}

/* The sum of the parts, or false when the text isn't a duration at all. */
static bool read_parts(const char *text, int64_t *ret_ms)
{
	int64_t total = 0;
	size_t unit = 0;

	if (!*text)
		return false;
	while (*text) {
		int64_t number, part;

		if (!read_number(&text, &number))
			return false;
		while (unit < ARRAY_SIZE(UNITS) && UNITS[unit].letter != *text)
			unit++;
		if (unit == ARRAY_SIZE(UNITS) ||
		    __builtin_mul_overflow(number, UNITS[unit].ms, &part) ||
		    __builtin_add_overflow(total, part, &total))
			return false;
		unit++;
		text++;
	}
	*ret_ms = total;
	return true;
}

bool duration_parse(const char *text, const char *field, int64_t min_ms, int64_t max_ms,
		    int64_t *ret_ms, struct error *error)
{
	int64_t ms;
	char low[DURATION_TEXT_SIZE], high[DURATION_TEXT_SIZE];

	duration_format(low, min_ms);
	duration_format(high, max_ms);
	if (!read_parts(text, &ms)) {
		error_field(error, field, "'%.40s' is not a duration such as 8h or 1h30m", text);
		if (max_ms == INT64_MAX)
			return error_hint(error, DURATION_UNITS ".");
		return error_hint(error, DURATION_UNITS "; it is from %s to %s.", low, high);
	}
	if (ms < min_ms || ms > max_ms)
		return error_field(error, field, "'%.40s' is not between %s and %s", text, low,
				   high);
	*ret_ms = ms;
	return true;
}

void duration_format(char out[DURATION_TEXT_SIZE], int64_t ms)
{
	size_t at = 0;

	assert(ms >= 0);
	out[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(UNITS); i++) {
		int64_t count = ms / UNITS[i].ms;

		ms %= UNITS[i].ms;
		if (count)
			at += (size_t)snprintf(out + at, DURATION_TEXT_SIZE - at, "%lld%c",
					       (long long)count, UNITS[i].letter);
	}
	if (!at)
		str_copy(out, DURATION_TEXT_SIZE, "0s");
}

void duration_format_short(char out[DURATION_TEXT_SIZE], int64_t ms)
{
	assert(ms >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(UNITS); i++) {
		int64_t count = ms / UNITS[i].ms, rest;

		if (!count)
			continue;
		rest = i + 1 < ARRAY_SIZE(UNITS) ? ms % UNITS[i].ms / UNITS[i + 1].ms : 0;
		if (rest)
			snprintf(out, DURATION_TEXT_SIZE, "%lld %s %lld %s", (long long)count,
				 UNITS[i].people, (long long)rest, UNITS[i + 1].people);
		else
			snprintf(out, DURATION_TEXT_SIZE, "%lld %s", (long long)count,
				 UNITS[i].people);
		return;
	}
	snprintf(out, DURATION_TEXT_SIZE, "%lld ms", (long long)ms);
}
