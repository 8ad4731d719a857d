#include "node/core/allocate.h"

#include <stdio.h>

#define NVIDIA_KIND        "nvidia.com/gpu"
#define NVIDIA_MAX_DEVICES 1024

void allocate_answer_deinit(struct allocate_answer *answer)
{
	if (!answer)
		return;
	for (size_t i = 0; i < answer->cdi_names.count; i++)
		free(answer->cdi_names.items[i]);
	vec_deinit(&answer->cdi_names);
	buf_deinit(&answer->visible);
	buf_deinit(&answer->allocations);
}

void allocate_nvidia_deinit(struct allocate_nvidia *nvidia)
{
	if (!nvidia)
		return;
	for (size_t i = 0; i < nvidia->count; i++)
		free(nvidia->items[i]);
	vec_deinit(nvidia);
}

/* --- NVIDIA's specs --- */

bool allocate_nvidia_add(struct allocate_nvidia *nvidia, json_t *spec, struct error *error)
{
	char kind[64] = "";
	json_t *devices;

	if (!field_object(spec, "", error) ||
	    !field_text(spec, "", "kind", true, kind, sizeof kind, error))
		return false;
	if (!str_equal(kind, NVIDIA_KIND))
		return true;
	if (!field_array(spec, "", "devices", true, NVIDIA_MAX_DEVICES, &devices, error))
		return false;
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const char *name =
			json_string_value(json_object_get(json_array_get(devices, i), "name"));

		if (name)
			*vec_push(nvidia) = mem_strdup(name);
	}
	return true;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void allocate_nvidia_sort(struct allocate_nvidia *nvidia)
{
	vec_sort(nvidia, compare_names);
}

static bool nvidia_has(const struct allocate_nvidia *nvidia, const char *name)
{
	return nvidia->count > 0 &&
	       bsearch(&name, nvidia->items, nvidia->count, sizeof *nvidia->items, compare_names);
}

/* --- one container --- */

/* Is `word` one of the comma-separated words of `list`? */
static bool list_has(const struct buf *list, const char *word)
{
	const char *at = buf_text(list);
	size_t length = strlen(word);

	while (*at) {
		size_t span = strcspn(at, ",");

		if (span == length && memcmp(at, word, length) == 0)
			return true;
		at += span + (at[span] == ',');
	}
	return false;
}

static void list_add(struct buf *list, const char *word)
{
	if (list_has(list, word))
		return;
	if (list->length > 0)
		buf_add_char(list, ',');
	buf_add_text(list, word);
}

static void add_cdi_name(struct allocate_answer *answer, const char *kind, const char *name)
{
	struct buf text = {0};

	buf_printf(&text, "%s=%s", kind, name);
	*vec_push(&answer->cdi_names) = buf_take_text(&text);
}

static bool has_cdi_name(const struct allocate_answer *answer, const char *name)
{
	for (size_t i = 0; i < answer->cdi_names.count; i++)
		if (str_ends(answer->cdi_names.items[i], name))
			return true;
	return false;
}

static bool check_id(const struct allocate_view *view, const char *id, const struct hold **ret_hold,
		     const struct hold_device **ret_device, struct error *error)
{
	const struct stray *stray;
	struct health health;

	if (!holds_find_id(view->holds, id, ret_hold, ret_device) ||
	    !str_equal((*ret_hold)->binding, OFFER_BINDING))
		return error_set(error, ERROR_INVALID_STATE,
				 "device '%.120s' isn't bound on this node", id);
	if ((*ret_device)->atom.class != view->class)
		return error_set(error, ERROR_INVALID_INPUT, "device '%.120s' isn't of class %s",
				 id, atom_class_name(view->class));
	health = offer_health(view->inventory, *ret_device);
	if (!health.healthy)
		return error_set(error, ERROR_INVALID_STATE, "device '%.120s' is unhealthy: %s", id,
				 health.cause);
	stray = view->strays ? strays_find(view->strays, (*ret_device)->atom.gpu,
					   (*ret_device)->range, (*ret_hold)->allocation)
			     : NULL;
	return !stray || error_set(error, ERROR_INVALID_STATE, "device '%.90s' is held by %s", id,
				   stray->who);
}

static void add_device(const struct hold *hold, const struct hold_device *device,
		       struct allocate_answer *answer)
{
	char name[ATOM_TEXT_SIZE];

	atom_device_name(name, &device->atom);
	add_cdi_name(answer, HOLDS_KIND, name);
	list_add(&answer->visible, device->visible);
	list_add(&answer->allocations, hold->allocation);
}

bool allocate_decide(const struct allocate_view *view, const char *const *ids, size_t count,
		     struct allocate_answer *ret_answer, struct error *error)
{
	struct allocate_answer answer = {0};
	const struct hold_device *device;
	const struct hold *hold;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < i; j++)
			if (str_equal(ids[i], ids[j])) {
				allocate_answer_deinit(&answer);
				return error_set(error, ERROR_INVALID_INPUT,
						 "device '%.120s' is asked for twice", ids[i]);
			}
		if (!check_id(view, ids[i], &hold, &device, error)) {
			allocate_answer_deinit(&answer);
			return false;
		}
		add_device(hold, device, &answer);
	}
	for (size_t i = 0; i < count; i++) {
		if (holds_find_id(view->holds, ids[i], &hold, &device) &&
		    nvidia_has(view->nvidia, device->visible) &&
		    !has_cdi_name(&answer, device->visible))
			add_cdi_name(&answer, NVIDIA_KIND, device->visible);
	}
	*ret_answer = answer;
	return true;
}
