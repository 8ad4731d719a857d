/* sim: runs the world under seeds. The last line sums up; 1 is a broken invariant. */
#include "sim/effects.h"
#include "sim/fleet.h"
#include "sim/runs.h"
#include "text/options.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_STEPS 300
#define DEFAULT_CRASH 80
#define KEPT_BYTES    (256 << 20)

static const struct option table[] = {
	{.name = "seed",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "run this one seed",
	 .max = INT64_MAX},
	{.name = "seeds",
	 .kind = OPTION_NUMBER,
	 .value = "COUNT",
	 .help = "run so many seeds",
	 .min = 1,
	 .max = 100000000},
	{.name = "start",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "the first of them (1), or of the effects",
	 .max = INT64_MAX},
	{.name = "fresh",
	 .kind = OPTION_FLAG,
	 .help = "the first of them by the clock: seeds that nobody has tried"},
	{.name = "steps",
	 .kind = OPTION_NUMBER,
	 .value = "M",
	 .help = "how many steps a run has before it is calm (300)",
	 .min = 1,
	 .max = 1000000},
	{.name = "crashes",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "one in so many changes of a file is fatal (80; 0: none)",
	 .max = 1000000},
	{.name = "restores",
	 .kind = OPTION_FLAG,
	 .help = "the database goes back to a backup now and then"},
	{.name = "sockets",
	 .kind = OPTION_FLAG,
	 .help = "plugin sockets are deleted again and again"},
	{.name = "in-pod",
	 .kind = OPTION_FLAG,
	 .help = "bcd runs in a pod, from where it sees less of the machine; else by seed"},
	{.name = "kubelets",
	 .kind = OPTION_FLAG,
	 .help = "the kubelet is restarted again and again, and hears late of its pods"},
	{.name = "vanish",
	 .kind = OPTION_FLAG,
	 .help = "with --in-pod: pods come and go while bcd is refused by the API server"},
	{.name = "clocks", .kind = OPTION_FLAG, .help = "clocks leap again and again"},
	{.name = "lost",
	 .kind = OPTION_FLAG,
	 .help = "the node's state is lost again and again, while pods end"},
	{.name = "story",
	 .kind = OPTION_FLAG,
	 .help = "book, run, release, delete: with a crash at each point in turn"},
	{.name = "at",
	 .kind = OPTION_NUMBER,
	 .value = "POINT",
	 .help = "the story with a crash at this point only",
	 .max = 100000},
	{.name = "power", .kind = OPTION_FLAG, .help = "and that crash is a power cut"},
	{.name = "effects",
	 .kind = OPTION_TEXT,
	 .value = "SCENE",
	 .help = "bind, release or reap: with each effect of bcd failing in turn, once and for a "
		 "minute"},
	{.name = "every",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "with --effects: each Nth of them only; with --fresh, from one by the clock on",
	 .min = 1,
	 .max = 1000},
	{.name = "statements",
	 .kind = OPTION_FLAG,
	 .help = "with --effects: not bcd's effects fail, but the control plane's statements"},
	{.name = "lasting",
	 .kind = OPTION_FLAG,
	 .help = "with --effects and --at: it goes on failing for a minute"},
	{.name = "fleet",
	 .kind = OPTION_FLAG,
	 .help = "many nodes that only answer, over days, against a model: one --seed"},
	{.name = "nodes",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "of the fleet (50)",
	 .min = 20,
	 .max = 10000},
	{.name = "days",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "that the fleet is used (3)",
	 .min = 1,
	 .max = 365},
	{.name = "cold",
	 .kind = OPTION_FLAG,
	 .help = "things go wrong from the programs' first start on"},
	{.name = "stop", .kind = OPTION_FLAG, .help = "end at the first broken run"},
	{.name = "jobs",
	 .letter = 'j',
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "runs at a time (as many as there are cores; 0: inline)",
	 .max = RUNS_MAX_JOBS},
	{.name = "verbose",
	 .letter = 'v',
	 .kind = OPTION_FLAG,
	 .help = "print everything that happens"},
	{.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "show this"},
	{0},
};

struct plan {
	struct world_options options; /* of all runs, but for: */
	uint64_t first, count;        /* seeds */
	uint64_t crash_points; /* the story's: its runs crash at each, killed and power cut */
	uint64_t begun;
	bool stop;       /* at the first broken run */
	uint64_t traces; /* a hash over those of all runs */
	struct world_result sum;
	uint64_t runs, broken;
};

static bool next_seed(void *arg, struct world_options *ret_options)
{
	struct plan *plan = arg;

	if (plan->begun == plan->count)
		return false;
	*ret_options = plan->options;
	ret_options->seed = plan->first + plan->begun++;
	return true;
}

static bool next_crash(void *arg, struct world_options *ret_options)
{
	struct plan *plan = arg;

	if (plan->begun == 2 * plan->crash_points)
		return false;
	*ret_options = plan->options;
	ret_options->crash_at = plan->begun / 2 + 1;
	ret_options->crash_kind = plan->begun % 2 ? SIM_POWER_CUT : SIM_KILLED;
	plan->begun++;
	return true;
}

static void print_again(const struct world_options *options)
{
	printf("  again: scripts/sim --seed %" PRIu64, options->seed);
	if (options->story)
		printf(" --story --at %" PRIu64 "%s", options->crash_at,
		       options->crash_kind == SIM_POWER_CUT ? " --power" : "");
	else
		printf(" --steps %" PRIu64 " --crashes %" PRIu64 "%s%s%s%s%s%s%s", options->steps,
		       options->crash_one_in, options->cold ? " --cold" : "",
		       options->restores ? " --restores" : "", options->sockets ? " --sockets" : "",
		       options->kubelets ? " --kubelets" : "", options->lost ? " --lost" : "",
		       options->vanish ? " --vanish" : "", options->clocks ? " --clocks" : "");
	printf("%s --verbose\n", options->in_pod ? " --in-pod" : "");
}

static bool on_run(void *arg, const struct world_options *options,
		   const struct world_result *result)
{
	struct plan *plan = arg;

	plan->runs++;
	plan->traces = (plan->traces ^ result->trace) * 0x100000001b3;
	plan->broken += !result->ok;
	plan->sum.steps += result->steps;
	plan->sum.events += result->events;
	plan->sum.crash_points += result->crash_points;
	plan->sum.deaths += result->deaths;
	plan->sum.bookings += result->bookings;
	plan->sum.releases += result->releases;
	plan->sum.pods += result->pods;
	plan->sum.deletions += result->deletions;
	plan->sum.outlived += result->outlived;
	if (options->verbose || !result->ok)
		printf("seed %" PRIu64 "%s: %s (trace %016" PRIx64 ", %" PRIu64 " steps, %" PRIu64
		       " crash points, %" PRIu64 " s)\n",
		       options->seed, options->story ? " story" : "",
		       result->ok ? "ok" : result->why, result->trace, result->steps,
		       result->crash_points, (uint64_t)result->time_ms / 1000);
	if (!result->ok)
		print_again(options);
	fflush(stdout);
	return result->ok || !plan->stop;
}

static void print_sum(const struct plan *plan, int64_t took_us)
{
	const struct world_result *sum = &plan->sum;
	double runs = plan->runs ? (double)plan->runs : 1, seconds = (double)took_us / 1e6;

	printf("%" PRIu64 " runs, %" PRIu64 " broken", plan->runs, plan->broken);
	if (plan->options.story)
		printf("; the story of seed %" PRIu64, plan->options.seed);
	else if (plan->runs > 0)
		printf("; seeds %" PRIu64 " to %" PRIu64, plan->first,
		       plan->first + plan->runs - 1);
	printf("; a run: %.0f steps (%.0f events), %.0f crash points, %.1f deaths, %.1f bookings, "
	       "%.1f released, %.1f pods, %.1f reaped, %.1f outlived; traces %016" PRIx64
	       "; %.1f s, %.1f runs/s\n",
	       (double)sum->steps / runs, (double)sum->events / runs,
	       (double)sum->crash_points / runs, (double)sum->deaths / runs,
	       (double)sum->bookings / runs, (double)sum->releases / runs, (double)sum->pods / runs,
	       (double)sum->deletions / runs, (double)sum->outlived / runs, plan->traces, seconds,
	       seconds > 0 ? (double)plan->runs / seconds : 0);
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static uint64_t count_crash_points(const struct world_options *options)
{
	struct world_result result;

	world_prepare(options->cold);
	result = world_run(options);
	world_end();
	return result.crash_points;
}

/* A thousand for each second: whoever runs no more than that never meets the same ones again. */
static uint64_t fresh_seed(void)
{
	return (uint64_t)time(NULL) * 1000;
}

static struct plan read_plan(const struct options *given)
{
	uint64_t seed = options_given(given, "fresh") ? fresh_seed()
						      : (uint64_t)options_number(given, "seed", 1);
	bool story = options_given(given, "story");
	struct plan plan = {
		.options =
			{
				.seed = seed,
				.steps = (uint64_t)options_number(given, "steps", DEFAULT_STEPS),
				.crash_one_in =
					(uint64_t)options_number(given, "crashes", DEFAULT_CRASH),
				.cold = story || options_given(given, "cold"),
				.restores = options_given(given, "restores"),
				.sockets = options_given(given, "sockets"),
				.kubelets = options_given(given, "kubelets"),
				.vanish = options_given(given, "vanish"),
				.clocks = options_given(given, "clocks"),
				.lost = options_given(given, "lost"),
				.story = story,
				.in_pod = options_given(given, "in-pod"),
				.crash_at = (uint64_t)options_number(given, "at", 0),
				.crash_kind =
					options_given(given, "power") ? SIM_POWER_CUT : SIM_KILLED,
				.verbose = options_given(given, "verbose"),
			},
		.first = (uint64_t)options_number(given, "start", (int64_t)seed),
		.count = (uint64_t)options_number(given, "seeds", 1),
		.stop = options_given(given, "stop"),
	};

	if (story)
		plan.options.crash_one_in = 0;
	return plan;
}

/* What runs side by side prints into each other. */
static unsigned read_jobs(const struct options *given)
{
	return options_given(given, "verbose")
		       ? 0
		       : (unsigned)options_number(given, "jobs", sysconf(_SC_NPROCESSORS_ONLN));
}

static void go(struct plan *plan, unsigned jobs)
{
	bool at_all = plan->options.story && plan->options.crash_at == 0;
	const struct runs runs = {
		.jobs = jobs,
		.cold = plan->options.cold,
		.next = at_all ? next_crash : next_seed,
		.done = on_run,
		.arg = plan,
	};

	if (at_all)
		plan->crash_points = count_crash_points(&plan->options);
	runs_go(&runs);
}

/* What was freed is soon wanted again; to give it back to the system and have it anew takes longer than
 * all else about memory. */
static void keep_memory(void)
{
	(void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	(void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
}

/* One that would be passed over in silence tests less than whoever gave it believes. */
static bool check_modes(const struct options *given, struct error *error)
{
	static const char *const FLEET[] = {"fleet", "nodes", "days", "seed", "verbose"};

	if (!options_need(given, "nodes", "fleet", error) ||
	    !options_need(given, "days", "fleet", error) ||
	    !options_need(given, "vanish", "in-pod", error) ||
	    !options_need(given, "every", "effects", error) ||
	    !options_exclude(given, "lost", "in-pod", error) || /* see trouble_state() */
	    !options_exclude(given, "lost", "restores", error))
		return false;
	for (const struct option *option = table; option->name; option++) {
		bool fleets = false;

		for (size_t i = 0; i < ARRAY_SIZE(FLEET); i++)
			fleets |= str_equal(option->name, FLEET[i]);
		if (!fleets && !options_exclude(given, "fleet", option->name, error))
			return false;
	}
	return true;
}

static int run_fleet(const struct options *given)
{
	const struct fleet_options options = {
		.seed = (uint64_t)options_number(given, "seed", 1),
		.nodes = (int)options_number(given, "nodes", 50),
		.days = (int)options_number(given, "days", 3),
		.verbose = options_given(given, "verbose"),
	};
	struct fleet_result result = fleet_run(&options);
	printf("fleet of %d nodes, %d days, seed %llu: %s (trace %016llx)\n"
	       "%llu reservations, %llu allocations, %llu GPU-seconds, %llu passes, %llu carries, "
	       "%llu ended without the node\n",
	       options.nodes, options.days, (unsigned long long)options.seed,
	       result.ok ? "ok" : result.why, (unsigned long long)result.trace,
	       (unsigned long long)result.reservations, (unsigned long long)result.allocations,
	       (unsigned long long)result.gpu_seconds, (unsigned long long)result.passes,
	       (unsigned long long)result.carries, (unsigned long long)result.unilateral);
	return !result.ok;
}

static uint64_t first_effect(const struct options *given)
{
	if (options_given(given, "fresh"))
		return 1 + (uint64_t)time(NULL) % (uint64_t)options_number(given, "every", 1);
	return (uint64_t)options_number(given, "start", 1);
}

int main(int argc, char **argv)
{
	CLEANUP(options) struct options given = {0};
	struct error error;
	struct plan plan;
	int64_t began_us = now_us();
	unsigned jobs;

	if (!options_parse((const struct option *const[]){table}, 1, argc - 1, argv + 1, &given,
			   &error)) {
		fprintf(stderr, "sim: %s\n", error.what);
		return 2;
	}
	if (options_given(&given, "help")) {
		CLEANUP(buf) struct buf help = {0};
		options_help(&help, table);
		printf("%s", buf_text(&help));
		return 0;
	}
	if (!check_modes(&given, &error)) {
		fprintf(stderr, "sim: %s\n", error.what);
		return 2;
	}
	if (options_given(&given, "fleet"))
		return run_fleet(&given);
	keep_memory();
	plan = read_plan(&given);
	jobs = read_jobs(&given);
	if (options_given(&given, "effects")) {
		const struct effects_options effects = {
			.scene = options_text(&given, "effects"),
			.in_pod = options_given(&given, "in-pod"),
			.seed = plan.options.seed,
			.statements = options_given(&given, "statements"),
			.at = plan.options.crash_at,
			.first = first_effect(&given),
			.every = (uint64_t)options_number(&given, "every", 1),
			.jobs = jobs ? jobs : 1,
			.lasting = options_given(&given, "lasting"),
			.verbose = plan.options.verbose,
			.stop = options_given(&given, "stop"),
		};
		return effects_run(&effects);
	}
	go(&plan, jobs);
	print_sum(&plan, now_us() - began_us);
	return plan.broken > 0;
}
