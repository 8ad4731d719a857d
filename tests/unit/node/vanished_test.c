/* Who has vanished, as lists alone tell. */
#include "node/unlisted.h"

#include "node/core/reap.h"
#include "node/core/release.h"
#include "node/state.h"
#include "sys/clock.h"
#include "vanished_world.h"

/* Deleted by force, while bcd knows of it. Its grace counts from when nobody has it, also for the bcd that is started
 * meanwhile, and who may run yet is told. */
static void deleted_by_force(void)
{
	int64_t took;

	pass_until_told("only the kubelet's checkpoint names it, and the API server has it");
	forget();
	pass_until_told("ns/web");
	pass_until_told(
		"the API server doesn't have it: it may run yet, and counts until its grace "
		"ends at 20");
	kubelet_pass(cluster.loop, 5000);
	CHECK(!is_reported());
	node_destroy(TAKE(cluster.node));
	start_node();
	took = pass_until_reported();
	CHECK(took > UNLISTED_KUBELET_MS - 1000 && took < UNLISTED_KUBELET_MS + 10000);
}

/* Its mirror is there for as long as the API server says so, and then it is over. */
static void static_and_removed(void)
{
	pass_until_told("only the kubelet's checkpoint names it, and the API server has it");
	forget();
	pass_until_told(
		"the kubelet doesn't list it any more, and the API server has it; its grace "
		"ends at 20");
	kubelet_pass(cluster.loop, 2 * (GRACE_MS + UNLISTED_MARGIN_MS));
	CHECK(!is_reported());
}

/* Its last word is seen, so nothing is waited for but the kubelet to settle. */
static void ended_as_it_should(void)
{
	int64_t took;

	pass_until_told("only the kubelet's checkpoint names it, and the API server has it");
	forget();
	took = pass_until_reported();
	CHECK(took < RELEASE_KUBELET_SETTLE_MS + 7000); /* and less than its grace alone */
}

/* As it isn't: its containers run on. */
static void called_failed(void)
{
	pass_until_told("only the kubelet's checkpoint names it, and the API server has it");
	forget();
	pass_until_told("the kubelet doesn't list it any more, and the API server has it");
	kubelet_pass(cluster.loop, 2 * (GRACE_MS + UNLISTED_MARGIN_MS));
	CHECK(!is_reported());
}

/* It runs, and nothing but what was remembered says that it had a device: nobody else would end it. */
static void asked_to_go(void)
{
	pass_until_told("only the kubelet's checkpoint names it, and the API server has it");
	forget();
	pass_until_told("the kubelet doesn't list it any more, and the API server has it");
	kubelet_pass(cluster.loop, REAP_HOLD_MS + 10000);
	CHECK(is_told("the API server has it; asked to go"));
	CHECK(is_told(", and not forced unless the kubelet lists it with a device"));
	CHECK(!is_reported());
	/* and it isn't forced */
	kubelet_pass(cluster.loop, 2 * REAP_FORCE_MS);
	CHECK(is_told("the API server has it; asked to go"));
}

/* A kubelet that hasn't heard of its pods lists none and ends none. */
static void nobody_has_heard(void)
{
	pass_until_told("only the kubelet's checkpoint names it, and the API server has it");
	forget();
	pass_until_told(
		"the kubelet lists no pod that the API server has: nothing is counted until "
		"it has heard of its pods");
	kubelet_pass(cluster.loop, 2 * (GRACE_MS + UNLISTED_MARGIN_MS));
	CHECK(!is_reported());
}

/* Whoever has a device by no known UID may be the one that is looked for. */
static void somebody_is_nameless(void)
{
	pass_until_told("only the kubelet's checkpoint names it, and the API server has it");
	pass_until_told("nothing is counted while the kubelet's checkpoint doesn't say the UID of "
			"default/p (x): it may be this one");
	kubelet_pass(cluster.loop, 2 * (GRACE_MS + UNLISTED_MARGIN_MS));
	CHECK(!is_reported());
}

/* proves: REL-2 REL-14 REL-46 HOSTED-24 */
static void test_deleted_by_force(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER)}};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), USUAL, deleted_by_force);
}

/* proves: REL-2 REL-14 HOSTED-24 */
static void test_counted_from_its_end(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER)}};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), USUAL, counted_from_its_end);
}

/* proves: REL-2 REL-14 HOSTED-24 */
static void test_static_and_removed(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," MIRROR)}};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), OF_FILE, static_and_removed);
}

/* The pod's own word counts at once. proves: HOSTED-24 */
static void test_ended_as_it_should(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER "," FAILED("terminated"))},
		{.status = 200, .body = LIST(OTHER)},
	};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), USUAL, ended_as_it_should);
}

/* A phase that others set doesn't. proves: REL-14 HOSTED-24 */
static void test_called_failed(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," FAILED("running"))}};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), USUAL, called_failed);
}

/* proves: REL-21 HOSTED-24 */
static void test_asked_to_go(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))}};

	tell_of(state,
		&(struct fake_api_options){.answers = ANSWERS,
					   .count = ARRAY_SIZE(ANSWERS),
					   .deletion = {.status = 200, .body = POD(RUNS)}},
		USUAL, asked_to_go);
}

/* proves: REL-2 REL-14 HOSTED-24 */
static void test_nobody_has_heard(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER)}};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), UNHEARD, nobody_has_heard);
}

/* proves: REL-14 HOSTED-24 */
static void test_somebody_is_nameless(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER)}};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), NAMELESS, somebody_is_nameless);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_deleted_by_force),   IN_FOLDER(test_counted_from_its_end),
		IN_FOLDER(test_static_and_removed), IN_FOLDER(test_ended_as_it_should),
		IN_FOLDER(test_called_failed),      IN_FOLDER(test_asked_to_go),
		IN_FOLDER(test_nobody_has_heard),   IN_FOLDER(test_somebody_is_nameless),
	};

	return cmocka_run_group_tests(tests, cluster_set_up, cluster_tear_down);
}
