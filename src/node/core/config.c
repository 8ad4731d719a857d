#include "node/core/config.h"

#include "base/id.h"

void config_deinit(struct config *config)
{
	if (config)
		arena_deinit(&config->arena);
}

bool config_hosted(const struct config *config)
{
	return !config->host_units;
}

bool config_check_node(const struct config *config, struct error *error)
{
	if (!config_hosted(config) || *config->node_name)
		return true;
	error_set(error, ERROR_INVALID_CONFIG,
		  "NODE_NAME isn't set, nor kubernetes.node_name: with [host] units = false bcd "
		  "serves the kubelet of the Node of that name");
	return error_hint(error, "%s",
			  config->in_pod
				  ? "In the pod: env NODE_NAME, valueFrom fieldRef "
				    "spec.nodeName."
				  : "Say it in config.toml: [kubernetes] node_name = the name "
				    "that 'kubectl get nodes' shows for this machine.");
}

/* A wrong value of a file is a wrong configuration. */
static bool invalid(struct error *error)
{
	if (error->code == ERROR_INVALID_INPUT)
		error->code = ERROR_INVALID_CONFIG;
	return false;
}

static bool read_section(json_t *tree, const char *name, const char *const *keys, json_t **ret,
			 struct error *error)
{
	*ret = NULL;
	if (!tree_opt_object(tree, name, "", ret, error))
		return false;
	return !*ret || tree_check_keys(*ret, name, keys, error);
}

static bool read_text(struct config *config, json_t *section, const char *path, const char *name,
		      const char *otherwise, const char **ret_text, struct error *error)
{
	const char *text = otherwise;

	if (section && json_object_get(section, name) &&
	    !tree_get_text(section, name, path, CONFIG_MAX_PATH * 4, &text, error))
		return false;
	*ret_text = arena_strdup(&config->arena, text);
	return true;
}

static bool read_paths(json_t *tree, struct config *config, struct error *error)
{
	const struct {
		const char *name, *otherwise;
		const char **path;
	} rows[] = {
		{"data", "/var/lib/bcd", &config->data},
		{"run", "/run/bcd", &config->run},
		{"kubelet", "/var/lib/kubelet", &config->kubelet},
		{"cdi", "/etc/cdi", &config->cdi},
		{"run_cdi", "/var/run/cdi", &config->run_cdi},
		{"proc", "/proc", &config->proc},
		{"sys", "/sys", &config->sys},
		{"dev", "/dev", &config->dev},
	};
	json_t *section;

	if (!read_section(tree, "paths",
			  TREE_KEYS("root", "data", "run", "kubelet", "cdi", "run_cdi", "proc",
				    "sys", "dev"),
			  &section, error) ||
	    !read_text(config, section, "paths", "root", "/", &config->root, error))
		return false;
	if (config->root[0] != '/')
		return error_field(error, "paths.root", "'%s' is not an absolute path",
				   config->root);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *given = NULL;
		char field[ERROR_FIELD_SIZE];
		size_t root = strlen(config->root);

		tree_path(field, "paths", rows[i].name);
		if (section && !tree_opt_string(section, rows[i].name, "paths", CONFIG_MAX_PATH,
						&given, error))
			return false;
		if (given && given[0] != '/')
			return error_field(error, field, "'%s' is not an absolute path", given);
		while (root > 0 && config->root[root - 1] == '/')
			root--;
		*rows[i].path = given ? arena_strdup(&config->arena, given)
				      : arena_printf(&config->arena, "%.*s%s", (int)root,
						     config->root, rows[i].otherwise);
	}
	return true;
}

static bool check_address(const char *text, int64_t least_port, const char *field, const char *such,
			  struct error *error)
{
	if (str_is_address(text, least_port))
		return true;
	error_field(error, field, "'%s' is not ADDRESS:PORT", text);
	return error_hint(error, "Such as %s.", such);
}

static bool read_gateway(json_t *tree, struct config *config, struct error *error)
{
	json_t *section, *addresses = NULL;

	if (!read_section(tree, "gateway", TREE_KEYS("addresses", "server_name", "ca_pins"),
			  &section, error) ||
	    !read_text(config, section, "gateway", "server_name", "", &config->server_name,
		       error) ||
	    !read_text(config, section, "gateway", "ca_pins", "", &config->ca_pins, error))
		return false;
	if (!section)
		return true;
	if (!tree_get_array(section, "addresses", "gateway", CONFIG_MAX_ADDRESSES, &addresses,
			    error))
		return false;
	for (size_t i = 0; i < json_array_size(addresses); i++) {
		char field[ERROR_FIELD_SIZE];
		const char *address;

		if (!tree_item_string(addresses, i, "addresses", "gateway", 255, &address, error))
			return false;
		tree_path_item(field, "gateway", "addresses", i);
		if (!check_address(address, 1, field, "gw.example.com:7443 or [fd00::1]:7443",
				   error))
			return false;
		config->addresses[config->address_count++] = arena_strdup(&config->arena, address);
	}
	if (config->address_count == 0 || (*config->server_name && *config->ca_pins))
		return true;
	if (*config->server_name) {
		error_field(error, "gateway.ca_pins", "is needed with gateway.addresses");
		return error_hint(error, "'better-compute pki show' prints them.");
	}
	error_field(error, "gateway.server_name", "is needed with gateway.addresses");
	return error_hint(error, "It is serve's --gateway-name; if none was given, "
				 "gateway.better-compute.internal.");
}

static bool read_join(json_t *tree, struct config *config, struct error *error)
{
	json_t *section;

	return read_section(tree, "join",
			    TREE_KEYS("server", "encryption_jwk", "encryption_pins", "signing_pins",
				      "ca_file"),
			    &section, error) &&
	       read_text(config, section, "join", "server", "", &config->join_server, error) &&
	       read_text(config, section, "join", "encryption_jwk", "", &config->encryption_jwk,
			 error) &&
	       read_text(config, section, "join", "encryption_pins", "", &config->encryption_pins,
			 error) &&
	       read_text(config, section, "join", "signing_pins", "", &config->signing_pins,
			 error) &&
	       read_text(config, section, "join", "ca_file", "", &config->ca_file, error);
}

static bool read_host(json_t *tree, struct config *config, struct error *error)
{
	int64_t vcpu = 1;
	json_t *section;

	config->host_units = true;
	config->reserved_memory_mib = 2048;
	config->confine = true;
	if (!read_section(tree, "host",
			  TREE_KEYS("units", "reserved_memory_mib", "reserved_vcpu", "confine"),
			  &section, error))
		return false;
	if (section && (!tree_opt_bool(section, "units", "host", &config->host_units, error) ||
			!tree_opt_int(section, "reserved_memory_mib", "host", 0, 1 << 30,
				      &config->reserved_memory_mib, error) ||
			!tree_opt_int(section, "reserved_vcpu", "host", 0, 65536, &vcpu, error) ||
			!tree_opt_bool(section, "confine", "host", &config->confine, error)))
		return false;
	config->reserved_vcpu = (int32_t)vcpu;
	return true;
}

/* A list of XIDs; each once, and none that `other` has too. */
static bool read_xids(json_t *section, const char *name, int32_t *numbers, size_t *count,
		      const int32_t *other, size_t other_count, struct error *error)
{
	json_t *array = NULL;
	char field[ERROR_FIELD_SIZE];

	tree_path(field, "gpu", name);
	if (!section || !json_object_get(section, name))
		return true;
	if (!tree_get_array(section, name, "gpu", XID_MAX_OVERRIDES, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		json_int_t xid = json_integer_value(json_array_get(array, i)); /* else 0 */

		if (xid < 1 || xid > XID_MAX)
			return error_field(error, field, "must be numbers between 1 and %d",
					   XID_MAX);
		for (size_t j = 0; j < other_count; j++)
			if (other[j] == xid)
				return error_field(error, field,
						   "%d is in both xid_fault and xid_ignore",
						   (int)xid);
		numbers[(*count)++] = (int32_t)xid;
	}
	return true;
}

static bool read_file_name(struct config *config, json_t *section, const char *path,
			   const char *name, const char *otherwise, const char **ret,
			   struct error *error)
{
	char field[ERROR_FIELD_SIZE];

	if (!read_text(config, section, path, name, otherwise, ret, error))
		return false;
	tree_path(field, path, name);
	return !**ret || **ret == '/' ||
	       error_field(error, field, "'%s' is not an absolute path", *ret);
}

static bool read_gpu(json_t *tree, struct config *config, struct error *error)
{
	struct xid_policy *xids = &config->xids;
	size_t source = CONFIG_GPUS_AUTO;
	int64_t slots = 0;
	json_t *section;

	if (!read_section(tree, "gpu",
			  TREE_KEYS("source", "sim_file", "sim_reason", "slots", "kernel_log",
				    "nvml_library", "nvidia_smi", "xid_fault", "xid_ignore"),
			  &section, error))
		return false;
	if (section &&
	    (!tree_opt_choice(section, "source", "gpu",
			      TREE_KEYS("auto", "nvml", "nvidia-smi", "sim"), &source, error) ||
	     !tree_opt_int(section, "slots", "gpu", 0, 64, &slots, error)))
		return false;
	config->gpus = (enum config_gpus)source;
	config->slots = (int32_t)slots;
	return read_text(config, section, "gpu", "sim_file",
			 arena_printf(&config->arena, "%s/gpus.toml", config->data),
			 &config->sim_file, error) &&
	       read_text(config, section, "gpu", "sim_reason",
			 "asked for by [gpu] source = \"sim\"", &config->sim_reason, error) &&
	       read_file_name(config, section, "gpu", "kernel_log",
			      arena_printf(&config->arena, "%s/kmsg", config->dev),
			      &config->kernel_log, error) &&
	       read_file_name(config, section, "gpu", "nvml_library", "", &config->nvml_library,
			      error) &&
	       read_file_name(config, section, "gpu", "nvidia_smi", "", &config->nvidia_smi,
			      error) &&
	       read_xids(section, "xid_fault", xids->fault, &xids->fault_count, NULL, 0, error) &&
	       read_xids(section, "xid_ignore", xids->ignore, &xids->ignore_count, xids->fault,
			 xids->fault_count, error);
}

/* JOIN-43: a string of one entry or an array of entries. */
static bool read_clusters(json_t *section, struct config *config, struct error *error)
{
	json_t *value = section ? json_object_get(section, "allowed_clusters") : NULL;
	json_t *array;

	if (!value)
		return true;
	if (json_is_string(value)) {
		config->allowed_clusters[config->cluster_count++] =
			arena_strdup(&config->arena, json_string_value(value));
		return true;
	}
	if (!tree_get_array(section, "allowed_clusters", "kubernetes", CONFIG_MAX_CLUSTERS, &array,
			    error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *cluster;

		if (!tree_item_string(array, i, "allowed_clusters", "kubernetes", 1024, &cluster,
				      error))
			return false;
		config->allowed_clusters[config->cluster_count++] =
			arena_strdup(&config->arena, cluster);
	}
	return true;
}

/* As they are, whatever the root: a manifest names what it mounts. */
static bool read_paths_list(struct config *config, json_t *section, const char *name,
			    struct config_paths *paths, struct error *error)
{
	json_t *array = NULL;

	if (section &&
	    !tree_opt_array(section, name, "kubernetes", CONFIG_MAX_PATHS, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		char field[ERROR_FIELD_SIZE];
		const char *path;

		tree_path_item(field, "kubernetes", name, i);
		if (!tree_item_string(array, i, name, "kubernetes", CONFIG_MAX_PATH, &path, error))
			return false;
		if (path[0] != '/')
			return error_field(error, field, "'%s' is not an absolute path", path);
		paths->items[paths->count++] = arena_strdup(&config->arena, path);
	}
	return true;
}

static bool read_kubernetes(json_t *tree, const char *node_name, struct config *config,
			    struct error *error)
{
	json_t *section;

	if (!read_section(tree, "kubernetes",
			  TREE_KEYS("node_name", "gpu_api", "allowed_clusters", "kubeconfig",
				    "site_id", "runtime_config", "toolkit_config"),
			  &section, error) ||
	    !read_text(config, section, "kubernetes", "node_name", "", &config->node_name, error) ||
	    !read_text(config, section, "kubernetes", "site_id", "", &config->site_id, error) ||
	    !read_text(config, section, "kubernetes", "gpu_api", "device-plugin", &config->gpu_api,
		       error))
		return false;
	if (!*config->node_name && node_name)
		config->node_name = arena_strdup(&config->arena, node_name);
	if (!str_equal(config->gpu_api, "device-plugin") && !str_equal(config->gpu_api, "dra"))
		return error_field(error, "kubernetes.gpu_api",
				   "'%s' is neither \"device-plugin\" nor \"dra\"",
				   config->gpu_api);
	if (*config->site_id && !id_valid(config->site_id, "site"))
		return error_field(error, "kubernetes.site_id", "'%s' is no site's id",
				   config->site_id);
	return read_clusters(section, config, error) &&
	       read_paths_list(config, section, "runtime_config", &config->runtime_config, error) &&
	       read_paths_list(config, section, "toolkit_config", &config->toolkit_config, error) &&
	       read_file_name(config, section, "kubernetes", "kubeconfig",
			      arena_printf(&config->arena, "%s/etc/kubernetes/kubelet.conf",
					   str_equal(config->root, "/") ? "" : config->root),
			      &config->kubeconfig, error);
}

static bool read_metrics(json_t *tree, struct config *config, struct error *error)
{
	json_t *section;

	if (!read_section(tree, "metrics", TREE_KEYS("listen", "dcgm_names"), &section, error) ||
	    !read_text(config, section, "metrics", "listen", "", &config->metrics_listen, error))
		return false;
	/* Whether the address is this machine's turns out when it is used. */
	if (*config->metrics_listen && !check_address(config->metrics_listen, 0, "metrics.listen",
						      "127.0.0.1:9410 or [::]:9410", error))
		return false;
	return !section ||
	       tree_opt_bool(section, "dcgm_names", "metrics", &config->dcgm_names, error);
}

bool config_read(json_t *tree, const char *node_name, struct config *ret_config,
		 struct error *error)
{
	CLEANUP(config) struct config config = {0};

	if (!tree_check_keys(
		    tree, "",
		    TREE_KEYS("paths", "gateway", "join", "host", "gpu", "kubernetes", "metrics"),
		    error) ||
	    !read_paths(tree, &config, error) || !read_gateway(tree, &config, error) ||
	    !read_join(tree, &config, error) || !read_host(tree, &config, error) ||
	    !read_gpu(tree, &config, error) || !read_kubernetes(tree, node_name, &config, error) ||
	    !read_metrics(tree, &config, error))
		return invalid(error);
	*ret_config = config;
	config = (struct config){0};
	return true;
}
