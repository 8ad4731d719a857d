#include "bcd/verbs.h"
#include "gpu/core/scenario.h"
#include "sys/durable.h"
#include "sys/random.h"
#include "text/toml.h"

#include <stdio.h>

static const struct option options_table[] = {
	{.name = "state",
	 .kind = OPTION_TEXT,
	 .value = "DIR",
	 .help = "of better-compute up, to change its GPUs"},
	{.name = "file",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "the simulated GPUs (gpu.sim_file of the configuration)"},
	{.name = "out", .kind = OPTION_TEXT, .value = "FILE", .help = "where init writes to"},
	{.name = "force", .kind = OPTION_FLAG, .help = "init replaces an existing file"},
	{0},
};

static bool load(const char *path, struct scenario *ret_scenario, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;

	if (!durable_read(path, SCENARIO_MAX_FILE, &text, error) ||
	    !toml_parse(buf_text(&text), text.length, SCENARIO_MAX_FILE, path, &tree, error))
		return false;
	return scenario_read(tree, ret_scenario, error) || error_wrap(error, "%s", path);
}

/* Written only if it reads back: what was set must make sense as a whole. */
static bool store(const char *path, const struct scenario *scenario, bool replace,
		  struct error *error)
{
	CLEANUP(scenario) struct scenario back = {0};
	CLEANUP(tree) json_t *tree = NULL;
	CLEANUP(buf) struct buf text = {0};

	scenario_format(scenario, &text);
	if (!toml_parse(buf_text(&text), text.length, SCENARIO_MAX_FILE, path, &tree, error) ||
	    !scenario_read(tree, &back, error))
		return false;
	return replace ? durable_replace(path, text.data, text.length, 0644, error)
		       : durable_create(path, text.data, text.length, 0644, error);
}

static int init(const struct options *options, struct error *error)
{
	const char *out = options_text(options, "out");
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0};
	uint64_t seed; /* no two machines have the same GPU */

	if (options->operand_count != 2) {
		error_set(error, ERROR_INVALID_INPUT, "bcd sim init takes a preset");
		error_hint(error, "Such as: bcd sim init 8xH100 --out gpus.toml");
		return verb_fail(error, EXIT_USAGE);
	}
	random_bytes(&seed, sizeof seed);
	if (!scenario_preset(options->operands[1], seed, &scenario, error))
		return verb_fail(error, EXIT_USAGE);
	if (!out) {
		scenario_format(&scenario, &text);
		fputs(buf_text(&text), stdout);
		return EXIT_DONE;
	}
	if (!store(out, &scenario, options_given(options, "force"), error)) {
		if (error->code == ERROR_CONFLICT)
			error_hint(error, "Replace it with --force.");
		return verb_fail(error, EXIT_FAILED);
	}
	printf("%zu simulated GPUs in %s\n", scenario.gpus.count, out);
	return EXIT_DONE;
}

static bool set_all(const struct options *options, struct scenario_gpu *gpu, struct error *error)
{
	for (size_t i = 2; i < options->operand_count; i++) {
		uint64_t fresh;

		random_bytes(&fresh, sizeof fresh);
		if (!scenario_set(gpu, options->operands[i], fresh, error))
			return error_hint(error, "Nothing was changed.");
	}
	return true;
}

static void say_what_changed(const struct options *options, size_t index,
			     const struct scenario_gpu *gpu)
{
	char uuid[ATOM_UUID_SIZE];

	atom_uuid_format(uuid, gpu->uuid);
	printf("GPU %zu (GPU-%s):", index, uuid);
	for (size_t i = 2; i < options->operand_count; i++)
		printf(" %s", options->operands[i]);
	putchar('\n');
}

static int set(const struct options *options, const char *path, struct error *error)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	size_t index;

	if (options->operand_count < 3) {
		error_set(error, ERROR_INVALID_INPUT, "bcd sim set takes a GPU and KEY=VALUE");
		error_hint(error, "Such as: bcd sim set 0 xid=79");
		return verb_fail(error, EXIT_USAGE);
	}
	if (!load(path, &scenario, error))
		return verb_fail(error, EXIT_FAILED);
	if (!scenario_find(&scenario, options->operands[1], &index, error) ||
	    !set_all(options, &scenario.gpus.items[index], error))
		return verb_fail(error, EXIT_USAGE);
	if (!store(path, &scenario, true, error)) {
		if (error->code == ERROR_INVALID_INPUT)
			error_hint(error, "Nothing was changed.");
		return verb_fail(error, EXIT_FAILED);
	}
	say_what_changed(options, index, &scenario.gpus.items[index]);
	return EXIT_DONE;
}

static int show(const char *path, struct error *error)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0};

	if (!load(path, &scenario, error))
		return verb_fail(error, EXIT_FAILED);
	scenario_format(&scenario, &text);
	fputs(buf_text(&text), stdout);
	return EXIT_DONE;
}

static int run(const struct options *options)
{
	const char *what = options->operands[0], *file = options_text(options, "file");
	CLEANUP(config) struct config config = {0};
	struct error error = {0};

	if (str_equal(what, "init"))
		return init(options, &error);
	if (!str_equal(what, "set") && !str_equal(what, "show")) {
		error_set(&error, ERROR_INVALID_INPUT, "bcd sim '%.40s' is none of init, set, show",
			  what);
		return verb_fail(&error, EXIT_USAGE);
	}
	if (!file) {
		if (!verb_config(options, true, &config, &error))
			return verb_fail(&error, EXIT_USAGE);
		file = config.sim_file;
	}
	return str_equal(what, "set") ? set(options, file, &error) : show(file, &error);
}

const struct verb SIM_VERB = {
	.name = "sim",
	.summary = "make, show and change simulated GPUs, also while bcd runs",
	.operands = "init PRESET | show | set GPU KEY=VALUE...",
	.min_operands = 1,
	.max_operands = 32,
	.options = options_table,
	.more = "GPU is a number, in the order of gpus.toml as bcd sim show prints it, or the\n"
		"beginning of a UUID, as bcd status shows. Keys, each with how to undo it:\n"
		"  xid=79,13  ecc=1  row_remap=pending|failed  mig=3g.40gb@0,1g.10gb@4\n"
		"  recovery=reset|reboot|drain: none or 0\n"
		"  lost=true  hang=true: false, none or 0 (1 and yes are true)\n"
		"  numa=1  slots=4: none\n"
		"  temperature_c=70  gpu_util_percent=97, as metrics show: none\n"
		"One that is wrong leaves all as it was.\n\n"
		"Example:\n  bcd sim init 8xH100 --out gpus.toml\n  bcd sim set 0 xid=79\n"
		"  bcd sim set 0 xid=none\n  bcd sim set 6 mig=3g.40gb@0,1g.10gb@4\n",
	.run = run,
};
