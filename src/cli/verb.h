/*
 * verb: what the commands of all nouns do alike. Rows may point at these; `names` of the row says
 * which noun is meant. Each prints the answer as `-o` says, and does nothing but say so under
 * --dry-run.
 */
#pragma once

#include "cli/api.h"
#include "cli/cli.h"
#include "cli/noun.h"

/* Parts of rows that the commands of all nouns have alike. */
#define VERB_ONE(what) .operands = (what), .min_operands = 1, .max_operands = 1
#define VERB_LISTS                                                                                 \
	.verb = "list", .flags = COMMAND_DEFAULT | COMMAND_API | COMMAND_OUTPUT, .run = verb_list
#define VERB_SHOWS(what)                                                                           \
	.verb = "show", VERB_ONE(what), .flags = COMMAND_API | COMMAND_OUTPUT, .run = verb_show
#define VERB_CREATES                                                                               \
	.verb = "create", .flags = COMMAND_CREATES | COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT
#define VERB_CHANGES(word, what)                                                                   \
	.verb = (word), VERB_ONE(what), .flags = COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT
#define VERB_ASKS(word, what)                                                                      \
	.verb = (word), VERB_ONE(what),                                                            \
	.flags = COMMAND_CHANGES | COMMAND_ASKS | COMMAND_API | COMMAND_OUTPUT

/* For commands about what tenants have: several may have one of that name. */
#define VERB_OWNER                                                                                 \
	{"tenant", 0, OPTION_TEXT, "TENANT", "whose it is, where others have one of that name",    \
	 0,        0, NULL}
#define VERB_OWNERS                                                                                \
	{"tenant", 0, OPTION_TEXT, "TENANT", "only what this tenant has", 0, 0, NULL}              \
	/* of a list */
extern const struct option VERB_OWNER_OPTIONS[], VERB_OWNERS_OPTIONS[];

/* The id that operand 0 names. */
MUST_CHECK bool verb_id(struct cli *cli, const char **ret_id, struct error *error);

/* Where a field of a body or of a query comes from; one macro below each. */
enum verb_value {
	VERB_TEXT,    /* an option, when it is given; else `text` */
	VERB_NUMBER,  /* an option, when it is given */
	VERB_FLAG,    /* `text`, when the option is given */
	VERB_ID,      /* the id of what an option names, when it is given */
	VERB_OPERAND, /* the first operand */
	VERB_TENANT,  /* the tenant to act for */
	VERB_POOL,    /* the pool, or the only one there is */
};
struct verb_field {
	enum verb_value value;
	const char *key; /* NULL ends a table */
	const char *option;
	enum noun_kind names;
	const char *text; /* NULL: none */
};
#define FIELD_TEXT(name, from) {.value = VERB_TEXT, .key = (name), .option = (from)}
#define FIELD_TEXT_OR(name, from, other)                                                           \
	{.value = VERB_TEXT, .key = (name), .option = (from), .text = (other)}
#define FIELD_NUMBER(name, from) {.value = VERB_NUMBER, .key = (name), .option = (from)}
#define FIELD_FLAG(name, from, says)                                                               \
	{.value = VERB_FLAG, .key = (name), .option = (from), .text = (says)}
#define FIELD_ID(name, from, kind)                                                                 \
	{.value = VERB_ID, .key = (name), .option = (from), .names = (kind)}
#define FIELD_OPERAND(name) {.value = VERB_OPERAND, .key = (name)}
#define FIELD_TENANT        {.value = VERB_TENANT, .key = "tenantId"}
#define FIELD_POOL          {.value = VERB_POOL, .key = "poolId"}

/* Puts the row's fields into a body, or behind a query. */
MUST_CHECK bool verb_body(struct cli *cli, json_t *body, struct error *error);
MUST_CHECK bool verb_query(struct cli *cli, struct buf *query, struct error *error);

/* For rows: `fields` are the list's query, or the body. */
MUST_CHECK bool verb_list(struct cli *cli, struct error *error);
MUST_CHECK bool verb_show(struct cli *cli, struct error *error); /* the one of operand 0 */
MUST_CHECK bool verb_create(struct cli *cli, struct error *error);
MUST_CHECK bool verb_update(struct cli *cli, struct error *error); /* of the one of operand 0 */

/* POST of a new one; `body` is borrowed. */
MUST_CHECK bool verb_post(struct cli *cli, json_t *body, struct error *error);
/* After a POST that was refused: where the body's name is taken, the hint says what to do. False. */
bool verb_taken(struct cli *cli, const json_t *body, struct error *error);
/* PATCH of the one of operand 0; INVALID_INPUT with `hint` when the body is empty. */
MUST_CHECK bool verb_patch(struct cli *cli, json_t *body, const char *hint, struct error *error);
/* PATCH of ID, and prints the answer. */
MUST_CHECK bool verb_patch_id(struct cli *cli, const char *id, json_t *body, struct error *error);
/* POST .../ID/action; `body` may be NULL. *ret_answer NULL: only tried. */
MUST_CHECK bool verb_send(struct cli *cli, const char *id, const char *action, json_t *body,
			  json_t **ret_answer, struct error *error);
/* The same, and prints the answer. */
MUST_CHECK bool verb_act(struct cli *cli, const char *id, const char *action, json_t *body,
			 struct error *error);
MUST_CHECK bool verb_delete(struct cli *cli, const char *id, struct error *error);

/* Asks before a dangerous change: POST ID/action, or DELETE of ID when `action` is NULL. The API tries it first, so
 * that nobody is asked what they may not do, or what is refused anyhow. With --yes or --dry-run nobody is asked. */
MUST_CHECK bool verb_confirm(struct cli *cli, const char *id, const char *action,
			     const json_t *body, const char *question, struct error *error);

/* "1 pool", "3 pools": how many of a kind have `value` under `key`; NULL when none or not told. */
const char *verb_count(struct cli *cli, enum noun_kind kind, const char *key, const char *value);
