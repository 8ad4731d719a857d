/*
 * library: the driver's libnvidia-ml.so.1, found and loaded at run time.
 *
 * Owns      the one dlopen of the program. bcd itself never has the library mapped: only its child
 *           calls this.
 * Old       drivers lack newer functions: an older form takes their place, else the member is NULL
 *           and what it tells is unknown.
 * Errors    NOT_FOUND: there is no such library here; UNAVAILABLE: it is no NVML that we can use.
 */
#pragma once

#include "base/error.h"
#include "nvml/nvml_api.h"

/* `path`: this file and no other; NULL: wherever a driver lies below `root`, "/" being this system
 * itself, where the dynamic linker looks first. Stays loaded until the process ends. */
MUST_CHECK bool library_load(const char *path, const char *root, struct nvml *ret_nvml,
			     struct error *error);
