/*
 * smi: asks nvidia-smi, where NVML can't be loaded.
 *
 * Owns      the promise that bcd never waits for it, and that no second one is started beside one
 *           that hangs. A command has a deadline, its output a bound; one that doesn't die when it is
 *           killed is stuck in the kernel: it is left alone, and only its end lets another start.
 * Commands  one for each question, a second where there are MIG instances, whose UUIDs the report
 *           lacks. UUIDs and numbers are of one moment: the report was made between two lists that
 *           are equal. Placements are asked for when the list changed.
 * Errors    of on_failure(): NOT_FOUND: there is no nvidia-smi; else what gpu/core/smi.h says.
 * Threads   the loop's. Callbacks come from the loop, never from inside a call here, and must not
 *           destroy the tool.
 */
#pragma once

#include "gpu/core/smi.h"
#include "sys/loop.h"

#include <sys/types.h>

#define SMI_TOOL_DEADLINE_MS 10000 /* of one command */
#define SMI_TOOL_DEATH_MS    1000  /* a killed process that lives longer is stuck */
#define SMI_TOOL_ATTEMPTS    3     /* while MIG instances change */

struct smi_tool;

struct smi_tool_options {
	const char *program; /* below root; NULL: where a driver has it there */
	const char
		*root; /* the host's; another than "/" becomes the command's own. "/" when NULL */
	int64_t deadline_ms, death_ms; /* 0: as above */
};

struct smi_tool_handlers {
	/* The reading may be taken: leave {0} behind. */
	void (*on_reading)(void *arg, struct reading *reading);
	/* `stuck`: the process can't be killed. Told a second time when that turns out. */
	void (*on_failure)(void *arg, const struct error *error, bool stuck);
};

/* Starts nothing yet. The options' texts are copied. */
struct smi_tool *smi_tool_create(struct loop *loop, const struct smi_tool_options *options,
				 const struct smi_tool_handlers *handlers, void *arg);
void smi_tool_destroy(struct smi_tool *tool); /* kills a command under way */

/* One on_reading() or on_failure() follows. Nothing happens while a command is under way, or stuck. */
void smi_tool_ask(struct smi_tool *tool);

/* 0 when there is none. It has NVIDIA's devices open. */
pid_t smi_tool_pid(const struct smi_tool *tool);
