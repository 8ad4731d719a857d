#include "control/metering.h"

#include "control/core/metering.h"
#include "control/core/timestamp.h"

/* --- closing --- */

static bool write_row(struct store_connection *db, const char *id, const char *allocation,
		      struct metering_span span, struct error *error)
{
	return store_exec(
		db,
		"INSERT INTO meter (id, allocation, reservation, tenant, pool, node, "
		"started_ms, stopped_ms, seconds, reason) SELECT $1, a.id, r.id, r.tenant, "
		"r.pool, a.node, $3, $4, $5, a.end_reason FROM allocations a JOIN reservations r "
		"ON "
		"r.id = a.reservation WHERE a.id = $2",
		STORE_PARAMS(store_text(id), store_text(allocation), store_int(span.started_ms),
			     store_int(span.stopped_ms), store_int(metering_seconds(span))),
		error);
}

static bool write_devices(struct store_connection *db, const char *id, const char *allocation,
			  struct metering_span span, struct error *error)
{
	return store_exec(db,
			  "INSERT INTO meter_devices (meter, class, profile, devices, gpu_seconds) "
			  "SELECT $1, class, profile, count(*), count(*) * $3 FROM "
			  "allocation_devices WHERE allocation = $2 GROUP BY class, profile",
			  STORE_PARAMS(store_text(id), store_text(allocation),
				       store_int(metering_seconds(span))),
			  error);
}

bool metering_close(struct store_connection *db, const char *allocation, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct metering_span span;
	char id[ID_SIZE];

	if (!store_query(db, "SELECT bound_ms, to_ms, released_ms FROM allocations WHERE id = $1",
			 STORE_PARAMS(store_text(allocation)), &rows, error))
		return false;
	assert(rows.count == 1 && !store_is_null(&rows, 0, 2));
	span = metering_span(store_get_int(&rows, 0, 0), store_get_int(&rows, 0, 1),
			     store_get_int(&rows, 0, 2));
	work_new_id(db, "mtr", id);
	return write_row(db, id, allocation, span, error) &&
	       write_devices(db, id, allocation, span, error);
}

/* --- what a report is about --- */

struct asked {
	struct work_window window;
	const char *tenant, *pool; /* "" for all */
};

static bool parse_filter(const char *text, const char *field, const char *prefix,
			 const char **ret_id, struct error *error)
{
	if (text && !id_valid(text, prefix))
		return error_field(error, field, "'%.40s' is no id", text);
	*ret_id = text ? text : "";
	return true;
}

static bool parse_asked(const struct control_call *call, struct work_window otherwise,
			struct asked *ret_asked, struct error *error)
{
	struct asked asked;

	if (!work_window_asked(call, otherwise, &asked.window, error) ||
	    !parse_filter(call->tenant_id, "tenantId", "ten", &asked.tenant, error) ||
	    !parse_filter(call->pool_id, "poolId", "pool", &asked.pool, error) ||
	    !work_tenant_asked(call, &asked.tenant, error))
		return false;
	*ret_asked = asked;
	return true;
}

/* --- usage --- */

/* Seconds counted of a span until the moment `at`, as metering_seconds_within() does it. */
#define COUNTED(at)                                                                                \
	"(CASE WHEN " at " >= stopped_ms THEN (stopped_ms - started_ms) / 1000 "                   \
	"WHEN " at " <= started_ms THEN 0 ELSE (" at " - started_ms) / 1000 END)"

/* Spans of what is closed, and of what is bound now: $1 from, $2 to, $3 tenant, $4 pool, $5 now. */
#define SPANS                                                                                      \
	"SELECT m.tenant, m.pool, m.allocation, m.started_ms, m.stopped_ms, 0 AS open, d.class, "  \
	"d.profile, d.devices FROM meter m JOIN meter_devices d ON d.meter = m.id WHERE "          \
	"m.started_ms < m.stopped_ms AND m.stopped_ms > $1 AND m.started_ms < $2 AND ($3 = '' OR " \
	"m.tenant = $3) AND "                                                                      \
	"($4 = '' OR m.pool = $4) UNION ALL "                                                      \
	"SELECT r.tenant, r.pool, a.id, a.bound_ms, CASE WHEN a.to_ms < $5 THEN a.to_ms ELSE $5 "  \
	"END, 1, d.class, d.profile, count(*) FROM allocations a JOIN reservations r ON r.id = "   \
	"a.reservation JOIN allocation_devices d ON d.allocation = a.id WHERE a.state IN "         \
	"('bound', 'releasing') AND a.bound_ms < a.to_ms AND a.bound_ms < $2 AND a.to_ms > $1 "    \
	"AND a.bound_ms <= $5 AND ($3 = '' OR r.tenant = $3) AND ($4 = '' OR r.pool = $4) "        \
	"GROUP BY r.tenant, r.pool, a.id, a.bound_ms, a.to_ms, d.class, d.profile"

#define USAGE(columns)                                                                             \
	"SELECT " columns ", class, profile, CAST(sum((" COUNTED("$2") " - " COUNTED(              \
		"$1") ") * "                                                                       \
		      "devices) AS bigint), count(*), CAST(sum(open) AS bigint) FROM (" SPANS      \
		      ") AS spans "                                                                \
		      "GROUP BY " columns ", class, profile ORDER BY " columns ", class, profile"

#define COUNTED_IN_WINDOW "(" COUNTED("$5") " - " COUNTED("$4") ")"

bool metering_sum(struct store_connection *db, const char *tenant, const char *pool,
		  const char *class, int64_t from_ms, int64_t to_ms, int64_t *ret_seconds,
		  struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(
		    db,
		    "SELECT CAST(coalesce(sum(d.devices * " COUNTED_IN_WINDOW "), 0) AS bigint) "
		    "FROM meter m JOIN meter_devices d ON d.meter = m.id WHERE m.tenant = $1 AND "
		    "stopped_ms > $4 AND started_ms < $5 AND ($2 = '' OR m.pool = $2) AND ($3 = "
		    "'' OR d.class = $3)",
		    STORE_PARAMS(store_text(tenant), store_text(pool), store_text(class),
				 store_int(from_ms), store_int(to_ms)),
		    &rows, error))
		return false;
	*ret_seconds = store_get_int(&rows, 0, 0);
	return true;
}

static json_t *usage_items(const struct store_rows *rows, bool by_pool)
{
	json_t *items = json_array();

	for (size_t i = 0; i < rows->count; i++) {
		json_t *item = json_pack("{s:o}", "tenantId", work_text_of(rows, i, 0));

		if (by_pool)
			json_object_set_new(item, "poolId", work_text_of(rows, i, 1));
		json_object_set_new(item, "class", work_text_of(rows, i, by_pool ? 2 : 1));
		if (store_get_text(rows, i, by_pool ? 3 : 2)[0] != '\0')
			json_object_set_new(item, "profile",
					    work_text_of(rows, i, by_pool ? 3 : 2));
		json_object_set_new(item, "gpuSeconds", work_int_of(rows, i, rows->columns - 3));
		json_object_set_new(item, "allocations", work_int_of(rows, i, rows->columns - 2));
		json_object_set_new(item, "open", work_int_of(rows, i, rows->columns - 1));
		json_array_append_new(items, item);
	}
	return items;
}

static bool parse_by(const char *text, bool *ret_by_pool, struct error *error)
{
	*ret_by_pool = text && str_equal(text, "pool");
	return !text || *ret_by_pool || str_equal(text, "tenant") ||
	       error_field(error, "by", "'%.40s' is neither 'tenant' nor 'pool'", text);
}

static bool usage_get(struct store_connection *db, const struct control_call *call,
		      json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct wall now = store_now(db);
	struct asked asked;
	bool by_pool;

	/* Without a window: this month so far, its current second included. */
	if (!access_check(call->principal, ACCESS_USAGE_READ, error) ||
	    !parse_by(call->by, &by_pool, error) ||
	    !parse_asked(call, (struct work_window){metering_month(now), {now.ms + 1}}, &asked,
			 error) ||
	    !store_query(db, by_pool ? USAGE("tenant, pool") : USAGE("tenant"),
			 STORE_PARAMS(store_int(asked.window.from.ms),
				      store_int(asked.window.to.ms), store_text(asked.tenant),
				      store_text(asked.pool), store_int(now.ms)),
			 &rows, error))
		return false;
	*ret_answer =
		json_pack("{s:o, s:o, s:o}", "from", work_time(asked.window.from.ms), "to",
			  work_time(asked.window.to.ms), "items", usage_items(&rows, by_pool));
	return true;
}
WORK_CALL(usage_get, STORE_READ)

/* --- the rows themselves --- */

static bool meter_answer(struct store_connection *db, const struct store_rows *rows, size_t row,
			 json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows devices = {0};
	json_t *listed = json_array();
	int64_t total = 0;

	*ret_answer =
		json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id", work_text_of(rows, row, 0),
			  "allocationId", work_text_of(rows, row, 1), "reservationId",
			  work_text_of(rows, row, 2), "tenantId", work_text_of(rows, row, 3),
			  "poolId", work_text_of(rows, row, 4), "nodeId",
			  work_text_of(rows, row, 5), "devices", listed);
	work_set_time(*ret_answer, "startedAt", rows, row, 6);
	work_set_time(*ret_answer, "stoppedAt", rows, row, 7);
	json_object_set_new(*ret_answer, "reason", work_text_of(rows, row, 8));
	if (!store_query(db,
			 "SELECT class, profile, devices, gpu_seconds FROM meter_devices WHERE "
			 "meter = $1 ORDER BY class, profile",
			 STORE_PARAMS(store_text(store_get_text(rows, row, 0))), &devices, error)) {
		json_decref(*ret_answer);
		return false;
	}
	for (size_t i = 0; i < devices.count; i++) {
		json_t *device = json_pack("{s:o}", "class", work_text_of(&devices, i, 0));

		if (store_get_text(&devices, i, 1)[0] != '\0')
			json_object_set_new(device, "profile", work_text_of(&devices, i, 1));
		json_object_set_new(device, "count", work_int_of(&devices, i, 2));
		json_object_set_new(device, "gpuSeconds", work_int_of(&devices, i, 3));
		json_array_append_new(listed, device);
		total += store_get_int(&devices, i, 3);
	}
	json_object_set_new(*ret_answer, "gpuSeconds", json_integer(total));
	return true;
}

static bool meter_list(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(json_ref) json_t *items = json_array();
	struct work_page page;
	struct asked asked;

	/* A row belongs to the window in which it stopped, so that each is in one of them. */
	if (!access_check(call->principal, ACCESS_USAGE_READ, error) ||
	    !work_page(call, "mtr", &page, error) ||
	    !parse_asked(call, (struct work_window){.to = {INT64_MAX}}, &asked, error) ||
	    !store_query(db,
			 "SELECT id, allocation, reservation, tenant, pool, node, started_ms, "
			 "stopped_ms, reason FROM meter WHERE id > $1 AND ($2 = '' OR tenant = $2) "
			 "AND ($3 = '' OR pool = $3) AND stopped_ms >= $4 AND stopped_ms < $5 "
			 "ORDER BY id LIMIT $6",
			 STORE_PARAMS(store_text(page.after), store_text(asked.tenant),
				      store_text(asked.pool), store_int(asked.window.from.ms),
				      store_int(asked.window.to.ms), store_int(page.limit + 1)),
			 &rows, error))
		return false;
	for (size_t i = 0; i < rows.count && i < (size_t)page.limit; i++) {
		json_t *answer;

		if (!meter_answer(db, &rows, i, &answer, error))
			return false;
		json_array_append_new(items, answer);
	}
	*ret_answer = work_items_answer(TAKE(items), &page, &rows);
	return true;
}
WORK_CALL(meter_list, STORE_READ)
