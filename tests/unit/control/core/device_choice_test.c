#include "control/core/device_choice.h"

#include "lib/enumerate.h"
#include "lib/seed.h"
#include "unit/control/core/built_node.h"

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

static void test_a_room_counts_what_there_is(void **state)
{
	struct placement_room room;
	struct built built;

	(void)state;
	build(&built, "n");
	for (int gpu = 0; gpu < 3; gpu++)
		add_gpu(&built, "g", 4, 0);
	built.gpus[0].healthy = false;
	take(&built, 1, 0, 256, 10 * HOUR, 12 * HOUR);
	take(&built, 2, 256, 512, 11 * HOUR, 13 * HOUR);
	room = device_room_of(&built.node, PLACEMENT_CLASS_SLOT, NULL, "H100");
	assert_int_equal(room.total, 12);
	assert_int_equal(room.healthy, 8);
	assert_int_equal(room.idle, 6);
	assert_int_equal(room.first_end_ms, 12 * HOUR);
	assert_int_equal(room.last_from_ms, 11 * HOUR);
	assert_int_equal(device_room_of(&built.node, PLACEMENT_CLASS_GPU, NULL, "H100").idle, 0);
	assert_int_equal(device_room_of(&built.node, PLACEMENT_CLASS_GPU, NULL, "A100").total, 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_gpus_stay_on_one_numa_node),
		cmocka_unit_test(test_parts_fill_used_gpus_first),
		cmocka_unit_test(test_whole_gpus_spoil_the_fewest_parts),
		cmocka_unit_test(test_whole_gpus_leave_a_numa_node_before_they_spoil),
		cmocka_unit_test(test_random_choices_spoil_no_more_than_they_must),
		cmocka_unit_test(test_a_room_counts_what_there_is),
		cmocka_unit_test(test_every_small_node_is_judged_as_an_exhaustive_search_does),
		cmocka_unit_test(test_random_nodes_are_judged_as_an_exhaustive_search_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
