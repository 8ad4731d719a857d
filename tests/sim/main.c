/* sim: runs the world under seeds. The last line sums up; 1 is a broken invariant. */
#include "sim/world.h"
#include "text/options.h"

#include <stdio.h>

#define DEFAULT_OPS   60
#define DEFAULT_CRASH 150

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
	 .help = "the first of them (1)",
	 .max = INT64_MAX},
	{.name = "steps",
	 .kind = OPTION_NUMBER,
	 .value = "M",
	 .help = "how many things happen in a run (60)",
	 .max = 100000},
	{.name = "crashes",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "one in so many changes of a file is fatal (150; 0: none)",
	 .max = 1000000},
	{.name = "restores",
	 .kind = OPTION_FLAG,
	 .help = "the database goes back to a backup now and then"},
	{.name = "sockets",
	 .kind = OPTION_FLAG,
	 .help = "plugin sockets are deleted again and again"},
	{.name = "story",
	 .kind = OPTION_FLAG,
	 .help = "book, run, release, delete: with a crash at each step in turn"},
	{.name = "at",
	 .kind = OPTION_NUMBER,
	 .value = "STEP",
	 .help = "the story with a crash at this step only",
	 .max = 100000},
	{.name = "power", .kind = OPTION_FLAG, .help = "and that crash is a power cut"},
	{.name = "stop", .kind = OPTION_FLAG, .help = "end at the first broken run"},
	{.name = "verbose",
	 .letter = 'v',
	 .kind = OPTION_FLAG,
	 .help = "print everything that happens"},
	{.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "show this"},
	{0},
};

struct totals {
	uint64_t runs, broken, crash_points, pods, bookings, deletions, outlived;
	bool stop; /* at the first broken run */
};

static bool goes_on(const struct totals *totals)
{
	return !totals->stop || totals->broken == 0;
}

static bool run(const struct world_options *options, struct totals *totals)
{
	struct world_result result = world_run(options);
	totals->runs++;
	totals->broken += !result.ok;
	totals->crash_points += result.steps;
	totals->pods += result.pods;
	totals->bookings += result.bookings;
	totals->deletions += result.deletions;
	totals->outlived += result.outlived;
	if (options->verbose || !result.ok)
		printf("seed %llu%s: %s (trace %016llx, %llu events, %llu crash points, %lld s)\n",
		       (unsigned long long)options->seed, options->story ? " story" : "",
		       result.ok ? "ok" : result.why, (unsigned long long)result.trace,
		       (unsigned long long)result.events, (unsigned long long)result.steps,
		       (long long)result.time_ms / 1000);
	if (!result.ok && options->story)
		printf("  again: scripts/sim --seed %llu --story --at %llu%s --verbose\n",
		       (unsigned long long)options->seed, (unsigned long long)options->crash_at,
		       options->crash_kind == SIM_POWER_CUT ? " --power" : "");
	else if (!result.ok)
		printf("  again: scripts/sim --seed %llu --steps %llu --crashes %llu%s%s "
		       "--verbose\n",
		       (unsigned long long)options->seed, (unsigned long long)options->ops,
		       (unsigned long long)options->crash_one_in,
		       options->restores ? " --restores" : "",
		       options->sockets ? " --sockets" : "");
	fflush(stdout);
	return result.ok;
}

/* Every crash point of the story, as a killed process and as a power cut. */
static void run_story(struct world_options options, struct totals *totals)
{
	struct world_result calm = world_run(&options);
	for (uint64_t at = 1; at <= calm.steps && goes_on(totals); at++) {
		options.crash_at = at;
		options.crash_kind = SIM_KILLED;
		run(&options, totals);
		options.crash_kind = SIM_POWER_CUT;
		run(&options, totals);
	}
}

static void run_seeds(struct world_options options, uint64_t first, uint64_t count,
		      struct totals *totals)
{
	for (uint64_t i = 0; i < count && goes_on(totals); i++) {
		options.seed = first + i;
		run(&options, totals);
	}
}

int main(int argc, char **argv)
{
	CLEANUP(options) struct options given = {0};
	struct error error;
	struct totals totals = {0};
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
	struct world_options options = {
		.seed = (uint64_t)options_number(&given, "seed", 1),
		.ops = (uint64_t)options_number(&given, "steps", DEFAULT_OPS),
		.crash_one_in = (uint64_t)options_number(&given, "crashes", DEFAULT_CRASH),
		.restores = options_given(&given, "restores"),
		.sockets = options_given(&given, "sockets"),
		.story = options_given(&given, "story"),
		.verbose = options_given(&given, "verbose"),
	};
	totals.stop = options_given(&given, "stop");
	if (options.story) {
		options.crash_one_in = 0;
		options.crash_at = (uint64_t)options_number(&given, "at", 0);
		options.crash_kind = options_given(&given, "power") ? SIM_POWER_CUT : SIM_KILLED;
		if (options_given(&given, "at"))
			run(&options, &totals);
		else
			run_story(options, &totals);
	} else {
		run_seeds(options, (uint64_t)options_number(&given, "start", (int64_t)options.seed),
			  (uint64_t)options_number(&given, "seeds", 1), &totals);
	}
	printf("%llu runs, %llu broken; %llu crash points passed, %llu bookings, %llu pods ran, "
	       "%llu were reaped, %llu processes outlived theirs\n",
	       (unsigned long long)totals.runs, (unsigned long long)totals.broken,
	       (unsigned long long)totals.crash_points, (unsigned long long)totals.bookings,
	       (unsigned long long)totals.pods, (unsigned long long)totals.deletions,
	       (unsigned long long)totals.outlived);
	return totals.broken > 0;
}
