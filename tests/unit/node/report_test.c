/* What the node tells, under which Spec, and only once it is on disk: the shell on a real disk, with
 * an uplink that is the test's. No kubelet was ever here, so nothing is to be waited for. */
#include "core/fixture.h"
#include "lib/folder.h"
#include "node/core/reports.h"
#include "node/node.h"
#include "node/uplink.h"
#include "proto/message.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "text/toml.h"

#include <signal.h>
#include <sys/resource.h>

MESSAGE_TYPE(up, Bettercompute__V1__Up, bettercompute__v1__up)

#define MAX_SENT 64

/* --- node/uplink.h: always open; what comes down is set by the test --- */

struct uplink {
	struct uplink_options options;
	const char *welcome;  /* lineage, until it is taken */
	struct spec *spec;    /* until it is taken */
	int64_t acknowledged; /* on this stream */
	size_t sent_count;
	struct sent {
		int64_t sequence, generation;
		Bettercompute__V1__Report__BodyCase kind;
	} sent[MAX_SENT];
};

static struct uplink *uplink; /* the node's */

struct uplink *uplink_create(struct loop *loop UNUSED, const struct uplink_options *options)
{
	uplink = mem_alloc(sizeof *uplink);
	uplink->options = *options;
	return uplink;
}

void uplink_destroy(struct uplink *gone)
{
	assert_null(gone->spec);
	free(gone);
	uplink = NULL;
}

const char *uplink_phase_name(enum uplink_phase phase UNUSED)
{
	return "open";
}

struct mono uplink_step(struct uplink *self UNUSED, const struct uplink_hello *hello UNUSED,
			struct mono now, bool *ret_timed)
{
	*ret_timed = false;
	return now;
}

enum uplink_phase uplink_phase(const struct uplink *self UNUSED)
{
	return UPLINK_OPEN;
}

const char *uplink_error(const struct uplink *self UNUSED)
{
	return "";
}

const char *uplink_address(const struct uplink *self UNUSED)
{
	return "test";
}

struct wall uplink_since(const struct uplink *self UNUSED)
{
	return (struct wall){1};
}

bool uplink_take_welcome(struct uplink *self, char ret_lineage[SPEC_LINEAGE_SIZE])
{
	if (!self->welcome)
		return false;
	str_copy(ret_lineage, SPEC_LINEAGE_SIZE, TAKE(self->welcome));
	return true;
}

struct spec *uplink_take_spec(struct uplink *self)
{
	return TAKE(self->spec);
}

const char *uplink_spec_error(const struct uplink *self UNUSED)
{
	return "";
}

int64_t uplink_acknowledged(const struct uplink *self)
{
	return self->acknowledged;
}

void uplink_take_certificate(struct uplink *self UNUSED, struct buf *ret_pem UNUSED)
{
}

bool uplink_take_operation(struct uplink *self UNUSED, struct uplink_operation *operation UNUSED)
{
	return false;
}

void uplink_send(struct uplink *self, const struct buf *message)
{
	CLEANUP(message) Bettercompute__V1__Up *up = NULL;
	struct error error;

	expect_ok(up_unpack(message->data, message->length, &up, &error), &error);
	assert_int_equal(up->body_case, BETTERCOMPUTE__V1__UP__BODY_REPORT);
	assert_in_range(self->sent_count, 0, MAX_SENT - 1);
	self->sent[self->sent_count++] = (struct sent){
		up->report->sequence, up->report->spec_generation, up->report->body_case};
}

void uplink_beat(struct uplink *self UNUSED)
{
}

bool uplink_full(const struct uplink *self UNUSED)
{
	return false;
}

void uplink_renew(struct uplink *self UNUSED, struct wall now UNUSED)
{
}

/* --- the world --- */

struct world {
	void *folder; /* lib/folder.h: a path */
	char path[512];
	struct loop *loop;
	struct config config;
	struct node *node;
	struct inventory inventory;
};

static const char *at(struct world *world, const char *name)
{
	snprintf(world->path, sizeof world->path, "%s/%s", (const char *)world->folder, name);
	return world->path;
}

static void write_text(struct world *world, const char *name, const struct buf *text)
{
	struct error error;

	expect_ok(durable_replace(at(world, name), text->data, text->length, 0600, &error), &error);
}

/* ALC_A is wanted, or it isn't. */
static struct spec *make_spec(struct world *world, const char *lineage, int64_t generation,
			      bool with_a)
{
	struct spec *spec = mem_alloc(sizeof *spec);

	if (with_a)
		fixture_assign(fixture_assignment(spec, ALC_A), &world->inventory,
			       fixture_gpu(&world->inventory, 0));
	str_copy(spec->lineage, sizeof spec->lineage, lineage);
	spec->generation = generation;
	return spec;
}

static void free_spec(struct spec *spec)
{
	spec_deinit(spec);
	free(spec);
}

static void write_spec(struct world *world, const char *lineage, int64_t generation, bool with_a)
{
	struct spec *spec = make_spec(world, lineage, generation, with_a);
	CLEANUP(buf) struct buf text = {0};

	spec_format(spec, &text);
	write_text(world, "var/lib/bcd/spec.json", &text);
	free_spec(spec);
}

/* Something to fill the file with, that a newer bcd may have written. */
static void write_releases(struct world *world, bool reported, size_t filling)
{
	struct releases releases = {0};
	struct holds holds = {0};
	struct atom atom = fixture_gpu(&world->inventory, 0);
	CLEANUP(buf) struct buf text = {0}, filler = {0};

	fixture_bind(&holds, &world->inventory, ALC_A, &atom, 1);
	releases_add(&releases, &holds.items[0], (struct wall){1000}, (struct mono){1000}, "boot");
	releases.entries.items[0].reported = reported;
	for (size_t i = 0; i < filling; i++)
		buf_add_text(&filler, "x");
	releases.extra = json_pack("{s:s}", "filling", filling ? buf_text(&filler) : "");
	releases_format(&releases, &text);
	write_text(world, "var/lib/bcd/releasing.json", &text);
	releases_deinit(&releases);
	holds_deinit(&holds);
}

static void read_reports(struct world *world, struct reports *reports)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	expect_ok(durable_read(at(world, "var/lib/bcd/reports.json"), REPORTS_MAX_FILE, &text,
			       &error),
		  &error);
	expect_ok(reports_parse(buf_text(&text), text.length, reports, &error), &error);
}

static void start_node(struct world *world, const char *lineage)
{
	struct error error;

	expect_ok(node_create(world->loop, &world->config, NULL, &world->node, &error), &error);
	uplink->welcome = lineage;
}

static int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0}, gpus = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	log_set_level(LOG_ERROR);
	assert_int_equal(folder_make(&world->folder), 0);
	buf_printf(&text,
		   "[paths]\nroot = '%s'\n[host]\nunits = true\nreserved_memory_mib = 0\n"
		   "[gpu]\nsource = 'sim'\nsim_file = '%s/gpus.toml'\n"
		   "[kubernetes]\nnode_name = 'n1'\n",
		   (const char *)world->folder, (const char *)world->folder);
	expect_ok(toml_parse(buf_text(&text), text.length, CONFIG_MAX_FILE, "config.toml", &tree,
			     &error),
		  &error);
	expect_ok(config_read(tree, NULL, &world->config, &error), &error);
	expect_ok(durable_make_folder(at(world, "var/lib/bcd"), 0700, &error), &error);
	fixture_scenario(&scenario);
	scenario_inventory(&scenario, 0, "test", &world->inventory);
	scenario_format(&scenario, &gpus);
	write_text(world, "gpus.toml", &gpus);
	world->loop = loop_create();
	*state = world;
	return 0;
}

static void on_pause(void *arg)
{
	loop_stop(arg);
}

static void run(struct world *world, int64_t ms)
{
	struct loop_timer *pause = loop_timer_create(world->loop, on_pause, world->loop);

	loop_timer_start(pause, ms);
	loop_run(world->loop);
	loop_timer_destroy(pause);
}

static int teardown(void **state)
{
	struct world *world = *state;

	node_destroy(TAKE(world->node));
	run(world, 50);
	loop_destroy(world->loop);
	inventory_deinit(&world->inventory);
	config_deinit(&world->config);
	assert_int_equal(folder_remove(&world->folder), 0);
	free(world);
	return 0;
}

/* The newest of its kind that was sent; NULL: none was. */
static const struct sent *last_sent(Bettercompute__V1__Report__BodyCase kind)
{
	for (size_t i = uplink->sent_count; i-- > 0;)
		if (uplink->sent[i].kind == kind)
			return &uplink->sent[i];
	return NULL;
}

#define BOUND     BETTERCOMPUTE__V1__REPORT__BODY_BOUND
#define RELEASED  BETTERCOMPUTE__V1__REPORT__BODY_RELEASED
#define INVENTORY BETTERCOMPUTE__V1__REPORT__BODY_INVENTORY

/* --- tests --- */

/* A database that was put back knows none of what it was told: all of it is told again, with new
 * numbers, under the Spec that came from it; nothing goes to it before.
 * proves: GW-26 GW-17 */
static void test_another_lineage_is_told_all_under_its_own_spec(void **state)
{
	struct world *world = *state;
	int64_t before;

	write_spec(world, "lineage-1", 70, true);
	start_node(world, "lineage-1");
	run(world, 200);
	assert_int_equal(last_sent(BOUND)->generation, 70);
	before = uplink->acknowledged = uplink->sent[uplink->sent_count - 1].sequence;
	run(world, 100);
	uplink->sent_count = 0;
	uplink->acknowledged = 0;
	uplink->welcome = "lineage-2";
	uplink->options.wake(uplink->options.arg);
	run(world, 200);
	assert_int_equal(uplink->sent_count, 0);
	uplink->spec = make_spec(world, "lineage-2", 5, true);
	uplink->options.wake(uplink->options.arg);
	run(world, 200);
	assert_int_equal(last_sent(BOUND)->generation, 5);
	assert_int_equal(last_sent(INVENTORY)->generation, 5);
	for (size_t i = 0; i < uplink->sent_count; i++)
		assert_true(uplink->sent[i].sequence > before);
}

/* What was released and reported there waits for this database's word too. But what its Spec gives
 * anew isn't told as released: it would be taken for the new one's release.
 * proves: GW-26 REL-6 REL-47 */
static void test_another_lineage_hears_of_releases_it_does_not_want(void **state)
{
	struct world *world = *state;

	for (int wanted = 0; wanted < 2; wanted++) {
		write_spec(world, "lineage-1", 70, false);
		write_releases(world, true, 0);
		start_node(world, "lineage-2");
		run(world, 200);
		assert_int_equal(uplink->sent_count, 0);
		uplink->spec = make_spec(world, "lineage-2", 5, wanted);
		uplink->options.wake(uplink->options.arg);
		run(world, 200);
		if (wanted) {
			assert_null(last_sent(RELEASED));
			assert_int_equal(last_sent(BOUND)->generation, 5);
		} else {
			assert_int_equal(last_sent(RELEASED)->generation, 5);
		}
		node_destroy(TAKE(world->node));
		run(world, 50);
	}
	start_node(world, "lineage-2"); /* for the tear-down */
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The report was written, the list's last step was not: what is on disk counts, so it is sent,
 * though its entry doesn't say so yet; and that follows once the disk takes it.
 * proves: GW-17 REL-43 */
static void test_a_list_that_failed_is_read_again(void **state)
{
	struct world *world = *state;
	struct reports reports = {0};
	struct releases releases = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	signal(SIGXFSZ, SIG_IGN);
	write_spec(world, "lineage-1", 70, false);
	write_releases(world, false, 20000);
	limit_files(10000);
	start_node(world, "lineage-1");
	run(world, 500);
	read_reports(world, &reports);
	assert_true(reports_has(&reports, REPORT_RELEASED, ALC_A));
	assert_non_null(last_sent(RELEASED));
	assert_true(last_sent(RELEASED)->sequence <= reports.sequence);
	limit_files(RLIM_INFINITY);
	uplink->acknowledged = reports.sequence;
	uplink->options.wake(uplink->options.arg);
	run(world, 1500);
	expect_ok(durable_read(at(world, "var/lib/bcd/releasing.json"), RELEASES_MAX_FILE, &text,
			       &error),
		  &error);
	expect_ok(releases_parse(buf_text(&text), text.length, &releases, &error), &error);
	assert_int_equal(releases.entries.count, 0); /* acknowledged */
	releases_deinit(&releases);
	reports_deinit(&reports);
}

/* Nothing is sent that isn't on disk: a number that was sent and then lost would be used again.
 * proves: GW-17 */
static void test_what_cannot_be_written_is_not_sent(void **state)
{
	struct world *world = *state;

	signal(SIGXFSZ, SIG_IGN);
	write_spec(world, "lineage-1", 70, true);
	limit_files(1);
	start_node(world, "lineage-1");
	run(world, 500);
	assert_int_equal(uplink->sent_count, 0);
	limit_files(RLIM_INFINITY);
	run(world, 1500);
	assert_int_equal(last_sent(BOUND)->generation, 70);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_another_lineage_is_told_all_under_its_own_spec,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_another_lineage_hears_of_releases_it_does_not_want, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_list_that_failed_is_read_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_written_is_not_sent, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
