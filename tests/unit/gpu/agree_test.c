#include "gpu/core/belief.h"
#include "gpu/smi.h"
#include "lib/folder.h"
#include "lib/test.h"
#include "nvml/session.h"

#include <stdio.h>
#include <unistd.h>

/*
 * Both sources read the scenes of tests/fakedriver/scenes.json and must give the same reading, in each
 * member. What one of them can't tell, or tells in other words:
 *
 *   source                 its name
 *   error                  its wording; that there is one is compared
 *   order                  nvidia-smi complains of a GPU without a handle after or before the others
 *   pci of such a GPU      nvidia-smi only
 *   gauges.energy_mj       NVML only
 */

static struct loop *loop;
static json_t *scenes;

static int make(void **state)
{
	if (folder_make(state))
		return -1;
	loop = loop_create();
	scenes = json_load_file(SCENES, 0, NULL);
	setenv("FAKE_DRIVER", folder_path(state, "scene.json"), 1);
	return scenes ? 0 : -1;
}

static int drop(void **state)
{
	json_decref(scenes);
	loop_destroy(loop);
	return folder_remove(state);
}

/* The scene, each GPU with what "gpu" has and it lacks, becomes the driver's. */
static void set_scene(void **state, json_t *scene)
{
	char path[512], next[520];
	json_t *gpu;
	size_t i;

	json_array_foreach(json_object_get(scene, "gpus"), i, gpu)
		json_object_update_missing(gpu, json_object_get(scenes, "gpu"));
	snprintf(path, sizeof path, "%s", folder_path(state, "scene.json"));
	snprintf(next, sizeof next, "%s.next", path);
	assert_int_equal(json_dump_file(scene, next, 0), 0);
	assert_int_equal(rename(next, path), 0);
}

/* --- the two sources --- */

struct answer {
	struct reading reading;
	struct error error;
	bool told;
};

static void on_reading(void *arg, struct reading *reading)
{
	struct answer *answer = arg;

	answer->reading = *reading;
	*reading = (struct reading){0};
	answer->told = true;
	loop_stop(loop);
}

static void on_failure(void *arg, const struct error *error, bool stuck)
{
	struct answer *answer = arg;

	assert_false(stuck);
	answer->error = *error;
	answer->told = true;
	loop_stop(loop);
}

static bool ask_smi(struct reading *ret_reading, struct error *error)
{
	const struct smi_tool_options options = {.program = FAKE_SMI};
	const struct smi_tool_handlers handlers = {on_reading, on_failure};
	struct answer answer = {0};
	struct smi_tool *tool = smi_tool_create(loop, &options, &handlers, &answer);

	smi_tool_ask(tool);
	loop_run(loop);
	assert_true(answer.told);
	smi_tool_destroy(tool);
	*ret_reading = answer.reading;
	*error = answer.error;
	return answer.error.code == ERROR_NONE;
}

static bool ask_nvml(struct reading *ret_reading, struct error *error)
{
	struct session session = {0};
	bool ok = session_open(FAKE_NVML, "/", &session, error) &&
		  session_read(&session, ret_reading, error);

	session_deinit(&session);
	return ok;
}

/* --- the comparison --- */

static int compare_gpus(const void *a, const void *b)
{
	const json_t *const *one = a, *const *other = b;
	const char *first = json_string_value(json_object_get(*one, "uuid"));
	const char *second = json_string_value(json_object_get(*other, "uuid"));

	return strcmp(first ? first : "", second ? second : "");
}

static void level_gpu(json_t *gpu)
{
	json_t *error = json_object_get(gpu, "error");

	if (error)
		json_string_set(error, "there is one");
	json_object_del(json_object_get(gpu, "gauges"), "energy_mj");
	if (!json_object_get(gpu, "uuid"))
		json_object_del(gpu, "pci");
}

/* Without what is listed above, as text. */
static void level(const struct reading *reading, struct buf *out)
{
	CLEANUP(tree) json_t *object = reading_json(reading), *sorted = json_array();
	const json_t *gpus[INVENTORY_MAX_GPUS];
	json_t *gpu;
	size_t i, count = 0;

	json_array_foreach(json_object_get(object, "gpus"), i, gpu)
	{
		level_gpu(gpu);
		gpus[count++] = gpu;
	}
	qsort(gpus, count, sizeof gpus[0], compare_gpus);
	for (i = 0; i < count; i++)
		json_array_append(sorted, (json_t *)gpus[i]);
	json_object_set(object, "gpus", sorted);
	json_object_del(object, "source");
	tree_dump_pretty(out, object);
}

/* Names the first line in which they differ. */
static void expect_same(const char *name, const char *nvml, const char *smi)
{
	while (*nvml || *smi) {
		int one = (int)strcspn(nvml, "\n"), other = (int)strcspn(smi, "\n");

		if (one != other || strncmp(nvml, smi, (size_t)one) != 0)
			fail_msg("%s: NVML: %.*s nvidia-smi: %.*s", name, one, nvml, other, smi);
		nvml += one + (nvml[one] == '\n');
		smi += other + (smi[other] == '\n');
	}
}

/* proves: DP-10 DP-52 */
static void test_both_sources_agree(void **state)
{
	const char *name;
	json_t *scene;
	size_t count = 0;

	json_object_foreach(json_object_get(scenes, "tell"), name, scene)
	{
		CLEANUP(reading) struct reading nvml = {0}, smi = {0};
		CLEANUP(buf) struct buf nvml_text = {0}, smi_text = {0};
		struct error error;

		set_scene(state, scene);
		if (!ask_nvml(&nvml, &error) || !ask_smi(&smi, &error))
			fail_msg("%s: %s", name, error.what);
		level(&nvml, &nvml_text);
		level(&smi, &smi_text);
		expect_same(name, buf_text(&nvml_text), buf_text(&smi_text));
		count++;
	}
	assert_true(count >= 20);
}

/* What bcd makes of one reading: GPUs, their parts and their health, a line each. */
static void believe(struct reading *reading, struct buf *out)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	int32_t numa[INVENTORY_MAX_GPUS] = {0};
	char text[ATOM_TEXT_SIZE];

	belief_reading(&belief, reading, numa);
	belief_inventory(&belief, 0, &inventory);
	vec_each (&inventory.gpus, const struct inventory_gpu *gpu)
		buf_printf(out, "%s minor %d %s %lld healthy %d\n", gpu->pci, gpu->minor,
			   gpu->model, (long long)gpu->memory_bytes, gpu->health.healthy);
	vec_each (&inventory.atoms, const struct inventory_atom *atom) {
		atom_format(text, &atom->atom);
		buf_printf(out, "%s [%d, %d) %s %s %lld healthy %d\n", text, atom->range.lo,
			   atom->range.hi, atom->profile, atom->visible,
			   (long long)atom->memory_bytes, atom->health.healthy);
	}
}

/* What can be booked, and what is sick, is the same whoever was asked. proves: DP-51 */
static void test_both_sources_are_believed_alike(void **state)
{
	const char *name;
	json_t *scene;

	json_object_foreach(json_object_get(scenes, "tell"), name, scene)
	{
		CLEANUP(reading) struct reading nvml = {0}, smi = {0};
		CLEANUP(buf) struct buf nvml_text = {0}, smi_text = {0};
		struct error error;

		set_scene(state, scene);
		if (!ask_nvml(&nvml, &error) || !ask_smi(&smi, &error))
			fail_msg("%s: %s", name, error.what);
		believe(&nvml, &nvml_text);
		believe(&smi, &smi_text);
		expect_same(name, buf_text(&nvml_text), buf_text(&smi_text));
	}
}

/* N02: whatever keeps NVML from starting, both fail, and know what to do. */
static void test_both_sources_fail_together(void **state)
{
	const char *name;
	json_t *scene;

	json_object_foreach(json_object_get(scenes, "fail"), name, scene)
	{
		CLEANUP(reading) struct reading reading = {0};
		struct error error = {0};

		set_scene(state, scene);
		expect_error(ask_nvml(&reading, &error), &error, ERROR_UNAVAILABLE, "NVML");
		expect_error(ask_smi(&reading, &error), &error, ERROR_UNAVAILABLE, "nvidia-smi: ");
		assert_true(*error.hint);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_both_sources_agree, make, drop),
		cmocka_unit_test_setup_teardown(test_both_sources_are_believed_alike, make, drop),
		cmocka_unit_test_setup_teardown(test_both_sources_fail_together, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
