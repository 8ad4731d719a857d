/*
 * period: --from and --to of what is past.
 */
#pragma once

#include "cli/cli.h"

/* Rows of the flags. */
#define PERIOD_OPTIONS                                                                             \
	{"from", 0, OPTION_TEXT, "TIME", "from then on: RFC 3339, or 7d for seven days ago",       \
	 0,      0, NULL},                                                                         \
	{                                                                                          \
		"to", 0, OPTION_TEXT, "TIME", "until then (default: now)", 0, 0, NULL              \
	}

/* A check of the command's row. */
MUST_CHECK bool period_check(struct cli *cli, struct error *error);

/* Adds from= and to= to a query, as far as they are given. */
MUST_CHECK bool period_query(struct cli *cli, struct buf *query, struct error *error);
