#include "base/duration.h"
#include "cli/booking.h"
#include "cli/output.h"
#include "cli/view.h"
#include "sys/clock.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define WAIT_FIRST_MS  50
#define WAIT_MOST_MS   1000
#define WAIT_TELL_MS   2000  /* until it is worth saying how to stop */
#define WAIT_OUTAGE_MS 30000 /* a restart of the control plane */

bool booking_check_wait(struct cli *cli, struct error *error)
{
	if (!options_given(cli->options, "timeout") || options_given(cli->options, "wait"))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "--timeout needs --wait");
	return error_hint(error, "Say --wait --timeout D, or leave --timeout out.");
}

static bool all_given_back(const json_t *reservation)
{
	size_t index;
	json_t *item;

	json_array_foreach(json_object_get(reservation, "allocations"), index, item)
	{
		const char *state = view_text(item, "state");
		if (!state || (!str_equal(state, "released") && !str_equal(state, "failed")))
			return false;
	}
	return !view_has_condition(reservation, "DevicesHeld");
}

bool booking_reached(const json_t *reservation, enum booking_goal goal)
{
	const char *state = view_text(reservation, "state");

	if (!state)
		return false;
	switch (goal) {
	case BOOKING_ACTIVE:
		return str_equal(state, "active");
	case BOOKING_RELEASED:
		return view_terminal(state) && all_given_back(reservation);
	}
	return false;
}

/* What one wait remembers. */
struct wait {
	struct cli *cli;
	const char *id;
	enum booking_goal goal;
	FILE *out; /* where the states go: with the answer, but not into JSON */
	struct buf shown;
	struct mono start, last_answer;
	int64_t pause_ms;
	int signal_fd;
	bool told;       /* that Ctrl-C ends the waiting alone */
	bool fresh_line; /* since that was said */
};

static void wait_cleanup(struct wait *wait)
{
	buf_deinit(&wait->shown);
	if (wait->signal_fd >= 0)
		close(wait->signal_fd);
}

#define HELD "DevicesHeld: " /* its message says enough */

/* The state as one step of the line "pending → placed on node_… → active". */
static const char *step_text(struct wait *wait, const json_t *reservation)
{
	struct arena *arena = &wait->cli->arena;
	const char *state = view_text(reservation, "state");
	const char *node = view_nodes(arena, reservation);
	const char *held = view_conditions(arena, json_object_get(reservation, "conditions"));
	const char *why = view_reasons(arena, json_object_get(reservation, "reasons"),
				       json_object_get(reservation, "devices"));

	if (!state)
		return "?";
	if (wait->goal == BOOKING_RELEASED && booking_reached(reservation, BOOKING_RELEASED))
		return "given back";
	if (wait->goal == BOOKING_ACTIVE && view_starts(arena, reservation, clock_wall()))
		return arena_printf(arena, "%s%s%s, starts %s", state, node ? " on " : "",
				    node ? node : "", view_exact(arena, reservation, "startAt"));
	if (str_equal(state, "placed") && node)
		return arena_printf(arena, "placed on %s", node);
	if (str_equal(state, "pending") && why)
		return arena_printf(arena, "pending: %s", why);
	if (view_has_condition(reservation, "DevicesHeld"))
		return arena_printf(arena, "%s, %s; bcd status there names the pods", state,
				    held + (str_starts(held, HELD) ? strlen(HELD) : 0));
	if (wait->goal == BOOKING_RELEASED && view_terminal(state))
		return arena_printf(arena, "%s, waiting for the node", state);
	return state;
}

/* A booking for later has got all it can now. */
static bool placed_for_later(struct wait *wait, const json_t *reservation)
{
	const char *state = view_text(reservation, "state");

	return state && str_equal(state, "placed") &&
	       view_starts(&wait->cli->arena, reservation, clock_wall());
}

static void say_how_to_stop(struct wait *wait)
{
	if (wait->told || mono_until(wait->start, clock_mono()) < WAIT_TELL_MS)
		return;
	wait->told = true;
	if (wait->shown.length) {
		fputc('\n', wait->out);
		fflush(wait->out);
		wait->fresh_line = true;
	}
	output_note("Ctrl-C: %s goes on",
		    wait->goal == BOOKING_ACTIVE ? "the reservation" : "the release");
}

static void show_step(struct wait *wait, const json_t *reservation)
{
	CLEANUP(free) char *text = mem_strdup(step_text(wait, reservation));

	table_sanitize(text);
	if (wait->shown.length && str_equal(buf_text(&wait->shown), text))
		return;
	if (wait->shown.length && !wait->fresh_line)
		fprintf(wait->out, " → %s", text);
	else
		fprintf(wait->out, "%s  %s", wait->id, text);
	fflush(wait->out);
	wait->fresh_line = false;
	buf_clear(&wait->shown);
	buf_add_text(&wait->shown, text);
}

/* Ends the line with a remark in parentheses. */
static void end_line(struct wait *wait, const char *remark)
{
	if (wait->fresh_line)
		fprintf(wait->out, "%s  %s", wait->id, buf_text(&wait->shown));
	if (wait->shown.length)
		fprintf(wait->out, "  (%s)\n", remark);
	fflush(wait->out);
}

static void end_line_with_time(struct wait *wait)
{
	int64_t ms = mono_until(wait->start, clock_mono());
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

	wait->pause_ms = pause_ms * 2 < WAIT_MOST_MS ? pause_ms * 2 : WAIT_MOST_MS;
	return poll(&poll_fd, 1, (int)pause_ms) <= 0;
}

static void give_up(struct wait *wait, const char *why)
{
	end_line(wait, why);
	output_note("stopped waiting, %s goes on; see: better-compute reservations show %s",
		    wait->goal == BOOKING_ACTIVE ? "the reservation" : "the release", wait->id);
	wait->cli->exit_status = 1;
}

/* A control plane that restarts is waited for. */
static bool fetch(struct wait *wait, json_t **ret_reservation, struct error *error)
{
	const char *path = arena_printf(&wait->cli->arena, "/v1/reservations/%s", wait->id);

	json_decref(*ret_reservation);
	*ret_reservation = NULL;
	if (api_call(wait->cli->api, "GET", path, NULL, ret_reservation, error)) {
		wait->last_answer = clock_mono();
		return true;
	}
	return error->code == ERROR_UNAVAILABLE &&
	       mono_until(wait->last_answer, clock_mono()) < WAIT_OUTAGE_MS;
}

static void refused(struct wait *wait, const json_t *reservation)
{
	const char *why = view_reasons(&wait->cli->arena, json_object_get(reservation, "reasons"),
				       json_object_get(reservation, "devices"));

	end_line_with_time(wait);
	if (why)
		output_note("%s", why);
	wait->cli->exit_status = error_exit_status(ERROR_RESOURCES_EXHAUSTED);
}

/* One look; *ret_over when there is nothing more to wait for. */
static bool look(struct wait *wait, json_t **reservation, bool *ret_over, bool *ret_reached,
		 struct error *error)
{
	if (!fetch(wait, reservation, error)) {
		end_line(wait, "lost");
		return false;
	}
	*ret_over = false;
	if (!*reservation)
		return true;
	show_step(wait, *reservation);
	*ret_reached = booking_reached(*reservation, wait->goal) ||
		       (wait->goal == BOOKING_ACTIVE && placed_for_later(wait, *reservation));
	const char *state = view_text(*reservation, "state");
	bool never = !*ret_reached && wait->goal == BOOKING_ACTIVE && state && view_terminal(state);
	*ret_over = *ret_reached || never;
	if (*ret_reached)
		end_line_with_time(wait);
	else if (never)
		refused(wait, *reservation);
	return true;
}

static void wait_init(struct wait *wait, struct cli *cli, const char *id, enum booking_goal goal)
{
	bool table = cli->output == CLI_TABLE || cli->output == CLI_WIDE;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	*wait = (struct wait){
		.cli = cli,
		.id = id,
		.goal = goal,
		.out = table ? stdout : stderr,
		.start = clock_mono(),
		.last_answer = clock_mono(),
		.pause_ms = WAIT_FIRST_MS,
		.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC),
	};
}

bool booking_wait(struct cli *cli, const char *id, enum booking_goal goal, json_t **ret_reservation,
		  bool *ret_reached, struct error *error)
{
	int64_t timeout = options_number(cli->options, "timeout", INT64_MAX);
	CLEANUP(tree) json_t *reservation = NULL;
	CLEANUP(wait) struct wait wait;
	bool over = false, reached = false;

	wait_init(&wait, cli, id, goal);
	for (;;) {
		if (!look(&wait, &reservation, &over, &reached, error))
			return false;
		if (over)
			break;
		say_how_to_stop(&wait);
		if (mono_until(wait.start, clock_mono()) >= timeout) {
			give_up(&wait, "timed out");
			break;
		}
		if (!pause_a_little(&wait)) {
			give_up(&wait, "interrupted");
			break;
		}
	}
	*ret_reached = reached;
	*ret_reservation = TAKE(reservation);
	return true;
}
