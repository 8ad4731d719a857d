#include "node/allocate.h"

#include "node/holds.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "text/tree.h"

#define MAX_ENTRIES   4096
#define MAX_SPEC_FILE ((size_t)4 << 20)

/* A foreign spec as last seen. */
struct foreign {
	char *path;
	struct durable_stamp stamp;
	struct allocate_nvidia names;
};
struct foreigns VEC_BODY(struct foreign);

struct allocator {
	char *folders[2];
	struct holds_cache *holds; /* of the first folder */
	struct foreigns specs;
	struct allocate_nvidia names; /* of all of them, sorted */
};

static void foreigns_deinit(struct foreigns *specs)
{
	for (size_t i = 0; i < specs->count; i++) {
		free(specs->items[i].path);
		allocate_nvidia_deinit(&specs->items[i].names);
	}
	vec_deinit(specs);
}

struct allocator *allocator_create(const char *cdi_folder, const char *run_cdi_folder)
{
	struct allocator *allocator = mem_alloc(sizeof *allocator);

	allocator->folders[0] = mem_strdup(cdi_folder);
	allocator->folders[1] = mem_strdup(run_cdi_folder);
	allocator->holds = holds_cache_create(cdi_folder);
	return allocator;
}

void allocator_destroy(struct allocator *allocator)
{
	if (!allocator)
		return;
	foreigns_deinit(&allocator->specs);
	allocate_nvidia_deinit(&allocator->names);
	holds_cache_destroy(allocator->holds);
	free(allocator->folders[0]);
	free(allocator->folders[1]);
	free(allocator);
}

/* --- NVIDIA's specs --- */

static void read_foreign(struct foreign *spec)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	if (durable_read(spec->path, MAX_SPEC_FILE, &text, &error) &&
	    tree_parse(text.data, text.length, MAX_SPEC_FILE, spec->path, &tree, &error) &&
	    allocate_nvidia_add(&spec->names, tree, &error))
		return;
	log_failure(LOG_WARN, "cdi.foreign", &error, "its devices are not named to containers");
}

static const struct foreign *find_foreign(const struct foreigns *specs, const char *path)
{
	for (size_t i = 0; i < specs->count; i++)
		if (str_equal(specs->items[i].path, path))
			return &specs->items[i];
	return NULL;
}

static void copy_names(const struct allocate_nvidia *from, struct allocate_nvidia *to)
{
	for (size_t i = 0; i < from->count; i++)
		*vec_push(to) = mem_strdup(from->items[i]);
}

static void look_at_folder(const struct allocator *allocator, const char *folder,
			   struct foreigns *specs)
{
	struct durable_names names = {0};
	struct error ignored; /* an absent folder names nothing */

	if (!durable_list(folder, MAX_ENTRIES, &names, &ignored))
		return;
	for (size_t i = 0; i < names.count; i++) {
		const struct foreign *before;
		struct foreign *spec;
		struct buf path = {0};

		if (!str_ends(names.names[i], ".json") || holds_is_file_name(names.names[i]) ||
		    names.names[i][0] == '.')
			continue;
		buf_printf(&path, "%s/%s", folder, names.names[i]);
		spec = vec_push(specs);
		spec->path = buf_take_text(&path);
		spec->stamp = durable_stamp(spec->path);
		before = find_foreign(&allocator->specs, spec->path);
		if (before && durable_stamp_equal(before->stamp, spec->stamp))
			copy_names(&before->names, &spec->names);
		else
			read_foreign(spec);
	}
	durable_names_deinit(&names);
}

static void look_at_foreigns(struct allocator *allocator)
{
	struct foreigns specs = {0};

	for (size_t i = 0; i < ARRAY_SIZE(allocator->folders); i++)
		look_at_folder(allocator, allocator->folders[i], &specs);
	foreigns_deinit(&allocator->specs);
	allocator->specs = specs;
	allocate_nvidia_deinit(&allocator->names);
	allocator->names = (struct allocate_nvidia){0};
	for (size_t i = 0; i < specs.count; i++)
		copy_names(&specs.items[i].names, &allocator->names);
	allocate_nvidia_sort(&allocator->names);
}

bool allocator_allocate(struct allocator *allocator, const struct inventory *inventory,
			const struct strays *strays, enum atom_class class, const char *const *ids,
			size_t count, struct allocate_answer *ret_answer, struct error *error)
{
	struct allocate_view view = {.inventory = inventory,
				     .strays = strays,
				     .nvidia = &allocator->names,
				     .class = class};

	if (!holds_cache_read(allocator->holds, &view.holds, error))
		return false;
	look_at_foreigns(allocator);
	return allocate_decide(&view, ids, count, ret_answer, error);
}
