/* Who has vanished, as events of the API server tell. */
#include "node/unlisted.h"

#include "node/core/reap.h"
#include "node/core/release.h"
#include "node/state.h"
#include "sys/clock.h"
#include "vanished_world.h"

/* A list of a plugin has the kubelet write its checkpoint anew. */
static bool is_list_sent(int64_t within_ms)
{
	struct mono from = clock_mono();

	while (cluster.node->refreshed.ms < from.ms && mono_until(from, clock_mono()) < within_ms)
		kubelet_pass(cluster.loop, 100);
	return cluster.node->offers.classes[ATOM_GPU].served &&
	       cluster.node->refreshed.ms >= from.ms;
}

/* No list has its last word, and the kubelet's checkpoint names it yet: an event tells. */
static void heard_as_it_ended(void)
{
	CHECK(pass_until_reported() < GRACE_MS);
	CHECK(!is_told("only the kubelet's checkpoint names it"));
	/* nothing waits for the checkpoint any more, and a bcd that starts anew would */
	CHECK(is_list_sent(3 * NODE_REFRESH_MS));
	CHECK(is_list_sent(3 * NODE_REFRESH_MS));
	forget();
	kubelet_pass(cluster.loop, 2 * NODE_HOLDERS_MS);
	CHECK(!is_list_sent(4 * NODE_REFRESH_MS));
}

/* The watch fails nine times, which takes 75 s or more of its own pauses; lists come all the while. */
static void watched_once_lists_come(void)
{
	struct mono from = clock_mono();

	while (!podwatch_is_live(cluster.node->podwatch) && mono_until(from, clock_mono()) < 120000)
		kubelet_pass(cluster.loop, 100);
	CHECK(podwatch_is_live(cluster.node->podwatch));
	CHECK(mono_until(from, clock_mono()) < 65000);
}

static void name_it(void)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	char held[HOLDS_ID_SIZE];

	fixture_inventory(&inventory);
	fixture_id(held, fixture_gpu(&inventory, 0), ALC_A);
	kubelet_write_checkpoint(&cluster.kubelet, UID, held);
}

/* It came and went before bcd looked: no list ever had it, and what was heard of it is known. */
static void heard_before_it_was_known(void)
{
	forget();
	for (int i = 0; i < 300 && cluster.node->words.count == 0; i++)
		kubelet_pass(cluster.loop, 100);
	CHECK(cluster.node->words.count == 1);
	CHECK(!has_record(UID));
	name_it();
	for (int i = 0; i < 300 && !has_record(UID); i++)
		kubelet_pass(cluster.loop, 100);
	CHECK(has_record(UID));
	CHECK(has_record("\"graceSeconds\": 20"));
}

#define EVENT(type, pod) "{\"type\":\"" type "\",\"object\":" pod "}\n"

/* The lists have it as it runs, and then no more; these events come after the first of them. */
static void tell_with_events(void **state, const char *events, story_fn *story)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER)},
	};
	const struct fake_api_answer watch = {
		.status = 200, .body = events, .stream = FAKE_API_HOLDS, .after = 1};

	tell_of(state,
		&(struct fake_api_options){.answers = ANSWERS,
					   .count = ARRAY_SIZE(ANSWERS),
					   .watches = &watch,
					   .watches_count = 1},
		USUAL, story);
}

/* proves: REL-14 HOSTED-24 */
static void test_heard_as_it_ended(void **state)
{
	tell_with_events(state, EVENT("MODIFIED", FAILED("terminated")), heard_as_it_ended);
}

/* proves: REL-14 HOSTED-24 */
static void test_heard_as_it_was_deleted(void **state)
{
	tell_with_events(state,
			 EVENT("MODIFIED", "{\"metadata\":{\"resourceVersion\":\"6\"}}")
				 EVENT("DELETED", FAILED("terminated")),
			 heard_as_it_ended);
}

/* That its object was deleted is no end: its containers may run. proves: REL-2 REL-14 HOSTED-24 */
static void test_deleted_while_it_runs(void **state)
{
	tell_with_events(state, EVENT("DELETED", POD(RUNS)), counted_from_its_end);
}

static void test_watched_once_lists_come(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))}};
	struct fake_api_answer watches[10];

	for (size_t i = 0; i < ARRAY_SIZE(watches); i++)
		watches[i] = (struct fake_api_answer){.slam = true};
	watches[9] = (struct fake_api_answer){.status = 200, .body = "", .stream = FAKE_API_HOLDS};
	tell_of(state,
		&(struct fake_api_options){.answers = ANSWERS,
					   .count = 1,
					   .watches = watches,
					   .watches_count = ARRAY_SIZE(watches)},
		USUAL, watched_once_lists_come);
}

/* proves: REL-2 HOSTED-24 */
static void test_heard_before_it_was_known(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {{.status = 200, .body = LIST(OTHER)}},
					    WATCHES[] = {{
						    .status = 200,
						    .body = EVENT("ADDED", POD(RUNS))
							    EVENT("DELETED", POD(RUNS)),
						    .stream = FAKE_API_HOLDS,
					    }};

	tell_of(state,
		&(struct fake_api_options){
			.answers = ANSWERS, .count = 1, .watches = WATCHES, .watches_count = 1},
		WANTED, heard_before_it_was_known);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_heard_as_it_ended),         IN_FOLDER(test_heard_as_it_was_deleted),
		IN_FOLDER(test_deleted_while_it_runs),     IN_FOLDER(test_watched_once_lists_come),
		IN_FOLDER(test_heard_before_it_was_known),
	};

	return cmocka_run_group_tests(tests, cluster_set_up, cluster_tear_down);
}
