#include "manifest/core/mounts.h"

#define FOLDER "Directory"
#define MADE   "DirectoryOrCreate"
#define FILE_  "File"

static const struct mount ALWAYS[] = {
	{"dev", "/dev", FOLDER, "/dev", false},
	{"sys", "/sys", FOLDER, "/sys", false},
	{MOUNTS_STATE, MOUNTS_STATE_FOLDER, MADE, MOUNTS_STATE_FOLDER, false},
	{"cdi", "/etc/cdi", MADE, "/etc/cdi", false},
	{"run-cdi", "/var/run/cdi", MADE, "/var/run/cdi", true},
	{"device-plugins", "/var/lib/kubelet/device-plugins", FOLDER,
	 "/var/lib/kubelet/device-plugins", false},
	{"pod-resources", "/var/lib/kubelet/pod-resources", FOLDER,
	 "/var/lib/kubelet/pod-resources", true},
};

static const struct mount WITH_DRA[] = {
	{"plugins-registry", "/var/lib/kubelet/plugins_registry", MADE,
	 "/var/lib/kubelet/plugins_registry", false},
	{"plugin", "/var/lib/kubelet/plugins/gpu.bcd.dev", MADE,
	 "/var/lib/kubelet/plugins/gpu.bcd.dev", false},
};

static void add_all(struct mounts *mounts, const struct mount *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		*vec_push(mounts) = rows[i];
}

/* Nothing of the host's configuration is ever made: what is missing must not look empty. */
static void add_set(struct mounts *mounts, const char *stem, const struct path_set *set,
		    size_t first_file, struct arena *arena)
{
	size_t number = 0;

	for (size_t i = first_file; i < set->file_count; i++)
		*vec_push(mounts) = (struct mount){arena_printf(arena, "%s-%zu", stem, number++),
						   set->files[i], FILE_, set->files[i], true};
	for (size_t i = 0; i < set->folder_count; i++)
		*vec_push(mounts) = (struct mount){arena_printf(arena, "%s-%zu", stem, number++),
						   set->folders[i], FOLDER, set->folders[i], true};
}

void mounts_of(const struct settings *settings, struct arena *arena, struct mounts *ret_mounts)
{
	add_all(ret_mounts, ALWAYS, ARRAY_SIZE(ALWAYS));
	if (settings->dra)
		add_all(ret_mounts, WITH_DRA, ARRAY_SIZE(WITH_DRA));
	*vec_push(ret_mounts) = (struct mount){"kubeconfig", settings->credentials.files[0], FILE_,
					       PATHS_KUBECONFIG, true};
	add_set(ret_mounts, "certificates", &settings->credentials, 1, arena);
	add_set(ret_mounts, "runtime", &settings->runtime, 0, arena);
	add_set(ret_mounts, "toolkit", &settings->toolkit, 0, arena);
}
