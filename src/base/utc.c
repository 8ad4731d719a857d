#include "base/utc.h"

#include <stdio.h>
#include <time.h>

static struct tm parts_of(struct wall time, int *ret_ms)
{
	int ms = (int)((time.ms % 1000 + 1000) % 1000); /* also before 1970 */
	time_t seconds = (time_t)((time.ms - ms) / 1000);
	struct tm parts = {0};

	gmtime_r(&seconds, &parts);
	*ret_ms = ms;
	return parts;
}

void utc_format(char out[UTC_SIZE], struct wall time)
{
	int ms;
	struct tm parts = parts_of(time, &ms);

	snprintf(out, UTC_SIZE, "%04d-%02d-%02dT%02d:%02d:%02dZ", parts.tm_year + 1900,
		 parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

void utc_format_ms(char out[UTC_SIZE], struct wall time)
{
	int ms;
	struct tm parts = parts_of(time, &ms);

	snprintf(out, UTC_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
		 parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, ms);
}
