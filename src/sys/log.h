/*
 * log: one line an event to stderr: level, time, event (a stable word), message, key=value fields.
 *
 * JSON when stderr is not a terminal, else text. Libraries return errors and do not log above debug;
 * programs log once, where an error stops travelling. Repeats of one line are counted, not repeated.
 * Threads   any. The only module with a mutable static (the level).
 */
#pragma once

#include "base/error.h"

enum log_level {
	LOG_DEBUG,
	LOG_INFO,
	LOG_WARN,
	LOG_ERROR,
};

void log_set_level(enum log_level level);
bool log_level_parse(const char *name, enum log_level *ret_level);

/* `fields` are pairs of name and text, ended by NULL: log_info("bound", "allocation bound",
 * "allocation", id, NULL). A field whose value is NULL is left out. */
void log_at(enum log_level level, const char *event, const char *message, ...)
	__attribute__((sentinel));
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)

/* An error where it stops travelling; `goes_on` says what happens anyway. */
void log_failure(enum log_level level, const char *event, const struct error *error,
		 const char *goes_on);
