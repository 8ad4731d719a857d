#include "manifest/core/objects.h"
#include "manifest/core/mounts.h"
#include "manifest/core/nodeconfig.h"

#define TOKEN_MODE       0400
#define STATUS_TIMEOUT_S 35 /* bcd status itself waits 30 s for a loop that doesn't turn (DOC-26) */
#define PROBE_PERIOD_S   30
#define STOP_S           30

const char *const OBJECTS_REQUIREMENTS[] = {
	"No other source of GPUs: in the GPU operator devicePlugin.enabled=false, and no other GPU "
	"device plugin or DRA driver on these nodes.",
	"The NVIDIA container toolkit takes no GPUs from a pod's environment: "
	"accept-nvidia-visible-devices-envvar-when-unprivileged = false in its config.toml (GPU "
	"operator: toolkit env ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED=false).",
	"NVIDIA's CDI specs are made with --device-name-strategy=uuid.",
	"Namespaces of workloads enforce Pod Security baseline or restricted: who may mount "
	"/var/lib/bcd of a node can read its key.",
	"Once every node joined, revoke the join token and delete its Secret; for later nodes make "
	"a new one.",
	NULL,
};

/* --- names --- */

static json_t *labels_of(const struct settings *settings)
{
	return json_pack("{s:s, s:s, s:s}", "app.kubernetes.io/instance", settings->name,
			 "app.kubernetes.io/managed-by", OBJECTS_MANAGED_BY,
			 "app.kubernetes.io/name", "bcd");
}

/* What tells the pods: it can never change, as a DaemonSet's selector can't. */
static json_t *pod_labels(const struct settings *settings)
{
	return json_pack("{s:s, s:s}", "app.kubernetes.io/instance", settings->name,
			 "app.kubernetes.io/name", "bcd");
}

static json_t *metadata_of(const struct settings *settings, const char *name)
{
	return json_pack("{s:s, s:s, s:o}", "name", name, "namespace", settings->namespace,
			 "labels", labels_of(settings));
}

/* --- the objects around the pods --- */

static json_t *make_namespace(const struct settings *settings)
{
	json_t *labels = labels_of(settings);

	tree_set(labels, "pod-security.kubernetes.io/enforce", tree_string("privileged"));
	return json_pack("{s:s, s:s, s:{s:s, s:o}}", "apiVersion", "v1", "kind", "Namespace",
			 "metadata", "name", settings->namespace, "labels", labels);
}

static json_t *make_config_map(const struct settings *settings, const char *config)
{
	json_t *data = json_object();

	tree_set(data, NODECONFIG_FILE, tree_string(config));
	if (settings->join_jwk)
		tree_set(data, NODECONFIG_JWK, tree_string(settings->join_jwk));
	return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1", "kind", "ConfigMap",
			 "metadata", metadata_of(settings, settings->name), "data", data);
}

json_t *objects_secret(const struct settings *settings, const char *token_id, const char *token)
{
	json_t *metadata = metadata_of(settings, settings->secret_name);

	tree_set(metadata, "annotations", json_pack("{s:s}", OBJECTS_TOKEN_LABEL, token_id));
	return json_pack("{s:s, s:s, s:s, s:o, s:{s:s}}", "apiVersion", "v1", "kind", "Secret",
			 "type", "Opaque", "metadata", metadata, "stringData", settings->secret_key,
			 token);
}

/* --- containers --- */

static json_t *command_of(const char *const *words)
{
	json_t *command = json_array();

	tree_append(command, tree_string(OBJECTS_PROGRAM));
	tree_append(command, tree_string("--config"));
	tree_append(command, tree_string(NODECONFIG_FOLDER "/" NODECONFIG_FILE));
	for (; *words; words++)
		tree_append(command, tree_string(*words));
	return command;
}

static json_t *mount_of(const char *volume, const char *path, bool read_only)
{
	json_t *mount = json_pack("{s:s, s:s}", "name", volume, "mountPath", path);

	if (read_only)
		tree_set(mount, "readOnly", json_true());
	return mount;
}

/* Root, who owns bcd's files, and nothing else: it writes an identity and speaks to the gateway. */
static json_t *make_join(const struct settings *settings)
{
	static const char *const WORDS[] = {"join", "--token-file", OBJECTS_TOKEN_PATH "/token",
					    NULL};
	json_t *mounts = json_array();

	tree_append(mounts, mount_of("config", NODECONFIG_FOLDER, true));
	tree_append(mounts, mount_of(MOUNTS_STATE, MOUNTS_STATE_FOLDER, false));
	tree_append(mounts, mount_of("token", OBJECTS_TOKEN_PATH, true));
	return json_pack("{s:s, s:s, s:o, s:O, s:o, s:{s:b, s:{s:[s]}, s:b, s:i, s:{s:s}}}", "name",
			 "join", "image", settings->image, "command", command_of(WORDS),
			 "resources", settings->resources, "volumeMounts", mounts,
			 "securityContext", "allowPrivilegeEscalation", false, "capabilities",
			 "drop", "ALL", "readOnlyRootFilesystem", true, "runAsUser", 0,
			 "seccompProfile", "type", "RuntimeDefault");
}

/* The driver's tools and libraries for bcd itself, no more: pods get their devices by CDI. */
static json_t *make_env(const struct settings *settings)
{
	json_t *env = json_array();

	tree_append(env, json_pack("{s:s, s:{s:{s:s}}}", "name", "NODE_NAME", "valueFrom",
				   "fieldRef", "fieldPath", "spec.nodeName"));
	if (!settings->runtime_class)
		return env;
	tree_append(env, json_pack("{s:s, s:s}", "name", "NVIDIA_VISIBLE_DEVICES", "value", "all"));
	tree_append(env, json_pack("{s:s, s:s}", "name", "NVIDIA_DRIVER_CAPABILITIES", "value",
				   "utility"));
	return env;
}

static json_t *make_probe(void)
{
	static const char *const WORDS[] = {"status", NULL};

	return json_pack("{s:{s:o}, s:i, s:i, s:i}", "exec", "command", command_of(WORDS),
			 "failureThreshold", 3, "periodSeconds", PROBE_PERIOD_S, "timeoutSeconds",
			 STATUS_TIMEOUT_S);
}

static json_t *make_bcd(const struct settings *settings, const struct mounts *host)
{
	const char *const words[] = {"node",
				     str_equal(settings->log_level, "info") ? NULL : "--log-level",
				     settings->log_level, NULL};
	json_t *mounts = json_array();

	for (size_t i = 0; i < host->count; i++)
		tree_append(mounts, mount_of(host->items[i].volume, host->items[i].path,
					     host->items[i].read_only));
	tree_append(mounts, mount_of("config", NODECONFIG_FOLDER, true));
	tree_append(mounts, mount_of("run", "/run/bcd", false));
	tree_append(mounts, mount_of("tmp", "/tmp", false));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:O, s:o, s:{s:b, s:b, s:i}}", "name", "bcd",
			 "image", settings->image, "command", command_of(words), "env",
			 make_env(settings), "livenessProbe", make_probe(), "resources",
			 settings->resources, "volumeMounts", mounts, "securityContext",
			 "privileged", true, "readOnlyRootFilesystem", true, "runAsUser", 0);
}

/* --- the pod --- */

static json_t *make_volumes(const struct settings *settings, const struct mounts *host)
{
	json_t *volumes = json_array();

	for (size_t i = 0; i < host->count; i++)
		tree_append(volumes, json_pack("{s:s, s:{s:s, s:s}}", "name", host->items[i].volume,
					       "hostPath", "path", host->items[i].host_path, "type",
					       host->items[i].type));
	tree_append(volumes, json_pack("{s:s, s:{s:s}}", "name", "config", "configMap", "name",
				       settings->name));
	tree_append(volumes,
		    json_pack("{s:s, s:{s:s}}", "name", "run", "emptyDir", "medium", "Memory"));
	tree_append(volumes, json_pack("{s:s, s:{}}", "name", "tmp", "emptyDir"));
	/* A node that has joined starts without it (HOSTED-14). */
	tree_append(volumes, json_pack("{s:s, s:{s:s, s:i, s:b, s:[{s:s, s:s}]}}", "name", "token",
				       "secret", "secretName", settings->secret_name, "defaultMode",
				       TOKEN_MODE, "optional", true, "items", "key",
				       settings->secret_key, "path", "token"));
	return volumes;
}

static void set_choices(json_t *spec, const struct settings *settings)
{
	if (settings->priority_class)
		tree_set(spec, "priorityClassName", tree_string(settings->priority_class));
	if (settings->runtime_class)
		tree_set(spec, "runtimeClassName", tree_string(settings->runtime_class));
	if (json_object_size(settings->node_selector) > 0)
		tree_set(spec, "nodeSelector", json_incref(settings->node_selector));
	if (json_array_size(settings->tolerations) > 0)
		tree_set(spec, "tolerations", json_incref(settings->tolerations));
	if (json_array_size(settings->pull_secrets) > 0)
		tree_set(spec, "imagePullSecrets", json_incref(settings->pull_secrets));
}

/* The host's resolver: the gateway is outside of the cluster. */
static json_t *make_pod_spec(const struct settings *settings)
{
	CLEANUP(arena) struct arena arena = {0};
	struct mounts host = {0};
	json_t *spec;

	mounts_of(settings, &arena, &host);
	spec = json_pack("{s:b, s:s, s:b, s:b, s:b, s:i, s:[o], s:[o], s:o}",
			 "automountServiceAccountToken", false, "dnsPolicy", "Default",
			 "enableServiceLinks", false, "hostNetwork", true, "hostPID", false,
			 "terminationGracePeriodSeconds", STOP_S, "initContainers",
			 make_join(settings), "containers", make_bcd(settings, &host), "volumes",
			 make_volumes(settings, &host));
	set_choices(spec, settings);
	vec_deinit(&host);
	return spec;
}

static json_t *requirements(void)
{
	CLEANUP(buf) struct buf text = {0};

	for (size_t i = 0; OBJECTS_REQUIREMENTS[i]; i++)
		buf_printf(&text, "%s%s", i ? " " : "", OBJECTS_REQUIREMENTS[i]);
	return tree_string(buf_text(&text));
}

/* The new pod is started beside the old one and waits for the lock of the data folder, so that the
 * kubelet misses bcd for a moment only (HOSTED-3). */
static json_t *make_daemon_set(const struct settings *settings, const char *config_sha256)
{
	json_t *metadata = metadata_of(settings, settings->name);
	json_t *spec =
		json_pack("{s:{s:o}, s:{s:s, s:{s:i, s:i}}, s:{s:{s:o, s:{s:s}}, s:o}}", "selector",
			  "matchLabels", pod_labels(settings), "updateStrategy", "type",
			  "RollingUpdate", "rollingUpdate", "maxSurge", 1, "maxUnavailable", 0,
			  "template", "metadata", "labels", pod_labels(settings), "annotations",
			  "bcd.dev/config-sha256", config_sha256, "spec", make_pod_spec(settings));

	tree_set(metadata, "annotations", json_pack("{s:o}", "bcd.dev/requires", requirements()));
	return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "apps/v1", "kind", "DaemonSet",
			 "metadata", metadata, "spec", spec);
}

json_t *objects_make(const struct settings *settings, const char *config, const char *config_sha256)
{
	json_t *objects = json_array();

	if (settings->create_namespace)
		tree_append(objects, make_namespace(settings));
	tree_append(objects, make_config_map(settings, config));
	tree_append(objects, make_daemon_set(settings, config_sha256));
	return objects;
}
