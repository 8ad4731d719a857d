/*
 * kube_probe: the Kubernetes client at a script's hand.
 *
 *   kube_probe FILES            one JSON command a line on stdin, one JSON answer a line on stdout;
 *                               FILES as KUBECONFIG has them
 *   kube_probe --config FILES   what each named context gives access to: a name a line on stdin
 *   kube_probe --watch FILES KIND SELECTOR
 *                               an event a line on stdout, until stdin is closed
 */
#include "kube/client.h"
#include "kube/events.h"
#include "kube/watch.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <stdio.h>

static struct loop *loop;
static struct kube_client *client;

static void print(json_t *object)
{
	CLEANUP(tree) json_t *owned = object;
	CLEANUP(buf) struct buf line = {0};

	tree_dump_canonical(&line, owned);
	puts(buf_text(&line));
	fflush(stdout);
}

static const char *text_or(const json_t *object, const char *name, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : otherwise;
}

static const struct kube_resource *resource_called(const char *kind)
{
	static const struct kube_resource *const ALL[] = {
		&KUBE_NODE, &KUBE_POD, &KUBE_EVENT, &KUBE_RESOURCE_SLICE, &KUBE_RESOURCE_CLAIM};

	for (size_t i = 0; i < ARRAY_SIZE(ALL); i++)
		if (str_equal(ALL[i]->kind, kind))
			return ALL[i];
	abort();
}

static const struct kube_resource *resource_of(const json_t *command)
{
	return resource_called(text_or(command, "kind", "node"));
}

static struct kube_delete_options delete_options(const json_t *command)
{
	json_t *grace = json_object_get(command, "grace");

	return (struct kube_delete_options){
		.uid = text_or(command, "uid", NULL),
		.grace_period_s = grace ? json_integer_value(grace) : -1,
		.dry_run = json_is_true(json_object_get(command, "dryRun")),
	};
}

static struct kube_list_options list_options(const json_t *command)
{
	return (struct kube_list_options){
		.namespace = text_or(command, "namespace", NULL),
		.label_selector = text_or(command, "labelSelector", NULL),
		.field_selector = text_or(command, "fieldSelector", NULL),
		.limit = (int)json_integer_value(json_object_get(command, "limit")),
		.continue_token = text_or(command, "continue", NULL),
	};
}

static struct kube_request request_of(const json_t *command)
{
	const char *op = text_or(command, "op", ""), *name = text_or(command, "name", "");
	const char *namespace = text_or(command, "namespace", "");
	const json_t *object = json_object_get(command, "object");
	struct kube_ref ref = {resource_of(command), namespace, name};
	struct kube_delete_options deletion = delete_options(command);
	struct kube_list_options listing = list_options(command);

	if (str_equal(op, "get"))
		return kube_get(ref);
	if (str_equal(op, "list"))
		return kube_list(ref.resource, &listing);
	if (str_equal(op, "create"))
		return kube_create(ref.resource, namespace, object);
	if (str_equal(op, "apply"))
		return kube_apply(ref, object, json_is_true(json_object_get(command, "force")));
	if (str_equal(op, "merge"))
		return kube_patch_merge(ref, object);
	if (str_equal(op, "delete"))
		return kube_delete(ref, &deletion);
	if (str_equal(op, "evict"))
		return kube_evict(ref, &deletion);
	if (str_equal(op, "labels"))
		return kube_node_labels(name, json_object_get(command, "labels"),
					json_object_get(command, "annotations"));
	if (str_equal(op, "cordon"))
		return kube_node_cordon(name, json_is_true(json_object_get(command, "on")));
	if (str_equal(op, "path"))
		return kube_get_path(text_or(command, "path", "/"));
	abort();
}

static void on_answer(void *arg UNUSED, struct kube_answer *answer)
{
	json_t *object = json_object();

	tree_set(object, "status", json_integer(answer->status));
	tree_set(object, "reason", tree_string(kube_reason_name(answer->reason)));
	tree_set(object, "unknown", json_boolean(answer->unknown));
	tree_set(object, "message", tree_string(answer->error.what));
	tree_set(object, "hint", tree_string(answer->error.hint));
	tree_set(object, "causes", tree_string(answer->causes));
	if (answer->body)
		tree_set(object, "body", TAKE(answer->body));
	print(object);
}

static void on_items(void *arg UNUSED, json_t **items, const struct error *error)
{
	json_t *object = json_object();

	tree_set(object, "message", tree_string(error ? error->what : ""));
	if (*items)
		tree_set(object, "items", TAKE(*items));
	print(object);
}

static void tell_event(struct kube_events *events, const json_t *command)
{
	const struct kube_event event = {
		.regarding = {resource_of(command), text_or(command, "namespace", ""),
			      text_or(command, "name", "")},
		.uid = text_or(command, "uid", ""),
		.warning = json_is_true(json_object_get(command, "warning")),
		.reason = text_or(command, "reason", "Tested"),
		.action = text_or(command, "action", "Test"),
		.note = text_or(command, "note", ""),
	};

	kube_events_tell(events, &event);
	loop_run(loop);
	print(json_object());
}

static bool next_line(char *line, int size)
{
	return fgets(line, size, stdin);
}

static void run_command(struct kube_events *events, const char *line)
{
	CLEANUP(tree) json_t *command = NULL;
	struct error error;
	struct kube_request request;

	if (!tree_parse(line, strlen(line), 1 << 20, "command", &command, &error)) {
		fprintf(stderr, "%s\n", error.what);
		exit(2);
	}
	const struct kube_call_options options = {
		.priority = KUBE_NORMAL,
		.timeout_ms = json_integer_value(json_object_get(command, "timeoutMs")),
	};
	if (str_equal(text_or(command, "op", ""), "event")) {
		tell_event(events, command);
		return;
	}
	if (str_equal(text_or(command, "op", ""), "collect")) {
		const struct kube_list_options query = list_options(command);
		kube_collect(client, resource_of(command), &query, options, on_items, NULL);
	} else {
		request = request_of(command);
		kube_send(client, &request, options, on_answer, NULL);
	}
	loop_run(loop);
}

static void run_commands(const struct credentials_options *options)
{
	static char line[1 << 20];

	loop = loop_create();
	client = kube_client_create(loop, options);
	struct kube_events *events = kube_events_create(client, loop, "probe");
	while (next_line(line, sizeof line))
		run_command(events, line);
	kube_events_destroy(events);
	kube_client_destroy(client);
	loop_destroy(loop);
}

/* --- a watch --- */

static struct kube_watch *watch;

static void on_event(void *arg UNUSED, enum kube_watch_kind kind, json_t *object)
{
	static const char *const NAMES[] = {"ADDED", "MODIFIED", "DELETED"};
	const json_t *metadata = json_object_get(object, "metadata");
	json_t *line = json_object();

	tree_set(line, "event", tree_string(NAMES[kind]));
	tree_set(line, "name", tree_string(text_or(metadata, "name", "")));
	tree_set(line, "deleting", json_boolean(json_object_get(metadata, "deletionTimestamp")));
	tree_set(line, "phase",
		 tree_string(text_or(json_object_get(object, "status"), "phase", "")));
	tree_set(line, "live", json_boolean(kube_watch_live(watch)));
	print(line);
}

static void on_state(void *arg UNUSED, const struct error *error)
{
	json_t *line = json_object();

	tree_set(line, "event", tree_string(error ? "FAILED" : "OPEN"));
	tree_set(line, "message", tree_string(error ? error->what : ""));
	tree_set(line, "live", json_boolean(kube_watch_live(watch)));
	print(line);
}

static void on_stdin(void *arg UNUSED, int events UNUSED)
{
	loop_stop(loop);
}

static void run_watch(const struct credentials_options *options, const char *kind,
		      const char *selector)
{
	loop = loop_create();
	client = kube_client_create(loop, options);
	struct loop_poll *end =
		loop_poll_create(loop, fileno(stdin), LOOP_READABLE, on_stdin, NULL);
	watch = kube_watch_start(
		client, resource_called(kind),
		&(struct kube_list_options){.field_selector = *selector ? selector : NULL},
		on_event, on_state, NULL);
	loop_run(loop);
	kube_watch_stop(watch);
	loop_poll_destroy(end);
	kube_client_destroy(client);
	loop_destroy(loop);
}

/* --- kubeconfigs --- */

static void set_text(json_t *object, const char *name, const char *text)
{
	if (text)
		tree_set(object, name, tree_string(text));
}

static json_t *source_of(const struct kube_source *source)
{
	json_t *object = json_object();

	set_text(object, "text", source->text);
	set_text(object, "path", source->path);
	return object;
}

static void show_context(const struct kube_config *config, const char *name)
{
	CLEANUP(kube_access) struct kube_access access = {0};
	struct error error;
	json_t *object = json_object();

	if (!kube_config_resolve(config, *name ? name : NULL, &access, &error)) {
		set_text(object, "error", error.what);
		print(object);
		return;
	}
	set_text(object, "context", access.context);
	set_text(object, "server", access.server);
	set_text(object, "serverName", access.server_name);
	set_text(object, "proxy", access.proxy);
	set_text(object, "namespace", access.namespace);
	tree_set(object, "ca", source_of(&access.ca));
	tree_set(object, "certificate", source_of(&access.certificate));
	tree_set(object, "key", source_of(&access.key));
	tree_set(object, "token", source_of(&access.token));
	print(object);
}

static bool add_files(struct kube_config *config, char *files, struct error *error)
{
	for (char *save, *path = strtok_r(files, ":", &save); path;
	     path = strtok_r(NULL, ":", &save)) {
		CLEANUP(buf) struct buf text = {0};

		if (!durable_read(path, KUBE_CONFIG_MAX_SIZE, &text, error)) {
			if (error->code != ERROR_NOT_FOUND)
				return false;
		} else if (!kube_config_add(config, text.data, text.length, path, error)) {
			return false;
		}
	}
	return true;
}

static void show_config(char *files)
{
	CLEANUP(kube_config) struct kube_config *config = kube_config_create();
	char line[4096];
	struct error error;

	if (!add_files(config, files, &error)) {
		print(json_pack("{s:o}", "refused", tree_string(error.what)));
		return;
	}
	while (next_line(line, sizeof line)) {
		line[strcspn(line, "\n")] = '\0';
		show_context(config, line);
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && str_equal(argv[1], "--config"))
		show_config(argv[2]);
	else if (argc == 5 && str_equal(argv[1], "--watch"))
		run_watch(&(struct credentials_options){.kubeconfig = argv[2]}, argv[3], argv[4]);
	else if (argc == 2)
		run_commands(&(struct credentials_options){.kubeconfig = argv[1]});
	else
		return 2;
	return 0;
}
