#include "sim/sim_faults.h"

#include "sim/programs.h"
#include "sim/sim_fiber.h"
#include "sim/told.h"

#include <errno.h>

#define BY_CHANCE_ONE_IN 500 /* of what changes a file of bcd's */
#define HANG_ONE_IN      30  /* of what bcd's workers do */
#define HANG_CHANGES     8   /* which of its changes it is, at most */
#define HANG_MS          120000
#define NO_TIME_ONE_IN   20 /* of the questions who has which device: the kubelet limits them */

static const char *const names[SIM_EFFECTS] = {
	[SIM_OPEN] = "open",       [SIM_READ] = "read",       [SIM_STAT] = "stat",
	[SIM_LIST] = "list",       [SIM_CREATE] = "create",   [SIM_WRITE] = "write",
	[SIM_CHMOD] = "chmod",     [SIM_FSYNC] = "fsync",     [SIM_CLOSE] = "close",
	[SIM_RENAME] = "rename",   [SIM_LINK] = "link",       [SIM_UNLINK] = "unlink",
	[SIM_MKDIR] = "mkdir",     [SIM_WATCH] = "watch",     [SIM_LISTEN] = "listen",
	[SIM_ACCEPT] = "accept",   [SIM_CONNECT] = "connect", [SIM_CALL] = "call",
	[SIM_REQUEST] = "request", [SIM_LOOK] = "look",       [SIM_QUERY] = "query",
	[SIM_CHANGE] = "change",
};

/* How each may fail, in the order in which they take turns; 0 ends a row. */
static const int errors[SIM_EFFECTS][4] = {
	[SIM_OPEN] = {EIO, EMFILE},
	[SIM_READ] = {EIO},
	[SIM_STAT] = {EIO},
	[SIM_LIST] = {EMFILE, EIO},
	[SIM_CREATE] = {ENOSPC, EIO, EMFILE},
	[SIM_WRITE] = {ENOSPC, EIO, SIM_FAULT_SHORT},
	[SIM_CHMOD] = {EIO},
	[SIM_FSYNC] = {EIO, ENOSPC},
	[SIM_CLOSE] = {EIO, ENOSPC},
	[SIM_RENAME] = {EIO, ENOSPC},
	[SIM_LINK] = {EIO, ENOSPC},
	[SIM_UNLINK] = {EIO},
	[SIM_MKDIR] = {ENOSPC, EIO},
	[SIM_WATCH] = {ENOSPC, EMFILE},
	[SIM_LISTEN] = {EMFILE, ENOSPC},
	[SIM_ACCEPT] = {EMFILE},
	[SIM_CONNECT] = {ECONNREFUSED, EMFILE, SIM_FAULT_SILENT},
	[SIM_CALL] = {SIM_FAULT_REFUSE, SIM_FAULT_SILENT},
	[SIM_REQUEST] = {ECONNREFUSED, SIM_FAULT_SILENT, SIM_FAULT_REFUSE, EMFILE},
	[SIM_LOOK] = {EIO, EMFILE},
	[SIM_QUERY] = {EIO},
	[SIM_CHANGE] = {ENOSPC, EIO, EBUSY},
};

static struct {
	struct sim_process *process, *full_for;
	uint64_t count, at, all;
	int64_t lasting_ms, full_until_ms;
	struct sim_failed failed;
	struct sim_streaks streaks;
	uint64_t hangs_in; /* so many changes of the work that runs now; 0: in none */
	char hangs[256];   /* the file that hangs; "": none does */
	int64_t hangs_since_ms;
} faults;

const char *sim_effect_name(enum sim_effect effect)
{
	return names[effect];
}

const char *sim_fault_text(int error)
{
	return error == SIM_FAULT_SILENT   ? "no answer"
	       : error == SIM_FAULT_REFUSE ? "refused"
	       : error == SIM_FAULT_SHORT  ? "in part"
					   : strerror(error);
}

void sim_faults_watch(struct sim_process *process)
{
	faults.process = process;
	faults.count = 0;
}

uint64_t sim_faults_all(void)
{
	return faults.all;
}

uint64_t sim_faults_count(void)
{
	return faults.count;
}

void sim_faults_plan(uint64_t at, int64_t lasting_ms)
{
	faults.at = at;
	faults.lasting_ms = lasting_ms;
}

const struct sim_failed *sim_faults_failed(void)
{
	return &faults.failed;
}

bool sim_faults_last(void)
{
	return faults.failed.happened && faults.lasting_ms > 0 &&
	       sim.now_ms < faults.failed.since_ms + faults.lasting_ms;
}

void sim_faults_end(void)
{
	vec_deinit(&faults.streaks);
	memset(&faults, 0, sizeof faults);
}

void sim_faults_fill_disk(struct sim_process *process, int64_t for_ms)
{
	faults.full_for = process;
	faults.full_until_ms = sim.now_ms + for_ms;
}

/* What needs room on the disk. An unlink needs none. */
static bool needs_room(enum sim_effect effect)
{
	return effect == SIM_CREATE || effect == SIM_WRITE || effect == SIM_MKDIR ||
	       effect == SIM_LINK || effect == SIM_LISTEN;
}

static bool needs_descriptor(enum sim_effect effect)
{
	return effect == SIM_OPEN || effect == SIM_CREATE || effect == SIM_LIST ||
	       effect == SIM_WATCH || effect == SIM_LISTEN || effect == SIM_ACCEPT ||
	       effect == SIM_CONNECT || effect == SIM_REQUEST || effect == SIM_LOOK;
}

/* What is in /run isn't on the disk. */
static bool is_on_disk(const char *target)
{
	return str_starts(target, NODE_ROOT "/") && !str_starts(target, NODE_ROOT "/run/");
}

static size_t folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : strlen(path);
}

static bool same_folder(const char *a, const char *b)
{
	size_t length = folder_length(a);

	return length == folder_length(b) && strncmp(a, b, length) == 0;
}

size_t sim_faults_stem(const char *path)
{
	const char *name = path + folder_length(path) + (strchr(path, '/') != NULL);

	if (str_starts(name, ".tmp-") || (str_starts(name, "bcd-") && str_ends(name, ".sock")))
		return (size_t)(strrchr(path, '-') - path);
	return strlen(path);
}

static bool same_file(const char *a, const char *b)
{
	size_t length = sim_faults_stem(a);

	return length == sim_faults_stem(b) && strncmp(a, b, length) == 0;
}

void sim_faults_log(const char *line)
{
	bool busy = faults.failed.error == EBUSY;
	const char *why = faults.failed.error == ENOSPC ? "full"
			  : busy                        ? "lost against other transactions"
							: "I/O error";
	if (faults.process && sim.current == faults.process && faults.failed.happened &&
	    (strstr(line, why) || (busy && strstr(line, "another program keeps"))))
		faults.failed.logged++;
}

/* Does what lets that one fail let this one fail, too? */
static bool goes_with(enum sim_effect effect, const char *target)
{
	const struct sim_failed *failed = &faults.failed;

	if (failed->error == ENOSPC && failed->effect != SIM_WATCH && is_on_disk(failed->target))
		return needs_room(effect) && is_on_disk(target);
	if (failed->error == EBUSY || (failed->error == ENOSPC && failed->effect == SIM_CHANGE))
		return effect == SIM_CHANGE;
	if (failed->error == EMFILE)
		return needs_descriptor(effect);
	if (failed->effect != effect)
		return false;
	if (effect >= SIM_CONNECT || failed->alone)
		return same_file(target, failed->target);
	return same_folder(target, failed->target);
}

static int fail(enum sim_effect effect, const char *target, int error)
{
	faults.all++;
	sim_trace("%s of %s fails (%d)", names[effect], target, error);
	return error;
}

static int fail_planned(enum sim_effect effect, const char *target)
{
	size_t turns = 0;

	while (turns < ARRAY_SIZE(errors[effect]) && errors[effect][turns])
		turns++;
	faults.failed = (struct sim_failed){
		.happened = true,
		.alone = faults.at / turns % 2,
		.effect = effect,
		.error = errors[effect][faults.at % turns],
		.since_ms = sim.now_ms,
		.times = 1,
	};
	str_copy(faults.failed.target, sizeof faults.failed.target, target);
	return fail(effect, target, faults.failed.error);
}

/* --- in a row --- */

const struct sim_streaks *sim_faults_streaks(void)
{
	return &faults.streaks;
}

static struct sim_streak *streak_find(enum sim_effect effect, const char *target)
{
	vec_each (&faults.streaks, struct sim_streak * streak)
		if (streak->effect == effect && same_file(streak->target, target))
			return streak;
	return NULL;
}

static void streak_note(enum sim_effect effect, const char *target, int error)
{
	struct sim_streak *streak = streak_find(effect, target);

	if (error == SIM_FAULT_SHORT)
		error = 0;
	if (!error && !streak)
		return;
	if (!error) {
		vec_remove(&faults.streaks, (size_t)(streak - faults.streaks.items));
		return;
	}
	if (!streak) {
		streak = vec_push(&faults.streaks);
		*streak = (struct sim_streak){.effect = effect};
		str_copy(streak->target, sizeof streak->target, target);
	}
	streak->error = error;
	streak->last_ms = sim.now_ms;
	if (++streak->times == SIM_STREAK)
		streak->row_ms = sim.now_ms;
}

int sim_fault(enum sim_effect effect, const char *target)
{
	return sim_fault_of(sim.current, effect, target);
}

static int fails_by_plan(enum sim_effect effect, const char *target)
{
	if (++faults.count == faults.at)
		return fail_planned(effect, target);
	if (!sim_faults_last() || !goes_with(effect, target))
		return 0;
	faults.failed.times++;
	return fail(effect, target, faults.failed.error);
}

int sim_fault_of(const struct sim_process *process, enum sim_effect effect, const char *target)
{
	if (!process || process->dying != SIM_ALIVE)
		return 0;
	if (process == faults.full_for && sim.now_ms < faults.full_until_ms && needs_room(effect) &&
	    is_on_disk(target))
		return fail(effect, target, ENOSPC);
	if (process == &programs.bcd && effect >= SIM_CREATE && effect <= SIM_MKDIR &&
	    sim_chance(BY_CHANCE_ONE_IN))
		return fail(effect, target, EIO);
	if (effect == SIM_CALL && str_ends(target, "/pod-resources/kubelet.sock") &&
	    sim_chance(NO_TIME_ONE_IN))
		return fail(effect, target, SIM_FAULT_REFUSE);
	if (process != faults.process || (process != &programs.bcd && effect < SIM_QUERY))
		return 0;
	int error = fails_by_plan(effect, target);
	streak_note(effect, target, error);
	return error;
}

/* --- a disk that lets one wait --- */

bool sim_hang_may_come(const struct sim_process *process)
{
	faults.hangs_in = 0;
	/* In a pod nothing else tells of a pod that couldn't be put on record. */
	if (process != &programs.bcd || programs.in_pod || *faults.hangs ||
	    !sim_chance(HANG_ONE_IN))
		return false;
	faults.hangs_in = 1 + sim_below(HANG_CHANGES);
	return true;
}

int64_t sim_hang_ms(void)
{
	return 1 + (int64_t)sim_below(HANG_MS);
}

void sim_hang_at(const char *path)
{
	if (faults.hangs_in == 0 || !fiber_inside() || --faults.hangs_in > 0)
		return;
	sim_trace("%s hangs", path);
	str_copy(faults.hangs, sizeof faults.hangs, path);
	faults.hangs_since_ms = sim.now_ms;
	told_of_hang();
	fiber_stop();
}

void sim_hang_ends(void)
{
	sim_trace("%s hangs no more", faults.hangs);
	*faults.hangs = '\0';
}

const char *sim_hang(int64_t *ret_since_ms)
{
	*ret_since_ms = faults.hangs_since_ms;
	return *faults.hangs ? faults.hangs : NULL;
}
