#include "gpu/child.h"

#include "sys/net.h"
#include "sys/proc.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define OWN_PROGRAM "/proc/self/exe" /* in the new process, after fork: the same file as ours */

struct child {
	struct loop *loop;
	struct child_options options; /* texts are ours */
	struct child_handlers handlers;
	void *arg;

	struct proc *proc;     /* NULL: none, or it ended */
	struct net_conn *conn; /* NULL: closed by either side */
	struct buf in;
	int status;   /* of one that ended */
	bool asked;   /* the deadline runs */
	bool told;    /* on_failure() was called for this process */
	int64_t wait; /* before the next process */

	struct loop_timer *deadline;
	struct loop_timer *death; /* after the kill, or the end of one side */
	struct loop_timer *respawn;
};

static int64_t or_default(int64_t given, int64_t value)
{
	return given ? given : value;
}

static void tell(struct child *child, const struct error *error, bool stuck)
{
	child->told = true;
	child->handlers.on_failure(child->arg, error, stuck);
}

/* --- its end --- */

static void describe_end(int status, struct error *error)
{
	if (WIFSIGNALED(status))
		error_set(error, ERROR_UNAVAILABLE, "NVML's process was ended by signal %d (%s)",
			  WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		error_set(error, ERROR_UNAVAILABLE, "NVML's process ended with status %d",
			  WEXITSTATUS(status));
}

/* When nothing of it is left: tells why, unless that was told, and lets the next one follow. */
static void check_gone(struct child *child)
{
	struct error error;

	if (child->proc || child->conn)
		return;
	if (!child->told) {
		describe_end(child->status, &error);
		tell(child, &error, false);
	}
	loop_timer_stop(child->death);
	loop_timer_start(child->respawn, child->wait);
	child->wait *= 2;
	if (child->wait > child->options.respawn_max_ms)
		child->wait = child->options.respawn_max_ms;
}

static void close_talk(struct child *child)
{
	child->asked = false;
	loop_timer_stop(child->deadline);
	if (child->conn)
		net_close(child->conn);
	child->conn = NULL;
	buf_clear(&child->in);
}

static void kill_process(struct child *child)
{
	if (child->proc)
		proc_signal(child->proc, SIGKILL);
	loop_timer_start(child->death, child->options.death_ms);
}

/* It is of no use any more. */
static void end(struct child *child, const struct error *error)
{
	if (!child->told)
		tell(child, error, false);
	kill_process(child);
	close_talk(child);
	check_gone(child);
}

static void on_deadline(void *arg)
{
	struct child *child = arg;
	struct error error;

	error_set(&error, ERROR_UNAVAILABLE, "NVML did not answer within %lld ms",
		  (long long)child->options.deadline_ms);
	error_hint(&error, "The driver hangs: see the kernel's log.");
	end(child, &error);
}

/* The process outlived its kill, or something else holds its end of the socket. */
static void on_death_late(void *arg)
{
	struct child *child = arg;
	struct error error;

	if (!child->proc) {
		close_talk(child);
		check_gone(child);
		return;
	}
	error_set(&error, ERROR_UNAVAILABLE, "NVML's process %d hangs in the kernel",
		  (int)proc_pid(child->proc));
	error_hint(&error, "It can't be killed: the machine must be started anew.");
	tell(child, &error, true);
}

/* What it said last may still be in the socket, which then ends too. */
static void on_ended(void *arg, int status)
{
	struct child *child = arg;

	child->proc = NULL;
	child->status = status;
	loop_timer_start(child->death, child->options.death_ms);
	check_gone(child);
}

static void on_close(void *arg, const struct error *error UNUSED)
{
	struct child *child = arg;

	child->conn = NULL;
	close_talk(child);
	kill_process(child);
	check_gone(child);
}

/* --- what it says --- */

static bool take_reading(struct child *child, const json_t *object, struct error *error)
{
	CLEANUP(reading) struct reading reading = {0};

	if (!child->asked)
		return error_set(error, ERROR_INVALID_INPUT, "nobody asked for a reading");
	if (!reading_read(object, &reading, error))
		return false;
	child->asked = false;
	loop_timer_stop(child->deadline);
	child->wait = child->options.respawn_min_ms;
	child->handlers.on_reading(child->arg, &reading);
	return true;
}

/* It ends after this. */
static bool take_error(struct child *child, const json_t *object, struct error *error)
{
	char what[ERROR_WHAT_SIZE] = "", hint[ERROR_HINT_SIZE] = "", code[32] = "";
	struct error said;

	if (!field_text(object, "", "error", true, what, sizeof what, error) ||
	    !field_text(object, "", "hint", false, hint, sizeof hint, error) ||
	    !field_text(object, "", "code", true, code, sizeof code, error))
		return false;
	if (!*what)
		return error_field(error, "error", "must say why");
	error_set(&said, ERROR_UNAVAILABLE, "%s", what);
	if (*hint)
		error_hint(&said, "%s", hint);
	(void)error_code_parse(code, &said.code); /* a newer one is unavailable to us */
	end(child, &said);
	return true;
}

static bool take_xid(struct child *child, const json_t *object, struct error *error)
{
	struct frame_xid xid;

	if (!frame_read_xid(object, &xid, error))
		return false;
	child->handlers.on_xid(child->arg, &xid);
	return true;
}

static bool take_frame(struct child *child, const json_t *frame, struct error *error)
{
	const json_t *object = json_object_get(frame, "reading");

	if (object)
		return take_reading(child, object, error);
	object = json_object_get(frame, "xid");
	if (object)
		return take_xid(child, object, error);
	if (json_object_get(frame, "error"))
		return take_error(child, frame, error);
	if (!json_object_get(frame, "look"))
		return error_set(error, ERROR_INVALID_INPUT, "it is of no kind that is known");
	child_ask(child);
	return true;
}

static void on_data(void *arg, const uint8_t *data, size_t length)
{
	struct child *child = arg;
	struct error error;

	buf_add(&child->in, data, length);
	while (child->conn) {
		CLEANUP(tree) json_t *frame = NULL;

		if (!frame_take(&child->in, &frame, &error) ||
		    (frame && !take_frame(child, frame, &error))) {
			error_wrap(&error, "understand NVML's process");
			error.code = ERROR_UNAVAILABLE;
			end(child, &error);
			return;
		}
		if (!frame)
			return;
	}
}

/* --- its beginning --- */

void child_ask(struct child *child)
{
	CLEANUP(buf) struct buf out = {0};
	CLEANUP(tree) json_t *question = NULL;
	struct error error;

	if (!child->conn || child->asked || child->told)
		return;
	question = json_object();
	tree_set(question, "op", tree_string("read"));
	if (!frame_put(&out, question, &error))
		return; /* it is small */
	child->asked = true;
	loop_timer_start(child->deadline, child->options.deadline_ms);
	net_write(child->conn, out.data, out.length);
}

static void start(void *arg)
{
	static const struct net_handlers talk = {.on_data = on_data, .on_close = on_close};
	struct child *child = arg;
	const struct child_options *own = &child->options;
	char *argv[] = {"bcd",       CHILD_VERB,
			"--root",    (char *)own->root,
			"--library", (char *)own->nvml_library,
			NULL};
	struct proc_options options = {
		.file = own->program,
		.argv = argv,
		.ret_stdin = &child->conn,
	};
	struct error error;

	if (!own->nvml_library)
		argv[4] = NULL;
	child->told = false;
	if (!proc_start(child->loop, &options, on_ended, child, &child->proc, &error)) {
		tell(child, &error, false);
		check_gone(child);
		return;
	}
	net_start(child->conn, &talk, child);
	child_ask(child);
}

struct child *child_create(struct loop *loop, const struct child_options *options,
			   const struct child_handlers *handlers, void *arg)
{
	struct child *child = mem_alloc(sizeof *child);
	struct child_options *own = &child->options;

	child->loop = loop;
	own->program = mem_strdup(options->program ? options->program : OWN_PROGRAM);
	own->nvml_library = mem_strdup(options->nvml_library);
	own->root = mem_strdup(options->root ? options->root : "/");
	own->deadline_ms = or_default(options->deadline_ms, CHILD_DEADLINE_MS);
	own->respawn_min_ms = or_default(options->respawn_min_ms, CHILD_RESPAWN_MIN_MS);
	own->respawn_max_ms = or_default(options->respawn_max_ms, CHILD_RESPAWN_MAX_MS);
	own->death_ms = or_default(options->death_ms, CHILD_DEATH_MS);
	child->handlers = *handlers;
	child->arg = arg;
	child->wait = own->respawn_min_ms;
	child->deadline = loop_timer_create(loop, on_deadline, child);
	child->death = loop_timer_create(loop, on_death_late, child);
	child->respawn = loop_timer_create(loop, start, child);
	loop_timer_start(child->respawn, 0);
	return child;
}

void child_destroy(struct child *child)
{
	if (!child)
		return;
	close_talk(child);
	proc_drop(child->proc);
	loop_timer_destroy(child->deadline);
	loop_timer_destroy(child->death);
	loop_timer_destroy(child->respawn);
	buf_deinit(&child->in);
	free((char *)child->options.program);
	free((char *)child->options.nvml_library);
	free((char *)child->options.root);
	free(child);
}

pid_t child_pid(const struct child *child)
{
	return child->proc ? proc_pid(child->proc) : 0;
}
