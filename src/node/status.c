#include "node/status.h"

#include "node/state.h"
#include "node/teller.h"
#include "text/tree.h"

struct status {
	struct teller *teller;
};

/* --- what there is to say --- */

static void set_text(json_t *object, const char *name, const char *text)
{
	tree_set(object, name, tree_string(text));
}

/* Of what is bound, who only the checkpoint names may be over for long (`unlisted`: they count). */
static json_t *holders_of(const struct node *node, const struct atom *atom, const char *allocation,
			  bool unlisted)
{
	json_t *array = json_array();

	vec_each (&node->listing.holders, const struct holder *holder)
		if ((unlisted || !holder->unlisted) && holds_id_is(holder->id, atom, allocation))
			tree_append(array, tree_string(holder->name));
	return array;
}

/* When the booking ends, as the last Spec said. */
static void describe_end(const struct node *node, const char *allocation, json_t *object)
{
	const struct spec_assignment *assignment =
		node->spec ? spec_find(node->spec, allocation) : NULL;

	if (assignment && assignment->end_ms > 0)
		tree_set(object, "endsAt", json_integer(assignment->end_ms));
}

static void describe_hold(const struct node *node, const struct atom *atom, json_t *object)
{
	for (size_t i = 0; i < node->holds.count; i++) {
		const struct hold *hold = &node->holds.items[i];

		for (size_t j = 0; j < hold->devices.count; j++) {
			char id[HOLDS_ID_SIZE];
			struct health health;

			if (!atom_equal(&hold->devices.items[j].atom, atom))
				continue;
			holds_device_id(id, &hold->devices.items[j], hold->allocation);
			health =
				offer_health(source_inventory(node->gpus), &hold->devices.items[j]);
			set_text(object, "state", "bound");
			set_text(object, "allocation", hold->allocation);
			set_text(object, "reservation", hold->reservation);
			describe_end(node, hold->allocation, object);
			set_text(object, "id", id);
			tree_set(object, "healthy", json_boolean(health.healthy));
			set_text(object, "cause", health.cause);
			set_text(object, "next", health.next ? health.next : "");
			tree_set(object, "heldBy", holders_of(node, atom, hold->allocation, false));
			return;
		}
	}
}

static void describe_release(const struct node *node, const struct atom *atom, json_t *object)
{
	for (size_t i = 0; i < node->releases.entries.count; i++) {
		const struct release_entry *entry = &node->releases.entries.items[i];

		for (size_t j = 0; !entry->reported && j < entry->devices.count; j++) {
			if (!atom_equal(&entry->devices.items[j].atom, atom))
				continue;
			set_text(object, "state", "releasing");
			set_text(object, "allocation", entry->allocation);
			tree_set(object, "releasingSince", json_integer(entry->since * 1000));
			tree_set(object, "heldBy", holders_of(node, atom, entry->allocation, true));
		}
	}
}

/* Nobody's by this node's records, and yet somebody has it. */
static void describe_stray(const struct node *node, const struct inventory_atom *atom,
			   json_t *object)
{
	const struct stray *stray = strays_find(&node->strays, atom->atom.gpu, atom->range, "");

	if (!stray)
		return;
	set_text(object, "state", "claimed");
	tree_set(object, "claimedSince", json_integer(stray->since.ms));
	tree_set(object, "heldBy", json_pack("[o]", tree_string(stray->who)));
}

static json_t *describe_atom(const struct node *node, const struct inventory_atom *atom)
{
	const struct inventory_gpu *gpu =
		inventory_find_gpu(source_inventory(node->gpus), atom->atom.gpu);
	json_t *object = json_object();
	char text[ATOM_TEXT_SIZE];

	atom_format(text, &atom->atom);
	set_text(object, "atom", text);
	if (gpu)
		tree_set(object, "gpuNumber",
			 json_integer(gpu - source_inventory(node->gpus)->gpus.items));
	set_text(object, "class", atom_class_name(atom->atom.class));
	set_text(object, "profile", atom->profile);
	set_text(object, "model", gpu ? gpu->model : "");
	set_text(object, "visibleDevice", atom->visible);
	tree_set(object, "numa", json_integer(atom->numa));
	tree_set(object, "healthy", json_boolean(atom->health.healthy));
	set_text(object, "cause", atom->health.cause);
	set_text(object, "next", atom->health.next ? atom->health.next : "");
	if (gpu && !gpu->health.healthy)
		tree_set(object, "unhealthySince",
			 json_integer(node_health_since(node, gpu->uuid).ms));
	set_text(object, "state", "free");
	describe_stray(node, atom, object);
	describe_release(node, &atom->atom, object);
	describe_hold(node, &atom->atom, object);
	return object;
}

/* A bound device whose atom is gone is still bound. */
static void add_gone(const struct node *node, json_t *devices)
{
	for (size_t i = 0; i < node->holds.count; i++) {
		const struct hold *hold = &node->holds.items[i];

		for (size_t j = 0; j < hold->devices.count; j++) {
			struct inventory_atom gone = {.atom = hold->devices.items[j].atom,
						      .range = hold->devices.items[j].range,
						      .numa = INVENTORY_NUMA_UNKNOWN,
						      .health = health_bad("gone")};

			if (inventory_find_atom(source_inventory(node->gpus), &gone.atom))
				continue;
			str_copy(gone.visible, sizeof gone.visible, hold->devices.items[j].visible);
			tree_append(devices, describe_atom(node, &gone));
		}
	}
}

static json_t *describe_devices(const struct node *node)
{
	const struct inventory *inventory = source_inventory(node->gpus);
	json_t *devices = json_array();

	for (size_t i = 0; i < inventory->atoms.count; i++)
		tree_append(devices, describe_atom(node, &inventory->atoms.items[i]));
	add_gone(node, devices);
	return devices;
}

static json_t *describe_resources(const struct node *node)
{
	json_t *array = json_array();

	for (size_t i = 0; i < ATOM_CLASSES; i++) {
		const struct offer *offer = &node->offers.classes[i];
		struct deviceplugin_state state = deviceplugin_state(node->plugins[i]);
		char resource[OFFER_RESOURCE_SIZE];
		json_t *object;

		if (!offer->served)
			continue;
		object = json_object();
		offer_resource(resource, (enum atom_class)i);
		set_text(object, "resource", resource);
		tree_set(object, "offered", json_integer((json_int_t)offer->devices.count));
		tree_set(object, "healthy", json_integer((json_int_t)offer_healthy_count(offer)));
		tree_set(object, "registered", json_boolean(state.registered));
		set_text(object, "socket", state.socket);
		set_text(object, "why", state.why);
		set_text(object, "error", state.error);
		if (state.registered)
			tree_set(object, "since", json_integer(state.since.ms));
		tree_append(array, object);
	}
	return array;
}

/* Who is in the way of a release, and what comes next. */
static json_t *describe_clingers(const struct node *node, const struct release_entry *entry)
{
	CLEANUP(clingers) struct clingers clingers = {0};
	struct mono now = loop_now(node->loop);
	json_t *array = json_array();

	reaper_clingers(node->reaper, entry, &clingers);
	vec_each (&clingers, const struct clinger *clinger) {
		json_t *object = json_object();

		set_text(object, "name", clinger->name);
		set_text(object, "uid", clinger->uid);
		set_text(object, "device", clinger->id);
		set_text(object, "state", clinger->state);
		if (clinger->timed) {
			tree_set(object, "deleteAt",
				 json_integer(clock_wall().ms + mono_until(now, clinger->due)));
			tree_set(object, "forced", json_boolean(clinger->forced));
		}
		tree_append(array, object);
	}
	return array;
}

static json_t *describe_pending(const struct node *node)
{
	json_t *array = json_array();

	for (size_t i = 0; i < node->pending.count; i++) {
		const struct node_release *release = &node->pending.items[i];
		const struct release_entry *entry =
			releases_find(&node->releases, release->allocation);
		json_t *object = json_object(), *devices = json_array();

		for (size_t j = 0; entry && j < entry->devices.count; j++) {
			char atom[ATOM_TEXT_SIZE];

			atom_format(atom, &entry->devices.items[j].atom);
			tree_append(devices, tree_string(atom));
		}
		set_text(object, "allocation", release->allocation);
		tree_set(object, "since", json_integer(entry ? entry->since * 1000 : 0));
		set_text(object, "step", release_step_name(release->plan.step));
		set_text(object, "why", release->plan.why ? release->plan.why : "");
		tree_set(object, "stuck", json_boolean(release->plan.stuck));
		tree_set(object, "devices", devices);
		tree_set(object, "holders", entry ? describe_clingers(node, entry) : json_array());
		tree_append(array, object);
	}
	return array;
}

static json_t *describe_conditions(const struct node *node)
{
	json_t *array = json_array();

	for (size_t i = 0; i < node->conditions.count; i++) {
		const struct condition *condition = &node->conditions.items[i];
		json_t *object = json_object();

		set_text(object, "type", condition->type);
		set_text(object, "reason", condition->reason);
		set_text(object, "message", condition->message);
		tree_set(object, "since", json_integer(condition->since.ms));
		tree_append(array, object);
	}
	return array;
}

static json_t *describe_gateway(const struct node *node)
{
	json_t *object = json_object();

	set_text(object, "state", uplink_phase_name(uplink_phase(node->uplink)));
	set_text(object, "address", uplink_address(node->uplink));
	set_text(object, "error", uplink_error(node->uplink));
	tree_set(object, "since", json_integer(uplink_since(node->uplink).ms));
	return object;
}

static bool hold_has_gone(const struct inventory *inventory, const struct hold *hold)
{
	for (size_t i = 0; i < hold->devices.count; i++)
		if (!inventory_find_atom(inventory, &hold->devices.items[i].atom))
			return true;
	return false;
}

/* Something that a person should look at; being away from the control plane alone is not, unless it
 * takes a person to come back. */
static bool is_degraded(const struct node *node)
{
	const struct inventory *inventory = source_inventory(node->gpus);

	for (size_t i = 0; i < node->conditions.count; i++)
		if (!str_equal(node->conditions.items[i].type, CONDITION_HOST_UNITS))
			return true;
	if (uplink_needs_somebody(node->uplink))
		return true;
	for (size_t i = 0; i < inventory->gpus.count; i++)
		if (!inventory->gpus.items[i].health.healthy)
			return true;
	for (size_t i = 0; i < inventory->atoms.count; i++)
		if (!inventory->atoms.items[i].health.healthy)
			return true;
	for (size_t i = 0; i < node->holds.count; i++)
		if (hold_has_gone(inventory, &node->holds.items[i]))
			return true;
	return false;
}

json_t *status_describe(const struct node *node)
{
	const struct inventory *inventory = source_inventory(node->gpus);
	json_t *object = json_object();

	tree_set(object, "version", json_integer(1));
	set_text(object, "bcd", BC_VERSION);
	set_text(object, "node", node->identity ? node->identity->node_id : "");
	set_text(object, "hostname", node->machine.hostname);
	set_text(object, "kubernetesNodeName", node->config->node_name);
	tree_set(object, "startedAt", json_integer(node->started.ms));
	tree_set(object, "now", json_integer(clock_wall().ms));
	set_text(object, "api", node->config->gpu_api);
	tree_set(object, "servesKubelet", json_boolean(node_serves_kubelet(node)));
	set_text(object, "driver", inventory->driver);
	set_text(object, "gpuSource", source_name(node->gpus));
	tree_set(object, "simulated", json_boolean(inventory->simulated));
	set_text(object, "simulatedReason", inventory->simulated_reason);
	set_text(object, "lineage", node->spec ? node->spec->lineage : "");
	tree_set(object, "specGeneration", json_integer(node->spec ? node->spec->generation : 0));
	tree_set(object, "reportsQueued", json_integer((json_int_t)node->reports.queue.count));
	tree_set(object, "degraded", json_boolean(is_degraded(node)));
	if (node->confinement)
		tree_set(object, "confinement", confinement_describe(node->confinement));
	tree_set(object, "gateway", describe_gateway(node));
	tree_set(object, "devices", describe_devices(node));
	tree_set(object, "resources", describe_resources(node));
	tree_set(object, "releases", describe_pending(node));
	tree_set(object, "conditions", describe_conditions(node));
	return object;
}

/* --- the socket --- */

static json_t *tell(void *arg)
{
	return status_describe(arg);
}

bool status_create(struct node *node, struct status **ret_status, struct error *error)
{
	struct status *status = mem_alloc(sizeof *status);

	/* Whoever holds the lock on the data folder may take a dead one's place. */
	if (!teller_create(node->loop, node->config->run, STATUS_SOCKET, tell, node,
			   &status->teller, error)) {
		free(status);
		return error_wrap(error, "the status socket");
	}
	*ret_status = status;
	return true;
}

void status_destroy(struct status *status)
{
	if (!status)
		return;
	teller_destroy(status->teller);
	free(status);
}
