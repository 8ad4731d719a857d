#include "nvml/look.h"

#include <stdio.h>

void look_error(struct look *look, const char *what, const char *why)
{
	if (!*look->gpu->error)
		snprintf(look->gpu->error, sizeof look->gpu->error, "%s: %s", what, why);
}

/* A driver that can't explain what became of its power or clocks has lost hold of the GPU: there
 * nvidia-smi says ERR!. Elsewhere it may just be a field that this GPU lacks (N05). */
static bool is_vital(const char *what)
{
	static const char *const vitals[] = {"handle", "uuid", "power", "clock"};

	for (size_t i = 0; i < ARRAY_SIZE(vitals); i++)
		if (str_equal(what, vitals[i]))
			return true;
	return false;
}

bool look_got(struct look *look, const char *what, unsigned status)
{
	if (status == NVML_ERROR_UNKNOWN && !is_vital(what))
		return false;
	switch (status) {
	case NVML_SUCCESS:
		return true;
	case NVML_ERROR_NOT_SUPPORTED:
	case NVML_ERROR_FUNCTION_NOT_FOUND:
	case NVML_ERROR_INVALID_ARGUMENT: /* a field that this driver doesn't know */
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
	case NVML_ERROR_DEPRECATED:
	case NVML_ERROR_NOT_FOUND:
	case NVML_ERROR_NO_DATA:
	case NVML_ERROR_NO_PERMISSION:
		return false;
	case NVML_ERROR_UNINITIALIZED:
	case NVML_ERROR_DRIVER_NOT_LOADED:
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
		look->stale = status;
		return false;
	case NVML_ERROR_GPU_IS_LOST:
	case NVML_ERROR_GPU_NOT_FOUND:
		look->gpu->lost = true;
		break;
	case NVML_ERROR_TIMEOUT:
	case NVML_ERROR_IRQ_ISSUE:
	case NVML_ERROR_CORRUPTED_INFOROM:
	case NVML_ERROR_OPERATING_SYSTEM:
	case NVML_ERROR_IN_USE:
	case NVML_ERROR_MEMORY:
	case NVML_ERROR_INSUFFICIENT_RESOURCES:
	case NVML_ERROR_NOT_READY:
		break;
	default: /* NVML_ERROR_RESET_REQUIRED, NVML_ERROR_UNKNOWN, and what is newer */
		look->gpu->needs_reset = true;
		break;
	}
	look_error(look, what, nvml_text(status));
	return false;
}

int64_t look_number(unsigned long long number)
{
	return number <= INT64_MAX ? (int64_t)number : READING_UNKNOWN;
}
