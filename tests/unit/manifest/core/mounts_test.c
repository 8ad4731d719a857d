#include "manifest/core/mounts.h"
#include "sample.h"

/* All that is mounted of the host, one a line. */
static char *mounted(const char *options)
{
	CLEANUP(settings) struct settings settings = {0};
	CLEANUP(arena) struct arena arena = {0};
	struct mounts mounts = {0};
	struct buf text = {0};

	sample_read(options, &settings);
	mounts_of(&settings, &arena, &mounts);
	for (size_t i = 0; i < mounts.count; i++) {
		const struct mount *mount = &mounts.items[i];

		buf_printf(&text, "%s %s %s", mount->host_path, mount->read_only ? "ro" : "rw",
			   mount->type);
		if (!str_equal(mount->path, mount->host_path))
			buf_printf(&text, " at %s", mount->path);
		buf_add_char(&text, '\n');
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(mount->volume, mounts.items[k].volume);
	}
	vec_deinit(&mounts);
	return buf_take_text(&text);
}

#define ALWAYS                                                                                     \
	"/dev rw Directory\n"                                                                      \
	"/sys rw Directory\n"                                                                      \
	"/var/lib/bcd rw DirectoryOrCreate\n"                                                      \
	"/etc/cdi rw DirectoryOrCreate\n"                                                          \
	"/var/run/cdi ro DirectoryOrCreate\n"                                                      \
	"/var/lib/kubelet/device-plugins rw Directory\n"                                           \
	"/var/lib/kubelet/pod-resources ro Directory\n"
#define DRA                                                                                        \
	"/var/lib/kubelet/plugins_registry rw DirectoryOrCreate\n"                                 \
	"/var/lib/kubelet/plugins/gpu.bcd.dev rw DirectoryOrCreate\n"
#define AT " at /etc/kubernetes/kubelet.conf\n"

/* proves: MAN-47 MAN-48 MAN-49 MAN-50 MAN-51 MAN-52 MAN-53 MAN-54 MAN-55 MAN-56 MAN-57 MAN-60 MAN-69
 * HOSTED-5 */
static void test_exactly_these(void **state UNUSED)
{
	static const struct {
		const char *options, *mounts;
	} rows[] = {
		{"{}", ALWAYS "/etc/kubernetes/kubelet.conf ro File\n"
			      "/var/lib/kubelet/pki ro Directory\n"
			      "/etc/containerd/config.toml ro File\n"
			      "/usr/local/nvidia/toolkit/.config ro Directory\n"},
		{"{\"gpuApi\":\"dra\"}", ALWAYS DRA "/etc/kubernetes/kubelet.conf ro File\n"
						    "/var/lib/kubelet/pki ro Directory\n"
						    "/etc/containerd/config.toml ro File\n"
						    "/usr/local/nvidia/toolkit/.config ro "
						    "Directory\n"},
		{"{\"gpuApi\":\"device-plugin\",\"kubeletCredentials\":\"k3s\","
		 "\"containerRuntime\":\"k3s\",\"nvidiaToolkit\":\"packages\"}",
		 ALWAYS "/var/lib/rancher/k3s/agent/kubelet.kubeconfig ro File" AT
			"/var/lib/rancher/k3s/agent ro Directory\n"
			"/var/lib/rancher/k3s/agent/etc/containerd/config.toml ro File\n"
			"/etc/nvidia-container-runtime ro Directory\n"},
		{"{\"kubeletCredentials\":\"rke2\",\"containerRuntime\":\"rke2\"}",
		 ALWAYS "/var/lib/rancher/rke2/agent/kubelet.kubeconfig ro File" AT
			"/var/lib/rancher/rke2/agent ro Directory\n"
			"/var/lib/rancher/rke2/agent/etc/containerd/config.toml ro File\n"
			"/usr/local/nvidia/toolkit/.config ro Directory\n"},
		{"{\"containerRuntime\":\"cri-o\",\"nvidiaToolkit\":{\"files\":[\"/opt/nvidia/"
		 "t.toml\"]}}",
		 ALWAYS "/etc/kubernetes/kubelet.conf ro File\n"
			"/var/lib/kubelet/pki ro Directory\n"
			"/etc/crio/crio.conf ro File\n"
			"/etc/crio/crio.conf.d ro Directory\n"
			"/opt/nvidia/t.toml ro File\n"},
		{"{\"kubeletCredentials\":{\"kubeconfig\":\"/var/lib/kubelet/kubeconfig\","
		 "\"certificateDirs\":[\"/var/lib/kubelet/pki\",\"/etc/kubernetes/kubelet-pki\"]},"
		 "\"containerRuntime\":{\"files\":[],\"dirs\":[\"/etc/crio/crio.conf.d\"]}}",
		 ALWAYS "/var/lib/kubelet/kubeconfig ro File" AT
			"/var/lib/kubelet/pki ro Directory\n"
			"/etc/kubernetes/kubelet-pki ro Directory\n"
			"/etc/crio/crio.conf.d ro Directory\n"
			"/usr/local/nvidia/toolkit/.config ro Directory\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(free) char *text = mounted(rows[i].options);

		assert_string_equal(text, rows[i].mounts);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_exactly_these)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
