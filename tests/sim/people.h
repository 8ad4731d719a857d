/*
 * people: what people do with the programs: they reserve GPUs, release them, make pods and delete them.
 *
 * Pods      are the stand-in's, which is asked as the kubelet's own process, when it is there.
 */
#pragma once

#include "sim/sim.h"

struct booking {
	char *id;
	const char *class;
	bool over; /* in the calm: nothing becomes of it any more */
};

struct people {
	VEC(struct booking) bookings; /* that were granted */
	uint64_t pods;                /* "pod-1" to this one were made */
	uint64_t booked, released;    /* how often that was done */
};
extern struct people people;

void people_end(void);

/* From now on, or from `start_in_ms` on: bookings may follow each other on one GPU. Its id, valid until the
 * end; NULL: refused. Only while a replica serves. */
const char *people_reserve(const char *class, uint64_t count, int minutes, int64_t start_in_ms);
void people_release(const char *id);
/* All that is booked yet, or to come. */
void people_release_all(void);

void people_run_pod(const char *class, uint64_t count, bool bound, bool stubborn);
void people_run_static_pod(void);
void people_remove_manifest(void); /* of the last pod */
void people_delete_pod(uint64_t number);
void people_force_pod(uint64_t number); /* at the API server */
