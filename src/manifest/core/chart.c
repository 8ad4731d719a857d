#include "manifest/core/chart.h"
#include "manifest/core/render.h"
#include "text/yaml.h"

/* Stands around a value's name where the template puts the value; nowhere else in the objects, as
 * it is chosen so. */
static void choose_mark(const json_t *object, struct buf *ret_mark)
{
	CLEANUP(free) char *text = json_dumps(object, 0);

	do
		buf_add_text(ret_mark, "@@");
	while (strstr(text, buf_text(ret_mark)));
}

void chart_deinit(struct chart *chart)
{
	for (size_t i = 0; chart && i < CHART_FILES; i++)
		buf_deinit(&chart->files[i].text);
}

static json_t *marked(const char *mark, const char *name)
{
	return json_sprintf("%s%s%s", mark, name, mark);
}

static void mark_containers(json_t *containers, const char *mark)
{
	size_t index;
	json_t *container;

	json_array_foreach(containers, index, container)
	{
		tree_set(container, "image", marked(mark, "image"));
		tree_set(container, "resources", marked(mark, "resources"));
	}
}

/* Replaces what values.yaml has by marks. */
static void mark_pod(json_t *spec, const char *mark)
{
	static const char *const FIELDS[] = {"imagePullSecrets", "nodeSelector",
					     "priorityClassName", "tolerations"};

	for (size_t i = 0; i < ARRAY_SIZE(FIELDS); i++)
		tree_set(spec, FIELDS[i], marked(mark, FIELDS[i]));
	mark_containers(json_object_get(spec, "containers"), mark);
	mark_containers(json_object_get(spec, "initContainers"), mark);
}

static bool is_kind(const json_t *object, const char *kind)
{
	return str_equal(json_string_value(json_object_get(object, "kind")), kind);
}

/* What only looks like a template is none; a marked text becomes the value. */
static void add_template(struct buf *out, const char *text, const char *mark)
{
	while (*text) {
		bool marks = text[0] == '"' && str_starts(text + 1, mark);

		if (marks) {
			const char *name = text + 1 + strlen(mark), *end = strstr(name, mark);

			buf_printf(out, "{{ toJson .Values.%.*s }}", (int)(end - name), name);
			text = end + strlen(mark) + 1;
		} else if (str_starts(text, "{{")) {
			buf_add_text(out, "{{ \"{{\" }}");
			text += 2;
		} else {
			buf_add_char(out, *text++);
		}
	}
}

static void add_object(struct buf *out, const json_t *object)
{
	CLEANUP(tree) json_t *copy = json_deep_copy(object), *list = json_array();
	CLEANUP(buf) struct buf text = {0}, mark = {0};
	bool is_namespace = is_kind(copy, "Namespace");

	choose_mark(object, &mark);
	if (is_kind(copy, "DaemonSet"))
		mark_pod(json_object_get(json_object_get(json_object_get(copy, "spec"), "template"),
					 "spec"),
			 buf_text(&mark));
	tree_append(list, json_incref(copy));
	render_yaml(list, &text);
	buf_add_text(out, is_namespace ? "{{- if .Values.createNamespace }}\n" : "---\n");
	add_template(out, buf_text(&text), buf_text(&mark));
	buf_add_text(out, is_namespace ? "{{- end }}\n" : "");
}

static void write_templates(const json_t *objects, struct buf *out)
{
	size_t index;
	json_t *object;

	json_array_foreach((json_t *)objects, index, object) add_object(out, object);
}

static void write_values(const struct settings *settings, struct buf *out)
{
	CLEANUP(tree)
	json_t *values = json_pack("{s:b, s:s, s:O, s:O, s:s?, s:O, s:O}", "createNamespace", false,
				   "image", settings->image, "imagePullSecrets",
				   settings->pull_secrets, "nodeSelector", settings->node_selector,
				   "priorityClassName", settings->priority_class, "resources",
				   settings->resources, "tolerations", settings->tolerations);

	buf_add_text(out,
		     "# What else there is to choose is in bcd's configuration: render again.\n");
	yaml_dump(out, values);
}

static void write_about(const struct settings *settings, const char *version, struct buf *out)
{
	CLEANUP(tree)
	json_t *about =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "apiVersion", "v2", "name",
			  settings->name, "description", "bcd on the GPU nodes of a cluster",
			  "type", "application", "version", version, "appVersion", version);

	yaml_dump(out, about);
}

void chart_make(const struct settings *settings, const json_t *objects, const char *version,
		struct chart *ret_chart)
{
	*ret_chart = (struct chart){
		{{.name = "Chart.yaml"}, {.name = "values.yaml"}, {.name = "templates/bcd.yaml"}}};
	write_about(settings, version, &ret_chart->files[0].text);
	write_values(settings, &ret_chart->files[1].text);
	write_templates(objects, &ret_chart->files[2].text);
}
