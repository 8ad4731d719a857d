#include "lib/test.h"
#include "node/core/confine.h"

#include <linux/capability.h>

#define BIT(capability) (UINT64_C(1) << (capability))
#define FILES           (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH))
#define LOOKS           (BIT(CAP_SYS_PTRACE) | BIT(CAP_CHECKPOINT_RESTORE))
#define DRIVER          (BIT(CAP_SYS_ADMIN) | BIT(CAP_MKNOD) | BIT(CAP_SYS_CHROOT))

static struct config config_of(enum config_gpus gpus)
{
	return (struct config){
		.data = "/d",
		.run = "/r",
		.kubelet = "/k",
		.cdi = "/c",
		.dev = "/dev",
		.kernel_log = "",
		.metrics_listen = "",
		.gpus = gpus,
		.confine = true,
	};
}

static bool has(const struct confine_plan *plan, bool allowed, const char *name)
{
	size_t count = allowed ? plan->allowed.count : plan->refused.count;
	const char **names = allowed ? plan->allowed.items : plan->refused.items;

	for (size_t i = 0; i < count; i++)
		if (str_equal(names[i], name))
			return true;
	return false;
}

/* What would take over a machine is refused, whoever asks.  proves: HOSTED-40 */
static void test_never(void **state UNUSED)
{
	static const char *const calls[] = {
		"mount",           "umount2",      "pivot_root",   "move_mount",
		"open_tree",       "fsopen",       "fsmount",      "mount_setattr",
		"kexec_load",      "init_module",  "finit_module", "delete_module",
		"kexec_file_load", "bpf",          "reboot",       "setns",
		"unshare",         "keyctl",       "add_key",      "request_key",
		"perf_event_open", "swapon",       "swapoff",      "open_by_handle_at",
		"userfaultfd",     "settimeofday", "sethostname",  "io_uring_setup",
		"pidfd_getfd",     "acct",         "quotactl",     "process_vm_writev",
	};

	for (int mode = 0; mode < 16; mode++) {
		struct config config = config_of(mode & 1 ? CONFIG_GPUS_SIM : CONFIG_GPUS_AUTO);
		const struct confine_view view = {
			.verb = mode & 2 ? CONFINE_JOIN : CONFINE_NODE,
			.config = &config,
			.alone = mode & 4,
			.sanitized = mode & 8,
			.last_capability = 40,
		};
		struct confine_plan plan = {0};

		confine_decide(&view, &plan);
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
			assert_true(has(&plan, false, calls[i]));
			assert_false(has(&plan, true, calls[i]));
		}
		/* a call has one answer */
		for (size_t i = 0; i < plan.allowed.count; i++)
			assert_false(has(&plan, false, plan.allowed.items[i]));
		/* without these nothing runs, and a leaked key can't be read */
		assert_true(has(&plan, true, "openat"));
		assert_true(has(&plan, true, "futex"));
		assert_int_equal(has(&plan, true, "ptrace"), view.sanitized);
		assert_int_equal(has(&plan, false, "ptrace"), !view.sanitized);
		for (int32_t i = 0; i < 64; i++)
			if (plan.capabilities & BIT(i))
				assert_string_not_equal(confine_capability_name(i), "");
		confine_plan_deinit(&plan);
	}
}

/* Each power for what needs it.  proves: HOSTED-40 */
static void test_modes(void **state UNUSED)
{
	static const struct {
		enum confine_verb verb;
		enum config_gpus gpus;
		bool alone;
		int32_t last;
		const char *log, *listen;
		uint64_t capabilities;
		bool starts, compares, chroots, files;
	} rows[] = {
		/* a hosted pod: alone in its PID namespace, with a real driver */
		{CONFINE_NODE, CONFIG_GPUS_AUTO, true, 40, "/dev/kmsg", "",
		 FILES | DRIVER | BIT(CAP_SYSLOG), true, false, true, true},
		{CONFINE_NODE, CONFIG_GPUS_NVIDIA_SMI, true, 40, "", "", FILES | DRIVER, true,
		 false, true, true},
		/* on a machine, or with the host's PID namespace: looks at what pods have open */
		{CONFINE_NODE, CONFIG_GPUS_NVML, false, 40, "/dev/kmsg", "",
		 FILES | DRIVER | LOOKS | BIT(CAP_SYSLOG), true, true, true, false},
		{CONFINE_NODE, CONFIG_GPUS_SIM, false, 40, "", "10.0.0.1:80",
		 FILES | LOOKS | BIT(CAP_NET_BIND_SERVICE), true, true, false, false},
		/* a kernel that shows mapped files to sys_admin only */
		{CONFINE_NODE, CONFIG_GPUS_SIM, false, 37, "", "",
		 FILES | BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_ADMIN), true, true, false, false},
		{CONFINE_NODE, CONFIG_GPUS_SIM, true, 40, "", "", FILES, true, false, false, true},
		/* join starts nothing, and neither asks a driver nor looks at processes */
		{CONFINE_JOIN, CONFIG_GPUS_AUTO, true, 40, "/dev/kmsg", "10.0.0.1:80", FILES, false,
		 false, false, true},
		{CONFINE_JOIN, CONFIG_GPUS_AUTO, false, 40, "", "", FILES, false, false, false,
		 false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct config config = config_of(rows[i].gpus);
		const struct confine_view view = {
			.verb = rows[i].verb,
			.config = &config,
			.alone = rows[i].alone,
			.last_capability = rows[i].last,
		};
		struct confine_plan plan = {0};

		config.kernel_log = rows[i].log;
		config.metrics_listen = rows[i].listen;
		confine_decide(&view, &plan);
		assert_int_equal(plan.capabilities, rows[i].capabilities);
		assert_int_equal(has(&plan, true, "execve"), rows[i].starts);
		assert_int_equal(has(&plan, true, "kcmp"), rows[i].compares);
		assert_int_equal(has(&plan, true, "chroot"), rows[i].chroots);
		assert_int_equal(has(&plan, true, "mknodat"), rows[i].chroots);
		assert_int_equal(!plan.no_files, rows[i].files);
		assert_int_equal(plan.folders[0] != NULL, rows[i].files);
		confine_plan_deinit(&plan);
	}
}

static void test_folders(void **state UNUSED)
{
	static const char *const node[] = {"/d", "/r", "/k", "/c", "/dev", "/tmp"};
	struct config config = config_of(CONFIG_GPUS_AUTO);
	struct confine_view view = {.config = &config, .alone = true, .last_capability = 40};
	struct confine_plan plan = {0};

	confine_decide(&view, &plan);
	for (size_t i = 0; i < ARRAY_SIZE(node); i++)
		assert_string_equal(plan.folders[i], node[i]);
	assert_null(plan.folders[ARRAY_SIZE(node)]);
	confine_plan_deinit(&plan);
	plan = (struct confine_plan){0};
	view.verb = CONFINE_JOIN;
	confine_decide(&view, &plan);
	assert_string_equal(plan.folders[0], "/d"); /* the identity, and nothing else */
	assert_null(plan.folders[1]);
	confine_plan_deinit(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
