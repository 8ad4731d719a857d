#include "store/sqlite.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* The journal is moved into the file each time it has grown by so many pages; and when so few are
 * left, or after so many tries, the rest while nobody writes, so that it can begin again. */
#define JOURNAL_PAGES     8192
#define FEW_PAGES         256
#define MAX_MOVES         4
#define MOVER_PATIENCE_MS 100 /* with readers, while nobody may write */

/* --- its way to the disk --- */

/* It is there as long as the writer's link is open. */
static bool sync_journal(struct sqlite_store *state, struct error *error)
{
	char path[SQLITE_MAX_PATH + 8];

	snprintf(path, sizeof path, "%s-wal", state->file);
	if (state->journal < 0)
		state->journal = open(path, O_RDONLY | O_CLOEXEC);
	if (state->journal < 0)
		return error_os(error, "open '%s'", path);
	return fdatasync(state->journal) == 0 || error_os(error, "sync '%s'", path);
}

static bool refuse_broken(struct error *error)
{
	error_set(error, ERROR_UNAVAILABLE, "the database's disk failed earlier");
	return error_hint(error, "See to the disk, then start again: what is on it is read anew.");
}

/*
 * Waits until the first `wanted` transactions are on the disk. One of those who wait syncs for all
 * that committed before it began, so that many at a time cost one sync. Whoever only reads waits
 * too: what it tells must not be undone by a power cut. After a sync that failed the kernel may take
 * what it couldn't write for written: no later one counts.
 */
bool sqlite_wait_synced(struct sqlite_store *state, uint64_t wanted, struct error *error)
{
	bool done = true;

	pthread_mutex_lock(&state->guard);
	while (done && state->synced < wanted) {
		uint64_t covers = state->committed;

		if (state->broken) {
			done = refuse_broken(error);
			break;
		}
		if (state->syncing) {
			pthread_cond_wait(&state->synced_more, &state->guard);
			continue;
		}
		state->syncing = true;
		pthread_mutex_unlock(&state->guard);
		done = sync_journal(state, error);
		pthread_mutex_lock(&state->guard);
		state->syncing = false;
		state->broken = !done;
		if (done)
			state->synced = covers;
		pthread_cond_broadcast(&state->synced_more);
	}
	pthread_mutex_unlock(&state->guard);
	return done;
}

bool sqlite_is_sound(struct sqlite_store *state, struct error *error)
{
	bool broken;

	pthread_mutex_lock(&state->guard);
	broken = state->broken;
	pthread_mutex_unlock(&state->guard);
	return !broken || refuse_broken(error);
}

/* All that a reader can have seen: whose commit is under way is counted before. */
uint64_t sqlite_count_seen(struct sqlite_store *state)
{
	uint64_t seen;

	pthread_mutex_lock(&state->guard);
	while (state->committing)
		pthread_cond_wait(&state->synced_more, &state->guard);
	seen = state->committed;
	pthread_mutex_unlock(&state->guard);
	return seen;
}

static void begin_counting(struct sqlite_store *state)
{
	pthread_mutex_lock(&state->guard);
	state->committing = true;
	pthread_mutex_unlock(&state->guard);
}

static uint64_t end_counting(struct sqlite_store *state, bool committed)
{
	uint64_t number;

	pthread_mutex_lock(&state->guard);
	state->committing = false;
	state->committed += committed;
	number = state->committed;
	pthread_cond_broadcast(&state->synced_more);
	pthread_mutex_unlock(&state->guard);
	return number;
}

/* Into the journal. */
bool sqlite_commit_write(struct store_connection *base, uint64_t *ret_number, struct error *error)
{
	struct sqlite_store *state = sqlite_state_of(base);
	bool done;

	begin_counting(state);
	done = sqlite_run(base, "COMMIT", NULL, 0, NULL, error);
	*ret_number = end_counting(state, done);
	return done;
}

/* --- its way into the file --- */

/* Moves what no reader needs to find in the journal any more; false: nothing could be moved. */
static bool move_pages(struct sqlite_store *state, int mode, int *ret_left)
{
	int moved = 0;

	if (sqlite3_wal_checkpoint_v2(state->moving.handle, NULL, mode, NULL, &moved) != SQLITE_OK)
		return false;
	pthread_mutex_lock(&state->guard);
	*ret_left = state->journal_pages - moved;
	pthread_mutex_unlock(&state->guard);
	return true;
}

/* Most of it beside the writers, whose commits would wait for it else. What can't be moved now is
 * moved when the journal has grown again. */
static void move_journal(struct sqlite_store *state)
{
	int left = INT_MAX;

	for (int i = 0; i < MAX_MOVES && left > FEW_PAGES; i++) {
		if (!move_pages(state, SQLITE_CHECKPOINT_PASSIVE, &left))
			return;
	}
	pthread_mutex_lock(&state->writer);
	(void)move_pages(state, SQLITE_CHECKPOINT_RESTART, &left);
	pthread_mutex_unlock(&state->writer);
}

static void *mover_main(void *arg)
{
	struct sqlite_store *state = arg;

	pthread_mutex_lock(&state->guard);
	while (!state->stopping) {
		if (state->journal_pages < state->journal_limit) {
			pthread_cond_wait(&state->journal_grew, &state->guard);
			continue;
		}
		pthread_mutex_unlock(&state->guard);
		move_journal(state);
		pthread_mutex_lock(&state->guard);
		state->journal_limit = state->journal_pages + JOURNAL_PAGES;
	}
	pthread_mutex_unlock(&state->guard);
	return NULL;
}

/* After each commit. A journal that began again is as long as it was allowed to be. */
static int on_commit(void *arg, sqlite3 *handle UNUSED, const char *database UNUSED, int pages)
{
	struct sqlite_store *state = arg;

	pthread_mutex_lock(&state->guard);
	if (pages < state->journal_pages)
		state->journal_limit = JOURNAL_PAGES;
	state->journal_pages = pages;
	if (pages >= state->journal_limit)
		pthread_cond_signal(&state->journal_grew);
	pthread_mutex_unlock(&state->guard);
	return SQLITE_OK;
}

bool sqlite_start_mover(struct sqlite_store *state, struct error *error)
{
	sigset_t all, before;
	int failed;

	if (!sqlite_open_link(state, &state->moving, error))
		return false;
	sqlite3_busy_timeout(state->moving.handle, MOVER_PATIENCE_MS);
	state->journal_limit = JOURNAL_PAGES;
	/* Signals are the program's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&state->mover, NULL, mover_main, state);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed) {
		sqlite_close_link(&state->moving);
		return error_set(error, ERROR_UNAVAILABLE, "start a thread for the journal: %s",
				 strerror(failed));
	}
	state->moves = true;
	sqlite3_wal_hook(state->writing.handle, on_commit, state);
	return true;
}

void sqlite_stop_mover(struct sqlite_store *state)
{
	if (!state->moves)
		return;
	pthread_mutex_lock(&state->guard);
	state->stopping = true;
	pthread_cond_signal(&state->journal_grew);
	pthread_mutex_unlock(&state->guard);
	pthread_join(state->mover, NULL);
	sqlite_close_link(&state->moving);
}
