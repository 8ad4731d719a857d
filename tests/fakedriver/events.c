/*
 * events: XIDs from the file beside the scene.
 */
#include "handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct set {
	long offset; /* in the file of events */
	const struct handle *devices[64];
	size_t count;
};

static void events_path(char out[512])
{
	snprintf(out, 512, "%s.events", getenv("FAKE_DRIVER"));
}

API unsigned nvmlEventSetCreate(void **set)
{
	unsigned status = scene_begin(__func__);
	struct set *new;
	char path[512];
	FILE *file;

	if (status != NVML_SUCCESS)
		return status;
	new = calloc(1, sizeof *new);
	events_path(path);
	file = fopen(path, "re");
	if (file) {
		fseek(file, 0, SEEK_END);
		new->offset = ftell(file);
		fclose(file);
	}
	*set = new;
	scene_end();
	return NVML_SUCCESS;
}

API unsigned nvmlEventSetFree(void *set)
{
	free(set);
	return NVML_SUCCESS;
}

API unsigned nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types)
{
	ON(device, gpu_only,
	   *types = json_is_false(json_object_get(gpu, "events")) ? 0 : NVML_EVENT_XID);
}

API unsigned nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
	struct set *to = set;

	ON(device, gpu_only, {
		if (json_is_false(json_object_get(gpu, "events")) || types != NVML_EVENT_XID)
			status = NVML_ERROR_NOT_SUPPORTED;
		else if (to->count < 64)
			to->devices[to->count++] = device;
	});
}

/* The registered GPU at this place, or NULL. */
static const struct handle *registered(const struct set *set, const char *pci)
{
	for (size_t i = 0; i < set->count; i++) {
		const json_t *gpu = NULL;
		const char *place;

		find_gpu(set->devices[i], &gpu); /* a lost one has events too */
		if (gpu && scene_text(gpu, "pci", &place) == NVML_SUCCESS &&
		    scene_same_pci(place, pci))
			return set->devices[i];
	}
	return NULL;
}

/* One line; false: it is for nobody here. */
static bool take_line(struct set *set, const char *line, struct nvml_event *event, unsigned *status)
{
	unsigned xid, gi = NVML_NO_INSTANCE, ci = NVML_NO_INSTANCE;
	const struct handle *device;
	char word[64];

	if (sscanf(line, "error %63s", word) == 1) {
		*status = scene_status(word);
		return true;
	}
	if (sscanf(line, "%u %63s %u %u", &xid, word, &gi, &ci) < 2)
		return false;
	device = registered(set, word);
	if (!device)
		return false;
	event->device = (struct nvml_device *)device;
	event->type = NVML_EVENT_XID;
	event->data = xid;
#ifndef OLD_DRIVER
	event->gpu_instance = gi;
	event->compute_instance = ci;
#endif
	*status = NVML_SUCCESS;
	return true;
}

static bool next_event(struct set *set, struct nvml_event *event, unsigned *status)
{
	char path[512], line[256];
	bool taken = false;
	FILE *file;

	events_path(path);
	file = fopen(path, "re");
	if (!file)
		return false;
	fseek(file, set->offset, SEEK_SET);
	while (!taken && fgets(line, sizeof line, file) && strchr(line, '\n')) {
		set->offset = ftell(file);
		taken = take_line(set, line, event, status);
	}
	fclose(file);
	return taken;
}

static unsigned wait_for(const char *function, struct set *set, struct nvml_event *event,
			 unsigned timeout_ms)
{
	struct timespec start, now, tick = {.tv_nsec = 500000};
	long long passed;
	bool taken;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (;;) {
		unsigned status = scene_begin(function);

		if (status != NVML_SUCCESS)
			return status;
		taken = next_event(set, event, &status);
		scene_end();
		if (taken)
			return status;
		clock_gettime(CLOCK_MONOTONIC, &now);
		passed = (now.tv_sec - start.tv_sec) * 1000 +
			 (now.tv_nsec - start.tv_nsec) / 1000000;
		if (passed >= timeout_ms)
			return NVML_ERROR_TIMEOUT;
		nanosleep(&tick, NULL);
	}
}

#ifdef OLD_DRIVER
API unsigned nvmlEventSetWait(void *set, struct nvml_event *event, unsigned timeout_ms)
{
	return wait_for(__func__, set, event, timeout_ms);
}
#else
API unsigned nvmlEventSetWait_v2(void *set, struct nvml_event *event, unsigned timeout_ms)
{
	return wait_for(__func__, set, event, timeout_ms);
}
#endif
