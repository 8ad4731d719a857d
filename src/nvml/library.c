#include "nvml/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
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

/* `name` is what dlopen() takes, `path` what people know it by. */
static bool open_library(const char *name, const char *path, struct nvml *ret_nvml,
			 struct error *error)
{
	struct nvml nvml = {.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
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

/* A link in another root folder means a place in there. -1 with errno. */
static int open_in(const char *root, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (folder < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
	if (fd < 0 && errno == ENOSYS) /* kernels before 5.6 */
		fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	close(folder);
	return fd;
}

/* A file that is there but can't be loaded is the answer: another one would not be the driver's. */
static bool open_below(const char *root, struct nvml *ret_nvml, struct error *error)
{
	char path[128], name[32], full[512];

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		bool ok;
		int fd;

		snprintf(path, sizeof path, "%s/" SONAME, folders[i]);
		fd = open_in(root, path);
		if (fd < 0)
			continue;
		snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
		snprintf(full, sizeof full, "%s/%s", str_equal(root, "/") ? "" : root, path);
		ok = open_library(name, full, ret_nvml, error);
		close(fd);
		return ok;
	}
	error_set(error, ERROR_NOT_FOUND, "find " SONAME " below '%s': there is none", root);
	error_hint(error, "Install NVIDIA's driver.");
	return false;
}

bool library_load(const char *path, const char *root, struct nvml *ret_nvml, struct error *error)
{
	if (path) {
		if (access(path, F_OK) == 0)
			return open_library(path, path, ret_nvml, error);
		return error_set(error, ERROR_NOT_FOUND, "load '%s': there is no such file", path);
	}
	if (str_equal(root, "/") && open_library(SONAME, SONAME, ret_nvml, error))
		return true;
	return open_below(root, ret_nvml, error);
}
