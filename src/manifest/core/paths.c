#include "manifest/core/paths.h"
#include "text/tree.h"

#define MAX_PATH        512
#define MAX_CERT_FOLDER 4

/* --- presets --- */

#define RANCHER(name) "/var/lib/rancher/" name "/agent"

static const char *const CREDENTIALS_NAMES[] = {"kubeadm", "k3s", "rke2", NULL};
static const struct path_set CREDENTIALS[] = {
	{{PATHS_KUBECONFIG}, {"/var/lib/kubelet/pki"}, 1, 1},
	{{RANCHER("k3s") "/kubelet.kubeconfig"}, {RANCHER("k3s")}, 1, 1},
	{{RANCHER("rke2") "/kubelet.kubeconfig"}, {RANCHER("rke2")}, 1, 1},
};

static const char *const RUNTIME_NAMES[] = {"containerd", "k3s", "rke2", "cri-o", NULL};
static const struct path_set RUNTIMES[] = {
	{{"/etc/containerd/config.toml"}, {NULL}, 1, 0},
	{{RANCHER("k3s") "/etc/containerd/config.toml"}, {NULL}, 1, 0},
	{{RANCHER("rke2") "/etc/containerd/config.toml"}, {NULL}, 1, 0},
	{{"/etc/crio/crio.conf"}, {"/etc/crio/crio.conf.d"}, 1, 1},
};

static const char *const TOOLKIT_NAMES[] = {"gpu-operator", "packages", NULL};
static const struct path_set TOOLKITS[] = {
	{{NULL}, {"/usr/local/nvidia/toolkit/.config"}, 0, 1},
	{{NULL}, {"/etc/nvidia-container-runtime"}, 0, 1},
};

const char *const *paths_presets(enum paths_kind kind)
{
	switch (kind) {
	case PATHS_CREDENTIALS:
		return CREDENTIALS_NAMES;
	case PATHS_RUNTIME:
		return RUNTIME_NAMES;
	case PATHS_TOOLKIT:
		break;
	}
	return TOOLKIT_NAMES;
}

struct path_set paths_preset(enum paths_kind kind, size_t index)
{
	switch (kind) {
	case PATHS_CREDENTIALS:
		return CREDENTIALS[index];
	case PATHS_RUNTIME:
		return RUNTIMES[index];
	case PATHS_TOOLKIT:
		break;
	}
	return TOOLKITS[index];
}

/* --- what may be shown --- */

#define AS_CREDENTIALS (1U << PATHS_CREDENTIALS)
#define AS_RUNTIME     (1U << PATHS_RUNTIME)
#define AS_TOOLKIT     (1U << PATHS_TOOLKIT)

/* How much of a place. */
enum extent {
	FILE_ITSELF,
	TOML_IN_IT, /* files *.toml that lie directly in it */
	FOLDER_ITSELF,
	ALL_OF_IT, /* the folder, and whatever is in it */
};

/* The places where these programs keep their configuration on the distributions we know. Nothing else
 * of a host is shown: what holds secrets there can't be listed, it is different on each. */
static const struct {
	unsigned kinds;
	enum extent extent;
	const char *path;
} PLACES[] = {
	{AS_CREDENTIALS, FILE_ITSELF, PATHS_KUBECONFIG},
	{AS_CREDENTIALS, FILE_ITSELF, "/etc/kubernetes/kubelet.kubeconfig"},
	{AS_CREDENTIALS, FILE_ITSELF, "/etc/kubernetes/kubeconfig-kubelet"},
	{AS_CREDENTIALS, FOLDER_ITSELF, "/etc/kubernetes/kubelet-pki"},
	{AS_CREDENTIALS, FILE_ITSELF, "/var/lib/kubelet/kubeconfig"},
	{AS_CREDENTIALS, FILE_ITSELF, "/var/lib/kubelet/kubelet.conf"},
	{AS_CREDENTIALS, FOLDER_ITSELF, "/var/lib/kubelet/pki"},
	{AS_CREDENTIALS, FILE_ITSELF, RANCHER("k3s") "/kubelet.kubeconfig"},
	{AS_CREDENTIALS, FOLDER_ITSELF, RANCHER("k3s")},
	{AS_CREDENTIALS, FILE_ITSELF, RANCHER("rke2") "/kubelet.kubeconfig"},
	{AS_CREDENTIALS, FOLDER_ITSELF, RANCHER("rke2")},
	{AS_CREDENTIALS, FILE_ITSELF, "/var/lib/k0s/kubelet.conf"},
	{AS_CREDENTIALS, FOLDER_ITSELF, "/var/lib/k0s/kubelet/pki"},

	{AS_RUNTIME | AS_TOOLKIT, TOML_IN_IT, "/etc/containerd"},
	{AS_RUNTIME | AS_TOOLKIT, ALL_OF_IT, "/etc/containerd/conf.d"},
	{AS_RUNTIME | AS_TOOLKIT, ALL_OF_IT, "/etc/containerd/config.d"},
	{AS_RUNTIME, TOML_IN_IT, RANCHER("k3s") "/etc/containerd"},
	{AS_RUNTIME, ALL_OF_IT, RANCHER("k3s") "/etc/containerd/config.toml.d"},
	{AS_RUNTIME, ALL_OF_IT, RANCHER("k3s") "/etc/containerd/config-v3.toml.d"},
	{AS_RUNTIME, TOML_IN_IT, RANCHER("rke2") "/etc/containerd"},
	{AS_RUNTIME, ALL_OF_IT, RANCHER("rke2") "/etc/containerd/config.toml.d"},
	{AS_RUNTIME, ALL_OF_IT, RANCHER("rke2") "/etc/containerd/config-v3.toml.d"},
	{AS_RUNTIME, FILE_ITSELF, "/etc/k0s/containerd.toml"},
	{AS_RUNTIME, ALL_OF_IT, "/etc/k0s/containerd.d"},
	{AS_RUNTIME, FILE_ITSELF, "/var/snap/microk8s/current/args/containerd.toml"},
	{AS_RUNTIME, FILE_ITSELF, "/var/snap/microk8s/current/args/containerd-template.toml"},
	{AS_RUNTIME, FILE_ITSELF, "/etc/crio/crio.conf"},
	{AS_RUNTIME, ALL_OF_IT, "/etc/crio/crio.conf.d"},
	{AS_RUNTIME, ALL_OF_IT, "/etc/containers/oci/hooks.d"},
	{AS_RUNTIME, ALL_OF_IT, "/usr/share/containers/oci/hooks.d"},

	{AS_RUNTIME | AS_TOOLKIT, ALL_OF_IT, "/etc/nvidia-container-runtime"},
	{AS_RUNTIME | AS_TOOLKIT, ALL_OF_IT, "/etc/nvidia-container-toolkit"},
	{AS_RUNTIME | AS_TOOLKIT, ALL_OF_IT, "/usr/local/nvidia"},
	{AS_RUNTIME | AS_TOOLKIT, ALL_OF_IT, "/opt/nvidia"},
	{AS_RUNTIME | AS_TOOLKIT, ALL_OF_IT, "/home/kubernetes/bin/nvidia"},
};

/* Both clean. */
static bool is_below(const char *path, const char *folder)
{
	return str_starts(path, folder) && path[strlen(folder)] == '/';
}

static bool covers(const char *place, enum extent extent, const char *path, bool folder)
{
	switch (extent) {
	case FILE_ITSELF:
		return !folder && str_equal(path, place);
	case TOML_IN_IT:
		return !folder && is_below(path, place) && !strchr(path + strlen(place) + 1, '/') &&
		       str_ends(path, ".toml");
	case FOLDER_ITSELF:
		return folder && str_equal(path, place);
	case ALL_OF_IT:
		break;
	}
	return is_below(path, place) || (folder && str_equal(path, place));
}

static bool check_allowed(const char *path, enum paths_kind kind, bool folder, const char *field,
			  struct error *error)
{
	static const char *const WHOSE[] = {[PATHS_CREDENTIALS] = "the kubelet's credentials",
					    [PATHS_RUNTIME] = "a container runtime's configuration",
					    [PATHS_TOOLKIT] = "the NVIDIA toolkit's configuration"};

	for (size_t i = 0; i < ARRAY_SIZE(PLACES); i++) {
		if ((PLACES[i].kinds & (1U << kind)) &&
		    covers(PLACES[i].path, PLACES[i].extent, path, folder))
			return true;
	}
	error_field(error, field, "'%s' is ruled out: as a %s it is none of the places of %s", path,
		    folder ? "folder" : "file", WHOSE[kind]);
	return error_hint(
		error, "docs/formats/manifest-options.md lists the places, and says how another "
		       "is considered. What lies elsewhere can be bind-mounted to one of them on "
		       "the nodes.");
}

/* --- reading --- */

/* Without ".", doubled and trailing slashes. What would leave the folder it stands in is refused. */
static bool clean(const char *text, const char *field, struct arena *arena, const char **ret_path,
		  struct error *error)
{
	CLEANUP(buf) struct buf path = {0};

	for (const char *at = text; *at; at++) {
		if ((unsigned char)*at <= ' ' || *at == 0x7f || strchr(":\"\\", *at))
			return error_field(error, field,
					   "has a space, a colon, a quotation mark, a backslash or "
					   "a control character");
	}
	if (text[0] != '/')
		return error_field(error, field, "'%s' is not an absolute path", text);
	for (const char *at = text; *at;) {
		size_t length;

		at += strspn(at, "/");
		length = strcspn(at, "/");
		if (length == 2 && str_starts(at, ".."))
			return error_field(error, field, "'%s' has '..' in it", text);
		if (length > 0 && !(length == 1 && at[0] == '.'))
			buf_printf(&path, "/%.*s", (int)length, at);
		at += length;
	}
	*ret_path = arena_strdup(arena, path.length ? buf_text(&path) : "/");
	return true;
}

static bool take(const char *text, enum paths_kind kind, bool folder, const char *field,
		 struct arena *arena, struct path_set *set, struct error *error)
{
	const char *path;

	if (!clean(text, field, arena, &path, error) ||
	    !check_allowed(path, kind, folder, field, error))
		return false;
	if (folder)
		set->folders[set->folder_count++] = path;
	else
		set->files[set->file_count++] = path;
	return true;
}

/* An array of paths; absent is empty. */
static bool read_list(const json_t *object, const char *name, const char *path, size_t max,
		      enum paths_kind kind, bool folder, struct arena *arena, struct path_set *set,
		      struct error *error)
{
	json_t *array = NULL;

	if (!tree_opt_array(object, name, path, max, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		char field[ERROR_FIELD_SIZE];
		const char *text;

		tree_path_item(field, path, name, i);
		if (!tree_item_string(array, i, name, path, MAX_PATH, &text, error) ||
		    !take(text, kind, folder, field, arena, set, error))
			return false;
	}
	return true;
}

static bool read_credentials(const json_t *object, const char *field, struct arena *arena,
			     struct path_set *set, struct error *error)
{
	char name[ERROR_FIELD_SIZE];
	const char *kubeconfig;

	tree_path(name, field, "kubeconfig");
	if (!tree_check_keys(object, field, TREE_KEYS("kubeconfig", "certificateDirs"), error) ||
	    !tree_get_string(object, "kubeconfig", field, MAX_PATH, &kubeconfig, error) ||
	    !take(kubeconfig, PATHS_CREDENTIALS, false, name, arena, set, error) ||
	    !read_list(object, "certificateDirs", field, MAX_CERT_FOLDER, PATHS_CREDENTIALS, true,
		       arena, set, error))
		return false;
	tree_path(name, field, "certificateDirs");
	return set->folder_count > 0 ||
	       error_field(error, name, "must name 1 to %d folders", MAX_CERT_FOLDER);
}

static bool read_files(const json_t *object, enum paths_kind kind, const char *field,
		       struct arena *arena, struct path_set *set, struct error *error)
{
	size_t count;

	if (!tree_check_keys(object, field, TREE_KEYS("files", "dirs"), error) ||
	    !read_list(object, "files", field, PATHS_MAX, kind, false, arena, set, error) ||
	    !read_list(object, "dirs", field, PATHS_MAX, kind, true, arena, set, error))
		return false;
	count = set->file_count + set->folder_count;
	return (count >= 1 && count <= PATHS_MAX) ||
	       error_field(error, field, "must name 1 to %d paths, not %zu", PATHS_MAX, count);
}

bool paths_read(const json_t *value, enum paths_kind kind, const char *field, struct arena *arena,
		struct path_set *ret_set, struct error *error)
{
	struct path_set set = {0};

	if (json_is_string(value)) {
		CLEANUP(tree) json_t *object = json_object();
		size_t index;

		tree_set(object, field, json_incref((json_t *)value));
		if (!tree_get_choice(object, field, "", paths_presets(kind), &index, error))
			return false;
		set = paths_preset(kind, index);
	} else if (kind == PATHS_CREDENTIALS) {
		if (!read_credentials(value, field, arena, &set, error))
			return false;
	} else if (!read_files(value, kind, field, arena, &set, error)) {
		return false;
	}
	*ret_set = set;
	return true;
}

/* --- one path, one mount --- */

struct named_set {
	const char *field;
	const struct path_set *set;
};

static const char *path_at(const struct path_set *set, size_t index)
{
	return index < set->file_count ? set->files[index] : set->folders[index - set->file_count];
}

static size_t path_count(const struct path_set *set)
{
	return set->file_count + set->folder_count;
}

/* The kubeconfig is mounted elsewhere than where it is, so it may lie in any of the folders. */
static size_t first_path(const struct named_set *named)
{
	return str_equal(named->field, "kubeletCredentials") ? named->set->file_count : 0;
}

static bool check_pair(const struct named_set *a, const struct named_set *b, struct error *error)
{
	for (size_t i = first_path(a); i < path_count(a->set); i++) {
		for (size_t k = a == b ? i + 1 : first_path(b); k < path_count(b->set); k++) {
			const char *path = path_at(a->set, i);

			if (!str_equal(path, path_at(b->set, k)))
				continue;
			if (a == b)
				return error_field(error, a->field, "'%s' is there twice", path);
			return error_field(error, b->field, "'%s' is in %s too", path, a->field);
		}
	}
	return true;
}

bool paths_check_apart(const struct path_set *credentials, const struct path_set *runtime,
		       const struct path_set *toolkit, struct error *error)
{
	const struct named_set sets[] = {{"kubeletCredentials", credentials},
					 {"containerRuntime", runtime},
					 {"nvidiaToolkit", toolkit}};

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		for (size_t k = i; k < ARRAY_SIZE(sets); k++) {
			if (!check_pair(&sets[i], &sets[k], error))
				return false;
		}
	}
	return true;
}
