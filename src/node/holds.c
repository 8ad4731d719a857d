#include "node/holds.h"

#include "sys/durable.h"
#include "sys/machine.h"

#define MAX_ENTRIES 4096 /* of /etc/cdi, others' specs included */

char *holds_path(const char *folder, const char *allocation)
{
	char name[HOLDS_NAME_SIZE];
	struct buf path = {0};

	holds_file_name(name, allocation);
	buf_printf(&path, "%s/%s", folder, name);
	return buf_take_text(&path);
}

static bool read_one(const char *folder, const char *name, struct hold *ret_hold,
		     struct error *error)
{
	CLEANUP(buf) struct buf path = {0}, text = {0};

	buf_printf(&path, "%s/%s", folder, name);
	return durable_read(buf_text(&path), HOLDS_MAX_FILE, &text, error) &&
	       holds_parse(buf_text(&text), text.length, name, ret_hold, error);
}

static bool read_all(const char *folder, const struct durable_names *names, struct holds *holds,
		     struct error *error)
{
	for (size_t i = 0; i < names->count; i++) {
		struct hold hold = {0};

		if (!holds_is_file_name(names->names[i]))
			continue;
		if (holds->count == HOLDS_MAX)
			return error_set(error, ERROR_RESOURCES_EXHAUSTED, "more than %d holds",
					 HOLDS_MAX);
		if (!read_one(folder, names->names[i], &hold, error))
			return false;
		*vec_push(holds) = hold;
	}
	return true;
}

bool holds_read(const char *folder, struct holds *ret_holds, struct error *error)
{
	struct durable_names names = {0};
	struct holds holds = {0};
	bool ok;

	if (!durable_list(folder, MAX_ENTRIES, &names, error)) {
		if (error->code == ERROR_NOT_FOUND)
			return true;
		return error_wrap(error, "read the holds in '%s'", folder);
	}
	ok = read_all(folder, &names, &holds, error);
	durable_names_deinit(&names);
	if (!ok) {
		holds_deinit(&holds);
		return error_wrap(error, "read the holds in '%s'", folder);
	}
	*ret_holds = holds;
	return true;
}

/* --- again and again --- */

struct cached {
	char *name;
	struct durable_stamp stamp;
	struct hold hold;
};
struct cached_list VEC_BODY(struct cached);

struct holds_cache {
	char *folder;
	struct cached_list files;
	struct holds holds; /* borrowed from the files, in their order */
};

static void cached_deinit(struct cached *file)
{
	free(file->name);
	hold_deinit(&file->hold);
}

static void cached_list_clear(struct cached_list *files)
{
	for (size_t i = 0; i < files->count; i++)
		cached_deinit(&files->items[i]);
	vec_clear(files);
}

struct holds_cache *holds_cache_create(const char *folder)
{
	struct holds_cache *cache = mem_alloc(sizeof *cache);

	cache->folder = mem_strdup(folder);
	return cache;
}

void holds_cache_destroy(struct holds_cache *cache)
{
	if (!cache)
		return;
	cached_list_clear(&cache->files);
	vec_deinit(&cache->files);
	vec_deinit(&cache->holds);
	free(cache->folder);
	free(cache);
}

/* Moves the file over from the cache when it is as it was; else reads it. The stamp is taken first:
 * what changes in between has another one next time. */
static bool look_at_one(struct holds_cache *cache, const char *name, struct cached_list *files,
			struct error *error)
{
	CLEANUP(buf) struct buf path = {0};
	struct cached file = {0};

	buf_printf(&path, "%s/%s", cache->folder, name);
	file.stamp = durable_stamp(buf_text(&path));
	for (size_t i = 0; i < cache->files.count; i++) {
		struct cached *before = &cache->files.items[i];

		if (!before->name || !str_equal(before->name, name) ||
		    !durable_stamp_equal(before->stamp, file.stamp))
			continue;
		*vec_push(files) = *before;
		*before = (struct cached){0};
		return true;
	}
	if (!read_one(cache->folder, name, &file.hold, error))
		return false;
	file.name = mem_strdup(name);
	*vec_push(files) = file;
	return true;
}

static bool look_at_all(struct holds_cache *cache, const struct durable_names *names,
			struct cached_list *files, struct error *error)
{
	for (size_t i = 0; i < names->count; i++) {
		if (!holds_is_file_name(names->names[i]))
			continue;
		if (files->count == HOLDS_MAX)
			return error_set(error, ERROR_RESOURCES_EXHAUSTED, "more than %d holds",
					 HOLDS_MAX);
		if (!look_at_one(cache, names->names[i], files, error))
			return false;
	}
	return true;
}

bool holds_cache_read(struct holds_cache *cache, const struct holds **ret_holds,
		      struct error *error)
{
	struct durable_names names = {0};
	struct cached_list files = {0};
	bool ok = durable_list(cache->folder, MAX_ENTRIES, &names, error);

	if (ok)
		ok = look_at_all(cache, &names, &files, error);
	else
		ok = error->code == ERROR_NOT_FOUND; /* nothing is bound */
	durable_names_deinit(&names);
	cached_list_clear(&cache->files);
	vec_deinit(&cache->files);
	vec_clear(&cache->holds);
	cache->files = files;
	if (!ok)
		return error_wrap(error, "read the holds in '%s'", cache->folder);
	for (size_t i = 0; i < files.count; i++)
		*vec_push(&cache->holds) = files.items[i].hold;
	*ret_holds = &cache->holds;
	return true;
}

/* --- device nodes --- */

/* True when one that is there has other numbers than before. */
static bool find_nodes(struct hold_nodes *nodes)
{
	bool changed = false;

	for (size_t i = 0; i < nodes->count; i++) {
		struct machine_device device;

		if (!machine_device(nodes->items[i].host_path, &device))
			continue;
		changed |= nodes->items[i].type != device.type ||
			   nodes->items[i].major != device.major ||
			   nodes->items[i].minor != device.minor;
		nodes->items[i].type = device.type;
		nodes->items[i].major = device.major;
		nodes->items[i].minor = device.minor;
	}
	return changed;
}

bool holds_find_nodes(struct hold *hold)
{
	bool changed = find_nodes(&hold->common);

	for (size_t i = 0; i < hold->devices.count; i++)
		changed |= find_nodes(&hold->devices.items[i].nodes);
	return changed;
}
