/* A bcd that doesn't see the host's processes, and pods that kubelet, checkpoint and API server forget while they may
 * run. The node is a child of the test in a PID namespace of its own, by clocks that leap; kubelet and API server stay
 * outside. */
#include "node/unlisted.h"

#include "cluster.h"
#include "core/fixture.h"
#include "lib/alone.h"
#include "lib/folder.h"
#include "node/core/reap.h"
#include "node/core/release.h"
#include "node/core/reports.h"
#include "node/state.h"
#include "node/status.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <stdio.h>
#include <unistd.h>

#define UID      "0b6ed7a0-52a5-4c3b-9e5c-3a8a6b2f0c11"
#define STATIC   "5d3a1f6ce07b4c1c8e2a9d4b7f60e113" /* a static pod's, as a kubelet makes it */
#define GRACE_MS 20000                              /* the pod's */

#define SPEC "\"spec\":{\"nodeName\":\"n1\",\"terminationGracePeriodSeconds\":20}"
#define POD(status)                                                                                \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\",\"uid\":" \
	"\"" UID "\",\"namespace\":\"ns\",\"name\":\"web\"}," SPEC ",\"status\":" status "}"
#define RUNS "{\"phase\":\"Running\"}"
#define MIRROR                                                                                     \
	"{\"metadata\":{\"uid\":\"m-1\",\"namespace\":\"ns\",\"name\":\"web-n1\",\"annotations\":" \
	"{"                                                                                        \
	"\"kubernetes.io/config.mirror\":\"" STATIC                                                \
	"\"},\"ownerReferences\":[{\"apiVersion\":\"v1\","                                         \
	"\"kind\":\"Node\",\"name\":\"n1\",\"uid\":\"n-1\",\"controller\":true}]}," SPEC           \
	",\"status\":" RUNS "}"
/* One that the kubelet lists whenever it lists any: so it has heard of its pods. */
#define OTHER                                                                                      \
	"{\"metadata\":{\"uid\":\"o-1\",\"namespace\":\"default\",\"name\":\"p\"}," SPEC           \
	",\"status\":" RUNS "}"
#define LIST(items)                                                                                \
	"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[" items "]}"

static struct cluster cluster;

/* --- the child's: nothing here may fail as tests do, it has its exit status alone --- */

static void check(bool so, int line)
{
	if (so)
		return;
	fprintf(stderr, "vanished_test.c:%d isn't so: ", line);
	if (cluster.node) {
		CLEANUP(tree) json_t *status = status_describe(cluster.node);

		json_dumpf(json_object_get(status, "releases"), stderr, JSON_COMPACT);
	}
	_exit(1);
}
#define CHECK(so) check(so, __LINE__)

/* The kubelet doesn't name it any more. */
static void forget(void)
{
	kubelet_write_checkpoint(&cluster.kubelet, NULL, NULL);
}

static bool is_reported(void)
{
	CLEANUP(releases) struct releases releases = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	return durable_read(folder_path(cluster.folder, "var/lib/bcd/releasing.json"),
			    RELEASES_MAX_FILE, &text, &error) &&
	       releases_parse(buf_text(&text), text.length, &releases, &error) &&
	       releases.entries.count > 0 && releases.entries.items[0].reported;
}

/* What is told of the release. */
static bool is_told(const char *words)
{
	CLEANUP(tree) json_t *status = status_describe(cluster.node);
	CLEANUP(buf) struct buf text = {0};

	tree_dump_pretty(&text, status);
	return strstr(buf_text(&text), words);
}

static void pass_until_told(const char *words)
{
	for (int i = 0; i < 200 && !is_told(words); i++)
		kubelet_pass(cluster.loop, 100);
	CHECK(is_told(words));
}

/* How long it takes from now on, by the clocks that leap. */
static int64_t pass_until_reported(void)
{
	struct mono from = clock_mono();

	while (!is_reported() && mono_until(from, clock_mono()) < 120000)
		kubelet_pass(cluster.loop, 100);
	CHECK(is_reported());
	return mono_until(from, clock_mono());
}

static void start_node(void)
{
	CHECK(node_create(cluster.loop, &cluster.config, NULL, &cluster.node, &(struct error){0}));
}

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

/* The same with nobody who restarts. */
static void counted_from_its_end(void)
{
	int64_t took;

	pass_until_told("only the kubelet's checkpoint names it, and the API server has it");
	forget();
	pass_until_told("it may run yet");
	took = pass_until_reported();
	CHECK(took > GRACE_MS + UNLISTED_MARGIN_MS - 2000);
	CHECK(took < GRACE_MS + UNLISTED_MARGIN_MS + 7000);
}

static int64_t waits_since(void)
{
	CLEANUP(releases) struct releases releases = {0};
	CLEANUP(buf) struct buf text = {0};
	char boot_id[CLOCK_BOOT_ID_SIZE];
	struct error error;

	clock_boot_id(boot_id);
	CHECK(durable_read(folder_path(cluster.folder, "var/lib/bcd/releasing.json"),
			   RELEASES_MAX_FILE, &text, &error));
	CHECK(releases_parse(buf_text(&text), text.length, &releases, &error));
	return str_equal(releases.entries.items[0].boot_id, boot_id)
		       ? releases.entries.items[0].since_boot_ms
		       : -1;
}

/* It waits from its first sight in this boot, as any, also over a restart. */
static void waits_since_a_reboot(void)
{
	struct mono from = clock_mono();
	int64_t since;

	for (int i = 0; i < 300 && waits_since() < 0; i++)
		kubelet_pass(cluster.loop, 100);
	since = waits_since();
	CHECK(since >= from.ms - 5000);
	node_destroy(TAKE(cluster.node));
	kubelet_pass(cluster.loop, 5000);
	start_node();
	pass_until_told("only the kubelet's checkpoint names it, and the API server has it");
	CHECK(waits_since() == since);
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

static bool has_record(const char *words)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	return durable_read(folder_path(cluster.folder, "var/lib/bcd/releasing.json"),
			    RELEASES_MAX_FILE, &text, &error) &&
	       strstr(buf_text(&text), words);
}

static void write_spec(int64_t generation, bool wanted)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(spec) struct spec spec = {0};
	CLEANUP(buf) struct buf text = {0};

	fixture_inventory(&inventory);
	if (wanted)
		fixture_assign(fixture_assignment(&spec, ALC_A), &inventory,
			       fixture_gpu(&inventory, 0));
	str_copy(spec.lineage, sizeof spec.lineage, "lineage-1");
	spec.generation = generation;
	spec_format(&spec, &text);
	cluster_write(&cluster, "var/lib/bcd/spec.json", buf_text(&text));
}

/* It was over long before the release, and the kubelet hasn't written its checkpoint since. */
static void over_before_a_restart(void)
{
	for (int i = 0; i < 300 && !has_record("\"over\": true"); i++)
		kubelet_pass(cluster.loop, 100);
	kubelet_pass(cluster.loop, 2 * NODE_HOLDERS_MS);
	CHECK(has_record("\"over\": true"));
	node_destroy(TAKE(cluster.node));
	write_spec(2, false);
	start_node();
	CHECK(pass_until_reported() < RELEASE_KUBELET_SETTLE_MS + 5000);
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

/* Who had what is bound was in the record, and nobody else names him: it may run while the marker is there. */
static void lost_with_the_record(void)
{
	for (int i = 0; i < 300 && !has_record(UID); i++)
		kubelet_pass(cluster.loop, 100);
	CHECK(has_record(UID));
	forget();
	kubelet_pass(cluster.loop, 2 * NODE_HOLDERS_MS);
	node_destroy(TAKE(cluster.node));
	cluster_write(&cluster, "var/lib/bcd/releasing.json", "{\"version\": 1, \"rel");
	write_spec(2, false);
	start_node();
	pass_until_told("pods that nobody lists any more may run, for up to an hour");
	/* also by the next one, which finds the marker */
	node_destroy(TAKE(cluster.node));
	start_node();
	pass_until_told("pods that nobody lists any more may run, for up to an hour");
	kubelet_pass(cluster.loop, 2 * (GRACE_MS + UNLISTED_MARGIN_MS));
	CHECK(has_record(ALC_A));
	CHECK(!is_reported());
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

typedef void story_fn(void);

static int tell_alone(void *arg)
{
	story_fn *const *story = arg;

	cluster.loop = loop_create(); /* the one of before is the parent's */
	start_node();
	(*story)();
	return 0;
}

/* --- the test's --- */

static void write_pending(bool of_this_boot)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(releases) struct releases releases = {0};
	CLEANUP(buf) struct buf text = {0};
	struct release_entry *entry = vec_push(&releases.entries);

	fixture_inventory(&inventory);
	str_copy(entry->allocation, sizeof entry->allocation, ALC_A);
	if (of_this_boot)
		clock_boot_id(entry->boot_id);
	else
		str_copy(entry->boot_id, sizeof entry->boot_id,
			 "00000000-0000-4000-8000-000000000001");
	entry->since = clock_wall().ms / 1000;
	entry->since_boot_ms = clock_mono().ms;
	vec_push(&entry->devices)->atom = fixture_gpu(&inventory, 0);
	releases_format(&releases, &text);
	cluster_write(&cluster, "var/lib/bcd/releasing.json", buf_text(&text));
}

/* What is odd. */
enum habit {
	USUAL,
	WANTED,   /* nothing is pending yet */
	UNHEARD,  /* the kubelet lists nobody */
	NAMELESS, /* and somebody with a device whom its checkpoint doesn't have */
	OF_FILE,  /* who has the GPU is static */
	REBOOTED, /* what is pending was recorded by an earlier boot */
};

/* ALC_A is pending, or wanted, and the checkpoint alone names who has its GPU. */
static void prepare(void **state, const struct fake_api_options *api, enum habit habit)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	struct cluster_options options = {.api = *api};
	char held[HOLDS_ID_SIZE];
	struct error error;

	options.api.aside = "/api/v1/nodes/";
	options.api.aside_answer = (struct fake_api_answer){.status = 200, .body = "{}"};
	cluster_prepare(&cluster, state, &options);
	write_spec(1, habit == WANTED);
	if (habit != WANTED)
		write_pending(habit != REBOOTED);
	expect_ok(durable_make_folder(folder_path(state, "proc/self"), 0700, &error), &error);
	cluster_write(&cluster, "proc/self/cgroup", "0::/bcd\n");
	fixture_inventory(&inventory);
	fixture_id(held, fixture_gpu(&inventory, 0), ALC_A);
	kubelet_write_checkpoint(&cluster.kubelet, habit == OF_FILE ? STATIC : UID, held);
}

static void tell_of(void **state, const struct fake_api_options *api, enum habit habit,
		    story_fn *story)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	char held[HOLDS_ID_SIZE];
	pid_t child;

	prepare(state, api, habit);
	fixture_inventory(&inventory);
	fixture_id(held, fixture_gpu(&inventory, 1), ALC_B);
	cluster.kubelet.padding = habit != UNHEARD; /* it lists default/p */
	cluster.kubelet.held[0] = habit == NAMELESS ? held : NULL;
	child = alone_start(tell_alone, &story);
	assert_int_equal(kubelet_until_ended(cluster.loop, child, 60000, "the story ends"), 0);
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

/* Lists alone tell: whoever asks isn't allowed to watch. */
static void tell(void **state, const struct fake_api_answer *answers, size_t count,
		 enum habit habit, story_fn *story)
{
	tell_of(state, &(struct fake_api_options){.answers = answers, .count = count}, habit,
		story);
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

/* Whoever was given it since the machine was booted may have it. proves: REL-2 REL-14 HOSTED-24 */
static void test_given_after_a_reboot(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER)}};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), REBOOTED, counted_from_its_end);
}

/* proves: REL-49 */
static void test_waits_since_a_reboot(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))}};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), REBOOTED, waits_since_a_reboot);
}

/* proves: REL-2 REL-14 HOSTED-24 */
static void test_static_and_removed(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," MIRROR)}};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), OF_FILE, static_and_removed);
}

#define FAILED(state)                                                                              \
	POD("{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"" state "\":{}}}]}")

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

/* Also to the next bcd. proves: HOSTED-24 REL-46 */
static void test_over_before_a_restart(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER "," FAILED("terminated"))},
		{.status = 200, .body = LIST(OTHER)},
	};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), WANTED, over_before_a_restart);
}

/* proves: REL-2 REL-36 HOSTED-24 */
static void test_lost_with_the_record(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER)},
	};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), WANTED, lost_with_the_record);
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

static int make_certificates(void **state UNUSED)
{
	cluster_init(&cluster);
	return 0;
}

static int free_certificates(void **state UNUSED)
{
	cluster_deinit(&cluster);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_deleted_by_force),
		IN_FOLDER(test_counted_from_its_end),
		IN_FOLDER(test_given_after_a_reboot),
		IN_FOLDER(test_waits_since_a_reboot),
		IN_FOLDER(test_static_and_removed),
		IN_FOLDER(test_ended_as_it_should),
		IN_FOLDER(test_over_before_a_restart),
		IN_FOLDER(test_called_failed),
		IN_FOLDER(test_asked_to_go),
		IN_FOLDER(test_nobody_has_heard),
		IN_FOLDER(test_heard_as_it_ended),
		IN_FOLDER(test_heard_as_it_was_deleted),
		IN_FOLDER(test_deleted_while_it_runs),
		IN_FOLDER(test_heard_before_it_was_known),
		IN_FOLDER(test_somebody_is_nameless),
		IN_FOLDER(test_lost_with_the_record),
		IN_FOLDER(test_watched_once_lists_come),
	};

	return cmocka_run_group_tests(tests, make_certificates, free_certificates);
}
