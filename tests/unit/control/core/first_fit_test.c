/*
 * Many nodes at once: gangs and the first moment at which something fits, against models that try
 * everything.
 */
#include "control/core/node_filter.h"

#include "lib/seed.h"

#define NODES    5
#define GPUS     3
#define MAX_BUSY 8
#define MINUTE   ((int64_t)60 * 1000)
#define HORIZON  24

struct fleet {
	struct placement_node nodes[NODES];
	struct placement_gpu gpus[GPUS];
	struct placement_atom atoms[GPUS];
	struct placement_busy busy[NODES][MAX_BUSY];
	struct placement_use uses[NODES][2];
};

static const char *const IDS[NODES] = {"n1", "n2", "n3", "n4", "n5"};

/* Whole GPUs on all nodes; nothing booked. */
static void build(struct fleet *fleet)
{
	*fleet = (struct fleet){0};
	for (size_t i = 0; i < GPUS; i++) {
		fleet->gpus[i] = (struct placement_gpu){IDS[i], "NVIDIA H100", true, 0};
		fleet->atoms[i] = (struct placement_atom){.atom = IDS[i],
							  .profile = "",
							  .visible_device = IDS[i],
							  .gpu = i,
							  .leaf_hi = PLACEMENT_LEAVES,
							  .healthy = true};
	}
	for (size_t i = 0; i < NODES; i++)
		fleet->nodes[i] = (struct placement_node){.id = IDS[i],
							  .ready = true,
							  .connected = true,
							  .knows_kubernetes = true,
							  .knows_limits = true,
							  .vcpus = 30,
							  .memory_bytes = 30,
							  .gpus = fleet->gpus,
							  .gpus_count = GPUS,
							  .atoms = fleet->atoms,
							  .atoms_count = GPUS,
							  .busy = fleet->busy[i],
							  .uses = fleet->uses[i]};
}

static void take(struct fleet *fleet, size_t node, size_t gpu, int64_t from, int64_t to)
{
	assert_true(fleet->nodes[node].busy_count < MAX_BUSY);
	fleet->busy[node][fleet->nodes[node].busy_count++] =
		(struct placement_busy){gpu, 0, PLACEMENT_LEAVES, from, to, false};
}

static struct placement_request gang_of(const struct placement_need *need, int nodes)
{
	return (struct placement_request){.needs = need,
					  .needs_count = 1,
					  .model = "H100",
					  .from_ms = 10 * MINUTE,
					  .to_ms = 14 * MINUTE,
					  .vcpus = -1,
					  .memory_bytes = -1,
					  .nodes = nodes};
}

static const char *reason_of(const struct placement_answer *answer, const char *reason, int *nodes)
{
	for (size_t i = 0; i < answer->reasons_count; i++) {
		if (!str_equal(answer->reasons[i].reason, reason))
			continue;
		*nodes = answer->reasons[i].nodes;
		return reason;
	}
	return NULL;
}

/* --- gangs --- */

/* proves: GANG-1 GANG-3 */
static void test_a_gang_is_whole_or_nothing(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, GPUS};
	struct placement_request request = gang_of(&need, 3);
	struct placement_answer answer = {0};
	struct fleet fleet;
	int nodes = 0;

	(void)state;
	build(&fleet);
	take(&fleet, 1, 0, 0, 20 * MINUTE);
	placement_decide(&request, fleet.nodes, NODES, &answer);
	assert_int_equal(answer.members_count, 3);
	assert_string_equal(answer.members[0].node->id, "n1");
	assert_string_equal(answer.members[1].node->id, "n3");
	assert_string_equal(answer.members[2].node->id, "n4");
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(answer.members[i].atoms_count, GPUS);
	request.nodes = 5;
	placement_decide(&request, fleet.nodes, NODES, &answer);
	assert_int_equal(answer.members_count, 0);
	assert_false(answer.never);
	assert_non_null(reason_of(&answer, "TooFewNodes", &nodes));
	assert_int_equal(nodes, 4);
	assert_non_null(reason_of(&answer, "DevicesBusy", &nodes));
	assert_int_equal(nodes, 1);
	placement_answer_deinit(&answer);
}

/* proves: GANG-4 GANG-11 */
static void test_a_gang_stays_in_the_smallest_domain_that_has_it(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = gang_of(&need, 2);
	struct placement_answer answer = {0};
	struct fleet fleet;
	int nodes = 0;

	(void)state;
	build(&fleet);
	request.same = PLACEMENT_SAME_RACK;
	for (size_t i = 0; i < 4; i++)
		fleet.nodes[i].labels[PLACEMENT_SAME_RACK] = i < 3 ? "r1" : "r2";
	/* Labels of another kind say nothing about racks. */
	fleet.nodes[4].labels[PLACEMENT_SAME_BLOCK] = "r2";
	placement_decide(&request, fleet.nodes, NODES, &answer);
	assert_int_equal(answer.members_count, 2);
	assert_string_equal(answer.members[0].node->id, "n1");
	assert_string_equal(answer.members[1].node->id, "n2");
	fleet.nodes[4].labels[PLACEMENT_SAME_RACK] = "r2";
	placement_decide(&request, fleet.nodes, NODES, &answer);
	assert_string_equal(answer.members[0].node->id, "n4");
	assert_string_equal(answer.members[1].node->id, "n5");
	request.domain = "r1";
	placement_decide(&request, fleet.nodes, NODES, &answer);
	assert_string_equal(answer.members[0].node->id, "n1");
	request.domain = NULL;
	request.nodes = 4;
	fleet.nodes[4].labels[PLACEMENT_SAME_RACK] = NULL;
	placement_decide(&request, fleet.nodes, NODES, &answer);
	assert_int_equal(answer.members_count, 0);
	assert_non_null(reason_of(&answer, "TopologyUnknown", &nodes));
	assert_int_equal(nodes, 1);
	placement_answer_deinit(&answer);
}

static int count_bits(unsigned set)
{
	return __builtin_popcount(set);
}

/* proves: GANG-1 GANG-4 */
static void test_random_gangs_fit_when_some_set_of_nodes_does(void **state)
{
	static const char *const racks[] = {NULL, "r1", "r2"};
	struct seed seed;
	int fitted = 0;

	(void)state;
	seed_init(&seed);
	for (int i = 0; i < 20000; i++) {
		struct placement_need need = {PLACEMENT_CLASS_GPU, NULL,
					      1 + (int)seed_below(&seed, GPUS)};
		struct placement_request request = gang_of(&need, 1 + (int)seed_below(&seed, 4));
		struct placement_answer answer = {0};
		struct fleet fleet;
		bool possible = false;
		unsigned fits = 0;

		build(&fleet);
		if (seed_chance(&seed, 60))
			request.same = PLACEMENT_SAME_RACK;
		for (size_t n = 0; n < NODES; n++) {
			fleet.nodes[n].labels[PLACEMENT_SAME_RACK] = racks[seed_below(&seed, 3)];
			for (size_t gpu = 0; gpu < GPUS; gpu++)
				if (seed_chance(&seed, 30))
					take(&fleet, n, gpu, 0, INT64_MAX);
			fits |= (unsigned)node_filter_fits(&request, &fleet.nodes[n]) << n;
		}
		for (unsigned set = 0; set < 1u << NODES; set++) {
			const char *rack = NULL;
			bool together = true;

			if ((set & fits) != set || count_bits(set) != request.nodes)
				continue;
			for (size_t n = 0; n < NODES; n++) {
				const char *mine = fleet.nodes[n].labels[PLACEMENT_SAME_RACK];

				if (!(set >> n & 1))
					continue;
				together = together && mine && (!rack || str_equal(rack, mine));
				rack = mine;
			}
			possible |= together || request.same == PLACEMENT_SAME_NOTHING;
		}
		placement_decide(&request, fleet.nodes, NODES, &answer);
		assert_int_equal(answer.members_count, possible ? request.nodes : 0);
		for (size_t a = 0; a < answer.members_count; a++)
			for (size_t b = 0; b < a; b++)
				assert_ptr_not_equal(answer.members[a].node,
						     answer.members[b].node);
		fitted += possible;
		placement_answer_deinit(&answer);
	}
	assert_true(fitted > 1000);
}

/* --- never --- */

/* proves: RES-50 */
static void test_never_is_said_of_what_no_change_of_bookings_mends(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, GPUS};
	struct placement_request request = gang_of(&need, 0);
	struct placement_answer answer = {0};
	struct fleet fleet;

	(void)state;
	build(&fleet);
	/* Busy, sick, away, of an old version: all of that passes. */
	take(&fleet, 0, 0, 0, INT64_MAX);
	fleet.nodes[0].ready = fleet.nodes[0].connected = fleet.nodes[0].knows_kubernetes = false;
	placement_decide(&request, fleet.nodes, 1, &answer);
	assert_false(answer.never);
	need.count = GPUS + 1;
	placement_decide(&request, fleet.nodes, NODES, &answer);
	assert_true(answer.never);
	placement_decide(&request, fleet.nodes, 0, &answer);
	assert_false(answer.never); /* who knows what joins */
	need.count = 1;
	fleet.nodes[0].spot = true;
	placement_decide(&request, fleet.nodes, 1, &answer);
	assert_string_equal(answer.reasons[0].reason, "NodeNotReady");
	assert_true(answer.never);
	request.spot = true;
	placement_decide(&request, fleet.nodes, 1, &answer);
	assert_false(answer.never);
	request.vcpus = 31;
	placement_decide(&request, fleet.nodes, NODES, &answer);
	assert_true(answer.never);
	fleet.nodes[0].gpus_count = fleet.nodes[0].atoms_count = 0;
	placement_decide(&request, fleet.nodes, 1, &answer);
	assert_false(answer.never); /* nobody has seen what it has */
	placement_answer_deinit(&answer);
}

/* --- the first fit --- */

/* Every minute is tried: all that is booked begins and ends at whole ones. */
static bool model_first_fit(const struct placement_request *request, const struct fleet *fleet,
			    int64_t *ret_ms)
{
	for (int64_t minute = 0; minute < 3 * HORIZON; minute++) {
		struct placement_request later = *request;
		struct placement_answer answer = {0};
		bool fits;

		later.from_ms += minute * MINUTE;
		later.to_ms += minute * MINUTE;
		placement_decide(&later, fleet->nodes, NODES, &answer);
		fits = answer.members_count > 0;
		placement_answer_deinit(&answer);
		*ret_ms = later.from_ms;
		if (fits)
			return true;
	}
	return false;
}

/* proves: RES-50 */
static void test_first_fit_is_what_trying_every_minute_finds(void **state)
{
	struct seed seed;
	int later = 0, never = 0;

	(void)state;
	seed_init(&seed);
	for (int i = 0; i < 3000; i++) {
		struct placement_need need = {PLACEMENT_CLASS_GPU, NULL,
					      1 + (int)seed_below(&seed, GPUS)};
		struct placement_request request = gang_of(&need, 1 + (int)seed_below(&seed, 4));
		int64_t wait = (int64_t)(12 + seed_below(&seed, 8)) * MINUTE;
		int64_t expected_ms = 0, found_ms = 0;
		struct fleet fleet;
		bool expected;

		build(&fleet);
		request.to_ms = request.from_ms + (int64_t)(1 + seed_below(&seed, 8)) * MINUTE;
		if (seed_chance(&seed, 30)) {
			request.waits = &wait;
			request.waits_count = 1;
		}
		if (seed_chance(&seed, 40))
			request.same = PLACEMENT_SAME_BLOCK;
		for (size_t n = 0; n < NODES; n++) {
			fleet.nodes[n].labels[PLACEMENT_SAME_BLOCK] = n < 3 ? "b1" : "b2";
			for (int j = 0; j < MAX_BUSY; j++) {
				int64_t from = (int64_t)seed_below(&seed, HORIZON);
				int64_t to = from + 1 + (int64_t)seed_below(&seed, 8);

				take(&fleet, n, seed_below(&seed, GPUS), from * MINUTE,
				     seed_chance(&seed, 4) ? INT64_MAX : to * MINUTE);
			}
			fleet.uses[n][0] = (struct placement_use){
				.vcpus = (int64_t)seed_below(&seed, 30),
				.to_ms = (int64_t)seed_below(&seed, HORIZON) * MINUTE};
			fleet.nodes[n].uses_count = 1;
		}
		expected = model_first_fit(&request, &fleet, &expected_ms);
		assert_int_equal(placement_first_fit(&request, fleet.nodes, NODES, &found_ms),
				 expected);
		if (expected)
			assert_int_equal(found_ms, expected_ms);
		later += expected && expected_ms > request.from_ms;
		never += !expected;
	}
	print_message("%d fit later, %d never\n", later, never);
	assert_true(later > 300 && never > 10);
}

/* GANG-10: who is gone by the time of the gang may pass it, who isn't waits behind it.
 * proves: GANG-10 */
static void test_a_waiting_gang_is_passed_only_by_who_is_gone_in_time(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = gang_of(&need, 0);
	struct placement_answer answer = {0};
	int64_t wait = 14 * MINUTE, at = 0;
	struct fleet fleet;
	int nodes = 0;

	(void)state;
	build(&fleet);
	request.waits = &wait;
	request.waits_count = 1;
	placement_decide(&request, fleet.nodes, NODES, &answer);
	assert_int_equal(answer.members_count, 1);
	request.to_ms++;
	placement_decide(&request, fleet.nodes, NODES, &answer);
	assert_int_equal(answer.members_count, 0);
	assert_non_null(reason_of(&answer, "WaitingGang", &nodes));
	assert_int_equal(nodes, NODES);
	assert_false(answer.never);
	assert_true(placement_first_fit(&request, fleet.nodes, NODES, &at));
	assert_int_equal(at, wait);
	placement_answer_deinit(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_gang_is_whole_or_nothing),
		cmocka_unit_test(test_a_gang_stays_in_the_smallest_domain_that_has_it),
		cmocka_unit_test(test_random_gangs_fit_when_some_set_of_nodes_does),
		cmocka_unit_test(test_never_is_said_of_what_no_change_of_bookings_mends),
		cmocka_unit_test(test_first_fit_is_what_trying_every_minute_finds),
		cmocka_unit_test(test_a_waiting_gang_is_passed_only_by_who_is_gone_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
