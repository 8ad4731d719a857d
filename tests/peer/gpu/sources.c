/*
 * sources: what NVML's child and nvidia-smi say of this machine's GPUs, as one JSON object:
 * {"nvml": READING, "nvidia-smi": READING}, either of which may be {"error": …, "hint": …}.
 *
 *     gpu_sources [--library FILE] [--nvidia-smi FILE]
 *     gpu_sources nvml …      the child itself: this program starts itself anew, as bcd does
 */
#include "gpu/child.h"
#include "gpu/smi.h"
#include "nvml/child.h"

#include <stdio.h>
#include <unistd.h>

struct answers {
	struct loop *loop;
	json_t *object;
	struct child *child;
	struct smi_tool *tool;
};

static void take(struct answers *answers, const char *source, json_t *answer)
{
	if (json_object_get(answers->object, source))
		return; /* a failure that is told a second time */
	tree_set(answers->object, source, answer);
	if (json_object_size(answers->object) == 2)
		loop_stop(answers->loop);
}

static json_t *failure_json(const struct error *error)
{
	json_t *object = json_object();

	tree_set(object, "error", tree_string(error->what));
	tree_set(object, "hint", tree_string(error->hint));
	return object;
}

static void on_nvml(void *arg, struct reading *reading)
{
	take(arg, "nvml", reading_json(reading));
}

static void on_nvml_failure(void *arg, const struct error *error, bool stuck UNUSED)
{
	take(arg, "nvml", failure_json(error));
}

static void on_smi(void *arg, struct reading *reading)
{
	take(arg, "nvidia-smi", reading_json(reading));
}

static void on_smi_failure(void *arg, const struct error *error, bool stuck UNUSED)
{
	take(arg, "nvidia-smi", failure_json(error));
}

static void on_xid(void *arg UNUSED, const struct frame_xid *xid UNUSED)
{
}

static const char *option(int argc, char **argv, const char *name)
{
	for (int i = 1; i + 1 < argc; i++)
		if (str_equal(argv[i], name))
			return argv[i + 1];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct child_handlers nvml_handlers = {on_nvml, on_nvml_failure, on_xid};
	const struct smi_tool_handlers smi_handlers = {on_smi, on_smi_failure};
	struct child_options nvml_options = {.nvml_library = option(argc, argv, "--library")};
	struct smi_tool_options smi_options = {.program = option(argc, argv, "--nvidia-smi")};
	CLEANUP(buf) struct buf text = {0};
	struct answers answers = {0};

	if (argc > 1 && str_equal(argv[1], CHILD_VERB))
		return nvml_child_run(STDIN_FILENO, option(argc, argv, "--library"), "/");
	answers.loop = loop_create();
	answers.object = json_object();
	answers.child = child_create(answers.loop, &nvml_options, &nvml_handlers, &answers);
	answers.tool = smi_tool_create(answers.loop, &smi_options, &smi_handlers, &answers);
	smi_tool_ask(answers.tool);
	loop_run(answers.loop);
	child_destroy(answers.child);
	smi_tool_destroy(answers.tool);
	loop_destroy(answers.loop);
	tree_dump_pretty(&text, answers.object);
	json_decref(answers.object);
	fwrite(text.data, 1, text.length, stdout);
	return 0;
}
