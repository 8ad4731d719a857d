/* Configuration that bcd was told of and can't read: a node on a loop, with a kubelet. */
#include "node/exposure.h"

#include "cluster.h"
#include "core/fixture.h"
#include "lib/folder.h"
#include "node/status.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <stdio.h>
#include <unistd.h>

static void add(struct config_paths *paths, void **state, const char *name)
{
	paths->items[paths->count++] =
		arena_strdup(&cluster.config.arena, folder_path(state, name));
}

static void write_in(void **state, const char *folder, const char *name)
{
	char path[256];
	struct error error;

	expect_ok(durable_make_folder(folder_path(state, folder), 0700, &error), &error);
	snprintf(path, sizeof path, "%s/%s", folder, name);
	cluster_write(&cluster, path, "version = 3\n");
}

/* A node that has GPU 0 to offer, and was told of a file and a folder, which are there, and of a toolkit's. */
static void prepare(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200,
		 .body = "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n1\","
			 "\"labels\":{}}}"},
	};
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(spec) struct spec spec = {.generation = 1};
	CLEANUP(buf) struct buf text = {0};

	cluster_prepare(&cluster, state,
			&(struct cluster_options){.api = {.answers = ANSWERS, .count = 1}});
	fixture_inventory(&inventory);
	fixture_assign(fixture_assignment(&spec, ALC_A), &inventory, fixture_gpu(&inventory, 0));
	spec_format(&spec, &text);
	cluster_write(&cluster, "var/lib/bcd/spec.json", buf_text(&text));
	write_in(state, "etc/containerd", "config.toml");
	write_in(state, "etc/crio/crio.conf.d", "00-default");
	write_in(state, "etc/crio/crio.conf.d/below", "passed-over");
	write_in(state, "toolkit/.config/nvidia-container-runtime", "config.toml");
	add(&cluster.config.runtime_config, state, "etc/containerd/config.toml");
	add(&cluster.config.runtime_config, state, "etc/crio/crio.conf.d");
	add(&cluster.config.toolkit_config, state, "toolkit/.config");
}

static bool offers_one(void *arg UNUSED)
{
	const struct kubelet_plugin *plugin = kubelet_find(&cluster.kubelet, "bcd.dev/gpu");

	return plugin && plugin->device_count == 1;
}

static bool offers_none(void *arg UNUSED)
{
	const struct kubelet_plugin *plugin = kubelet_find(&cluster.kubelet, "bcd.dev/gpu");

	return !plugin || plugin->device_count == 0;
}

/* The message of ForeignGpuExposure; NULL while it isn't there. */
static const char *exposed(void)
{
	static char message[2048];
	CLEANUP(tree) json_t *status = status_describe(cluster.node);
	const json_t *one, *conditions = json_object_get(status, "conditions");
	size_t i;

	json_array_foreach(conditions, i, one)
	{
		if (!str_equal(json_string_value(json_object_get(one, "type")),
			       "ForeignGpuExposure"))
			continue;
		assert_string_equal(json_string_value(json_object_get(one, "reason")),
				    "OtherGpuPath");
		snprintf(message, sizeof message, "%s",
			 json_string_value(json_object_get(one, "message")));
		return message;
	}
	return NULL;
}

static bool is_exposed(void *arg UNUSED)
{
	return exposed();
}

/* Each that was told of, and what is in a folder of it. proves: HOSTED-26 */
static void test_each_is_read(void **state)
{
	static const char *const NAMES[] = {"etc/containerd/config.toml", "etc/crio/crio.conf.d",
					    "etc/crio/crio.conf.d/00-default", "toolkit/.config"};
	struct exposure *exposure;
	struct mono now;

	prepare(state);
	exposure = exposure_create(&cluster.config);
	now = clock_mono();
	assert_null(exposure_open(exposure));
	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
		char path[1024], away[1024];

		/* a link to nowhere is there, and can't be read */
		snprintf(path, sizeof path, "%s", folder_path(state, NAMES[i]));
		snprintf(away, sizeof away, "%s", folder_path(state, "away"));
		assert_int_equal(rename(path, away), 0);
		assert_int_equal(symlink("nowhere", path), 0);
		exposure_look(exposure, now = mono_after(now, EXPOSURE_MS));
		assert_null(exposure_open(exposure)); /* it may be a moment's */
		exposure_look(exposure, now = mono_after(now, EXPOSURE_AGAIN_MS));
		assert_non_null(exposure_open(exposure));
		assert_non_null(strstr(exposure_open(exposure), path));
		assert_int_equal(unlink(path), 0);
		assert_int_equal(rename(away, path), 0);
		exposure_look(exposure, now = mono_after(now, EXPOSURE_MS));
		assert_null(exposure_open(exposure));
	}
	exposure_destroy(exposure);
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

/* Whoever rewrites a file, or takes it away for a moment, is no exposure; what is bad at the start is one at
 * once. proves: HOSTED-26 */
static void test_one_look_is_not_enough(void **state)
{
	struct exposure *exposure;
	const char *file;
	struct mono now;

	prepare(state);
	exposure = exposure_create(&cluster.config);
	now = clock_mono();
	file = cluster.config.runtime_config.items[0];
	for (int i = 0; i < 3; i++) {
		assert_int_equal(unlink(file), 0);
		exposure_look(exposure, now = mono_after(now, EXPOSURE_MS));
		assert_null(exposure_open(exposure));
		write_in(state, "etc/containerd", "config.toml");
		exposure_look(exposure, now = mono_after(now, EXPOSURE_AGAIN_MS));
		assert_null(exposure_open(exposure));
	}
	exposure_destroy(exposure);
	assert_int_equal(unlink(file), 0);
	exposure = exposure_create(&cluster.config);
	assert_non_null(exposure_open(exposure));
	exposure_destroy(exposure);
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

static void write_long(void **state, const char *name, size_t length)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	memset(buf_extend(&text, length), '#', length);
	expect_ok(durable_replace(folder_path(state, name), text.data, text.length, 0600, &error),
		  &error);
}

/* All of it together has a bound: this is the loop. */
static void test_how_much_is_read(void **state)
{
	struct exposure *exposure;

	prepare(state);
	for (size_t i = 0; i < EXPOSURE_MAX_ALL / EXPOSURE_MAX_FILE; i++) {
		char name[64];

		snprintf(name, sizeof name, "etc/crio/crio.conf.d/9%zu", i);
		write_long(state, name, EXPOSURE_MAX_FILE - 64);
	}
	exposure = exposure_create(&cluster.config);
	assert_null(exposure_open(exposure));
	exposure_destroy(exposure);
	write_long(state, "etc/crio/crio.conf.d/8", 4096);
	exposure = exposure_create(&cluster.config);
	assert_non_null(strstr(exposure_open(exposure), "more than 16 MiB"));
	exposure_destroy(exposure);
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

/* What is offered is taken back, and offered again by itself. proves: HOSTED-26 */
static void test_nothing_is_offered_meanwhile(void **state)
{
	const char *file;

	prepare(state);
	cluster_begin(&cluster, NULL);
	kubelet_pass_until(cluster.loop, offers_one, NULL, 4000,
			   "all can be read: a GPU is offered");
	assert_null(exposed());
	file = cluster.config.runtime_config.items[0];
	assert_int_equal(unlink(file), 0);
	kubelet_pass_until(cluster.loop, is_exposed, NULL, 12000, "it can't be read");
	assert_non_null(strstr(exposed(), file));
	kubelet_pass_until(cluster.loop, offers_none, NULL, 4000, "nothing is offered");
	write_in(state, "etc/containerd", "config.toml");
	kubelet_pass_until(cluster.loop, offers_one, NULL, 12000, "it is offered again");
	assert_null(exposed());
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

/* From the first moment: a kubelet never hears of a GPU. proves: HOSTED-26 */
static void test_nothing_is_offered_before_the_first_look(void **state)
{
	prepare(state);
	assert_int_equal(unlink(folder_path(state, "etc/containerd/config.toml")), 0);
	cluster_begin(&cluster, NULL);
	kubelet_pass_until(cluster.loop, is_exposed, NULL, 4000, "it is seen");
	kubelet_pass(cluster.loop, 1500);
	assert_true(offers_none(NULL));
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_each_is_read),
		IN_FOLDER(test_one_look_is_not_enough),
		IN_FOLDER(test_how_much_is_read),
		IN_FOLDER(test_nothing_is_offered_meanwhile),
		IN_FOLDER(test_nothing_is_offered_before_the_first_look),
	};

	return cmocka_run_group_tests(tests, cluster_set_up, cluster_tear_down);
}
