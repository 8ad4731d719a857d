#include "sys/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
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

/* --- in the child: only what is safe after fork in a program with threads --- */

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

static void child_redirect(int output)
{
	int input = open("/dev/null", O_RDONLY);

	if (input < 0 || dup2(input, 0) < 0)
		child_fail();
	if (output >= 0 && (dup2(output, 1) < 0 || dup2(output, 2) < 0))
		child_fail();
	/* Ours close on exec by themselves; this is for libraries'. Kernels before 5.9 lack it. */
	if (close_range(PROC_REPORT_FD + 1, ~0u, 0) < 0 && errno != ENOSYS)
		child_fail();
}

static NORETURN void child_run(const struct proc_options *options, int output, int report,
			       pid_t parent)
{
	if (output == PROC_REPORT_FD)
		output = dup(output);
	if (report != PROC_REPORT_FD && dup3(report, PROC_REPORT_FD, O_CLOEXEC) < 0)
		_exit(127);
	child_reset_signals();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		child_fail();
	if (getppid() != parent) /* it died before the line above */
		_exit(127);
	child_redirect(output);
	if (options->working_folder && chdir(options->working_folder) < 0)
		child_fail();
	execve(options->file, options->argv, options->env ? options->env : environ);
	child_fail();
}

/* --- in the parent --- */

static void on_ended(void *arg, int events UNUSED)
{
	struct proc *proc = arg;
	int status;

	if (waitpid(proc->pid, &status, WNOHANG) != proc->pid)
		return;
	proc->on_exit(proc->arg, status);
	loop_poll_destroy(proc->poll);
	close(proc->pidfd);
	free(proc);
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

/* The child's pid, or -1 with error set. */
static pid_t fork_child(const struct proc_options *options, int output, struct error *error)
{
	int report[2];
	pid_t parent = getpid(), pid;
	bool ok;

	if (pipe2(report, O_CLOEXEC) < 0) {
		error_os(error, "start '%s'", options->file);
		return -1;
	}
	pid = fork();
	if (pid == 0)
		child_run(options, output, report[1], parent);
	close(report[1]);
	ok = pid < 0 ? error_os(error, "start '%s'", options->file)
		     : started(report[0], options->file, error);
	close(report[0]);
	if (!ok && pid > 0)
		waitpid(pid, NULL, 0);
	return ok ? pid : -1;
}

bool proc_start(struct loop *loop, const struct proc_options *options, proc_exit_fn *on_exit,
		void *arg, struct proc **ret_proc, struct error *error)
{
	struct proc *proc;
	int output = -1, pidfd;
	pid_t pid;

	assert(options->file[0] == '/');
	if (options->output_path) {
		output =
			open(options->output_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		if (output < 0)
			return error_os(error, "open '%s'", options->output_path);
	}
	pid = fork_child(options, output, error);
	if (output >= 0)
		close(output);
	if (pid < 0)
		return false;
	pidfd = pidfd_open(pid, 0);
	if (pidfd < 0) {
		error_os(error, "watch process %d of '%s'", (int)pid, options->file);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return false;
	}
	proc = mem_alloc(sizeof *proc);
	*proc = (struct proc){.pid = pid, .pidfd = pidfd, .on_exit = on_exit, .arg = arg};
	fcntl(pidfd, F_SETFD, FD_CLOEXEC);
	proc->poll = loop_poll_create(loop, pidfd, LOOP_READABLE, on_ended, proc);
	*ret_proc = proc;
	return true;
}

pid_t proc_pid(const struct proc *proc)
{
	return proc->pid;
}

void proc_signal(struct proc *proc, int signal)
{
	/* The child is not waited for yet, so the pid is still its own. */
	kill(proc->pid, signal);
}
