#include "handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HANDLES 4096

static struct handle *handles[MAX_HANDLES];
static size_t handle_count;

struct handle *handle_of(const char *gpu, const char *mig)
{
	struct handle *handle;

	for (size_t i = 0; i < handle_count; i++)
		if (strcmp(handles[i]->gpu, gpu) == 0 && strcmp(handles[i]->mig, mig) == 0)
			return handles[i];
	if (handle_count == MAX_HANDLES)
		abort();
	handle = calloc(1, sizeof *handle);
	snprintf(handle->gpu, sizeof handle->gpu, "%s", gpu);
	snprintf(handle->mig, sizeof handle->mig, "%s", mig);
	handles[handle_count++] = handle;
	return handle;
}

const json_t *find_uuid(const json_t *array, const char *uuid)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *item = json_array_get(array, i);

		if (strcmp(json_string_value(json_object_get(item, "uuid")), uuid) == 0)
			return item;
	}
	return NULL;
}

unsigned forced(const json_t *object, const char *name)
{
	const char *status = json_string_value(json_object_get(object, name));

	return status ? scene_status(status) : NVML_SUCCESS;
}

unsigned find_gpu(const struct handle *handle, const json_t **ret_gpu)
{
	const json_t *gpu = find_uuid(json_object_get(scene_root(), "gpus"), handle->gpu);

	if (!gpu)
		return NVML_ERROR_GPU_IS_LOST;
	*ret_gpu = gpu;
	return forced(gpu, "handle");
}

unsigned find_mig(const struct handle *handle, const json_t **ret_gpu, const json_t **ret_mig)
{
	unsigned status = find_gpu(handle, ret_gpu);

	if (status != NVML_SUCCESS)
		return status;
	*ret_mig = *handle->mig ? find_uuid(json_object_get(*ret_gpu, "mig"), handle->mig) : NULL;
	if (!*ret_mig)
		return *handle->mig ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
	return forced(*ret_mig, "calls");
}

unsigned any(const struct handle *handle, const json_t **gpu, const json_t **mig)
{
	return *handle->mig ? find_mig(handle, gpu, mig) : find_gpu(handle, gpu);
}

unsigned gpu_only(const struct handle *handle, const json_t **gpu,
		  const json_t **mig __attribute__((unused)))
{
	unsigned status = find_gpu(handle, gpu);

	if (status == NVML_SUCCESS)
		status = forced(*gpu, "calls");
	return status == NVML_SUCCESS && *handle->mig ? NVML_ERROR_NOT_SUPPORTED : status;
}

unsigned gpu_or_mig(const struct handle *handle, const json_t **gpu, const json_t **mig)
{
	return *handle->mig ? find_mig(handle, gpu, mig) : gpu_only(handle, gpu, mig);
}

unsigned put_text(char *out, unsigned size, const char *text)
{
	if (strlen(text) >= size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(out, text);
	return NVML_SUCCESS;
}

unsigned put_number(const json_t *object, const char *name, unsigned *out)
{
	long long number;
	unsigned status = scene_number(object, name, &number);

	if (status == NVML_SUCCESS)
		*out = (unsigned)number;
	return status;
}
