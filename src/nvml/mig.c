#include "nvml/mig.h"

#include <stdio.h>

#define EIGHTHS     8
#define MIB         ((unsigned long long)1 << 20)
#define GIB         ((unsigned long long)1 << 30)
#define MAX_SLICES  64
#define SLICES_STEP 4 /* GPUs have 4, 8 or 12 memory slices */

/* What one instance was when it was looked at. */
struct part {
	struct look *look;
	struct nvml_device *mig;
	struct nvml_attributes attributes; /* zeroes: not told */
	struct reading_mig *out;
};

/* --- the profile's name --- */

/* As NVIDIA rounds it: the eighths that the memory takes, of the GPU's memory in whole GiB. */
static unsigned long long profile_gigabytes(unsigned long long memory, unsigned long long total)
{
	unsigned long long gigabytes = (total + GIB - 1) / GIB, eighths;

	eighths = (memory * EIGHTHS + total - 1) / total;
	return (gigabytes * eighths + EIGHTHS / 2) / EIGHTHS;
}

static void profile_from_attributes(struct part *part)
{
	const struct nvml_attributes *attributes = &part->attributes;
	int64_t total = part->look->gpu->memory_bytes;
	char compute[16] = "", *out = part->out->profile;

	if (attributes->gpu_instance_slices == 0 || attributes->memory_mb == 0 || total <= 0 ||
	    attributes->memory_mb > (unsigned long long)total / MIB)
		return;
	if (attributes->compute_instance_slices < attributes->gpu_instance_slices)
		snprintf(compute, sizeof compute, "%uc.", attributes->compute_instance_slices);
	snprintf(out, sizeof part->out->profile, "%s%ug.%llugb", compute,
		 attributes->gpu_instance_slices,
		 profile_gigabytes(attributes->memory_mb * MIB, (unsigned long long)total));
}

/* "NVIDIA H100 80GB HBM3 MIG 1g.10gb" */
static void read_profile(struct part *part)
{
	const struct nvml *nvml = part->look->nvml;
	char name[NVML_NAME_SIZE] = "";
	const char *found;

	if (nvml->name(part->mig, name, sizeof name) == NVML_SUCCESS &&
	    (found = strstr(name, " MIG ")) && strlen(found + 5) < sizeof part->out->profile)
		reading_text(part->out->profile, sizeof part->out->profile, found + 5);
	else
		profile_from_attributes(part);
}

/* --- its place --- */

/* How many memory slices the GPU has: NVML doesn't say, but what this instance's come to. */
static unsigned long long slices_of(const struct part *part, unsigned size)
{
	unsigned long long total, memory = part->attributes.memory_mb * MIB;

	if (part->look->gpu->memory_bytes <= 0 || memory == 0)
		return EIGHTHS;
	total = ((unsigned long long)part->look->gpu->memory_bytes * size + memory / 2) / memory;
	return (total + SLICES_STEP / 2) / SLICES_STEP * SLICES_STEP;
}

static void read_place(struct part *part)
{
	const struct nvml *nvml = part->look->nvml;
	struct nvml_gpu_instance_info info = {0};
	struct nvml_placement place;
	struct nvml_gpu_instance *gi;
	unsigned long long slices;

	part->out->start = -1;
	if (!nvml->gi_by_id || !nvml->gi_info ||
	    nvml->gi_by_id(part->look->device, (unsigned)part->out->gi, &gi) != NVML_SUCCESS ||
	    nvml->gi_info(gi, &info) != NVML_SUCCESS)
		return;
	place = info.placement;
	if (place.size == 0 || place.size > MAX_SLICES || place.start > MAX_SLICES)
		return;
	slices = slices_of(part, place.size);
	if (slices < place.start + place.size || place.start * EIGHTHS % slices ||
	    place.size * EIGHTHS % slices)
		return;
	part->out->start = (int32_t)(place.start * EIGHTHS / slices);
	part->out->size = (int32_t)(place.size * EIGHTHS / slices);
}

/* --- all of them --- */

/* False: it went while it was looked at. */
static bool read_part(struct look *look, struct nvml_device *mig, struct reading_mig *out)
{
	const struct nvml *nvml = look->nvml;
	struct part part = {.look = look, .mig = mig, .out = out};
	char uuid[NVML_UUID_SIZE] = "";
	unsigned gi, ci;

	if (!nvml->gi_id || !nvml->ci_id || !look_got(look, "MIG", nvml->gi_id(mig, &gi)) ||
	    !look_got(look, "MIG", nvml->ci_id(mig, &ci)) ||
	    !look_got(look, "MIG", nvml->uuid(mig, uuid, sizeof uuid)))
		return false;
	if (gi > ATOM_MAX_NUMBER || ci > ATOM_MAX_NUMBER ||
	    !str_copy(out->uuid, sizeof out->uuid, uuid))
		return false;
	out->gi = (int32_t)gi;
	out->ci = (int32_t)ci;
	out->memory_bytes = READING_UNKNOWN;
	if (nvml->attributes && nvml->attributes(mig, &part.attributes) == NVML_SUCCESS &&
	    part.attributes.memory_mb > 0)
		out->memory_bytes = look_number(part.attributes.memory_mb * MIB);
	read_profile(&part);
	read_place(&part);
	return true;
}

/* Two that are in each other's place are of before and after a change; compute instances of one GPU
 * instance share its place. */
static bool fits(const struct reading_gpu *gpu, const struct reading_mig *one)
{
	vec_each (&gpu->mig, const struct reading_mig *other) {
		if (other == one)
			continue;
		if (str_equal(other->uuid, one->uuid) ||
		    (other->gi == one->gi && other->ci == one->ci))
			return false;
		if (other->gi != one->gi && other->start >= 0 && one->start >= 0 &&
		    other->start < one->start + one->size &&
		    one->start < other->start + other->size)
			return false;
	}
	return true;
}

/* False: something went or came meanwhile; what is whole is there. */
static bool read_all(struct look *look, unsigned max)
{
	struct reading_gpu *gpu = look->gpu;
	struct nvml_device *mig;
	bool whole = true;

	vec_clear(&gpu->mig);
	for (unsigned i = 0; i < max && look_goes_on(look); i++) {
		struct reading_mig *one;

		if (!look_ask(look, mig_by_index, i, &mig))
			continue;
		one = vec_push(&gpu->mig);
		if (read_part(look, mig, one) && fits(gpu, one))
			continue;
		gpu->mig.count--;
		whole = false;
	}
	return whole;
}

/* A GPU that can't be cut has no such mode. */
static bool read_mode(struct look *look, unsigned *ret_current)
{
	unsigned pending, status;

	if (!look->nvml->mig_mode || !look_goes_on(look))
		return false;
	status = look->nvml->mig_mode(look->device, ret_current, &pending);
	if (status == NVML_ERROR_NOT_SUPPORTED)
		look->gpu->mig_capable = INVENTORY_MIG_INCAPABLE;
	if (!look_got(look, "mig_mode", status))
		return false;
	look->gpu->mig_capable = INVENTORY_MIG_CAPABLE;
	return true;
}

void mig_read(struct look *look)
{
	unsigned current, max;

	if (!read_mode(look, &current) || current != NVML_MIG_ENABLED)
		return;
	look->gpu->mig_enabled = true;
	if (!look_ask(look, mig_max, &max))
		return;
	if (max > READING_MAX_MIG)
		max = READING_MAX_MIG;
	for (int i = 0; i < MIG_ATTEMPTS && look_goes_on(look); i++)
		if (read_all(look, max))
			break;
}
