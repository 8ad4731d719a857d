#include "standin/control.h"
#include "sys/log.h"
#include "text/options.h"
#include "text/tree.h"

#include <signal.h>
#include <stdio.h>

#define EXIT_USAGE 2

static const struct option serve_options[] = {
	{.name = "root", .kind = OPTION_TEXT, .value = "DIR", .help = "the kubelet's root folder"},
	{.name = "cdi",
	 .kind = OPTION_LIST,
	 .value = "DIR",
	 .help = "a folder with CDI specs; may be repeated, the later win"},
	{.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "show this"},
	{0},
};

static const struct option ctl_options[] = {
	{.name = "root", .kind = OPTION_TEXT, .value = "DIR", .help = "the kubelet's root folder"},
	{.name = "namespace",
	 .letter = 'n',
	 .kind = OPTION_TEXT,
	 .value = "NAME",
	 .help = "of the pod (default)"},
	{.name = "container", .kind = OPTION_TEXT, .value = "NAME", .help = "of the pod (main)"},
	{.name = "resource", .kind = OPTION_TEXT, .value = "NAME", .help = "such as bcd.dev/gpu"},
	{.name = "count",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "how many of it",
	 .max = 1024},
	{.name = "env",
	 .letter = 'e',
	 .kind = OPTION_LIST,
	 .value = "NAME=VALUE",
	 .help = "of the pod"},
	{.name = "bound", .kind = OPTION_FLAG, .help = "the pod skips the scheduler"},
	{.name = "stubborn", .kind = OPTION_FLAG, .help = "the pod ignores SIGTERM"},
	{.name = "grace",
	 .kind = OPTION_NUMBER,
	 .value = "SECONDS",
	 .help = "for a stubborn pod to end (30)",
	 .max = 3600},
	{.name = "down-ms",
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "how long a restart takes (0)",
	 .max = 3600000},
	{.name = "timeout",
	 .kind = OPTION_NUMBER,
	 .value = "SECONDS",
	 .help = "for the answer (60)",
	 .min = 1,
	 .max = 3600},
	{.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "show this"},
	{0},
};

static const char usage[] =
	"kubelet-standin: what a GPU plugin sees of a kubelet, without Kubernetes\n"
	"\n"
	"  kubelet-standin --root DIR [--cdi DIR]...\n"
	"  kubelet-standin ctl --root DIR run-pod NAME [--resource NAME --count N]\n"
	"  kubelet-standin ctl --root DIR delete-pod NAME\n"
	"  kubelet-standin ctl --root DIR list | node | restart\n"
	"\n";

static void help(void)
{
	CLEANUP(buf) struct buf text = {0};
	options_help(&text, serve_options);
	buf_add_text(&text, "\nctl:\n");
	options_help(&text, ctl_options);
	printf("%s%s", usage, buf_text(&text));
}

static int fail(const struct error *error, int status)
{
	fprintf(stderr, "kubelet-standin: %s\n", error->what);
	if (error->hint[0] != '\0')
		fprintf(stderr, "%s\n", error->hint);
	return status;
}

/* --- ctl --- */

static json_t *env_to_json(const struct option_value *values)
{
	json_t *env = json_object();
	for (size_t i = 0; i < values->list_count; i++) {
		const char *text = values->list[i], *equals = strchr(text, '=');
		CLEANUP(buf) struct buf name = {0};
		buf_add(&name, text, equals ? (size_t)(equals - text) : strlen(text));
		tree_set(env, buf_text(&name), tree_string(equals ? equals + 1 : ""));
	}
	return env;
}

static json_t *request_make(const struct options *options)
{
	json_t *request = json_pack("{s:s}", "verb", options->operands[0]);
	if (options->operand_count > 1)
		tree_set(request, "name", tree_string(options->operands[1]));
	static const char *const texts[] = {"namespace", "container", "resource"};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (options_given(options, texts[i]))
			tree_set(request, texts[i], tree_string(options_text(options, texts[i])));
	static const struct {
		const char *option, *field;
	} numbers[] = {{"count", "count"}, {"grace", "graceSeconds"}, {"down-ms", "downMs"}};
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (options_given(options, numbers[i].option))
			tree_set(request, numbers[i].field,
				 json_integer(options_number(options, numbers[i].option, 0)));
	static const char *const flags[] = {"bound", "stubborn"};
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (options_given(options, flags[i]))
			tree_set(request, flags[i], json_true());
	if (options_given(options, "env"))
		tree_set(request, "env", env_to_json(options_value(options, "env")));
	return request;
}

static int ctl(int argc, char *const *argv)
{
	CLEANUP(options) struct options options = {0};
	struct error error;
	if (!options_parse((const struct option *const[]){ctl_options}, 1, argc, argv, &options,
			   &error))
		return fail(&error, EXIT_USAGE);
	if (options_given(&options, "help")) {
		help();
		return 0;
	}
	if (!options_given(&options, "root") || options.operand_count < 1 ||
	    options.operand_count > 2) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	CLEANUP(tree) json_t *request = request_make(&options);
	return control_call(options_text(&options, "root"), request,
			    options_number(&options, "timeout", 60) * 1000);
}

/* --- serve --- */

static void on_signal(void *arg)
{
	loop_stop(arg);
}

static int serve(const char *root, const struct option_value *cdi)
{
	struct loop *loop = loop_create();
	struct loop_signal *terminate = loop_signal_create(loop, SIGTERM, on_signal, loop);
	struct loop_signal *interrupt = loop_signal_create(loop, SIGINT, on_signal, loop);
	const struct standin_options options = {
		.root = root, .cdi = cdi->list, .cdi_count = cdi->list_count};
	struct standin *standin = NULL;
	struct standin_control *control = NULL;
	struct error error;
	bool ok = standin_create(loop, &options, &standin, &error) &&
		  control_listen(loop, root, standin, &control, &error);
	if (ok) {
		log_info("ready", "the kubelet stand-in serves", "root", root, NULL);
		loop_run(loop);
	}
	control_destroy(control);
	standin_destroy(standin);
	loop_signal_destroy(terminate);
	loop_signal_destroy(interrupt);
	loop_destroy(loop);
	return ok ? 0 : fail(&error, error_exit_status(error.code));
}

int main(int argc, char **argv)
{
	CLEANUP(options) struct options options = {0};
	struct error error;
	if (argc > 1 && str_equal(argv[1], "ctl"))
		return ctl(argc - 2, argv + 2);
	if (!options_parse((const struct option *const[]){serve_options}, 1, argc - 1, argv + 1,
			   &options, &error))
		return fail(&error, EXIT_USAGE);
	if (options_given(&options, "help")) {
		help();
		return 0;
	}
	if (!options_given(&options, "root") || options.operand_count > 0) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	return serve(options_text(&options, "root"), options_value(&options, "cdi"));
}
