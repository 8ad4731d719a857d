#include "kube/core/request.h"

#include "text/tree.h"

#include <stdio.h>

const struct kube_resource KUBE_NODE = {"", "v1", "nodes", "node", false, "Node"};
const struct kube_resource KUBE_POD = {"", "v1", "pods", "pod", true, "Pod"};
const struct kube_resource KUBE_EVENT = {"", "v1", "events", "event", true, "Event"};
const struct kube_resource KUBE_RESOURCE_SLICE = {"resource.k8s.io", "v1",  "resourceslices",
						  "resource slice",  false, "ResourceSlice"};
const struct kube_resource KUBE_RESOURCE_CLAIM = {"resource.k8s.io", "v1", "resourceclaims",
						  "resource claim",  true, "ResourceClaim"};

static const char JSON_TYPE[] = "application/json";

void kube_request_deinit(struct kube_request *request)
{
	if (!request)
		return;
	buf_deinit(&request->path);
	buf_deinit(&request->body);
	*request = (struct kube_request){0};
}

/* --- paths --- */

/* Percent-encodes all but what RFC 3986 leaves alone. A name of dots only would be a step in the
 * path, so there the dots are encoded too. */
static void add_encoded(struct buf *path, const char *text)
{
	static const char ALONE[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~";
	bool only_dots = text[strspn(text, ".")] == '\0';

	for (; *text; text++)
		if (strchr(ALONE, *text) || (*text == '.' && !only_dots))
			buf_add_char(path, *text);
		else
			buf_printf(path, "%%%02X", (unsigned char)*text);
}

static void add_segment(struct buf *path, const char *text)
{
	buf_add_char(path, '/');
	add_encoded(path, text);
}

static void add_parameter(struct buf *path, const char *name, const char *value)
{
	buf_add_char(path, strchr(buf_text(path), '?') ? '&' : '?');
	buf_printf(path, "%s=", name);
	add_encoded(path, value);
}

static void add_collection(struct buf *path, const struct kube_resource *resource,
			   const char *namespace)
{
	if (*resource->group)
		buf_printf(path, "/apis/%s/%s", resource->group, resource->version);
	else
		buf_printf(path, "/api/%s", resource->version);
	if (namespace && *namespace) {
		assert(resource->namespaced);
		buf_add_text(path, "/namespaces");
		add_segment(path, namespace);
	}
	add_segment(path, resource->plural);
}

/* --- the common part --- */

static struct kube_request of_object(const char *method, const char *verb, struct kube_ref ref)
{
	struct kube_request request = {.method = method,
				       .wanted = {KUBE_FORM_OBJECT, ref.resource, "", ""}};

	assert(ref.name[0] && ref.resource->namespaced == (ref.namespace[0] != '\0'));
	add_collection(&request.path, ref.resource, ref.namespace);
	add_segment(&request.path, ref.name);
	str_copy(request.wanted.namespace, KUBE_NAME_SIZE, ref.namespace);
	str_copy(request.wanted.name, KUBE_NAME_SIZE, ref.name);
	snprintf(request.subject, sizeof request.subject, "%s %s '%s%s%s'", verb,
		 ref.resource->kind, ref.namespace, *ref.namespace ? "/" : "", ref.name);
	return request;
}

static void set_body(struct kube_request *request, const char *content_type, const json_t *body)
{
	request->content_type = content_type;
	tree_dump_canonical(&request->body, body);
}

struct kube_request kube_get(struct kube_ref ref)
{
	struct kube_request request = of_object("GET", "get", ref);

	request.repeatable = true;
	return request;
}

struct kube_request kube_get_path(const char *path)
{
	struct kube_request request = {.method = "GET", .repeatable = true};

	assert(path[0] == '/');
	buf_add_text(&request.path, path);
	snprintf(request.subject, sizeof request.subject, "get '%s'", path);
	return request;
}

static struct kube_request of_list(const char *verb, const struct kube_resource *resource,
				   const struct kube_list_options *options)
{
	struct kube_request request = {
		.method = "GET", .repeatable = true, .wanted = {KUBE_FORM_LIST, resource, "", ""}};

	add_collection(&request.path, resource, options->namespace);
	if (options->label_selector)
		add_parameter(&request.path, "labelSelector", options->label_selector);
	if (options->field_selector)
		add_parameter(&request.path, "fieldSelector", options->field_selector);
	snprintf(request.subject, sizeof request.subject, "%s %ss", verb, resource->kind);
	return request;
}

struct kube_request kube_list(const struct kube_resource *resource,
			      const struct kube_list_options *options)
{
	struct kube_request request = of_list("list", resource, options);
	char limit[16];

	if (options->limit > 0) {
		snprintf(limit, sizeof limit, "%d", options->limit);
		add_parameter(&request.path, "limit", limit);
	}
	if (options->continue_token)
		add_parameter(&request.path, "continue", options->continue_token);
	return request;
}

struct kube_request kube_watch(const struct kube_resource *resource,
			       const struct kube_list_options *options, const char *version,
			       int timeout_s)
{
	struct kube_request request = of_list("watch", resource, options);
	char timeout[16];

	assert(options->limit == 0 && !options->continue_token && timeout_s > 0);
	snprintf(timeout, sizeof timeout, "%d", timeout_s);
	add_parameter(&request.path, "watch", "true");
	add_parameter(&request.path, "allowWatchBookmarks", "true");
	add_parameter(&request.path, "timeoutSeconds", timeout);
	if (*version)
		add_parameter(&request.path, "resourceVersion", version);
	return request;
}

/* --- writing --- */

static const char *name_in(const json_t *object)
{
	const char *name =
		json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));

	assert(name && *name);
	return name;
}

struct kube_request kube_create(const struct kube_resource *resource, const char *namespace,
				const json_t *object)
{
	struct kube_ref ref = {resource, namespace, name_in(object)};
	struct kube_request request = of_object("POST", "create", ref);

	buf_clear(&request.path);
	add_collection(&request.path, resource, namespace);
	add_parameter(&request.path, "fieldManager", KUBE_MANAGER);
	set_body(&request, JSON_TYPE, object);
	return request;
}

static struct kube_request patch(struct kube_ref ref, const char *verb, const char *content_type,
				 const json_t *body)
{
	struct kube_request request = of_object("PATCH", verb, ref);

	add_parameter(&request.path, "fieldManager", KUBE_MANAGER);
	set_body(&request, content_type, body);
	request.repeatable = true;
	return request;
}

struct kube_request kube_apply(struct kube_ref ref, const json_t *object, bool force)
{
	/* YAML is the one form that every version takes; JSON is YAML. */
	struct kube_request request = patch(ref, "apply", "application/apply-patch+yaml", object);

	assert(str_equal(name_in(object), ref.name));
	if (force)
		add_parameter(&request.path, "force", "true");
	return request;
}

struct kube_request kube_patch_merge(struct kube_ref ref, const json_t *body)
{
	return patch(ref, "patch", "application/merge-patch+json", body);
}

static json_t *delete_options(const struct kube_delete_options *options, const char *api_version)
{
	json_t *object = json_object();

	tree_set(object, "apiVersion", tree_string(api_version));
	tree_set(object, "kind", tree_string("DeleteOptions"));
	if (options->grace_period_s >= 0)
		tree_set(object, "gracePeriodSeconds", json_integer(options->grace_period_s));
	if (options->uid)
		tree_set(object, "preconditions",
			 json_pack("{s:o}", "uid", tree_string(options->uid)));
	if (options->dry_run)
		tree_set(object, "dryRun", json_pack("[s]", "All"));
	return object;
}

struct kube_request kube_delete(struct kube_ref ref, const struct kube_delete_options *options)
{
	struct kube_request request = of_object("DELETE", "delete", ref);
	CLEANUP(tree) json_t *body = delete_options(options, "v1");

	set_body(&request, JSON_TYPE, body);
	request.wanted.form = KUBE_FORM_DELETION;
	/* Without a UID a second one could hit a newcomer of the same name. */
	request.repeatable = options->uid || options->dry_run;
	return request;
}

struct kube_request kube_evict(struct kube_ref pod, const struct kube_delete_options *options)
{
	struct kube_request request =
		of_object("POST", options->dry_run ? "try to evict" : "evict", pod);
	CLEANUP(tree) json_t *body = json_object();
	json_t *metadata = json_object();

	assert(pod.resource == &KUBE_POD);
	request.wanted.form = KUBE_FORM_EVICTION;
	buf_add_text(&request.path, "/eviction");
	tree_set(body, "apiVersion", tree_string("policy/v1"));
	tree_set(body, "kind", tree_string("Eviction"));
	tree_set(metadata, "name", tree_string(pod.name));
	tree_set(metadata, "namespace", tree_string(pod.namespace));
	tree_set(body, "metadata", metadata);
	tree_set(body, "deleteOptions", delete_options(options, "v1"));
	set_body(&request, JSON_TYPE, body);
	request.repeatable = options->uid || options->dry_run;
	return request;
}

struct kube_request kube_node_labels(const char *node, const json_t *labels,
				     const json_t *annotations)
{
	CLEANUP(tree) json_t *body = json_object();
	json_t *metadata = json_object();

	if (labels)
		tree_set(metadata, "labels", json_deep_copy(labels));
	if (annotations)
		tree_set(metadata, "annotations", json_deep_copy(annotations));
	tree_set(body, "metadata", metadata);
	return kube_patch_merge((struct kube_ref){&KUBE_NODE, "", node}, body);
}

struct kube_request kube_node_cordon(const char *node, bool cordoned)
{
	/* null is how a merge patch says "the default". */
	CLEANUP(tree)
	json_t *body = json_pack("{s:{s:o}}", "spec", "unschedulable",
				 cordoned ? json_true() : json_null());

	return kube_patch_merge((struct kube_ref){&KUBE_NODE, "", node}, body);
}
