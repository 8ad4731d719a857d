#include "kube/core/pod.h"

#include "kube/core/event.h"
#include "text/tree.h"

#define MAX_NAME       253 /* of an object; a UID is shorter */
#define MAX_FINALIZERS 1024
#define MAX_GRACE      ((int64_t)1 << 40)
#define MIRROR         "kubernetes.io/config.mirror"
#define SOURCE         "kubernetes.io/config.source"

/* Both, or neither: a source alone is no mirror's. */
static bool read_mirror(const json_t *metadata, struct kube_pod *pod, struct error *error)
{
	json_t *annotations = NULL;
	const char *source = "";

	pod->static_uid = pod->static_source = "";
	if (!tree_opt_object(metadata, "annotations", "metadata", &annotations, error))
		return false;
	if (!annotations || !json_object_get(annotations, MIRROR))
		return true;
	if (!tree_get_string(annotations, MIRROR, "metadata.annotations", MAX_NAME,
			     &pod->static_uid, error) ||
	    !tree_opt_string(annotations, SOURCE, "metadata.annotations", MAX_NAME, &source, error))
		return false;
	pod->static_source = source;
	return true;
}

static bool read_finalizer(const json_t *metadata, struct kube_pod *pod, struct error *error)
{
	json_t *finalizers = NULL;

	pod->finalizer = "";
	if (!tree_opt_array(metadata, "finalizers", "metadata", MAX_FINALIZERS, &finalizers, error))
		return false;
	return json_array_size(finalizers) == 0 ||
	       tree_item_string(finalizers, 0, "finalizers", "metadata", MAX_NAME * 2,
				&pod->finalizer, error);
}

static bool read_deletion(const json_t *metadata, struct kube_pod *pod, struct error *error)
{
	const char *time = "";

	if (!tree_opt_string(metadata, "deletionTimestamp", "metadata", 64, &time, error) ||
	    !tree_opt_int(metadata, "deletionGracePeriodSeconds", "metadata", 0, MAX_GRACE,
			  &pod->grace_s, error))
		return false;
	pod->deleting = *time;
	return !*time || kube_time_parse(time, &pod->deletion) ||
	       error_field(error, "metadata.deletionTimestamp", "is no time");
}

bool kube_pod_read(const json_t *pod, struct kube_pod *ret_pod, struct error *error)
{
	struct kube_pod read = {0};
	json_t *metadata;

	if (!tree_get_object(pod, "metadata", "", &metadata, error) ||
	    !tree_get_string(metadata, "uid", "metadata", MAX_NAME, &read.uid, error) ||
	    !tree_get_string(metadata, "namespace", "metadata", MAX_NAME, &read.namespace, error) ||
	    !tree_get_string(metadata, "name", "metadata", MAX_NAME, &read.name, error) ||
	    !read_mirror(metadata, &read, error) || !read_finalizer(metadata, &read, error) ||
	    !read_deletion(metadata, &read, error))
		return false;
	*ret_pod = read;
	return true;
}
