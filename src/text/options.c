#include "text/options.h"
#include "base/duration.h"
#include "text/suggest.h"

#include <stdio.h>

#define HELP_COLUMN 28
#define MAX_DIGITS  18 /* of a number: more than any bound has */

static const struct option_value *find(const struct options *options, const char *name)
{
	for (size_t i = 0; i < options->count; i++) {
		if (str_equal(options->values[i].option->name, name))
			return &options->values[i];
	}
	return NULL;
}

static struct option_value *find_argument(struct options *options, const char *name, size_t length)
{
	for (size_t i = 0; i < options->count; i++) {
		const struct option *option = options->values[i].option;
		if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
			return &options->values[i];
	}
	return NULL;
}

static struct option_value *find_letter(struct options *options, char letter)
{
	for (size_t i = 0; i < options->count; i++) {
		if (options->values[i].option->letter == letter)
			return &options->values[i];
	}
	return NULL;
}

static bool unknown(const struct options *options, const char *argument, size_t length,
		    struct error *error)
{
	const char *names[OPTIONS_MAX];
	char word[64];

	error_set(error, ERROR_INVALID_INPUT, "unknown option '%.*s'", (int)length, argument);
	if (length < 3 || length - 2 >= sizeof word)
		return false;
	memcpy(word, argument + 2, length - 2);
	word[length - 2] = '\0';
	for (size_t i = 0; i < options->count; i++)
		names[i] = options->values[i].option->name;
	const char *nearest = suggest_nearest(word, names, options->count);
	return nearest ? error_set(error, ERROR_INVALID_INPUT,
				   "unknown option '--%s' (did you mean '--%s'?)", word, nearest)
		       : false;
}

/* What is written behind digits is mostly a unit, and the digits alone another amount: "500m" are
 * half a CPU, "512Mi" half a GiB. */
static bool no_unit(const struct option *option, struct error *error)
{
	static const struct {
		const char *value, *what, *such_as; /* by what help calls the value */
	} AMOUNTS[] = {
		{"C", "whole CPUs", "4"},
		{"GIB", "GiB", "64"},
		{"SECONDS", "seconds", "30"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(AMOUNTS); i++) {
		if (str_equal(option->value, AMOUNTS[i].value))
			return error_hint(error, "It takes %s, such as --%s %s", AMOUNTS[i].what,
					  option->name, AMOUNTS[i].such_as);
	}
	return error_hint(error, "It takes digits alone, without a unit.");
}

static bool read_number(const struct option *option, const char *text, int64_t *ret_number,
			struct error *error)
{
	int64_t number = 0;
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || text[digits]) {
		error_set(error, ERROR_INVALID_INPUT, "--%s: '%s' is not a whole number",
			  option->name, text);
		return digits && text[digits] ? no_unit(option, error) : false;
	}
	for (size_t i = 0; i < digits && digits <= MAX_DIGITS; i++)
		number = number * 10 + (text[i] - '0');
	if (digits > MAX_DIGITS || number < option->min || number > option->max)
		return error_set(error, ERROR_INVALID_INPUT,
				 "--%s: %.*s%s is not from %lld to %lld", option->name, MAX_DIGITS,
				 text, digits > MAX_DIGITS ? "…" : "", (long long)option->min,
				 (long long)option->max);
	*ret_number = number;
	return true;
}

/* With the first unit that makes something of it that would be taken; false: none does. */
static bool suggest_unit(const struct option *option, const char *text, const char *range,
			 struct error *error)
{
	static const char *const UNITS[][2] = {
		{"h", "hours"}, {"m", "minutes"}, {"d", "days"}, {"s", "seconds"}};
	char with_unit[DURATION_TEXT_SIZE];
	struct error ignored;
	int64_t ms;

	for (size_t i = 0; i < ARRAY_SIZE(UNITS); i++) {
		snprintf(with_unit, sizeof with_unit, "%.*s%s", MAX_DIGITS, text, UNITS[i][0]);
		if (duration_parse(with_unit, option->name, option->min, option->max, &ms,
				   &ignored)) {
			error_hint(error,
				   "Add the unit: --%s %s for %s. Its units are d, h, m and s; it "
				   "is from %s.",
				   option->name, with_unit, UNITS[i][1], range);
			return true;
		}
	}
	return false;
}

/* "8" may mean seconds or days: the unit has to be said. */
static bool unit_missing(const struct option *option, const char *text, struct error *error)
{
	size_t digits = strspn(text, "0123456789");
	char low[DURATION_TEXT_SIZE], high[DURATION_TEXT_SIZE], range[2 * DURATION_TEXT_SIZE];

	if (digits == 0 || text[digits] || digits > MAX_DIGITS)
		return false;
	duration_format(low, option->min);
	duration_format(high, option->max);
	snprintf(range, sizeof range, "%s to %s", low, high);
	if (!suggest_unit(option, text, range, error))
		error_hint(error, "Add the unit: d, h, m or s. It is from %s.", range);
	return false;
}

static bool check_choice(const struct option *option, const char *text, struct error *error)
{
	CLEANUP(buf) struct buf known = {0};

	if (!option->choices)
		return true;
	for (size_t i = 0; option->choices[i]; i++) {
		if (str_equal(option->choices[i], text))
			return true;
		buf_printf(&known, "%s%s", i ? ", " : "", option->choices[i]);
	}
	return error_set(error, ERROR_INVALID_INPUT, "--%s: '%s' is not one of %s", option->name,
			 text, buf_text(&known));
}

static bool take_value(struct option_value *value, const char *text, struct error *error)
{
	const struct option *option = value->option;
	char field[ERROR_FIELD_SIZE], seconds[DURATION_TEXT_SIZE];

	if (value->text && option->kind != OPTION_LIST)
		return error_set(error, ERROR_INVALID_INPUT, "--%s is given twice", option->name);
	if (!text[0])
		return error_set(error, ERROR_INVALID_INPUT, "--%s: the value is empty",
				 option->name);
	switch (option->kind) {
	case OPTION_FLAG:
		value->number = 1;
		break;
	case OPTION_NUMBER:
		if (!read_number(option, text, &value->number, error))
			return false;
		break;
	case OPTION_PATIENCE:
		snprintf(field, sizeof field, "--%s", option->name);
		snprintf(seconds, sizeof seconds, "%.*ss", (int)sizeof seconds - 2, text);
		if (!duration_parse(text[strspn(text, "0123456789")] ? text : seconds, field,
				    option->min, option->max, &value->number, error))
			return false;
		break;
	case OPTION_DURATION:
		snprintf(field, sizeof field, "--%s", option->name);
		if (!duration_parse(text, field, option->min, option->max, &value->number, error))
			return unit_missing(option, text, error);
		break;
	case OPTION_LIST:
		if (value->list_count == OPTIONS_MAX_LIST)
			return error_set(error, ERROR_INVALID_INPUT,
					 "--%s is given more than %d times", option->name,
					 OPTIONS_MAX_LIST);
		value->list[value->list_count++] = text;
		break;
	case OPTION_TEXT:
		break;
	}
	if (!check_choice(option, text, error))
		return false;
	value->text = text;
	return true;
}

/* The value stands after `=` (or the letter), or is the next argument. */
static bool take(struct option_value *value, const char *attached, int argc, char *const *argv,
		 int *at, struct error *error)
{
	const struct option *option = value->option;

	if (option->kind == OPTION_FLAG)
		return attached ? error_set(error, ERROR_INVALID_INPUT, "--%s takes no value",
					    option->name)
				: take_value(value, "yes", error);
	if (attached)
		return take_value(value, attached, error);
	if (*at + 1 >= argc)
		return error_set(error, ERROR_INVALID_INPUT, "--%s needs a value: --%s %s",
				 option->name, option->name, option->value);
	return take_value(value, argv[++*at], error);
}

static bool take_argument(struct options *options, int argc, char *const *argv, int *at,
			  struct error *error)
{
	const char *argument = argv[*at];

	if (str_starts(argument, "--")) {
		size_t length = strcspn(argument, "=");
		struct option_value *value = find_argument(options, argument + 2, length - 2);
		if (!value)
			return unknown(options, argument, length, error);
		return take(value, argument[length] ? argument + length + 1 : NULL, argc, argv, at,
			    error);
	}
	struct option_value *value = find_letter(options, argument[1]);
	if (!value)
		return unknown(options, argument, 2, error);
	return take(value, argument[2] ? argument + 2 : NULL, argc, argv, at, error);
}

static void add_tables(struct options *options, const struct option *const *tables,
		       size_t table_count)
{
	options->values = mem_alloc(OPTIONS_MAX * sizeof *options->values);
	for (size_t i = 0; i < table_count; i++) {
		for (const struct option *row = tables[i]; row && row->name; row++) {
			assert(options->count < OPTIONS_MAX);
			assert(!find(options, row->name));
			options->values[options->count++].option = row;
		}
	}
}

bool options_parse(const struct option *const *tables, size_t table_count, int argc,
		   char *const *argv, struct options *ret_options, struct error *error)
{
	CLEANUP(options) struct options options = {0};
	bool only_operands = false;

	add_tables(&options, tables, table_count);
	options.operands = mem_alloc(((size_t)argc + 1) * sizeof *options.operands);
	for (int i = 0; i < argc; i++) {
		if (!only_operands && str_equal(argv[i], "--"))
			only_operands = true;
		else if (only_operands || argv[i][0] != '-' || !argv[i][1])
			options.operands[options.operand_count++] = argv[i];
		else if (!take_argument(&options, argc, argv, &i, error))
			return false;
	}
	*ret_options = options;
	options = (struct options){0};
	return true;
}

void options_deinit(struct options *options)
{
	if (!options)
		return;
	free(options->values);
	free(options->operands);
	*options = (struct options){0};
}

const struct option_value *options_value(const struct options *options, const char *name)
{
	const struct option_value *value = find(options, name);

	assert(value);
	return value;
}

bool options_given(const struct options *options, const char *name)
{
	return options_value(options, name)->text != NULL;
}

const char *options_text(const struct options *options, const char *name)
{
	return options_value(options, name)->text;
}

int64_t options_number(const struct options *options, const char *name, int64_t otherwise)
{
	const struct option_value *value = options_value(options, name);

	return value->text ? value->number : otherwise;
}

bool options_need(const struct options *options, const char *name, const char *other,
		  struct error *error)
{
	return !options_given(options, name) || options_given(options, other) ||
	       error_set(error, ERROR_INVALID_INPUT, "--%s needs --%s", name, other);
}

bool options_exclude(const struct options *options, const char *name, const char *other,
		     struct error *error)
{
	return !options_given(options, name) || !options_given(options, other) ||
	       error_set(error, ERROR_INVALID_INPUT, "--%s and --%s exclude each other", name,
			 other);
}

void options_help(struct buf *out, const struct option *table)
{
	for (const struct option *row = table; row && row->name; row++) {
		size_t start = out->length;
		if (row->letter)
			buf_printf(out, "  -%c, --%s", row->letter, row->name);
		else
			buf_printf(out, "  --%s", row->name);
		if (row->kind != OPTION_FLAG)
			buf_printf(out, " %s", row->value);
		size_t width = out->length - start;
		buf_printf(out, "%*s%s\n", width < HELP_COLUMN ? (int)(HELP_COLUMN - width) : 2, "",
			   row->help);
	}
}
