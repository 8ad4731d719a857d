#include "kube/core/pod.h"

#include "kube/core/event.h"
#include "text/tree.h"

#define MAX_NAME  253 /* of an object; a UID is shorter */
#define MAX_GRACE ((int64_t)1 << 40)
#define NO_GRACE  30 /* the API server's default, seconds */
#define MIRROR    "kubernetes.io/config.mirror"
#define SOURCE    "kubernetes.io/config.source"

/* --- what anybody may write into a pod --- */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && strlen(text) <= MAX_NAME ? text : "";
}

/* As the kubelet makes its mirrors: the Node that the pod is on controls it. */
static bool is_of_its_node(const json_t *pod, const json_t *metadata)
{
	const json_t *owners = json_object_get(metadata, "ownerReferences");
	const char *node = text_of(json_object_get(pod, "spec"), "nodeName");

	for (size_t i = 0; i < json_array_size(owners); i++) {
		const json_t *owner = json_array_get(owners, i);

		if (str_equal(text_of(owner, "apiVersion"), "v1") &&
		    str_equal(text_of(owner, "kind"), "Node") && *node &&
		    str_equal(text_of(owner, "name"), node) &&
		    json_is_true(json_object_get(owner, "controller")))
			return true;
	}
	return false;
}

static void read_mirror(const json_t *pod, const json_t *metadata, struct kube_pod *read)
{
	const json_t *annotations = json_object_get(metadata, "annotations");

	read->static_uid = read->static_source = "";
	if (!is_of_its_node(pod, metadata))
		return;
	read->static_uid = text_of(annotations, MIRROR);
	if (*read->static_uid)
		read->static_source = text_of(annotations, SOURCE);
}

static const char *first_finalizer(const json_t *metadata)
{
	const char *first =
		json_string_value(json_array_get(json_object_get(metadata, "finalizers"), 0));

	return first ? first : "";
}

/* The API server takes any number for a grace; more than this is as good as for ever. */
static int64_t read_grace(const json_t *number)
{
	json_int_t grace = json_integer_value(number);

	return grace < 0 ? 0 : grace > MAX_GRACE ? MAX_GRACE : grace;
}

static int64_t read_termination(const json_t *spec)
{
	const json_t *number = json_object_get(spec, "terminationGracePeriodSeconds");

	return json_is_integer(number) ? read_grace(number) : NO_GRACE;
}

/* --- what the API server writes --- */

static bool read_deletion(const json_t *metadata, struct kube_pod *pod, struct error *error)
{
	const char *time = "";

	if (!tree_opt_string(metadata, "deletionTimestamp", "metadata", 64, &time, error))
		return false;
	pod->deleting = *time;
	return !*time || kube_time_parse(time, &pod->deletion) ||
	       error_field(error, "metadata.deletionTimestamp", "is no time");
}

static bool one_runs(const json_t *statuses)
{
	for (size_t i = 0; i < json_array_size(statuses); i++)
		if (json_object_get(json_object_get(json_array_get(statuses, i), "state"),
				    "running"))
			return true;
	return false;
}

/* Not by the kubelet's word: the collector of pods, whose node is away or has another's taint, sets the phase of
 * what may run there. Source: Kubernetes 1.34 to 1.37, pkg/controller/podgc. */
static bool is_collected(const json_t *status)
{
	const json_t *conditions = json_object_get(status, "conditions"), *condition;
	size_t i;

	json_array_foreach(conditions, i, condition)
	{
		const char *reason = json_string_value(json_object_get(condition, "reason"));

		if (reason && str_equal(reason, "DeletionByPodGC"))
			return true;
	}
	return false;
}

/* Others may set the phase, too, and a status is as old as the kubelet's last word. */
static bool is_over(const json_t *pod)
{
	const json_t *status = json_object_get(pod, "status");
	const char *phase = json_string_value(json_object_get(status, "phase"));

	return phase && (str_equal(phase, "Succeeded") || str_equal(phase, "Failed")) &&
	       !is_collected(status) && !one_runs(json_object_get(status, "containerStatuses")) &&
	       !one_runs(json_object_get(status, "initContainerStatuses")) &&
	       !one_runs(json_object_get(status, "ephemeralContainerStatuses"));
}

bool kube_pod_read(const json_t *pod, struct kube_pod *ret_pod, struct error *error)
{
	struct kube_pod read = {0};
	json_t *metadata;

	if (!tree_get_object(pod, "metadata", "", &metadata, error) ||
	    !tree_get_string(metadata, "uid", "metadata", MAX_NAME, &read.uid, error) ||
	    !tree_get_string(metadata, "namespace", "metadata", MAX_NAME, &read.namespace, error) ||
	    !tree_get_string(metadata, "name", "metadata", MAX_NAME, &read.name, error) ||
	    !read_deletion(metadata, &read, error))
		return false;
	read_mirror(pod, metadata, &read);
	read.finalizer = first_finalizer(metadata);
	read.grace_s = read_grace(json_object_get(metadata, "deletionGracePeriodSeconds"));
	read.termination_s = read_termination(json_object_get(pod, "spec"));
	read.over = is_over(pod);
	*ret_pod = read;
	return true;
}

/* --- claims --- */

static bool names(const json_t *object, const char *claim)
{
	const char *name = json_string_value(json_object_get(object, "resourceClaimName"));

	return name && str_equal(name, claim);
}

static bool one_names(const json_t *array, const char *claim)
{
	for (size_t i = 0; i < json_array_size(array); i++)
		if (names(json_array_get(array, i), claim))
			return true;
	return false;
}

bool kube_pod_has_claim(const json_t *pod, const char *claim)
{
	const json_t *spec = json_object_get(pod, "spec"), *status = json_object_get(pod, "status");

	return one_names(json_object_get(spec, "resourceClaims"), claim) ||
	       one_names(json_object_get(status, "resourceClaimStatuses"), claim) ||
	       names(json_object_get(status, "extendedResourceClaimStatus"), claim);
}
