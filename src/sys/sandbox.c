#include "sys/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- core dumps --- */

/* A limit of 0 keeps them from files, but not from the program that kernel.core_pattern may name; 1 does both. */
bool sandbox_dumps(struct error *error)
{
	const struct rlimit one = {1, 1}, none = {0, 0};

	/* Whoever is at 0 for good can't go to 1. */
	return setrlimit(RLIMIT_CORE, &one) == 0 ||
	       (errno == EPERM && setrlimit(RLIMIT_CORE, &none) == 0) ||
	       error_os(error, "give up core dumps");
}

/* --- privileges and capabilities --- */

bool sandbox_privileges(struct error *error)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ||
	       error_os(error, "give up new privileges");
}

int32_t sandbox_last_capability(void)
{
	int32_t last = -1;

	while (last < 63 && prctl(PR_CAPBSET_READ, last + 1, 0, 0, 0) >= 0)
		last++;
	return last;
}

struct capabilities {
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static bool capabilities_of(struct capabilities *capabilities, int call)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(call, &header, capabilities->data) == 0;
}

/* What a program started later could get back as root. */
static bool drop_bounds(uint64_t keep, struct error *error)
{
	int32_t last = sandbox_last_capability();

	for (int32_t i = 0; i <= last; i++)
		if (!(keep >> i & 1) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1 &&
		    prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
			return error_os(error, "drop capability %d for programs to come", (int)i);
	return true;
}

bool sandbox_capabilities(uint64_t keep, uint64_t *ret_kept, struct error *error)
{
	struct capabilities own, left = {0};
	uint64_t kept;

	if (!capabilities_of(&own, SYS_capget))
		return error_os(error, "read the capabilities");
	/* Without this one the bounds stay, and who has none gets none by starting a program. */
	if ((own.data[0].effective & CAP_TO_MASK(CAP_SETPCAP)) && !drop_bounds(keep, error))
		return false;
	kept = keep & (own.data[0].permitted | (uint64_t)own.data[1].permitted << 32);
	for (size_t i = 0; i < ARRAY_SIZE(left.data); i++)
		left.data[i].permitted = left.data[i].effective = (uint32_t)(kept >> (32 * i));
	/* A service manager that dropped them before may forbid the call. */
	if (memcmp(&own, &left, sizeof own) != 0 && !capabilities_of(&left, SYS_capset))
		return error_os(error, "drop capabilities");
	*ret_kept = kept;
	return true;
}

/* --- files --- */

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#define PATH_SIZE 4096

bool sandbox_is_first(void)
{
	return getpid() == 1;
}

/* What changes files, as far as this version of the interface knows it. */
static uint64_t writes_of(long version)
{
	uint64_t writes = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
			  LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
			  LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
			  LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
			  LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

	if (version >= 2)
		writes |= LANDLOCK_ACCESS_FS_REFER;
	if (version >= 3)
		writes |= LANDLOCK_ACCESS_FS_TRUNCATE;
	return writes;
}

/* The folder itself, or the nearest above it that is there; -1: that would be the root. */
static int open_nearest(const char *folder)
{
	char path[PATH_SIZE];
	char *end;
	int fd;

	if (!str_copy(path, sizeof path, folder))
		return -1;
	while ((fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
		end = strrchr(path, '/');
		if (!end || end == path)
			return -1;
		*end = '\0';
	}
	return fd;
}

static bool allow_folder(int rules, const char *folder, uint64_t writes, struct error *error)
{
	int fd = open_nearest(folder);
	struct landlock_path_beneath_attr below = {.allowed_access = writes, .parent_fd = fd};
	bool ok;

	if (fd < 0)
		return true; /* not there, so nothing of ours is in it */
	ok = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0) == 0 ||
	     error_os(error, "allow writing below '%s'", folder);
	close(fd);
	return ok;
}

bool sandbox_files(const char *const *folders, struct error *error)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset_attr what = {.handled_access_fs = writes_of(version)};
	bool ok = true;
	int rules;

	if (version < 1)
		return error_set(error, ERROR_UNAVAILABLE, "this kernel has no landlock");
	rules = (int)syscall(SYS_landlock_create_ruleset, &what, sizeof what, 0);
	if (rules < 0)
		return error_os(error, "make rules for files");
	for (; ok && *folders; folders++)
		ok = allow_folder(rules, *folders, what.handled_access_fs, error);
	if (ok && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		ok = error_os(error, "confine files");
	close(rules);
	return ok;
}

/* --- system calls --- */

static bool fail(int status, const char *what, struct error *error)
{
	errno = -status;
	return error_os(error, "filter system calls: %s", what);
}

/* With its condition, if it has one. */
static bool add(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned int count,
		const struct scmp_arg_cmp *condition, struct error *error)
{
	int number = seccomp_syscall_resolve_name(name);
	int status;

	if (number == __NR_SCMP_ERROR)
		return true; /* of another kernel, or machine */
	status = seccomp_rule_add_array(filter, action, number, count, condition);
	return status == 0 || fail(status, name, error);
}

/* A process or thread of its own, in the namespaces that it is in. */
static bool add_clone(scmp_filter_ctx filter, struct error *error)
{
	static const uint64_t NEW[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
				       CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};
	struct scmp_arg_cmp condition = {0, SCMP_CMP_MASKED_EQ, 0, 0};

	for (size_t i = 0; i < ARRAY_SIZE(NEW); i++) {
		struct scmp_arg_cmp one = {0, SCMP_CMP_MASKED_EQ, NEW[i], NEW[i]};

		if (!add(filter, SCMP_ACT_ERRNO(EPERM), "clone", 1, &one, error))
			return false;
		condition.datum_a |= NEW[i];
	}
	return add(filter, SCMP_ACT_ALLOW, "clone", 1, &condition, error);
}

static bool add_socket(scmp_filter_ctx filter, struct error *error)
{
	for (uint64_t family = 0; family < AF_MAX; family++) {
		bool good = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
			    family == AF_NETLINK;
		struct scmp_arg_cmp one = {0, SCMP_CMP_EQ, family, 0};

		if (!add(filter, good ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket", 1,
			 &one, error))
			return false;
	}
	return true;
}

static bool add_allowed(scmp_filter_ctx filter, const char *name, struct error *error)
{
	if (str_equal(name, "clone"))
		return add_clone(filter, error);
	if (str_equal(name, "socket"))
		return add_socket(filter, error);
	return add(filter, SCMP_ACT_ALLOW, name, 0, NULL, error);
}

static bool load(scmp_filter_ctx filter, struct error *error)
{
	int status;

	/* A call of another machine's kind, such as a 32-bit one, whose names these aren't. */
	status = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
	if (status == 0) /* that is sandbox_privileges()'s */
		status = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	if (status != 0)
		return fail(status, "its attributes", error);
	status = seccomp_load(filter);
	return status == 0 || fail(status, "load it", error);
}

bool sandbox_calls(const char *const *allowed, size_t allowed_count, const char *const *refused,
		   size_t refused_count, struct error *error)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	bool ok = true;

	if (!filter)
		return error_set(error, ERROR_UNAVAILABLE,
				 "filter system calls: not on this machine");
	for (size_t i = 0; ok && i < allowed_count; i++)
		ok = add_allowed(filter, allowed[i], error);
	for (size_t i = 0; ok && i < refused_count; i++)
		ok = add(filter, SCMP_ACT_ERRNO(EPERM), refused[i], 0, NULL, error);
	ok = ok && load(filter, error);
	seccomp_release(filter);
	return ok;
}
