/* A session with the fake driver, whose scene a test changes: for what reads GPUs and for what reads their instances. */
#pragma once

#include "nvml/session.h"

#include "lib/fakedriver.h"
#include "lib/folder.h"

extern struct world {
	void *folder; /* folder.h's state */
	json_t *scene;
	struct session session;
	struct reading reading; /* the last one */
} world;

int make(void **state); /* a scene of two GPUs; nothing is open yet */
int drop(void **state);
/* Of the scene as it is now; what was open is closed. */
void open_driver(const char *library);
/* The scene as it is now; valid until the next reading. */
const struct reading *read_scene(void);
void set(size_t gpu, const char *name, json_t *value); /* takes over the value */
void unset(size_t gpu, const char *name);
/* No eighth is of two GPU instances. */
void expect_consistent(const struct reading_gpu *gpu);
