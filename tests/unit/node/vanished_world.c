#include "vanished_world.h"

#include "lib/alone.h"
#include "node/core/release.h"
#include "node/core/reports.h"
#include "node/core/unlisted.h"
#include "node/status.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <stdio.h>
#include <unistd.h>

void check(bool so, const char *file, int line)
{
	if (so)
		return;
	fprintf(stderr, "%s:%d isn't so: ", file, line);
	if (cluster.node) {
		CLEANUP(tree) json_t *status = status_describe(cluster.node);

		json_dumpf(json_object_get(status, "releases"), stderr, JSON_COMPACT);
	}
	_exit(1);
}

void forget(void)
{
	kubelet_write_checkpoint(&cluster.kubelet, NULL, NULL);
}

bool is_reported(void)
{
	CLEANUP(releases) struct releases releases = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	return durable_read(folder_path(cluster.folder, "var/lib/bcd/releasing.json"),
			    RELEASES_MAX_FILE, &text, &error) &&
	       releases_parse(buf_text(&text), text.length, &releases, &error) &&
	       releases.entries.count > 0 && releases.entries.items[0].reported;
}

bool is_told(const char *words)
{
	CLEANUP(tree) json_t *status = status_describe(cluster.node);
	CLEANUP(buf) struct buf text = {0};

	tree_dump_pretty(&text, status);
	return strstr(buf_text(&text), words);
}

void pass_until_told(const char *words)
{
	for (int i = 0; i < 200 && !is_told(words); i++)
		kubelet_pass(cluster.loop, 100);
	CHECK(is_told(words));
}

int64_t pass_until_reported(void)
{
	struct mono from = clock_mono();

	while (!is_reported() && mono_until(from, clock_mono()) < 120000)
		kubelet_pass(cluster.loop, 100);
	CHECK(is_reported());
	return mono_until(from, clock_mono());
}

void start_node(void)
{
	CHECK(node_create(cluster.loop, &cluster.config, NULL, &cluster.node, &(struct error){0}));
}

bool has_record(const char *words)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	return durable_read(folder_path(cluster.folder, "var/lib/bcd/releasing.json"),
			    RELEASES_MAX_FILE, &text, &error) &&
	       strstr(buf_text(&text), words);
}

void write_spec(int64_t generation, bool wanted)
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

void counted_from_its_end(void)
{
	int64_t took;

	pass_until_told("only the kubelet's checkpoint names it, and the API server has it");
	forget();
	pass_until_told("it may run yet");
	took = pass_until_reported();
	CHECK(took > GRACE_MS + UNLISTED_MARGIN_MS - 2000);
	CHECK(took < GRACE_MS + UNLISTED_MARGIN_MS + 7000);
}

static int tell_alone(void *arg)
{
	story_fn *const *story = arg;

	cluster.loop = loop_create(); /* the one of before is the parent's */
	start_node();
	(*story)();
	return 0;
}

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

void tell_of(void **state, const struct fake_api_options *api, enum habit habit, story_fn *story)
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

void tell(void **state, const struct fake_api_answer *answers, size_t count, enum habit habit,
	  story_fn *story)
{
	tell_of(state, &(struct fake_api_options){.answers = answers, .count = count}, habit,
		story);
}
