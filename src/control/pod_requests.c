#include "control/core/pod_requests.h"
#include "control/core/reservation.h"
#include "control/core/reserve_request.h"
#include "control/work.h"

/* What counts and has a node. */
#define HAS_NODE "state IN ('placed', 'bound')"

static bool read_query(const struct control_call *call, struct pod_asked *ret_asked,
		       struct error *error)
{
	struct pod_asked asked = {.one_class = call->class != NULL};
	int64_t devices;

	if (!work_query_int(call->devices, "devices", 1, RESERVE_MAX_DEVICES, 0, &devices, error))
		return false;
	if (call->class && !placement_class_parse(call->class, &asked.class))
		return error_field(error, "class", "'%.40s' is neither gpu, gpu.mig nor gpu.slot",
				   call->class);
	asked.devices = (int)devices;
	*ret_asked = asked;
	return true;
}

static bool load_state(struct store_connection *db, const struct control_call *call,
		       enum reservation_state *ret_state, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT tenant, state FROM reservations WHERE id = $1",
			 STORE_PARAMS(store_text(call->id)), &rows, error))
		return false;
	if (rows.count == 0 || !access_reaches(call->principal, store_get_text(&rows, 0, 0)))
		return work_not_found(error, "reservation", call->id);
	if (!reservation_state_parse(store_get_text(&rows, 0, 1), ret_state))
		assert(false);
	return true;
}

/* One row a node. */
static bool load_parts(struct store_connection *db, const char *reservation,
		       struct store_rows *rows, struct error *error)
{
	return store_query(db,
			   "SELECT vcpus, memory_bytes, hugepages_2mi, hugepages_1gi, "
			   "(SELECT count(*) FROM allocation_devices d WHERE d.allocation = a.id "
			   "AND d.class = 'gpu'), "
			   "(SELECT count(*) FROM allocation_devices d WHERE d.allocation = a.id "
			   "AND d.class = 'gpu.mig'), "
			   "(SELECT count(*) FROM allocation_devices d WHERE d.allocation = a.id "
			   "AND d.class = 'gpu.slot') "
			   "FROM allocations a WHERE reservation = $1 AND " HAS_NODE " ORDER BY id",
			   STORE_PARAMS(store_text(reservation)), rows, error);
}

static struct pod_part part_at(const struct store_rows *rows, size_t row)
{
	struct pod_part part = {
		.vcpus = store_get_int(rows, row, 0),
		.memory_bytes = store_get_int(rows, row, 1),
		.hugepages = work_hugepages_of(rows, row, 2),
	};

	for (int class = 0; class < PLACEMENT_CLASSES; class ++)
		part.devices[class] = (int)store_get_int(rows, row, 4 + (size_t)class);
	return part;
}

/* Returns false. */
static bool refuse(const struct control_call *call, enum reservation_state state,
		   struct error *error)
{
	error_set(error, ERROR_INVALID_STATE, "reservation '%s' is %s: it has nothing of a node",
		  call->id, reservation_state_shown(state));
	if (state == RESERVATION_PENDING)
		error_hint(error, "What it gets of a node is known when it is placed.");
	return false;
}

static bool reservation_pod_requests(struct store_connection *db, const struct control_call *call,
				     json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(arena) struct arena arena = {0};
	enum reservation_state state = RESERVATION_PENDING;
	struct pod_asked asked;
	struct pod_part *parts;

	if (!access_check(call->principal, ACCESS_RESERVATIONS_READ, error) ||
	    !work_path_id(call, "reservation", "rsv", error) || !read_query(call, &asked, error) ||
	    !load_state(db, call, &state, error) || !load_parts(db, call->id, &rows, error))
		return false;
	if (rows.count == 0)
		return refuse(call, state, error);
	parts = arena_alloc(&arena, rows.count * sizeof *parts);
	for (size_t i = 0; i < rows.count; i++)
		parts[i] = part_at(&rows, i);
	if (!pod_requests_make(parts, rows.count, asked, ret_answer, error))
		return false;
	json_object_set_new(*ret_answer, "id", json_string(call->id));
	return true;
}
WORK_CALL(reservation_pod_requests, STORE_READ)
