#include "node/lock.h"

#include "node/identity.h"
#include "node/teller.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "text/tree.h"

/* A small part of the second that a restart may take (HOSTED-3). */
#define RETRY_MS       20
#define RETRY_AFTER_MS 1000 /* when nobody has it, and it can't be taken */

struct lock {
	struct loop *loop;
	char *path;
	const char *run_folder;
	struct durable_lock *held;
	struct loop_timer *timer;
	struct teller *teller; /* while waiting */
	struct wall since;
	lock_fn *over;
	void *arg;
	bool told;
	char failure[ERROR_WHAT_SIZE]; /* that was told last; "": none */
};

static json_t *tell(void *arg)
{
	const struct lock *lock = arg;
	json_t *object = json_object();

	tree_set(object, "version", json_integer(1));
	tree_set(object, "bcd", tree_string(BC_VERSION));
	tree_set(object, "waitingFor", tree_string(lock->path));
	tree_set(object, "since", json_integer(lock->since.ms));
	tree_set(object, "now", json_integer(clock_wall().ms));
	return object;
}

/* Once, when the lock turns out to be another's. */
static void begin_to_wait(struct lock *lock, const struct error *why)
{
	struct error error;

	lock->told = true;
	lock->since = clock_wall();
	log_failure(LOG_WARN, "lock.wait", why, "waiting until that bcd ends");
	if (!teller_create(lock->loop, lock->run_folder, LOCK_SOCKET, tell, lock, &lock->teller,
			   &error))
		log_failure(LOG_WARN, "lock.socket", &error,
			    "this one waits all the same, but 'bcd status' can't tell");
}

static void try_lock(struct lock *lock, struct error *error)
{
	if (durable_lock_take(lock->path, &lock->held, error)) {
		teller_destroy(TAKE(lock->teller));
		durable_tidy(lock->path, clock_wall());
		lock->over(lock->arg, NULL);
		return;
	}
	if (error->code == ERROR_INVALID_STATE) {
		lock->over(lock->arg, error);
		return;
	}
	if (error->code != ERROR_CONFLICT) {
		if (!str_equal(lock->failure, error->what))
			log_failure(LOG_ERROR, "lock.take", error, "it is tried again each second");
		str_copy(lock->failure, sizeof lock->failure, error->what);
		loop_timer_start(lock->timer, RETRY_AFTER_MS);
		return;
	}
	*lock->failure = '\0';
	if (!lock->told)
		begin_to_wait(lock, error);
	loop_timer_start(lock->timer, RETRY_MS);
}

static void on_timer(void *arg)
{
	struct error error = {0};

	try_lock(arg, &error);
}

bool lock_wait(struct loop *loop, const char *data_folder, const char *run_folder, lock_fn *over,
	       void *arg, struct lock **ret_lock, struct error *error)
{
	struct lock *lock;

	if (!durable_make_folder(data_folder, 0700, error))
		return false;
	lock = mem_alloc(sizeof *lock);
	lock->loop = loop;
	lock->path = identity_path(data_folder, "lock");
	lock->run_folder = run_folder;
	lock->over = over;
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
	teller_destroy(lock->teller);
	durable_lock_destroy(lock->held);
	free(lock->path);
	free(lock);
}
