/*
 * events: XIDs as the driver tells them, on a thread of their own.
 *
 * Owns      the thread and its event set. The thread outlives nothing: it ends with the process.
 * Tells     from its thread, each XID once, and when it could not wait (a GPU fell off the bus): then
 *           is the time to read.
 * Absent    a driver without events leaves the thread out; the kernel log tells XIDs too.
 */
#pragma once

#include "gpu/core/frame.h"
#include "nvml/session.h"

struct events;

struct events_handlers {
	void (*on_xid)(void *arg, const struct frame_xid *xid);
	void (*on_look)(void *arg, const char *why);
};

/* Follows the GPUs of the session's last reading, which are registered at once. NULL: this driver
 * has no events. The session must stay. */
struct events *events_start(const struct session *session, const struct events_handlers *handlers,
			    void *arg);
/* After each further reading: GPUs that came are registered within a second. Takes NULL. */
void events_follow(struct events *events, const struct session *session);
