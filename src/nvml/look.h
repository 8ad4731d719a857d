/*
 * look: one GPU while it is read: asks NVML, and judges what each call returned.
 *
 * Absent    what the GPU or its driver doesn't have stays unknown and is no fault.
 * Lost      GPUs are asked no further: each call could take seconds.
 */
#pragma once

#include "gpu/core/reading.h"
#include "nvml/nvml_api.h"

struct look {
	const struct nvml *nvml;
	struct nvml_device *device;
	struct reading_gpu *gpu;
	unsigned
		stale; /* what NVML returned when the driver was unloaded or loaded anew; 0: not so */
};

/* look_ask(look, member, arguments after the device...): true when they were filled. */
#define look_ask(look, member, ...)                                                                \
	((look)->nvml->member && look_goes_on(look) &&                                             \
	 look_got(look, #member, (look)->nvml->member((look)->device, __VA_ARGS__)))

static inline bool look_goes_on(const struct look *look)
{
	return !look->gpu->lost && !look->stale;
}

/* Notes on the GPU what a status other than success means; `what` is for people. */
bool look_got(struct look *look, const char *what, unsigned status);
/* "what: why", unless something was noted before. */
void look_error(struct look *look, const char *what, const char *why);
/* NVML's counters are unsigned; what doesn't fit is unknown. */
int64_t look_number(unsigned long long number);
