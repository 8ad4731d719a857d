#include "gpu/core/inventory.h"

#include <stdio.h>

/* The driver numbers capability nodes so: two for the whole, then for each GPU 15 instances of one
 * access node and 8 compute instances each. */
#define CAPS_FIRST  3
#define CAPS_PER_GI 9
#define CAPS_GIS    15

void inventory_deinit(struct inventory *inventory)
{
	if (!inventory)
		return;
	vec_deinit(&inventory->gpus);
	vec_deinit(&inventory->atoms);
}

const struct inventory_gpu *inventory_find_gpu(const struct inventory *inventory,
					       struct atom_uuid uuid)
{
	for (size_t i = 0; i < inventory->gpus.count; i++)
		if (atom_uuid_equal(inventory->gpus.items[i].uuid, uuid))
			return &inventory->gpus.items[i];
	return NULL;
}

const struct inventory_atom *inventory_find_atom(const struct inventory *inventory,
						 const struct atom *atom)
{
	const struct inventory_atom *atoms = inventory->atoms.items;
	size_t i = vec_lower(inventory->atoms.count, at, atom_compare(&atoms[at].atom, atom) < 0);

	return i < inventory->atoms.count && atom_compare(&atoms[i].atom, atom) == 0 ? &atoms[i]
										     : NULL;
}

struct inventory_atom *inventory_push_atom(struct inventory *inventory,
					   const struct inventory_gpu *gpu, enum atom_class class,
					   struct atom_range range)
{
	struct inventory_atom *atom = vec_push(&inventory->atoms);
	char uuid[ATOM_UUID_SIZE];

	atom_uuid_format(uuid, gpu->uuid);
	atom->atom = (struct atom){.class = class, .gpu = gpu->uuid};
	atom->range = range;
	atom->numa = gpu->numa;
	atom->health = gpu->health;
	atom->memory_bytes = gpu->memory_bytes * (range.hi - range.lo) / ATOM_LEAVES;
	snprintf(atom->visible, sizeof atom->visible, "GPU-%s", uuid);
	return atom;
}

void inventory_push_whole(struct inventory *inventory, const struct inventory_gpu *gpu,
			  int32_t slots)
{
	inventory_push_atom(inventory, gpu, ATOM_GPU, atom_whole());
	for (int32_t k = 0; k < slots; k++)
		inventory_push_atom(inventory, gpu, ATOM_SLOT, atom_slot_range(k, slots))
			->atom.slot = (uint16_t)k;
}

static int compare_atoms(const void *a, const void *b)
{
	const struct inventory_atom *left = a, *right = b;

	return atom_compare(&left->atom, &right->atom);
}

void inventory_sort(struct inventory *inventory)
{
	vec_sort(&inventory->atoms, compare_atoms);
}

static void add_node(struct inventory_node *out, size_t *count, const char *path,
		     const char *host_path)
{
	struct inventory_node *node = &out[(*count)++];

	assert(*count <= INVENTORY_MAX_NODES);
	str_copy(node->path, sizeof node->path, path);
	str_copy(node->host_path, sizeof node->host_path, *host_path ? host_path : path);
}

static void add_cap(const struct inventory *inventory, struct inventory_node *out, size_t *count,
		    int number)
{
	char path[INVENTORY_PATH_SIZE];

	snprintf(path, sizeof path, "/dev/nvidia-caps/nvidia-cap%d", number);
	add_node(out, count, path, inventory->nodes.caps);
}

size_t inventory_atom_nodes(const struct inventory *inventory, const struct atom *atom,
			    struct inventory_node out[INVENTORY_MAX_NODES])
{
	const struct inventory_gpu *gpu = inventory_find_gpu(inventory, atom->gpu);
	const struct inventory_nodes *nodes = &inventory->nodes;
	char path[INVENTORY_PATH_SIZE], host_path[INVENTORY_PATH_SIZE + 16] = "";
	size_t count = 0;
	int gi_cap;

	if (!gpu || gpu->minor < 0)
		return 0;
	snprintf(path, sizeof path, "/dev/nvidia%d", (int)gpu->minor);
	if (*nodes->gpu_prefix)
		snprintf(host_path, sizeof host_path, "%s%d", nodes->gpu_prefix,
			 (int)(nodes->gpu_base + gpu->minor));
	add_node(out, &count, path, host_path);
	if (atom->class == ATOM_MIG) {
		gi_cap = CAPS_FIRST + (CAPS_GIS * gpu->minor + atom->gi) * CAPS_PER_GI;
		add_cap(inventory, out, &count, gi_cap);
		add_cap(inventory, out, &count, gi_cap + 1 + atom->ci);
	}
	return count;
}

size_t inventory_common_nodes(const struct inventory *inventory,
			      struct inventory_node out[INVENTORY_MAX_NODES])
{
	size_t count = 0;

	add_node(out, &count, "/dev/nvidiactl", inventory->nodes.control);
	add_node(out, &count, "/dev/nvidia-uvm", inventory->nodes.uvm);
	add_node(out, &count, "/dev/nvidia-uvm-tools", inventory->nodes.uvm_tools);
	return count;
}
