/*
 * klog: one record of the kernel's log, and what it says of a GPU.
 *
 * A record is a line as /dev/kmsg gives it: "prio,sequence,microseconds,flags;text", control bytes
 * escaped; lines that begin with a space continue it and are not looked at.
 * Believed  only what the kernel itself wrote (facility 0): a program that writes into the log gets
 *           another facility, whatever it asks for. Never the record's time: clocks drift (N04).
 * Pure.
 * Tests     tests/unit/gpu/core/klog_test.c; fuzz/klog_fuzz.c
 */
#pragma once

#include "gpu/core/inventory.h"

#define KLOG_RECORD_SIZE 16384 /* the kernel's longest, with its dictionary, and room */

enum klog_kind {
	KLOG_NOTHING, /* of GPUs */
	KLOG_XID,
	KLOG_RESET,  /* the GPU was reset */
	KLOG_LOADED, /* the driver was loaded: all that came before is over */
};

struct klog_event {
	enum klog_kind kind;
	uint64_t sequence;            /* counts the records of this boot */
	char pci[INVENTORY_PCI_SIZE]; /* XID, RESET: "000f:01:00.0" */
	int32_t xid;
	bool nonfatal;  /* XID: the driver calls it so */
	bool advised;   /* XID 154: the driver asks for something */
	bool recovered; /* XID 154: it asks for nothing any more */
};

/* One record, without its line end. False: it is none, *ret_event untouched. */
bool klog_parse(const char *record, size_t length, struct klog_event *ret_event);
