#include "node/core/labels.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "text/tree.h"

#include <stdio.h>

#define MIB ((int64_t)1 << 20)

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void labels_value(char out[LABELS_VALUE_SIZE], const char *text)
{
	size_t length = 0;

	while (*text && length < LABELS_VALUE_SIZE - 1) {
		size_t step = utf8_length(text);
		bool good = is_alphanumeric(*text) || strchr("-_.", *text);

		if (length > 0 || is_alphanumeric(*text))
			out[length++] = good ? *text : '-';
		text += step > 0 ? step : 1;
	}
	while (length > 0 && !is_alphanumeric(out[length - 1]))
		length--;
	out[length] = '\0';
}

static void set(json_t *labels, const char *name, const char *text)
{
	char key[128], value[LABELS_VALUE_SIZE];

	labels_value(value, text);
	if (!*value)
		return;
	snprintf(key, sizeof key, LABELS_PREFIX "%s", name);
	tree_set(labels, key, tree_string(value));
}

static void set_number(json_t *labels, const char *name, int64_t number)
{
	char text[24];

	snprintf(text, sizeof text, "%lld", (long long)number);
	set(labels, name, text);
}

/* --- of the GPUs --- */

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each model once, in order. */
static void set_product(json_t *labels, const struct inventory *inventory)
{
	VEC(const char *) models = {0};
	CLEANUP(buf) struct buf text = {0};
	const char *before = "";

	vec_each (&inventory->gpus, const struct inventory_gpu *gpu)
		*vec_push(&models) = gpu->model;
	vec_sort(&models, compare_texts);
	vec_each (&models, const char **model) {
		char value[LABELS_VALUE_SIZE];

		labels_value(value, *model);
		if (*value && !str_equal(*model, before))
			buf_printf(&text, "%s%s", text.length > 0 ? "." : "", value);
		before = *model;
	}
	set(labels, "gpu.product", buf_text(&text));
	vec_deinit(&models);
}

static void set_memory(json_t *labels, const struct inventory *inventory)
{
	int64_t least = INT64_MAX;

	vec_each (&inventory->gpus, const struct inventory_gpu *gpu)
		if (gpu->memory_bytes > 0 && gpu->memory_bytes < least)
			least = gpu->memory_bytes;
	if (least != INT64_MAX)
		set_number(labels, "gpu.memory", least / MIB);
}

static void set_compute(json_t *labels, const struct inventory *inventory)
{
	const struct inventory_gpu *least = NULL;

	vec_each (&inventory->gpus, const struct inventory_gpu *gpu)
		if (gpu->compute_major > 0 &&
		    (!least || gpu->compute_major < least->compute_major ||
		     (gpu->compute_major == least->compute_major &&
		      gpu->compute_minor < least->compute_minor)))
			least = gpu;
	if (!least)
		return;
	set_number(labels, "gpu.compute.major", least->compute_major);
	set_number(labels, "gpu.compute.minor", least->compute_minor);
}

static void set_mig(json_t *labels, const struct inventory *inventory)
{
	bool all = true;

	vec_each (&inventory->gpus, const struct inventory_gpu *gpu) {
		if (gpu->mig == INVENTORY_MIG_UNKNOWN)
			return;
		all = all && gpu->mig == INVENTORY_MIG_CAPABLE;
	}
	set(labels, "gpu.mig.capable", all ? "true" : "false");
}

json_t *labels_wanted(const struct labels_view *view)
{
	const struct inventory *inventory = view->inventory;
	json_t *labels = json_object();

	if (view->stranger)
		return labels;
	set(labels, "node-id", view->node_id);
	set(labels, "site", view->site);
	set(labels, "pool", view->pool);
	if (!inventory)
		return labels;
	set_number(labels, "gpu.count", (int64_t)inventory->gpus.count);
	if (inventory->gpus.count == 0)
		return labels;
	set(labels, "gpu.driver", inventory->driver);
	set_product(labels, inventory);
	set_memory(labels, inventory);
	set_compute(labels, inventory);
	set_mig(labels, inventory);
	return labels;
}

/* --- what is to be changed --- */

static bool is_over(const char *name, const json_t *wanted, bool gpus_known)
{
	return str_starts(name, LABELS_PREFIX) && !json_object_get(wanted, name) &&
	       (gpus_known || !str_starts(name, LABELS_PREFIX "gpu."));
}

json_t *labels_changes(const json_t *wanted, bool gpus_known, const json_t *node)
{
	json_t *there = json_object_get(json_object_get(node, "metadata"), "labels");
	json_t *changes = json_object(), *value;
	const char *name;

	json_object_foreach((json_t *)wanted, name,
			    value) if (!json_equal(json_object_get(there, name), value))
		tree_set(changes, name, json_incref(value));
	json_object_foreach(there, name, value) if (is_over(name, wanted, gpus_known))
		tree_set(changes, name, json_null());
	if (json_object_size(changes) > 0)
		return changes;
	json_decref(changes);
	return NULL;
}
