#include "control/core/timestamp.h"

#include "base/utc.h"

#define MS_A_DAY ((int64_t)24 * 60 * 60 * 1000)
#define MAX_YEAR 9999
#define MAX_MS   ((int64_t)253402300799999) /* the last millisecond of that year */

/* Days since 1970-01-01 of a date of the Gregorian calendar: in years that begin in
 * March, a leap day is the last day, and 400 years are 146097 days. */
static int64_t days_of(int64_t year, int month, int day)
{
	int64_t era, year_of_era, day_of_year;

	year -= month <= 2;
	era = year / 400;
	year_of_era = year % 400;
	day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
	       day_of_year - 719468;
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return month == 2 && leap ? 29 : days[month - 1];
}

/* Exactly `digits` digits, between min and max; moves *at past them. */
static bool take_number(const char **at, int digits, int min, int max, int *ret_number)
{
	int number = 0;

	for (int i = 0; i < digits; i++) {
		char c = (*at)[i];

		if (c < '0' || c > '9')
			return false;
		number = number * 10 + (c - '0');
	}
	if (number < min || number > max)
		return false;
	*at += digits;
	*ret_number = number;
	return true;
}

static bool take(const char **at, char wanted)
{
	if (**at != wanted)
		return false;
	(*at)++;
	return true;
}

/* ".123456789": milliseconds of it. */
static bool take_fraction(const char **at, int *ret_ms)
{
	int digits = 0, ms = 0;

	for (; (*at)[digits] >= '0' && (*at)[digits] <= '9'; digits++) {
		if (digits < 3)
			ms = ms * 10 + ((*at)[digits] - '0');
	}
	if (digits < 1 || digits > 9)
		return false;
	for (int i = digits; i < 3; i++)
		ms *= 10;
	*at += digits;
	*ret_ms = ms;
	return true;
}

/* "Z" or "+01:30": milliseconds to take off. */
static bool take_offset(const char **at, int64_t *ret_ms)
{
	int hours, minutes;
	int64_t sign = **at == '-' ? -1 : 1;

	if (take(at, 'Z') || take(at, 'z')) {
		*ret_ms = 0;
		return true;
	}
	if (!take(at, '+') && !take(at, '-'))
		return false;
	if (!take_number(at, 2, 0, 23, &hours) || !take(at, ':') ||
	    !take_number(at, 2, 0, 59, &minutes))
		return false;
	*ret_ms = sign * (hours * 60 + minutes) * 60000;
	return true;
}

static bool parse(const char *at, struct wall *ret_time)
{
	int year, month, day, hour, minute, second, ms = 0;
	int64_t offset;

	if (!take_number(&at, 4, 1970, MAX_YEAR, &year) || !take(&at, '-') ||
	    !take_number(&at, 2, 1, 12, &month) || !take(&at, '-') ||
	    !take_number(&at, 2, 1, days_in_month(year, month), &day))
		return false;
	if (!take(&at, 'T') && !take(&at, 't'))
		return false;
	if (!take_number(&at, 2, 0, 23, &hour) || !take(&at, ':') ||
	    !take_number(&at, 2, 0, 59, &minute) || !take(&at, ':') ||
	    !take_number(&at, 2, 0, 59, &second))
		return false;
	if (take(&at, '.') && !take_fraction(&at, &ms))
		return false;
	if (!take_offset(&at, &offset) || *at != '\0')
		return false;
	ret_time->ms = days_of(year, month, day) * MS_A_DAY +
		       ((hour * 60 + minute) * 60 + second) * INT64_C(1000) + ms - offset;
	return ret_time->ms >= 0 && ret_time->ms <= MAX_MS;
}

bool timestamp_parse(const char *text, const char *field, struct wall *ret_time,
		     struct error *error)
{
	struct wall time;

	if (!parse(text, &time)) {
		error_field(error, field, "'%.40s' is not a time", text);
		return error_hint(error, "Write it as in 2026-11-30T02:00:00Z.");
	}
	*ret_time = time;
	return true;
}

void timestamp_format(char out[TIMESTAMP_SIZE], struct wall time)
{
	char text[UTC_SIZE];

	assert(time.ms >= 0 && time.ms <= MAX_MS);
	utc_format_ms(text, time);
	str_copy(out, TIMESTAMP_SIZE, text);
}
