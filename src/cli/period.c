#include "cli/period.h"
#include "cli/api.h"
#include "cli/when.h"

/* *ret_given false: it isn't. */
static bool read(struct cli *cli, const char *option, bool *ret_given, struct wall *ret_time,
		 struct error *error)
{
	const char *text = options_text(cli->options, option);

	*ret_given = text != NULL;
	return !text || when_parse_past(text, arena_printf(&cli->arena, "--%s", option), cli->now,
					ret_time, error);
}

bool period_check(struct cli *cli, struct error *error)
{
	struct wall from = {0}, to = {0};
	bool has_from, has_to;

	if (!read(cli, "from", &has_from, &from, error) || !read(cli, "to", &has_to, &to, error))
		return false;
	if (has_from && !has_to && from.ms >= cli->now.ms)
		return error_field(error, "--from", "it is not in the past");
	if (!has_from || !has_to || from.ms < to.ms)
		return true;
	error_field(error, "--to", "it is not later than --from");
	return error_hint(error, "7d is seven days ago, so --from 7d --to 1d is a period.");
}

bool period_query(struct cli *cli, struct buf *query, struct error *error)
{
	static const char *const NAMES[] = {"from", "to"};

	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
		char text[WHEN_SIZE];
		struct wall time;
		bool given;
		if (!read(cli, NAMES[i], &given, &time, error))
			return false;
		if (!given)
			continue;
		when_format(text, time);
		api_query_add(query, NAMES[i], text);
	}
	return true;
}
