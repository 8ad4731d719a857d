/*
 * session: this machine as NVML tells it, from nvmlInit() until the driver changes.
 *
 * Owns      what was learnt of each GPU since nvmlInit(): one that falls off the bus is still named.
 * GPUs      are read each on its own: what one can't tell is unknown, and one that is lost, needs a
 *           reset or fails otherwise says so in its own reading_gpu and touches no other (N01, N05).
 * MIG       instances may be made and removed while they are looked at: those that are whole are
 *           taken, and looked at again if any was not.
 * Errors    NOT_FOUND: no such library on this machine. UNAVAILABLE: NVML doesn't work, or no longer
 *           does (the driver was unloaded or loaded anew): the process must end, since a loaded
 *           library and its driver belong together.
 * Threads   one at a time. Every call may take as long as the driver likes, for ever too.
 */
#pragma once

#include "gpu/core/reading.h"
#include "nvml/nvml_api.h"

/* What stays true of a GPU when it no longer answers. */
struct session_gpu {
	struct nvml_device *device; /* NULL: never seen at this index */
	struct atom_uuid uuid;
	char pci[INVENTORY_PCI_SIZE];
	char model[INVENTORY_MODEL_SIZE];
	int32_t minor;
	bool answers; /* at the last reading */
};

struct session {
	struct nvml nvml;
	VEC(struct session_gpu) gpus; /* by the driver's index */
};
void session_deinit(struct session *session); /* forgets; the library stays as it is */

/* As library_load(), and nvmlInit(). */
MUST_CHECK bool session_open(const char *path, const char *root, struct session *ret_session,
			     struct error *error);
/* `*ret_reading` must be empty. */
MUST_CHECK bool session_read(struct session *session, struct reading *ret_reading,
			     struct error *error);
