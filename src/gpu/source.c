#include "gpu/source.h"

#include "gpu/core/scenario.h"
#include "sys/durable.h"
#include "sys/watch.h"
#include "text/toml.h"

#include <stdio.h>

struct source {
	struct loop *loop;
	char *file, *folder, *name, *reason;
	int32_t slots;
	loop_fn *on_change;
	void *arg;
	struct watch *watch;
	struct durable_stamp stamp;
	bool looked;
	struct inventory inventory;
	struct error error;
};

static bool read_inventory(struct source *source, struct inventory *inventory, struct error *error)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;

	if (!durable_read(source->file, SCENARIO_MAX_FILE, &text, error) ||
	    !toml_parse(buf_text(&text), text.length, SCENARIO_MAX_FILE, source->file, &tree,
			error))
		return false;
	if (!scenario_read(tree, &scenario, error))
		return error_wrap(error, "%s", source->file);
	scenario_inventory(&scenario, source->slots, source->reason, inventory);
	return true;
}

/* What is there can't be told any more. */
static void doubt_all(struct inventory *inventory, const char *why)
{
	char cause[HEALTH_CAUSE_SIZE];

	snprintf(cause, sizeof cause, "unknown: %.80s", why);
	for (size_t i = 0; i < inventory->gpus.count; i++)
		inventory->gpus.items[i].health = health_bad(cause);
	for (size_t i = 0; i < inventory->atoms.count; i++)
		inventory->atoms.items[i].health = health_bad(cause);
}

bool source_look(struct source *source)
{
	struct durable_stamp stamp = durable_stamp(source->file);
	struct inventory inventory = {0};
	struct error error = {0};

	if (source->looked && durable_stamp_equal(stamp, source->stamp))
		return false;
	source->looked = true;
	source->stamp = stamp;
	if (read_inventory(source, &inventory, &error)) {
		inventory_deinit(&source->inventory);
		source->inventory = inventory;
		source->error = (struct error){0};
		return true;
	}
	source->error = error;
	doubt_all(&source->inventory, error.what);
	return true;
}

static void on_watch(void *arg, const char *name)
{
	struct source *source = arg;

	if (!name) {
		watch_destroy(TAKE(source->watch)); /* source_look() goes on by itself */
		return;
	}
	if (!*name || str_equal(name, source->name))
		source->on_change(source->arg);
}

struct source *source_create(struct loop *loop, const struct source_options *options,
			     loop_fn *on_change, void *arg)
{
	struct source *source = mem_alloc(sizeof *source);
	char *slash;
	struct error ignored; /* then changes are seen at each look only */

	source->loop = loop;
	source->file = mem_strdup(options->file);
	source->reason = mem_strdup(options->reason);
	source->slots = options->slots;
	source->on_change = on_change;
	source->arg = arg;
	source->inventory.simulated = true;
	source->folder = mem_strdup(options->file);
	slash = strrchr(source->folder, '/');
	source->name = mem_strdup(slash ? slash + 1 : options->file);
	if (slash)
		slash[slash == source->folder] = '\0';
	if (!watch_create(loop, slash ? source->folder : ".", on_watch, source, &source->watch,
			  &ignored))
		source->watch = NULL;
	source_look(source);
	return source;
}

void source_destroy(struct source *source)
{
	if (!source)
		return;
	watch_destroy(source->watch);
	inventory_deinit(&source->inventory);
	free(source->file);
	free(source->folder);
	free(source->name);
	free(source->reason);
	free(source);
}

const struct inventory *source_inventory(const struct source *source)
{
	return &source->inventory;
}

const struct error *source_error(const struct source *source)
{
	return source->error.code == ERROR_NONE ? NULL : &source->error;
}

const struct reading *source_reading(const struct source *source UNUSED)
{
	return NULL; /* simulated GPUs have no gauges */
}
