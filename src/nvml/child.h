/*
 * child: the process that speaks to NVML, so that a driver that hangs or crashes is not bcd's end.
 *
 * Speaks    gpu/core/frame.h over one socket. Waits for a question, and answers it; XIDs come when they
 *           come. It never decides anything and keeps nothing.
 * Holds     NVIDIA's devices open, as every user of NVML: while it lives no GPU can be reset and the
 *           driver can't be unloaded. On a machine without persistence mode it also keeps the GPUs
 *           initialised between readings.
 * Ends      with CHILD_END_ASKED when bcd closes the socket or is gone, with CHILD_END_DRIVER after it said
 *           why NVML can't be used (any more): a loaded library belongs to the driver that was
 *           loaded, so only a new process starts anew; with CHILD_END_TALK when bcd is not
 *           understood.
 */
#pragma once

#include "base/error.h"

#define CHILD_END_ASKED  0
#define CHILD_END_DRIVER 3
#define CHILD_END_TALK   4

/* Returns the exit status. `path` and `root` as library_load(). */
int nvml_child_run(int socket, const char *path, const char *root);
