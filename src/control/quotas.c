#include "control/quotas.h"

#include "base/vec.h"
#include "control/core/body.h"
#include "control/core/metering.h"
#include "control/core/quotas.h"
#include "control/core/reserve_request.h"
#include "control/core/timestamp.h"
#include "control/metering.h"
#include "control/tenants.h"

#include <inttypes.h>

#define HOUR_S     3600
#define MONTH_SIZE 8 /* "2026-12" and NUL */

/* A limit, as stored. */
struct quota {
	const char *id, *tenant, *pool, *class; /* pool and class "" for any */
	int64_t max_devices, gpu_hours;         /* -1: without */
};

struct claims VEC_BODY(struct quota_claim);

/* --- who else has, or wants, something of it --- */

/* Devices are held until the node says otherwise; they are paid for until the end at most. */
static struct quota_claim allocation_claim(const struct store_rows *rows, size_t row,
					   int64_t now_ms)
{
	bool releasing = str_equal(store_get_text(rows, row, 0), "releasing");
	int64_t from_ms = store_get_int(rows, row, 1), to_ms = store_get_int(rows, row, 2);
	int64_t bound_ms = store_get_int(rows, row, 3);
	int64_t stop_ms = releasing && now_ms < to_ms ? now_ms : to_ms;
	int64_t start_ms = bound_ms ? bound_ms : from_ms > now_ms ? from_ms : now_ms;

	return (struct quota_claim){
		.devices = store_get_int(rows, row, 4),
		.from_ms = from_ms,
		.to_ms = releasing || to_ms <= now_ms ? INT64_MAX : to_ms,
		.billed_ms = start_ms < stop_ms ? start_ms : stop_ms,
		.billed_to_ms = stop_ms,
	};
}

static bool load_allocations(struct store_connection *db, const struct quota *quota,
			     const char *except, struct claims *claims, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT a.state, a.from_ms, a.to_ms, a.bound_ms, count(*) FROM "
			 "reservations r JOIN allocations a ON a.reservation = r.id JOIN "
			 "allocation_devices d ON d.allocation = a.id WHERE r.tenant = $1 AND "
			 "r.state IN ('placed', 'active', 'releasing') AND "
			 "a.state IN ('placed', 'bound', 'releasing') AND ($2 = '' OR r.pool = $2) "
			 "AND ($3 = '' OR d.class = $3) AND r.id <> $4 "
			 "GROUP BY a.id, a.state, a.from_ms, a.to_ms, a.bound_ms",
			 STORE_PARAMS(store_text(quota->tenant), store_text(quota->pool),
				      store_text(quota->class), store_text(except)),
			 &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++)
		*vec_push(claims) = allocation_claim(&rows, i, store_now(db).ms);
	return true;
}

static bool load_waiting(struct store_connection *db, const struct quota *quota, const char *except,
			 struct claims *claims, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t now_ms = store_now(db).ms;

	if (!store_query(
		    db,
		    "SELECT devices, duration_ms, start_ms, gang_nodes FROM reservations WHERE "
		    "tenant = $1 AND state = 'pending' AND ($2 = '' OR pool = $2) AND id <> $3",
		    STORE_PARAMS(store_text(quota->tenant), store_text(quota->pool),
				 store_text(except)),
		    &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		CLEANUP(json_ref) json_t *devices = work_parse(store_get_text(&rows, i, 0));
		struct placement_need needs[RESERVE_MAX_NEEDS];
		int64_t from_ms = store_is_null(&rows, i, 2) ? now_ms : store_get_int(&rows, i, 2);
		int64_t to_ms = from_ms + store_get_int(&rows, i, 1);
		int64_t copies = store_get_int(&rows, i, 3);
		size_t count;

		if (!reserve_needs_unpack(devices, needs, &count))
			return error_set(error, ERROR_INTERNAL,
					 "devices of a reservation as stored");
		*vec_push(claims) = (struct quota_claim){
			.devices = quota_devices(needs, count, quota->class) *
				   (copies > 0 ? copies : 1),
			.from_ms = from_ms,
			.to_ms = to_ms,
			.billed_ms = from_ms,
			.billed_to_ms = to_ms,
		};
	}
	return true;
}

/* --- the check --- */

static json_t *reason(const struct quota *quota, const char *unit, int64_t limit, int64_t used,
		      int64_t asked, json_t *message)
{
	return json_pack("{s:s, s:i, s:s, s:s, s:I, s:I, s:I, s:o}", "reason", "QuotaExceeded",
			 "nodes", 0, "quotaId", quota->id, "unit", unit, "limit", (json_int_t)limit,
			 "used", (json_int_t)used, "asked", (json_int_t)asked, "message", message);
}

static void check_devices(const struct quota *quota, const struct quota_question *question,
			  int64_t asked, const struct claims *claims, json_t *reasons)
{
	int64_t used = quota_peak(claims->items, claims->count, question->from_ms, question->to_ms);

	if (quota->max_devices < 0 || used + asked <= quota->max_devices)
		return;
	json_array_append_new(
		reasons,
		reason(quota, "devices", quota->max_devices, used, asked,
		       json_sprintf("quota '%s' allows %" PRId64 " device%s at the same time: "
				    "%" PRId64 " %s claimed and %" PRId64 " more %s asked for",
				    quota->id, quota->max_devices,
				    quota->max_devices == 1 ? "" : "s", used,
				    used == 1 ? "is" : "are", asked, asked == 1 ? "was" : "were")));
}

static json_t *hours_message(const struct quota *quota, struct wall month, int64_t used,
			     int64_t asked)
{
	char time[TIMESTAMP_SIZE], used_text[QUOTA_HOURS_SIZE], asked_text[QUOTA_HOURS_SIZE];

	timestamp_format(time, month);
	time[MONTH_SIZE - 1] = '\0';
	quota_format_hours(used_text, used);
	quota_format_hours(asked_text, asked);
	return json_sprintf("quota '%s' allows %" PRId64 " GPU-hours in %s: %s are used or claimed "
			    "and %s more were asked for",
			    quota->id, quota->gpu_hours, time, used_text, asked_text);
}

static bool check_hours(struct store_connection *db, const struct quota *quota,
			const struct quota_question *question, int64_t devices,
			const struct claims *claims, json_t *reasons, struct error *error)
{
	const struct quota_claim own = {.devices = devices,
					.billed_ms = question->from_ms,
					.billed_to_ms = question->to_ms};
	struct wall month = metering_month((struct wall){question->from_ms});
	int64_t limit = quota->gpu_hours * HOUR_S;

	if (quota->gpu_hours < 0)
		return true;
	while (month.ms < question->to_ms) {
		struct wall next = metering_next_month(month);
		int64_t asked = quota_seconds(&own, 1, month.ms, next.ms);
		int64_t used;

		if (!metering_sum(db, quota->tenant, quota->pool, quota->class, month.ms, next.ms,
				  &used, error))
			return false;
		used += quota_seconds(claims->items, claims->count, month.ms, next.ms);
		if (asked > 0 && used + asked > limit)
			json_array_append_new(reasons,
					      reason(quota, "gpuSeconds", limit, used, asked,
						     hours_message(quota, month, used, asked)));
		month = next;
	}
	return true;
}

static bool check_one(struct store_connection *db, const struct quota *quota,
		      const struct quota_question *question, json_t *reasons, struct error *error)
{
	const char *except = question->reservation ? question->reservation : "";
	int64_t asked = question->copies *
			quota_devices(question->needs, question->needs_count, quota->class);
	struct claims claims = {0};
	bool done;

	assert(question->copies > 0);
	if (asked == 0)
		return true;
	done = load_allocations(db, quota, except, &claims, error) &&
	       (question->placing || load_waiting(db, quota, except, &claims, error)) &&
	       check_hours(db, quota, question, asked, &claims, reasons, error);
	if (done)
		check_devices(quota, question, asked, &claims, reasons);
	vec_deinit(&claims);
	return done;
}

#define QUOTA_COLUMNS "id, tenant, pool, class, max_devices, gpu_hours, created_ms"

static struct quota quota_of(const struct store_rows *rows, size_t row)
{
	return (struct quota){
		.id = store_get_text(rows, row, 0),
		.tenant = store_get_text(rows, row, 1),
		.pool = store_get_text(rows, row, 2),
		.class = store_get_text(rows, row, 3),
		.max_devices = store_is_null(rows, row, 4) ? -1 : store_get_int(rows, row, 4),
		.gpu_hours = store_is_null(rows, row, 5) ? -1 : store_get_int(rows, row, 5),
	};
}

bool quota_check(struct store_connection *db, const struct quota_question *question,
		 json_t *reasons, bool *ret_within, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	size_t before = json_array_size(reasons);

	if (!store_query(db,
			 "SELECT " QUOTA_COLUMNS " FROM quotas WHERE tenant = $1 AND "
			 "(pool = '' OR pool = $2) ORDER BY id",
			 STORE_PARAMS(store_text(question->tenant), store_text(question->pool)),
			 &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		struct quota quota = quota_of(&rows, i);

		if (!check_one(db, &quota, question, reasons, error))
			return false;
	}
	*ret_within = json_array_size(reasons) == before;
	return true;
}

/* --- answers --- */

/* Held at this moment, and metered this month until now. */
static bool load_used(struct store_connection *db, const struct quota *quota, json_t **ret_used,
		      struct error *error)
{
	struct wall now = store_now(db), month = metering_month(now);
	struct claims claims = {0};
	int64_t devices, seconds;
	bool done = load_allocations(db, quota, "", &claims, error) &&
		    metering_sum(db, quota->tenant, quota->pool, quota->class, month.ms, now.ms,
				 &seconds, error);

	devices = quota_peak(claims.items, claims.count, now.ms, now.ms + 1);
	if (done) {
		seconds += quota_seconds(claims.items, claims.count, month.ms, now.ms);
		*ret_used = json_pack("{s:I, s:I}", "devices", (json_int_t)devices, "gpuSeconds",
				      (json_int_t)seconds);
	}
	vec_deinit(&claims);
	return done;
}

static bool quota_answer(struct store_connection *db, const struct store_rows *rows, size_t row,
			 json_t **ret_answer, struct error *error)
{
	struct quota quota = quota_of(rows, row);
	json_t *answer, *used;

	if (!load_used(db, &quota, &used, error))
		return false;
	answer = json_pack("{s:s, s:s}", "id", quota.id, "tenantId", quota.tenant);
	if (quota.pool[0] != '\0')
		json_object_set_new(answer, "poolId", json_string(quota.pool));
	if (quota.class[0] != '\0')
		json_object_set_new(answer, "class", json_string(quota.class));
	if (quota.max_devices >= 0)
		json_object_set_new(answer, "maxDevices", json_integer(quota.max_devices));
	if (quota.gpu_hours >= 0)
		json_object_set_new(answer, "gpuHoursPerMonth", json_integer(quota.gpu_hours));
	json_object_set_new(answer, "used", used);
	json_object_set_new(answer, "createdAt", work_time(store_get_int(rows, row, 6)));
	*ret_answer = answer;
	return true;
}

static bool load_visible(struct store_connection *db, const struct control_call *call,
			 const char *id, struct store_rows *rows, struct error *error)
{
	if (!store_query(db, "SELECT " QUOTA_COLUMNS " FROM quotas WHERE id = $1",
			 STORE_PARAMS(store_text(id)), rows, error))
		return false;
	return (rows->count == 1 && access_reaches(call->principal, store_get_text(rows, 0, 1))) ||
	       work_not_found(error, "quota", id);
}

static bool answer_quota(struct store_connection *db, const struct control_call *call,
			 const char *id, json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	return load_visible(db, call, id, &rows, error) &&
	       quota_answer(db, &rows, 0, ret_answer, error);
}

/* --- calls --- */

struct asked {
	const char *tenant, *pool, *class, *key; /* pool and class "" for any */
	int64_t max_devices, gpu_hours;          /* -1: without */
};

static bool parse_limits(const struct body *body, struct asked *asked, struct error *error)
{
	asked->max_devices = asked->gpu_hours = -1;
	if (!body_int(body, "maxDevices", BODY_OPTIONAL, 0, CONTROL_QUOTA_MAX_DEVICES,
		      &asked->max_devices, error) ||
	    !body_int(body, "gpuHoursPerMonth", BODY_OPTIONAL, 0, CONTROL_QUOTA_MAX_HOURS,
		      &asked->gpu_hours, error))
		return false;
	return asked->max_devices >= 0 || asked->gpu_hours >= 0 ||
	       error_field(error, "maxDevices", "is missing, and so is gpuHoursPerMonth");
}

static bool parse_create(const struct control_call *call, struct asked *asked, struct error *error)
{
	static const char *const known[] = {"tenantId",   "poolId",           "class",
					    "maxDevices", "gpuHoursPerMonth", "idempotencyKey",
					    NULL};
	static const char *const classes[] = {"gpu", "gpu.mig", "gpu.slot", NULL};
	struct body body;
	int class = -1;

	*asked = (struct asked){0};
	if (!body_open(call->body, "", known, &body, error) ||
	    !body_id(&body, "tenantId", BODY_REQUIRED, "ten", &asked->tenant, error) ||
	    !body_id(&body, "poolId", BODY_OPTIONAL, "pool", &asked->pool, error) ||
	    !body_choice(&body, "class", BODY_OPTIONAL, classes, &class, error) ||
	    !parse_limits(&body, asked, error) || !body_idempotency_key(&body, &asked->key, error))
		return false;
	asked->class = class >= 0 ? classes[class] : "";
	if (!asked->pool)
		asked->pool = "";
	return true;
}

/* The tenant and its pool are there, and have no such limit yet. */
static bool check_new(struct store_connection *db, const struct asked *asked, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT p.id, q.id FROM tenants t LEFT JOIN pools p ON p.tenant = t.id "
			 "AND p.id = $2 LEFT JOIN quotas q ON q.tenant = t.id AND q.pool = $2 AND "
			 "q.class = $3 WHERE t.id = $1",
			 STORE_PARAMS(store_text(asked->tenant), store_text(asked->pool),
				      store_text(asked->class)),
			 &rows, error))
		return false;
	if (rows.count == 0)
		return work_not_found(error, "tenant", asked->tenant);
	if (asked->pool[0] != '\0' && store_is_null(&rows, 0, 0))
		return work_not_found(error, "pool", asked->pool);
	if (store_is_null(&rows, 0, 1))
		return true;
	error_set(error, ERROR_CONFLICT, "there is a quota for the same already: %s",
		  store_get_text(&rows, 0, 1));
	return error_hint(error, "Change that one.");
}

static struct store_value limit_value(int64_t limit)
{
	return limit >= 0 ? store_int(limit) : store_null_int();
}

static json_t *limits(const struct asked *asked)
{
	json_t *detail = json_object();

	if (asked->max_devices >= 0)
		json_object_set_new(detail, "maxDevices", json_integer(asked->max_devices));
	if (asked->gpu_hours >= 0)
		json_object_set_new(detail, "gpuHoursPerMonth", json_integer(asked->gpu_hours));
	return detail;
}

static bool quota_create(struct store_connection *db, const struct control_call *call,
			 json_t **ret_answer, struct error *error)
{
	const enum access_action action = ACCESS_QUOTAS_CREATE;
	struct asked asked;
	char id[ID_SIZE];

	if (!access_check(call->principal, action, error) || !parse_create(call, &asked, error) ||
	    !work_find_done(db, call, asked.key, action, id, error))
		return false;
	if (id[0] != '\0')
		return answer_quota(db, call, id, ret_answer, error);
	work_new_id(db, "quo", id);
	return tenant_check_active(db, asked.tenant, error) && check_new(db, &asked, error) &&
	       store_exec(db,
			  "INSERT INTO quotas (id, tenant, pool, class, max_devices, gpu_hours, "
			  "created_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)",
			  STORE_PARAMS(store_text(id), store_text(asked.tenant),
				       store_text(asked.pool), store_text(asked.class),
				       limit_value(asked.max_devices), limit_value(asked.gpu_hours),
				       store_int(store_now(db).ms)),
			  error) &&
	       work_remember_done(db, call, asked.key, action, id, error) &&
	       work_audit(db, call->principal, action, asked.tenant, id, limits(&asked), error) &&
	       answer_quota(db, call, id, ret_answer, error);
}
WORK_MAKE(quota_create)

static bool quota_get(struct store_connection *db, const struct control_call *call,
		      json_t **ret_answer, struct error *error)
{
	return access_check(call->principal, ACCESS_QUOTAS_READ, error) &&
	       work_path_id(call, "quota", "quo", error) &&
	       answer_quota(db, call, call->id, ret_answer, error);
}
WORK_CALL(quota_get, STORE_READ)

static bool quota_list(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(json_ref) json_t *items = json_array();
	struct work_page page;

	if (!access_check(call->principal, ACCESS_QUOTAS_READ, error) ||
	    !work_page(call, "quo", &page, error) ||
	    !store_query(db,
			 "SELECT " QUOTA_COLUMNS " FROM quotas WHERE id > $1 AND "
			 "($2 = '' OR tenant = $2) AND ($3 = '' OR tenant = $3) "
			 "ORDER BY id LIMIT $4",
			 STORE_PARAMS(store_text(page.after),
				      store_text(work_scope(call->principal)),
				      store_text(call->tenant_id ? call->tenant_id : ""),
				      store_int(page.limit + 1)),
			 &rows, error))
		return false;
	for (size_t i = 0; i < rows.count && i < (size_t)page.limit; i++) {
		json_t *answer;

		if (!quota_answer(db, &rows, i, &answer, error))
			return false;
		json_array_append_new(items, answer);
	}
	*ret_answer = work_items_answer(TAKE(items), &page, &rows);
	return true;
}
WORK_CALL(quota_list, STORE_READ)

static bool quota_patch(struct store_connection *db, const struct control_call *call,
			json_t **ret_answer, struct error *error)
{
	static const char *const known[] = {"maxDevices", "gpuHoursPerMonth", NULL};
	const enum access_action action = ACCESS_QUOTAS_PATCH;
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct asked asked = {0};
	struct body body;

	if (!access_check(call->principal, action, error) ||
	    !work_path_id(call, "quota", "quo", error) ||
	    !body_open(call->body, "", known, &body, error) ||
	    !parse_limits(&body, &asked, error) || !load_visible(db, call, call->id, &rows, error))
		return false;
	return store_exec(db,
			  "UPDATE quotas SET max_devices = coalesce($2, max_devices), "
			  "gpu_hours = coalesce($3, gpu_hours) WHERE id = $1",
			  STORE_PARAMS(store_text(call->id), limit_value(asked.max_devices),
				       limit_value(asked.gpu_hours)),
			  error) &&
	       work_audit(db, call->principal, action, store_get_text(&rows, 0, 1), call->id,
			  limits(&asked), error) &&
	       answer_quota(db, call, call->id, ret_answer, error);
}
WORK_CHANGE(quota_patch, quota_get)

/* Answers what it was. */
static bool quota_delete(struct store_connection *db, const struct control_call *call,
			 json_t **ret_answer, struct error *error)
{
	const enum access_action action = ACCESS_QUOTAS_DELETE;
	CLEANUP(store_rows) struct store_rows rows = {0};

	return access_check(call->principal, action, error) &&
	       work_path_id(call, "quota", "quo", error) &&
	       load_visible(db, call, call->id, &rows, error) &&
	       quota_answer(db, &rows, 0, ret_answer, error) &&
	       store_exec(db, "DELETE FROM quotas WHERE id = $1",
			  STORE_PARAMS(store_text(call->id)), error) &&
	       work_forget_done(db, call->id, error) &&
	       work_audit(db, call->principal, action, store_get_text(&rows, 0, 1), call->id, NULL,
			  error);
}
WORK_END(quota_delete, quota_get)
