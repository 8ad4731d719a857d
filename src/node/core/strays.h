/*
 * strays: who has a GPU, or a part of it, by a device that isn't bound here?
 *
 * Why       A node that lost its state knows nothing of what it gave before, but the kubelet goes on listing
 *           pods of that time. So does one whose hold somebody removed. Whatever the records say, such a
 *           pod has the GPU: nobody else may get it (REL-2, REL-4, REL-27, DP-42).
 * Stray     is each device that the kubelet's answer says a pod or a claim has, other than one that is bound with
 *           that very name; it claims what its atom takes, by the GPU's UUID: of a slot the slot, of an
 *           instance that isn't there any more the GPU, of what can't be read everything. What names the
 *           allocation that is to be bound is in nobody's way there: its own pods live on.
 *           And each process of a pod that has a GPU open of which nothing bound or pending has a part; parts
 *           can't be told apart by it (REL-11).
 * Known     A device is bound only by an answer that is whole, that was asked for RELEASE_SETTLE_MS after this bcd last
 *           answered an Allocate, and with which the pods' processes were looked at for its GPU.
 *           Without one a bind waits (REL-14). A machine that never had a kubelet needs none.
 * Pure.
 * Tests     tests/unit/node/core/strays_test.c
 */
#pragma once

#include "node/core/release.h"

#define STRAYS_WHO_SIZE 420

/* A device that the kubelet says somebody has; texts are borrowed. */
struct strays_holder {
	const char *id;  /* as the kubelet knows it */
	const char *uid; /* of the pod; "" when it can't be told */
	const char *who; /* for people */
};

/* A process of a pod that has a whole GPU open. */
struct strays_process {
	struct atom_uuid gpu;
	int32_t pid;
	const char *uid; /* of the pod; "" when it can't be told */
	const char *who;
};

/* A GPU of which something is to be bound. */
struct strays_gpu {
	struct atom_uuid gpu;
	bool looked; /* the pods' processes were, or can't be seen from here at all (REL-13) */
};

struct strays_view {
	const struct holds *holds;
	const struct releases *releases;
	const struct inventory *inventory;
	bool kubelet; /* there is one, or was */
	/* its last answer, as release_view has it; FREE: what follows is whole */
	enum release_answer answer;
	struct mono answered, given;
	bool record_unread; /* prepared.json: any device may be prepared (REL-9) */
	const struct strays_holder *holders;
	size_t holder_count;
	const struct strays_process *processes;
	size_t process_count;
	const struct strays_gpu *gpus;
	size_t gpu_count;
	struct wall now;
};

struct stray {
	char id[HOLDS_ID_SIZE]; /* of the device; of a process "<GPU> <pid>" */
	bool process;
	bool anything; /* which device it is can't be told */
	struct atom atom;
	struct atom_range range;
	struct wall since;         /* as far as is known here */
	char who[STRAYS_WHO_SIZE]; /* "default/web (main), which has gpu_…@alc_… since …" */
};

/* Sorted by id; `{0}` is "nobody, for sure". */
struct strays {
	VEC(struct stray) items;
	bool unknown;                 /* whether there are more */
	VEC(struct atom_uuid) unseen; /* whose processes are to be looked at first */
};
void strays_deinit(struct strays *strays);

/* `before` is the last answer, for `since`. `*ret_strays` must be empty. */
void strays_decide(const struct strays_view *view, const struct strays *before,
		   struct strays *ret_strays);

/* Who has a part of this one, other than pods of `allocation` ("": nobody's)? NULL: nobody is known to. */
const struct stray *strays_find(const struct strays *strays, struct atom_uuid gpu,
				struct atom_range range, const char *allocation);
/* Is it known who has what of this GPU? */
bool strays_known(const struct strays *strays, struct atom_uuid gpu);
