#include "nvml/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#define SONAME "libnvidia-ml.so.1"

/* Where distributions and NVIDIA's driver container put it. */
static const char *const folders[] = {
	"usr/lib64",
	"usr/lib/x86_64-linux-gnu",
	"usr/lib/aarch64-linux-gnu",
	"lib64",
	"lib/x86_64-linux-gnu",
	"lib/aarch64-linux-gnu",
	"usr/lib/nvidia",
	"usr/lib",
	"opt/nvidia/lib64",
	"home/kubernetes/bin/nvidia/lib64",
	"run/nvidia/driver/usr/lib64",
	"run/nvidia/driver/usr/lib/x86_64-linux-gnu",
	"run/nvidia/driver/usr/lib/aarch64-linux-gnu",
};

const char *nvml_text(unsigned status)
{
	switch (status) {
	case NVML_SUCCESS:
		return "success";
	case NVML_ERROR_UNINITIALIZED:
		return "the driver was loaded anew";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "invalid argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "not supported";
	case NVML_ERROR_NO_PERMISSION:
		return "no permission";
	case NVML_ERROR_NOT_FOUND:
		return "not found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "text too long";
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "the driver is not loaded";
	case NVML_ERROR_TIMEOUT:
		return "timeout";
	case NVML_ERROR_IRQ_ISSUE:
		return "interrupts don't arrive";
	case NVML_ERROR_FUNCTION_NOT_FOUND:
		return "function not found";
	case NVML_ERROR_CORRUPTED_INFOROM:
		return "corrupted infoROM";
	case NVML_ERROR_GPU_IS_LOST:
		return "GPU is lost";
	case NVML_ERROR_RESET_REQUIRED:
		return "GPU requires reset";
	case NVML_ERROR_OPERATING_SYSTEM:
		return "blocked by the operating system";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
		return "driver and library are of different versions";
	case NVML_ERROR_IN_USE:
		return "GPU in use";
	case NVML_ERROR_MEMORY:
		return "out of memory";
	case NVML_ERROR_NO_DATA:
		return "no data";
	case NVML_ERROR_INSUFFICIENT_RESOURCES:
		return "insufficient resources";
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
		return "argument of another version";
	case NVML_ERROR_DEPRECATED:
		return "deprecated";
	case NVML_ERROR_NOT_READY:
		return "not ready";
	case NVML_ERROR_GPU_NOT_FOUND:
		return "GPU not found";
	default:
		return "unknown error";
	}
}

/* NULL when neither is there. */
static void *find(void *handle, const char *newest, const char *older)
{
	void *function = dlsym(handle, newest);

	return function || !older ? function : dlsym(handle, older);
}

static bool take_functions(struct nvml *nvml, const char *path, struct error *error)
{
	const char *missing = NULL;

#define TAKE_FUNCTION(member, arguments, newest, older)                                            \
	*(void **)&nvml->member = find(nvml->handle, newest, older);
#define NOTE_MISSING(member, arguments, newest, older)                                             \
	if (!nvml->member)                                                                         \
		missing = newest;
	NVML_REQUIRED(TAKE_FUNCTION)
	NVML_OPTIONAL(TAKE_FUNCTION)
	NVML_REQUIRED(NOTE_MISSING)
#undef TAKE_FUNCTION
#undef NOTE_MISSING
	if (!missing)
		return true;
	return error_set(error, ERROR_UNAVAILABLE, "load '%s': it has no %s", path, missing);
}

static bool open_library(const char *path, struct nvml *ret_nvml, struct error *error)
{
	struct nvml nvml = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
	const char *why;

	if (!nvml.handle) {
		why = dlerror();
		return error_set(error, ERROR_UNAVAILABLE, "load '%s': %s", path,
				 why ? why : "no reason given");
	}
	if (!take_functions(&nvml, path, error)) {
		dlclose(nvml.handle);
		return false;
	}
	*ret_nvml = nvml;
	return true;
}

/* A file that is there but can't be loaded is the answer: another one would not be the driver's. */
static bool open_below(const char *root, struct nvml *ret_nvml, struct error *error)
{
	char path[512];

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof path, "%s/%s/" SONAME, root, folders[i]);
		if (access(path, F_OK) == 0)
			return open_library(path, ret_nvml, error);
	}
	error_set(error, ERROR_NOT_FOUND, "find " SONAME " below '%s': there is none",
		  *root ? root : "/");
	error_hint(error, "Install NVIDIA's driver.");
	return false;
}

bool library_load(const char *path, const char *root, struct nvml *ret_nvml, struct error *error)
{
	bool own = str_equal(root, "/") || !*root;

	if (path) {
		if (access(path, F_OK) == 0)
			return open_library(path, ret_nvml, error);
		return error_set(error, ERROR_NOT_FOUND, "load '%s': there is no such file", path);
	}
	if (own && open_library(SONAME, ret_nvml, error))
		return true;
	return open_below(own ? "" : root, ret_nvml, error);
}
