/*
 * leap: clocks that a test moves on: the program's own and libuv's, and those of all libraries (header only; one file of
 * a program includes it).
 */
#pragma once

#include "base/base.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t leapt_ms; /* over all that a test did */

/* Also libuv's, and the kernel's own for whatever else is asked. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *time)
{
	int64_t leapt = leapt_ms;
	long done = syscall(SYS_clock_gettime, id, time);

	if (done != 0 || (id != CLOCK_REALTIME && id != CLOCK_MONOTONIC && id != CLOCK_BOOTTIME &&
			  id != CLOCK_REALTIME_COARSE && id != CLOCK_MONOTONIC_COARSE))
		return (int)done;
	time->tv_sec += leapt / 1000;
	time->tv_nsec += leapt % 1000 * 1000000;
	if (time->tv_nsec >= 1000000000) {
		time->tv_nsec -= 1000000000;
		time->tv_sec++;
	}
	return 0;
}
