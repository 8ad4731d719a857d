/*
 * thing: what all kinds of things have in common: they are shown, listed, made once, and changed
 * under audit. Private to this room.
 *
 * A kind is one struct thing: its SQL and how a row becomes an answer. Its calls say only what is
 * its own. Whoever may not see a thing hears NOT_FOUND, as if there were none.
 */
#pragma once

#include "control/work.h"

struct thing {
	const char *kind;   /* "pool", as messages call it */
	const char *prefix; /* of its ids */
	enum access_action read;
	/* The same columns, the id first. */
	const char *one;      /* ... WHERE id = $1 */
	const char *page;     /* ... WHERE id > $1 AND ($2 = '' OR tenant = $2) ... LIMIT $3 */
	size_t filters;       /* further parameters of `page`: $4 poolId, $5 state, "" for none */
	size_t tenant_column; /* whose it is */
	bool (*answer)(struct store_connection *db, const struct store_rows *rows, size_t row,
		       json_t **ret_answer, struct error *error);
	/* Appends the answers to the first `count` rows of `page`, whose parameters these are: for
	 * things that have parts to look up, all at once. NULL: one by one. */
	bool (*answers)(struct store_connection *db, const struct store_value *params,
			size_t params_count, const struct store_rows *rows, size_t count,
			json_t *items, struct error *error);
};

/* The row of `one`, if the principal may see it. */
MUST_CHECK bool thing_load(struct store_connection *db, const struct control_call *call,
			   const struct thing *thing, const char *id, struct store_rows *rows,
			   struct error *error);

MUST_CHECK bool thing_answer(struct store_connection *db, const struct control_call *call,
			     const struct thing *thing, const char *id, json_t **ret_answer,
			     struct error *error);

/* The calls GET /v1/THINGS/{id} and GET /v1/THINGS. */
MUST_CHECK bool thing_get(struct store_connection *db, const struct control_call *call,
			  const struct thing *thing, json_t **ret_answer, struct error *error);
MUST_CHECK bool thing_list(struct store_connection *db, const struct control_call *call,
			   const struct thing *thing, json_t **ret_answer, struct error *error);

/* --- making one --- */

struct thing_create {
	const struct thing *thing;
	enum access_action action;
	const char *tenant; /* whose it will be; NULL: its own */
	const char *key;    /* idempotency key, NULL for none */
	/* Checks what it needs and writes the row. */
	bool (*insert)(struct store_connection *db, const char *id, const void *input,
		       struct error *error);
	const void *input;
};

/* Makes it, or answers what the same key made before. The role was checked already. */
MUST_CHECK bool thing_create(struct store_connection *db, const struct control_call *call,
			     const struct thing_create *create, json_t **ret_answer,
			     struct error *error);

/* --- changing one --- */

/* {0} is empty; thing_change_deinit() it. */
struct thing_change {
	const struct thing *thing;
	enum access_action action;
	struct store_rows rows; /* of `one`, before */
	json_t *before;
};

/* The role, the path's {id}, and the thing as it was. */
MUST_CHECK bool thing_change_begin(struct store_connection *db, const struct control_call *call,
				   const struct thing *thing, enum access_action action,
				   struct thing_change *change, struct error *error);
/* The audit, and the thing as it is. Nothing is written when nothing has changed. */
MUST_CHECK bool thing_change_end(struct store_connection *db, const struct control_call *call,
				 const struct thing_change *change, json_t **ret_answer,
				 struct error *error);
void thing_change_deinit(struct thing_change *change);

static inline void thing_change_cleanup(struct thing_change *change)
{
	thing_change_deinit(change);
}

/* --- ending one --- */

/* INVALID_STATE when `sql` finds something: "KIND ID still has WHAT: THE OTHER ID". $1 of it is the id. */
MUST_CHECK bool thing_check_unused(struct store_connection *db, const struct thing *thing,
				   const char *id, const char *sql, const char *what,
				   struct error *error);
