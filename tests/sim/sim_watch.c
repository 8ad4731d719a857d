/* sys/watch.h: hints about folders, late and sometimes lost, as the header warns. */
#include "sim/sim_faults.h"
#include "sim/sim_fs.h"
#include "sys/watch.h"

#include <errno.h>
#include <stdio.h>

#define HINT_MS          2
#define HINT_LOST_ONE_IN 20

struct watch {
	uint64_t id;
	struct sim_process *process;
	char *folder;
	watch_fn *fn;
	void *arg;
};

static struct {
	VEC(struct watch *) list;
	uint64_t last_id;
} watches;

struct hint {
	uint64_t watch;
	char name[256];
};

static void on_hint(void *arg)
{
	struct hint hint = *(struct hint *)arg;
	free(arg);
	vec_each (&watches.list, struct watch * *watch) {
		if ((*watch)->id != hint.watch)
			continue;
		(*watch)->fn((*watch)->arg, hint.name);
		return;
	}
}

void sim_watch_notify(const char *folder, const char *name)
{
	vec_each (&watches.list, struct watch * *watch) {
		if (!str_equal((*watch)->folder, folder) || sim_chance(HINT_LOST_ONE_IN))
			continue;
		struct hint *hint = mem_alloc(sizeof *hint);
		hint->watch = (*watch)->id;
		str_copy(hint->name, sizeof hint->name, name);
		/* As work: a hint for a dead process is freed, and finds nobody. */
		sim_schedule((*watch)->process, sim_delay(HINT_MS), on_hint, hint)->is_work = true;
	}
}

bool watch_create(struct loop *loop UNUSED, const char *folder, watch_fn *fn, void *arg,
		  struct watch **ret_watch, struct error *error)
{
	int failed = sim_fault(SIM_WATCH, folder);
	if (failed) {
		errno = failed;
		return error_os(error, "watch '%s'", folder);
	}
	if (!sim_fs_exists(folder))
		return error_set(error, ERROR_NOT_FOUND, "watch '%s': no such folder", folder);
	struct watch *watch = mem_alloc(sizeof *watch);
	*watch = (struct watch){++watches.last_id, sim.current, mem_strdup(folder), fn, arg};
	*vec_push(&watches.list) = watch;
	*ret_watch = watch;
	return true;
}

void watch_destroy(struct watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < watches.list.count; i++) {
		if (watches.list.items[i] != watch)
			continue;
		vec_remove(&watches.list, i);
		break;
	}
	if (watches.list.count == 0)
		vec_deinit(&watches.list);
	free(watch->folder);
	free(watch);
}
