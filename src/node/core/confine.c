#include "node/core/confine.h"

#include <linux/capability.h>

/* What programs use: files, memory, threads, time, signals, sockets, processes of their own. */
static const char *const ALWAYS[] = {
	"_llseek",
	"accept",
	"accept4",
	"access",
	"alarm",
	"arch_prctl",
	"bind",
	"brk",
	"cacheflush",
	"capget",
	"capset",
	"chdir",
	"chmod",
	"chown",
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"clone",
	"close",
	"close_range",
	"connect",
	"copy_file_range",
	"creat",
	"dup",
	"dup2",
	"dup3",
	"epoll_create",
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_wait",
	"eventfd",
	"eventfd2",
	"exit",
	"exit_group",
	"faccessat",
	"faccessat2",
	"fadvise64",
	"fallocate",
	"fchdir",
	"fchmod",
	"fchmodat",
	"fchmodat2",
	"fchown",
	"fchownat",
	"fcntl",
	"fdatasync",
	"fgetxattr",
	"flistxattr",
	"flock",
	"fork",
	"fremovexattr",
	"fsetxattr",
	"fstat",
	"fstatfs",
	"fsync",
	"ftruncate",
	"futex",
	"futex_requeue",
	"futex_wait",
	"futex_waitv",
	"futex_wake",
	"futimesat",
	"get_mempolicy",
	"get_robust_list",
	"getcpu",
	"getcwd",
	"getdents",
	"getdents64",
	"getegid",
	"geteuid",
	"getgid",
	"getgroups",
	"getitimer",
	"getpeername",
	"getpgid",
	"getpgrp",
	"getpid",
	"getppid",
	"getpriority",
	"getrandom",
	"getresgid",
	"getresuid",
	"getrlimit",
	"getrusage",
	"getsid",
	"getsockname",
	"getsockopt",
	"gettid",
	"gettimeofday",
	"getuid",
	"getxattr",
	"inotify_add_watch",
	"inotify_init",
	"inotify_init1",
	"inotify_rm_watch",
	"ioctl",
	"kill",
	"landlock_add_rule",
	"landlock_create_ruleset",
	"landlock_restrict_self",
	"lchown",
	"lgetxattr",
	"link",
	"linkat",
	"listen",
	"listxattr",
	"llistxattr",
	"lremovexattr",
	"lseek",
	"lsetxattr",
	"lstat",
	"madvise",
	"membarrier",
	"memfd_create",
	"mincore",
	"mkdir",
	"mkdirat",
	"mlock",
	"mlock2",
	"mlockall",
	"mmap",
	"mprotect",
	"mremap",
	"msync",
	"munlock",
	"munlockall",
	"munmap",
	"name_to_handle_at",
	"nanosleep",
	"newfstatat",
	"open",
	"openat",
	"openat2",
	"pause",
	"pidfd_open",
	"pidfd_send_signal",
	"pipe",
	"pipe2",
	"poll",
	"ppoll",
	"prctl",
	"pread64",
	"preadv",
	"preadv2",
	"prlimit64",
	"process_mrelease",
	"pselect6",
	"pwrite64",
	"pwritev",
	"pwritev2",
	"read",
	"readahead",
	"readlink",
	"readlinkat",
	"readv",
	"recvfrom",
	"recvmmsg",
	"recvmsg",
	"removexattr",
	"rename",
	"renameat",
	"renameat2",
	"restart_syscall",
	"riscv_flush_icache",
	"rmdir",
	"rseq",
	"rt_sigaction",
	"rt_sigpending",
	"rt_sigprocmask",
	"rt_sigqueueinfo",
	"rt_sigreturn",
	"rt_sigsuspend",
	"rt_sigtimedwait",
	"rt_tgsigqueueinfo",
	"sched_get_priority_max",
	"sched_get_priority_min",
	"sched_getaffinity",
	"sched_getattr",
	"sched_getparam",
	"sched_getscheduler",
	"sched_rr_get_interval",
	"sched_setaffinity",
	"sched_setattr",
	"sched_setparam",
	"sched_setscheduler",
	"sched_yield",
	"seccomp",
	"select",
	"semctl",
	"semget",
	"semop",
	"semtimedop",
	"sendfile",
	"sendmmsg",
	"sendmsg",
	"sendto",
	"set_robust_list",
	"set_tid_address",
	"setfsgid",
	"setfsuid",
	"setgid",
	"setgroups",
	"setitimer",
	"setpgid",
	"setpriority",
	"setregid",
	"setresgid",
	"setresuid",
	"setreuid",
	"setrlimit",
	"setsid",
	"setsockopt",
	"setuid",
	"setxattr",
	"shmat",
	"shmctl",
	"shmdt",
	"shmget",
	"shutdown",
	"sigaltstack",
	"signalfd",
	"signalfd4",
	"socket",
	"socketpair",
	"splice",
	"stat",
	"statfs",
	"statx",
	"symlink",
	"symlinkat",
	"sync",
	"sync_file_range",
	"syncfs",
	"sysinfo",
	"tee",
	"tgkill",
	"time",
	"timer_create",
	"timer_delete",
	"timer_getoverrun",
	"timer_gettime",
	"timer_settime",
	"timerfd_create",
	"timerfd_gettime",
	"timerfd_settime",
	"times",
	"tkill",
	"truncate",
	"umask",
	"uname",
	"unlink",
	"unlinkat",
	"utime",
	"utimensat",
	"utimes",
	"vfork",
	"vmsplice",
	"wait4",
	"waitid",
	"waitpid",
	"write",
	"writev",
};

/* To start programs. bcd join starts none. */
static const char *const PROGRAMS[] = {"execve", "execveat"};

/* Has a thread of another process descriptors of its own? (sys/processes.c) */
static const char *const LOOKS[] = {"kcmp"};

/* nvidia-smi in a driver container's root, and nodes that the driver's own helper makes. */
static const char *const DRIVER[] = {"chroot", "mknod", "mknodat"};

/* Its search for leaks stops all threads and reads their registers. */
static const char *const SANITIZER[] = {"personality", "process_vm_readv", "ptrace"};

/* Would take over the machine or another process, or get around the rest. */
static const char *const NEVER[] = {
	"acct",
	"add_key",
	"adjtimex",
	"bpf",
	"clock_adjtime",
	"clock_settime",
	"create_module",
	"delete_module",
	"fanotify_init",
	"fanotify_mark",
	"finit_module",
	"fsconfig",
	"fsmount",
	"fsopen",
	"fspick",
	"init_module",
	"io_uring_enter",
	"io_uring_register",
	"io_uring_setup",
	"ioperm",
	"iopl",
	"kexec_file_load",
	"kexec_load",
	"keyctl",
	"lookup_dcookie",
	"migrate_pages",
	"modify_ldt",
	"mount",
	"mount_setattr",
	"move_mount",
	"move_pages",
	"nfsservctl",
	"open_by_handle_at",
	"open_tree",
	"perf_event_open",
	"pidfd_getfd",
	"pivot_root",
	"process_madvise",
	"process_vm_writev",
	"quotactl",
	"quotactl_fd",
	"reboot",
	"request_key",
	"setdomainname",
	"sethostname",
	"setns",
	"settimeofday",
	"stime",
	"swapoff",
	"swapon",
	"sysfs",
	"syslog",
	"umount",
	"umount2",
	"unshare",
	"uselib",
	"userfaultfd",
	"ustat",
	"vhangup",
	"vm86",
	"vm86old",
};

static const struct {
	int32_t number;
	const char *name;
} CAPABILITIES[] = {
	{CAP_DAC_OVERRIDE, "dac_override"},
	{CAP_DAC_READ_SEARCH, "dac_read_search"},
	{CAP_NET_BIND_SERVICE, "net_bind_service"},
	{CAP_SYS_CHROOT, "sys_chroot"},
	{CAP_SYS_PTRACE, "sys_ptrace"},
	{CAP_SYS_ADMIN, "sys_admin"},
	{CAP_MKNOD, "mknod"},
	{CAP_SYSLOG, "syslog"},
	{CAP_CHECKPOINT_RESTORE, "checkpoint_restore"},
};

const char *confine_capability_name(int32_t capability)
{
	for (size_t i = 0; i < ARRAY_SIZE(CAPABILITIES); i++)
		if (CAPABILITIES[i].number == capability)
			return CAPABILITIES[i].name;
	return "";
}

void confine_plan_deinit(struct confine_plan *plan)
{
	vec_deinit(&plan->allowed);
	vec_deinit(&plan->refused);
}

static void keep(struct confine_plan *plan, int32_t capability)
{
	plan->capabilities |= UINT64_C(1) << capability;
}

/* Files of other users: the kubelet's, the runtime's. */
static void keep_for_files(struct confine_plan *plan)
{
	keep(plan, CAP_DAC_OVERRIDE);
	keep(plan, CAP_DAC_READ_SEARCH);
}

/* What other processes have open, and mapped: older kernels ask for more to show the latter. */
static void keep_for_looks(const struct confine_view *view, struct confine_plan *plan)
{
	keep(plan, CAP_SYS_PTRACE);
	keep(plan, view->last_capability < CAP_CHECKPOINT_RESTORE ? CAP_SYS_ADMIN
								  : CAP_CHECKPOINT_RESTORE);
}

/* NVIDIA's driver tells of MIG instances, and makes its nodes, for these. */
static void keep_for_driver(struct confine_plan *plan)
{
	keep(plan, CAP_SYS_ADMIN);
	keep(plan, CAP_MKNOD);
	keep(plan, CAP_SYS_CHROOT);
}

static void decide_capabilities(const struct confine_view *view, struct confine_plan *plan)
{
	const struct config *config = view->config;

	keep_for_files(plan);
	if (view->verb == CONFINE_JOIN)
		return;
	if (!view->alone)
		keep_for_looks(view, plan);
	if (config->gpus != CONFIG_GPUS_SIM)
		keep_for_driver(plan);
	if (*config->kernel_log)
		keep(plan, CAP_SYSLOG);
	if (*config->metrics_listen)
		keep(plan, CAP_NET_BIND_SERVICE);
}

#define SORT(plan, names, allowed) sort((plan), (names), ARRAY_SIZE(names), (allowed))
static void sort(struct confine_plan *plan, const char *const *names, size_t count, bool allowed)
{
	for (size_t i = 0; i < count; i++) {
		if (allowed)
			*vec_push(&plan->allowed) = names[i];
		else
			*vec_push(&plan->refused) = names[i];
	}
}

static void decide_calls(const struct confine_view *view, struct confine_plan *plan)
{
	const bool node = view->verb == CONFINE_NODE;

	SORT(plan, ALWAYS, true);
	SORT(plan, PROGRAMS, node);
	SORT(plan, LOOKS, node && !view->alone);
	SORT(plan, DRIVER, node && view->config->gpus != CONFIG_GPUS_SIM);
	SORT(plan, SANITIZER, view->sanitized);
	SORT(plan, NEVER, false);
}

static void decide_files(const struct confine_view *view, struct confine_plan *plan)
{
	const struct config *config = view->config;
	const char *const node[] = {config->data, config->run, config->kubelet,
				    config->cdi,  config->dev, "/tmp"};

	if (!view->alone) {
		plan->no_files = "bcd is to see what other processes have open";
		return;
	}
	plan->folders[0] = config->data;
	for (size_t i = 0; view->verb == CONFINE_NODE && i < ARRAY_SIZE(node); i++)
		plan->folders[i] = node[i];
}

void confine_decide(const struct confine_view *view, struct confine_plan *ret_plan)
{
	decide_capabilities(view, ret_plan);
	decide_calls(view, ret_plan);
	decide_files(view, ret_plan);
}
