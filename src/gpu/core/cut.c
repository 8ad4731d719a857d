#include "gpu/core/cut.h"

#include <stdio.h>

#define EIGHTHS 8
#define EIGHTH  (ATOM_LEAVES / EIGHTHS)

/* A GPU instance: its first and its number of compute instances. */
struct instance {
	int32_t gi;
	int32_t size; /* in eighths */
	struct atom_range range;
	bool placed;
};

/* What a profile's name says: "1c.3g.40gb" is 1 of the 3 slices of a GPU instance with 40 GB. */
static bool read_profile(const char *profile, int *ret_compute, int *ret_slices, long *ret_gb)
{
	int compute = 0, slices = 0;
	long gb = 0;

	if (sscanf(profile, "%1dc.%1dg.%4ldgb", &compute, &slices, &gb) != 3) {
		if (sscanf(profile, "%1dg.%4ldgb", &slices, &gb) != 2)
			return false;
		compute = slices;
	}
	if (compute < 1 || compute > slices || gb < 1)
		return false;
	*ret_compute = compute;
	*ret_slices = slices;
	*ret_gb = gb;
	return true;
}

/* Of the GPU's memory as the profile names it; its slices say how much at the least. */
static int32_t size_of(const struct reading_mig *cut, int64_t memory_bytes)
{
	static const int32_t by_slices[] = {EIGHTHS, 1,       2,       4,      4,
					    EIGHTHS, EIGHTHS, EIGHTHS, EIGHTHS};
	int64_t eighths = 0;
	int compute, slices;
	long gb;

	if (cut->size > 0)
		return cut->size;
	if (!read_profile(cut->profile, &compute, &slices, &gb) || slices > 8)
		return EIGHTHS;
	if (memory_bytes > 0)
		eighths = (((int64_t)gb << 30) * EIGHTHS + memory_bytes / 2) / memory_bytes;
	if (eighths < by_slices[slices])
		return by_slices[slices];
	return eighths > EIGHTHS ? EIGHTHS : (int32_t)eighths;
}

static const struct cut *remembered(const struct cuts *before, const struct cut *cut)
{
	for (size_t i = 0; i < before->count; i++)
		if (*cut->told.uuid && str_equal(before->items[i].told.uuid, cut->told.uuid) &&
		    before->items[i].told.gi == cut->told.gi)
			return &before->items[i];
	return NULL;
}

static bool meets(struct atom_range a, struct atom_range b)
{
	return a.lo < b.hi && b.lo < a.hi;
}

/* The GPU instances, each once, in the order of their first compute instance. */
static size_t list_instances(const struct cuts *cuts, int64_t memory_bytes,
			     struct instance instances[READING_MAX_MIG])
{
	size_t count = 0;

	for (size_t i = 0; i < cuts->count; i++) {
		const struct reading_mig *told = &cuts->items[i].told;
		bool known = false;

		for (size_t j = 0; j < count; j++)
			known = known || instances[j].gi == told->gi;
		if (known || count == READING_MAX_MIG)
			continue;
		instances[count] = (struct instance){
			.gi = told->gi,
			.size = size_of(told, memory_bytes),
		};
		if (told->start >= 0 && told->start + instances[count].size <= EIGHTHS) {
			instances[count].range = atom_mig_range(told->start, instances[count].size);
			instances[count].placed = true;
		}
		count++;
	}
	return count;
}

/* Where the instance lay before: around what one of its compute instances had. */
static void remember(struct instance *instance, const struct cuts *cuts, const struct cuts *before)
{
	const int32_t width = instance->size * EIGHTH;

	for (size_t i = 0; i < cuts->count && !instance->placed; i++) {
		const struct cut *old = remembered(before, &cuts->items[i]);
		struct atom_range range;

		if (cuts->items[i].told.gi != instance->gi || !old)
			continue;
		range = old->range;
		if (range.hi - range.lo < width)
			range.lo = range.lo / width * width, range.hi = range.lo + width;
		instance->range = range;
		instance->placed = range.hi <= ATOM_LEAVES;
	}
}

/* The driver places an instance at a multiple of its size. */
static void find_room(struct instance *instance, const struct instance *all, size_t count)
{
	for (int32_t at = 0; at + instance->size <= EIGHTHS && !instance->placed;
	     at += instance->size) {
		struct atom_range range = atom_mig_range(at, instance->size);
		bool room = true;

		for (size_t i = 0; i < count; i++)
			room = room && !(all[i].placed && meets(all[i].range, range));
		if (!room)
			continue;
		instance->range = range;
		instance->placed = true;
	}
	if (!instance->placed)
		instance->range = atom_whole();
}

/* The part of a compute instance in its GPU instance. */
static void place_part(struct cut *cut, const struct cuts *cuts, const struct cuts *before,
		       struct atom_range whole, bool shared)
{
	const struct cut *old = remembered(before, cut);
	int compute = 1, slices = 1;
	int32_t part;
	long gb;

	cut->range = whole;
	if (!shared && !strchr(cut->told.profile, 'c'))
		return;
	if (!read_profile(cut->told.profile, &compute, &slices, &gb))
		return;
	part = (whole.hi - whole.lo) * compute / slices;
	if (old && old->range.lo >= whole.lo && old->range.hi <= whole.hi &&
	    old->range.hi - old->range.lo == part) {
		cut->range = old->range;
		return;
	}
	for (int32_t lo = whole.lo; lo + part <= whole.hi; lo += part) {
		struct atom_range range = {lo, lo + part};
		bool room = true;

		for (size_t i = 0; i < cuts->count; i++) {
			const struct cut *other = &cuts->items[i];
			const struct cut *kept = remembered(before, other);

			if (other == cut || other->told.gi != cut->told.gi)
				continue;
			/* those before us have theirs; those after us may have kept one */
			if (other < cut ? meets(other->range, range)
					: kept && meets(kept->range, range))
				room = false;
		}
		if (!room)
			continue;
		cut->range = range;
		return;
	}
}

static size_t count_parts(const struct cuts *cuts, int32_t gi)
{
	size_t count = 0;

	for (size_t i = 0; i < cuts->count; i++)
		count += cuts->items[i].told.gi == gi;
	return count;
}

void cut_place(struct cuts *cuts, const struct cuts *before, int64_t memory_bytes)
{
	struct instance instances[READING_MAX_MIG];
	size_t count = list_instances(cuts, memory_bytes, instances);

	for (size_t i = 0; i < count; i++)
		remember(&instances[i], cuts, before);
	for (int32_t size = EIGHTHS; size > 0; size--) /* the large ones find room first */
		for (size_t i = 0; i < count; i++)
			if (!instances[i].placed && instances[i].size == size)
				find_room(&instances[i], instances, count);
	for (size_t i = 0; i < cuts->count; i++) {
		struct atom_range whole = atom_whole();

		for (size_t j = 0; j < count; j++)
			if (instances[j].gi == cuts->items[i].told.gi)
				whole = instances[j].range;
		place_part(&cuts->items[i], cuts, before, whole,
			   count_parts(cuts, cuts->items[i].told.gi) > 1);
	}
}
