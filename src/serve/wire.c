#include "serve/wire.h"

#include "proto/hugepages.h"

struct control_hello wire_hello(const Bettercompute__V1__Hello *hello, const char *node)
{
	return (struct control_hello){
		.node = node,
		.boot_id = hello->boot_id,
		.version = hello->version,
		.hostname = hello->hostname,
		.capabilities = (const char *const *)hello->capabilities,
		.capabilities_count = hello->n_capabilities,
		.lineage = hello->lineage,
		.spec_generation = hello->spec_generation,
		.last_sequence = hello->last_sequence,
		.opened_ms = hello->opened_ms,
	};
}

/* What says nothing of its health is not healthy. */
static struct control_health health(const Bettercompute__V1__Health *health)
{
	if (!health)
		return (struct control_health){false, "unknown"};
	return (struct control_health){health->healthy, health->cause};
}

static struct control_inventory inventory(const Bettercompute__V1__Inventory *from,
					  struct arena *arena)
{
	struct control_gpu *gpus = arena_alloc(arena, from->n_gpus * sizeof *gpus);
	struct control_atom *atoms = arena_alloc(arena, from->n_atoms * sizeof *atoms);

	for (size_t i = 0; i < from->n_gpus; i++) {
		const Bettercompute__V1__Gpu *gpu = from->gpus[i];

		gpus[i] = (struct control_gpu){
			.uuid = gpu->uuid,
			.model = gpu->model,
			.pci = gpu->pci,
			.memory_bytes = gpu->memory_bytes,
			.numa = gpu->numa,
			.health = health(gpu->health),
		};
	}
	for (size_t i = 0; i < from->n_atoms; i++) {
		const Bettercompute__V1__Atom *atom = from->atoms[i];

		atoms[i] = (struct control_atom){
			.atom = atom->atom,
			.class = atom->class_,
			.gpu = atom->gpu,
			.profile = atom->profile,
			.visible_device = atom->visible_device,
			.leaf_lo = atom->leaf_lo,
			.leaf_hi = atom->leaf_hi,
			.numa = atom->numa,
			.memory_bytes = atom->memory_bytes,
			.health = health(atom->health),
		};
	}
	return (struct control_inventory){
		.kubernetes_node_name = from->os_kubernetes_node_name,
		.hostname = from->hostname,
		.kernel = from->kernel,
		.vcpus = from->vcpus,
		.memory_bytes = from->memory_bytes,
		.hugepages = hugepages_unpack(from->huge_pages, from->n_huge_pages),
		.simulated = from->simulated,
		.simulated_reason = from->simulated_reason,
		.driver_version = from->driver_version,
		.gpu_api = from->gpu_api,
		.gpus = gpus,
		.gpus_count = from->n_gpus,
		.atoms = atoms,
		.atoms_count = from->n_atoms,
	};
}

static const struct control_condition *conditions(const Bettercompute__V1__Conditions *from,
						  struct arena *arena)
{
	struct control_condition *items = arena_alloc(arena, from->n_conditions * sizeof *items);

	for (size_t i = 0; i < from->n_conditions; i++) {
		const Bettercompute__V1__Condition *condition = from->conditions[i];

		items[i] = (struct control_condition){
			.type = condition->type,
			.reason = condition->reason,
			.message = condition->message,
			.since = {condition->since_ms},
		};
	}
	return items;
}

struct control_report wire_report(const Bettercompute__V1__Report *from, const char *node,
				  int64_t epoch, struct arena *arena)
{
	struct control_report report = {
		.node = node,
		.epoch = epoch,
		.sequence = from->sequence,
		.spec_generation = from->spec_generation,
		.kind = CONTROL_REPORT_UNKNOWN,
	};

	switch (from->body_case) {
	case BETTERCOMPUTE__V1__REPORT__BODY_INVENTORY:
		report.kind = CONTROL_REPORT_INVENTORY;
		report.inventory = inventory(from->inventory, arena);
		break;
	case BETTERCOMPUTE__V1__REPORT__BODY_CONDITIONS:
		report.kind = CONTROL_REPORT_CONDITIONS;
		report.conditions.items = conditions(from->conditions, arena);
		report.conditions.count = from->conditions->n_conditions;
		break;
	case BETTERCOMPUTE__V1__REPORT__BODY_BOUND:
		report.kind = CONTROL_REPORT_BOUND;
		report.bound.allocation = from->bound->allocation;
		report.bound.atoms = (const char *const *)from->bound->atoms;
		report.bound.atoms_count = from->bound->n_atoms;
		break;
	case BETTERCOMPUTE__V1__REPORT__BODY_FAILED:
		report.kind = CONTROL_REPORT_FAILED;
		report.failed.allocation = from->failed->allocation;
		report.failed.reason = from->failed->reason;
		report.failed.message = from->failed->message;
		break;
	case BETTERCOMPUTE__V1__REPORT__BODY_RELEASED:
		report.kind = CONTROL_REPORT_RELEASED;
		report.released.allocation = from->released->allocation;
		break;
	case BETTERCOMPUTE__V1__REPORT__BODY_KUBERNETES_RELEASED:
		report.kind = CONTROL_REPORT_KUBERNETES_RELEASED;
		break;
	case BETTERCOMPUTE__V1__REPORT__BODY_OPERATION_RESULT:
		report.kind = CONTROL_REPORT_OPERATION_RESULT;
		break;
	case BETTERCOMPUTE__V1__REPORT__BODY__NOT_SET:
	case _BETTERCOMPUTE__V1__REPORT__BODY__CASE_IS_INT_SIZE: /* the generator's, never set */
		break;
	}
	return report;
}

/* --- down --- */

bool wire_pack_welcome(const struct control_welcome *welcome, const char *node, struct buf *out,
		       struct error *error)
{
	Bettercompute__V1__Down down = BETTERCOMPUTE__V1__DOWN__INIT;
	Bettercompute__V1__Welcome body = BETTERCOMPUTE__V1__WELCOME__INIT;

	body.epoch = welcome->epoch;
	body.acknowledged = welcome->acknowledged;
	body.now_ms = welcome->now.ms;
	body.lineage = message_text(welcome->lineage);
	body.node = message_text(node);
	body.site = message_text(welcome->site);
	body.pool = message_text(welcome->pool);
	down.body_case = BETTERCOMPUTE__V1__DOWN__BODY_WELCOME;
	down.welcome = &body;
	return wire_down_pack(&down, out, error);
}

static Bettercompute__V1__Limits *host_share(const struct control_spec_assignment *from,
					     struct arena *arena)
{
	Bettercompute__V1__Limits *to = arena_alloc(arena, sizeof *to);

	bettercompute__v1__limits__init(to);
	to->vcpus = from->vcpus;
	to->memory_bytes = from->memory_bytes;
	hugepages_pack(&from->hugepages, arena, &to->huge_pages, &to->n_huge_pages);
	return to;
}

static Bettercompute__V1__Assignment *assignment(const struct control_spec_assignment *from,
						 struct arena *arena)
{
	Bettercompute__V1__Assignment *to = arena_alloc(arena, sizeof *to);

	bettercompute__v1__assignment__init(to);
	to->allocation = message_text(from->allocation);
	to->reservation = message_text(from->reservation);
	to->binding = BETTERCOMPUTE__V1__BINDING__BINDING_KUBERNETES;
	to->end_ms = from->end_ms;
	to->n_devices = from->devices_count;
	to->devices = arena_alloc(arena, from->devices_count * sizeof(void *));
	for (size_t i = 0; i < from->devices_count; i++) {
		Bettercompute__V1__AssignedDevice *device = arena_alloc(arena, sizeof *device);

		bettercompute__v1__assigned_device__init(device);
		device->atom = message_text(from->devices[i].atom);
		device->class_ = message_text(from->devices[i].class);
		device->visible_device = message_text(from->devices[i].visible_device);
		to->devices[i] = device;
	}
	to->booked = host_share(from, arena);
	to->limits = from->limited ? to->booked : NULL;
	return to;
}

bool wire_pack_spec(const struct control_spec *spec, struct buf *out, struct error *error)
{
	CLEANUP(arena) struct arena arena = {0};
	Bettercompute__V1__Down down = BETTERCOMPUTE__V1__DOWN__INIT;
	Bettercompute__V1__Spec body = BETTERCOMPUTE__V1__SPEC__INIT;

	body.lineage = message_text(spec->lineage);
	body.generation = spec->generation;
	body.gpu_api = message_text(spec->gpu_api);
	body.n_assignments = spec->assignments_count;
	body.assignments = arena_alloc(&arena, spec->assignments_count * sizeof(void *));
	for (size_t i = 0; i < spec->assignments_count; i++)
		body.assignments[i] = assignment(&spec->assignments[i], &arena);
	body.n_withdrawn = spec->withdrawn_count;
	body.withdrawn = (char **)spec->withdrawn; /* packing doesn't change them */
	down.body_case = BETTERCOMPUTE__V1__DOWN__BODY_SPEC;
	down.spec = &body;
	return wire_down_pack(&down, out, error);
}

bool wire_pack_ack(int64_t sequence, struct buf *out, struct error *error)
{
	Bettercompute__V1__Down down = BETTERCOMPUTE__V1__DOWN__INIT;
	Bettercompute__V1__Ack body = BETTERCOMPUTE__V1__ACK__INIT;

	body.sequence = sequence;
	down.body_case = BETTERCOMPUTE__V1__DOWN__BODY_ACK;
	down.ack = &body;
	return wire_down_pack(&down, out, error);
}

bool wire_pack_secret(const char *reference, const struct control_secret *secret, struct buf *out,
		      struct error *error)
{
	Bettercompute__V1__Down down = BETTERCOMPUTE__V1__DOWN__INIT;
	Bettercompute__V1__Secret body = BETTERCOMPUTE__V1__SECRET__INIT;

	body.reference = message_text(reference);
	body.ok = !secret->refusal;
	body.message = message_text(secret->refusal ? secret->refusal : "");
	body.value.data = secret->value.data;
	body.value.len = secret->value.length;
	down.body_case = BETTERCOMPUTE__V1__DOWN__BODY_SECRET;
	down.secret = &body;
	return wire_down_pack(&down, out, error);
}

bool wire_pack_certificate(const char *pem, const char *message, struct buf *out,
			   struct error *error)
{
	Bettercompute__V1__Down down = BETTERCOMPUTE__V1__DOWN__INIT;
	Bettercompute__V1__Certificate body = BETTERCOMPUTE__V1__CERTIFICATE__INIT;

	body.ok = pem != NULL;
	if (pem) {
		body.certificate_pem.data = (uint8_t *)message_text(pem);
		body.certificate_pem.len = strlen(pem);
	}
	body.message = message_text(message ? message : "");
	down.body_case = BETTERCOMPUTE__V1__DOWN__BODY_CERTIFICATE;
	down.certificate = &body;
	return wire_down_pack(&down, out, error);
}
