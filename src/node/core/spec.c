#include "node/core/spec.h"

#include "node/core/offer.h"
#include "proto/hugepages.h"

#include <stdio.h>

static const char *const top_keys[] = {"version", "lineage",     "generation",
				       "gpuApi",  "assignments", NULL};
static const char *const assignment_keys[] = {"allocation", "reservation",  "binding",
					      "devices",    "problem",      "failed",
					      "endMs",      ADMISSION_KEYS, NULL};
static const char *const device_keys[] = {"atom", "visibleDevice", NULL};

void spec_deinit(struct spec *spec)
{
	if (!spec)
		return;
	for (size_t i = 0; i < spec->assignments.count; i++)
		vec_deinit(&spec->assignments.items[i].devices);
	vec_deinit(&spec->assignments);
	vec_deinit(&spec->withdrawn);
}

struct spec_assignment *spec_find(const struct spec *spec, const char *allocation)
{
	for (size_t i = 0; i < spec->assignments.count; i++)
		if (str_equal(spec->assignments.items[i].allocation, allocation))
			return &spec->assignments.items[i];
	return NULL;
}

bool spec_accepts(const struct spec *stored, const struct spec *next)
{
	return !stored || !str_equal(stored->lineage, next->lineage) ||
	       next->generation > stored->generation;
}

static int compare_devices(const void *a, const void *b)
{
	const struct spec_device *left = a, *right = b;

	return atom_compare(&left->atom, &right->atom);
}

/* Sorts the devices; a problem when two are the same. */
static void check_devices(struct spec_assignment *assignment)
{
	vec_sort(&assignment->devices, compare_devices);
	if (assignment->devices.count == 0 && !*assignment->problem)
		str_copy(assignment->problem, sizeof assignment->problem, "it names no device");
	for (size_t i = 1; i < assignment->devices.count; i++)
		if (atom_equal(&assignment->devices.items[i - 1].atom,
			       &assignment->devices.items[i].atom))
			str_copy(assignment->problem, sizeof assignment->problem,
				 "it names a device twice");
}

/* --- from the wire --- */

static void take_device(const Bettercompute__V1__AssignedDevice *message,
			struct spec_assignment *assignment)
{
	struct spec_device device = {0};
	struct error error;

	if (!atom_parse(message->atom, &device.atom, &error) ||
	    !str_equal(message->class_, atom_class_name(device.atom.class)) ||
	    !*message->visible_device ||
	    !str_copy(device.visible, sizeof device.visible, message->visible_device)) {
		snprintf(assignment->problem, sizeof assignment->problem,
			 "'%.60s' of class '%.20s' is not a device", message->atom,
			 message->class_);
		return;
	}
	*vec_push(&assignment->devices) = device;
}

static void take_share(const Bettercompute__V1__Limits *message, struct admission_share *share)
{
	if (!message)
		return;
	share->vcpus = message->vcpus > 0 ? message->vcpus : 0;
	share->memory_bytes = message->memory_bytes > 0 ? message->memory_bytes : 0;
	share->hugepages = hugepages_unpack(message->huge_pages, message->n_huge_pages);
}

static bool take_assignment(const Bettercompute__V1__Assignment *message, struct spec *spec,
			    struct error *error)
{
	struct spec_assignment *assignment;

	if (!id_valid(message->allocation, "alc"))
		return error_set(error, ERROR_INVALID_INPUT, "'%.60s' is not an allocation's id",
				 message->allocation);
	if (spec_find(spec, message->allocation))
		return error_set(error, ERROR_INVALID_INPUT, "allocation '%s' is there twice",
				 message->allocation);
	assignment = vec_push(&spec->assignments);
	str_copy(assignment->allocation, sizeof assignment->allocation, message->allocation);
	if (!str_copy(assignment->reservation, sizeof assignment->reservation,
		      message->reservation))
		str_copy(assignment->problem, sizeof assignment->problem,
			 "its reservation is not an id");
	if (message->binding == BETTERCOMPUTE__V1__BINDING__BINDING_KUBERNETES)
		str_copy(assignment->binding, sizeof assignment->binding, OFFER_BINDING);
	else
		snprintf(assignment->problem, sizeof assignment->problem,
			 "binding %d is not known to this bcd", (int)message->binding);
	/* An older control plane tells only what was asked for. */
	take_share(message->booked ? message->booked : message->limits, &assignment->share);
	assignment->end_ms = message->end_ms > 0 ? message->end_ms : 0;
	for (size_t i = 0; i < message->n_devices && i < HOLDS_MAX_DEVICES; i++)
		take_device(message->devices[i], assignment);
	if (message->n_devices > HOLDS_MAX_DEVICES)
		str_copy(assignment->problem, sizeof assignment->problem,
			 "it names too many devices");
	check_devices(assignment);
	return true;
}

static bool take_withdrawn(const char *allocation, struct spec *spec, struct error *error)
{
	if (!id_valid(allocation, "alc") || spec_find(spec, allocation))
		return error_set(error, ERROR_INVALID_INPUT,
				 "withdrawn '%.60s' is no allocation, or is wanted too",
				 allocation);
	str_copy(vec_push(&spec->withdrawn)->allocation, ID_SIZE, allocation);
	return true;
}

/* What is stored must be readable again, also when each assignment has failed. */
static bool check_fits(const struct spec *spec, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	size_t length;

	spec_format(spec, &text);
	length = text.length + spec->assignments.count * SPEC_REASON_SIZE;
	return length <= SPEC_MAX_FILE ||
	       error_set(error, ERROR_RESOURCES_EXHAUSTED, "%s would have %zu bytes; %zu at most",
			 SPEC_FILE, length, SPEC_MAX_FILE);
}

bool spec_from_message(const Bettercompute__V1__Spec *message, struct spec *ret_spec,
		       struct error *error)
{
	CLEANUP(spec) struct spec spec = {.generation = message->generation};

	if (!*message->lineage || !str_copy(spec.lineage, sizeof spec.lineage, message->lineage))
		return error_set(error, ERROR_INVALID_INPUT, "lineage '%.80s' is none",
				 message->lineage);
	if (message->generation < 1)
		return error_set(error, ERROR_INVALID_INPUT, "generation %lld is none",
				 (long long)message->generation);
	if (!str_copy(spec.gpu_api, sizeof spec.gpu_api, message->gpu_api))
		return error_set(error, ERROR_INVALID_INPUT, "gpu_api '%.40s' is none",
				 message->gpu_api);
	if (message->n_assignments > HOLDS_MAX)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED, "%zu assignments; %d at most",
				 message->n_assignments, HOLDS_MAX);
	for (size_t i = 0; i < message->n_assignments; i++)
		if (!take_assignment(message->assignments[i], &spec, error))
			return false;
	/* What is too many is named again by a later Spec. */
	for (size_t i = 0; i < message->n_withdrawn && i < SPEC_MAX_WITHDRAWN; i++)
		if (!take_withdrawn(message->withdrawn[i], &spec, error))
			return false;
	if (!check_fits(&spec, error))
		return false;
	*ret_spec = spec;
	spec = (struct spec){0};
	return true;
}

/* --- the record --- */

static json_t *format_assignment(const struct spec_assignment *assignment)
{
	json_t *devices = json_array(), *object;

	for (size_t i = 0; i < assignment->devices.count; i++) {
		char atom[ATOM_TEXT_SIZE];

		atom_format(atom, &assignment->devices.items[i].atom);
		json_array_append_new(devices,
				      json_pack("{s:s, s:s}", "atom", atom, "visibleDevice",
						assignment->devices.items[i].visible));
	}
	object = json_pack("{s:s, s:s, s:s, s:o, s:I, s:s}", "allocation", assignment->allocation,
			   "reservation", assignment->reservation, "binding", assignment->binding,
			   "devices", devices, "endMs", (json_int_t)assignment->end_ms, "failed",
			   assignment->failed);
	tree_set(object, "problem", tree_string(assignment->problem)); /* may have been cut */
	admission_set(object, &assignment->share);
	return object;
}

void spec_format(const struct spec *spec, struct buf *out)
{
	CLEANUP(tree)
	json_t *tree = json_pack("{s:i, s:s, s:I, s:s, s:[]}", "version", SPEC_VERSION, "lineage",
				 spec->lineage, "generation", (json_int_t)spec->generation,
				 "gpuApi", spec->gpu_api, "assignments");

	for (size_t i = 0; i < spec->assignments.count; i++)
		json_array_append_new(json_object_get(tree, "assignments"),
				      format_assignment(&spec->assignments.items[i]));
	tree_dump_pretty(out, tree);
}

static bool parse_device(json_t *object, const char *where, struct spec_device *device,
			 struct error *error)
{
	char atom[ATOM_TEXT_SIZE] = "";

	if (!field_object(object, where, error) ||
	    !tree_check_keys(object, where, device_keys, error) ||
	    !field_text(object, where, "atom", true, atom, sizeof atom, error) ||
	    !field_text(object, where, "visibleDevice", true, device->visible,
			sizeof device->visible, error))
		return false;
	return atom_parse(atom, &device->atom, error) || error_wrap(error, "%s", where);
}

static bool parse_assignment(json_t *object, const char *where, const struct spec *before,
			     struct spec_assignment *assignment, struct error *error)
{
	json_t *devices;

	if (!field_object(object, where, error) ||
	    !tree_check_keys(object, where, assignment_keys, error) ||
	    !field_text(object, where, "allocation", true, assignment->allocation,
			sizeof assignment->allocation, error) ||
	    !field_text(object, where, "reservation", true, assignment->reservation,
			sizeof assignment->reservation, error) ||
	    !field_text(object, where, "binding", true, assignment->binding,
			sizeof assignment->binding, error) ||
	    !field_text(object, where, "problem", true, assignment->problem,
			sizeof assignment->problem, error) ||
	    !field_text(object, where, "failed", true, assignment->failed,
			sizeof assignment->failed, error) ||
	    !admission_parse(object, where, true, &assignment->share, error) ||
	    !field_number(object, where, "endMs", false, 0, INT64_MAX, &assignment->end_ms,
			  error) ||
	    !field_array(object, where, "devices", true, HOLDS_MAX_DEVICES, &devices, error))
		return false;
	if (!id_valid(assignment->allocation, "alc") || spec_find(before, assignment->allocation))
		return error_field(error, where, "allocation '%s' is no id, or is there twice",
				   assignment->allocation);
	for (size_t i = 0; i < json_array_size(devices); i++) {
		struct spec_device device = {0};
		char item[FIELD_WHERE_SIZE];

		tree_path_item(item, where, "devices", i);
		if (!parse_device(json_array_get(devices, i), item, &device, error))
			return false;
		*vec_push(&assignment->devices) = device;
	}
	check_devices(assignment);
	return true;
}

static bool parse_tree(json_t *tree, struct spec *spec, struct error *error)
{
	json_t *array;

	if (!field_object(tree, "", error) || !field_version(tree, SPEC_VERSION, error) ||
	    !tree_check_keys(tree, "", top_keys, error))
		return false;
	if (!field_text(tree, "", "lineage", true, spec->lineage, sizeof spec->lineage, error) ||
	    !field_number(tree, "", "generation", true, 1, INT64_MAX, &spec->generation, error) ||
	    !field_text(tree, "", "gpuApi", true, spec->gpu_api, sizeof spec->gpu_api, error) ||
	    !field_array(tree, "", "assignments", true, HOLDS_MAX, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		struct spec_assignment assignment = {0};
		char where[FIELD_WHERE_SIZE];

		tree_path_item(where, "", "assignments", i);
		if (!parse_assignment(json_array_get(array, i), where, spec, &assignment, error)) {
			vec_deinit(&assignment.devices);
			return false;
		}
		*vec_push(&spec->assignments) = assignment;
	}
	return true;
}

bool spec_parse(const char *text, size_t length, struct spec *ret_spec, struct error *error)
{
	CLEANUP(spec) struct spec spec = {0};
	CLEANUP(tree) json_t *tree = NULL;

	if (!tree_parse(text, length, SPEC_MAX_FILE, SPEC_FILE, &tree, error))
		return false;
	if (!parse_tree(tree, &spec, error))
		return error_wrap(error, SPEC_FILE);
	*ret_spec = spec;
	spec = (struct spec){0};
	return true;
}
