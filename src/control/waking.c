#include "control/waking.h"

#include "control/reservations.h"

enum column {
	ALLOCATION,
	ORDINAL, /* of a device in it */
	RESERVATION,
	TENANT,
	LOST_REASON,
	EXPOSED,
	HEALTHY, /* NULL: gone from the inventory */
	CAUSE,
	UNCONFIRMED,
	UNOFFERED,
};

static bool load(struct store_connection *db, const char *node, struct store_rows *rows,
		 struct error *error)
{
	return store_query(
		db,
		"SELECT a.id, d.ordinal, a.reservation, r.tenant, coalesce(a.lost_reason, ''), "
		"CASE WHEN c.type IS NULL THEN 0 ELSE 1 END, m.healthy, "
		"coalesce(m.cause, ''), CASE WHEN u.type IS NULL THEN 0 ELSE 1 END, "
		"CASE WHEN g.type IS NULL THEN 0 ELSE 1 END "
		"FROM allocations a "
		"JOIN reservations r ON r.id = a.reservation "
		"JOIN allocation_devices d ON d.allocation = a.id "
		"LEFT JOIN atoms m ON m.node = a.node AND m.atom = d.atom "
		"LEFT JOIN node_conditions c ON c.node = a.node AND c.type = "
		"'ForeignGpuExposure' LEFT JOIN node_conditions u ON u.node = a.node AND "
		"u.type = 'PodResourcesUnavailable' LEFT JOIN node_conditions g ON g.node = "
		"a.node AND g.type = 'GpuApiUnsupported' WHERE a.node = $1 AND a.state = 'bound' "
		"ORDER BY a.id, d.ordinal",
		STORE_PARAMS(store_text(node)), rows, error);
}

bool waking_begin(struct store_connection *db, const char *node, struct waking *waking,
		  struct error *error)
{
	return load(db, node, &waking->before, error);
}

/* Of what is bound both times; devices come in one order. */
static int compare_devices(const struct store_rows *a, size_t row_a, const struct store_rows *b,
			   size_t row_b)
{
	int order =
		strcmp(store_get_text(a, row_a, ALLOCATION), store_get_text(b, row_b, ALLOCATION));
	int64_t apart = store_get_int(a, row_a, ORDINAL) - store_get_int(b, row_b, ORDINAL);

	return order ? order : apart < 0 ? -1 : apart > 0;
}

static bool is_as_sound(const struct store_rows *a, size_t row_a, const struct store_rows *b,
			size_t row_b)
{
	return str_equal(store_get_text(a, row_a, LOST_REASON),
			 store_get_text(b, row_b, LOST_REASON)) &&
	       store_get_int(a, row_a, EXPOSED) == store_get_int(b, row_b, EXPOSED) &&
	       store_get_int(a, row_a, UNOFFERED) == store_get_int(b, row_b, UNOFFERED) &&
	       store_is_null(a, row_a, HEALTHY) == store_is_null(b, row_b, HEALTHY) &&
	       store_get_int(a, row_a, HEALTHY) == store_get_int(b, row_b, HEALTHY) &&
	       str_equal(store_get_text(a, row_a, CAUSE), store_get_text(b, row_b, CAUSE));
}

static const json_t *find(const json_t *conditions, const char *type)
{
	const json_t *condition;
	size_t index;

	json_array_foreach(conditions, index, condition)
	{
		if (str_equal(json_string_value(json_object_get(condition, "type")), type))
			return condition;
	}
	return NULL;
}

static const char *text_of(const json_t *condition, const char *field)
{
	const char *text = json_string_value(json_object_get(condition, field));

	return text ? text : "";
}

static bool tell(struct store_connection *db, const char *tenant, const char *reservation,
		 const char *type, struct error *error)
{
	CLEANUP(json_ref) json_t *conditions = NULL;
	const json_t *now;

	if (!reservation_conditions(db, reservation, &conditions, error))
		return false;
	now = find(conditions, type);
	return work_event(db, tenant, "reservation.condition.changed", reservation,
			  json_pack("{s:s, s:b, s:s, s:s}", "type", type, "status", now != NULL,
				    "reason", text_of(now, "reason"), "message",
				    text_of(now, "message")),
			  error);
}

typedef bool same_fn(const struct store_rows *a, size_t row_a, const struct store_rows *b,
		     size_t row_b);

/* One of the two conditions; each reservation is told once, however many of its devices changed. */
static bool tell_changed(struct store_connection *db, const struct store_rows *before,
			 const struct store_rows *after, const char *type, same_fn *same,
			 struct error *error)
{
	const char *told = "";
	size_t old = 0;

	for (size_t i = 0; i < after->count; i++) {
		const char *reservation = store_get_text(after, i, RESERVATION);

		while (old < before->count && compare_devices(before, old, after, i) < 0)
			old++;
		if (old == before->count)
			break;
		if (compare_devices(before, old, after, i) > 0 || str_equal(reservation, told) ||
		    same(before, old, after, i))
			continue;
		told = reservation;
		if (!tell(db, store_get_text(after, i, TENANT), reservation, type, error))
			return false;
	}
	return true;
}

static bool is_as_confirmed(const struct store_rows *a, size_t row_a, const struct store_rows *b,
			    size_t row_b)
{
	return store_get_int(a, row_a, UNCONFIRMED) == store_get_int(b, row_b, UNCONFIRMED);
}

bool waking_end(struct store_connection *db, const char *node, const struct waking *waking,
		struct error *error)
{
	const struct store_rows *before = &waking->before;
	CLEANUP(store_rows) struct store_rows after = {0};

	return before->count == 0 ||
	       (load(db, node, &after, error) &&
		tell_changed(db, before, &after, "Degraded", is_as_sound, error) &&
		tell_changed(db, before, &after, "Unconfirmed", is_as_confirmed, error));
}
