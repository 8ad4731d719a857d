#include "sim/effects.h"

#include "node/core/conditions.h"
#include "sim/calm.h"
#include "sim/programs.h"
#include "sim/runs.h"
#include "sim/scene.h"
#include "sim/sim_processes.h"
#include "sim/told.h"
#include "sim/world.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define LASTING_MS 60000  /* longer than the undisturbed scene */
#define TOLD_MS    30000  /* what is overdue by so much must be told of */
#define SOON_MS    120000 /* after the trouble's end all must be well, */
#define REAP_MS    120000 /* later where the reaper has to end the pod, */
#define GRACE_MS   660000 /* and where the word of a pod was missed that has the longest grace */
#define AFTER_MS   20000  /* and what was left lying about is gone */

/* What a run tells the one that goes through them all. */
struct outcome {
	bool ok, failed, told;
	enum sim_effect effect;
	uint64_t effects; /* that there were while the scene went on */
	uint64_t times;   /* that one failed */
	int64_t took_ms;
	char condition[CONDITIONS_TYPE_SIZE]; /* that told of it; "" none had to */
	char error[64];
	char target[256];
	char why[512];
};

static struct {
	enum scene scene;
	struct sim_process *process; /* whose effects fail */
	struct outcome outcome;
	int64_t usual_ms; /* how long the undisturbed run takes */
	struct buf end,
		undisturbed; /* what is there in the end, and in the end of the undisturbed run */
} effects;

/* --- one run --- */

static bool trouble_is_over(void)
{
	const struct sim_failed *failed = sim_faults_failed();
	return !sim_faults_last() && (!failed->happened || sim.now_ms > failed->since_ms);
}

static void wait_until_well(void)
{
	int64_t began_ms = sim.now_ms, trouble_ms = sim.now_ms, held_ms = sim.now_ms;
	char why[256] = "";
	for (;;) {
		scene_second();
		if (sim.broken[0])
			return;
		scene_step();
		bool done = scene_is_done(why, sizeof why);
		const struct sim_failed *failed = sim_faults_failed();
		/* What waits for a process that outlives its pod waits for nothing that fails. */
		if (sim_processes_lingering()->count > 0)
			held_ms = sim.now_ms;
		if (sim_faults_last() && !done && sim.now_ms - failed->since_ms >= TOLD_MS &&
		    sim.now_ms - held_ms >= TOLD_MS &&
		    sim.now_ms - began_ms >= effects.usual_ms + TOLD_MS)
			told_of_undone(effects.process, why, effects.outcome.condition,
				       sizeof effects.outcome.condition);
		if (sim_faults_last() && effects.process == &programs.bcd)
			told_of_streaks(done && effects.scene != SCENE_BIND);
		if (!trouble_is_over())
			trouble_ms = sim.now_ms;
		else if (done && calm_node_is_well(why, sizeof why))
			break;
		if (sim.now_ms - trouble_ms > SOON_MS +
						      (effects.scene == SCENE_REAP ? REAP_MS : 0) +
						      (programs.in_pod ? GRACE_MS : 0)) {
			sim_broken("not well %lld s after the trouble: %s",
				   (long long)(sim.now_ms - trouble_ms) / 1000, why);
			return;
		}
	}
	effects.outcome.effects = sim_faults_count();
	effects.outcome.took_ms = sim.now_ms - began_ms;
	for (int64_t until_ms = sim.now_ms + AFTER_MS; sim.now_ms < until_ms && !sim.broken[0];)
		scene_second();
}

static void note_failed(void)
{
	const struct sim_failed *failed = sim_faults_failed();
	struct outcome *outcome = &effects.outcome;
	outcome->failed = failed->happened;
	outcome->effect = failed->effect;
	outcome->times = failed->times;
	str_copy(outcome->target, sizeof outcome->target, failed->target);
	str_copy(outcome->error, sizeof outcome->error, sim_fault_text(failed->error));
}

/* The line that `at` is in. */
static int line_at(const char *text, size_t at, const char **ret_line)
{
	while (at > 0 && text[at - 1] != '\n')
		at--;
	*ret_line = text + at;
	return (int)strcspn(text + at, "\n");
}

static void compare_ends(void)
{
	const char *end, *wanted, *is, *was;
	size_t at = 0;
	if (sim.broken[0])
		return;
	scene_end(&effects.end);
	end = buf_text(&effects.end);
	wanted = buf_text(&effects.undisturbed);
	while (end[at] && end[at] == wanted[at])
		at++;
	if (effects.undisturbed.length == 0 || end[at] == wanted[at])
		return;
	int length = line_at(end, at, &is), was_length = line_at(wanted, at, &was);
	sim_broken("in the end there is '%.*s', not '%.*s'", length < 200 ? length : 200, is,
		   was_length < 200 ? was_length : 200, was);
}

/* From the prepared world on. `at` 0: nothing fails. */
static void play(uint64_t at, bool lasting)
{
	uint64_t life = effects.process->life;
	effects.outcome = (struct outcome){0};
	sim_faults_watch(effects.process);
	sim_faults_plan(at, lasting ? effects.usual_ms + LASTING_MS : 0);
	told_begin();
	scene_act();
	wait_until_well();
	compare_ends();
	if (effects.process->life != life)
		sim_broken("%s was started again", effects.process->name);
	note_failed();
	effects.outcome.ok = !sim.broken[0];
	str_copy(effects.outcome.why, sizeof effects.outcome.why, sim.broken);
}

/* --- all of them --- */

static void play_and_tell(int to, uint64_t at, bool lasting)
{
	CLEANUP(buf) struct buf told = {0};
	play(at, lasting);
	buf_add(&told, &effects.outcome, sizeof effects.outcome);
	buf_add(&told, effects.end.data, effects.end.length);
	for (size_t put = 0; put < told.length;) {
		ssize_t step = write(to, told.data + put, told.length - put);
		if (step <= 0)
			_exit(1);
		put += (size_t)step;
	}
	_exit(0);
}

/* A run in a process of its own, which inherits the prepared world. */
struct playing {
	uint64_t at;
	bool lasting;
	pid_t child;
	int from;
};

static void play_begin(struct playing *playing, uint64_t at, bool lasting)
{
	int ends[2];
	fflush(stdout);
	if (pipe(ends) != 0)
		abort();
	*playing = (struct playing){at, lasting, fork(), ends[0]};
	if (playing->child < 0)
		abort();
	if (playing->child == 0)
		play_and_tell(ends[1], at, lasting);
	close(ends[1]);
}

/* `ret_end`: what is there in the end. */
static struct outcome play_end(const struct playing *playing, struct buf *ret_end)
{
	struct outcome outcome = {.why = "the run ended without a word"};
	CLEANUP(buf) struct buf told = {0};
	uint8_t step[4096];
	ssize_t got;
	int status;
	while ((got = read(playing->from, step, sizeof step)) > 0)
		buf_add(&told, step, (size_t)got);
	close(playing->from);
	if (waitpid(playing->child, &status, 0) != playing->child || told.length < sizeof outcome)
		return outcome;
	memcpy(&outcome, told.data, sizeof outcome);
	buf_clear(ret_end);
	buf_add(ret_end, told.data + sizeof outcome, told.length - sizeof outcome);
	return outcome;
}

struct tally {
	uint64_t runs, broken, told;
	uint64_t once[SIM_EFFECTS], lasting[SIM_EFFECTS], times[SIM_EFFECTS];
	struct {
		char condition[CONDITIONS_TYPE_SIZE];
		uint64_t runs;
	} conditions[32];
};

static void note_condition(struct tally *tally, const char *condition)
{
	size_t i = 0;
	if (!*condition)
		return;
	tally->told++;
	while (i < ARRAY_SIZE(tally->conditions) - 1 && *tally->conditions[i].condition &&
	       !str_equal(tally->conditions[i].condition, condition))
		i++;
	str_copy(tally->conditions[i].condition, CONDITIONS_TYPE_SIZE, condition);
	tally->conditions[i].runs++;
}

static void count(struct tally *tally, const struct effects_options *options, uint64_t at,
		  bool lasting, const struct outcome *outcome)
{
	tally->runs++;
	if (outcome->failed) {
		(lasting ? tally->lasting : tally->once)[outcome->effect]++;
		tally->times[outcome->effect] += outcome->times;
	}
	note_condition(tally, outcome->condition);
	if (outcome->ok)
		return;
	tally->broken++;
	printf("effect %llu%s (%s of %s: %s): %s\n  again: scripts/sim --effects %s --seed %llu "
	       "--at %llu%s%s%s "
	       "--verbose\n",
	       (unsigned long long)at, lasting ? ", lasting" : "",
	       outcome->failed ? sim_effect_name(outcome->effect) : "none", outcome->target,
	       outcome->error, outcome->why, options->scene, (unsigned long long)options->seed,
	       (unsigned long long)at, lasting ? " --lasting" : "",
	       options->statements ? " --statements" : "", options->in_pod ? " --in-pod" : "");
}

static void tally_print(const struct tally *tally, const struct effects_options *options,
			const struct outcome *undisturbed)
{
	printf("one %s: %llu effects in %lld s; failed once / for a minute (times):\n",
	       options->scene, (unsigned long long)undisturbed->effects,
	       (long long)undisturbed->took_ms / 1000);
	for (size_t i = 0; i < SIM_EFFECTS; i++)
		if (tally->once[i] + tally->lasting[i] > 0)
			printf("  %-8s %4llu / %4llu (%llu)\n", sim_effect_name((enum sim_effect)i),
			       (unsigned long long)tally->once[i],
			       (unsigned long long)tally->lasting[i],
			       (unsigned long long)tally->times[i]);
	printf("what stayed undone was told by:\n");
	for (size_t i = 0; i < ARRAY_SIZE(tally->conditions); i++)
		if (tally->conditions[i].runs > 0)
			printf("  %-32s %llu\n", tally->conditions[i].condition,
			       (unsigned long long)tally->conditions[i].runs);
}

/* The oldest of them is waited for: what is told comes in order, however many play at a time. */
struct turns {
	struct playing playing[RUNS_MAX_JOBS];
	size_t first, count;
};

static void turn_ends(struct turns *turns, const struct effects_options *options,
		      struct tally *tally)
{
	const struct playing *playing = &turns->playing[turns->first];
	CLEANUP(buf) struct buf end = {0};
	struct outcome outcome = play_end(playing, &end);
	count(tally, options, playing->at, playing->lasting, &outcome);
	turns->first = (turns->first + 1) % RUNS_MAX_JOBS;
	turns->count--;
}

static int play_all(const struct effects_options *options, const struct outcome *undisturbed)
{
	struct tally tally = {0};
	struct turns turns = {0};
	for (uint64_t turn = 2 * (options->first ? options->first : 1);
	     turn < 2 * (undisturbed->effects + 1); turn += turn % 2 ? 2 * options->every - 1 : 1) {
		if (turns.count == options->jobs)
			turn_ends(&turns, options, &tally);
		if (options->stop && tally.broken > 0)
			break;
		play_begin(&turns.playing[(turns.first + turns.count) % RUNS_MAX_JOBS], turn / 2,
			   turn % 2);
		turns.count++;
	}
	while (turns.count > 0)
		turn_ends(&turns, options, &tally);
	tally_print(&tally, options, undisturbed);
	printf("%llu runs, %llu broken\n", (unsigned long long)tally.runs,
	       (unsigned long long)tally.broken);
	return tally.broken > 0;
}

static int play_one(const struct effects_options *options)
{
	struct tally tally = {0};
	sim.verbose = options->verbose;
	play(options->at, options->lasting);
	if (!effects.outcome.ok && options->verbose)
		bcd_show();
	count(&tally, options, options->at, options->lasting, &effects.outcome);
	printf("%s\n", effects.outcome.ok ? "ok" : "broken");
	return !effects.outcome.ok;
}

int effects_run(const struct effects_options *options)
{
	if (!scene_find(options->scene, &effects.scene)) {
		fprintf(stderr, "sim: there is no scene '%s': bind, release, reap\n",
			options->scene);
		return 2;
	}
	effects.process = options->statements ? &programs.control[0] : &programs.bcd;
	int result = 1;
	scene_prepare(effects.scene, options->seed, options->in_pod);
	struct playing playing;
	play_begin(&playing, 0, false);
	struct outcome undisturbed = play_end(&playing, &effects.undisturbed);
	effects.usual_ms = undisturbed.took_ms;
	if (!undisturbed.ok)
		printf("undisturbed: %s\n", undisturbed.why);
	else
		result = options->at ? play_one(options) : play_all(options, &undisturbed);
	world_close();
	buf_deinit(&effects.end);
	buf_deinit(&effects.undisturbed);
	return result;
}
