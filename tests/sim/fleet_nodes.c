#include "sim/fleet_nodes.h"

#include "sim/sim.h"
#include "store/store.h"

#include <stdio.h>

#define SECOND_MS ((int64_t)1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)
#define BEAT_MS   (15 * SECOND_MS)
#define STUCK_MS  (5 * MINUTE_MS)
#define VCPUS     128
#define MEMORY    ((int64_t)1024 << 30)

static struct {
	struct control *control;
	VEC(struct fleet_node *) nodes; /* in the order of the model's */
	int64_t beaten_ms;
} fleet;

/* --- what a node says --- */

static void must(bool ok, const struct error *error)
{
	if (!ok)
		sim_broken("a node's word is refused: %s", error->what);
}

static void report(struct fleet_node *node, struct control_report report)
{
	struct control_report_result result = {0};
	struct error error;

	report.node = node->is->id;
	report.epoch = node->epoch;
	report.sequence = ++node->sequence;
	report.spec_generation = node->generation;
	sim_trace("%s reports %d: %s", node->is->id, (int)report.kind,
		  report.kind == CONTROL_REPORT_BOUND      ? report.bound.allocation
		  : report.kind == CONTROL_REPORT_FAILED   ? report.failed.allocation
		  : report.kind == CONTROL_REPORT_RELEASED ? report.released.allocation
							   : "");
	must(control_node_report(fleet.control, &report, &result, &error), &error);
	node->is->seen_ms = fleet_now();
	if (result.look_again)
		fleet_look_again();
	fleet_changed();
}

static void say_bound(struct fleet_node *node, struct model_allocation *allocation)
{
	model_bound(allocation, fleet_now());
	report(node, (struct control_report){.kind = CONTROL_REPORT_BOUND,
					     .bound = {.allocation = allocation->id}});
}

static void say_released(struct fleet_node *node, struct model_allocation *allocation)
{
	model_released(allocation, fleet_now());
	report(node, (struct control_report){.kind = CONTROL_REPORT_RELEASED,
					     .released = {.allocation = allocation->id}});
}

static void say_failed(struct fleet_node *node, struct model_allocation *allocation)
{
	model_failed(allocation, fleet_now());
	report(node, (struct control_report){.kind = CONTROL_REPORT_FAILED,
					     .failed = {.allocation = allocation->id,
							.reason = "Overlap",
							.message = "as the seed wants"}});
	/* A part of a gang that gets another node is no change of the whole. */
	fleet_look(allocation->reservation->id);
}

struct inventory {
	struct control_gpu gpus[MODEL_GPUS];
	struct control_atom atoms[MODEL_GPUS * (1 + MODEL_SLOTS)];
	char names[MODEL_GPUS * (1 + MODEL_SLOTS)][64];
	size_t count;
};

static void add_atom(struct inventory *inventory, const struct control_gpu *gpu, int slot)
{
	size_t i = inventory->count++;
	int leaves = 1024 / MODEL_SLOTS;

	if (slot < 0)
		snprintf(inventory->names[i], sizeof inventory->names[i], "gpu/%s", gpu->uuid);
	else
		snprintf(inventory->names[i], sizeof inventory->names[i], "gpu/%s/s%d", gpu->uuid,
			 slot);
	inventory->atoms[i] = (struct control_atom){
		.atom = inventory->names[i],
		.class = slot < 0 ? "gpu" : "gpu.slot",
		.gpu = gpu->uuid,
		.profile = "",
		.visible_device = inventory->names[i],
		.leaf_lo = slot < 0 ? 0 : slot * leaves,
		.leaf_hi = slot < 0 ? 1024 : (slot + 1) * leaves,
		.health = gpu->health,
	};
}

static void say_inventory(struct fleet_node *node)
{
	struct inventory *inventory = mem_alloc(sizeof *inventory);
	struct control_report message = {.kind = CONTROL_REPORT_INVENTORY};

	for (int i = 0; i < MODEL_GPUS; i++) {
		bool well = !(node->is->unhealthy & 1U << i);

		inventory->gpus[i] = (struct control_gpu){.uuid = node->is->uuids[i],
							  .model = "NVIDIA H100 80GB HBM3",
							  .pci = "0000:00:00.0",
							  .memory_bytes = (int64_t)80 << 30,
							  .numa = i / 4,
							  .health = {well, well ? "" : "XID 48"}};
		add_atom(inventory, &inventory->gpus[i], -1);
		for (int slot = 0; node->is->cut && slot < MODEL_SLOTS; slot++)
			add_atom(inventory, &inventory->gpus[i], slot);
	}
	message.inventory = (struct control_inventory){.kubernetes_node_name = "node",
						       .hostname = "node",
						       .kernel = "6.8",
						       .vcpus = VCPUS,
						       .memory_bytes = MEMORY,
						       .simulated = true,
						       .simulated_reason = "a fleet",
						       .driver_version = "580",
						       .gpu_api = "device-plugin",
						       .gpus = inventory->gpus,
						       .gpus_count = MODEL_GPUS,
						       .atoms = inventory->atoms,
						       .atoms_count = inventory->count};
	report(node, message);
	free(inventory);
}

static void say_conditions(struct fleet_node *node)
{
	static const struct {
		enum model_condition condition;
		const char *type, *reason;
	} types[] = {
		{MODEL_FOREIGN_EXPOSURE, "ForeignGpuExposure", "OtherGpuPath"},
		{MODEL_PODS_UNKNOWN, "PodResourcesUnavailable", "SocketFailing"},
		{MODEL_RELEASE_STUCK, "KubernetesReleaseStuck", "PodsHoldDevices"},
	};
	struct control_condition items[ARRAY_SIZE(types)];
	struct control_report message = {.kind = CONTROL_REPORT_CONDITIONS};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (node->is->conditions & types[i].condition)
			items[message.conditions.count++] =
				(struct control_condition){types[i].type, types[i].reason,
							   "as the seed wants", sim_true_wall()};
	message.conditions.items = items;
	report(node, message);
}

static void say_hello(struct fleet_node *node)
{
	static const char *const capabilities[] = {"kubernetes-binding", "assignment-limits"};
	struct control_welcome welcome = {0};
	const struct control_hello hello = {
		.node = node->is->id,
		.boot_id = "boot",
		.version = "0.1.0",
		.hostname = "node",
		.capabilities = capabilities,
		.capabilities_count = ARRAY_SIZE(capabilities),
		.lineage = store_connection_lineage(fleet.control->connection),
		.spec_generation = node->generation,
		.last_sequence = node->sequence,
		.opened_ms = fleet_now(),
	};
	struct error error;

	must(control_node_hello(fleet.control, &hello, &welcome, &error), &error);
	node->epoch = welcome.epoch;
	node->is->connected = true;
	node->is->gone = false;
	node->is->seen_ms = fleet_now();
}

/* --- what it does later --- */

struct later {
	struct fleet_node *node;
	char allocation[ID_SIZE];
	void (*fn)(struct fleet_node *node, const char *allocation);
};

static void on_later(void *arg)
{
	struct later later = *(struct later *)arg;

	if (later.node->is->lost) {
		free(arg);
		return;
	}
	if (!later.node->is->connected) { /* it is said when somebody hears it */
		sim_schedule(NULL, MINUTE_MS, on_later, arg);
		return;
	}
	free(arg);
	fleet_nodes_beat();
	later.fn(later.node, later.allocation);
}

static void do_later(struct fleet_node *node, int64_t after_ms, const char *allocation,
		     void (*fn)(struct fleet_node *, const char *))
{
	struct later *later = mem_alloc(sizeof *later);

	*later = (struct later){.node = node, .fn = fn};
	str_copy(later->allocation, ID_SIZE, allocation);
	sim_schedule(NULL, after_ms, on_later, later);
}

static struct fleet_hold *hold_find(struct fleet_node *node, const char *allocation)
{
	vec_each (&node->holds, struct fleet_hold * hold)
		if (str_equal(hold->id, allocation))
			return hold;
	return NULL;
}

static void hold_drop(struct fleet_node *node, const char *allocation)
{
	for (size_t i = node->holds.count; i-- > 0;)
		if (str_equal(node->holds.items[i].id, allocation))
			vec_remove(&node->holds, i);
}

/* REL-19: five minutes of waiting for pods show. */
static void stuck_shows(struct fleet_node *node, const char *allocation UNUSED)
{
	bool stuck = false;

	vec_each (&node->holds, struct fleet_hold * hold)
		stuck |= hold->leaving && fleet_now() - hold->asked_ms >= STUCK_MS;
	fleet_node_condition(node, MODEL_RELEASE_STUCK, stuck);
}

/* Its pods have let go. */
static void leaves(struct fleet_node *node, const char *allocation)
{
	if (!hold_find(node, allocation))
		return;
	hold_drop(node, allocation);
	say_released(node, model_find(allocation));
	stuck_shows(node, "");
}

static int64_t pods_let_go_after(void)
{
	switch (sim_below(10)) {
	case 0: /* some cling for longer than a day */
		return (int64_t)sim_below(40 * HOUR_MS);
	case 1:
	case 2:
		return (int64_t)sim_below(HOUR_MS);
	default:
		return 1500 + (int64_t)sim_below(MINUTE_MS);
	}
}

static void begin_leaving(struct fleet_node *node, struct fleet_hold *hold)
{
	int64_t after_ms = hold->bound ? pods_let_go_after() : 2 * SECOND_MS;

	hold->leaving = true;
	hold->asked_ms = fleet_now();
	/* One that was never bound is forgotten now and then: then nobody says that it is free. */
	if (!hold->bound && sim_below(3) == 0) {
		hold_drop(node, hold->id);
		return;
	}
	if (after_ms > STUCK_MS)
		do_later(node, STUCK_MS, "", stuck_shows);
	do_later(node, after_ms, hold->id, leaves);
}

static bool is_clung_to(struct fleet_node *node, const struct model_allocation *allocation)
{
	vec_each (&node->holds, struct fleet_hold * hold)
		if (hold->leaving && model_share_devices(allocation, model_find(hold->id)))
			return true;
	return false;
}

static void take_spec(struct fleet_node *node, const char *unused);

static void binds(struct fleet_node *node, const char *allocation)
{
	struct model_allocation *is = model_find(allocation);
	struct fleet_hold *hold;

	take_spec(node, "");
	hold = hold_find(node, allocation);
	if (!hold || hold->leaving || hold->bound)
		return;
	/* RES-30: who comes after one whose pods cling fails, and that shows. */
	if (is_clung_to(node, is) || sim_below(40) == 0) {
		hold_drop(node, allocation);
		say_failed(node, is);
		return;
	}
	hold->bound = true;
	say_bound(node, is);
}

static void take_assignments(struct fleet_node *node, const struct control_spec *spec)
{
	for (size_t i = 0; i < spec->assignments_count; i++) {
		struct fleet_hold *hold = hold_find(node, spec->assignments[i].allocation);

		if (hold)
			continue;
		hold = vec_push(&node->holds);
		*hold = (struct fleet_hold){0};
		str_copy(hold->id, ID_SIZE, spec->assignments[i].allocation);
		do_later(node, 200 + (int64_t)sim_below(sim_below(20) ? 20000 : 600000), hold->id,
			 binds);
	}
}

static bool is_wanted(const struct control_spec *spec, const char *allocation)
{
	for (size_t i = 0; i < spec->assignments_count; i++)
		if (str_equal(spec->assignments[i].allocation, allocation))
			return true;
	return false;
}

static void tell_model(struct fleet_node *node, const struct control_spec *spec)
{
	const char **wanted = mem_alloc((spec->assignments_count + 1) * sizeof *wanted);

	for (size_t i = 0; i < spec->assignments_count; i++)
		wanted[i] = spec->assignments[i].allocation;
	model_spec(node->is, wanted, spec->assignments_count, spec->withdrawn,
		   spec->withdrawn_count);
	free(wanted);
}

static void take_spec(struct fleet_node *node, const char *unused UNUSED)
{
	struct control_spec spec = {0};
	struct error error;
	bool loaded = control_spec_load(fleet.control, node->is->id, node->epoch, &spec, &error);

	must(loaded, &error);
	if (!loaded)
		return;
	tell_model(node, &spec);
	node->generation = spec.generation;
	must(control_node_heartbeat(fleet.control, node->is->id, node->epoch, spec.generation,
				    &error),
	     &error);
	node->is->seen_ms = fleet_now();
	for (size_t i = node->holds.count; i-- > 0;) {
		struct fleet_hold *hold = &node->holds.items[i];

		if (!hold->leaving && !is_wanted(&spec, hold->id))
			begin_leaving(node, hold);
	}
	take_assignments(node, &spec);
	control_spec_deinit(&spec);
}

void fleet_node_pushed(const char *id)
{
	vec_each (&fleet.nodes, struct fleet_node * *node)
		if (str_equal((*node)->is->id, id) && (*node)->is->connected)
			do_later(*node, (int64_t)sim_below(3000), "", take_spec);
}

void fleet_nodes_beat(void)
{
	struct control_beat *beats;
	size_t count = 0;
	struct error error;

	if (fleet_now() - fleet.beaten_ms < BEAT_MS)
		return;
	fleet.beaten_ms = fleet_now();
	beats = mem_alloc(fleet.nodes.count * sizeof *beats);
	vec_each (&fleet.nodes, struct fleet_node * *node) {
		if (!(*node)->is->connected || (*node)->is->lost)
			continue;
		str_copy(beats[count].node, ID_SIZE, (*node)->is->id);
		beats[count++].epoch = (*node)->epoch;
		(*node)->is->seen_ms = fleet_now();
	}
	must(control_nodes_seen(fleet.control, beats, count, &error), &error);
	for (size_t i = 0; i < count; i++)
		if (!beats[i].known)
			sim_broken("the stream of %s isn't known any more", beats[i].node);
	free(beats);
}

/* --- what happens to it --- */

static void reconnect(void *arg)
{
	struct fleet_node *node = arg;

	if (node->is->lost)
		return;
	fleet_nodes_beat();
	say_hello(node);
	say_inventory(node);
	say_conditions(node);
	take_spec(node, "");
}

void fleet_node_disconnect(struct fleet_node *node, int64_t for_ms)
{
	struct error error;

	if (!node->is->connected || node->is->lost)
		return;
	node->is->gone = sim_below(2); /* else it just falls silent */
	if (node->is->gone)
		must(control_node_gone(fleet.control, node->is->id, node->epoch, &error), &error);
	else
		must(control_node_heartbeat(fleet.control, node->is->id, node->epoch,
					    node->generation, &error),
		     &error);
	node->is->seen_ms = fleet_now();
	node->is->connected = false;
	sim_schedule(NULL, for_ms, reconnect, node);
}

void fleet_node_lose(struct fleet_node *node)
{
	model_node_lost(node->is, fleet_now());
	vec_deinit(&node->holds);
}

void fleet_node_sickens(struct fleet_node *node, bool well)
{
	unsigned bit = 1U << sim_below(MODEL_GPUS);

	if (!node->is->connected || node->is->lost)
		return;
	node->is->unhealthy = well ? 0 : node->is->unhealthy | bit;
	say_inventory(node);
}

void fleet_node_condition(struct fleet_node *node, enum model_condition condition, bool on)
{
	unsigned conditions =
		on ? node->is->conditions | condition : node->is->conditions & ~(unsigned)condition;

	if (!node->is->connected || node->is->lost || conditions == node->is->conditions)
		return;
	node->is->conditions = conditions;
	say_conditions(node);
}

void fleet_node_loses_binding(struct fleet_node *node)
{
	for (size_t i = 0; node->is->connected && i < node->holds.count; i++) {
		const struct fleet_hold *hold = &node->holds.items[i];
		struct model_allocation *is = model_find(hold->id);

		if (!hold->bound || hold->leaving || is->state != MODEL_BOUND)
			continue;
		if (is->binding_lost)
			say_bound(node, is);
		else
			say_failed(node, is);
		return;
	}
}

/* Who has said "bound" knows of it from then on, and will say that it let go. */
static void speak_early(struct fleet_node *node, struct model_allocation *allocation)
{
	struct fleet_hold *hold = hold_find(node, allocation->id);

	if (!hold || sim_below(2)) {
		say_released(node, allocation);
		return;
	}
	hold->bound = true;
	say_bound(node, allocation);
}

void fleet_node_speaks_early(struct model_allocation *allocation)
{
	vec_each (&fleet.nodes, struct fleet_node * *node)
		if ((*node)->is == allocation->node && allocation->node->connected)
			speak_early(*node, allocation);
}

void fleet_node_repeats_itself(struct fleet_node *node)
{
	/* RES-31, 45: of what is being given back, "bound" comes late; of what it has, "released"
	 * comes from before. */
	if (!node->is->connected || node->holds.count == 0)
		return;
	struct model_allocation *is =
		model_find(node->holds.items[sim_below(node->holds.count)].id);
	if (is->state == MODEL_RELEASING)
		say_bound(node, is);
	else if (is->state == MODEL_BOUND || is->state == MODEL_OVER)
		say_released(node, is);
}

/* --- joining --- */

static bool issue(void *context UNUSED, const char *node_id, enum control_trust trust UNUSED,
		  struct wall now UNUSED, char **ret_certificate, struct error *error UNUSED)
{
	*ret_certificate = mem_strdup(node_id);
	return true;
}

static void join(const char *token, int number)
{
	struct fleet_node *node = mem_alloc(sizeof *node);
	struct control_joined joined = {0};
	char key[64];
	struct error error;

	snprintf(key, sizeof key, "sha256/key-%d", number);
	const struct control_join_request request = {.token = token,
						     .machine_key = key,
						     .smbios_uuid = "",
						     .hostname = "node",
						     .boot_id = "boot",
						     .issue = issue};
	must(control_join(fleet.control, &request, &joined, &error), &error);
	*vec_push(&fleet.nodes) = node;
	node->is = model_node_add(joined.node);
	control_joined_deinit(&joined);
	node->is->vcpus = VCPUS;
	node->is->cut = number % 3 == 0;
	for (int i = 0; i < MODEL_GPUS; i++)
		snprintf(node->is->uuids[i], sizeof node->is->uuids[i], "%08x-0000-0000-0000-%012x",
			 number, i);
	say_hello(node);
	say_inventory(node);
	say_conditions(node);
}

void fleet_nodes_begin(struct control *control, const char *token, int count)
{
	fleet.control = control;
	fleet.beaten_ms = fleet_now();
	for (int i = 0; i < count; i++)
		join(token, i);
}

void fleet_nodes_end(void)
{
	vec_each (&fleet.nodes, struct fleet_node * *node) {
		vec_deinit(&(*node)->holds);
		free(*node);
	}
	vec_deinit(&fleet.nodes);
}

struct fleet_node *fleet_node_any(void)
{
	return fleet.nodes.items[sim_below(fleet.nodes.count)];
}
