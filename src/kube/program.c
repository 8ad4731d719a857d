#include "kube/program.h"

#include "sys/durable.h"
#include "sys/proc.h"

#include <sys/wait.h>

extern char **environ;

struct program {
	const struct kube_access *access;
	struct proc *proc;     /* NULL: it has ended */
	struct net_conn *conn; /* NULL: it has said all */
	struct loop_timer *timer;
	struct buf said;
	int status;
	bool too_long;
	program_fn *fn;
	void *arg;
};

/* --- starting it --- */

/* Where the command is. The first of PATH's folders that has it. */
static bool find_command(const char *command, struct buf *out, struct error *error)
{
	const char *path = getenv("PATH");

	if (strchr(command, '/')) {
		buf_add_text(out, command);
		return true;
	}
	for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path;) {
		size_t length = strcspn(path, ":");

		buf_clear(out);
		buf_add(out, path, length);
		buf_printf(out, "/%s", command);
		if (path[0] == '/' && durable_stamp(buf_text(out)).exists)
			return true;
		path += length + (path[length] == ':');
	}
	return error_set(error, ERROR_INVALID_CONFIG,
			 "the credential program '%s' is nowhere in PATH", command);
}

struct words VEC_BODY(char *);

static bool same_name(const char *a, const char *b)
{
	size_t length = strcspn(a, "=");

	return strncmp(a, b, length + 1) == 0;
}

/* Adds "NAME=value", in place of one of that name. */
static void set_variable(struct words *env, char *word)
{
	vec_each (env, char **known)
		if (same_name(*known, word)) {
			*known = word;
			return;
		}
	*vec_push(env) = word;
}

static bool start(struct loop *loop, struct program *program, const char *info,
		  proc_exit_fn *on_exit, struct error *error)
{
	const struct kube_exec *exec = program->access->exec;
	CLEANUP(buf) struct buf file = {0}, told = {0};
	struct words argv = {0}, env = {0};
	bool ok;

	if (!find_command(exec->command, &file, error))
		return false;
	buf_printf(&told, "KUBERNETES_EXEC_INFO=%s", info);
	*vec_push(&argv) = exec->command;
	vec_each (&exec->args, char **word)
		*vec_push(&argv) = *word;
	*vec_push(&argv) = NULL;
	for (char **word = environ; *word; word++)
		*vec_push(&env) = *word;
	vec_each (&exec->env, char **word)
		set_variable(&env, *word);
	set_variable(&env, (char *)told.data);
	*vec_push(&env) = NULL;
	ok = proc_start(loop,
			&(struct proc_options){.file = buf_text(&file),
					       .argv = argv.items,
					       .env = env.items,
					       .ret_stdout = &program->conn},
			on_exit, program, &program->proc, error);
	vec_deinit(&argv);
	vec_deinit(&env);
	buf_wipe(&told);
	return ok || error_wrap(error, "the kubeconfig's credential program");
}

/* --- its end --- */

void program_destroy(struct program *program)
{
	if (!program)
		return;
	proc_drop(program->proc);
	if (program->conn)
		net_close(program->conn);
	loop_timer_destroy(program->timer);
	buf_wipe(&program->said);
	buf_deinit(&program->said);
	free(program);
}

static bool judge(const struct program *program, struct kube_exec_answer *answer,
		  struct error *error)
{
	const struct kube_exec *exec = program->access->exec;

	if (program->too_long)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "'%s' answers more than %zu bytes", exec->command,
				 KUBE_EXEC_MAX_ANSWER);
	if (program->proc || program->conn)
		return error_set(error, ERROR_UNAVAILABLE, "'%s' took longer than %d s",
				 exec->command, PROGRAM_TIME_MS / 1000);
	if (!WIFEXITED(program->status) || WEXITSTATUS(program->status) != 0)
		return error_set(error, ERROR_UNAVAILABLE, "'%s' ended with %s %d", exec->command,
				 WIFEXITED(program->status) ? "exit status" : "signal",
				 WIFEXITED(program->status) ? WEXITSTATUS(program->status)
							    : WTERMSIG(program->status));
	return kube_exec_read(exec, program->said.data, program->said.length, answer, error);
}

static void finish(struct program *program)
{
	CLEANUP(kube_exec_answer) struct kube_exec_answer answer = {0};
	program_fn *fn = program->fn;
	void *arg = program->arg;
	struct error error = {0};
	bool ok = judge(program, &answer, &error);

	if (!ok)
		error_hint(&error, "%s",
			   program->access->exec->install_hint
				   ? program->access->exec->install_hint
				   : "Run it by hand, as the kubeconfig says, to see why.");
	program_destroy(program);
	fn(arg, ok ? &answer : NULL, ok ? NULL : &error);
}

static void on_exit_of(void *arg, int status)
{
	struct program *program = arg;

	program->proc = NULL;
	program->status = status;
	if (!program->conn)
		finish(program);
}

static void on_data(void *arg, const uint8_t *data, size_t length)
{
	struct program *program = arg;

	if (program->said.length + length > KUBE_EXEC_MAX_ANSWER) {
		program->too_long = true;
		finish(program);
		return;
	}
	buf_add(&program->said, data, length);
}

static void on_close(void *arg, const struct error *error UNUSED)
{
	struct program *program = arg;

	program->conn = NULL;
	if (!program->proc)
		finish(program);
}

static void on_time(void *arg)
{
	finish(arg);
}

bool program_start(struct loop *loop, const struct kube_access *access, const char *ca_pem,
		   program_fn *fn, void *arg, struct program **ret_program, struct error *error)
{
	static const struct net_handlers HANDLERS = {.on_data = on_data, .on_close = on_close};
	struct program *program = mem_alloc(sizeof *program);
	CLEANUP(buf) struct buf info = {0};

	*program = (struct program){.access = access, .fn = fn, .arg = arg};
	kube_exec_info(access, ca_pem, &info);
	if (!start(loop, program, buf_text(&info), on_exit_of, error)) {
		free(program);
		return false;
	}
	program->timer = loop_timer_create(loop, on_time, program);
	loop_timer_start(program->timer, PROGRAM_TIME_MS);
	net_start(program->conn, &HANDLERS, program);
	*ret_program = program;
	return true;
}
