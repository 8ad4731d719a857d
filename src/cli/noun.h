/*
 * noun: the things the API keeps, in one table: where they are, how a row of them looks, and how a
 * person may name one (its id, a unique prefix of it, or its name where that is unique).
 */
#pragma once

#include "cli/api.h"
#include "cli/cli.h"
#include "cli/table.h"

/* What rows may look at beside their item. */
struct noun_view {
	struct cli *cli;
	struct table *table;
	json_t *names[NOUN_COUNT]; /* ids to names, asked for when first needed */
};

void noun_view_deinit(struct noun_view *view);

static inline void noun_view_cleanup(struct noun_view *view)
{
	noun_view_deinit(view);
}

/* The name of the `kind` whose id stands under `key`, else the id; NULL when there is none. */
const char *noun_view_name(struct noun_view *view, enum noun_kind kind, const json_t *item,
			   const char *key);

struct noun {
	const char *word;     /* "pool" */
	const char *plural;   /* "pools" */
	const char *path;     /* "/v1/pools" */
	const char *prefix;   /* "pool" of "pool_01..." */
	const char *name_key; /* the field that names it; NULL: id only */
	const char *make;     /* the command that makes the first one */
	const struct table_column *columns;
	size_t column_count;
	void (*row)(struct noun_view *view, const json_t *item);
	void (*page)(struct cli *cli, const json_t *item); /* one of it, for people; NULL: fields */
	const char *also_key; /* another field that names it; NULL: none */
};

const struct noun *noun_get(enum noun_kind kind);

/* The id of what `text` names. NOT_FOUND with the nearest name; CONFLICT-free: an ambiguous text is
 * INVALID_INPUT that lists what it could be. Of a tenant's things of one name the only one that isn't over
 * is meant (a beginning of an id stays ambiguous). Of what several tenants have by one name, that of the
 * tenant beside it is meant: of --tenant where the command takes it, or of the context. What a command
 * with --tenant is about, by its row, is looked for among that tenant's alone, and a whole id of
 * another's is INVALID_INPUT. A reservation is also named by one of its allocations. The id lives in the
 * cli's arena. */
MUST_CHECK bool noun_resolve(struct cli *cli, enum noun_kind kind, const char *text,
			     const char **ret_id, struct error *error);

/* Which of `items` is meant; pure. */
MUST_CHECK bool noun_match(const struct noun *noun, const json_t *items, const char *text,
			   const char **ret_id, struct error *error);

/* GET of one by what `text` names: a new reference. */
MUST_CHECK bool noun_fetch(struct cli *cli, enum noun_kind kind, const char *text,
			   json_t **ret_item, struct error *error);

/* Returns false; NOT_FOUND gets a hint at the listing. */
bool noun_missing(enum noun_kind kind, struct error *error);

typedef bool noun_keep(const json_t *item);

/* Lists, as `-o` says: those of the answer that `keep` keeps, which may be NULL. `query` may be NULL.
 * Where it has no tenantId, and the command takes --tenant, that narrows here. `which` says of which
 * there are none, such as "of this kind"; NULL: by itself. */
MUST_CHECK bool noun_list(struct cli *cli, enum noun_kind kind, const char *query,
			  const char *which, noun_keep *keep, struct error *error);
/* Prints an object: its noun's page or all its fields, or as `-o` says. */
void noun_print(struct cli *cli, const json_t *item);

/* "note: the 8 GPUs of node_... are simulated: no GPU driver here", once a simulated node. `nodes`
 * NULL: asks the API. */
void noun_note_simulated(struct cli *cli, json_t *nodes);

/* Ids to names of all of a kind; "{}" when they can't be read. A new reference. */
json_t *noun_names(struct cli *cli, enum noun_kind kind);
