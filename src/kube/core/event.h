/*
 * event: Kubernetes Events (core v1) of what bcd does to somebody's pod or node, and which of many
 * equal ones are worth a call.
 *
 * Owns      the memory of what was told lately: the first of a kind makes an Event, its
 *           repetitions raise that Event's count, told no more often than KUBE_EVENT_PAUSE_MS;
 *           after KUBE_EVENT_FORGET_MS without one the next makes a new Event.
 * Bounds    KUBE_EVENT_MEMORY kinds are remembered (the longest unused goes), at most
 *           KUBE_EVENT_BURST calls at once and one in KUBE_EVENT_REFILL_MS from then on.
 * Pure      times are arguments. kube/events.h sends.
 * Source    v1.Event. Not events.k8s.io: a node may write there only in newer versions (1.34.4
 *           answers 403, 1.37.2 allows it), and both are the same objects. Reason and action are
 *           words in CamelCase; the note is at most 1024 bytes, as Kubernetes' own components keep
 *           it.
 * Tests     tests/unit/kube/core/event_test.c, tests/peer/kube
 */
#pragma once

#include "kube/core/request.h"

#define KUBE_EVENT_MEMORY    128
#define KUBE_EVENT_PAUSE_MS  60000
#define KUBE_EVENT_FORGET_MS 360000
#define KUBE_EVENT_BURST     20
#define KUBE_EVENT_REFILL_MS 2000
#define KUBE_EVENT_NAME_SIZE 254
#define KUBE_EVENT_NOTE_MAX  1024
#define KUBE_EVENT_UID_SIZE  64

/* What has happened, to whom. Texts are borrowed. */
struct kube_event {
	struct kube_ref regarding;
	const char *uid;    /* of that object; "" if unknown */
	bool warning;       /* else Normal */
	const char *reason; /* why, for machines: "DeviceReleased" */
	const char *action; /* what was done: "Delete" */
	const char *note;   /* for people; cut at KUBE_EVENT_NOTE_MAX */
};

/* Who tells. */
struct kube_reporter {
	const char *component; /* "bcd" */
	const char *node;
};

struct kube_event_memory;
struct kube_event_memory *kube_event_memory_create(void);
void kube_event_memory_destroy(struct kube_event_memory *memory);

enum kube_event_step {
	KUBE_EVENT_QUIET, /* nothing to send now */
	KUBE_EVENT_MAKE,  /* send kube_event_create() */
	KUBE_EVENT_COUNT, /* send kube_event_count() */
};

struct kube_event_plan {
	enum kube_event_step step;
	char namespace[KUBE_EVENT_UID_SIZE]; /* that the Event is in */
	char name[KUBE_EVENT_NAME_SIZE];
	int64_t count; /* how often it has happened, the first included */
};

/* Notes one that happens now and says what to send. `random` makes a new Event's name unique. */
struct kube_event_plan kube_event_note(struct kube_event_memory *memory,
				       const struct kube_event *event, struct mono now,
				       uint64_t random);
/* Its Event wasn't made, or is gone: the next one makes it anew. */
void kube_event_forget(struct kube_event_memory *memory, const char *name);

struct kube_request kube_event_create(const struct kube_event_plan *plan,
				      const struct kube_event *event,
				      const struct kube_reporter *reporter, struct wall now);
struct kube_request kube_event_count(const struct kube_event_plan *plan, struct wall now);

/* As Kubernetes writes a Time (utc.h), also with a fraction, which is dropped, or an offset. */
MUST_CHECK bool kube_time_parse(const char *text, struct wall *ret_time);
