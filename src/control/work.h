/*
 * work: what every control function needs inside its transaction. Private to this room.
 *
 * Every function here runs inside a store_run() body and obeys its rule: after a failure the body
 * returns false.
 */
#pragma once

#include "control/control.h"
#include "control/core/host_share.h"
#include "store/store.h"

/* A call's inside: decides, writes, and builds the answer. */
typedef bool work_call_fn(struct store_connection *db, const struct control_call *call,
			  json_t **ret_answer, struct error *error);

MUST_CHECK bool work_run_call(struct control *control, enum store_mode mode, work_call_fn *function,
			      const struct control_call *call, json_t **ret_answer,
			      struct error *error);

/* Makes control_NAME() of the function NAME in the same file. */
#define WORK_CALL(name, mode)                                                                      \
	bool control_##name(struct control *control, const struct control_call *call,              \
			    json_t **ret_answer, struct error *error)                              \
	{                                                                                          \
		return work_run_call(control, mode, name, call, ret_answer, error);                \
	}

/*
 * The same for a call that changes a thing and wrote its audit: the thing as `get` answers it
 * before, and as the call answers it after, are hashed into the audit's row (ADM-4). `get` is NULL
 * for one that is made.
 */
enum work_effect {
	WORK_EFFECT_CHANGES, /* makes or changes it */
	WORK_EFFECT_ENDS,    /* it is gone after */
};

MUST_CHECK bool work_run_change(struct control *control, enum work_effect effect,
				work_call_fn *function, work_call_fn *get,
				const struct control_call *call, json_t **ret_answer,
				struct error *error);

#define WORK_EFFECT(name, effect, get)                                                             \
	bool control_##name(struct control *control, const struct control_call *call,              \
			    json_t **ret_answer, struct error *error)                              \
	{                                                                                          \
		return work_run_change(control, effect, name, get, call, ret_answer, error);       \
	}
#define WORK_MAKE(name)        WORK_EFFECT(name, WORK_EFFECT_CHANGES, NULL)
#define WORK_CHANGE(name, get) WORK_EFFECT(name, WORK_EFFECT_CHANGES, get)
#define WORK_END(name, get)    WORK_EFFECT(name, WORK_EFFECT_ENDS, get)

/* --- answers --- */

json_t *work_time(int64_t ms); /* a JSON text, RFC 3339 */
/* Text of a row; bytes that are no UTF-8 can't be in one. NULL becomes "". */
json_t *work_text(const char *text);
json_t *work_text_of(const struct store_rows *rows, size_t row, size_t column);
json_t *work_int_of(const struct store_rows *rows, size_t row, size_t column);
/* Of this column and the next: bytes of 2Mi, bytes of 1Gi. */
struct hugepages work_hugepages_of(const struct store_rows *rows, size_t row, size_t column);
/* {"vcpu", "memoryGiB", "memoryMiB", …} as HostShare: what there is none of is left out. */
json_t *work_host_share(const struct host_share *share);
/* Sets `field` unless the column is NULL. */
void work_set_time(json_t *object, const char *field, const struct store_rows *rows, size_t row,
		   size_t column);

/* JSON text that this room stored itself. Never NULL. */
json_t *work_parse(const char *text);

DEFINE_CLEANUP(json_ref, json_t *, json_decref)

/* --- lists --- */

struct work_page {
	int64_t limit; /* rows to ask for are one more: that tells whether there is a next page */
	char after[ID_SIZE]; /* ids greater than this; "" from the start */
};
/* Ids of the list have this prefix. */
MUST_CHECK bool work_page(const struct control_call *call, const char *id_prefix,
			  struct work_page *ret_page, struct error *error);
/* {"items", "nextCursor"?} of rows whose first column is the id: as many as the page holds. */
json_t *work_rows_answer(const struct store_rows *rows, const struct work_page *page,
			 json_t *(*answer_row)(const struct store_rows *rows, size_t row));
/* The same of items that were built already, from `ids_count` ids found. */
json_t *work_items_answer(json_t *items, const struct work_page *page,
			  const struct store_rows *ids);

/* Raw query text to a number between min and max; `fallback` when absent. */
MUST_CHECK bool work_query_int(const char *text, const char *field, int64_t min, int64_t max,
			       int64_t fallback, int64_t *ret_number, struct error *error);

/* The tenant whose rows a list may show, "" for all. */
const char *work_scope(const struct control_principal *principal);
/* The same, or the one that `tenantId` names: NOT_FOUND unless the principal reaches it. */
MUST_CHECK bool work_tenant_asked(const struct control_call *call, const char **ret_tenant,
				  struct error *error);

/* From `from` on and before `to`, as the query says, else as given here. */
struct work_window {
	struct wall from, to;
};
MUST_CHECK bool work_window_asked(const struct control_call *call, struct work_window otherwise,
				  struct work_window *ret_window, struct error *error);

/* --- records --- */

void work_new_id(struct store_connection *db, const char *prefix, char out[ID_SIZE]);

/* Of an audit's details: where the call came from. */
#define WORK_AUDIT_ADDRESS "address"

/* Who did what to which object; `detail` may be NULL, else is taken over. Publishes the event of the
 * action. */
MUST_CHECK bool work_audit(struct store_connection *db, const struct control_principal *principal,
			   enum access_action action, const char *tenant, const char *object,
			   json_t *detail, struct error *error);

/* The same of a thing that was and is so: as its answers say it, NULL when it wasn't or isn't. */
MUST_CHECK bool work_audit_change(struct store_connection *db,
				  const struct control_principal *principal,
				  enum access_action action, const char *tenant, const char *object,
				  const json_t *before, const json_t *after, struct error *error);

/* Gives the audit's row of this request about this object its hashes. */
MUST_CHECK bool work_audit_hashes(struct store_connection *db,
				  const struct control_principal *principal, const char *object,
				  const json_t *before, const json_t *after, struct error *error);

/* An event of this transaction; `data` is taken over. */
MUST_CHECK bool work_event(struct store_connection *db, const char *tenant, const char *type,
			   const char *subject, json_t *data, struct error *error);

/* The next number of a counter, without holes and in order of commit: its row's value from here on.
 */
MUST_CHECK bool work_count(struct store_connection *db, const char *counter, struct error *error);

/* --- creates under an idempotency key --- */

#define WORK_KEY_HINT "Take another idempotency key, or give the input of then."

/* Was this create done before? *ret_object is its id, or "" when it wasn't or has no key. The same
 * key with other input is CONFLICT. */
MUST_CHECK bool work_find_done(struct store_connection *db, const struct control_call *call,
			       const char *key, enum access_action action, char ret_object[ID_SIZE],
			       struct error *error);
/* The thing is gone: its key may make another. */
MUST_CHECK bool work_forget_done(struct store_connection *db, const char *object,
				 struct error *error);
MUST_CHECK bool work_remember_done(struct store_connection *db, const struct control_call *call,
				   const char *key, enum access_action action, const char *object,
				   struct error *error);

/* NOT_FOUND for `kind` ("pool") of this id. Returns false. */
bool work_not_found(struct error *error, const char *kind, const char *id);
/* Of a CONFLICT that is there: it is about the body's name, which something else has. False. */
bool work_name_taken(struct error *error);

/* The path's {id}; NOT_FOUND unless it is one. */
MUST_CHECK bool work_path_id(const struct control_call *call, const char *kind, const char *prefix,
			     struct error *error);
