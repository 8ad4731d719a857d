/*
 * sim_faults: effects of one process that fail: the Nth, all of a kind for a while, or by chance.
 *
 * Counts    every effect of the watched process from sim_faults_watch() on: calls on files, folders and
 *           sockets, connections made and taken, calls and requests sent, looks at processes.
 * Fails     the Nth of them, with an error that such a call may have: which one goes by turns. Lasting:
 *           for a while everything fails that what is broken then would let fail, as a full disk, a
 *           process without descriptors, an endpoint that refuses, a folder with a bad block, or, by turns
 *           with that, one file of it.
 *           Of the control plane its statements only.
 * Hangs     by chance a change of a file by one of bcd's workers: for a minute or two, then it goes on.
 * Not       the world's own calls, nor those of other processes.
 */
#pragma once

#include "sim/sim.h"

enum sim_effect {
	SIM_OPEN, /* for reading, also a folder */
	SIM_READ,
	SIM_STAT,
	SIM_LIST,
	SIM_CREATE,
	SIM_WRITE,
	SIM_CHMOD,
	SIM_FSYNC, /* of a file or a folder */
	SIM_CLOSE, /* after writing */
	SIM_RENAME,
	SIM_LINK,
	SIM_UNLINK,
	SIM_MKDIR,
	SIM_WATCH,
	SIM_LISTEN,
	SIM_ACCEPT,  /* a connection that came */
	SIM_CONNECT, /* to a socket or an address */
	SIM_CALL,    /* over a connection */
	SIM_REQUEST, /* to the API server */
	SIM_LOOK,    /* at the processes of the machine */
	SIM_QUERY,   /* a statement of the control plane's that only reads */
	SIM_CHANGE,  /* one that doesn't, or a commit */
	SIM_EFFECTS,
};
const char *sim_effect_name(enum sim_effect effect);

/* From now on effects of this process are counted. NULL: of none. */
void sim_faults_watch(struct sim_process *process);
uint64_t sim_faults_count(void);
uint64_t sim_faults_all(void); /* that failed in this world, of whomever */

/* The Nth effect from the watch on fails; for so long, or only once (0). */
void sim_faults_plan(uint64_t at, int64_t lasting_ms);

/* What the watched process logs: does it say what has failed? */
void sim_faults_log(const char *line);

/* What has failed: the effect that was planned, and how many with it. */
struct sim_failed {
	bool happened;
	enum sim_effect effect;
	int error;        /* an errno, or SIM_FAULT_… */
	char target[256]; /* a path or an address */
	int64_t since_ms;
	uint64_t times;
	uint64_t logged; /* lines of the log that say so */
	bool alone;      /* lasting: of its folder nothing else fails */
};
const struct sim_failed *sim_faults_failed(void);

/* One effect on one thing, which failed each time it was tried. A write that did a part has not failed. */
#define SIM_STREAK 3
struct sim_streak {
	enum sim_effect effect;
	int error; /* the last one's */
	char target[256];
	uint64_t times;
	int64_t row_ms, last_ms; /* when it had failed SIM_STREAK times in a row, and last */
};
struct sim_streaks VEC_BODY(struct sim_streak);
const struct sim_streaks *sim_faults_streaks(void); /* those that go on, however short */
/* How much of the path stays when the file is made anew: of a temporary file, or of a plugin's socket. */
size_t sim_faults_stem(const char *path);
bool sim_faults_last(void); /* does it last still? */
void sim_faults_end(void);

/* The disk is full for so long, as this process sees it. */
void sim_faults_fill_disk(struct sim_process *process, int64_t for_ms);

/* Not errnos: how else a call may go wrong. */
#define SIM_FAULT_SILENT 1000 /* no answer comes, ever */
#define SIM_FAULT_REFUSE 1001 /* an answer comes, and says that it failed */
#define SIM_FAULT_SHORT  1002 /* a write does a part only */
const char *sim_fault_text(int error);

/* An effect of the running code is about to happen: 0, or how it fails instead. */
int sim_fault(enum sim_effect effect, const char *target);
int sim_fault_of(const struct sim_process *process, enum sim_effect effect, const char *target);

/* --- a disk that lets one wait --- */

/* Work begins. By chance one of its changes of files will hang: then it must run in a fiber, which stops there. */
bool sim_hang_may_come(const struct sim_process *process);
int64_t sim_hang_ms(void);          /* for so long it stops, from now on */
void sim_hang_at(const char *path); /* such a change is about to be made */
void sim_hang_ends(void);           /* it goes on, or its process dies */
/* What hangs, and since when; NULL: nothing does. */
const char *sim_hang(int64_t *ret_since_ms);
