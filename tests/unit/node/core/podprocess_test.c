#include "node/core/podprocess.h"

#include "lib/test.h"

#define UID  "0b6ed7a0-52a5-4c3b-9e5c-3a8a6b2f0c11"
#define UID_ "0b6ed7a0_52a5_4c3b_9e5c_3a8a6b2f0c11"
#define HASH "9f86d081884c7d659a2feaa0c55ad015"
#define CID  "a3bf4f1b2b0b822cd15d6c15b0f00a08" CID2
#define CID2 "9f86d081884c7d659a2feaa0c55ad015"

struct row {
	const char *cgroup;
	bool is;
	const char *pod, *container;
	bool is_static;
};

/* Both versions of cgroups, both of the kubelet's drivers, every QoS class, and what stands above
 * or is cut off. proves: REL-10 REL-12 */
static void test_whose_cgroup(void **state)
{
	static const struct row rows[] = {
		{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
		 ".slice/cri-containerd-" CID ".scope\n",
		 true, UID, "a3bf4f1b2b0b", false},
		{"0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" CID ".scope\n", true, UID,
		 "a3bf4f1b2b0b", false},
		{"0::/kubepods/besteffort/pod" UID "/" CID "\n", true, UID, "a3bf4f1b2b0b", false},
		{"0::/kubepods/pod" UID "/" CID "/deeper\n", true, UID, "a3bf4f1b2b0b", false},
		{"12:devices:/kubepods/burstable/pod" UID "/" CID "\n1:name=systemd:/init.scope\n",
		 true, UID, "a3bf4f1b2b0b", false},
		{"1:name=systemd:/user.slice\n4:memory:/kubepods/pod" UID "/" CID, true, UID,
		 "a3bf4f1b2b0b", false},
		/* of a manifest */
		{"0::/kubepods/burstable/pod" HASH "/" CID "\n", true, HASH, "a3bf4f1b2b0b", true},
		{"0::/kubepods.slice/kubepods-pod" HASH ".slice/crio-" CID ".scope\n", true, HASH,
		 "a3bf4f1b2b0b", true},
		/* below something else */
		{"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_
		 ".slice/cri-containerd-" CID ".scope\n",
		 true, UID, "a3bf4f1b2b0b", false},
		{"0::/docker/" CID "/kubelet/kubepods/pod" UID "/" CID "\n", true, UID,
		 "a3bf4f1b2b0b", false},
		/* from another cgroup namespace */
		{"0::/../../kubepods-burstable-pod" UID_ ".slice/cri-containerd-" CID ".scope\n",
		 true, UID, "a3bf4f1b2b0b", false},
		{"0::/../../pod" UID "/" CID "\n", true, UID, "a3bf4f1b2b0b", false},
		/* a pod's, though not whose */
		{"0::/kubepods.slice/kubepods-burstable.slice\n", true, "", "", false},
		{"0::/kubepods/podnobody/x\n", true, "", "", false},
		{"0::/kubepods/burstable/pod" UID "\n", true, UID, "", false},
		/* nobody's */
		{"0::/system.slice/kubelet.service\n", false, "", "", false},
		{"0::/system.slice/podman.service\n", false, "", "", false},
		{"0::/user.slice/mykubepods/x\n", false, "", "", false},
		{"0::/docker/" CID "\n", false, "", "", false},
		{"0::/\n", false, "", "", false},
		{"", false, "", "", false},
		{"kubepods", false, "", "", false},
		{"::", false, "", "", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct podprocess process = {0};
		size_t length = strlen(rows[i].cgroup);

		if (podprocess_read(rows[i].cgroup, length, &process) != rows[i].is)
			fail_msg("row %zu: %s", i, rows[i].cgroup);
		assert_string_equal(process.pod, rows[i].pod);
		assert_string_equal(process.container, rows[i].container);
		assert_int_equal(process.is_static, rows[i].is_static);
	}
}

/* proves: REL-10 */
static void test_the_driver_says_which_number(void **state)
{
	static const char text[] = "Model: \t\t NVIDIA H100 80GB HBM3\n"
				   "IRQ:   \t\t 142\n"
				   "GPU UUID: \t GPU-" UID "\n"
				   "Video BIOS: \t 96.00.74.00.01\n"
				   "Bus Type: \t PCIe\n"
				   "Bus Location: \t 0000:1a:00.0\n"
				   "Device Minor: \t 7\n"
				   "GPU Excluded:\t No\n";
	static const char *const bad[] = {
		"",
		"Device Minor: 1\n",
		"GPU UUID: GPU-" UID "\n",
		"GPU UUID: GPU-???????\?-???\?-???\?-???\?-????????????\nDevice Minor: 1\n",
		"GPU UUID: GPU-" UID "\nDevice Minor: -1\n",
		"GPU UUID: GPU-" UID "\nDevice Minor: 4294967297\n",
		"GPU UUID: GPU-" UID "\nDevice Minor: \n",
	};
	struct atom_uuid gpu, wanted;
	int32_t minor = -1;

	(void)state;
	assert_true(podprocess_minor(text, sizeof text - 1, &gpu, &minor));
	assert_true(atom_uuid_parse(UID, &wanted));
	assert_memory_equal(gpu.bytes, wanted.bytes, sizeof gpu.bytes);
	assert_int_equal(minor, 7);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (podprocess_minor(bad[i], strlen(bad[i]), &gpu, &minor))
			fail_msg("'%s' was taken", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whose_cgroup),
		cmocka_unit_test(test_the_driver_says_which_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
