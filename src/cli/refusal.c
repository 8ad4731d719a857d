#include "cli/refusal.h"
#include "cli/verb.h"

#include <stdio.h>

/* Fields that no table of a command's row has. */
static const struct {
	const char *field, *option;
} FIELDS[] = {
	{"startAt", "start"}, {"endAt", "until"}, {"endAt", "by"},
	{"duration", "for"},  {"value", "from"},
};

static bool is_given(const struct options *options, const char *name)
{
	for (size_t i = 0; i < options->count; i++) {
		if (str_equal(options->values[i].option->name, name))
			return options_given(options, name);
	}
	return false;
}

static const char *option_of(const struct cli *cli, const char *field)
{
	for (const struct verb_field *row = cli->command->fields; row && row->key; row++) {
		if (row->option && str_equal(row->key, field) &&
		    is_given(cli->options, row->option))
			return row->option;
	}
	for (size_t i = 0; i < ARRAY_SIZE(FIELDS); i++) {
		if (str_equal(FIELDS[i].field, field) && is_given(cli->options, FIELDS[i].option))
			return FIELDS[i].option;
	}
	return NULL;
}

void refusal_name_option(const struct cli *cli, struct error *error)
{
	size_t length = strlen(error->field);
	const char *option = cli->options && length ? option_of(cli, error->field) : NULL;
	char rest[ERROR_WHAT_SIZE];

	if (!option || !str_starts(error->what, error->field) ||
	    !str_starts(error->what + length, ": "))
		return;
	str_copy(rest, sizeof rest, error->what + length);
	snprintf(error->what, sizeof error->what, "--%s%s", option, rest);
}
