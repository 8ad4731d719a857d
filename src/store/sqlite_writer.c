#include "store/sqlite.h"

#include <time.h>

/* What the writer keeps of the file; others' caches are void after each commit. */
#define WRITER_CACHE_KIB "16384"

/* The first one makes what all of them use. */
static bool open_writing(struct sqlite_store *state, struct error *error)
{
	if (state->writing.handle)
		return true;
	if (!sqlite_open_link(state, &state->writing, error))
		return false;
	if (sqlite_set_pragma(&state->writing, "PRAGMA cache_size = -" WRITER_CACHE_KIB, error) &&
	    (state->memory || sqlite_start_mover(state, error)))
		return true;
	sqlite_close_link(&state->writing);
	return false;
}

static struct timespec lock_until(const struct store_connection *base)
{
	int wait_ms = base->lock_ms;
	struct timespec until;

	if (clock_gettime(CLOCK_MONOTONIC, &until) != 0)
		abort();
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += wait_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	return until;
}

/* Writers queue here rather than in SQLite, whose losers sleep and look again. A memory has one
 * thread. */
static bool lock_writer(struct store_connection *base, struct error *error)
{
	struct sqlite_store *state = sqlite_state_of(base);
	struct timespec until;

	if (state->memory)
		return true;
	until = lock_until(base);
	if (pthread_mutex_clocklock(&state->writer, CLOCK_MONOTONIC, &until) == 0)
		return true;
	base->loss = STORE_LOSS_RACE;
	return error_set(error, ERROR_UNAVAILABLE, "other transactions take too long");
}

void sqlite_leave_writing(struct store_connection *base)
{
	struct sqlite_store *state = sqlite_state_of(base);

	if (sqlite_of(base)->link != &state->writing)
		return;
	sqlite_of(base)->link = &sqlite_of(base)->own;
	if (!state->memory)
		pthread_mutex_unlock(&state->writer);
}

bool sqlite_enter_writing(struct store_connection *base, struct error *error)
{
	struct sqlite_store *state = sqlite_state_of(base);

	if (!lock_writer(base, error))
		return false;
	sqlite_of(base)->link = &state->writing;
	if (open_writing(state, error)) {
		/* Nobody of ours has the file's lock now. */
		base->lock_ms = store_lock_ms(base, STORE_WRITE);
		sqlite3_busy_timeout(state->writing.handle, base->lock_ms);
		return true;
	}
	sqlite_leave_writing(base);
	return false;
}
