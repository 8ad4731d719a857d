/*
 * world: what happens to the programs of one run.
 *
 * Happens   by seed: reservations, releases, pods, restarts, power cuts, a network that breaks,
 *           Specs that come too late, sockets that vanish. Then it is calm, and everything must
 * come to rest where it should. Story     a fixed sequence instead: book, run, release, delete,
 * with a crash at one given step; all steps in turn show every crash point.
 */
#pragma once

#include "sim/sim.h"

struct world_options {
	uint64_t seed;
	uint64_t ops;          /* how many things happen */
	uint64_t crash_one_in; /* at each change of a file or database; 0: never */
	bool restores;         /* the database goes back to a backup now and then */
	bool sockets;          /* plugin sockets are deleted again and again */
	bool story;
	uint64_t crash_at; /* the story's: at exactly this step; 0: never */
	enum sim_death crash_kind;
	bool verbose;
};

/* What a run came to. */
struct world_result {
	bool ok;
	char why[512]; /* the first broken invariant */
	uint64_t trace, steps, events;
	int64_t time_ms;
	uint64_t deletions;                /* of pods, by bcd */
	uint64_t outlived;                 /* processes their pods */
	uint64_t pods, bookings, released; /* that there were: a run in which nothing happens proves
					      nothing */
};

struct world_result world_run(const struct world_options *options);
