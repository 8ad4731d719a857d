#include "control/core/pod_requests.h"

#include <stdio.h>

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

/* The devices of one pod. */
struct choice {
	int devices[PLACEMENT_CLASSES];
	int count; /* of all classes */
	int room;  /* pods like it that one node's devices are enough for */
};

static int devices_of(const struct pod_part *part)
{
	int count = 0;

	for (int i = 0; i < PLACEMENT_CLASSES; i++)
		count += part->devices[i];
	return count;
}

static int classes_of(const struct pod_part *part)
{
	int count = 0;

	for (int i = 0; i < PLACEMENT_CLASSES; i++)
		count += part->devices[i] > 0;
	return count;
}

static enum placement_class first_class(const struct pod_part *part)
{
	int class = 0;

	while (part->devices[class] == 0)
		class ++;
	return (enum placement_class) class;
}

static bool choose(const struct pod_part *part, struct pod_asked asked, struct choice *ret_choice,
		   struct error *error)
{
	struct choice choice = {.room = 1};
	enum placement_class class;
	int booked;

	if (devices_of(part) == 0)
		return error_set(error, ERROR_INVALID_STATE,
				 "the reservation has no device on a node");
	class = asked.one_class ? asked.class : first_class(part);
	booked = part->devices[class];
	if (!asked.one_class && asked.devices == 0) {
		memcpy(choice.devices, part->devices, sizeof choice.devices);
		choice.count = devices_of(part);
		*ret_choice = choice;
		return true;
	}
	if (!asked.one_class && classes_of(part) > 1) {
		error_field(error, "class", "is missing: devices of several classes are booked");
		return error_hint(error, "Say which of them: gpu, gpu.mig or gpu.slot.");
	}
	if (booked == 0)
		return error_field(error, "class", "no %s is booked", placement_class_name(class));
	if (asked.devices > booked)
		return error_field(error, "devices", "is %d: %d %s are booked on a node",
				   asked.devices, booked, placement_class_name(class));
	choice.count = asked.devices ? asked.devices : booked;
	choice.devices[class] = choice.count;
	choice.room = booked / choice.count;
	*ret_choice = choice;
	return true;
}

/* `count` of `all` devices' part of `total`; the product of two large numbers is never made. */
static int64_t part_of(int64_t total, int count, int all)
{
	return total / all * count + total % all * count / all;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void set(json_t *resources, const char *name, const char *text)
{
	json_object_set_new(resources, name, json_string(text));
}

static void set_cpu(json_t *resources, int64_t millis)
{
	char text[32];

	if (millis % 1000 == 0)
		snprintf(text, sizeof text, "%lld", (long long)(millis / 1000));
	else
		snprintf(text, sizeof text, "%lldm", (long long)millis);
	if (millis > 0)
		set(resources, "cpu", text);
}

/* In whole pages of `unit` bytes, a mebibyte or a multiple of it. */
static void set_bytes(json_t *resources, const char *name, int64_t bytes, int64_t unit)
{
	char text[32];

	bytes -= bytes % unit;
	if (bytes % GIB == 0)
		snprintf(text, sizeof text, "%lldGi", (long long)(bytes / GIB));
	else
		snprintf(text, sizeof text, "%lldMi", (long long)(bytes / MIB));
	if (bytes > 0)
		set(resources, name, text);
}

static void set_devices(json_t *resources, const struct choice *choice)
{
	for (int i = 0; i < PLACEMENT_CLASSES; i++) {
		char name[64], count[16];

		snprintf(name, sizeof name, "bcd.dev/%s",
			 placement_class_name((enum placement_class)i));
		snprintf(count, sizeof count, "%d", choice->devices[i]);
		if (choice->devices[i] > 0)
			set(resources, name, count);
	}
}

static void set_hugepages(json_t *resources, const struct hugepages *hugepages)
{
	for (int i = 0; i < HUGEPAGES_SIZES; i++) {
		enum hugepages_size size = (enum hugepages_size)i;
		char name[32];

		snprintf(name, sizeof name, "hugepages-%s", hugepages_name(size));
		set_bytes(resources, name, hugepages->bytes[i], hugepages_page_bytes(size));
	}
}

/* What one pod gets of the host. */
struct share {
	int64_t millicpus, memory_bytes;
	struct hugepages hugepages;
};

/* The least that a node gives to so many devices. */
static struct share share_of(const struct pod_part *parts, size_t count, int devices)
{
	struct share share = {INT64_MAX, INT64_MAX, {{INT64_MAX, INT64_MAX}}};

	for (size_t i = 0; i < count; i++) {
		const struct pod_part *part = &parts[i];
		int all = devices_of(part);

		assert(all > 0);
		share.millicpus = least(share.millicpus, part_of(part->vcpus * 1000, devices, all));
		share.memory_bytes =
			least(share.memory_bytes, part_of(part->memory_bytes, devices, all));
		for (int j = 0; j < HUGEPAGES_SIZES; j++)
			share.hugepages.bytes[j] =
				least(share.hugepages.bytes[j],
				      part_of(part->hugepages.bytes[j], devices, all));
	}
	return share;
}

bool pod_requests_make(const struct pod_part *parts, size_t count, struct pod_asked asked,
		       json_t **ret_answer, struct error *error)
{
	json_t *resources = json_object();
	struct choice choice;
	struct share share;

	assert(count > 0);
	for (size_t i = 0; i < count; i++) {
		if (choose(&parts[i], asked, &choice, error))
			continue;
		json_decref(resources);
		return false;
	}
	share = share_of(parts, count, choice.count);
	set_devices(resources, &choice);
	set_cpu(resources, share.millicpus);
	set_bytes(resources, "memory", share.memory_bytes, MIB);
	set_hugepages(resources, &share.hugepages);
	*ret_answer = json_pack("{s:i, s:I, s:{s:O, s:o}}", "devices", choice.count, "pods",
				(json_int_t)count * choice.room, "resources", "requests", resources,
				"limits", resources);
	return true;
}
