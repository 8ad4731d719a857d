/*
 * database: the options that say which database a verb works on, the same for all of them.
 */
#pragma once

#include "cli/cli.h"

#define DATABASE_DEFAULT_HOME "/var/lib/better-compute"

/* Rows of an option table. */
#define DATABASE_OPTIONS                                                                           \
	{.name = "home",                                                                           \
	 .kind = OPTION_TEXT,                                                                      \
	 .value = "DIR",                                                                           \
	 .help = "its folder: database, keys (default " DATABASE_DEFAULT_HOME ")"},                \
		{.name = "database",                                                               \
		 .kind = OPTION_TEXT,                                                              \
		 .value = "URL",                                                                   \
		 .help = "sqlite:PATH or postgresql://... (default "                               \
			 "sqlite:DIR/better-compute.db)"},                                         \
		{.name = "database-file",                                                          \
		 .kind = OPTION_TEXT,                                                              \
		 .value = "FILE",                                                                  \
		 .help = "the same from a file's first line, for one with a password"}

const char *database_home(const struct cli *cli);
/* Whether one of them was given, so that it isn't the home's own. */
bool database_is_elsewhere(const struct cli *cli);
/* What --database or --database-file say; NULL: neither. Lives as long as the cli. A password on
 * the command line is refused: others can see it. */
MUST_CHECK bool database_given(struct cli *cli, const char **ret_url, struct error *error);
