#include "reaper_world.h"

#include "node/core/release.h"
#include "node/core/reports.h"
#include "sys/clock.h"
#include "sys/durable.h"

struct inventory inventory;
char held[HOLDS_ID_SIZE];

/* ALC_A has been pending for so long, in this boot. */
static void write_releases(int64_t ms)
{
	CLEANUP(releases) struct releases releases = {0};
	CLEANUP(buf) struct buf text = {0};
	struct release_entry *entry = vec_push(&releases.entries);

	str_copy(entry->allocation, sizeof entry->allocation, ALC_A);
	clock_boot_id(entry->boot_id);
	entry->since = (clock_wall().ms - ms) / 1000;
	entry->since_boot_ms = clock_mono().ms - ms;
	vec_push(&entry->devices)->atom = fixture_gpu(&inventory, 0);
	releases_format(&releases, &text);
	cluster_write(&cluster, "var/lib/bcd/releasing.json", buf_text(&text));
}

void write_spec(void)
{
	CLEANUP(buf) struct buf text = {0};
	struct spec spec = {.generation = 1};

	spec_format(&spec, &text);
	cluster_write(&cluster, "var/lib/bcd/spec.json", buf_text(&text));
}

static void prepare_with(void **state, bool units, const struct fake_api_answer *answers,
			 size_t count, int64_t ms)
{
	struct error error;

	cluster_prepare(&cluster, state,
			&(struct cluster_options){
				.units = units,
				.api = {.answers = answers,
					.count = count,
					.aside = "/api/v1/nodes/",
					.aside_answer = {.status = 200, .body = "{}"}},
			});
	fixture_inventory(&inventory);
	fixture_id(held, fixture_gpu(&inventory, 0), ALC_A);
	write_spec();
	write_releases(ms);
	/* Nobody but this process. */
	expect_ok(durable_make_folder(folder_path(state, "proc/self"), 0700, &error), &error);
	cluster_write(&cluster, "proc/self/cgroup", "0::/bcd\n");
	kubelet_write_checkpoint(&cluster.kubelet, "uid-1", held);
	cluster.kubelet.held[0] = held;
}

void prepare(void **state, const struct fake_api_answer *answers, size_t count, int64_t ms)
{
	prepare_with(state, false, answers, count, ms);
}

void begin_with(void **state, bool units, const struct fake_api_answer *answers, size_t count,
		int64_t ms)
{
	prepare_with(state, units, answers, count, ms);
	cluster_begin(&cluster, NULL);
}

void begin(void **state, const struct fake_api_answer *answers, size_t count, int64_t ms)
{
	begin_with(state, false, answers, count, ms);
}

const char *finish(void)
{
	inventory_deinit(&inventory);
	inventory = (struct inventory){0};
	return cluster_finish(&cluster);
}

bool is_reported(void *arg UNUSED)
{
	CLEANUP(buf) struct buf text = {0};
	struct reports reports = {0};
	struct error error;
	bool reported;

	if (!durable_read(folder_path(cluster.folder, "var/lib/bcd/reports.json"), REPORTS_MAX_FILE,
			  &text, &error))
		return false;
	expect_ok(reports_parse(buf_text(&text), text.length, &reports, &error), &error);
	reported = reports_has(&reports, REPORT_RELEASED, ALC_A);
	reports_deinit(&reports);
	return reported;
}

const char *condition_of(const char *type)
{
	const char *message = cluster_condition(&cluster, type);

	return message ? message : "";
}

bool condition_says(const char *type, const char *words)
{
	return strstr(condition_of(type), words);
}
