#include "better-compute/database.h"

#include "sys/durable.h"

#define MAX_CONNINFO ((size_t)8 << 10)

const char *database_home(const struct cli *cli)
{
	const char *home = options_text(cli->options, "home");

	return home ? home : DATABASE_DEFAULT_HOME;
}

bool database_is_elsewhere(const struct cli *cli)
{
	return options_given(cli->options, "database") ||
	       options_given(cli->options, "database-file");
}

/* "password=" of a URL's query, or "password = " among libpq's words. */
static bool names_password(const char *url)
{
	static const char word[] = "password";

	while ((url = strstr(url, word))) {
		url += strlen(word);
		if (url[strspn(url, " \t")] == '=')
			return true;
	}
	return false;
}

/* argv is for all to see, so a database's password may not stand there. */
static bool check_no_password(const char *url, struct error *error)
{
	const char *scheme = strstr(url, "://");
	const char *at = scheme ? strchr(scheme, '@') : NULL;
	const char *colon = scheme ? strchr(scheme + 3, ':') : NULL;

	if (!(at && colon && colon < at) && !names_password(url))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "--database holds a password, and others can see it");
	return error_hint(error, "Put it into a file (0600) and give --database-file FILE.");
}

bool database_given(struct cli *cli, const char **ret_url, struct error *error)
{
	const char *url = options_text(cli->options, "database");
	const char *path = options_text(cli->options, "database-file");
	CLEANUP(buf) struct buf content = {0};
	bool done;

	if (!options_exclude(cli->options, "database", "database-file", error))
		return false;
	*ret_url = url;
	if (url)
		return check_no_password(url, error);
	if (!path)
		return true;
	done = durable_read_hidden(path, MAX_CONNINFO, &content, error) ||
	       error_wrap(error, "--database-file");
	if (done)
		*ret_url = arena_strndup(&cli->arena, buf_text(&content),
					 strcspn(buf_text(&content), "\r\n"));
	buf_wipe(&content);
	return done;
}
