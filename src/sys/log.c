#include "sys/log.h"

#include "base/buf.h"
#include "base/utc.h"
#include "base/utf8.h"
#include "sys/clock.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LOG_REPEAT_MS 60000 /* a repeated line is printed again, with its count, this often */

static const char *const LEVELS[] = {
	[LOG_DEBUG] = "debug",
	[LOG_INFO] = "info",
	[LOG_WARN] = "warn",
	[LOG_ERROR] = "error",
};

static struct {
	pthread_mutex_t lock;
	_Atomic enum log_level level;
	char *last; /* the last line printed, without its time */
	int64_t last_ms;
	unsigned long repeats; /* how often it came again since */
} log_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = LOG_INFO};

void log_set_level(enum log_level level)
{
	log_state.level = level;
}

bool log_level_parse(const char *name, enum log_level *ret_level)
{
	for (size_t i = 0; i < ARRAY_SIZE(LEVELS); i++) {
		if (!str_equal(LEVELS[i], name))
			continue;
		*ret_level = (enum log_level)i;
		return true;
	}
	return false;
}

/* --- one line --- */

/* Escaped in both forms: nobody can forge a line or a field with what they name a thing. */
static void add_escaped(struct buf *line, const char *text, bool quoted)
{
	for (const char *at = text; *at;) {
		size_t length = utf8_length(at);

		if (*at == '\\' || (quoted && *at == '"'))
			buf_printf(line, "\\%c", *at);
		else if (*at == '\n')
			buf_add_text(line, "\\n");
		else if ((*at >= 0 && *at < ' ') || *at == 0x7f)
			buf_printf(line, "\\u%04x", *at);
		else if (length)
			buf_add(line, at, length);
		else
			buf_add_text(line, "\xef\xbf\xbd");
		at += length ? length : 1;
	}
}

static void add_quoted(struct buf *line, const char *text)
{
	buf_add_char(line, '"');
	add_escaped(line, text, true);
	buf_add_char(line, '"');
}

static bool is_plain(const char *text)
{
	for (const char *at = text; *at; at++) {
		if (*at <= ' ' || *at > '~' || *at == '"' || *at == '\\' || *at == '=')
			return false;
	}
	return *text;
}

static void add_field(struct buf *line, bool json, const char *name, const char *value)
{
	if (json) {
		buf_add_char(line, ',');
		add_quoted(line, name);
		buf_add_char(line, ':');
		add_quoted(line, value);
		return;
	}
	buf_printf(line, " %s=", name);
	if (is_plain(value))
		buf_add_text(line, value);
	else
		add_quoted(line, value);
}

/* Everything but the time and the end, to be compared with the line before. */
static void add_head(struct buf *line, bool json, enum log_level level, const char *event,
		     const char *message)
{
	if (!json) {
		buf_printf(line, " %-5s %s: ", LEVELS[level], event);
		add_escaped(line, message, false);
		return;
	}
	buf_printf(line, ",\"level\":\"%s\",\"event\":", LEVELS[level]);
	add_quoted(line, event);
	buf_add_text(line, ",\"message\":");
	add_quoted(line, message);
}

static void print_line(bool json, struct wall now, const char *body, unsigned long repeats)
{
	CLEANUP(buf) struct buf line = {0};
	char time[UTC_SIZE];

	utc_format_ms(time, now);
	buf_add_text(&line, json ? "{\"time\":\"" : "");
	buf_add_text(&line, time);
	buf_add_text(&line, json ? "\"" : "");
	buf_add_text(&line, body);
	if (repeats)
		buf_printf(&line, json ? ",\"repeated\":\"%lu\"" : " repeated=%lu", repeats);
	buf_add_text(&line, json ? "}\n" : "\n");
	/* One write a line, so lines of two processes don't mix. Nobody to tell when it fails. */
	(void)!write(STDERR_FILENO, line.data, line.length);
}

static void print_counted(bool json, const char *body)
{
	struct wall now = clock_wall();

	pthread_mutex_lock(&log_state.lock);
	if (log_state.last && str_equal(log_state.last, body) &&
	    now.ms - log_state.last_ms < LOG_REPEAT_MS) {
		log_state.repeats++;
		pthread_mutex_unlock(&log_state.lock);
		return;
	}
	if (log_state.repeats)
		print_line(json, now, log_state.last, log_state.repeats);
	if (!log_state.last || !str_equal(log_state.last, body) || !log_state.repeats)
		print_line(json, now, body, 0);
	free(log_state.last);
	log_state.last = mem_strdup(body);
	log_state.last_ms = now.ms;
	log_state.repeats = 0;
	pthread_mutex_unlock(&log_state.lock);
}

void log_at(enum log_level level, const char *event, const char *message, ...)
{
	CLEANUP(buf) struct buf line = {0};
	bool json = !isatty(STDERR_FILENO);
	const char *name;
	va_list args;

	if (level < log_state.level)
		return;
	add_head(&line, json, level, event, message);
	va_start(args, message);
	while ((name = va_arg(args, const char *))) {
		const char *value = va_arg(args, const char *);

		if (value)
			add_field(&line, json, name, value);
	}
	va_end(args);
	print_counted(json, buf_text(&line));
}

void log_failure(enum log_level level, const char *event, const struct error *error,
		 const char *goes_on)
{
	log_at(level, event, error->what, "code", error_code_name(error->code), "field",
	       error->field[0] ? error->field : NULL, "hint", error->hint[0] ? error->hint : NULL,
	       "goes_on", goes_on, NULL);
}
