#include "cli/booking.h"
#include "cli/commands.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/pages.h"
#include "cli/view.h"
#include "cli/wait.h"

static void print_devices(struct cli *cli, const json_t *reservation)
{
	const char *ends = view_exact(&cli->arena, reservation, "endAt");
	CLEANUP(buf) struct buf line = {0};
	size_t index, i;
	json_t *allocation, *device;

	json_array_foreach(json_object_get(reservation, "allocations"), index, allocation)
	{
		const char *state = view_text(allocation, "state");

		if (state && str_equal(state, "failed")) /* it has others instead */
			continue;
		json_array_foreach(json_object_get(allocation, "devices"), i, device)
		{
			const char *atom = view_text(device, "atom");
			if (atom)
				buf_printf(&line, " %s", view_atom(&cli->arena, atom));
		}
	}
	if (line.length)
		output_line("  devices  %s%s%s", buf_text(&line), ends ? "   until " : "",
			    ends ? ends : "");
}

static void print_booked(struct cli *cli, const json_t *reservation)
{
	print_devices(cli, reservation);
	output_line("  pods ask  %s", page_pods_ask(&cli->arena, reservation));
	noun_note_simulated(cli, NULL);
}

/* Denied at once, say. */
static bool is_over(const json_t *reservation)
{
	const char *state = view_text(reservation, "state");

	return state && view_terminal(state);
}

static void print_made(struct cli *cli, const json_t *reservation, const char *first_fit)
{
	const char *node = view_nodes(&cli->arena, reservation), *id = view_text(reservation, "id");
	const char *why = view_reasons(&cli->arena, json_object_get(reservation, "reasons"),
				       json_object_get(reservation, "devices"));
	const char *starts = view_starts(&cli->arena, reservation, cli->now);
	bool over = is_over(reservation);

	output_line("%s  %s%s%s", id, view_text(reservation, "state"), node ? " on " : "",
		    node ? node : "");
	if (starts)
		output_line("  starts    %s (%s)", starts,
			    view_exact(&cli->arena, reservation, "startAt"));
	if (why)
		output_line("  %s   %s", over ? "why not" : "waits  ", why);
	if (first_fit)
		output_line("  first fit %s", first_fit);
	if (why && !over)
		output_line("  cancel    better-compute reservations cancel %s", id);
	if (!over)
		print_booked(cli, reservation);
}

/* It is active, and yet pods may not get it: no kubelet is there, say. */
static void note_conditions(struct cli *cli, const json_t *reservation)
{
	const char *note = view_conditions(&cli->arena, json_object_get(reservation, "conditions"));

	if (note)
		output_note("%s", note);
}

static bool is_pending(const json_t *reservation)
{
	const char *state = view_text(reservation, "state");

	return state && str_equal(state, "pending");
}

/* Books, and for people tells when one that waits would first fit. A gang is asked about before it
 * waits: afterwards nodes are kept for it, also from its like. */
static bool book(struct cli *cli, json_t *body, json_t **ret_answer, const char **ret_first_fit,
		 struct error *error)
{
	bool people = cli->output == CLI_TABLE || cli->output == CLI_WIDE;
	const char *first_fit =
		people && json_object_get(body, "gang") ? booking_first_fit(cli, body) : NULL;

	if (!cli_change(cli, "POST", "/v1/reservations", body, ret_answer, error))
		return false;
	if (!is_pending(*ret_answer))
		first_fit = NULL;
	else if (people && !first_fit)
		first_fit = booking_first_fit_of(cli, *ret_answer);
	*ret_first_fit = first_fit;
	return true;
}

static bool check(struct cli *cli, struct error *error)
{
	return booking_check(cli, error) && wait_check(cli, error);
}

static bool reserve(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = NULL, *answer = NULL, *last = NULL;
	const char *id, *first_fit;
	bool reached;

	if (!booking_body(cli, &body, error))
		return false;
	if (cli_is_dry(cli))
		return booking_preview(cli, body, error);
	if (!book(cli, body, &answer, &first_fit, error))
		return false;
	id = view_text(answer, "id");
	if (!id)
		return error_set(error, ERROR_INTERNAL, "the answer has no id");
	if (!options_given(cli->options, "wait")) {
		if (is_over(answer))
			cli->exit_status = error_exit_status(ERROR_RESOURCES_EXHAUSTED);
		if (!output_raw(cli, answer))
			print_made(cli, answer, first_fit);
		return true;
	}
	if (first_fit)
		output_note("it would first fit %s", first_fit);
	if (!booking_wait(cli, id, BOOKING_ACTIVE, NULL, &last, &reached, error))
		return false;
	if (last && !output_raw(cli, last) && reached)
		print_booked(cli, last);
	if (last && reached)
		note_conditions(cli, last);
	return true;
}

static const struct option RESERVE_OPTIONS[] = {
	BOOKING_OPTIONS,
	WAIT_OPTIONS("until it is active; with --start, until it is placed"),
	{0},
};

const struct command RESERVE_COMMANDS[] = {
	{
		.noun = "reserve",
		.summary = "book GPUs for a time",
		.flags = COMMAND_DAILY | COMMAND_CREATES | COMMAND_CHANGES | COMMAND_API |
			 COMMAND_OUTPUT,
		.options = RESERVE_OPTIONS,
		.more = "Whole GPUs, MIG instances and slots can be mixed. --dry-run shows whether "
			"and where it would fit. Any pod the cluster's scheduler places on the "
			"node may take the devices: steer that with labels, taints and cluster "
			"policies. With --nodes the devices are those of each node, and all nodes "
			"are booked at once or none.",
		.example = "better-compute reserve --gpus 2 --for 8h --kubernetes --wait\n"
			   "better-compute reserve --mig 1g.10gb=2 --for 1h30m --kubernetes "
			   "--dry-run\n"
			   "better-compute reserve --gpus 8 --nodes 2 --same rack --for 2h "
			   "--kubernetes --start 8h --dry-run\n",
		.check = check,
		.run = reserve,
	},
	{0},
};
