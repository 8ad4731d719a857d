#include "control/work.h"

#define COLUMNS                                                                                    \
	"SELECT id, at_ms, request, api_key, tenant, action, object, before_hash, after_hash, "    \
	"detail FROM audit WHERE "
/* What every list can be narrowed by: $1 is the last page's end, $2 the tenant, $3 the object. */
#define NARROWED                                                                                   \
	"($1 = '' OR id < $1) AND ($4 = '' OR api_key = $4) AND ($5 = '' OR action = $5) AND "     \
	"at_ms >= $6 AND at_ms < $7 ORDER BY id DESC LIMIT $8"

/* One a way in: by the thing, by the tenant, or by time alone. Parameters are the same. */
static const char BY_OBJECT[] = COLUMNS "object = $3 AND ($2 = '' OR tenant = $2) AND " NARROWED;
static const char BY_TENANT[] = COLUMNS "tenant = $2 AND $3 = '' AND " NARROWED;
static const char BY_TIME[] = COLUMNS "$2 = '' AND $3 = '' AND " NARROWED;

static json_t *row_answer(const struct store_rows *rows, size_t row)
{
	CLEANUP(json_ref) json_t *detail = work_parse(store_get_text(rows, row, 9));
	json_t *address;
	json_t *answer = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id", work_text_of(rows, row, 0), "at",
		work_time(store_get_int(rows, row, 1)), "requestId", work_text_of(rows, row, 2),
		"keyId", work_text_of(rows, row, 3), "tenantId", work_text_of(rows, row, 4),
		"action", work_text_of(rows, row, 5), "object", work_text_of(rows, row, 6));

	if (!store_is_null(rows, row, 7))
		json_object_set_new(answer, "before", work_text_of(rows, row, 7));
	if (!store_is_null(rows, row, 8))
		json_object_set_new(answer, "after", work_text_of(rows, row, 8));
	address = json_object_get(detail, WORK_AUDIT_ADDRESS);
	if (address)
		json_object_set(answer, "address", address);
	json_object_del(detail, WORK_AUDIT_ADDRESS);
	if (json_object_size(detail) > 0)
		json_object_set(answer, "detail", detail);
	return answer;
}

static bool check_action(const char *action, struct error *error)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz-";
	const char *noun = action ? action + strlen("compute:") : "";
	size_t length;

	if (!action)
		return true;
	length = str_starts(action, "compute:") ? strspn(noun, letters) : 0;
	if (length > 0 && noun[length] == ':' && noun[length + 1] &&
	    strspn(noun + length + 1, letters) == strlen(noun + length + 1))
		return true;
	return error_field(error, "action", "'%.80s' is not of the form compute:pools:patch",
			   action);
}

static bool audit_list(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	const char *object = call->object ? call->object : "";
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct work_window window;
	const char *tenant, *sql;
	struct work_page page;

	if (!access_check(call->principal, ACCESS_AUDIT_READ, error) ||
	    !work_page(call, "aud", &page, error) ||
	    !work_window_asked(call, (struct work_window){.to = {INT64_MAX}}, &window, error) ||
	    !check_action(call->action, error) || !work_tenant_asked(call, &tenant, error))
		return false;
	sql = *object ? BY_OBJECT : *tenant ? BY_TENANT : BY_TIME;
	if (!store_query(db, sql,
			 STORE_PARAMS(store_text(page.after), store_text(tenant),
				      store_text(object),
				      store_text(call->key_id ? call->key_id : ""),
				      store_text(call->action ? call->action : ""),
				      store_int(window.from.ms), store_int(window.to.ms),
				      store_int(page.limit + 1)),
			 &rows, error))
		return false;
	*ret_answer = work_rows_answer(&rows, &page, row_answer);
	return true;
}
WORK_CALL(audit_list, STORE_READ)
