#include "nvml/events.h"

#include <pthread.h>
#include <time.h>

#define WAIT_MS  1000 /* then GPUs that came meanwhile are registered */
#define PAUSE_MS 1000 /* after a wait that failed */
#define MAX_GPUS INVENTORY_MAX_GPUS

struct follower {
	struct session_gpu gpu;
	bool registered;
};

struct events {
	const struct nvml *nvml;
	struct events_handlers handlers;
	void *arg;
	struct nvml_event_set *set; /* the thread's */
	pthread_mutex_t lock;       /* of what follows */
	struct follower followers[MAX_GPUS];
	size_t count;
};

static struct follower *find(struct events *events, const struct nvml_device *device)
{
	for (size_t i = 0; i < events->count; i++)
		if (events->followers[i].gpu.device == device)
			return &events->followers[i];
	return NULL;
}

void events_follow(struct events *events, const struct session *session)
{
	if (!events)
		return;
	pthread_mutex_lock(&events->lock);
	vec_each (&session->gpus, const struct session_gpu *gpu) {
		struct follower *follower = gpu->device ? find(events, gpu->device) : NULL;

		if (!gpu->device || (!follower && events->count == MAX_GPUS))
			continue;
		if (!follower)
			follower = &events->followers[events->count++];
		follower->gpu = *gpu;
		follower->registered &= gpu->answers; /* what it had is gone when it returns */
	}
	pthread_mutex_unlock(&events->lock);
}

/* --- the thread --- */

static void pause_ms(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

/* A GPU that has no events is tried once. */
static void register_new(struct events *events)
{
	struct nvml_device *devices[MAX_GPUS];
	size_t count = 0;

	pthread_mutex_lock(&events->lock);
	for (size_t i = 0; i < events->count; i++) {
		if (events->followers[i].registered)
			continue;
		events->followers[i].registered = true;
		devices[count++] = events->followers[i].gpu.device;
	}
	pthread_mutex_unlock(&events->lock);
	for (size_t i = 0; i < count; i++)
		events->nvml->events_register(devices[i], NVML_EVENT_XID, events->set);
}

static void tell(struct events *events, const struct nvml_event *event)
{
	struct frame_xid xid = {.gi = -1, .ci = -1};
	struct follower *follower;

	if (event->type != NVML_EVENT_XID || event->data > FRAME_MAX_XID)
		return;
	xid.xid = (int32_t)event->data;
	if (event->gpu_instance <= ATOM_MAX_NUMBER)
		xid.gi = (int32_t)event->gpu_instance;
	if (event->compute_instance <= ATOM_MAX_NUMBER)
		xid.ci = (int32_t)event->compute_instance;
	pthread_mutex_lock(&events->lock);
	follower = find(events, event->device);
	if (follower) {
		xid.has_uuid = true;
		xid.uuid = follower->gpu.uuid;
		memcpy(xid.pci, follower->gpu.pci, sizeof xid.pci);
	}
	pthread_mutex_unlock(&events->lock);
	if (follower)
		events->handlers.on_xid(events->arg, &xid);
	else
		events->handlers.on_look(events->arg, "an XID of a GPU that is not known");
}

/* A new set, and everybody registers again. */
static bool renew(struct events *events)
{
	if (events->set)
		events->nvml->events_free(events->set);
	events->set = NULL;
	if (events->nvml->events_create(&events->set) != NVML_SUCCESS)
		return false;
	pthread_mutex_lock(&events->lock);
	for (size_t i = 0; i < events->count; i++)
		events->followers[i].registered = false;
	pthread_mutex_unlock(&events->lock);
	return true;
}

static void wait_once(struct events *events)
{
	struct nvml_event event = {.gpu_instance = NVML_NO_INSTANCE,
				   .compute_instance = NVML_NO_INSTANCE};
	unsigned status = events->nvml->events_wait(events->set, &event, WAIT_MS);

	switch (status) {
	case NVML_SUCCESS:
		tell(events, &event);
		return;
	case NVML_ERROR_TIMEOUT:
		return;
	default:
		events->handlers.on_look(events->arg, nvml_text(status));
		do
			pause_ms(PAUSE_MS);
		while (!renew(events));
	}
}

static NORETURN void *run(void *arg)
{
	struct events *events = arg;

	for (;;) {
		wait_once(events);
		register_new(events);
	}
}

struct events *events_start(const struct session *session, const struct events_handlers *handlers,
			    void *arg)
{
	const struct nvml *nvml = &session->nvml;
	struct events *events;
	pthread_t thread;

	if (!nvml->events_create || !nvml->events_free || !nvml->events_register ||
	    !nvml->events_wait)
		return NULL;
	events = mem_alloc(sizeof *events);
	*events = (struct events){.nvml = nvml, .handlers = *handlers, .arg = arg};
	pthread_mutex_init(&events->lock, NULL);
	events_follow(events, session);
	if (!renew(events)) {
		free(events);
		return NULL;
	}
	register_new(events);
	if (pthread_create(&thread, NULL, run, events) != 0) {
		nvml->events_free(events->set);
		free(events);
		return NULL;
	}
	pthread_detach(thread);
	return events;
}
