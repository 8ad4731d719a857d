/*
 * sandbox: what this process gives up for good, and its children with it.
 *
 * Each call is one power of its own; a kernel may lack it, and then the error says so. Call them
 * while there is one thread, in the order below: capabilities are dropped while there are some.
 * better-compute, which needs its other powers, gives up the first alone.
 * Errors    UNAVAILABLE, or the system's: that power is as it was.
 * Threads   before there is a second one.
 */
#pragma once

#include "base/error.h"

/* What it has in memory, keys among it, is in no core dump when it crashes, nor what its children have. */
MUST_CHECK bool sandbox_dumps(struct error *error);

/* No program that it starts gets more than it has itself: setuid and file capabilities count for nothing. */
MUST_CHECK bool sandbox_privileges(struct error *error);

/* The highest capability that the kernel knows; -1: it doesn't say. */
int32_t sandbox_last_capability(void);
/* Keeps, of those that there are, `keep` (bit N for number N); `*ret_kept` is what is left. */
MUST_CHECK bool sandbox_capabilities(uint64_t keep, uint64_t *ret_kept, struct error *error);

/* Is this the first process of its PID namespace? Then every other one that it sees is its child. */
bool sandbox_is_first(void);
/* From now on files are made, changed and removed below `folders` (NULL-ended) only, and no other
 * process's memory or descriptors can be looked at. Of a folder that isn't there yet: below the
 * nearest one that is. Wants sandbox_privileges() first. */
MUST_CHECK bool sandbox_files(const char *const *folders, struct error *error);

/* System calls by name; names that this machine lacks are skipped. `refused` answer EPERM, and so
 * does clone() into new namespaces; what stands in neither list answers ENOSYS, as clone3() does, whose
 * flags can't be looked at. Sockets are of unix, IPv4, IPv6 and netlink. Wants sandbox_privileges() first. */
MUST_CHECK bool sandbox_calls(const char *const *allowed, size_t allowed_count,
			      const char *const *refused, size_t refused_count,
			      struct error *error);
