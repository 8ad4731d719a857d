#include "node/lock.h"

#include "node/identity.h"
#include "sys/durable.h"
#include "sys/log.h"

#define RETRY_MS 500

struct lock {
	char *path;
	struct durable_lock *held;
	struct loop_timer *timer;
	loop_fn *ready;
	void *arg;
	bool told;
};

static void try_lock(struct lock *lock, struct error *error)
{
	if (durable_lock_take(lock->path, &lock->held, error)) {
		lock->ready(lock->arg);
		return;
	}
	if (!lock->told)
		log_failure(LOG_WARN, "lock.wait", error, "waiting until that bcd ends");
	lock->told = true;
	loop_timer_start(lock->timer, RETRY_MS);
}

static void on_timer(void *arg)
{
	struct error error = {0};

	try_lock(arg, &error);
}

bool lock_wait(struct loop *loop, const char *data_folder, loop_fn *ready, void *arg,
	       struct lock **ret_lock, struct error *error)
{
	struct lock *lock;

	if (!durable_make_folder(data_folder, 0700, error))
		return false;
	lock = mem_alloc(sizeof *lock);
	lock->path = identity_path(data_folder, "lock");
	lock->ready = ready;
	lock->arg = arg;
	lock->timer = loop_timer_create(loop, on_timer, lock);
	loop_timer_start(lock->timer, 0);
	*ret_lock = lock;
	return true;
}

void lock_destroy(struct lock *lock)
{
	if (!lock)
		return;
	loop_timer_destroy(lock->timer);
	durable_lock_destroy(lock->held);
	free(lock->path);
	free(lock);
}
