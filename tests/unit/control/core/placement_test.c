#include "control/core/placement.h"

#include "lib/enumerate.h"
#include "lib/seed.h"

#define MAX_GPUS  4
#define MAX_ATOMS 64
#define HOUR      ((int64_t)3600 * 1000)

/* A node made by the test, with its own arrays. */
struct built {
	struct placement_node node;
	struct placement_gpu gpus[MAX_GPUS];
	struct placement_atom atoms[MAX_ATOMS];
	struct placement_busy busy[32];
	struct placement_use uses[8];
};

static void add_gpu(struct built *built, const char *uuid, int slots, int migs)
{
	size_t gpu = built->node.gpus_count++;

	built->gpus[gpu] = (struct placement_gpu){uuid, "NVIDIA H100 80GB HBM3", true, 0};
	for (int i = 0; i < 1 + slots + migs; i++) {
		struct placement_atom *atom = &built->atoms[built->node.atoms_count++];

		*atom = (struct placement_atom){.atom = uuid,
						.profile = "",
						.visible_device = uuid,
						.gpu = gpu,
						.leaf_hi = PLACEMENT_LEAVES,
						.healthy = true};
		if (i >= 1 && i <= slots) {
			atom->class = PLACEMENT_CLASS_SLOT;
			atom->leaf_lo = PLACEMENT_LEAVES * (i - 1) / slots;
			atom->leaf_hi = PLACEMENT_LEAVES * i / slots;
		} else if (i > slots) {
			atom->class = PLACEMENT_CLASS_MIG;
			atom->profile = "1g.10gb";
			atom->leaf_lo = 128 * (i - slots - 1);
			atom->leaf_hi = atom->leaf_lo + 128;
		}
	}
}

static void build(struct built *built, const char *id)
{
	*built = (struct built){0};
	built->node = (struct placement_node){.id = id,
					      .ready = true,
					      .connected = true,
					      .knows_kubernetes = true,
					      .knows_limits = true,
					      .vcpus = 64,
					      .memory_bytes = 512,
					      .gpus = built->gpus,
					      .atoms = built->atoms,
					      .busy = built->busy,
					      .uses = built->uses};
}

static void take(struct built *built, size_t gpu, int lo, int hi, int64_t from, int64_t to)
{
	built->busy[built->node.busy_count++] = (struct placement_busy){gpu, lo, hi, from, to};
}

static struct placement_request request_for(const struct placement_need *needs, size_t count)
{
	return (struct placement_request){.needs = needs,
					  .needs_count = count,
					  .model = "H100",
					  .from_ms = 10 * HOUR,
					  .to_ms = 11 * HOUR,
					  .vcpus = -1,
					  .memory_bytes = -1};
}

/* What was chosen is right: of the class, free, and no two of it overlap. */
static void check_choice(const struct placement_request *request,
			 const struct placement_answer *answer)
{
	int wanted = 0;

	for (size_t i = 0; i < request->needs_count; i++) {
		const struct placement_need *need = &request->needs[i];
		int got = 0;

		for (size_t j = 0; j < answer->members[0].atoms_count; j++)
			got += answer->members[0].node->atoms[answer->members[0].atoms[j]].class ==
			       need->class;
		assert_true(got >= need->count);
		wanted += need->count;
	}
	assert_int_equal(answer->members[0].atoms_count, wanted);
	for (size_t i = 0; i < answer->members[0].atoms_count; i++) {
		const struct placement_atom *a =
			&answer->members[0].node->atoms[answer->members[0].atoms[i]];

		assert_true(a->healthy && answer->members[0].node->gpus[a->gpu].healthy);
		for (size_t j = 0; j < i; j++) {
			const struct placement_atom *b =
				&answer->members[0].node->atoms[answer->members[0].atoms[j]];

			assert_false(a->gpu == b->gpu && a->leaf_lo < b->leaf_hi &&
				     b->leaf_lo < a->leaf_hi);
		}
		for (size_t j = 0; j < answer->members[0].node->busy_count; j++) {
			const struct placement_busy *busy = &answer->members[0].node->busy[j];

			assert_false(a->gpu == busy->gpu && a->leaf_lo < busy->leaf_hi &&
				     busy->leaf_lo < a->leaf_hi && busy->from_ms < request->to_ms &&
				     request->from_ms < busy->to_ms);
		}
	}
}

/* --- filters --- */

static const char *only_reason(const struct placement_request *request, const struct built *built)
{
	struct placement_answer answer = {0};
	const char *reason;

	placement_decide(request, &built->node, 1, &answer);
	assert_int_equal(answer.members_count, 0);
	assert_int_equal(answer.reasons_count, 1);
	assert_int_equal(answer.reasons[0].nodes, 1);
	reason = answer.reasons[0].reason;
	placement_answer_deinit(&answer);
	return reason;
}

/* Everything is wrong with the node; what is mended is no longer the reason, in RES-51's order.
 * proves: RES-8 RES-9 RES-14 RES-15 RES-51 */
static void test_first_filter_that_fails_is_the_reason(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 2};
	struct placement_request request = request_for(&need, 1);
	struct built built;

	(void)state;
	request.limited = true;
	request.vcpus = 65;
	request.memory_bytes = 513;
	build(&built, "n");
	add_gpu(&built, "a", 0, 0);
	add_gpu(&built, "b", 0, 0);
	built.gpus[0].model = "A100";
	built.gpus[1].healthy = false;
	take(&built, 0, 0, 1024, 0, 20 * HOUR);
	built.node.tenant_controlled = true;
	built.node.ready = built.node.connected = false;
	built.node.no_schedule = "ForeignGpuExposure";
	built.node.knows_kubernetes = built.node.knows_limits = false;
	built.node.refused = true;

	assert_string_equal(only_reason(&request, &built), "TenantControlled");
	built.node.tenant_controlled = false;
	assert_string_equal(only_reason(&request, &built), "NodeNotReady");
	built.node.ready = true;
	assert_string_equal(only_reason(&request, &built), "NodeUnreachable");
	built.node.connected = true;
	assert_string_equal(only_reason(&request, &built), "ForeignGpuExposure");
	built.node.no_schedule = NULL;
	assert_string_equal(only_reason(&request, &built), "KubernetesBindingUnsupported");
	built.node.knows_kubernetes = true;
	assert_string_equal(only_reason(&request, &built), "AssignmentLimitsUnsupported");
	built.node.knows_limits = true;
	assert_string_equal(only_reason(&request, &built), "NodeRefused");
	built.node.refused = false;
	assert_string_equal(only_reason(&request, &built), "DeviceClassMissing");
	built.gpus[0].model = "NVIDIA H100 PCIe";
	assert_string_equal(only_reason(&request, &built), "DevicesUnhealthy");
	built.gpus[1].healthy = true;
	assert_string_equal(only_reason(&request, &built), "DevicesBusy");
	built.busy[0].to_ms = 10 * HOUR;
	assert_string_equal(only_reason(&request, &built), "HostVcpuShort");
	request.vcpus = 64;
	assert_string_equal(only_reason(&request, &built), "HostMemoryShort");
	request.memory_bytes = 512;

	struct placement_answer answer = {0};

	placement_decide(&request, &built.node, 1, &answer);
	assert_ptr_equal(answer.members[0].node, &built.node);
	check_choice(&request, &answer);
	placement_answer_deinit(&answer);
	/* Limits that nobody asked for need no capability. */
	built.node.knows_limits = false;
	request.limited = false;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members_count, 1);
	placement_answer_deinit(&answer);
}

/* proves: RES-50 */
static void test_each_node_counts_once_and_the_largest_is_named(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 3};
	struct placement_request request = request_for(&need, 1);
	struct placement_answer answer = {0};
	struct built built[5];
	struct placement_node nodes[5];

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		build(&built[i], "n");
		for (int gpu = 0; gpu < 3; gpu++)
			add_gpu(&built[i], "g", 0, 0);
	}
	for (size_t gpu = 0; gpu < 3; gpu++)
		take(&built[0], gpu, 0, 1024, 0, INT64_MAX);
	take(&built[1], 0, 0, 1, 10 * HOUR, 10 * HOUR + 1);
	take(&built[2], 0, 0, 1024, 0, INT64_MAX);
	take(&built[2], 2, 0, 1024, 0, INT64_MAX);
	built[3].node.no_schedule = "KubernetesReleaseStuck";
	built[4].node.ready = false;
	for (size_t i = 0; i < 5; i++)
		nodes[i] = built[i].node;
	placement_decide(&request, nodes, 5, &answer);
	assert_int_equal(answer.members_count, 0);
	assert_int_equal(answer.reasons_count, 3);
	assert_string_equal(answer.reasons[0].reason, "DevicesBusy");
	assert_int_equal(answer.reasons[0].nodes, 3);
	assert_int_equal(answer.reasons[0].largest, 2);
	assert_string_equal(answer.reasons[1].reason, "KubernetesReleaseStuck");
	assert_int_equal(answer.reasons[1].largest, -1);
	placement_answer_deinit(&answer);
	placement_decide(&request, nodes, 0, &answer);
	assert_string_equal(answer.reasons[0].reason, "PoolEmpty");
	assert_int_equal(answer.reasons[0].nodes, 0);
	placement_answer_deinit(&answer);
}

static void test_models_match_as_whole_words(void **state)
{
	static const struct {
		const char *model, *text;
		bool matches;
	} rows[] = {
		{"H100", "NVIDIA H100 80GB HBM3", true},
		{"h100", "NVIDIA H100 80GB HBM3", true},
		{"H100", "H100", true},
		{"H10", "NVIDIA H100 80GB HBM3", false},
		{"100", "NVIDIA H100", false},
		{"A100", "NVIDIA A100-SXM4-40GB", true},
		{"A100-SXM4", "NVIDIA A100-SXM4", true},
		{"NVIDIA H100", "NVIDIA H100 NVL", true},
		{"H100 80GB", "NVIDIA H100 80GB", true},
		{"", "NVIDIA H100", false},
		{"H100", "", false},
		{"H100", "GH100 H100", true},
		{"H200", "NVIDIA H100", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (placement_model_matches(rows[i].model, rows[i].text) != rows[i].matches)
			fail_msg("'%s' in '%s'", rows[i].model, rows[i].text);
	}
}

static void test_classes_have_names(void **state)
{
	enum placement_class class;

	(void)state;
	for (size_t i = 0; i < PLACEMENT_CLASSES; i++) {
		assert_true(placement_class_parse(placement_class_name((enum placement_class)i),
						  &class));
		assert_int_equal(class, i);
	}
	assert_false(placement_class_parse("gpu.whole", &class));
}

/* --- the choice --- */

/* proves: RES-52 */
static void test_bin_pack_and_spread(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = request_for(&need, 1);
	struct placement_answer answer = {0};
	struct built built[3];
	struct placement_node nodes[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		build(&built[i], (const char *[]){"n1", "n2", "n3"}[i]);
		for (int gpu = 0; gpu < 4; gpu++)
			add_gpu(&built[i], "g", 0, 0);
	}
	take(&built[1], 0, 0, 1024, 0, INT64_MAX);
	take(&built[1], 1, 0, 1024, 0, INT64_MAX);
	take(&built[2], 0, 0, 1024, 0, INT64_MAX);
	for (size_t i = 0; i < 3; i++)
		nodes[i] = built[2 - i].node;
	placement_decide(&request, nodes, 3, &answer);
	assert_string_equal(answer.members[0].node->id, "n2"); /* fewest free that fit */
	request.spread = true;
	placement_decide(&request, nodes, 3, &answer);
	assert_string_equal(answer.members[0].node->id, "n1"); /* most free */
	need.count = 3;
	request.spread = false;
	placement_decide(&request, nodes, 3, &answer);
	assert_string_equal(answer.members[0].node->id, "n3"); /* n2 hasn't got three */
	/* Ties go by id, whatever the order of the nodes. */
	nodes[0].busy_count = nodes[1].busy_count = nodes[2].busy_count = 0;
	placement_decide(&request, nodes, 3, &answer);
	assert_string_equal(answer.members[0].node->id, "n1");
	placement_answer_deinit(&answer);
}

static void test_whole_gpus_stay_on_one_numa_node(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 2};
	struct placement_request request = request_for(&need, 1);
	struct placement_answer answer = {0};
	struct built built;

	(void)state;
	build(&built, "n");
	for (int gpu = 0; gpu < 4; gpu++)
		add_gpu(&built, "g", 0, 0);
	built.gpus[1].numa = built.gpus[3].numa = 1;
	take(&built, 0, 0, 1024, 0, INT64_MAX);
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(built.gpus[built.atoms[answer.members[0].atoms[0]].gpu].numa, 1);
	assert_int_equal(built.gpus[built.atoms[answer.members[0].atoms[1]].gpu].numa, 1);
	/* Where one is enough, the smaller group is broken up. */
	need.count = 1;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(built.atoms[answer.members[0].atoms[0]].gpu, 2);
	placement_answer_deinit(&answer);
}

static void test_parts_fill_used_gpus_first(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_SLOT, NULL, 2};
	struct placement_request request = request_for(&need, 1);
	struct placement_answer answer = {0};
	struct built built;

	(void)state;
	build(&built, "n");
	for (int gpu = 0; gpu < 3; gpu++)
		add_gpu(&built, "g", 4, 0);
	take(&built, 1, 0, 256, 0, INT64_MAX);
	placement_decide(&request, &built.node, 1, &answer);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(built.atoms[answer.members[0].atoms[i]].gpu, 1);
	/* A GPU that nobody can take whole goes before one that somebody could. */
	built.node.busy_count = 0;
	built.atoms[5].healthy = false; /* the second GPU's whole atom */
	assert_int_equal(built.atoms[5].class, PLACEMENT_CLASS_GPU);
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(built.atoms[answer.members[0].atoms[0]].gpu, 1);
	placement_answer_deinit(&answer);
}

/* --- what a choice spoils --- */

static size_t gpu_of(const struct placement_answer *answer, size_t device)
{
	const struct placement_member *member = &answer->members[0];

	return member->node->atoms[member->atoms[device]].gpu;
}

static void test_whole_gpus_spoil_the_fewest_parts(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = request_for(&need, 1);
	struct placement_answer answer = {0};
	struct built built;

	(void)state;
	build(&built, "n");
	add_gpu(&built, "g", 4, 0);
	add_gpu(&built, "g", 0, 7);
	add_gpu(&built, "g", 2, 0);
	add_gpu(&built, "g", 0, 0);
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(gpu_of(&answer, 0), 3);
	/* When all that is left is cut, the one that is cut the least. */
	take(&built, 3, 0, 1024, 0, INT64_MAX);
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(gpu_of(&answer, 0), 2);
	/* A slot that is broken isn't spoilt. */
	for (size_t i = 1; i < 4; i++)
		built.atoms[i].healthy = false;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(gpu_of(&answer, 0), 0);
	placement_answer_deinit(&answer);
}

/* One NUMA node is worth less than parts that others could have. */
static void test_whole_gpus_leave_a_numa_node_before_they_spoil(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 2};
	struct placement_request request = request_for(&need, 1);
	struct placement_answer answer = {0};
	struct built built;

	(void)state;
	build(&built, "n");
	for (int gpu = 0; gpu < 4; gpu++)
		add_gpu(&built, "g", gpu % 2 ? 4 : 0, 0);
	built.gpus[2].numa = built.gpus[3].numa = 1;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(gpu_of(&answer, 0) + gpu_of(&answer, 1), 2);
	/* Of those that are cut: beside what was taken. */
	take(&built, 0, 0, 1024, 0, INT64_MAX);
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(gpu_of(&answer, 0), 2);
	assert_int_equal(gpu_of(&answer, 1), 3);
	placement_answer_deinit(&answer);
}

/* Wholes take a cut GPU only when the uncut ones are taken; parts touch a free GPU only when those in
 * use have no more. Whatever else is on the node. */
static void test_random_choices_spoil_no_more_than_they_must(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = request_for(&need, 1);
	struct seed seed;

	(void)state;
	seed_init(&seed);
	for (int round = 0; round < 3000; round++) {
		bool slots = seed_below(&seed, 2);
		int cut[4], cheap = 0, dear = 0, took_cheap = 0;
		struct placement_answer answer = {0};
		struct built built;

		build(&built, "n");
		for (size_t gpu = 0; gpu < 4; gpu++) {
			int taken = (int)seed_below(&seed, 4);

			cut[gpu] = seed_below(&seed, 2) ? 4 : 0;
			add_gpu(&built, "g", cut[gpu], 0);
			built.gpus[gpu].numa = (int)seed_below(&seed, 2);
			if (taken > 0)
				take(&built, gpu, 0, cut[gpu] ? 256 * taken : 1024, 0, INT64_MAX);
			if (slots)
				*(taken ? &cheap : &dear) += cut[gpu] ? 4 - taken : 0;
			else if (taken == 0)
				*(cut[gpu] ? &dear : &cheap) += 1;
		}
		need = (struct placement_need){slots ? PLACEMENT_CLASS_SLOT : PLACEMENT_CLASS_GPU,
					       NULL, 1 + (int)seed_below(&seed, 4)};
		placement_decide(&request, &built.node, 1, &answer);
		assert_int_equal(answer.members_count, cheap + dear >= need.count);
		for (size_t i = 0; answer.members_count > 0 && i < (size_t)need.count; i++) {
			bool used = false;

			for (size_t j = 0; j < built.node.busy_count; j++)
				used |= built.busy[j].gpu == gpu_of(&answer, i);
			took_cheap += slots ? used : !cut[gpu_of(&answer, i)];
		}
		if (answer.members_count > 0)
			assert_int_equal(took_cheap, cheap < need.count ? cheap : need.count);
		placement_answer_deinit(&answer);
	}
}

/* --- against an exhaustive search --- */

/* Can the needs be met by any choice of atoms at all? Tries every set. */
static bool search(const struct built *built, const struct placement_request *request, size_t need,
		   int still, size_t first, uint64_t picked)
{
	const struct placement_node *node = &built->node;

	while (still == 0) {
		if (++need == request->needs_count)
			return true;
		still = request->needs[need].count;
		first = 0;
	}
	for (size_t i = first; i < node->atoms_count; i++) {
		const struct placement_atom *atom = &node->atoms[i];
		bool fits = atom->class == request->needs[need].class && atom->healthy &&
			    node->gpus[atom->gpu].healthy;

		for (size_t j = 0; j < node->busy_count && fits; j++)
			fits = node->busy[j].gpu != atom->gpu ||
			       node->busy[j].leaf_lo >= atom->leaf_hi ||
			       atom->leaf_lo >= node->busy[j].leaf_hi;
		for (size_t j = 0; j < node->atoms_count && fits; j++)
			fits = !(picked & UINT64_C(1) << j) || node->atoms[j].gpu != atom->gpu ||
			       node->atoms[j].leaf_lo >= atom->leaf_hi ||
			       atom->leaf_lo >= node->atoms[j].leaf_hi;
		if (fits &&
		    search(built, request, need, still - 1, i + 1, picked | UINT64_C(1) << i))
			return true;
	}
	return false;
}

/* Every node of two GPUs, each whole, with two slots or with two instances, healthy or not, with
 * every part of it taken or not; every request for wholes and one kind of part. */
static void test_every_small_node_is_judged_as_an_exhaustive_search_does(void **state)
{
	static const enum placement_class parts[] = {PLACEMENT_CLASS_SLOT, PLACEMENT_CLASS_MIG};
	struct enumerate all = {0};

	(void)state;
	while (enumerate_next(&all)) {
		struct placement_need needs[2] = {{PLACEMENT_CLASS_GPU, NULL, 0},
						  {PLACEMENT_CLASS_SLOT, NULL, 0}};
		struct placement_answer answer = {0};
		struct placement_request request;
		struct built built;
		bool possible;

		build(&built, "n");
		for (size_t gpu = 0; gpu < 2; gpu++) {
			unsigned kind = enumerate_pick(&all, 3);

			add_gpu(&built, "g", kind == 1 ? 2 : 0, kind == 2 ? 2 : 0);
			built.gpus[gpu].healthy = enumerate_pick(&all, 2);
			for (int half = 0; half < 2; half++) {
				if (enumerate_pick(&all, 2))
					take(&built, gpu, kind == 2 ? 128 * half : 512 * half,
					     kind == 2 ? 128 * half + 128 : 512 * half + 512, 0,
					     INT64_MAX);
			}
		}
		needs[1].class = parts[enumerate_pick(&all, 2)];
		needs[0].count = 1 + (int)enumerate_pick(&all, 2);
		needs[1].count = 1 + (int)enumerate_pick(&all, 3);
		/* Wholes alone, parts alone, or both. */
		unsigned which = enumerate_pick(&all, 3);

		request = which == 2 ? request_for(needs, 2) : request_for(&needs[which], 1);
		possible = search(&built, &request, 0, request.needs[0].count, 0, 0);
		placement_decide(&request, &built.node, 1, &answer);
		if ((answer.members_count > 0) != possible)
			fail_msg("round %lu: %s", all.rounds, possible ? "missed" : "invented");
		if (answer.members_count > 0)
			check_choice(&request, &answer);
		placement_answer_deinit(&answer);
	}
	assert_true(all.rounds > 10000);
}

/* Larger ones at random: wholes and one kind of part must still never be missed. */
static void test_random_nodes_are_judged_as_an_exhaustive_search_does(void **state)
{
	struct seed seed;

	(void)state;
	seed_init(&seed);
	for (int round = 0; round < 3000; round++) {
		struct placement_need needs[2] = {
			{PLACEMENT_CLASS_GPU, NULL, 1 + (int)seed_below(&seed, 3)},
			{PLACEMENT_CLASS_SLOT, NULL, 1 + (int)seed_below(&seed, 5)}};
		struct placement_request request = request_for(needs, 2);
		struct placement_answer answer = {0};
		struct built built;
		bool possible;

		build(&built, "n");
		for (size_t gpu = 0; gpu < 4; gpu++) {
			add_gpu(&built, "g", (int)seed_below(&seed, 4), 0);
			built.gpus[gpu].healthy = seed_below(&seed, 8) != 0;
			built.gpus[gpu].numa = (int)seed_below(&seed, 2);
			if (seed_below(&seed, 3) == 0) {
				int lo = (int)seed_below(&seed, 1023);

				take(&built, gpu, lo, lo + 1 + (int)seed_below(&seed, 1023 - lo), 0,
				     INT64_MAX);
			}
		}
		possible = search(&built, &request, 0, needs[0].count, 0, 0);
		placement_decide(&request, &built.node, 1, &answer);
		if ((answer.members_count > 0) != possible)
			fail_msg("round %d: %s", round, possible ? "missed" : "invented");
		if (answer.members_count > 0)
			check_choice(&request, &answer);
		placement_answer_deinit(&answer);
	}
}

/* --- host share --- */

/* proves: RES-3 */
static void test_share_is_in_proportion_to_the_devices(void **state)
{
	struct placement_need needs[] = {{PLACEMENT_CLASS_GPU, NULL, 1},
					 {PLACEMENT_CLASS_SLOT, NULL, 1}};
	struct placement_request request = request_for(needs, 2);
	struct placement_answer answer = {0};
	struct built built;

	(void)state;
	build(&built, "n");
	for (int gpu = 0; gpu < 4; gpu++)
		add_gpu(&built, "g", 4, 0);
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members[0].vcpus, 64 / 4 + 64 / 16);
	assert_int_equal(answer.members[0].memory_bytes, 512 / 4 + 512 / 16);
	/* A quarter of a petabyte times a leaf is no overflow. */
	built.node.memory_bytes = INT64_MAX / 2;
	placement_decide(&request, &built.node, 1, &answer);
	assert_true(answer.members[0].memory_bytes > 0 &&
		    answer.members[0].memory_bytes < INT64_MAX / 4);
	/* One share given, the other the node's. */
	built.node.memory_bytes = 512;
	request.vcpus = 3;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members[0].vcpus, 3);
	assert_int_equal(answer.members[0].memory_bytes, 512 / 4 + 512 / 16);
	placement_answer_deinit(&answer);
}

static void test_host_is_short_at_its_peak_and_not_in_sum(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = request_for(&need, 1);
	struct placement_answer answer = {0};
	struct built built;

	(void)state;
	build(&built, "n");
	add_gpu(&built, "g", 0, 0);
	/* 40 in the first half, 40 in the second; 24 more fit, 25 don't. */
	built.uses[0] = (struct placement_use){40, 0, 0, 10 * HOUR + HOUR / 2};
	built.uses[1] = (struct placement_use){40, 0, 10 * HOUR + HOUR / 2, 20 * HOUR};
	built.node.uses_count = 2;
	request.vcpus = 24;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members_count, 1);
	request.vcpus = 25;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members_count, 0);
	/* One that begins within the time and overlaps another makes the peak. */
	built.uses[1].from_ms--;
	request.vcpus = 1;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members_count, 0);
	placement_answer_deinit(&answer);
}

/* --- time --- */

static void test_first_fit_is_the_first_end_that_leaves_room(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 2};
	struct placement_request request = request_for(&need, 1);
	struct built built;
	int64_t at = 0;

	(void)state;
	build(&built, "n");
	add_gpu(&built, "a", 0, 0);
	add_gpu(&built, "b", 0, 0);
	assert_true(placement_first_fit(&request, &built.node, 1, &at));
	assert_int_equal(at, request.from_ms);
	take(&built, 0, 0, 1024, 0, 12 * HOUR);
	take(&built, 1, 0, 1024, 12 * HOUR + HOUR / 2, 15 * HOUR); /* a gap that is too short */
	take(&built, 0, 0, 1, 16 * HOUR, 17 * HOUR);               /* one that just does */
	assert_true(placement_first_fit(&request, &built.node, 1, &at));
	assert_int_equal(at, 15 * HOUR);
	built.busy[2].from_ms--;
	assert_true(placement_first_fit(&request, &built.node, 1, &at));
	assert_int_equal(at, 17 * HOUR);
	/* Held without an end: never, as far as anybody knows. */
	built.busy[2].to_ms = INT64_MAX;
	assert_false(placement_first_fit(&request, &built.node, 1, &at));
	need.count = 3;
	built.node.busy_count = 0;
	assert_false(placement_first_fit(&request, &built.node, 1, &at));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_filter_that_fails_is_the_reason),
		cmocka_unit_test(test_each_node_counts_once_and_the_largest_is_named),
		cmocka_unit_test(test_models_match_as_whole_words),
		cmocka_unit_test(test_classes_have_names),
		cmocka_unit_test(test_bin_pack_and_spread),
		cmocka_unit_test(test_whole_gpus_stay_on_one_numa_node),
		cmocka_unit_test(test_parts_fill_used_gpus_first),
		cmocka_unit_test(test_whole_gpus_spoil_the_fewest_parts),
		cmocka_unit_test(test_whole_gpus_leave_a_numa_node_before_they_spoil),
		cmocka_unit_test(test_random_choices_spoil_no_more_than_they_must),
		cmocka_unit_test(test_every_small_node_is_judged_as_an_exhaustive_search_does),
		cmocka_unit_test(test_random_nodes_are_judged_as_an_exhaustive_search_does),
		cmocka_unit_test(test_share_is_in_proportion_to_the_devices),
		cmocka_unit_test(test_host_is_short_at_its_peak_and_not_in_sum),
		cmocka_unit_test(test_first_fit_is_the_first_end_that_leaves_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
