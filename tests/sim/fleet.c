#include "sim/fleet.h"

#include "control/core/timestamp.h"
#include "sim/fleet_nodes.h"
#include "sim/sim.h"
#include "store/store.h"

#include <stdio.h>

#define SECOND_MS ((int64_t)1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

#define OPS_A_NODE_AND_DAY 4
#define TAIL_DAYS          3  /* until all that clings has let go */
#define SAMPLE             30 /* reservations that are read each hour */
#define SOON_MS            2000

static struct {
	struct fleet_options options;
	struct fleet_result result;
	struct store *store;
	struct control control;
	struct control_principal operator;
	char tenant[ID_SIZE], pool[ID_SIZE];
	VEC(char *) live;    /* reservations that may not be over */
	int64_t event, push; /* read so far */
	int64_t begun_ms;
	bool calm, soon;
	struct error refused;
} fleet;

static void must(bool ok, const struct error *error)
{
	if (!ok)
		sim_broken("the control plane fails: %s", error->what);
}

int64_t fleet_now(void)
{
	return sim_true_wall().ms;
}

/* --- calls --- */

typedef bool call_fn(struct control *control, const struct control_call *call, json_t **ret_answer,
		     struct error *error);

/* Takes `body` over. NULL: refused. */
static json_t *call(call_fn *fn, const char *id, json_t *body)
{
	const struct control_call asked = {
		.principal = &fleet.operator, .id = id, .body = body, .limit = NULL};
	json_t *answer = NULL;

	if (!fn(&fleet.control, &asked, &answer, &fleet.refused))
		answer = NULL;
	json_decref(body);
	return answer;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

void fleet_look(const char *id)
{
	json_t *shown = call(control_reservation_get, id, NULL);

	if (shown)
		model_sync(shown, fleet_now());
	else
		sim_broken("reservation %s: %s", id, fleet.refused.what);
	json_decref(shown);
}

/* The first of a page's; true: there may be more. */
static bool read_events(void)
{
	char after[24];
	const struct control_call asked = {
		.principal = &fleet.operator, .after = after, .limit = "1000"};
	json_t *answer = NULL;
	const json_t *items;
	struct error error;
	bool more;

	snprintf(after, sizeof after, "%lld", (long long)fleet.event);
	must(control_event_list(&fleet.control, &asked, &answer, &error), &error);
	items = json_object_get(answer, "items");
	more = json_array_size(items) == 1000;
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i);

		if (str_equal(text_of(item, "type"), "reservation.state.changed"))
			fleet_look(text_of(item, "subject"));
	}
	if (answer)
		fleet.event = json_integer_value(json_object_get(answer, "next"));
	json_decref(answer);
	return more;
}

static void read_outbox(void)
{
	struct control_outbox outbox = {0};
	struct error error;

	must(control_outbox_poll(&fleet.control, fleet.push, &outbox, &error), &error);
	for (size_t i = 0; i < outbox.count; i++)
		fleet_node_pushed(outbox.items[i].node);
	fleet.push = outbox.last;
	control_outbox_deinit(&outbox);
}

void fleet_changed(void)
{
	while (read_events())
		;
	read_outbox();
}

/* --- passes --- */

static void tick(void)
{
	struct error error;

	fleet_nodes_beat();
	model_tick(fleet_now());
	must(control_tick(&fleet.control, &error), &error);
	fleet.result.passes++;
	fleet_changed();
}

static void on_tick(void *arg UNUSED)
{
	tick();
	sim_schedule(NULL, fleet.calm ? MINUTE_MS : 5000 + (int64_t)sim_below(20000), on_tick,
		     NULL);
}

static void on_soon(void *arg UNUSED)
{
	fleet.soon = false;
	tick();
}

void fleet_look_again(void)
{
	if (!fleet.soon && !fleet.calm)
		sim_schedule(NULL, SOON_MS, on_soon, NULL);
	fleet.soon = true;
}

/* --- what people do --- */

static void time_in(char out[TIMESTAMP_SIZE], int64_t in_ms)
{
	timestamp_format(out, (struct wall){sim_true_wall().ms + in_ms});
}

static int64_t any_minutes(void)
{
	switch (sim_below(10)) {
	case 0:
	case 1:
	case 2:
		return 1 + (int64_t)sim_below(60);
	case 3:
	case 4:
	case 5:
	case 6:
		return 60 + (int64_t)sim_below(11 * 60);
	default:
		return 12 * 60 + (int64_t)sim_below(60 * 60);
	}
}

static json_t *any_request(bool *ret_spot)
{
	bool slots = sim_below(5) == 0, gang = !slots && sim_below(12) == 0;
	int64_t count = 1 + (int64_t)sim_below(sim_below(3) ? 4 : 8);
	char duration[24], start[TIMESTAMP_SIZE];
	json_t *body;

	snprintf(duration, sizeof duration, "%lldm", (long long)any_minutes());
	body = json_pack("{s:s, s:s, s:[{s:s, s:I}], s:s, s:s}", "tenantId", fleet.tenant, "poolId",
			 fleet.pool, "devices", "class", slots ? "gpu.slot" : "gpu", "count",
			 (json_int_t)count, "duration", duration, "binding", "kubernetes");
	if (sim_below(4) == 0) {
		time_in(start, 1000 + (int64_t)sim_below(2 * DAY_MS));
		json_object_set_new(body, "startAt", json_string(start));
	}
	if (sim_below(5) == 0)
		json_object_set_new(body, "resources",
				    json_pack("{s:I, s:I}", "vcpu", (json_int_t)(1 + sim_below(64)),
					      "memoryGiB", (json_int_t)(1 + sim_below(400))));
	if (gang)
		json_object_set_new(body, "gang",
				    json_pack("{s:I}", "nodes", (json_int_t)(2 + sim_below(3))));
	*ret_spot = sim_below(8) == 0;
	if (*ret_spot)
		json_object_set_new(body, "spot", json_true());
	return body;
}

static void on_regret(void *arg);

static void reserve(void)
{
	bool spot;
	json_t *answer = call(control_reservation_create, NULL, any_request(&spot));

	if (!answer) {
		sim_broken("a reservation is refused: %s", fleet.refused.what);
		return;
	}
	*vec_push(&fleet.live) = mem_strdup(text_of(answer, "id"));
	model_reservation(text_of(answer, "id"))->spot = spot;
	sim_trace("reserve: %s %s", text_of(answer, "id"), text_of(answer, "state"));
	fleet.result.reservations++;
	if (sim_below(8) == 0)
		sim_schedule(NULL, (int64_t)sim_below(20000), on_regret,
			     mem_strdup(text_of(answer, "id")));
	json_decref(answer);
}

static bool is_over(const struct model_reservation *reservation)
{
	vec_each (&reservation->parts, struct model_allocation * *part)
		if ((*part)->state != MODEL_OVER)
			return false;
	return reservation->parts.count > 0;
}

/* Any that may not be over; NULL: there is none. */
static const char *any_live(void)
{
	while (fleet.live.count > 0) {
		size_t i = sim_below(fleet.live.count);

		if (!is_over(model_reservation(fleet.live.items[i])))
			return fleet.live.items[i];
		free(fleet.live.items[i]);
		vec_remove(&fleet.live, i);
	}
	return NULL;
}

static void release(const char *id)
{
	struct model_reservation *reservation = model_reservation(id);
	struct model_allocations parts = {0};
	json_t *shown = call(control_reservation_get, id, NULL);
	const char *state = text_of(shown, "state");

	sim_trace("release %s, %s", id, state);
	if (str_equal(state, "placed") || str_equal(state, "active"))
		vec_each (&reservation->parts, struct model_allocation * *part)
			if ((*part)->state == MODEL_PLACED || (*part)->state == MODEL_BOUND)
				*vec_push(&parts) = *part;
	vec_each (&parts, struct model_allocation * *part)
		model_withdraw(*part, fleet_now());
	vec_deinit(&parts);
	json_decref(shown);
	json_decref(call(control_reservation_release, id, NULL));
	vec_each (&reservation->parts, struct model_allocation * *part)
		if ((*part)->state == MODEL_RELEASING && !(*part)->told)
			fleet_node_speaks_early(*part);
}

/* Given back before its node has bound it. */
static void on_regret(void *arg)
{
	char *id = arg;

	fleet_nodes_beat();
	if (!fleet.calm && !is_over(model_reservation(id)))
		release(id);
	fleet_changed();
	free(id);
}

/* Longer, shorter, or another start: a refusal is fine. */
static void change(const char *id)
{
	char text[TIMESTAMP_SIZE];
	json_t *body, *answer, *before = call(control_reservation_get, id, NULL);
	bool pending = str_equal(text_of(before, "state"), "pending");
	struct wall end = {0};
	struct error error;

	json_decref(before);
	time_in(text, (int64_t)(MINUTE_MS + sim_below(3 * DAY_MS)));
	if (pending)
		body = json_pack("{s:s}", "startAt", text);
	else
		body = json_pack("{s:s}", "endAt", text);
	answer = call(control_reservation_patch, id, body);
	sim_trace("change %s: %s %s", id, text, answer ? "done" : fleet.refused.what);
	if (answer && !pending && timestamp_parse(text_of(answer, "endAt"), "endAt", &end, &error))
		model_move_end(model_reservation(id), end.ms, fleet_now());
	json_decref(answer);
}

static void lose_node(void)
{
	struct fleet_node *node = fleet_node_any();
	json_t *answer;

	if (node->is->lost)
		return;
	struct model_allocations had = {0};
	vec_each (&node->is->live, struct model_allocation * *part)
		*vec_push(&had) = *part;
	fleet_node_lose(node);
	answer = call(control_node_retire, node->is->id, json_pack("{s:b}", "lost", 1));
	must(answer != NULL, &fleet.refused);
	json_decref(answer);
	vec_each (&had, struct model_allocation * *part)
		fleet_look((*part)->reservation->id);
	vec_deinit(&had);
}

static void drain(struct fleet_node *node, bool on)
{
	if (node->is->lost || node->is->draining == on)
		return;
	json_t *answer = call(on ? control_node_drain : control_node_undrain, node->is->id, NULL);
	must(answer != NULL, &fleet.refused);
	node->is->draining = on;
	json_decref(answer);
}

static void node_trouble(void)
{
	struct fleet_node *node = fleet_node_any();
	uint64_t what = sim_below(100);

	if (what < 30)
		fleet_node_disconnect(node, 5000 + (int64_t)sim_below(sim_below(4) ? 10 * MINUTE_MS
										   : 6 * HOUR_MS));
	else if (what < 50)
		fleet_node_sickens(node, sim_below(3) > 0);
	else if (what < 65)
		fleet_node_condition(node,
				     sim_below(2) ? MODEL_FOREIGN_EXPOSURE : MODEL_PODS_UNKNOWN,
				     sim_below(4) == 0);
	else if (what < 75)
		drain(node, sim_below(3) == 0);
	else if (what < 85)
		fleet_node_loses_binding(node);
	else if (what < 99)
		fleet_node_repeats_itself(node);
	else
		lose_node();
}

static void something_happens(void)
{
	uint64_t what = sim_below(100);
	const char *id = what < 45 || what >= 70 ? NULL : any_live();

	if (what < 45)
		reserve();
	else if (what >= 70)
		node_trouble();
	else if (id && what < 55)
		release(id);
	else if (id)
		change(id);
	fleet_changed();
}

static void on_op(void *arg UNUSED)
{
	int64_t usual_ms = DAY_MS / OPS_A_NODE_AND_DAY / fleet.options.nodes;

	if (fleet.calm)
		return;
	fleet_nodes_beat();
	something_happens();
	sim_schedule(NULL, 1 + (int64_t)sim_below((uint64_t)(2 * usual_ms)), on_op, NULL);
}

/* --- each hour --- */

static bool bookings_body(struct store_connection *db, void *arg, struct error *error)
{
	return store_query(db,
			   "SELECT allocation, gpu, leaf_lo, leaf_hi, from_ms, to_ms, held FROM "
			   "bookings",
			   STORE_NO_PARAMS, arg, error);
}

static bool has_device(const struct model_allocation *allocation, const struct store_rows *rows,
		       size_t row)
{
	for (int i = 0; i < allocation->devices_count; i++) {
		const struct model_device *device = &allocation->devices[i];

		if (str_equal(allocation->node->uuids[device->gpu], store_get_text(rows, row, 1)) &&
		    device->lo == store_get_int(rows, row, 2) &&
		    device->hi == store_get_int(rows, row, 3))
			return true;
	}
	return false;
}

static void check_bookings(void)
{
	struct store_rows rows = {0};
	size_t should = 0;
	struct error error;

	must(store_run(fleet.control.connection, STORE_READ, bookings_body, &rows, &error), &error);
	for (size_t i = 0; i < rows.count; i++) {
		const struct model_allocation *is = model_find(store_get_text(&rows, i, 0));

		if (!is || is->state == MODEL_OVER || !has_device(is, &rows, i) ||
		    is->from_ms != store_get_int(&rows, i, 4) ||
		    is->booked_to_ms != store_get_int(&rows, i, 5) ||
		    is->held != (store_get_int(&rows, i, 6) != 0))
			sim_broken("%s has %s booked from %lld until %lld%s, and should from %lld "
				   "until %lld%s",
				   store_get_text(&rows, i, 0), store_get_text(&rows, i, 1),
				   (long long)store_get_int(&rows, i, 4),
				   (long long)store_get_int(&rows, i, 5),
				   store_get_int(&rows, i, 6) ? " and held" : "",
				   (long long)(is ? is->from_ms : 0),
				   (long long)(is ? is->booked_to_ms : 0),
				   is && is->held ? " and held" : "");
	}
	vec_each (&model.nodes, struct model_node * *node)
		vec_each (&(*node)->live, struct model_allocation * *one)
			should += (size_t)(*one)->devices_count;
	if (rows.count != should)
		sim_broken("%zu devices are booked, and %zu should be", rows.count, should);
	store_rows_deinit(&rows);
}

static void check_usage(void)
{
	char from[TIMESTAMP_SIZE], to[TIMESTAMP_SIZE];
	const struct control_call asked = {.principal = &fleet.operator, .from = from, .to = to};
	json_t *answer = NULL;
	int64_t seconds[2] = {0};
	struct error error;

	timestamp_format(from, (struct wall){fleet.begun_ms});
	time_in(to, SECOND_MS);
	must(control_usage_get(&fleet.control, &asked, &answer, &error), &error);
	for (size_t i = 0; i < json_array_size(json_object_get(answer, "items")); i++) {
		const json_t *item = json_array_get(json_object_get(answer, "items"), i);

		seconds[str_equal(text_of(item, "class"), "gpu.slot")] +=
			json_integer_value(json_object_get(item, "gpuSeconds"));
	}
	json_decref(answer);
	for (int slots = 0; slots < 2; slots++) {
		int64_t should = model_seconds(slots, fleet_now());

		if (seconds[slots] != should)
			sim_broken("%lld seconds of %s are used, and %lld should be",
				   (long long)seconds[slots], slots ? "slots" : "GPUs",
				   (long long)should);
	}
	fleet.result.gpu_seconds = (uint64_t)(seconds[0] + seconds[1]);
}

static void check_all(void)
{
	check_bookings();
	check_usage();
	for (int i = 0; i < SAMPLE; i++) {
		const char *id = any_live();

		if (id)
			fleet_look(id);
	}
}

static void on_hour(void *arg UNUSED)
{
	fleet_nodes_beat();
	check_all();
	sim_schedule(NULL, HOUR_MS, on_hour, NULL);
}

/* --- the end --- */

static void everything_ends(void *arg UNUSED)
{
	const char *id;

	sim_trace("everything is given back");
	fleet.calm = true;
	fleet_nodes_beat();
	while ((id = any_live())) {
		release(id);
		fleet_changed();
		for (size_t i = 0; i < fleet.live.count; i++) {
			if (fleet.live.items[i] != id)
				continue;
			free(fleet.live.items[i]);
			vec_remove(&fleet.live, i);
			break;
		}
	}
}

static void check_meter(void)
{
	char *cursor = NULL;
	struct error error;

	do {
		const struct control_call asked = {
			.principal = &fleet.operator, .limit = "1000", .cursor = cursor};
		json_t *answer = NULL;

		must(control_meter_list(&fleet.control, &asked, &answer, &error), &error);
		for (size_t i = 0; i < json_array_size(json_object_get(answer, "items")); i++)
			model_meter_row(json_array_get(json_object_get(answer, "items"), i));
		free(cursor);
		cursor = *text_of(answer, "nextCursor") ? mem_strdup(text_of(answer, "nextCursor"))
							: NULL;
		json_decref(answer);
	} while (cursor);
	model_meter_end();
}

static void check_end(void)
{
	check_all();
	vec_each (&model.nodes, struct model_node * *node)
		vec_each (&(*node)->live, struct model_allocation * *one)
			sim_broken("%s of %s (%s) isn't over in the end: %s, asked for %lld s "
				   "ago, %s",
				   (*one)->id, (*node)->id,
				   model_reachable(*node, fleet_now()) ? "in reach"
								       : "not in reach",
				   (*one)->state == MODEL_RELEASING ? "releasing" : "not withdrawn",
				   (long long)(fleet_now() - (*one)->asked_ms) / 1000,
				   (*one)->bound_ms ? "bound" : "never bound");
	check_meter();
}

/* --- one run --- */

static void make(call_fn *fn, json_t *body, const char *key, char *out, size_t size)
{
	json_t *answer = call(fn, NULL, body);

	must(answer != NULL, &fleet.refused);
	if (!str_copy(out, size, text_of(answer, key)))
		sim_broken("'%s' is too long", key);
	json_decref(answer);
}

static void fleet_begin(const struct fleet_options *options)
{
	char site[ID_SIZE], key[CONTROL_KEY_SIZE], token[CONTROL_KEY_SIZE];
	struct error error;

	memset(&fleet, 0, sizeof fleet);
	fleet.options = *options;
	sim_begin();
	sim_seed(options->seed);
	sim.verbose = options->verbose;
	sim.calm = false;
	fleet.begun_ms = sim_true_wall().ms;
	model_begin();
	must(store_open("sqlite::memory:", &fleet.store, &error) &&
		     store_connect(fleet.store, &fleet.control.connection, &error),
	     &error);
	str_copy(fleet.control.replica, ID_SIZE, "rep_fleet");
	must(control_init(&fleet.control, key, &error) &&
		     control_authenticate(&fleet.control, key, &fleet.operator, & error),
	     &error);
	make(control_tenant_create, json_pack("{s:s}", "name", "team"), "id", fleet.tenant,
	     ID_SIZE);
	make(control_site_create,
	     json_pack("{s:s, s:s, s:s}", "tenantId", fleet.tenant, "name", "site", "kind",
		       "custom"),
	     "id", site, ID_SIZE);
	make(control_pool_create,
	     json_pack("{s:s, s:s, s:s, s:s, s:s, s:{}}", "tenantId", fleet.tenant, "siteId", site,
		       "name", "pool", "class", "metal-host", "gpuModel", "H100", "policy"),
	     "id", fleet.pool, ID_SIZE);
	make(control_join_token_create,
	     json_pack("{s:s, s:I}", "poolId", fleet.pool, "maxUses", (json_int_t)options->nodes),
	     "token", token, sizeof token);
	fleet_nodes_begin(&fleet.control, token, options->nodes);
	for (int i = 0; i < options->nodes / 20; i++) {
		struct fleet_node *node = fleet_node_any();

		json_decref(call(control_node_patch, node->is->id, json_pack("{s:b}", "spot", 1)));
		node->is->spot = true;
	}
}

static void fleet_end(void)
{
	fleet.result.ok = sim.broken[0] == '\0';
	fleet.result.trace = sim.trace;
	fleet.result.allocations = model.allocations.count;
	fleet.result.carries = model.carries;
	fleet.result.unilateral = model.unilateral;
	str_copy(fleet.result.why, sizeof fleet.result.why, sim.broken);
	store_disconnect(fleet.control.connection);
	store_destroy(fleet.store);
	vec_each (&fleet.live, char **id)
		free(*id);
	vec_deinit(&fleet.live);
	fleet_nodes_end();
	model_end();
	sim_end();
}

/* proves: RES-17 RES-19 RES-20 RES-24 RES-28 RES-29 RES-30 RES-43 RES-45 RES-53 */
struct fleet_result fleet_run(const struct fleet_options *options)
{
	fleet_begin(options);
	int64_t days_ms = options->days * DAY_MS, end_ms = fleet_now() + days_ms;
	sim_schedule(NULL, 1000, on_tick, NULL);
	sim_schedule(NULL, 2000, on_op, NULL);
	sim_schedule(NULL, HOUR_MS, on_hour, NULL);
	sim_schedule(NULL, days_ms, everything_ends, NULL);
	while (sim.broken[0] == '\0' && fleet_now() < end_ms + TAIL_DAYS * DAY_MS)
		if (!sim_step())
			sim_broken("nothing is left to happen");
	if (sim.broken[0] == '\0')
		check_end();
	fleet_end();
	return fleet.result;
}
