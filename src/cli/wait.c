#include "cli/wait.h"
#include "base/duration.h"
#include "cli/api.h"
#include "cli/output.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FIRST_MS  50
#define MOST_MS   1000
#define TELL_MS   2000  /* until it is worth saying how to stop */
#define OUTAGE_MS 30000 /* a restart of the control plane */

/* What one wait remembers. */
struct wait {
	struct cli *cli;
	const struct wait_for *for_what;
	FILE *out; /* where the states go: with the answer, but not into JSON */
	struct buf shown, remark;
	struct wait_together alone, *together;
	struct mono last_answer;
	int64_t pause_ms;
	int signal_fd;
	bool fresh_line; /* since it was said how to stop */
};

static void wait_cleanup(struct wait *wait)
{
	buf_deinit(&wait->shown);
	buf_deinit(&wait->remark);
	if (wait->signal_fd >= 0)
		close(wait->signal_fd);
}

bool wait_check(struct cli *cli, struct error *error)
{
	if (!options_given(cli->options, "timeout") || options_given(cli->options, "wait"))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "--timeout needs --wait");
	return error_hint(error, "Say --wait --timeout D, or leave --timeout out.");
}

static void say_how_to_stop(struct wait *wait)
{
	if (wait->together->told || mono_until(wait->together->start, clock_mono()) < TELL_MS)
		return;
	wait->together->told = true;
	if (wait->shown.length) {
		fputc('\n', wait->out);
		fflush(wait->out);
		wait->fresh_line = true;
	}
	output_note("Ctrl-C: %s goes on", wait->for_what->goes_on);
}

static void show_step(struct wait *wait, struct arena *arena, const json_t *item)
{
	char *text = arena_strdup(arena, wait->for_what->step(wait->for_what, arena, item));

	table_sanitize(text);
	if (wait->shown.length && str_equal(buf_text(&wait->shown), text))
		return;
	if (wait->shown.length && !wait->fresh_line)
		fprintf(wait->out, " → %s", text);
	else
		fprintf(wait->out, "%s  %s", wait->for_what->id, text);
	fflush(wait->out);
	wait->fresh_line = false;
	buf_clear(&wait->shown);
	buf_add_text(&wait->shown, text);
}

static void show_remark(struct wait *wait, struct arena *arena, const json_t *item)
{
	const char *text = wait->for_what->remark(arena, item);

	if (!text || mono_until(wait->together->start, clock_mono()) < TELL_MS ||
	    str_equal(buf_text(&wait->remark), text))
		return;
	output_note("%s", text);
	buf_clear(&wait->remark);
	buf_add_text(&wait->remark, text);
}

/* Ends the line with a remark in parentheses. */
static void end_line(struct wait *wait, const char *remark)
{
	if (wait->fresh_line) /* what was shown stands two lines above */
		fprintf(wait->out, "%s  %s\n", wait->for_what->id, remark);
	else if (wait->shown.length)
		fprintf(wait->out, "  (%s)\n", remark);
	fflush(wait->out);
}

static void end_line_with_time(struct wait *wait)
{
	int64_t ms = mono_until(wait->together->start, clock_mono());
	char text[DURATION_TEXT_SIZE];

	if (ms < 10000)
		snprintf(text, sizeof text, "%lld.%lld s", (long long)ms / 1000,
			 (long long)ms % 1000 / 100);
	else
		duration_format_short(text, ms);
	end_line(wait, text);
}

/* Waits a little; false when the person pressed Ctrl-C. */
static bool pause_a_little(struct wait *wait)
{
	struct pollfd poll_fd = {wait->signal_fd, POLLIN, 0};
	int64_t pause_ms = wait->pause_ms;

	wait->pause_ms = pause_ms * 2 < MOST_MS ? pause_ms * 2 : MOST_MS;
	return poll(&poll_fd, 1, (int)pause_ms) <= 0;
}

static void give_up(struct wait *wait, const json_t *item, const char *why)
{
	CLEANUP(arena) struct arena arena = {0};

	if (wait->for_what->remark && item)
		show_step(wait, &arena, item);
	end_line(wait, why);
	output_note("stopped waiting, %s goes on; see: better-compute %s %s",
		    wait->for_what->goes_on, wait->for_what->see, wait->for_what->id);
	wait->cli->exit_status = 1;
}

static bool fetch(struct wait *wait, json_t **item, struct error *error)
{
	json_decref(*item);
	*item = NULL;
	if (api_call(wait->cli->api, "GET", wait->for_what->path, NULL, item, error)) {
		wait->last_answer = clock_mono();
		return true;
	}
	return (error->code == ERROR_UNAVAILABLE || error->code == ERROR_RATE_LIMITED) &&
	       mono_until(wait->last_answer, clock_mono()) < OUTAGE_MS;
}

static void say_never(struct wait *wait, struct arena *arena, const json_t *item)
{
	const char *why = wait->for_what->why_never ? wait->for_what->why_never(arena, item) : NULL;

	end_line_with_time(wait);
	if (why)
		output_note("%s", why);
	wait->cli->exit_status = wait->for_what->never_status
					 ? wait->for_what->never_status
					 : error_exit_status(ERROR_RESOURCES_EXHAUSTED);
}

/* One look. */
static bool look(struct wait *wait, json_t **item, enum wait_verdict *ret_verdict,
		 struct error *error)
{
	CLEANUP(arena) struct arena arena = {0};

	if (!fetch(wait, item, error)) {
		end_line(wait, "lost");
		return false;
	}
	*ret_verdict = WAIT_ON;
	if (!*item)
		return true;
	*ret_verdict = wait->for_what->judge(wait->for_what, *item);
	if (wait->for_what->remark && *ret_verdict == WAIT_ON)
		show_remark(wait, &arena, *item);
	else
		show_step(wait, &arena, *item);
	if (*ret_verdict == WAIT_REACHED)
		end_line_with_time(wait);
	else if (*ret_verdict == WAIT_NEVER)
		say_never(wait, &arena, *item);
	return true;
}

static void wait_init(struct wait *wait, struct cli *cli, const struct wait_for *wait_for)
{
	bool table = cli->output == CLI_TABLE || cli->output == CLI_WIDE;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	*wait = (struct wait){
		.cli = cli,
		.for_what = wait_for,
		.out = table ? stdout : stderr,
		.alone = {.start = clock_mono()},
		.together = wait_for->together ? wait_for->together : &wait->alone,
		.last_answer = clock_mono(),
		.pause_ms = FIRST_MS,
		.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC),
	};
}

bool wait_run(struct cli *cli, const struct wait_for *wait_for, json_t **ret_item,
	      bool *ret_reached, struct error *error)
{
	int64_t timeout = options_number(cli->options, "timeout", INT64_MAX);
	enum wait_verdict verdict = WAIT_ON;
	CLEANUP(tree) json_t *item = NULL;
	CLEANUP(wait) struct wait wait;

	wait_init(&wait, cli, wait_for);
	for (;;) {
		if (!look(&wait, &item, &verdict, error))
			return false;
		if (verdict != WAIT_ON)
			break;
		say_how_to_stop(&wait);
		if (mono_until(wait.together->start, clock_mono()) >= timeout) {
			give_up(&wait, item, "timed out");
			break;
		}
		if (!pause_a_little(&wait)) {
			wait.together->interrupted = true;
			give_up(&wait, item, "interrupted");
			break;
		}
	}
	*ret_reached = verdict == WAIT_REACHED;
	*ret_item = TAKE(item);
	return true;
}
