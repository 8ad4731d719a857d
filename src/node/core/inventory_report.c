#include "node/core/inventory_report.h"

#include "proto/hugepages.h"
#include "proto/message.h"

static Bettercompute__V1__Health *health_message(struct arena *arena, const struct health *health)
{
	Bettercompute__V1__Health *message = arena_alloc(arena, sizeof *message);

	bettercompute__v1__health__init(message);
	message->healthy = health->healthy;
	message->cause = message_text(health->cause);
	return message;
}

static Bettercompute__V1__Gpu *gpu_message(struct arena *arena, const struct inventory_gpu *gpu)
{
	Bettercompute__V1__Gpu *message = arena_alloc(arena, sizeof *message);
	char uuid[ATOM_UUID_SIZE];

	bettercompute__v1__gpu__init(message);
	atom_uuid_format(uuid, gpu->uuid);
	message->uuid = arena_strdup(arena, uuid);
	message->model = message_text(gpu->model);
	message->memory_bytes = gpu->memory_bytes;
	message->pci = message_text(gpu->pci);
	message->numa = gpu->numa;
	message->health = health_message(arena, &gpu->health);
	return message;
}

static Bettercompute__V1__Atom *atom_message(struct arena *arena, const struct inventory_atom *atom)
{
	Bettercompute__V1__Atom *message = arena_alloc(arena, sizeof *message);
	char text[ATOM_TEXT_SIZE], uuid[ATOM_UUID_SIZE];

	bettercompute__v1__atom__init(message);
	atom_format(text, &atom->atom);
	atom_uuid_format(uuid, atom->atom.gpu);
	message->atom = arena_strdup(arena, text);
	message->class_ = message_text(atom_class_name(atom->atom.class));
	message->gpu = arena_strdup(arena, uuid);
	message->leaf_lo = atom->range.lo;
	message->leaf_hi = atom->range.hi;
	message->profile = message_text(atom->profile);
	message->visible_device = message_text(atom->visible);
	message->numa = atom->numa;
	message->health = health_message(arena, &atom->health);
	message->memory_bytes = atom->memory_bytes;
	return message;
}

Bettercompute__V1__Inventory *inventory_report_message(const struct inventory_report *report,
						       struct arena *arena)
{
	const struct inventory *inventory = report->inventory;
	Bettercompute__V1__Inventory *message = arena_alloc(arena, sizeof *message);

	bettercompute__v1__inventory__init(message);
	message->os_kubernetes_node_name =
		message_text(*report->node_name ? report->node_name : report->hostname);
	message->hostname = message_text(report->hostname);
	message->kernel = message_text(report->kernel);
	message->vcpus = (int32_t)report->host.vcpus;
	message->memory_bytes = report->host.memory_bytes;
	hugepages_pack(&report->host.hugepages, arena, &message->huge_pages,
		       &message->n_huge_pages);
	message->simulated = inventory->simulated;
	message->simulated_reason = message_text(inventory->simulated_reason);
	message->driver_version = message_text(inventory->driver);
	message->gpu_api = message_text(report->gpu_api);
	message->gpus = arena_alloc(arena, (inventory->gpus.count + 1) * sizeof *message->gpus);
	for (size_t i = 0; i < inventory->gpus.count; i++)
		message->gpus[message->n_gpus++] = gpu_message(arena, &inventory->gpus.items[i]);
	message->atoms = arena_alloc(arena, (inventory->atoms.count + 1) * sizeof *message->atoms);
	for (size_t i = 0; i < inventory->atoms.count; i++)
		message->atoms[message->n_atoms++] =
			atom_message(arena, &inventory->atoms.items[i]);
	return message;
}
