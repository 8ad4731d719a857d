/* sys/log.h: lines go into the trace. */
#include "sim/sim_faults.h"
#include "sys/log.h"

#include <stdarg.h>

void log_set_level(enum log_level level UNUSED)
{
}

bool log_level_parse(const char *name UNUSED, enum log_level *ret_level UNUSED)
{
	return false;
}

void log_at(enum log_level level, const char *event, const char *message, ...)
{
	if (level == LOG_DEBUG || !sim_effective())
		return;
	CLEANUP(buf) struct buf line = {0};
	va_list fields;
	va_start(fields, message);
	for (const char *name; (name = va_arg(fields, const char *));) {
		const char *value = va_arg(fields, const char *);
		if (value)
			buf_printf(&line, " %s=%s", name, value);
	}
	va_end(fields);
	sim_trace("log %s: %s%s", event, message, buf_text(&line));
	if (level >= LOG_WARN)
		sim_faults_log(message);
}

void log_failure(enum log_level level, const char *event, const struct error *error,
		 const char *goes_on)
{
	if (level == LOG_DEBUG || !sim_effective())
		return;
	sim_trace("log %s: %s (%s)", event, error->what, goes_on);
	if (level >= LOG_WARN)
		sim_faults_log(error->what);
}
