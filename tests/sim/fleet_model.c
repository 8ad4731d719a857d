#include "sim/fleet_model.h"

#include "base/hash.h"
#include "control/core/timestamp.h"
#include "sim/sim.h"

#define LEAVES         1024
#define BUCKETS        65536
#define UNREACHABLE_MS 30000
#define MINUTE_MS      ((int64_t)60000)
#define CARRY_MS       (5 * MINUTE_MS)
#define DAY_MS         (24 * 60 * MINUTE_MS)

struct model model;

static struct model_allocation *by_id[BUCKETS];
static struct model_reservation *reservations_by_id[BUCKETS];
static struct model_node *nodes_by_id[BUCKETS];

static size_t bucket(const char *id)
{
	uint64_t hash = hash_text(id);

	return (hash ^ hash >> 32) % BUCKETS;
}

void model_begin(void)
{
	memset(by_id, 0, sizeof by_id);
	memset(reservations_by_id, 0, sizeof reservations_by_id);
	memset(nodes_by_id, 0, sizeof nodes_by_id);
}

void model_end(void)
{
	vec_each (&model.allocations, struct model_allocation * *allocation)
		free(*allocation);
	vec_each (&model.reservations, struct model_reservation * *reservation) {
		vec_deinit(&(*reservation)->parts);
		free(*reservation);
	}
	vec_each (&model.nodes, struct model_node * *node) {
		vec_deinit(&(*node)->live);
		free(*node);
	}
	vec_deinit(&model.allocations);
	vec_deinit(&model.reservations);
	vec_deinit(&model.nodes);
	model = (struct model){0};
}

struct model_allocation *model_find(const char *id)
{
	struct model_allocation *allocation = by_id[bucket(id)];

	while (allocation && !str_equal(allocation->id, id))
		allocation = allocation->next;
	return allocation;
}

struct model_node *model_node_find(const char *id)
{
	struct model_node *node = nodes_by_id[bucket(id)];

	while (node && !str_equal(node->id, id))
		node = node->next;
	return node;
}

struct model_node *model_node_add(const char *id)
{
	struct model_node *node = mem_alloc(sizeof *node);

	str_copy(node->id, ID_SIZE, id);
	node->next = nodes_by_id[bucket(id)];
	nodes_by_id[bucket(id)] = node;
	*vec_push(&model.nodes) = node;
	return node;
}

struct model_reservation *model_reservation(const char *id)
{
	struct model_reservation **slot = &reservations_by_id[bucket(id)], *reservation;

	for (reservation = *slot; reservation; reservation = reservation->next)
		if (str_equal(reservation->id, id))
			return reservation;
	reservation = mem_alloc(sizeof *reservation);
	str_copy(reservation->id, ID_SIZE, id);
	reservation->next = *slot;
	*slot = reservation;
	*vec_push(&model.reservations) = reservation;
	return reservation;
}

/* --- devices and times --- */

bool model_share_devices(const struct model_allocation *a, const struct model_allocation *b)
{
	for (int i = 0; a->node == b->node && i < a->devices_count; i++)
		for (int j = 0; j < b->devices_count; j++)
			if (a->devices[i].gpu == b->devices[j].gpu &&
			    a->devices[i].lo < b->devices[j].hi &&
			    b->devices[j].lo < a->devices[i].hi)
				return true;
	return false;
}

/* Until when nobody else may come: for ever while nobody knows when it will be given back. */
static int64_t taken_until(const struct model_allocation *allocation, int64_t now_ms)
{
	if (allocation->state == MODEL_RELEASING || allocation->to_ms <= now_ms)
		return INT64_MAX;
	return allocation->booked_to_ms;
}

/* When somebody else's next booking has waited for 5 minutes, or for half its time; 0: there is none. */
static int64_t handover(const struct model_allocation *mine)
{
	int64_t first_ms = 0;

	vec_each (&mine->node->live, struct model_allocation * *other)
		if (*other != mine && model_share_devices(mine, *other) &&
		    (*other)->from_ms >= mine->booked_to_ms) {
			int64_t half_ms = ((*other)->booked_to_ms - (*other)->from_ms) / 2;
			int64_t at_ms =
				(*other)->from_ms + (half_ms < CARRY_MS ? half_ms : CARRY_MS);

			if (first_ms == 0 || at_ms < first_ms)
				first_ms = at_ms;
		}
	return first_ms;
}

bool model_reachable(const struct model_node *node, int64_t now_ms)
{
	return !node->gone && now_ms - node->seen_ms < UNREACHABLE_MS;
}

/* --- a claim --- */

static bool is_well(const struct model_allocation *claim)
{
	for (int i = 0; i < claim->devices_count; i++)
		if (claim->node->unhealthy & 1U << claim->devices[i].gpu)
			return false;
	return true;
}

/* RES-8, 14, 15, 42, 51: may this node be given anything, and these devices? */
static void check_node(const struct model_allocation *claim, int64_t now_ms)
{
	const struct model_node *node = claim->node;

	if (node->lost || node->draining || node->conditions || !model_reachable(node, now_ms))
		sim_broken("%s was placed on %s, which is %s", claim->id, node->id,
			   node->lost         ? "lost"
			   : node->draining   ? "draining"
			   : node->conditions ? "NoSchedule"
					      : "not in reach");
	if (node->spot && !claim->reservation->spot)
		sim_broken("%s was placed on the spot node %s", claim->id, node->id);
	if (!is_well(claim))
		sim_broken("%s was given a device of a sick GPU on %s", claim->id, node->id);
}

static int64_t used_at(const struct model_allocation *claim, int64_t at_ms, int64_t now_ms)
{
	int64_t sum = 0;

	vec_each (&claim->node->live, struct model_allocation * *other)
		if (*other != claim && (*other)->from_ms <= at_ms &&
		    at_ms < taken_until(*other, now_ms))
			sum += (*other)->vcpus;
	return sum;
}

/* HOST-11, 12: whoever is there at one time has no more than the host. */
static void check_host(const struct model_allocation *claim, int64_t from_ms, int64_t now_ms)
{
	int64_t most = used_at(claim, from_ms, now_ms);

	vec_each (&claim->node->live, struct model_allocation * *other) {
		int64_t at_ms = (*other)->from_ms;

		if (at_ms <= from_ms || at_ms >= claim->booked_to_ms)
			continue;
		int64_t used = used_at(claim, at_ms, now_ms);
		most = used > most ? used : most;
	}
	if (most + claim->vcpus > claim->node->vcpus)
		sim_broken("%s has %lld vCPUs on %s, where %lld of %lld are taken", claim->id,
			   (long long)claim->vcpus, claim->node->id, (long long)most,
			   (long long)claim->node->vcpus);
}

/* RES-19: what it has from then on nobody else has. */
static void check_devices(const struct model_allocation *claim, int64_t from_ms, int64_t now_ms)
{
	vec_each (&claim->node->live, struct model_allocation * *other)
		if (*other != claim && model_share_devices(claim, *other) &&
		    (*other)->from_ms < claim->booked_to_ms &&
		    from_ms < taken_until(*other, now_ms))
			sim_broken("%s was booked on devices of %s at the same time", claim->id,
				   (*other)->id);
}

/* The same of one that goes on from then. Who was there before it begins has to go for it anyway. */
static void check_next(const struct model_allocation *claim, int64_t from_ms)
{
	vec_each (&claim->node->live, struct model_allocation * *other)
		if (*other != claim && model_share_devices(claim, *other) &&
		    (*other)->from_ms >= from_ms && (*other)->from_ms < claim->booked_to_ms)
			sim_broken("%s goes on into the time of %s, on its devices", claim->id,
				   (*other)->id);
}

/* Nothing is in a Spec while its devices may be in somebody else's hands. */
static void start(struct model_allocation *allocation)
{
	vec_each (&allocation->node->live, struct model_allocation * *other)
		if (*other != allocation && (*other)->started &&
		    model_share_devices(allocation, *other))
			return;
	allocation->started = true;
}

static int64_t parse_time(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	struct wall time = {0};
	struct error error;

	if (text && !timestamp_parse(text, key, &time, &error))
		sim_broken("%s", error.what);
	return time.ms;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

struct model_device model_device_of(const struct model_node *node, const char *atom)
{
	const char *slot = strstr(atom, "/s");
	struct model_device device = {.gpu = -1, .hi = LEAVES};

	for (int i = 0; i < MODEL_GPUS; i++)
		if (strncmp(atom + strlen("gpu/"), node->uuids[i], strlen(node->uuids[i])) == 0)
			device.gpu = i;
	if (slot) {
		device.lo = LEAVES / MODEL_SLOTS * atoi(slot + strlen("/s"));
		device.hi = device.lo + LEAVES / MODEL_SLOTS;
	}
	return device;
}

static void take_devices(struct model_allocation *claim, const json_t *devices)
{
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *device = json_array_get(devices, i);

		if (claim->devices_count == MODEL_MAX_DEVICES)
			break;
		claim->slots = str_equal(text_of(device, "class"), "gpu.slot");
		claim->devices[claim->devices_count] =
			model_device_of(claim->node, text_of(device, "atom"));
		if (claim->devices[claim->devices_count++].gpu < 0)
			sim_broken("%s isn't a device of %s", text_of(device, "atom"),
				   claim->node->id);
	}
}

static void claim(struct model_reservation *of, const json_t *reservation, const json_t *allocation,
		  int64_t now_ms)
{
	struct model_node *node = model_node_find(text_of(allocation, "nodeId"));
	struct model_allocation *claim = mem_alloc(sizeof *claim);
	const char *id = text_of(allocation, "id");

	*vec_push(&model.allocations) = claim;
	str_copy(claim->id, ID_SIZE, id);
	claim->next = by_id[bucket(id)];
	by_id[bucket(id)] = claim;
	*vec_push(&of->parts) = claim;
	claim->reservation = of;
	claim->node = node;
	/* One that takes a failed part's place begins when it does. */
	claim->from_ms = parse_time(reservation, "startAt");
	claim->from_ms = claim->from_ms > now_ms ? claim->from_ms : now_ms;
	claim->to_ms = claim->booked_to_ms = parse_time(reservation, "endAt");
	claim->vcpus = json_integer_value(
		json_object_get(json_object_get(reservation, "resources"), "vcpu"));
	if (!node || !str_equal(text_of(allocation, "state"), "placed")) {
		sim_broken("%s comes into being as %s", id, text_of(allocation, "state"));
		return;
	}
	take_devices(claim, json_object_get(allocation, "devices"));
	check_node(claim, now_ms);
	check_devices(claim, claim->from_ms, now_ms);
	check_host(claim, claim->from_ms, now_ms);
	*vec_push(&node->live) = claim;
	if (claim->from_ms <= now_ms)
		start(claim);
}

/* --- a life --- */

static void over(struct model_allocation *allocation, int64_t now_ms)
{
	struct model_allocations *live = &allocation->node->live;

	allocation->state = MODEL_OVER;
	allocation->over_ms = now_ms;
	allocation->started = false;
	for (size_t i = live->count; i-- > 0;)
		if (live->items[i] == allocation)
			vec_remove(live, i);
}

void model_withdraw(struct model_allocation *allocation, int64_t now_ms)
{
	if (!allocation->sent && !allocation->bound_ms) {
		over(allocation, now_ms);
		return;
	}
	allocation->state = MODEL_RELEASING;
	allocation->asked_ms = now_ms;
	allocation->told = false;
	allocation->held = handover(allocation) == 0;
}

void model_move_end(struct model_reservation *reservation, int64_t end_ms, int64_t now_ms)
{
	vec_each (&reservation->parts, struct model_allocation * *part) {
		int64_t before_ms = (*part)->to_ms;

		if ((*part)->state != MODEL_PLACED && (*part)->state != MODEL_BOUND)
			continue;
		(*part)->to_ms = (*part)->booked_to_ms = end_ms;
		if (end_ms <= before_ms)
			continue;
		check_next(*part, before_ms);
		check_host(*part, before_ms, now_ms);
	}
}

void model_bound(struct model_allocation *allocation, int64_t now_ms)
{
	if (allocation->state == MODEL_OVER || !allocation->sent)
		return;
	if (!allocation->bound_ms)
		allocation->bound_ms = now_ms;
	if (allocation->state == MODEL_PLACED)
		allocation->state = MODEL_BOUND;
	allocation->binding_lost = false;
}

void model_failed(struct model_allocation *allocation, int64_t now_ms)
{
	if (!allocation->sent)
		return;
	if (allocation->state == MODEL_BOUND) {
		allocation->binding_lost = true;
	} else if (allocation->state == MODEL_PLACED) {
		allocation->reservation->shaken = true;
		over(allocation, now_ms);
	}
}

void model_released(struct model_allocation *allocation, int64_t now_ms)
{
	if (allocation->state == MODEL_RELEASING && allocation->told)
		over(allocation, now_ms);
}

void model_node_lost(struct model_node *node, int64_t now_ms)
{
	node->lost = true;
	while (node->live.count > 0) {
		struct model_allocation *allocation = node->live.items[node->live.count - 1];

		allocation->node_lost =
			allocation->state == MODEL_BOUND && allocation->reservation->active;
		if (!allocation->node_lost && allocation->state != MODEL_RELEASING)
			allocation->reservation->shaken = true;
		over(allocation, now_ms);
	}
}

/* --- a pass --- */

static int by_end(const void *a, const void *b)
{
	const struct model_allocation *left = *(struct model_allocation *const *)a;
	const struct model_allocation *right = *(struct model_allocation *const *)b;

	if (left->to_ms != right->to_ms)
		return left->to_ms < right->to_ms ? -1 : 1;
	return strcmp(left->id, right->id);
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct model_allocation *const *)a)->id,
		      (*(struct model_allocation *const *)b)->id);
}

static int by_start(const void *a, const void *b)
{
	const struct model_allocation *left = *(struct model_allocation *const *)a;
	const struct model_allocation *right = *(struct model_allocation *const *)b;

	if (left->from_ms != right->from_ms)
		return left->from_ms < right->from_ms ? -1 : 1;
	return strcmp(left->id, right->id);
}

typedef bool due_fn(const struct model_allocation *allocation, int64_t now_ms);

static bool has_ended(const struct model_allocation *allocation, int64_t now_ms)
{
	return allocation->state != MODEL_RELEASING && allocation->to_ms <= now_ms;
}

static bool is_releasing(const struct model_allocation *allocation, int64_t now_ms)
{
	return allocation->state == MODEL_RELEASING && allocation->asked_ms <= now_ms - 1000;
}

static bool begins(const struct model_allocation *allocation, int64_t now_ms)
{
	return allocation->state == MODEL_PLACED && !allocation->started &&
	       allocation->from_ms <= now_ms;
}

static struct model_allocations list_due(due_fn *due, int (*order)(const void *, const void *),
					 int64_t now_ms)
{
	struct model_allocations list = {0};

	vec_each (&model.nodes, struct model_node * *node)
		vec_each (&(*node)->live, struct model_allocation * *one)
			if (due(*one, now_ms))
				*vec_push(&list) = *one;
	if (list.count > 0)
		qsort(list.items, list.count, sizeof *list.items, order);
	return list;
}

/* RES-24 to 30, 55. */
static void look_at_release(struct model_allocation *allocation, int64_t now_ms)
{
	bool reachable = model_reachable(allocation->node, now_ms);
	int64_t handover_ms = handover(allocation);
	bool ends = false;

	if (!allocation->bound_ms && allocation->told && reachable &&
	    now_ms >= allocation->asked_ms + 10 * MINUTE_MS) {
		ends = true;
	} else if (handover_ms) {
		ends = now_ms >= handover_ms || (reachable && now_ms >= allocation->to_ms + DAY_MS);
	} else if (!allocation->held) {
		allocation->held = true;
	} else if (reachable && now_ms >= allocation->to_ms + DAY_MS) {
		ends = true;
	} else if (reachable && allocation->booked_to_ms - now_ms <= CARRY_MS / 2) {
		int64_t from_ms =
			allocation->booked_to_ms > now_ms ? allocation->booked_to_ms : now_ms;
		allocation->booked_to_ms = from_ms + CARRY_MS;
		model.carries++;
	}
	if (!ends)
		return;
	model.unilateral++;
	over(allocation, now_ms);
}

void model_tick(int64_t now_ms)
{
	struct model_allocations ended = list_due(has_ended, by_end, now_ms);
	vec_each (&ended, struct model_allocation * *one)
		model_withdraw(*one, now_ms);
	struct model_allocations releasing = list_due(is_releasing, by_name, now_ms);
	vec_each (&releasing, struct model_allocation * *one)
		look_at_release(*one, now_ms);
	struct model_allocations starting = list_due(begins, by_start, now_ms);
	vec_each (&starting, struct model_allocation * *one)
		start(*one);
	vec_deinit(&ended);
	vec_deinit(&releasing);
	vec_deinit(&starting);
}

/* --- a reservation as it is shown --- */

static void check_state(const struct model_allocation *part, const char *shown)
{
	static const char *const names[] = {"placed", "bound", "releasing", "released"};
	bool over = part->state == MODEL_OVER &&
		    (str_equal(shown, "released") || str_equal(shown, "failed"));

	if (!over && !str_equal(shown, names[part->state]))
		sim_broken("%s is %s, and should be %s", part->id, shown, names[part->state]);
}

/* RES-47: the first of its causes. */
static const char *degraded_by(const struct model_reservation *reservation, int64_t now_ms)
{
	bool lost = false, foreign = false, away = false, sick = false;

	vec_each (&reservation->parts, struct model_allocation * *part) {
		const struct model_node *node = (*part)->node;

		lost |= (*part)->node_lost && reservation->active;
		if ((*part)->state != MODEL_BOUND)
			continue;
		lost |= (*part)->binding_lost;
		foreign |= (node->conditions & MODEL_FOREIGN_EXPOSURE) != 0;
		away |= !model_reachable(node, now_ms);
		sick |= !is_well(*part);
	}
	return lost      ? "BindingLost"
	       : foreign ? "ForeignGpuExposure"
	       : away    ? "NodeUnreachable"
	       : sick    ? "AtomUnhealthy"
			 : "";
}

static void check_conditions(const struct model_reservation *reservation, const json_t *conditions,
			     int64_t now_ms)
{
	const char *degraded = "", *expected = degraded_by(reservation, now_ms);
	bool held = false, should = false;

	for (size_t i = 0; i < json_array_size(conditions); i++) {
		const json_t *condition = json_array_get(conditions, i);

		held |= str_equal(text_of(condition, "type"), "DevicesHeld");
		if (str_equal(text_of(condition, "type"), "Degraded"))
			degraded = text_of(condition, "reason");
	}
	vec_each (&reservation->parts, struct model_allocation * *part)
		should |= (*part)->state == MODEL_RELEASING;
	if (held != should)
		sim_broken("%s %s DevicesHeld", reservation->id, held ? "has" : "lacks");
	if (!str_equal(degraded, expected))
		sim_broken("%s is Degraded by '%s', and should be by '%s'", reservation->id,
			   degraded, expected);
}

/* A gang of which a part failed before it ran, and found no other place: all its parts go back. */
static void give_back(struct model_reservation *reservation, const json_t *shown, int64_t now_ms)
{
	bool given_back = str_equal(text_of(shown, "state"), "pending");
	const json_t *allocations = json_object_get(shown, "allocations");

	for (size_t i = 0; i < json_array_size(allocations); i++) {
		const json_t *one = json_array_get(allocations, i);
		const struct model_allocation *part = model_find(text_of(one, "id"));
		const char *state = text_of(one, "state");

		given_back |= part && (part->state == MODEL_PLACED || part->state == MODEL_BOUND) &&
			      (str_equal(state, "releasing") || str_equal(state, "released"));
	}
	if (!given_back)
		return;
	struct model_allocations parts = {0};
	vec_each (&reservation->parts, struct model_allocation * *part)
		if ((*part)->state == MODEL_PLACED || (*part)->state == MODEL_BOUND)
			*vec_push(&parts) = *part;
	if (parts.count > 0)
		qsort(parts.items, parts.count, sizeof *parts.items, by_name);
	vec_each (&parts, struct model_allocation * *part)
		model_withdraw(*part, now_ms);
	vec_deinit(&parts);
}

void model_sync(const json_t *shown, int64_t now_ms)
{
	struct model_reservation *reservation = model_reservation(text_of(shown, "id"));
	const json_t *allocations = json_object_get(shown, "allocations");

	reservation->active = str_equal(text_of(shown, "state"), "active");
	if (reservation->shaken)
		give_back(reservation, shown, now_ms);
	reservation->shaken = false;
	for (size_t i = 0; i < json_array_size(allocations); i++) {
		const json_t *allocation = json_array_get(allocations, i);
		const struct model_allocation *part = model_find(text_of(allocation, "id"));

		if (part)
			check_state(part, text_of(allocation, "state"));
		else
			claim(reservation, shown, allocation, now_ms);
	}
	check_conditions(reservation, json_object_get(shown, "conditions"), now_ms);
}

/* --- a Spec --- */

void model_spec(struct model_node *node, const char *const *wanted, size_t wanted_count,
		const char *const *withdrawn, size_t withdrawn_count)
{
	size_t should = 0, released = 0;

	vec_each (&node->live, struct model_allocation * *one) {
		bool releasing = (*one)->state == MODEL_RELEASING;

		should += !releasing && (*one)->started;
		released += releasing;
		(*one)->sent |= !releasing && (*one)->started;
		(*one)->told |= releasing;
	}
	for (size_t i = 0; i < wanted_count; i++) {
		const struct model_allocation *one = model_find(wanted[i]);

		if (!one || one->node != node || !one->sent ||
		    (one->state != MODEL_PLACED && one->state != MODEL_BOUND))
			sim_broken("the Spec of %s has %s, which is %s", node->id, wanted[i],
				   !one                            ? "unknown"
				   : one->state == MODEL_OVER      ? "over"
				   : one->state == MODEL_RELEASING ? "being released"
								   : "not to begin yet");
	}
	for (size_t i = 0; i < withdrawn_count; i++) {
		const struct model_allocation *one = model_find(withdrawn[i]);

		if (!one || one->node != node || one->state != MODEL_RELEASING)
			sim_broken("the Spec of %s waits for %s", node->id, withdrawn[i]);
	}
	if (wanted_count != should || withdrawn_count != released)
		sim_broken("the Spec of %s has %zu and waits for %zu, and should %zu and %zu",
			   node->id, wanted_count, withdrawn_count, should, released);
}

/* --- the bill --- */

static int64_t seconds_of(const struct model_allocation *allocation, int64_t now_ms)
{
	int64_t stop_ms = allocation->state == MODEL_OVER ? allocation->over_ms : now_ms;

	stop_ms = stop_ms < allocation->to_ms ? stop_ms : allocation->to_ms;
	if (!allocation->bound_ms || stop_ms <= allocation->bound_ms)
		return 0;
	return (stop_ms - allocation->bound_ms) / 1000;
}

int64_t model_seconds(bool slots, int64_t now_ms)
{
	int64_t sum = 0;

	vec_each (&model.allocations, struct model_allocation * *one)
		if ((*one)->slots == slots)
			sum += (*one)->devices_count * seconds_of(*one, now_ms);
	return sum;
}

void model_meter_row(const json_t *row)
{
	struct model_allocation *allocation = model_find(text_of(row, "allocationId"));
	int64_t billed = json_integer_value(json_object_get(row, "gpuSeconds"));

	if (!allocation || allocation->state != MODEL_OVER || allocation->metered) {
		sim_broken("the meter has a row of %s, which %s", text_of(row, "allocationId"),
			   !allocation           ? "never was"
			   : allocation->metered ? "has one already"
						 : "isn't over");
		return;
	}
	allocation->metered = true;
	if (billed != allocation->devices_count * seconds_of(allocation, 0))
		sim_broken("%s is billed %lld GPU-seconds, and should be %lld", allocation->id,
			   (long long)billed,
			   (long long)(allocation->devices_count * seconds_of(allocation, 0)));
	if (parse_time(row, "stoppedAt") > allocation->to_ms && billed > 0)
		sim_broken("%s is billed past its own end", allocation->id);
}

void model_meter_end(void)
{
	vec_each (&model.allocations, struct model_allocation * *one)
		if ((*one)->state == MODEL_OVER && !(*one)->metered)
			sim_broken("%s is over and not on the meter", (*one)->id);
}
