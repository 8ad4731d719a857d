#include "node/strays.h"

#include "node/state.h"

/* --- whose GPU is wanted --- */

static bool is_unbound(const struct node *node, const struct spec_assignment *assignment)
{
	return !*assignment->problem && !holds_find(&node->holds, assignment->allocation);
}

bool strays_matter(const struct node *node)
{
	if (node->holds_error.code != ERROR_NONE || !node->spec)
		return false;
	vec_each (&node->spec->assignments, const struct spec_assignment *assignment)
		if (is_unbound(node, assignment))
			return true;
	return false;
}

/* Whose parts can't be told apart: of a GPU of which something is bound or pending a process tells nothing
 * new; of another, nobody has a part. */
static void wanted_gpus(const struct node *node, struct podprocesses_gpus *gpus)
{
	const struct outside_live live = {NULL, &node->holds, &node->releases};

	if (!strays_matter(node))
		return;
	vec_each (&node->spec->assignments, const struct spec_assignment *assignment)
		for (size_t i = 0; is_unbound(node, assignment) && i < assignment->devices.count;
		     i++) {
			struct atom_uuid gpu = assignment->devices.items[i].atom.gpu;

			if (inventory_find_gpu(source_inventory(node->gpus), gpu) &&
			    !outside_has_gpu(&live, gpu))
				podprocesses_gpus_add(gpus, gpu);
		}
}

void strays_want_gpus(const struct node *node, struct podprocesses_gpus *gpus)
{
	wanted_gpus(node, gpus);
	/* Until its process is gone, so that its end is seen and told. */
	vec_each (&node->strays.items, const struct stray *stray)
		if (stray->process)
			podprocesses_gpus_add(gpus, stray->atom.gpu);
}

static bool is_looked(const struct node *node, struct atom_uuid gpu)
{
	const struct podprocesses_answer *answer = &node->processes;
	const struct podprocesses_gpu *looked = podprocesses_find_gpu(answer, gpu);

	return looked && (answer->off || (answer->error.code == ERROR_NONE &&
					  looked->node != PODPROCESSES_UNKNOWN));
}

const char *strays_trouble(const struct node *node)
{
	vec_each (&node->strays.unseen, const struct atom_uuid *gpu) {
		const struct podprocesses_gpu *looked =
			podprocesses_find_gpu(&node->processes, *gpu);

		if (looked && node->processes.error.code != ERROR_NONE)
			return node->processes.error.what;
		if (looked)
			return "a GPU's number can't be told";
	}
	return NULL;
}

/* --- the view --- */

/* Texts are borrowed from the arena. */
struct seen {
	struct arena texts;
	VEC(struct strays_holder) holders;
	VEC(struct strays_process) processes;
	VEC(struct strays_gpu) gpus;
};

static void see(const struct node *node, struct seen *seen)
{
	struct podprocesses_gpus gpus = {0};
	char name[PODPROCESSES_NAME_SIZE];

	vec_each (&node->listing.holders, const struct holder *holder)
		*vec_push(&seen->holders) =
			(struct strays_holder){holder->id, holder->uid, holder->name};
	vec_each (&node->processes.holders, const struct podprocesses_holder *process) {
		podprocesses_name(name, process);
		*vec_push(&seen->processes) =
			(struct strays_process){process->gpu, process->pid, process->of.pod,
						arena_strdup(&seen->texts, name)};
	}
	wanted_gpus(node, &gpus);
	vec_each (&gpus, const struct podprocesses_gpu *gpu)
		*vec_push(&seen->gpus) = (struct strays_gpu){gpu->gpu, is_looked(node, gpu->gpu)};
	vec_deinit(&gpus);
}

static void decide(struct node *node)
{
	struct strays strays = {0};
	struct seen seen = {0};
	struct strays_view view;

	see(node, &seen);
	view = (struct strays_view){
		.holds = &node->holds,
		.releases = &node->releases,
		.inventory = source_inventory(node->gpus),
		.kubelet = release_has_kubelet(node),
		.answer = node->answered_how,
		.answered = node->answered_at,
		.given = release_given(node),
		.record_unread = node->listing.record.code != ERROR_NONE,
		.holders = seen.holders.items,
		.holder_count = seen.holders.count,
		.processes = seen.processes.items,
		.process_count = seen.processes.count,
		.gpus = seen.gpus.items,
		.gpu_count = seen.gpus.count,
		.now = clock_wall(),
	};
	strays_decide(&view, &node->strays, &strays);
	strays_deinit(&node->strays);
	node->strays = strays;
	arena_deinit(&seen.texts);
	vec_deinit(&seen.holders);
	vec_deinit(&seen.processes);
	vec_deinit(&seen.gpus);
}

void strays_step(struct node *node, struct mono now)
{
	struct mono again;
	bool doubt;

	if (node->holds_error.code != ERROR_NONE)
		return; /* what is bound isn't known: nothing is bound, and Allocate refuses */
	decide(node);
	doubt = strays_matter(node) && (node->strays.unknown || node->strays.unseen.count > 0);
	if (!doubt) {
		node->doubted = false;
		return;
	}
	if (!node->doubted)
		node->doubted_since = now;
	node->doubted = true;
	again = mono_after(release_given(node), RELEASE_SETTLE_MS);
	if (mono_until(node->doubted_since, node->asked_at) >= 0 &&
	    mono_until(again, mono_after(node->asked_at, RELEASE_ASK_MS)) > 0)
		again = mono_after(node->asked_at, RELEASE_ASK_MS);
	release_ask(node, now, again);
}
