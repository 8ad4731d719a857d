/*
 * confine: which powers bcd keeps: capabilities, system calls, folders that it writes to.
 *
 * Owns      HOSTED-40's lists. A privileged pod runs without its runtime's filter, so bcd brings its
 *           own; what it starts (nvidia-smi, the child for NVML, a kubeconfig's credential program)
 *           inherits it and is counted in.
 * Calls     allowed: what bcd, its libraries and those programs use; refused: what would take the
 *           machine over, answered with EPERM; every other is answered as if the kernel lacked it
 *           (ENOSYS), which libraries know from older kernels.
 * Files     reading isn't confined: a kubeconfig may name any file, and a pod sees no more than its
 *           mounts. Only where bcd sees no foreign process: whoever is confined so may not look at
 *           what others have open, and that look is what a release waits for (REL-10).
 * Pure.
 * Tests     tests/unit/node/core/confine_test.c
 */
#pragma once

#include "base/vec.h"
#include "node/core/config.h"

enum confine_verb {
	CONFINE_NODE,
	CONFINE_JOIN,
};

struct confine_view {
	enum confine_verb verb;
	const struct config *config;
	bool alone;              /* the first process of its PID namespace: it sees its own only */
	bool sanitized;          /* built with a sanitizer, which looks at its own threads */
	int32_t last_capability; /* the highest number that this kernel knows */
};

/* Everything in it is static or of the view's config. */
struct confine_plan {
	uint64_t capabilities; /* to keep, if there: bit N for number N of <linux/capability.h> */
	VEC(const char *) allowed, refused; /* system calls by name; never one in both */
	const char *folders[8];             /* to write to; NULL-ended */
	const char *no_files;               /* why files aren't confined; NULL: they are */
};
void confine_plan_deinit(struct confine_plan *plan);
/* `*ret_plan` must be empty. */
void confine_decide(const struct confine_view *view, struct confine_plan *ret_plan);

/* "dac_override"; of one that no plan keeps: "". */
const char *confine_capability_name(int32_t capability);
