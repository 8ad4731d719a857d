/*
 * scene: the JSON file that the fake driver speaks from (README.md), and what a call goes through
 * before it answers.
 *
 * scene_begin() returns with the scene locked, and scene_end() lets it go; all pointers into the
 * scene are valid in between.
 */
#pragma once

#include "nvml/nvml_api.h"

#include <jansson.h>
#include <stdbool.h>

/* NVML's number for a name such as "GPU_IS_LOST"; NVML_ERROR_UNKNOWN for one that is none. */
unsigned scene_status(const char *name);

/* A call of this name: hangs, takes its time, or fails as the scene says; locked only if it
 * returns NVML_SUCCESS. */
unsigned scene_begin(const char *function);
void scene_end(void);

/* nvmlInit(): the driver of this moment is ours from now on. Not locked after it. */
unsigned scene_init(const char *function);

/* The root, or NULL: no file. */
json_t *scene_root(void);

/* A member that is a number, or the status that stands in its place. */
unsigned scene_number(const json_t *object, const char *name, long long *ret_number);
long long scene_number_or(const json_t *object, const char *name, long long otherwise);
unsigned scene_text(const json_t *object, const char *name, const char **ret_text);

/* Same place, however each is written? */
bool scene_same_pci(const char *a, const char *b);
