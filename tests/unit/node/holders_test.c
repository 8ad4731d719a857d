/* Who holds what, asked of a kubelet on sockets, with its files and the DRA driver's beside it. */
#include "node/holders.h"

#include "core/fixture.h"
#include "kubelet.h"
#include "lib/folder.h"
#include "node/core/prepared.h"
#include "sys/durable.h"
#include "sys/log.h"

#include <semaphore.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT "9e6ac2b1-3a08-4d4c-8a9e-3a7d2a11f0c7"

static struct world {
	void **folder;
	struct loop *loop;
	struct kubelet kubelet;
	struct inventory inventory;
	struct holders *holders;
	char device[DRA_NAME_SIZE]; /* GPU 0 of ALC_A, as a claim names it */
	/* the answer */
	bool answered, good;
	struct holders_listing listing;
	struct error error;
} world;

static void on_holders(void *arg UNUSED, struct holders_listing *listing, const struct error *error)
{
	world.answered = true;
	world.good = listing;
	if (listing) {
		world.listing = *listing;
		*listing = (struct holders_listing){0};
	} else {
		world.error = *error;
	}
}

static int setup(void **state)
{
	struct atom atom;

	assert_int_equal(folder_make(state), 0);
	world = (struct world){.folder = state, .loop = loop_create()};
	kubelet_start(&world.kubelet, world.loop, *(const char **)state);
	fixture_inventory(&world.inventory);
	atom = fixture_gpu(&world.inventory, 0);
	dra_name(world.device, &atom, ALC_A);
	world.holders =
		holders_create(world.loop, &(struct holders_options){*(const char **)state, BOOT,
								     on_holders, NULL});
	return 0;
}

static int teardown(void **state)
{
	holders_destroy(world.holders);
	holders_listing_deinit(&world.listing);
	kubelet_run(world.loop, 20);
	kubelet_stop(&world.kubelet);
	kubelet_run(world.loop, 20);
	loop_destroy(world.loop);
	inventory_deinit(&world.inventory);
	return folder_remove(state);
}

static bool is_answered(void *arg UNUSED)
{
	return world.answered;
}

static void ask(void)
{
	holders_listing_deinit(&world.listing);
	world.listing = (struct holders_listing){0};
	world.answered = false;
	holders_ask(world.holders);
	kubelet_until(world.loop, is_answered, NULL, HOLDERS_TIMEOUT_MS, "the kubelet answers");
}

static void ask_well(void)
{
	ask();
	if (!world.good)
		fail_msg("%s", world.error.what);
}

static void write_prepared(const char *text)
{
	struct error error;

	expect_ok(
		durable_make_folder(folder_path(world.folder, "plugins/gpu.bcd.dev"), 0700, &error),
		&error);
	expect_ok(durable_replace(folder_path(world.folder, PREPARED_FILE), text, strlen(text),
				  0600, &error),
		  &error);
}

/* What the DRA driver would write: ALC_A's GPU 0, for the claim ns/gpus. */
static void prepare(const char *boot_id)
{
	CLEANUP(prepared) struct prepared prepared = {0};
	CLEANUP(buf) struct buf text = {0};
	struct prepared_claim *claim = vec_push(&prepared.claims);
	struct prepared_device *device = vec_push(&claim->devices);

	str_copy(prepared.boot_id, sizeof prepared.boot_id, boot_id);
	str_copy(claim->uid, sizeof claim->uid, "c-1");
	str_copy(claim->namespace, sizeof claim->namespace, "ns");
	str_copy(claim->name, sizeof claim->name, "gpus");
	str_copy(device->device, sizeof device->device, world.device);
	str_copy(device->pool, sizeof device->pool, "n1");
	str_copy(device->allocation, sizeof device->allocation, ALC_A);
	prepared_format(&prepared, &text);
	write_prepared(buf_text(&text));
}

/* A device that a claim has prepared is in use, though the kubelet lists nobody. proves: REL-8 */
static void test_what_is_prepared_is_held(void **state UNUSED)
{
	ask_well();
	assert_int_equal(world.listing.holders.count, 0);
	assert_false(holders_listing_holds(&world.listing, ALC_A));
	prepare(BOOT);
	ask_well();
	assert_int_equal(world.listing.holders.count, 1);
	assert_string_equal(world.listing.holders.items[0].claim, "ns/gpus/c-1");
	assert_string_equal(world.listing.holders.items[0].claim_uid, "c-1");
	assert_string_equal(world.listing.holders.items[0].name, "claim ns/gpus");
	assert_true(holders_listing_holds(&world.listing, ALC_A));
	assert_false(holders_listing_holds(&world.listing, ALC_B));
	/* of an earlier boot: no process is left that could have it */
	prepare("1e6ac2b1-3a08-4d4c-8a9e-3a7d2a11f0c7");
	ask_well();
	assert_false(holders_listing_holds(&world.listing, ALC_A));
	assert_int_equal(world.listing.record.code, ERROR_NONE);
}

/* With a device or without, and no more of them than can be kept. proves: HOSTED-24 */
static void test_all_names(void **state UNUSED)
{
	ask_well();
	assert_int_equal(world.listing.names.count, 0);
	world.kubelet.padding = 1;
	ask_well();
	assert_int_equal(world.listing.holders.count, 0);
	assert_int_equal(world.listing.names.count, 1);
	assert_string_equal(world.listing.names.items[0], "default/p");
	assert_false(world.listing.cut);
}

static void test_too_many_names(void **state UNUSED)
{
	CLEANUP(buf) struct buf answer = {0};
	struct holders_listing listing = {0};
	struct error error;

	/* ListPodResourcesResponse.pod_resources: a PodResources with a name */
	for (int i = 0; i <= HOLDERS_MAX_NAMES; i++)
		buf_add(&answer, "\x0a\x22\x0a\x20web-0123456789-0123456789-012345", 36);
	expect_ok(holders_read(answer.data, answer.length, &listing, &error), &error);
	assert_int_equal(listing.names.count, HOLDERS_MAX_NAMES);
	assert_true(listing.cut);
	holders_listing_deinit(&listing);
}

/* By their claims, with the pod; what other drivers gave is nobody's here. proves: REL-7 REL-38 */
static void test_claims_that_the_kubelet_lists(void **state UNUSED)
{
	const struct holder *holder;
	struct atom atom = fixture_gpu(&world.inventory, 0);

	world.kubelet.claimed = world.device;
	ask_well();
	assert_int_equal(world.listing.holders.count, 1); /* it was listed twice */
	holder = &world.listing.holders.items[0];
	assert_string_equal(holder->name, "default/p (main)");
	assert_string_equal(holder->claim, "default/gpus");
	assert_string_equal(holder->id, world.device);
	assert_true(holders_listing_holds(&world.listing, ALC_A)); /* by its tag */
	assert_false(holders_listing_holds(&world.listing, ALC_B));
	assert_true(holds_id_is(holder->id, &atom, ALC_A));
	/* the record knows the allocation's name */
	prepare(BOOT);
	ask_well();
	assert_int_equal(world.listing.holders.count, 1);
	holder = &world.listing.holders.items[0];
	assert_string_equal(holder->name, "default/p (main)");
	assert_string_equal(holds_id_allocation(holder->id), ALC_A);
	assert_true(holds_id_is(holder->id, &atom, ALC_A));
	/* a name that bcd never gave, under bcd's driver: no guess */
	world.kubelet.claimed = "gpu-0";
	ask();
	assert_false(world.good);
	assert_non_null(strstr(world.error.what, "gpu-0"));
}

/* Empty, damaged, of another version, too large, not allowed, no file, a link to nowhere.
 * proves: REL-9 REL-14 */
static void test_a_record_that_can_not_be_read(void **state UNUSED)
{
	static const char *const TEXTS[] = {
		"",         "{}",
		"null",     "{\"version\":1,\"bootId\":\"" BOOT "\",\"claims\":[",
		"\x00\x00", "{\"version\":2,\"bootId\":\"" BOOT "\",\"claims\":[]}"};
	CLEANUP(buf) struct buf large = {0};
	const char *path = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {
		write_prepared(TEXTS[i]);
		ask_well();
		assert_int_not_equal(world.listing.record.code, ERROR_NONE);
		assert_non_null(strstr(world.listing.record.what, "prepared.json"));
	}
	memset(buf_extend(&large, PREPARED_MAX_FILE + 1), ' ', PREPARED_MAX_FILE + 1);
	write_prepared(buf_text(&large));
	ask_well();
	assert_int_not_equal(world.listing.record.code, ERROR_NONE);
	path = folder_path(world.folder, PREPARED_FILE);
	assert_int_equal(remove(path), 0);
	ask_well();
	assert_int_equal(world.listing.record.code, ERROR_NONE);
	assert_int_equal(symlink("nowhere", path), 0);
	ask_well();
	assert_int_not_equal(world.listing.record.code, ERROR_NONE);
	assert_int_equal(remove(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	ask_well();
	assert_int_not_equal(world.listing.record.code, ERROR_NONE);
}

/* proves: REL-54 */
static void test_how_long_an_answer_may_be(void **state UNUSED)
{
	world.kubelet.claimed = world.device;
	world.kubelet.padding = HOLDERS_MAX_ANSWER - 4096;
	ask_well();
	assert_true(holders_listing_holds(&world.listing, ALC_A));
	world.kubelet.padding = HOLDERS_MAX_ANSWER;
	ask();
	assert_false(world.good);
	assert_non_null(strstr(world.error.what, "is larger than the 67108864 allowed"));
}

/* The only worker is busy until it is let go. */
struct busy {
	sem_t go;
	bool over;
};

static void keep_busy(void *arg)
{
	struct busy *busy = arg;

	while (sem_wait(&busy->go) != 0)
		continue;
}

static void busy_over(void *arg)
{
	((struct busy *)arg)->over = true;
}

static bool is_over(void *arg)
{
	return ((struct busy *)arg)->over;
}

static bool is_listed(void *arg UNUSED)
{
	return world.kubelet.list_calls > 0;
}

/* An answer may be long, and is read while the loop does everything else: by the worker, which has no time
 * here, so on the loop it would be told at once. */
static void test_the_answer_is_not_read_on_the_loop(void **state UNUSED)
{
	struct busy busy = {0};

	assert_int_equal(sem_init(&busy.go, 0, 0), 0);
	world.kubelet.claimed = world.device;
	loop_work(world.loop, keep_busy, busy_over, &busy);
	world.answered = false;
	holders_ask(world.holders);
	kubelet_until(world.loop, is_listed, NULL, HOLDERS_TIMEOUT_MS, "the kubelet lists");
	kubelet_run(world.loop, 50);
	assert_true(holders_asking(world.holders) && !world.answered);
	sem_post(&busy.go);
	kubelet_until(world.loop, is_answered, NULL, HOLDERS_TIMEOUT_MS, "it is read");
	assert_true(busy.over && world.good);
	assert_true(holders_listing_holds(&world.listing, ALC_A));
	/* destroyed while it is read: nothing is told of it */
	loop_work(world.loop, keep_busy, busy_over, &busy);
	world.answered = busy.over = false;
	world.kubelet.list_calls = 0;
	holders_ask(world.holders);
	kubelet_until(world.loop, is_listed, NULL, HOLDERS_TIMEOUT_MS, "the kubelet lists");
	kubelet_run(world.loop, 20);
	holders_destroy(world.holders);
	world.holders = NULL;
	sem_post(&busy.go);
	kubelet_until(world.loop, is_over, &busy, HOLDERS_TIMEOUT_MS, "the worker is free");
	kubelet_run(world.loop, 20);
	assert_false(world.answered);
	sem_destroy(&busy.go);
}

static void expect_hung(void)
{
	assert_false(world.good);
	assert_non_null(strstr(world.error.what, "hangs"));
	assert_false(holders_asking(world.holders));
}

/* A worker that doesn't come back is no silence: it failed, as does whoever asks while it is away, and none is
 * started beside it. Back again, it says nothing late, and the next question is asked.
 * proves: REL-14 REL-53 */
static void test_a_reading_that_hangs(void **state UNUSED)
{
	struct busy busy = {0};

	assert_int_equal(sem_init(&busy.go, 0, 0), 0);
	world.kubelet.claimed = world.device;
	loop_work(world.loop, keep_busy, busy_over, &busy);
	holders_ask(world.holders);
	kubelet_until(world.loop, is_listed, NULL, HOLDERS_TIMEOUT_MS, "the kubelet lists");
	kubelet_run(world.loop, 50);
	kubelet_pass_until(world.loop, is_answered, NULL, HOLDERS_READ_MS + 2000, "it is given up");
	expect_hung();
	ask();
	expect_hung();
	assert_int_equal(world.kubelet.list_calls, 1);
	world.answered = false;
	sem_post(&busy.go);
	kubelet_until(world.loop, is_over, &busy, HOLDERS_TIMEOUT_MS, "the worker is free");
	kubelet_run(world.loop, 50);
	assert_false(world.answered);
	ask_well();
	assert_true(holders_listing_holds(&world.listing, ALC_A));
	/* destroyed while it hangs: nothing is told of it */
	busy.over = false;
	loop_work(world.loop, keep_busy, busy_over, &busy);
	world.answered = false;
	world.kubelet.list_calls = 0;
	holders_ask(world.holders);
	kubelet_until(world.loop, is_listed, NULL, HOLDERS_TIMEOUT_MS, "the kubelet lists");
	kubelet_run(world.loop, 50);
	kubelet_pass_until(world.loop, is_answered, NULL, HOLDERS_READ_MS + 2000, "it is given up");
	world.answered = false;
	holders_destroy(world.holders);
	world.holders = NULL;
	sem_post(&busy.go);
	kubelet_until(world.loop, is_over, &busy, HOLDERS_TIMEOUT_MS, "the worker is free");
	kubelet_run(world.loop, 20);
	assert_false(world.answered);
	sem_destroy(&busy.go);
}

/* Also with who held what a moment ago: no answer, or none in time, is one that failed, at once.
 * proves: REL-14 REL-53 */
static void test_no_answer(void **state UNUSED)
{
	world.kubelet.claimed = world.device;
	ask_well();
	world.kubelet.pods_fail = true;
	ask();
	assert_false(world.good);
	assert_non_null(strstr(world.error.what, "rate limit"));
	world.kubelet.pods_fail = false;
	ask_well();
	world.kubelet.pods_hang = true;
	world.answered = false;
	holders_ask(world.holders);
	kubelet_pass_until(world.loop, is_answered, NULL, HOLDERS_TIMEOUT_MS + 2000,
			   "it is given up");
	assert_false(world.good);
	assert_int_equal(world.listing.holders.count, 1); /* the one of before, untouched */
}

/* Its folder tells whether a pod of the checkpoint is there; where no folder can be seen it counts.
 * proves: REL-14 HOSTED-24 */
static void test_who_only_the_checkpoint_names(void **state UNUSED)
{
	const char *pods;
	struct error error;

	kubelet_write_checkpoint(&world.kubelet, "uid-1", "x@" ALC_A);
	ask_well();
	assert_true(holders_listing_holds(&world.listing, ALC_A));
	assert_true(world.listing.holders.items[0].unlisted);
	assert_string_equal(world.listing.holders.items[0].name, "pod uid-1 (main)");
	pods = folder_path(world.folder, "pods/uid-1");
	expect_ok(durable_make_folder(pods, 0700, &error), &error);
	ask_well();
	assert_true(holders_listing_holds(&world.listing, ALC_A));
	assert_false(world.listing.holders.items[0].unlisted);
	assert_int_equal(rmdir(folder_path(world.folder, "pods/uid-1")), 0);
	ask_well();
	assert_false(holders_listing_holds(&world.listing, ALC_A));
}

/* Where that can't be told, nobody's folder is gone for sure. proves: REL-14 HOSTED-24 */
static void test_folders_that_can_not_be_looked_for(void **state UNUSED)
{
	kubelet_write_checkpoint(&world.kubelet, "uid-1", "x@" ALC_A);
	assert_int_equal(symlink("pods", folder_path(world.folder, "pods")), 0);
	ask();
	assert_false(world.good);
	assert_non_null(strstr(world.error.what, "/pods': "));
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(test_what_is_prepared_is_held),
		IN_WORLD(test_all_names),
		IN_WORLD(test_too_many_names),
		IN_WORLD(test_claims_that_the_kubelet_lists),
		IN_WORLD(test_a_record_that_can_not_be_read),
		IN_WORLD(test_how_long_an_answer_may_be),
		IN_WORLD(test_the_answer_is_not_read_on_the_loop),
		IN_WORLD(test_a_reading_that_hangs),
		IN_WORLD(test_no_answer),
		IN_WORLD(test_who_only_the_checkpoint_names),
		IN_WORLD(test_folders_that_can_not_be_looked_for),
	};

	log_set_level(LOG_ERROR);
	setenv("UV_THREADPOOL_SIZE", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
