/*
 * klog: the shell of gpu/core/klog.h: follows the kernel's log for what it says of GPUs.
 *
 * Reads     /dev/kmsg, from the first record that the kernel still has; in tests also a fifo, or a
 *           file that others append to and close. What is there already is read by klog_create(), up
 *           to 16 MiB of it, or 32768 records of /dev/kmsg; of a log that grows faster than it is read
 *           only so much at a time that others have their turn.
 * Lost      records that the kernel overwrote before they were read are told by `on_lost`: what they
 *           said must be asked of the driver.
 * Failing   a log that can't be opened is tried again at each klog_look().
 * Threads   the loop's. Callbacks come from the loop, from klog_create() and from klog_look(), and
 *           must not destroy the log.
 * Tests     tests/unit/gpu/klog_test.c
 */
#pragma once

#include "gpu/core/klog.h"
#include "sys/loop.h"

struct klog;

struct klog_handlers {
	void (*on_event)(void *arg, const struct klog_event *event); /* never KLOG_NOTHING */
	void (*on_lost)(void *arg);
};

/* Records up to number `after` are known already; 0: none is. */
struct klog *klog_create(struct loop *loop, const char *path, uint64_t after,
			 const struct klog_handlers *handlers, void *arg);
void klog_destroy(struct klog *log);

/* Opens the log if it isn't open, or is another file than before. */
void klog_look(struct klog *log);
const struct error *klog_error(const struct klog *log); /* NULL: it is followed */
