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

static const struct {
	unsigned status;
	const char *text;
} texts[] = {
	{NVML_SUCCESS, "success"},
	{NVML_ERROR_UNINITIALIZED, "the driver was loaded anew"},
	{NVML_ERROR_INVALID_ARGUMENT, "invalid argument"},
	{NVML_ERROR_NOT_SUPPORTED, "not supported"},
	{NVML_ERROR_NO_PERMISSION, "no permission"},
	{NVML_ERROR_NOT_FOUND, "not found"},
	{NVML_ERROR_INSUFFICIENT_SIZE, "text too long"},
	{NVML_ERROR_DRIVER_NOT_LOADED, "the driver is not loaded"},
	{NVML_ERROR_TIMEOUT, "timeout"},
	{NVML_ERROR_IRQ_ISSUE, "interrupts don't arrive"},
	{NVML_ERROR_FUNCTION_NOT_FOUND, "function not found"},
	{NVML_ERROR_CORRUPTED_INFOROM, "corrupted infoROM"},
	{NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
	{NVML_ERROR_RESET_REQUIRED, "GPU requires reset"},
	{NVML_ERROR_OPERATING_SYSTEM, "blocked by the operating system"},
	{NVML_ERROR_LIB_RM_VERSION_MISMATCH, "driver and library are of different versions"},
	{NVML_ERROR_IN_USE, "GPU in use"},
	{NVML_ERROR_MEMORY, "out of memory"},
	{NVML_ERROR_NO_DATA, "no data"},
	{NVML_ERROR_INSUFFICIENT_RESOURCES, "insufficient resources"},
	{NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "argument of another version"},
	{NVML_ERROR_DEPRECATED, "deprecated"},
	{NVML_ERROR_NOT_READY, "not ready"},
	{NVML_ERROR_GPU_NOT_FOUND, "GPU not found"},
};

const char *nvml_text(unsigned status)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "unknown error";
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
