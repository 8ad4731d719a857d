/*
 * verb: what the commands of all nouns do alike. Rows may point at these; `names` of the row says
 * which noun is meant. Each prints the answer as `-o` says, and does nothing but say so under
 * --dry-run.
 */
#pragma once

#include "cli/api.h"
#include "cli/cli.h"
#include "cli/noun.h"

MUST_CHECK bool verb_list(struct cli *cli, struct error *error); /* all of them */
MUST_CHECK bool verb_show(struct cli *cli, struct error *error); /* the one of operand 0 */

/* The id that operand 0 names. */
MUST_CHECK bool verb_id(struct cli *cli, const char **ret_id, struct error *error);

/* POST of a new one; `body` is borrowed. */
MUST_CHECK bool verb_create(struct cli *cli, json_t *body, struct error *error);
/* PATCH of the one of operand 0; INVALID_INPUT with `hint` when the body is empty. */
MUST_CHECK bool verb_patch(struct cli *cli, json_t *body, const char *hint, struct error *error);
/* POST .../ID/action; `body` may be NULL. *ret_answer NULL: only tried. */
MUST_CHECK bool verb_send(struct cli *cli, const char *id, const char *action, json_t *body,
			  json_t **ret_answer, struct error *error);
/* The same, and prints the answer. */
MUST_CHECK bool verb_act(struct cli *cli, const char *id, const char *action, json_t *body,
			 struct error *error);
MUST_CHECK bool verb_delete(struct cli *cli, const char *id, struct error *error);

/* Asks before a dangerous change; a dry run needs no answer. */
MUST_CHECK bool verb_confirm(struct cli *cli, const char *question, struct error *error);

/* "1 pool", "3 pools": how many of a kind have `value` under `key`; NULL when none or not told. */
const char *verb_count(struct cli *cli, enum noun_kind kind, const char *key, const char *value);

/* Puts the option's text under `key`, when it is given. */
void verb_add_text(struct cli *cli, json_t *body, const char *option, const char *key);
void verb_add_number(struct cli *cli, json_t *body, const char *option, const char *key);
/* The id of what the option names, under `key`, when it is given. */
MUST_CHECK bool verb_add_id(struct cli *cli, json_t *body, enum noun_kind kind, const char *option,
			    const char *key, struct error *error);
/* The same into a query. */
MUST_CHECK bool verb_query_id(struct cli *cli, struct buf *query, enum noun_kind kind,
			      const char *option, const char *key, struct error *error);
