/*
 * sim: one world under one seed: simulated time, machines, processes, and an ordered queue of
 * events.
 *
 * Cut       the product's shells are linked as they are; this folder's sim_*.c stand in for src/sys
 *           and for the transports of src/rpc behind the same headers. sys/durable*.c are the
 *           real ones, on a simulated file system (sim_fs.h).
 * One seed  is one run: time is the queue's, randomness is the seed's, nothing else is asked. The
 *           same seed gives the same trace.
 * Crashes   at every point that changes a file, a process may die (SIGKILL) or its machine lose
 * power (what was not synced is lost, torn or kept by chance). A process that dies inside a call
 *           runs on as a zombie until it returns to the queue: its effects do nothing.
 * State     one world at a time, in the static `sim`.
 */
#pragma once

#include "base/buf.h"
#include "base/vec.h"
#include "sys/loop.h"

enum sim_death {
	SIM_ALIVE,
	SIM_KILLED,    /* the process only: the file system is as it was seen */
	SIM_POWER_CUT, /* the machine: every process on it, and what was not synced */
};

struct sim_machine {
	const char *name;
	bool has_disk; /* the simulated file system is its */
	int64_t booted_ms;
	uint64_t boot;    /* counts boots; makes the boot id */
	int64_t wrong_ms; /* how far its wall clock is ahead of the true time */
};

/* A program that can die and be started again. */
struct sim_process {
	const char *name;
	struct sim_machine *machine;
	void (*start)(struct sim_process *process);   /* makes its loop and its objects */
	void (*destroy)(struct sim_process *process); /* frees them; effects are dead by then */
	void (*died)(struct sim_process *process, enum sim_death death);
	void *data;
	bool running;
	enum sim_death dying; /* told by a crash point; buried when control returns to the queue */
	uint64_t life;        /* counts starts; events of an earlier life are dropped */
	int64_t frozen_until_ms; /* what comes until then waits for it; its clocks go on */
	bool cut_off;            /* from the network */
	bool database_away;      /* each transaction of it fails */
	struct loop *loop;       /* the one it made */
};

typedef void sim_fn(void *arg);

struct sim_event {
	int64_t at_ms;
	uint64_t order;
	struct sim_process *process; /* NULL: the world's own */
	uint64_t life;
	sim_fn *fn; /* NULL: cancelled */
	void *arg;
	bool is_work; /* a loop_work(): finished even when its process dies */
	bool thawed;  /* it has waited for its frozen process */
};

struct sim {
	uint64_t random[4];
	int64_t now_ms;
	uint64_t order;
	struct sim_event **events; /* a heap */
	size_t count, capacity;
	struct sim_process *current; /* whose code runs now; NULL: the world's */
	struct sim_process *last;    /* whose event the last step was */
	struct sim_machine
		*clock; /* whose wall clock the world's own calls see; NULL: a true one */
	VEC(struct sim_process *) processes;
	bool verbose;
	uint64_t trace;            /* a hash over everything that happened */
	uint64_t crash_points;     /* changes of files so far */
	uint64_t crash_at;         /* die at this one; 0: never */
	uint64_t crash_one_in;     /* die at any of them with this chance; 0: never */
	uint64_t deaths;           /* of processes */
	enum sim_death crash_kind; /* for crash_at; SIM_ALIVE: by chance */
	bool calm;                 /* no crashes, cuts or delays by chance any more */
	char broken[512];          /* the first broken invariant; "" while all hold */
};
extern struct sim sim;

void sim_begin(void);
/* From here on randomness is this seed's, and the trace begins. */
void sim_seed(uint64_t seed);
void sim_end(void);

uint64_t sim_below(uint64_t bound);  /* uniform in [0, bound) */
bool sim_chance(uint64_t one_in);    /* false when calm */
int64_t sim_delay(int64_t usual_ms); /* 0 to usual_ms, now and then a hundred times that */

struct wall sim_true_wall(void); /* what a clock that is right says */

/* --- the queue --- */

struct sim_event *sim_schedule(struct sim_process *process, int64_t delay_ms, sim_fn *fn,
			       void *arg);
void sim_cancel(struct sim_event *event); /* NULL is fine; before it ran */
bool sim_step(void); /* runs the next event and what it deferred; false: there is none */

/* --- processes --- */

void sim_process_add(struct sim_process *process);
void sim_process_start(struct sim_process *process);
void sim_process_kill(struct sim_process *process, enum sim_death death);
void sim_machine_cut(struct sim_machine *machine); /* power */
/* As by SIGSTOP, or a paused virtual machine. */
void sim_process_freeze(struct sim_process *process, int64_t for_ms);

/* Does the running code have effects? False for a zombie. */
bool sim_effective(void);

/* A change of a file is about to happen: counts it, and may let the process die of it. True: it
 * died, and the change must not happen. */
bool sim_crash_point(const char *what, const char *path);

/* --- telling --- */

/* Goes into the trace's hash, and to stdout when verbose. */
void sim_trace(const char *format, ...) PRINTF(1, 2);
/* An invariant is broken; the first one is kept. */
void sim_broken(const char *format, ...) PRINTF(1, 2);
