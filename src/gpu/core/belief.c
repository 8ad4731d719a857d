#include "gpu/core/belief.h"

#include <stdio.h>

void belief_deinit(struct belief *belief)
{
	if (!belief)
		return;
	vec_each (&belief->gpus, struct belief_gpu * gpu)
		vec_deinit(&gpu->cuts);
	vec_deinit(&belief->gpus);
	vec_deinit(&belief->strays);
}

static struct belief_gpu *find(const struct belief *belief, struct atom_uuid uuid)
{
	vec_each (&belief->gpus, struct belief_gpu * gpu)
		if (atom_uuid_equal(gpu->uuid, uuid))
			return gpu;
	return NULL;
}

const struct belief_gpu *belief_find(const struct belief *belief, struct atom_uuid uuid)
{
	return find(belief, uuid);
}

/* The GPU at a place: the one that is listed there, else the last one that was. */
static struct belief_gpu *find_at(const struct belief *belief, const char *pci)
{
	struct belief_gpu *found = NULL;

	vec_each (&belief->gpus, struct belief_gpu * gpu)
		if (*pci && str_equal(gpu->pci, pci) && (!found || gpu->listed))
			found = gpu;
	return found;
}

static int compare_places(const void *a, const void *b)
{
	const struct belief_gpu *left = a, *right = b;
	int order = strcmp(left->pci, right->pci);

	return order ? order : memcmp(left->uuid.bytes, right->uuid.bytes, ATOM_UUID_BYTES);
}

/* --- XIDs, and what ends them --- */

static void end_xids(struct belief *belief, struct belief_gpu *gpu)
{
	belief->record += gpu->facts.xid_count > 0;
	gpu->facts.xid_count = 0;
	gpu->asked = false;
}

static bool add_xid(struct belief *belief, struct belief_gpu *gpu, int32_t xid, bool nonfatal)
{
	struct health_facts *facts = &gpu->facts;

	gpu->last_xid = xid;
	if (!xid_is_fault(&belief->policy, xid, nonfatal))
		return false;
	/* Whatever the driver advised was about what came before this one. */
	gpu->unasked = true;
	if (gpu->asked) {
		gpu->asked = false;
		belief->record++;
	}
	for (size_t i = 0; i < facts->xid_count; i++)
		if (facts->xids[i] == xid)
			return false;
	if (facts->xid_count == HEALTH_MAX_XIDS)
		return false; /* sick enough */
	facts->xids[facts->xid_count++] = xid;
	belief->record++;
	return true;
}

static void note_advice(struct belief *belief, struct belief_gpu *gpu)
{
	if (gpu->facts.xid_count == 0 || gpu->asked)
		return;
	gpu->asked = true;
	belief->record++;
}

static void end_strays(struct belief *belief, const char *pci)
{
	for (size_t i = belief->strays.count; i-- > 0;) {
		if (pci && !str_equal(belief->strays.items[i].pci, pci))
			continue;
		vec_remove(&belief->strays, i);
		belief->record++;
	}
}

/* Who is there is not known yet; whoever it is suffered this. */
static void add_stray(struct belief *belief, const char *pci, int32_t xid, bool nonfatal)
{
	struct belief_stray *stray;

	if (!*pci || !xid_is_fault(&belief->policy, xid, nonfatal) ||
	    belief->strays.count == BELIEF_MAX_STRAYS)
		return;
	vec_each (&belief->strays, const struct belief_stray *known)
		if (known->xid == xid && str_equal(known->pci, pci))
			return;
	stray = vec_push(&belief->strays);
	stray->xid = xid;
	str_copy(stray->pci, sizeof stray->pci, pci);
	belief->record++;
}

static bool note_xid(struct belief *belief, struct belief_gpu *gpu, const struct klog_event *event)
{
	bool another;

	if (!gpu) {
		add_stray(belief, event->pci, event->xid, event->nonfatal);
		return false;
	}
	another = add_xid(belief, gpu, event->xid, event->nonfatal);
	if (event->advised)
		note_advice(belief, gpu);
	if (event->recovered && gpu->asked) {
		end_xids(belief, gpu);
		another = true;
	}
	return another;
}

/* All that came before is over, also what isn't known any more. */
static void driver_is_new(struct belief *belief)
{
	vec_each (&belief->gpus, struct belief_gpu * gpu)
		end_xids(belief, gpu);
	end_strays(belief, NULL);
	belief->record += belief->doubted;
	belief->doubted = false;
}

bool belief_event(struct belief *belief, const struct klog_event *event)
{
	struct belief_gpu *gpu;

	if (event->sequence > belief->log_sequence)
		belief->log_sequence = event->sequence;
	switch (event->kind) {
	case KLOG_NOTHING:
		return false;
	case KLOG_XID:
		return note_xid(belief, find_at(belief, event->pci), event);
	case KLOG_RESET:
		end_strays(belief, event->pci);
		gpu = find_at(belief, event->pci);
		if (gpu)
			end_xids(belief, gpu);
		return gpu;
	case KLOG_LOADED:
		driver_is_new(belief);
		return true;
	}
	assert(false && "a record of no kind");
}

bool belief_xid(struct belief *belief, struct atom_uuid uuid, const struct klog_event *event)
{
	struct belief_gpu *gpu = find(belief, uuid);

	assert(event->kind == KLOG_XID);
	return note_xid(belief, gpu ? gpu : find_at(belief, event->pci), event);
}

bool belief_driver(struct belief *belief, uint64_t driver)
{
	bool another = belief->driver != 0;

	if (driver == 0 || driver == belief->driver)
		return false;
	if (another)
		driver_is_new(belief);
	belief->driver = driver;
	belief->record++;
	return another;
}

/* --- readings --- */

static bool is_advice(enum health_recovery recovery)
{
	return recovery != HEALTH_RECOVERY_UNKNOWN && recovery != HEALTH_RECOVERY_NONE;
}

/* A reading that was under way when an XID came may be older than it. */
static void look_for_end(struct belief *belief, struct belief_gpu *gpu,
			 const struct reading_gpu *now)
{
	bool well = !*now->error && !now->lost && !now->needs_reset && !is_advice(now->recovery);

	if (gpu->unasked)
		return;
	if (is_advice(now->recovery))
		note_advice(belief, gpu);
	if (well && gpu->asked && now->recovery == HEALTH_RECOVERY_NONE)
		end_xids(belief, gpu);
}

static bool same_cuts(const struct cuts *a, const struct cuts *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!str_equal(a->items[i].told.uuid, b->items[i].told.uuid) ||
		    a->items[i].told.gi != b->items[i].told.gi ||
		    a->items[i].told.ci != b->items[i].told.ci ||
		    a->items[i].range.lo != b->items[i].range.lo ||
		    a->items[i].range.hi != b->items[i].range.hi)
			return false;
	return true;
}

/* An instance without its UUID can't be told from the one that stood there before. */
static bool is_distinct(const struct cuts *cuts, const struct reading_mig *mig)
{
	vec_each (cuts, const struct cut *cut)
		if (str_equal(cut->told.uuid, mig->uuid) ||
		    (cut->told.gi == mig->gi && cut->told.ci == mig->ci))
			return false;
	return *mig->uuid;
}

static void take_cuts(struct belief *belief, struct belief_gpu *gpu, const struct reading_gpu *now)
{
	struct cuts cuts = {0};

	vec_each (&now->mig, const struct reading_mig *mig)
		if (is_distinct(&cuts, mig))
			vec_push(&cuts)->told = *mig;
	cut_place(&cuts, &gpu->cuts, gpu->memory_bytes);
	belief->record += !same_cuts(&cuts, &gpu->cuts);
	vec_deinit(&gpu->cuts);
	gpu->cuts = cuts;
}

/* What a GPU is doesn't change; what this reading can't tell stays as it was. */
static void take_identity(struct belief *belief, struct belief_gpu *gpu,
			  const struct reading_gpu *now, int32_t numa)
{
	struct belief_gpu before = *gpu;

	if (*now->pci)
		str_copy(gpu->pci, sizeof gpu->pci, now->pci);
	if (*now->model)
		str_copy(gpu->model, sizeof gpu->model, now->model);
	if (now->minor >= 0)
		gpu->minor = now->minor;
	if (now->memory_bytes > 0)
		gpu->memory_bytes = now->memory_bytes;
	if (now->compute_major > 0) {
		gpu->compute_major = now->compute_major;
		gpu->compute_minor = now->compute_minor;
	}
	if (now->mig_capable != INVENTORY_MIG_UNKNOWN)
		gpu->mig_capable = now->mig_capable;
	if (numa >= 0)
		gpu->numa = numa;
	belief->record += !str_equal(gpu->pci, before.pci) || gpu->minor != before.minor ||
			  gpu->numa != before.numa || gpu->memory_bytes != before.memory_bytes;
}

static void take_gpu(struct belief *belief, struct belief_gpu *gpu, const struct reading_gpu *now,
		     int32_t numa)
{
	gpu->listed = true;
	take_identity(belief, gpu, now, numa);
	look_for_end(belief, gpu, now);
	str_copy(gpu->error, sizeof gpu->error, now->error);
	gpu->facts.lost = now->lost;
	gpu->facts.needs_reset = now->needs_reset;
	gpu->facts.recovery = now->recovery;
	gpu->facts.row_remap = now->row_remap;
	gpu->facts.ecc_uncorrectable = now->ecc_uncorrectable;
	if (*now->error || now->lost)
		return; /* it can't tell how it is cut either */
	gpu->mig_enabled = now->mig_enabled;
	take_cuts(belief, gpu, now);
}

static struct belief_gpu *known_or_new(struct belief *belief, const struct reading_gpu *now)
{
	struct belief_gpu *gpu =
		now->has_uuid ? find(belief, now->uuid) : find_at(belief, now->pci);

	if (gpu || !now->has_uuid || belief->gpus.count == INVENTORY_MAX_GPUS)
		return gpu; /* of one that only has a place nothing can be booked */
	gpu = vec_push(&belief->gpus);
	gpu->uuid = now->uuid;
	gpu->minor = -1;
	gpu->numa = INVENTORY_NUMA_UNKNOWN;
	belief->record++;
	return gpu;
}

static void note_stranger(struct belief *belief, const struct reading_gpu *gpu)
{
	size_t length = strlen(belief->strangers);

	snprintf(belief->strangers + length, sizeof belief->strangers - length, "%s%s%s%s",
		 length ? "; " : "", *gpu->pci ? gpu->pci : "at an unknown place",
		 *gpu->error ? ": "
		 : gpu->lost ? ": lost"
			     : "",
		 gpu->error);
}

/* Nothing can be booked of them, but that they are missing must not go unnoticed. Those without a place
 * are taken for the ones that aren't listed any more. */
static void note_strangers(struct belief *belief, const struct reading *reading)
{
	size_t missing = 0;

	belief->strangers[0] = '\0';
	vec_each (&belief->gpus, const struct belief_gpu *known)
		missing += !known->listed;
	vec_each (&reading->gpus, const struct reading_gpu *gpu) {
		if (gpu->has_uuid || find_at(belief, gpu->pci))
			continue;
		if (!*gpu->pci && missing > 0)
			missing--;
		else
			note_stranger(belief, gpu);
	}
}

static void take_strays(struct belief *belief)
{
	for (size_t i = belief->strays.count; i-- > 0;) {
		const struct belief_stray *stray = &belief->strays.items[i];
		struct belief_gpu *gpu = find_at(belief, stray->pci);

		if (!gpu)
			continue;
		add_xid(belief, gpu, stray->xid, false);
		vec_remove(&belief->strays, i);
		belief->record++;
	}
}

void belief_ask(struct belief *belief)
{
	vec_each (&belief->gpus, struct belief_gpu * gpu)
		gpu->unasked = false;
}

/* Two that say the same /dev/nvidia<number> are both in doubt; one that only had it has it no more. */
static void doubt_doubles(struct belief *belief)
{
	bool tells[INVENTORY_MAX_GPUS];

	for (size_t i = 0; i < belief->gpus.count; i++) {
		const struct belief_gpu *gpu = &belief->gpus.items[i];

		tells[i] = gpu->listed && !gpu->facts.lost && !*gpu->error && gpu->minor >= 0;
	}
	for (size_t i = 0; i < belief->gpus.count; i++) {
		struct belief_gpu *gpu = &belief->gpus.items[i];

		for (size_t j = 0; j < belief->gpus.count; j++) {
			if (i == j || !tells[j] || gpu->minor != belief->gpus.items[j].minor)
				continue;
			if (tells[i]) {
				str_copy(gpu->error, sizeof gpu->error,
					 "another GPU has the same /dev/nvidia<number>");
				continue;
			}
			gpu->minor = -1;
			belief->record++;
		}
	}
}

/* Those that say who they are first: a place may be another's now. */
static void take_listed(struct belief *belief, const struct reading *reading, const int32_t *numa,
			bool with_uuid)
{
	for (size_t i = 0; i < reading->gpus.count; i++) {
		const struct reading_gpu *now = &reading->gpus.items[i];
		struct belief_gpu *gpu =
			now->has_uuid == with_uuid ? known_or_new(belief, now) : NULL;

		if (gpu && gpu->listed)
			str_copy(gpu->error, sizeof gpu->error, "two GPUs say that they are it");
		else if (gpu)
			take_gpu(belief, gpu, now, numa[i]);
	}
}

void belief_reading(struct belief *belief, const struct reading *reading, const int32_t *numa)
{
	vec_each (&belief->gpus, struct belief_gpu * known)
		known->listed = false;
	take_listed(belief, reading, numa, true);
	take_listed(belief, reading, numa, false);
	doubt_doubles(belief);
	note_strangers(belief, reading);
	vec_sort(&belief->gpus, compare_places);
	take_strays(belief);
	belief->read = true;
	belief->failure[0] = '\0';
	str_copy(belief->source, sizeof belief->source, reading->source);
	str_copy(belief->driver_version, sizeof belief->driver_version, reading->driver);
}

void belief_failure(struct belief *belief, const char *why)
{
	assert(*why);
	str_copy(belief->failure, sizeof belief->failure, why);
}

/* What a record says that could not be read when bcd started. */
static void merge_gpu(struct belief *belief, struct belief_gpu *from)
{
	struct belief_gpu *gpu = find(belief, from->uuid);

	if (gpu) {
		for (size_t i = 0; i < from->facts.xid_count; i++)
			add_xid(belief, gpu, from->facts.xids[i], false);
	} else if (belief->gpus.count < INVENTORY_MAX_GPUS) {
		*vec_push(&belief->gpus) = *from;
		from->cuts = (struct cuts){0};
	}
}

void belief_merge(struct belief *belief, struct belief *record)
{
	if (belief->driver != 0)
		(void)belief_driver(record, belief->driver);
	vec_each (&record->gpus, struct belief_gpu * from)
		merge_gpu(belief, from);
	vec_sort(&belief->gpus, compare_places);
	vec_each (&record->strays, const struct belief_stray *stray)
		add_stray(belief, stray->pci, stray->xid, false);
	belief->record++;
	belief_deinit(record);
	*record = (struct belief){0};
}

/* --- what it means --- */

/* Why nothing can be told of a GPU; NULL: it can. */
static const char *doubt_of(const struct belief *belief, const struct belief_gpu *gpu)
{
	if (*belief->failure)
		return belief->failure;
	if (!belief->read)
		return "the driver has not been read yet";
	if (*gpu->error && !gpu->facts.needs_reset)
		return gpu->error;
	if (belief->doubted)
		return "health.json could not be read";
	return gpu->minor < 0 ? "which /dev/nvidia<number> it is" : NULL;
}

static struct health health_of(const struct belief *belief, const struct belief_gpu *gpu)
{
	struct health_facts facts = gpu->facts;

	facts.policy = &belief->policy;
	if (!*belief->failure && belief->read && !gpu->listed)
		facts.lost = true;
	facts.doubt = doubt_of(belief, gpu);
	return health_decide(&facts);
}

static void push_cuts(struct inventory *inventory, const struct inventory_gpu *gpu,
		      const struct cuts *cuts)
{
	for (size_t i = 0; i < cuts->count; i++) {
		const struct cut *cut = &cuts->items[i];
		struct inventory_atom *atom =
			inventory_push_atom(inventory, gpu, ATOM_MIG, cut->range);

		atom->atom.gi = (uint16_t)cut->told.gi;
		atom->atom.ci = (uint16_t)cut->told.ci;
		str_copy(atom->profile, sizeof atom->profile, cut->told.profile);
		str_copy(atom->visible, sizeof atom->visible, cut->told.uuid);
		if (cut->told.memory_bytes > 0)
			atom->memory_bytes = cut->told.memory_bytes;
	}
}

void belief_inventory(const struct belief *belief, int32_t slots, struct inventory *ret_inventory)
{
	struct inventory inventory = {0};

	str_copy(inventory.driver, sizeof inventory.driver, belief->driver_version);
	vec_each (&belief->gpus, const struct belief_gpu *from) {
		struct inventory_gpu *gpu = vec_push(&inventory.gpus);

		gpu->uuid = from->uuid;
		str_copy(gpu->model, sizeof gpu->model, *from->model ? from->model : "GPU");
		str_copy(gpu->pci, sizeof gpu->pci, from->pci);
		gpu->memory_bytes = from->memory_bytes;
		gpu->compute_major = from->compute_major;
		gpu->compute_minor = from->compute_minor;
		gpu->mig = from->mig_capable;
		gpu->numa = from->numa;
		gpu->minor = from->minor;
		gpu->health = health_of(belief, from);
		push_cuts(&inventory, gpu, &from->cuts);
		if (!from->mig_enabled) /* in MIG mode the GPU itself can't be used */
			inventory_push_whole(&inventory, gpu, slots);
	}
	inventory_sort(&inventory);
	*ret_inventory = inventory;
}
