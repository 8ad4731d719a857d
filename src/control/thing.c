#include "control/thing.h"

bool thing_load(struct store_connection *db, const struct control_call *call,
		const struct thing *thing, const char *id, struct store_rows *rows,
		struct error *error)
{
	if (!store_query(db, thing->one, STORE_PARAMS(store_text(id)), rows, error))
		return false;
	if (rows->count == 0 ||
	    !access_reaches(call->principal, store_get_text(rows, 0, thing->tenant_column)))
		return work_not_found(error, thing->kind, id);
	return true;
}

bool thing_answer(struct store_connection *db, const struct control_call *call,
		  const struct thing *thing, const char *id, json_t **ret_answer,
		  struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	return thing_load(db, call, thing, id, &rows, error) &&
	       thing->answer(db, &rows, 0, ret_answer, error);
}

bool thing_get(struct store_connection *db, const struct control_call *call,
	       const struct thing *thing, json_t **ret_answer, struct error *error)
{
	return access_check(call->principal, thing->read, error) &&
	       work_path_id(call, thing->kind, thing->prefix, error) &&
	       thing_answer(db, call, thing, call->id, ret_answer, error);
}

static bool answer_each(struct store_connection *db, const struct thing *thing,
			const struct store_rows *rows, size_t count, json_t *items,
			struct error *error)
{
	for (size_t i = 0; i < count; i++) {
		json_t *answer;

		if (!thing->answer(db, rows, i, &answer, error))
			return false;
		json_array_append_new(items, answer);
	}
	return true;
}

bool thing_list(struct store_connection *db, const struct control_call *call,
		const struct thing *thing, json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(json_ref) json_t *items = json_array();
	struct work_page page;
	size_t count;

	if (!access_check(call->principal, thing->read, error) ||
	    !work_page(call, thing->prefix, &page, error))
		return false;

	const struct store_value params[] = {
		store_text(page.after),
		store_text(work_scope(call->principal)),
		store_int(page.limit + 1),
		store_text(call->pool_id ? call->pool_id : ""),
		store_text(call->state ? call->state : ""),
	};

	assert(thing->filters + 3 <= ARRAY_SIZE(params));
	if (!store_query(db, thing->page, params, 3 + thing->filters, &rows, error))
		return false;
	count = rows.count < (size_t)page.limit ? rows.count : (size_t)page.limit;
	if (!(thing->answers
		      ? thing->answers(db, params, 3 + thing->filters, &rows, count, items, error)
		      : answer_each(db, thing, &rows, count, items, error)))
		return false;
	*ret_answer = work_items_answer(TAKE(items), &page, &rows);
	return true;
}

/* --- making one --- */

bool thing_create(struct store_connection *db, const struct control_call *call,
		  const struct thing_create *create, json_t **ret_answer, struct error *error)
{
	const struct thing *thing = create->thing;
	char id[ID_SIZE];

	if (create->tenant && !access_reaches(call->principal, create->tenant))
		return work_not_found(error, "tenant", create->tenant);
	if (!work_find_done(db, call, create->key, create->action, id, error))
		return false;
	if (id[0] != '\0')
		return thing_answer(db, call, thing, id, ret_answer, error);
	work_new_id(db, thing->prefix, id);
	return create->insert(db, id, create->input, error) &&
	       work_remember_done(db, call, create->key, create->action, id, error) &&
	       thing_answer(db, call, thing, id, ret_answer, error) &&
	       work_audit_change(db, call->principal, create->action,
				 create->tenant ? create->tenant : id, id, NULL, *ret_answer,
				 error);
}

/* --- changing one --- */

bool thing_change_begin(struct store_connection *db, const struct control_call *call,
			const struct thing *thing, enum access_action action,
			struct thing_change *change, struct error *error)
{
	thing_change_deinit(change);
	change->thing = thing;
	change->action = action;
	return access_check(call->principal, action, error) &&
	       work_path_id(call, thing->kind, thing->prefix, error) &&
	       thing_load(db, call, thing, call->id, &change->rows, error) &&
	       thing->answer(db, &change->rows, 0, &change->before, error);
}

bool thing_change_end(struct store_connection *db, const struct control_call *call,
		      const struct thing_change *change, json_t **ret_answer, struct error *error)
{
	const struct thing *thing = change->thing;

	return thing_answer(db, call, thing, call->id, ret_answer, error) &&
	       (json_equal(change->before, *ret_answer) ||
		work_audit_change(db, call->principal, change->action,
				  store_get_text(&change->rows, 0, thing->tenant_column), call->id,
				  change->before, *ret_answer, error));
}

void thing_change_deinit(struct thing_change *change)
{
	store_rows_deinit(&change->rows);
	json_decref(change->before);
	*change = (struct thing_change){0};
}

/* --- ending one --- */

bool thing_check_unused(struct store_connection *db, const struct thing *thing, const char *id,
			const char *sql, const char *what, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, sql, STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	if (rows.count == 0)
		return true;
	error_set(error, ERROR_INVALID_STATE, "%s '%s' still has %s: %s", thing->kind, id, what,
		  store_get_text(&rows, 0, 0));
	return error_hint(error, "End that first; there may be more.");
}
