#include "manifest/core/paths.h"
#include "sample.h"

#include <stdio.h>

static bool read_text(const char *json, enum paths_kind kind, struct arena *arena,
		      struct path_set *set, struct error *error)
{
	CLEANUP(tree) json_t *value = sample_parse(json);

	return paths_read(value, kind, "f", arena, set, error);
}

static void check_preset(enum paths_kind kind, const char *name, const char *file,
			 const char *folder)
{
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(buf) struct buf json = {0};
	struct path_set set;
	struct error error;

	buf_printf(&json, "\"%s\"", name);
	expect_ok(read_text(buf_text(&json), kind, &arena, &set, &error), &error);
	assert_int_equal(set.file_count, file ? 1 : 0);
	assert_int_equal(set.folder_count, folder ? 1 : 0);
	if (file)
		assert_string_equal(set.files[0], file);
	if (folder)
		assert_string_equal(set.folders[0], folder);
}

/* proves: MAN-19 MAN-20 MAN-21 */
static void test_presets(void **state UNUSED)
{
	static const struct {
		enum paths_kind kind;
		const char *name, *file, *folder;
	} rows[] = {
		{PATHS_RUNTIME, "containerd", "/etc/containerd/config.toml", NULL},
		{PATHS_RUNTIME, "k3s", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
		 NULL},
		{PATHS_RUNTIME, "rke2", "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
		 NULL},
		{PATHS_RUNTIME, "cri-o", "/etc/crio/crio.conf", "/etc/crio/crio.conf.d"},
		{PATHS_CREDENTIALS, "kubeadm", "/etc/kubernetes/kubelet.conf",
		 "/var/lib/kubelet/pki"},
		{PATHS_CREDENTIALS, "k3s", "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
		 "/var/lib/rancher/k3s/agent"},
		{PATHS_CREDENTIALS, "rke2", "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
		 "/var/lib/rancher/rke2/agent"},
		{PATHS_TOOLKIT, "gpu-operator", NULL, "/usr/local/nvidia/toolkit/.config"},
		{PATHS_TOOLKIT, "packages", NULL, "/etc/nvidia-container-runtime"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_preset(rows[i].kind, rows[i].name, rows[i].file, rows[i].folder);
	assert_string_equal(paths_presets(PATHS_RUNTIME)[0], "containerd");
	assert_string_equal(paths_presets(PATHS_CREDENTIALS)[0], "kubeadm");
	assert_string_equal(paths_presets(PATHS_TOOLKIT)[0], "gpu-operator");
}

/* proves: MAN-36 MAN-37 MAN-64 */
static void test_paths_are_made_clean(void **state UNUSED)
{
	CLEANUP(arena) struct arena arena = {0};
	struct path_set set;
	struct error error;

	expect_ok(read_text("{\"files\":[\"/etc//k0s/./containerd.toml\"],"
			    "\"dirs\":[\"/etc/k0s/containerd.d///\",\"/opt/nvidia/.\"]}",
			    PATHS_RUNTIME, &arena, &set, &error),
		  &error);
	assert_string_equal(set.files[0], "/etc/k0s/containerd.toml");
	assert_string_equal(set.folders[0], "/etc/k0s/containerd.d");
	assert_string_equal(set.folders[1], "/opt/nvidia");
	expect_ok(read_text("{\"kubeconfig\":\"/var/lib/kubelet/kubeconfig\",\"certificateDirs\":"
			    "[\"/var/lib/kubelet/pki/\",\"/etc/kubernetes/kubelet-pki\"]}",
			    PATHS_CREDENTIALS, &arena, &set, &error),
		  &error);
	assert_string_equal(set.files[0], "/var/lib/kubelet/kubeconfig");
	assert_string_equal(set.folders[0], "/var/lib/kubelet/pki");
	assert_int_equal(set.folder_count, 2);
}

static const char *const BEFORE[] = {
	[PATHS_CREDENTIALS] =
		"{\"kubeconfig\":\"/var/lib/kubelet/kubeconfig\",\"certificateDirs\":[\"",
	[PATHS_RUNTIME] = "{\"files\":[],\"dirs\":[\"",
	[PATHS_TOOLKIT] = "{\"files\":[\"",
};

static void check_ruled_out(enum paths_kind kind, const char *path)
{
	CLEANUP(arena) struct arena arena = {0};
	char json[256];
	struct path_set set;
	struct error error;

	snprintf(json, sizeof json, "%s%s\"]}", BEFORE[kind], path);
	if (read_text(json, kind, &arena, &set, &error))
		fail_msg("'%s' was taken", path);
	if (!strstr(error.what, "is ruled out"))
		fail_msg("'%s': %s", path, error.what);
	assert_non_null(strstr(error.hint, "docs/formats/manifest-options.md"));
	assert_int_equal(strncmp(error.field, "f.", 2), 0);
}

/* What no option may show of a host, under any of its names; nor what is in it, nor what it is in. */
static const char *const NEVER[] = {
	"/bin",
	"/boot",
	"/dev/dri",
	"/etc/NetworkManager",
	"/etc/bcd",
	"/etc/cdi",
	"/etc/ceph",
	"/etc/containerd/certs.d",
	"/etc/credstore",
	"/etc/crio/pull-secret.json",
	"/etc/default",
	"/etc/docker",
	"/etc/etcd",
	"/etc/gshadow",
	"/etc/k0s/k0s.yaml",
	"/etc/krb5.keytab",
	"/etc/kubernetes/admin.conf",
	"/etc/kubernetes/bootstrap-kubelet.conf",
	"/etc/kubernetes/controller-manager.conf",
	"/etc/kubernetes/kubelet.conf.old",
	"/etc/kubernetes/manifests",
	"/etc/kubernetes/pki",
	"/etc/kubernetes/scheduler.conf",
	"/etc/kubernetes/super-admin.conf",
	"/etc/ld.so.preload",
	"/etc/letsencrypt",
	"/etc/pki",
	"/etc/pki/tls/private",
	"/etc/rancher/k3s/config.yaml",
	"/etc/rancher/k3s/k3s.yaml",
	"/etc/rancher/node/password",
	"/etc/rancher/rke2/config.yaml",
	"/etc/rancher/rke2/rke2.yaml",
	"/etc/resolv.conf",
	"/etc/shadow",
	"/etc/ssh",
	"/etc/ssl/certs",
	"/etc/ssl/private",
	"/etc/sudoers",
	"/etc/systemd",
	"/etc/wireguard",
	"/home",
	"/home/kubernetes/bin",
	"/lib",
	"/lib64",
	"/mnt",
	"/opt/app",
	"/opt/nvidia2",
	"/proc/1",
	"/root/.kube",
	"/run/bcd",
	"/run/containerd/containerd.sock",
	"/run/crio/crio.sock",
	"/run/secrets/bcd.dev/join",
	"/sbin",
	"/snap",
	"/srv",
	"/sys/fs/cgroup",
	"/tmp",
	"/usr/bin",
	"/usr/lib/x86_64-linux-gnu",
	"/usr/local/bin",
	"/usr/local/etc",
	"/usr/sbin",
	"/var/lib/bcd",
	"/var/lib/cloud",
	"/var/lib/containerd",
	"/var/lib/containers/storage",
	"/var/lib/docker",
	"/var/lib/etcd",
	"/var/lib/k0s/kubelet/pods",
	"/var/lib/k0s/pki",
	"/var/lib/kubelet/config.json",
	"/var/lib/kubelet/device-plugins",
	"/var/lib/kubelet/plugins/gpu.bcd.dev",
	"/var/lib/kubelet/pods",
	"/var/lib/minikube/certs",
	"/var/lib/rancher/k3s/server",
	"/var/lib/rancher/rke2/server/tls",
	"/var/lib/sss",
	"/var/lib/systemd",
	"/var/log",
	"/var/run/docker.sock",
	"/var/run/secrets/bcd.dev/join",
	"/var/snap/microk8s/current/args/kube-apiserver",
	"/var/snap/microk8s/current/certs",
	"/var/snap/microk8s/current/credentials",
	"/var/tmp",
};

static const enum paths_kind KINDS[] = {PATHS_CREDENTIALS, PATHS_RUNTIME, PATHS_TOOLKIT};

/* In each of the ways to write it. */
static void check_however_written(const char *path)
{
	CLEANUP(arena) struct arena arena = {0};
	const char *last = strrchr(path, '/');
	const char *const ways[] = {
		path,
		arena_printf(&arena, "%s/", path),
		arena_printf(&arena, "/%s//", path),
		arena_printf(&arena, "%s/./.", path),
		arena_printf(&arena, "/.%s", path),
		arena_printf(&arena, "%.*s/.//%s", (int)(last - path), path, last + 1),
	};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(KINDS); k++)
			check_ruled_out(KINDS[k], ways[i]);
	}
}

/* proves: MAN-45 MAN-64 HOSTED-5 */
static void test_what_is_never_shown(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_SIZE(NEVER); i++) {
		CLEANUP(arena) struct arena arena = {0};
		char *path = arena_strdup(&arena, NEVER[i]);

		check_however_written(arena_printf(&arena, "%s/x", path));
		for (char *slash; (slash = strrchr(path, '/')); *slash = '\0')
			check_however_written(path);
		check_however_written("/");
	}
}

/* What the kubelet's credentials need, nothing else gets; and of them no more than they need. */
static void test_what_only_credentials_may_name(void **state UNUSED)
{
	static const struct {
		const char *folder;
		bool credentials;
	} rows[] = {
		{"/var/lib/kubelet/pki", true},
		{"/var/lib/kubelet/pki/x", false},
		{"/var/lib/kubelet/pk", false},
		{"/var/lib/kubelet", false},
		{"/var/lib/rancher/k3s/agent", true},
		{"/var/lib/rancher/rke2/agent", true},
		{"/var/lib/rancher/k3s", false},
		{"/var/lib/rancher/k3s/agent/etc/containerd", false},
		{"/var/lib/rancher/k3s/agent/etc/containerd/certs.d", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(arena) struct arena arena = {0};
		struct path_set set;
		struct error error;
		const char *json =
			arena_printf(&arena, "%s%s\"]}", BEFORE[PATHS_CREDENTIALS], rows[i].folder);

		check_ruled_out(PATHS_RUNTIME, rows[i].folder);
		check_ruled_out(PATHS_TOOLKIT, rows[i].folder);
		if (rows[i].credentials)
			expect_ok(read_text(json, PATHS_CREDENTIALS, &arena, &set, &error), &error);
		else
			check_ruled_out(PATHS_CREDENTIALS, rows[i].folder);
	}
	check_ruled_out(PATHS_RUNTIME, PATHS_KUBECONFIG);
	check_ruled_out(PATHS_TOOLKIT, PATHS_KUBECONFIG);
}

/* What is laid out otherwise than the presets. proves: MAN-36 MAN-37 MAN-38 */
static void test_what_may_be_named(void **state UNUSED)
{
	static const struct {
		enum paths_kind kind;
		const char *json;
	} rows[] = {
		{PATHS_RUNTIME,
		 "{\"files\":[\"/etc/containerd/config.toml\"],"
		 "\"dirs\":[\"/etc/containerd/conf.d\",\"/etc/containerd/config.d\"]}"},
		{PATHS_RUNTIME,
		 "{\"dirs\":[\"/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d\"]}"},
		{PATHS_RUNTIME,
		 "{\"files\":[\"/var/snap/microk8s/current/args/containerd-template.toml\"]}"},
		{PATHS_RUNTIME, "{\"files\":[\"/etc/k0s/containerd.toml\"],"
				"\"dirs\":[\"/etc/k0s/containerd.d\"]}"},
		{PATHS_RUNTIME,
		 "{\"dirs\":[\"/etc/crio/crio.conf.d\",\"/etc/containers/oci/hooks.d\","
		 "\"/usr/share/containers/oci/hooks.d\"]}"},
		{PATHS_TOOLKIT, "{\"dirs\":[\"/opt/nvidia/toolkit/.config\",\"/opt/nvidia\","
				"\"/home/kubernetes/bin/nvidia\"]}"},
		{PATHS_TOOLKIT, "{\"files\":[\"/usr/local/nvidia/toolkit/.config/"
				"nvidia-container-runtime/config.toml\"]}"},
		{PATHS_CREDENTIALS, "{\"kubeconfig\":\"/var/lib/k0s/kubelet.conf\","
				    "\"certificateDirs\":[\"/var/lib/k0s/kubelet/pki\"]}"},
		{PATHS_CREDENTIALS, "{\"kubeconfig\":\"/etc/kubernetes/kubelet.conf\","
				    "\"certificateDirs\":[\"/etc/kubernetes/kubelet-pki\"]}"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(arena) struct arena arena = {0};
		struct path_set set;
		struct error error;

		expect_ok(read_text(rows[i].json, rows[i].kind, &arena, &set, &error), &error);
	}
}

/* proves: MAN-36 MAN-37 MAN-38 MAN-43 */
static void test_refusals(void **state UNUSED)
{
	static const struct {
		enum paths_kind kind;
		const char *json, *field, *text;
	} rows[] = {
		{PATHS_RUNTIME, "\"docker\"", "f", "'docker'"},
		{PATHS_RUNTIME, "\"crio\"", "f", "cri-o"},
		{PATHS_RUNTIME, "7", "f", "an object"},
		{PATHS_RUNTIME, "{}", "f", "1 to 8 paths, not 0"},
		{PATHS_RUNTIME, "{\"file\":[]}", "f.file", "files"},
		{PATHS_RUNTIME, "{\"files\":[\"etc/a\"]}", "f.files[0]", "not an absolute path"},
		{PATHS_RUNTIME, "{\"files\":[\"/etc/containerd/a.toml\",\"\"]}", "f.files[1]", ""},
		{PATHS_RUNTIME, "{\"files\":[\"/a/../b\"]}", "f.files[0]", "'..'"},
		{PATHS_RUNTIME, "{\"files\":[\"/a b\"]}", "f.files[0]", "a space"},
		{PATHS_RUNTIME, "{\"files\":[\"/a:b\"]}", "f.files[0]", "a colon"},
		{PATHS_RUNTIME, "{\"files\":[\"/opt/nvidia/\\\"x\"]}", "f.files[0]",
		 "a quotation mark"},
		{PATHS_TOOLKIT, "{\"dirs\":[\"/opt/nvidia/\\\\x\"]}", "f.dirs[0]", "a backslash"},
		{PATHS_TOOLKIT, "{\"dirs\":[\"/opt/nvidia/\\nx\"]}", "f.dirs[0]", "control"},
		{PATHS_TOOLKIT, "{\"dirs\":[\"/opt/nvidia/\\u007fx\"]}", "f.dirs[0]", "control"},
		{PATHS_TOOLKIT, "{\"dirs\":[\"/srv/nv\"]}", "f.dirs[0]",
		 "as a folder it is none of the places of the NVIDIA toolkit's"},
		{PATHS_RUNTIME,
		 "{\"files\":[\"/opt/nvidia/1\",\"/opt/nvidia/2\",\"/opt/nvidia/3\","
		 "\"/opt/nvidia/4\"],\"dirs\":[\"/opt/nvidia/5\",\"/opt/nvidia/6\","
		 "\"/opt/nvidia/7\",\"/opt/nvidia/8\",\"/opt/nvidia/9\"]}",
		 "f", "1 to 8 paths, not 9"},
		{PATHS_CREDENTIALS, "{\"kubeconfig\":\"/etc/kubernetes/admin.conf\"}",
		 "f.kubeconfig", "the kubelet's credentials"},
		{PATHS_CREDENTIALS, "{\"kubeconfig\":\"/var/lib/kubelet/pods/x\"}", "f.kubeconfig",
		 "ruled out"},
		{PATHS_CREDENTIALS, "{\"kubeconfig\":\"/etc/kubernetes/kubelet.conf\"}",
		 "f.certificateDirs", "1 to 4"},
		{PATHS_CREDENTIALS, "{\"certificateDirs\":[\"/a\"]}", "f.kubeconfig", "missing"},
		{PATHS_CREDENTIALS,
		 "{\"kubeconfig\":\"/etc/kubernetes/kubelet.conf\",\"certificateDirs\":[\"/b\",\"/"
		 "c\",\"/d\",\"/e\",\"/f\"]}",
		 "f.certificateDirs", "4"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(arena) struct arena arena = {0};
		struct path_set set;
		struct error error;

		expect_error(read_text(rows[i].json, rows[i].kind, &arena, &set, &error), &error,
			     ERROR_INVALID_INPUT, rows[i].text);
		assert_string_equal(error.field, rows[i].field);
	}
}

/* proves: MAN-44 */
static void test_one_path_is_mounted_once(void **state UNUSED)
{
	struct path_set credentials = {{"/k"}, {"/pki", "/pki2"}, 1, 2};
	struct path_set runtime = {{"/r"}, {"/rd"}, 1, 1}, toolkit = {{NULL}, {"/t"}, 0, 1};
	struct error error;

	expect_ok(paths_check_apart(&credentials, &runtime, &toolkit, &error), &error);
	toolkit.folders[0] = "/rd";
	expect_error(paths_check_apart(&credentials, &runtime, &toolkit, &error), &error,
		     ERROR_INVALID_INPUT, "nvidiaToolkit: '/rd' is in containerRuntime too");
	toolkit.folders[0] = "/pki2";
	expect_error(paths_check_apart(&credentials, &runtime, &toolkit, &error), &error,
		     ERROR_INVALID_INPUT, "is in kubeletCredentials too");
	toolkit.folders[0] = "/t";
	runtime.folders[0] = "/r";
	expect_error(paths_check_apart(&credentials, &runtime, &toolkit, &error), &error,
		     ERROR_INVALID_INPUT, "'/r' is there twice");
	runtime.folders[0] = "/k"; /* the kubeconfig is mounted elsewhere */
	expect_ok(paths_check_apart(&credentials, &runtime, &toolkit, &error), &error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_paths_are_made_clean),
		cmocka_unit_test(test_what_is_never_shown),
		cmocka_unit_test(test_what_only_credentials_may_name),
		cmocka_unit_test(test_what_may_be_named),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_one_path_is_mounted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
