#include "cli/output.h"
#include "cli/page.h"
#include "text/yaml.h"

#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NOTE_MIN 32 /* characters of a remark in a line, however narrow the terminal */

static size_t width_of(int fd)
{
	struct winsize size = {0};

	if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0)
		return 0;
	return size.ws_col;
}

size_t output_width(void)
{
	return width_of(STDOUT_FILENO);
}

bool output_colour(FILE *file)
{
	const char *off = getenv("NO_COLOR");

	return !(off && off[0]) && isatty(fileno(file));
}

void output_text(const struct buf *text)
{
	fwrite(buf_text(text), 1, text->length, stdout);
}

static char *formatted(const char *format, va_list args)
{
	char *text = NULL;

	if (vasprintf(&text, format, args) < 0)
		abort();
	return text;
}

void output_line(const char *format, ...)
{
	CLEANUP(free) char *text = NULL;
	va_list args;

	va_start(args, format);
	text = formatted(format, args);
	va_end(args);
	table_sanitize_lines(text);
	puts(text);
}

void output_table(const struct cli *cli, const struct table *table)
{
	CLEANUP(buf) struct buf text = {0};

	table_render(table, output_width(), cli->output == CLI_WIDE, &text);
	output_text(&text);
}

void output_json(struct buf *out, const json_t *value)
{
	CLEANUP(free) char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY);

	buf_printf(out, "%s\n", text ? text : "null");
}

static void print_json(const json_t *value)
{
	CLEANUP(buf) struct buf text = {0};

	output_json(&text, value);
	output_text(&text);
}

static void print_yaml(const json_t *value)
{
	CLEANUP(buf) struct buf text = {0};

	yaml_dump(&text, value);
	output_text(&text);
}

static void print_name(const json_t *object)
{
	const char *id = json_string_value(json_object_get(object, "id"));

	if (id)
		puts(id);
}

bool output_raw(const struct cli *cli, const json_t *object)
{
	switch (cli->output) {
	case CLI_JSON:
		print_json(object);
		return true;
	case CLI_YAML:
		print_yaml(object);
		return true;
	case CLI_NAME:
		print_name(object);
		return true;
	case CLI_TABLE:
	case CLI_WIDE:
		break;
	}
	return false;
}

bool output_raw_list(const struct cli *cli, json_t *items)
{
	size_t index;
	json_t *item;

	if (cli->output == CLI_NAME) {
		json_array_foreach(items, index, item) print_name(item);
		return true;
	}
	CLEANUP(tree) json_t *list = json_pack("{s:O}", "items", items);
	return output_raw(cli, list);
}

static PRINTF(2, 0) void remark(const char *label, const char *format, va_list args)
{
	size_t width = width_of(STDERR_FILENO), column = strlen(label);
	CLEANUP(free) char *text = formatted(format, args);
	CLEANUP(buf) struct buf out = {0};

	table_sanitize(text);
	buf_add_text(&out, label);
	page_add_wrapped(&out, text, column,
			 width == 0                  ? SIZE_MAX
			 : width < column + NOTE_MIN ? NOTE_MIN
						     : width - column);
	fflush(stdout); /* a remark follows what it is about, also where both go to one place */
	fwrite(buf_text(&out), 1, out.length, stderr);
}

void output_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	remark("note: ", format, args);
	va_end(args);
}

void output_man(const struct buf *page, const char *program)
{
	output_text(page);
	if (isatty(STDOUT_FILENO))
		output_note("that is the page's source; to read it: %s --man | man -l -", program);
}

void output_warning(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	remark("warning: ", format, args);
	va_end(args);
}

void output_error(const struct cli *cli, const struct error *error, const char *request_id)
{
	bool colour = output_colour(stderr);
	struct error said = *error;

	table_sanitize(said.what);
	table_sanitize(said.hint);
	fprintf(stderr, "%serror:%s %s\n", colour ? "\033[1;31m" : "", colour ? "\033[0m" : "",
		said.what);
	if (said.hint[0])
		fprintf(stderr, "  %s\n", said.hint);
	if (cli->verbose)
		fprintf(stderr, "  %s%s%s\n", error_code_name(error->code),
			request_id[0] ? ", request " : "", request_id);
}

bool output_confirm(const char *question, struct error *error)
{
	CLEANUP(free) char *shown = mem_strdup(question);
	char answer[16] = "";

	table_sanitize(shown);
	if (!isatty(STDIN_FILENO)) {
		error_set(error, ERROR_INVALID_INPUT, "%s", question);
		return error_hint(error, "Nobody is here to ask: add --yes to do it.");
	}
	fprintf(stderr, "%s\nContinue? [y/N] ", shown);
	if (fgets(answer, sizeof answer, stdin) &&
	    (str_equal(answer, "y\n") || str_equal(answer, "yes\n")))
		return true;
	return error_set(error, ERROR_INVALID_STATE, "not confirmed, nothing changed");
}
