#include "standin/cdi.h"

#include "base/vec.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "text/tree.h"

struct spec {
	json_t *root;
	size_t folder;
	bool applied;
};
struct specs VEC_BODY(struct spec);

static void specs_cleanup(struct specs *specs)
{
	vec_each (specs, struct spec * spec)
		json_decref(spec->root);
	vec_deinit(specs);
}

/* A file that can't be read is left out, as runtimes do; what it would have given is then missing.
 */
static void spec_load(const char *folder, size_t index, const char *name, struct specs *specs)
{
	CLEANUP(buf) struct buf path = {0};
	CLEANUP(buf) struct buf content = {0};
	struct error error;
	json_t *root;
	buf_printf(&path, "%s/%s", folder, name);
	if (!durable_read(buf_text(&path), CDI_MAX_SPEC, &content, &error) ||
	    !tree_parse(content.data, content.length, CDI_MAX_SPEC, buf_text(&path), &root,
			&error)) {
		log_failure(LOG_WARN, "cdi", &error, "the spec is left out");
		return;
	}
	*vec_push(specs) = (struct spec){.root = root, .folder = index};
}

static bool specs_load(const char *const *folders, size_t count, struct specs *specs,
		       struct error *error)
{
	for (size_t i = 0; i < count; i++) {
		struct durable_names names = {0};
		if (!durable_list(folders[i], CDI_MAX_FILES, &names, error)) {
			if (error->code == ERROR_NOT_FOUND)
				continue;
			return false;
		}
		for (size_t k = 0; k < names.count; k++)
			if (str_ends(names.names[k], ".json"))
				spec_load(folders[i], i, names.names[k], specs);
		durable_names_deinit(&names);
	}
	return true;
}

static json_t *device_edits(json_t *root, const char *kind, size_t kind_length, const char *name)
{
	const char *has = json_string_value(json_object_get(root, "kind"));
	if (!has || strlen(has) != kind_length || strncmp(has, kind, kind_length) != 0)
		return NULL;
	json_t *device;
	size_t i;
	json_array_foreach(json_object_get(root, "devices"), i, device)
	{
		const char *device_name = json_string_value(json_object_get(device, "name"));
		if (device_name && str_equal(device_name, name))
			return json_object_get(device, "containerEdits");
	}
	return NULL;
}

struct found {
	struct spec *spec;
	json_t *edits;
};

static bool device_find(struct specs *specs, const char *full_name, struct found *ret_found,
			struct error *error)
{
	struct found found = {0};
	const char *equals = strchr(full_name, '=');
	for (size_t i = 0; equals && i < specs->count; i++) {
		struct spec *spec = &specs->items[i];
		json_t *edits = device_edits(spec->root, full_name, (size_t)(equals - full_name),
					     equals + 1);
		if (!edits)
			continue;
		if (found.spec && found.spec->folder == spec->folder)
			return error_set(error, ERROR_CONFLICT,
					 "two specs have the CDI device '%s'", full_name);
		found = (struct found){spec, edits};
	}
	if (!found.spec)
		return error_set(error, ERROR_NOT_FOUND, "unresolvable CDI device '%s'", full_name);
	*ret_found = found;
	return true;
}

static void env_apply(json_t *list, json_t *seen)
{
	json_t *env = json_object_get(seen, "env"), *item;
	size_t i;
	json_array_foreach(list, i, item)
	{
		const char *text = json_string_value(item);
		const char *equals = text ? strchr(text, '=') : NULL;
		if (!equals)
			continue;
		CLEANUP(buf) struct buf name = {0};
		buf_add(&name, text, (size_t)(equals - text));
		json_object_set_new(env, buf_text(&name), json_string(equals + 1));
	}
}

static void edits_apply(json_t *edits, json_t *seen)
{
	env_apply(json_object_get(edits, "env"), seen);
	static const char *const lists[] = {"deviceNodes", "mounts"};
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		json_t *from = json_object_get(edits, lists[i]);
		json_t *into = json_object_get(seen, lists[i]);
		json_t *item;
		size_t k;
		json_array_foreach(from, k, item)
		{
			/* Two devices of one spec often bring the same node: a container has it
			 * once. */
			size_t at = 0;
			while (at < json_array_size(into) &&
			       !json_equal(json_array_get(into, at), item))
				at++;
			if (at == json_array_size(into))
				json_array_append(into, item);
		}
	}
}

bool cdi_inject(const char *const *folders, size_t folder_count, const char *const *names,
		size_t name_count, json_t *seen, struct error *error)
{
	CLEANUP(specs) struct specs specs = {0};
	if (!specs_load(folders, folder_count, &specs, error))
		return false;
	VEC(struct found) found = {0};
	bool ok = true;
	for (size_t i = 0; ok && i < name_count; i++)
		ok = device_find(&specs, names[i], vec_push(&found), error);
	for (size_t i = 0; ok && i < found.count; i++) {
		struct spec *spec = found.items[i].spec;
		if (!spec->applied)
			edits_apply(json_object_get(spec->root, "containerEdits"), seen);
		spec->applied = true;
		edits_apply(found.items[i].edits, seen);
	}
	vec_deinit(&found);
	return ok;
}
