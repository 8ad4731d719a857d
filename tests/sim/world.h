/*
 * world: what happens to the programs of one run.
 *
 * Step      is one event that the world carries out in the storm: a message that arrives, a timer or
 *           a deferred turn of a program, work done, something that people do or that goes wrong.
 * Happens   by seed: reservations, releases, pods, restarts, power cuts, a network that breaks,
 *           Specs that come too late, sockets that vanish. Then it is calm, and everything must
 *           come to rest where it should.
 * Story     a fixed sequence instead: book, run, release, delete, with a crash at one given point; all
 *           of them in turn show every crash point.
 */
#pragma once

#include "sim/sim.h"

struct world_options {
	uint64_t seed;
	uint64_t steps;        /* events in the storm */
	uint64_t crash_one_in; /* at each change of a file or database; 0: never */
	bool cold;             /* as the world was prepared */
	bool restores;         /* the database goes back to a backup now and then */
	bool sockets;          /* plugin sockets are deleted again and again */
	bool kubelets; /* the kubelet is restarted again and again, and hears late of its pods */
	bool vanish;   /* in a pod; pods come and go while bcd is refused, again and again */
	bool clocks;   /* they leap again and again */
	bool lost;     /* the node's state is lost while pods end, again and again */
	bool story;
	bool calm; /* from the first */
	bool in_pod; /* programs.in_pod; else half of the runs are, but for calm ones and those that lose its state */
	uint64_t crash_at; /* the story's: at exactly this crash point; 0: never */
	enum sim_death crash_kind;
	bool verbose;
};

/* What a run came to. */
struct world_result {
	bool ok;
	char why[512]; /* the first broken invariant */
	uint64_t trace;
	uint64_t steps;  /* events in the storm */
	uint64_t events; /* with the calm's */
	int64_t time_ms;
	/* A run in which nothing happens proves nothing. */
	uint64_t crash_points; /* passed: changes of files, and commits */
	uint64_t deaths;       /* of processes */
	uint64_t bookings, releases;
	uint64_t pods;      /* that ran on devices */
	uint64_t deletions; /* of pods, by bcd */
	uint64_t outlived;  /* processes their pods */
};

/* A world in which everything is set up, the same for every seed. `cold`: and nothing has run yet;
 * else all programs have started and met. */
void world_prepare(bool cold);

/* One run of the prepared world, which is used up. */
struct world_result world_run(const struct world_options *options);
void world_end(void);

/* --- its parts, for who tells a story of their own (effects.c) --- */

/* A cold world without a plan: what happens is done by the caller. */
void world_open(const struct world_options *options);
void world_turn(void);                 /* the next event, and a look at what must hold */
struct world_result world_close(void); /* and ends it */
