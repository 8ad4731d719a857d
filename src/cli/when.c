#include "cli/when.h"
#include "base/duration.h"
#include "base/utc.h"

#include <stdio.h>
#include <time.h>

#define DAY_MS       ((int64_t)24 * 60 * 60 * 1000)
#define START_MAX_MS (366 * DAY_MS)
#define PAST_MAX_MS  (3660 * DAY_MS)

/* Exactly `digits` decimal digits at *text, which moves on. */
static bool take_number(const char **text, int digits, int *ret_number)
{
	int number = 0;

	for (int i = 0; i < digits; i++) {
		char c = (*text)[i];
		if (c < '0' || c > '9')
			return false;
		number = number * 10 + (c - '0');
	}
	*text += digits;
	*ret_number = number;
	return true;
}

static bool take_char(const char **text, const char *any_of)
{
	if (!**text || !strchr(any_of, **text))
		return false;
	++*text;
	return true;
}

static bool take_fraction(const char **text, int *ret_ms)
{
	int ms = 0, scale = 100;

	*ret_ms = 0;
	if (**text != '.')
		return true;
	++*text;
	if (**text < '0' || **text > '9')
		return false;
	for (; **text >= '0' && **text <= '9'; ++*text, scale /= 10)
		ms += (**text - '0') * scale;
	*ret_ms = ms;
	return true;
}

static bool take_offset(const char **text, int *ret_minutes)
{
	int sign = **text == '-' ? -1 : 1, hours, minutes;

	*ret_minutes = 0;
	if (take_char(text, "zZ"))
		return true;
	if (!take_char(text, "+-") || !take_number(text, 2, &hours) || !take_char(text, ":") ||
	    !take_number(text, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	*ret_minutes = sign * (hours * 60 + minutes);
	return true;
}

bool when_parse(const char *text, struct wall *ret_time)
{
	struct tm tm = {0};
	int ms, offset;

	if (!take_number(&text, 4, &tm.tm_year) || !take_char(&text, "-") ||
	    !take_number(&text, 2, &tm.tm_mon) || !take_char(&text, "-") ||
	    !take_number(&text, 2, &tm.tm_mday) || !take_char(&text, "Tt ") ||
	    !take_number(&text, 2, &tm.tm_hour) || !take_char(&text, ":") ||
	    !take_number(&text, 2, &tm.tm_min) || !take_char(&text, ":") ||
	    !take_number(&text, 2, &tm.tm_sec) || !take_fraction(&text, &ms) ||
	    !take_offset(&text, &offset) || *text)
		return false;
	if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_hour > 23 ||
	    tm.tm_min > 59 || tm.tm_sec > 60)
		return false;
	int day = tm.tm_mday, month = tm.tm_mon;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	int64_t seconds = timegm(&tm);
	if (tm.tm_sec < 60 && (tm.tm_mday != day || tm.tm_mon + 1 != month))
		return false; /* such as February 30 */
	*ret_time = (struct wall){(seconds - (int64_t)offset * 60) * 1000 + ms};
	return true;
}

void when_format(char out[WHEN_SIZE], struct wall time)
{
	utc_format_ms(out, time);
}

void when_format_exact(char out[WHEN_SIZE], struct wall time)
{
	char text[UTC_SIZE];

	utc_format(text, time);
	snprintf(out, WHEN_SIZE, "%.10s %.5s UTC", text, text + UTC_DATE_SIZE);
}

void when_format_second(char out[WHEN_SIZE], struct wall time)
{
	char text[UTC_SIZE];

	utc_format(text, time);
	snprintf(out, WHEN_SIZE, "%.10s %.8s UTC", text, text + UTC_DATE_SIZE);
}

void when_format_relative(char out[WHEN_SIZE], struct wall time, struct wall now)
{
	char text[DURATION_TEXT_SIZE];
	int64_t ms = time.ms - now.ms;

	if (ms > -1000 && ms < 1000) {
		str_copy(out, WHEN_SIZE, "now");
		return;
	}
	duration_format_short(text, ms < 0 ? -ms : ms);
	snprintf(out, WHEN_SIZE, ms < 0 ? "%s ago" : "in %s", text);
}

/* RFC 3339, or a duration, which *ret_ms is then; `meaning` says what a duration counts from. */
static bool parse_either(const char *text, const char *field, int64_t max_ms, const char *meaning,
			 struct wall *ret_time, int64_t *ret_ms, struct error *error)
{
	*ret_ms = -1;
	if (when_parse(text, ret_time))
		return true;
	if (strchr(text, '-') || strchr(text, ':') || text[0] < '0' || text[0] > '9') {
		error_field(error, field, "'%s' is not a time", text);
		return error_hint(error, "Write it as 2026-11-30T09:00:00Z, or as a duration %s.",
				  meaning);
	}
	return duration_parse(text, field, 0, max_ms, ret_ms, error);
}

bool when_parse_start(const char *text, const char *field, struct wall now, struct wall *ret_time,
		      struct error *error)
{
	struct wall time;
	int64_t ms;

	if (!parse_either(text, field, START_MAX_MS, "from now such as 8h", &time, &ms, error))
		return false;
	ret_time->ms = ms < 0 ? time.ms : now.ms + ms;
	return true;
}

bool when_parse_past(const char *text, const char *field, struct wall now, struct wall *ret_time,
		     struct error *error)
{
	struct wall time;
	int64_t ms;

	if (!parse_either(text, field, PAST_MAX_MS, "ago such as 7d", &time, &ms, error))
		return false;
	ret_time->ms = ms < 0 ? time.ms : now.ms - ms;
	return true;
}
