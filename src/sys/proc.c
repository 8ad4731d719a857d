#include "sys/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define PROC_REPORT_FD 3 /* the child's end of the pipe that tells why it could not start */

struct proc {
	pid_t pid;
	int pidfd;
	struct loop_poll *poll;
	proc_exit_fn *on_exit;
	void *arg;
};

/* --- in the child: only what is safe in a program with threads, and writes none of its memory --- */

static NORETURN void child_fail(void)
{
	int os = errno;

	/* Nobody to tell when this fails: the parent sees a child that exited with 127. */
	(void)!write(PROC_REPORT_FD, &os, sizeof os);
	_exit(127);
}

static void child_reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The child's ends of stdin, stdout and stderr; -1 for those that it isn't given. */
struct child_fds {
	int at[3];
};

static void child_redirect(struct child_fds fds)
{
	if (fds.at[0] < 0)
		fds.at[0] = open("/dev/null", O_RDONLY);
	if (fds.at[0] < 0)
		child_fail();
	for (int i = 0; i < 3; i++)
		if (fds.at[i] >= 0 && dup2(fds.at[i], i) < 0)
			child_fail();
	/* Ours close on exec by themselves; this is for libraries'. Kernels before 5.9 lack it. */
	if (close_range(PROC_REPORT_FD + 1, ~0u, 0) < 0 && errno != ENOSYS)
		child_fail();
}

/* In a frame of its own: the parent's is still in use. */
static NORETURN __attribute__((noinline)) void
child_run(const struct proc_options *options, struct child_fds fds, int report, pid_t parent)
{
	for (int i = 0; i < 3; i++)
		if (fds.at[i] >= 0 && fds.at[i] <= PROC_REPORT_FD)
			if ((fds.at[i] = fcntl(fds.at[i], F_DUPFD, PROC_REPORT_FD + 1)) < 0)
				_exit(127);
	if (report != PROC_REPORT_FD && dup3(report, PROC_REPORT_FD, O_CLOEXEC) < 0)
		_exit(127);
	child_reset_signals();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		child_fail();
	if (getppid() != parent) /* it died before the line above */
		_exit(127);
	if (setpgid(0, 0) < 0)
		child_fail();
	child_redirect(fds);
	if (options->root && (chroot(options->root) < 0 || chdir("/") < 0))
		child_fail();
	if (options->working_folder && chdir(options->working_folder) < 0)
		child_fail();
	execve(options->file, options->argv, options->env ? options->env : environ);
	child_fail();
}

/* --- in the parent --- */

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void free_proc(struct proc *proc)
{
	loop_poll_destroy(proc->poll);
	close(proc->pidfd);
	free(proc);
}

static void on_ended(void *arg, int events UNUSED)
{
	struct proc *proc = arg;
	int status;

	if (waitpid(proc->pid, &status, WNOHANG) != proc->pid)
		return;
	proc->on_exit(proc->arg, status);
	free_proc(proc);
}

/* The pipe closes when exec succeeds and carries an errno when anything before it failed. */
static bool started(int report, const char *file, struct error *error)
{
	int os;
	ssize_t length;

	do
		length = read(report, &os, sizeof os);
	while (length < 0 && errno == EINTR);
	if (length == 0)
		return true;
	errno = length == sizeof os ? os : EIO;
	return error_os(error, "start '%s'", file);
}

/*
 * The child's pid, or -1 with error set. A plain fork copies the page tables, which takes milliseconds
 * that the loop doesn't have; here the child borrows our memory until exec, and we stand still
 * meanwhile. Signals wait: a handler of ours that runs in it would be believed by us.
 */
static pid_t fork_child(const struct proc_options *options, struct child_fds fds,
			struct error *error)
{
	int report[2];
	pid_t parent = getpid(), pid;
	sigset_t all, before;
	bool ok;

	if (pipe2(report, O_CLOEXEC) < 0) {
		error_os(error, "start '%s'", options->file);
		return -1;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = vfork();
	if (pid == 0)
		child_run(options, fds, report[1], parent);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(report[1]);
	ok = pid < 0 ? error_os(error, "start '%s'", options->file)
		     : started(report[0], options->file, error);
	close(report[0]);
	if (!ok && pid > 0)
		waitpid(pid, NULL, 0);
	return ok ? pid : -1;
}

/* All or none of what the options ask for; `sockets` are the parent's ends, -1 where there is none. */
static bool open_fds(const struct proc_options *options, struct child_fds *ret_fds, int sockets[3],
		     struct error *error)
{
	struct net_conn **const wanted[] = {options->ret_stdin, options->ret_stdout,
					    options->ret_stderr};
	struct child_fds fds = {{-1, -1, -1}};
	bool ok = true;

	for (int i = 0; i < 3; i++) {
		int pair[2] = {-1, -1};

		if (wanted[i] && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			ok = error_os(error, "start '%s'", options->file);
		fds.at[i] = pair[1];
		sockets[i] = pair[0];
	}
	if (ok && options->output_path) {
		fds.at[1] =
			open(options->output_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		fds.at[2] = fds.at[1] < 0 ? -1 : fcntl(fds.at[1], F_DUPFD_CLOEXEC, 0);
		if (fds.at[2] < 0)
			ok = error_os(error, "open '%s'", options->output_path);
	}
	if (!ok) {
		close_all(fds.at, 3);
		close_all(sockets, 3);
		return false;
	}
	*ret_fds = fds;
	return true;
}

/* Started and watched, else it was ended. */
static bool start_watched(const struct proc_options *options, struct child_fds fds, pid_t *ret_pid,
			  int *ret_pidfd, struct error *error)
{
	pid_t pid = fork_child(options, fds, error);
	int pidfd;

	if (pid < 0)
		return false;
	pidfd = pidfd_open(pid, 0);
	if (pidfd < 0) {
		error_os(error, "watch process %d of '%s'", (int)pid, options->file);
		kill(-pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return false;
	}
	fcntl(pidfd, F_SETFD, FD_CLOEXEC);
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	return true;
}

bool proc_start(struct loop *loop, const struct proc_options *options, proc_exit_fn *on_exit,
		void *arg, struct proc **ret_proc, struct error *error)
{
	struct net_conn **const wanted[] = {options->ret_stdin, options->ret_stdout,
					    options->ret_stderr};
	struct child_fds fds;
	struct proc *proc;
	int sockets[3], pidfd;
	pid_t pid;
	bool ok;

	assert(options->file[0] == '/');
	assert(!options->output_path || (!options->ret_stdout && !options->ret_stderr));
	if (!open_fds(options, &fds, sockets, error))
		return false;
	signal(SIGCHLD, SIG_DFL); /* who started us may have ignored it: then no end is told */
	ok = start_watched(options, fds, &pid, &pidfd, error);
	close_all(fds.at, 3);
	if (!ok) {
		close_all(sockets, 3);
		return false;
	}
	proc = mem_alloc(sizeof *proc);
	*proc = (struct proc){.pid = pid, .pidfd = pidfd, .on_exit = on_exit, .arg = arg};
	proc->poll = loop_poll_create(loop, pidfd, LOOP_READABLE, on_ended, proc);
	for (int i = 0; i < 3; i++)
		if (wanted[i])
			*wanted[i] = net_take_unix(loop, sockets[i]);
	*ret_proc = proc;
	return true;
}

pid_t proc_pid(const struct proc *proc)
{
	return proc->pid;
}

void proc_signal(struct proc *proc, int signal)
{
	/* The child is not waited for yet, so the pid is still its own, and its group's. */
	kill(-proc->pid, signal);
}

void proc_drop(struct proc *proc)
{
	struct pollfd ended;

	if (!proc)
		return;
	ended = (struct pollfd){.fd = proc->pidfd, .events = POLLIN};
	kill(-proc->pid, SIGKILL);
	poll(&ended, 1, PROC_DROP_MS);
	waitpid(proc->pid, NULL, WNOHANG);
	free_proc(proc);
}
