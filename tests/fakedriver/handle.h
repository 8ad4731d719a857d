/*
 * handle: GPUs and MIG instances as the fake driver's callers hold them, and the form that most of its
 * functions have.
 */
#pragma once

#include "scene.h"

#define API __attribute__((visibility("default")))

/* Of a GPU, or of a MIG instance of it; the same for the same UUIDs, as long as the process lives. */
struct handle {
	char gpu[64], mig[64]; /* mig "": the GPU itself */
};
struct handle *handle_of(const char *gpu, const char *mig);

/* NULL when the array has none with this UUID. */
const json_t *find_uuid(const json_t *array, const char *uuid);
/* The status that stands for all calls on a GPU or MIG instance. */
unsigned forced(const json_t *object, const char *name);

unsigned find_gpu(const struct handle *handle, const json_t **ret_gpu);
unsigned find_mig(const struct handle *handle, const json_t **ret_gpu, const json_t **ret_mig);

/*
 * The body of a function about one GPU or MIG instance: `gpu` and `mig` (NULL for a GPU) may be
 * looked at in it, `status` is what it returns.
 */
#define ON(on, which, ...)                                                                         \
	do {                                                                                       \
		const json_t *gpu = NULL, *mig = NULL;                                             \
		unsigned status = scene_begin(__func__);                                           \
                                                                                                   \
		if (status != NVML_SUCCESS)                                                        \
			return status;                                                             \
		status = which((const struct handle *)(on), &gpu, &mig);                           \
		if (status == NVML_SUCCESS)                                                        \
			__VA_ARGS__;                                                               \
		(void)mig;                                                                         \
		scene_end();                                                                       \
		return status;                                                                     \
	} while (0)

/* Identity is told of GPUs that fail otherwise, and of MIG instances too. */
unsigned any(const struct handle *handle, const json_t **gpu, const json_t **mig);
unsigned gpu_only(const struct handle *handle, const json_t **gpu, const json_t **mig);
unsigned gpu_or_mig(const struct handle *handle, const json_t **gpu, const json_t **mig);

unsigned put_text(char *out, unsigned size, const char *text);
unsigned put_number(const json_t *object, const char *name, unsigned *out);
