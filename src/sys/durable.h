/*
 * durable: files that are there after a power cut, whole or not at all.
 *
 * A replace writes a temporary file beside the target, syncs it, renames it, and syncs the folder;
 * a remove unlinks and syncs the folder. A file that can't be read is an error and never "empty":
 * only ERROR_NOT_FOUND means absent.
 *
 * Two forms: plain calls that block (start-up, workers, CLIs), and durable_submit(), which runs a
 * list of steps in order on a worker and answers on the loop. A step that fails ends the list: the
 * steps before it are durable, the ones after it did not happen. Each step is a crash point in the
 * simulation (tests/sim/sim_fs.c, same header).
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "sys/loop.h"

#include <sys/types.h>

/* Reads a regular file whole. Over `max_size`: RESOURCES_EXHAUSTED; a folder, fifo or device:
 * INVALID_STATE saying what it is. `ret_content` must be empty or hold an old content. */
MUST_CHECK bool durable_read(const char *path, size_t max_size, struct buf *ret_content,
			     struct error *error);
/* The same; what may be a moment's trouble (EIO, EMFILE, ENFILE, ENOMEM) is tried DURABLE_TRIES times
 * before it is an error, and a link to nowhere, or a name that can't be looked at, isn't "not found". For records whose loss would cost something
 * (REL-55). */
#define DURABLE_TRIES 3
MUST_CHECK bool durable_read_record(const char *path, size_t max_size, struct buf *ret_content,
				    struct error *error);
/* Is this such trouble? Then the file itself may be whole. */
bool durable_is_passing(const struct error *error);
/* The same of a secret that somebody else wrote: FORBIDDEN when everybody may read it. */
MUST_CHECK bool durable_read_hidden(const char *path, size_t max_size, struct buf *ret_content,
				    struct error *error);
/* The same of one that is nobody else's: FORBIDDEN when others than its owner may read it. */
MUST_CHECK bool durable_read_private(const char *path, size_t max_size, struct buf *ret_content,
				     struct error *error);
/* And of one that is ours: FORBIDDEN too when somebody else owns it, who could have chosen it for
 * us. */
MUST_CHECK bool durable_read_own(const char *path, size_t max_size, struct buf *ret_content,
				 struct error *error);
/* One of those that is a record, too. */
MUST_CHECK bool durable_read_own_record(const char *path, size_t max_size, struct buf *ret_content,
					struct error *error);
MUST_CHECK bool durable_replace(const char *path, const void *data, size_t length, mode_t mode,
				struct error *error);
/* As replace, but the file must not exist: CONFLICT otherwise. After a failure it isn't there, as far as that can be
 * had: what couldn't be synced is removed again. */
MUST_CHECK bool durable_create(const char *path, const void *data, size_t length, mode_t mode,
			       struct error *error);
/* A text in the place of what a private file of ours holds, and never in another file, not for a
 * moment: for a secret that a killed process must not leave where nobody looks. Then the file has the
 * old text or the new one, whole (each is shorter than a page); a shorter one may still be followed
 * by newlines. After a power cut it may be either, or damaged. NOT_FOUND when it is gone, FORBIDDEN
 * when it isn't ours or others may read it, INVALID_STATE when it is no file or one with other names
 * beside this; with what to do. */
MUST_CHECK bool durable_overwrite_text(const char *path, const void *text, size_t length,
				       struct error *error);
/* Would that be let, as the file is now? For before the text is made. */
MUST_CHECK bool durable_check_fillable(const char *path, struct error *error);
/* The place of a text in a private file of its own, and never in another one, as above. It is made, and found fit,
 * before the text is, so that a refusal costs nothing. `replace`: also where something has that name, which keeps what
 * it holds until the place is filled; what isn't ours alone is then another file. Else CONFLICT. A process that is
 * killed between leaves an empty file. */
struct durable_place {
	char *path;   /* NULL: none, or not any more */
	char *beside; /* what takes the place of what is there; NULL: nothing does */
	bool made;    /* the path's file, with these two */
	dev_t device;
	ino_t inode;
};
MUST_CHECK bool durable_place_make(const char *path, bool replace, struct durable_place *ret_place,
				   struct error *error);
/* Once; whatever comes of it, the place is none any more. After a failure a file that was made for it is gone again, or
 * empty where its folder can't be synced. */
MUST_CHECK bool durable_place_fill(struct durable_place *place, const void *text, size_t length,
				   struct error *error);
/* There is nothing to fill it with: what was made goes, and nothing else. Takes one that is none. */
void durable_place_give_up(struct durable_place *place);
static inline void durable_place_cleanup(struct durable_place *place)
{
	durable_place_give_up(place);
}
/* Could a file be written there, as it looks now? For before what it is to hold is made. */
MUST_CHECK bool durable_check_writable(const char *path, struct error *error);
MUST_CHECK bool durable_remove(const char *path, struct error *error); /* absent is fine */
MUST_CHECK bool durable_rename(const char *from, const char *to, struct error *error);
/* What can't be read is kept, under `<path>.unreadable-<unix seconds>`, which nobody here deletes or writes
 * over. RESOURCES_EXHAUSTED, and it stays where it is, when a thousand names from now on are taken. */
MUST_CHECK bool durable_set_aside(const char *path, struct wall now, struct buf *ret_aside,
				  struct error *error);
/* The same, and it stays in its place until it is replaced: where its absence would say something. */
MUST_CHECK bool durable_keep(const char *path, struct wall now, struct buf *ret_kept,
			     struct error *error);
/* What was made, renamed or removed in the folder is there after a power cut once this returns. For who
 * reads what a killed process, or a call that failed on its way, may have left unsynced: it is seen, and
 * may be gone after the next power cut. */
MUST_CHECK bool durable_sync_folder(const char *folder, struct error *error);
/* Both are there and change places at one moment: files, or whole folders. */
MUST_CHECK bool durable_exchange(const char *a, const char *b, struct error *error);
MUST_CHECK bool durable_make_folder(const char *path, mode_t mode,
				    struct error *error); /* with parents; existing is fine */
/* One that nobody else made: CONFLICT when something has its name. */
MUST_CHECK bool durable_make_new_folder(const char *path, mode_t mode, struct error *error);

/* Is it a folder, no link to one, and ours? */
bool durable_is_own_folder(const char *path);
/* Such a folder, and private: INVALID_INPUT when it is none, FORBIDDEN when others may enter it. */
MUST_CHECK bool durable_check_own_folder(const char *path, struct error *error);

/* Whether what is there, a file or a folder, is ours, and so what we put in its place can be read by
 * who reads it now: FORBIDDEN, with what to do, when it isn't. Absent: it is. */
MUST_CHECK bool durable_check_ours(const char *path, struct error *error);

/* Names of the entries of a folder, sorted; without "." and "..". NOT_FOUND when it is absent. */
struct durable_names {
	char **names;
	size_t count;
};
MUST_CHECK bool durable_list(const char *folder, size_t max_count, struct durable_names *ret_names,
			     struct error *error);
void durable_names_deinit(struct durable_names *names);

/* Takes an exclusive lock on the file (made if absent) until the process ends or the lock is
 * destroyed. CONFLICT when somebody holds it; the hint names the holder's pid when known. INVALID_STATE when
 * what has its name is no file: that stays so until somebody moves it away. */
struct durable_lock;
MUST_CHECK bool durable_lock_take(const char *path, struct durable_lock **ret_lock,
				  struct error *error);
/* The same on a folder that is there, whatever it is called meanwhile. */
MUST_CHECK bool durable_lock_folder(const char *path, struct durable_lock **ret_lock,
				    struct error *error);
void durable_lock_destroy(struct durable_lock *lock);

/* Removes what processes that were killed left of a replace or create of this file or of others in
 * its folder: temporary files that nobody has written to for so long. What can't be is left. */
#define DURABLE_LEFT_MS 10000
void durable_tidy(const char *path, struct wall now);

/* What a file is now, to notice that it changed: stat only. */
struct durable_stamp {
	bool exists;
	int os; /* errno: it can't be looked at, and may or may not be there; 0: as `exists` says */
	uint64_t device, inode, size;
	int64_t mtime_ns, ctime_ns;
};
struct durable_stamp durable_stamp(const char *path);
/* Surely nothing of this name, not even a link to nowhere. A path that can't be looked at isn't
 * absent: for questions where "nothing" gives something away. */
bool durable_absent(const char *path);
bool durable_stamp_equal(struct durable_stamp a, struct durable_stamp b);

/* --- asynchronous lists of steps --- */

enum durable_kind {
	DURABLE_REPLACE,
	DURABLE_REMOVE,
	DURABLE_SYNC,   /* a folder */
	DURABLE_FOLDER, /* makes it if it is absent, and syncs it */
};

struct durable_step {
	enum durable_kind kind;
	char *path;
	struct buf data; /* DURABLE_REPLACE */
	mode_t mode;     /* DURABLE_REPLACE, DURABLE_FOLDER */
};

struct durable_steps {
	struct durable_step *items;
	size_t count, capacity;
};

void durable_steps_replace(struct durable_steps *steps, const char *path, const void *data,
			   size_t length, mode_t mode);
void durable_steps_remove(struct durable_steps *steps, const char *path);
void durable_steps_sync(struct durable_steps *steps, const char *folder);
void durable_steps_folder(struct durable_steps *steps, const char *folder, mode_t mode);
void durable_steps_deinit(struct durable_steps *steps);

/* `error` is NULL when every step is on disk; `done_count` steps are durable in any case. */
typedef void durable_done_fn(void *arg, size_t done_count, const struct error *error);

/* Takes over *steps (empty afterwards). One list at a time per caller is the caller's rule. The job is the
 * loop's, and gone once `done` was called. */
struct durable_job;
struct durable_job *durable_submit(struct loop *loop, struct durable_steps *steps,
				   durable_done_fn *done, void *arg);

/* A disk may let a call wait for ever, and nobody can end it. One step of the list has taken this long, as far as
 * whoever asks now and then has seen: `*ret_error` says which, and what to do. False: untouched. */
#define DURABLE_HANG_MS 10000
bool durable_hangs(struct durable_job *job, struct mono now, struct error *ret_error);
