#include "gpu/core/scenario.h"
#include "gpu/source_internal.h"
#include "sys/durable.h"
#include "sys/watch.h"
#include "text/toml.h"

#include <stdio.h>

struct simulated {
	struct source source;
	char *file, *folder, *name, *reason;
	struct watch *watch;
	struct durable_stamp stamp;
	bool looked;
	struct scenario scenario; /* as last read */
	struct xid_policy xids;
};

static struct simulated *simulated_of(const struct source *source)
{
	return (struct simulated *)source;
}

static bool read_scenario(struct simulated *simulated, struct error *error)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct inventory inventory = {0};
	struct reading reading = {0};

	if (!durable_read(simulated->file, SCENARIO_MAX_FILE, &text, error) ||
	    !toml_parse(buf_text(&text), text.length, SCENARIO_MAX_FILE, simulated->file, &tree,
			error))
		return false;
	if (!scenario_read(tree, &scenario, error))
		return error_wrap(error, "%s", simulated->file);
	vec_each (&scenario.gpus, struct scenario_gpu * gpu)
		gpu->facts.policy = &simulated->xids;
	scenario_inventory(&scenario, simulated->source.slots, simulated->reason, &inventory);
	scenario_reading(&scenario, &reading);
	source_put_inventory(&simulated->source, &inventory);
	source_put_reading(&simulated->source, &reading);
	scenario_deinit(&simulated->scenario);
	simulated->scenario = scenario;
	scenario = (struct scenario){0};
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

static bool look(struct source *source)
{
	struct simulated *simulated = simulated_of(source);
	struct durable_stamp stamp = durable_stamp(simulated->file);
	struct error error = {0};

	if (simulated->looked && durable_stamp_equal(stamp, simulated->stamp))
		return false;
	simulated->looked = true;
	simulated->stamp = stamp;
	if (!read_scenario(simulated, &error)) {
		doubt_all(&source->inventory, error.what);
		source->failures++;
	}
	source->error = error;
	return true;
}

static const struct health_facts *facts(const struct source *source, struct atom_uuid gpu)
{
	vec_each (&simulated_of(source)->scenario.gpus, const struct scenario_gpu *known)
		if (atom_uuid_equal(known->uuid, gpu))
			return &known->facts;
	return NULL;
}

static int32_t last_xid(const struct source *source, struct atom_uuid gpu)
{
	const struct health_facts *known = facts(source, gpu);

	return known && known->xid_count > 0 ? known->xids[known->xid_count - 1] : 0;
}

static void on_watch(void *arg, const char *name)
{
	struct simulated *simulated = arg;

	if (!name) {
		watch_destroy(TAKE(simulated->watch)); /* source_look() goes on by itself */
		return;
	}
	if (!*name || str_equal(name, simulated->name))
		simulated->source.on_change(simulated->source.arg);
}

static void destroy(struct source *source)
{
	struct simulated *simulated = simulated_of(source);

	watch_destroy(simulated->watch);
	scenario_deinit(&simulated->scenario);
	source_deinit(source);
	free(simulated->file);
	free(simulated->folder);
	free(simulated->name);
	free(simulated->reason);
	free(simulated);
}

static const struct source_ops simulated_ops = {destroy, look, last_xid, facts};

struct source *simulated_create(struct loop *loop, const struct source_options *options,
				loop_fn *on_change, void *arg)
{
	struct simulated *simulated = mem_alloc(sizeof *simulated);
	char *slash;
	struct error ignored; /* then changes are seen at each look only */

	source_init(&simulated->source, &simulated_ops, loop, options, on_change, arg);
	simulated->source.name = "simulated";
	simulated->xids = options->xids;
	simulated->source.settled = true;
	simulated->source.inventory.simulated = true;
	simulated->file = mem_strdup(options->file);
	simulated->reason = mem_strdup(options->reason);
	simulated->folder = mem_strdup(options->file);
	slash = strrchr(simulated->folder, '/');
	simulated->name = mem_strdup(slash ? slash + 1 : options->file);
	if (slash)
		slash[slash == simulated->folder] = '\0';
	if (!watch_create(loop, slash ? simulated->folder : ".", on_watch, simulated,
			  &simulated->watch, &ignored))
		simulated->watch = NULL;
	look(&simulated->source);
	return &simulated->source;
}
