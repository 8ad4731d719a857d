#include "base/duration.h"
#include "cli/booking.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/period.h"
#include "cli/verb.h"
#include "cli/view.h"
#include "cli/wait.h"
#include "cli/when.h"
#include "text/yaml.h"

#define RELEASING "releasing"

/* "releasing" is what people are told; the API says released, with a condition. */
static bool is_releasing(const json_t *reservation)
{
	const char *state = view_state(reservation);

	return state && str_equal(state, RELEASING);
}

/* Whoever doesn't ask for others sees what isn't over, and what pods still hold. */
static bool list(struct cli *cli, struct error *error)
{
	static const char *const ASK_FOR_OTHERS[] = {"all", "state-is", "from", "to"};
	const char *state = options_text(cli->options, "state-is");
	bool releasing = state && str_equal(state, RELEASING), live = true;
	CLEANUP(buf) struct buf query = {0};

	for (size_t i = 0; i < ARRAY_SIZE(ASK_FOR_OTHERS); i++)
		live = live && !options_given(cli->options, ASK_FOR_OTHERS[i]);
	if (live || releasing)
		api_query_add(&query, "live", "true");
	if (state)
		api_query_add(&query, "state", releasing ? "released" : state);
	return verb_query(cli, &query, error) && period_query(cli, &query, error) &&
	       noun_list(cli, NOUN_RESERVATION, query.length ? buf_text(&query) : NULL,
			 live ? "now (--all lists what is over, too)" : NULL,
			 releasing ? is_releasing : NULL, error);
}

/* What one command does to several, in their order. */
struct batch {
	const char **ids; /* each once */
	json_t **answers; /* of those that are to be waited for; else NULL */
	size_t count;
	int refused; /* the exit status of the first refusal; 0: none yet */
	bool ended;  /* the next one would be told the same */
};

static void batch_cleanup(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		json_decref(batch->answers[i]);
}

static bool is_among(const char *const *ids, size_t count, const char *id)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal(ids[i], id))
			return true;
	return false;
}

/* All names are looked up before anything is done: a slip in one does nothing to the others. One that is named twice,
 * as by two of its allocations, is one. */
static bool batch_init(struct batch *batch, struct cli *cli, struct error *error)
{
	size_t count = cli->options->operand_count;
	const char *id;

	*batch = (struct batch){
		.ids = arena_alloc(&cli->arena, count * sizeof *batch->ids),
		.answers = arena_alloc(&cli->arena, count * sizeof *batch->answers),
	};
	for (size_t i = 0; i < count; i++) {
		if (!noun_resolve(cli, NOUN_RESERVATION, cli->options->operands[i], &id, error))
			return count == 1 ? false : error_wrap(error, "nothing was done");
		if (is_among(batch->ids, batch->count, id))
			continue;
		batch->ids[batch->count] = id;
		batch->answers[batch->count++] = NULL;
	}
	return true;
}

/* Whoever isn't reached, or lets nobody in, says the same of the next one. */
static bool ends_all(const struct error *error)
{
	return error->code == ERROR_UNAVAILABLE || error->code == ERROR_UNAUTHENTICATED;
}

static void tell(struct cli *cli, struct batch *batch, const struct error *error)
{
	output_error(cli, error, api_request_id(cli->api));
	if (batch->refused == 0)
		batch->refused = error_exit_status(error->code);
	batch->ended = ends_all(error);
}

static void add_id(struct buf *ids, const char *id)
{
	buf_printf(ids, "%s%s", ids->length ? ", " : "", id);
}

/* What is refused of one keeps nothing from the others: each is told. */
static void each(struct cli *cli, struct batch *batch,
		 bool (*one)(struct cli *, struct batch *, size_t, struct error *))
{
	CLEANUP(buf) struct buf left = {0};
	struct error error;

	for (size_t i = 0; i < batch->count; i++) {
		if (batch->ended)
			add_id(&left, batch->ids[i]);
		else if (!one(cli, batch, i, &error))
			tell(cli, batch, &error);
	}
	if (left.length)
		output_note("not tried: %s", buf_text(&left));
}

/* A refusal says more than what was waited for in vain, or would change. */
static bool batch_end(struct cli *cli, const struct batch *batch)
{
	if (batch->refused)
		cli->exit_status = batch->refused;
	return true;
}

static bool cancel_one(struct cli *cli, struct batch *batch, size_t index, struct error *error)
{
	const char *id = batch->ids[index];
	CLEANUP(tree) json_t *answer = NULL;

	if (!verb_send(cli, id, "cancel", NULL, &answer, error))
		return error_wrap(error, "cancel %s", id);
	if (answer && !output_raw(cli, answer))
		output_line("%s  %s", id, view_text(answer, "state"));
	return true;
}

static bool cancel(struct cli *cli, struct error *error)
{
	CLEANUP(batch) struct batch batch = {0};

	if (!batch_init(&batch, cli, error))
		return false;
	each(cli, &batch, cancel_one);
	return batch_end(cli, &batch);
}

static void print_released(struct cli *cli, const json_t *reservation)
{
	const char *note = view_conditions(&cli->arena, json_object_get(reservation, "conditions"));

	if (!output_raw(cli, reservation))
		output_line("%s  %s%s%s", view_text(reservation, "id"), view_state(reservation),
			    note ? "  " : "", note ? note : "");
}

static bool release_one(struct cli *cli, struct batch *batch, size_t index, struct error *error)
{
	const char *id = batch->ids[index];
	CLEANUP(tree) json_t *answer = NULL;

	if (!verb_send(cli, id, "release", NULL, &answer, error))
		return error_wrap(error, "release %s", id);
	if (answer && options_given(cli->options, "wait"))
		batch->answers[index] = TAKE(answer);
	else if (answer)
		print_released(cli, answer);
	return true;
}

static bool wait_for_one(struct cli *cli, const char *id, struct wait_together *together,
			 struct error *error)
{
	CLEANUP(tree) json_t *last = NULL;
	bool reached;

	if (!booking_wait(cli, id, BOOKING_RELEASED, together, &last, &reached, error))
		return error_wrap(error, "wait for %s", id);
	if (last)
		(void)output_raw(cli, last);
	return true;
}

/* Once all have been released: who waits for one keeps no other booked meanwhile. After Ctrl-C, or where nobody
 * answers, the rest is told as without --wait. */
static void wait_for_each(struct cli *cli, struct batch *batch, struct wait_together *together)
{
	CLEANUP(buf) struct buf left = {0};
	struct error error;

	for (size_t i = 0; i < batch->count; i++) {
		if (!batch->answers[i])
			continue;
		if (batch->ended || together->interrupted) {
			print_released(cli, batch->answers[i]);
			add_id(&left, batch->ids[i]);
		} else if (!wait_for_one(cli, batch->ids[i], together, &error)) {
			tell(cli, batch, &error);
		}
	}
	if (left.length)
		output_note("not waited for, the release goes on: %s", buf_text(&left));
}

static bool release(struct cli *cli, struct error *error)
{
	struct wait_together together = {.start = clock_mono()};
	CLEANUP(batch) struct batch batch = {0};

	if (!batch_init(&batch, cli, error))
		return false;
	each(cli, &batch, release_one);
	wait_for_each(cli, &batch, &together);
	return batch_end(cli, &batch);
}

/* --- extend, shorten, move --- */

static bool check_end(struct cli *cli, struct error *error)
{
	bool by = options_given(cli->options, "by"), until = options_given(cli->options, "until");

	if (by != until)
		return true;
	error_set(error, ERROR_INVALID_INPUT,
		  by ? "--by and --until exclude each other" : "by how much, or until when?");
	return error_hint(error, "Say --by 2h, or --until 2026-11-30T09:00:00Z.");
}

/* A reservation that has no place yet has no end, but a duration. */
static bool new_duration(struct cli *cli, const json_t *reservation, bool later, json_t *body,
			 struct error *error)
{
	int64_t by = options_number(cli->options, "by", 0), ms;
	const char *now = view_text(reservation, "duration");
	char text[DURATION_TEXT_SIZE];

	if (!options_given(cli->options, "by")) {
		error_set(error, ERROR_INVALID_STATE, "it has no end yet, since it has no place");
		return error_hint(error, "Say by how much: --by 2h");
	}
	if (!duration_parse(now ? now : "", "duration", 0, BOOKING_MAX_MS, &ms, error))
		return false;
	ms += later ? by : -by;
	if (ms < BOOKING_MIN_MS || ms > BOOKING_MAX_MS) {
		error_set(error, ERROR_INVALID_INPUT, "it would last less than 1m or over 366d");
		return error_hint(error, "It is booked for %s.", now);
	}
	duration_format(text, ms);
	tree_set(body, "duration", tree_string(text));
	return true;
}

static bool new_end(struct cli *cli, const char *end_text, bool later, json_t *body,
		    struct error *error)
{
	const char *until = options_text(cli->options, "until");
	int64_t by = options_number(cli->options, "by", 0);
	char text[WHEN_SIZE], exact[WHEN_SIZE];
	struct wall end, wanted;

	if (!when_parse(end_text, &end))
		return error_set(error, ERROR_INTERNAL, "its end '%s' is no time", end_text);
	wanted.ms = end.ms + (later ? by : -by);
	if (until && !when_parse_start(until, "--until", cli->now, &wanted, error))
		return false;
	if (later ? wanted.ms <= end.ms : wanted.ms >= end.ms) {
		when_format_exact(exact, end);
		error_set(error, ERROR_INVALID_INPUT, "it ends at %s, which is not %s", exact,
			  later ? "earlier" : "later");
		return error_hint(error, later ? "Use: better-compute reservations shorten"
					       : "Use: better-compute reservations extend");
	}
	when_format(text, wanted);
	tree_set(body, "endAt", tree_string(text));
	return true;
}

static bool change_end(struct cli *cli, bool later, struct error *error)
{
	CLEANUP(tree) json_t *item = NULL, *body = json_object();
	const char *end;

	if (!noun_fetch(cli, NOUN_RESERVATION, cli->options->operands[0], &item, error))
		return false;
	end = view_text(item, "endAt");
	return (end ? new_end(cli, end, later, body, error)
		    : new_duration(cli, item, later, body, error)) &&
	       verb_patch(cli, body, "", error);
}

static bool extend(struct cli *cli, struct error *error)
{
	return change_end(cli, true, error);
}

static bool shorten(struct cli *cli, struct error *error)
{
	return change_end(cli, false, error);
}

static bool move(struct cli *cli, struct error *error)
{
	const char *start = options_text(cli->options, "start");
	CLEANUP(tree) json_t *body = json_object();
	char text[WHEN_SIZE];
	struct wall time;

	if (start && !when_parse_start(start, "--start", cli->now, &time, error))
		return false;
	if (start) {
		when_format(text, time);
		tree_set(body, "startAt", tree_string(text));
	}
	return verb_patch(cli, body, "Say when it shall start: --start 8h", error);
}

/* As a pod's manifest takes it; how it is asked for stands in a comment, so that all can be pasted. */
static void print_requests(const json_t *answer)
{
	CLEANUP(tree) json_t *block = json_object();
	CLEANUP(buf) struct buf text = {0};

	buf_printf(&text, "# %s: enough for %lld such container%s\n", view_text(answer, "id"),
		   (long long)view_number(answer, "pods"),
		   view_number(answer, "pods") == 1 ? "" : "s");
	json_object_set(block, "resources", json_object_get(answer, "resources"));
	yaml_dump(&text, block);
	output_text(&text);
}

static bool pod_requests(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	CLEANUP(buf) struct buf query = {0};
	const char *id, *path;

	if (!verb_id(cli, &id, error) || !verb_query(cli, &query, error))
		return false;
	path = arena_printf(&cli->arena, "%s/%s/pod-requests%s%s", noun_get(NOUN_RESERVATION)->path,
			    id, query.length ? "?" : "", buf_text(&query));
	if (!api_call(cli->api, "GET", path, NULL, &answer, error))
		return noun_missing(NOUN_RESERVATION, error);
	if (!output_raw(cli, answer))
		print_requests(answer);
	return true;
}

static const char *const STATES[] = {"pending",  "placed",    "active", RELEASING,
				     "released", "denied",    "failed", "cancelled",
				     "expired",  "preempted", NULL};

static const struct option LIST_OPTIONS[] = {
	{"state-is", 's', OPTION_TEXT, "STATE",
	 "only those in this state (releasing: over, "
	 "and devices held)",
	 0, 0, STATES},
	{"all", 'a', OPTION_FLAG, NULL, "also what is over", 0, 0, NULL},
	{"pool", 0, OPTION_TEXT, "POOL", "only those in this pool", 0, 0, NULL},
	{"tenant", 0, OPTION_TEXT, "TENANT", "only this tenant's", 0, 0, NULL},
	{"from", 0, OPTION_TEXT, "TIME", "only those made from then on: RFC 3339, or 7d for ago", 0,
	 0, NULL},
	{"to", 0, OPTION_TEXT, "TIME", "only those made before then", 0, 0, NULL},
	{0},
};

static const struct option RELEASE_OPTIONS[] = {
	WAIT_OPTIONS("until no pod holds a device any more; fails when that is never said"),
	{0},
};

static const struct option END_OPTIONS[] = {
	{"by", 0, OPTION_DURATION, "D", "by how much, such as 2h", 1000, BOOKING_MAX_MS, NULL},
	{"until", 0, OPTION_TEXT, "TIME", "the new end: RFC 3339, or 8h from now", 0, 0, NULL},
	{0},
};

static const struct option MOVE_OPTIONS[] = {
	{"start", 0, OPTION_TEXT, "TIME", "the new start: RFC 3339, or 8h from now", 0, 0, NULL},
	{0},
};

static const char *const CLASSES[] = {"gpu", "gpu.mig", "gpu.slot", NULL};

static const struct option POD_OPTIONS[] = {
	{"devices", 0, OPTION_NUMBER, "N", "of one pod (default: all that are booked on one node)",
	 1, BOOKING_MAX_DEVICES, NULL},
	{"class", 0, OPTION_TEXT, "CLASS", "devices of this class alone", 0, 0, CLASSES},
	{0},
};

static const struct verb_field POD_FIELDS[] = {
	FIELD_NUMBER("devices", "devices"),
	FIELD_TEXT("class", "class"),
	{0},
};

static const struct verb_field LIST_FIELDS[] = {
	FIELD_ID("poolId", "pool", NOUN_POOL),
	FIELD_ID("tenantId", "tenant", NOUN_TENANT),
	{0},
};

#define RELEASE_ROW                                                                                \
	.summary = "give booked GPUs back", .operands = "ID...", .min_operands = 1,                \
	.max_operands = COMMAND_MANY, .names = NOUN_RESERVATION, .options = RELEASE_OPTIONS,       \
	.more = "The node withdraws the devices at once. They are free for others "                \
		"when no pod holds them any more: --wait waits for that. Where bcd "               \
		"has a kubeconfig it deletes a pod that keeps one after 30 seconds, "              \
		"by force a minute later; elsewhere, as under a plain up, a person "               \
		"has to. Without the node's word a release ends when the node is "                 \
		"declared lost or retired; after ten minutes, where the node never "               \
		"bound the booking; five minutes into somebody else's booking of "                 \
		"the same devices; and, where the node is heard of, a day after the "              \
		"booking's own end. The last two are told as unconfirmed, and "                    \
		"--wait ends with 1. Of several reservations each is tried, "                      \
		"whatever is refused of another, and then waited for: --timeout is "               \
		"for all together, and Ctrl-C ends all waiting. The exit status is "               \
		"that of the first refusal.",                                                      \
	.check = wait_check, .run = release

#define RESERVATIONS .noun = "reservations", .names = NOUN_RESERVATION

const struct command RESERVATION_COMMANDS[] = {
	{
		.noun = "release",
		RELEASE_ROW,
		.flags = COMMAND_DAILY | COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute release rsv_01kb7 --wait\n",
	},
	{
		RESERVATIONS,
		.verb = "list",
		.summary = "list what is booked, and what waits",
		.flags = COMMAND_DEFAULT | COMMAND_DAILY | COMMAND_API | COMMAND_OUTPUT,
		.options = LIST_OPTIONS,
		.more = "What is over is listed with --all, --state-is, --from or --to; what pods "
			"still hold, always.",
		.example = "better-compute reservations --state-is active\n"
			   "better-compute reservations --all --from 7d\n",
		.fields = LIST_FIELDS,
		.check = period_check,
		.run = list,
	},
	{
		RESERVATIONS,
		VERB_SHOWS("ID"),
		.summary = "show one reservation and its devices",
		.more = "An allocation's id (alc_…), by which bcd, conditions and events name its "
			"parts, names the reservation, too.",
		.example = "better-compute reservations show rsv_01kb7\n"
			   "better-compute reservations show rsv_01kb7 -o json\n",
	},
	{
		RESERVATIONS,
		.verb = "pod-requests",
		VERB_ONE("ID"),
		.flags = COMMAND_API | COMMAND_OUTPUT,
		.summary = "print what a pod asks for, ready to paste",
		.options = POD_OPTIONS,
		.more = "What is booked of the node's processors, memory and huge pages is divided "
			"evenly over the devices, and printed as the resources of a container with "
			"so "
			"many of them. On several nodes it is the least that one of them gave.",
		.example = "better-compute reservations pod-requests rsv_01kb7\n"
			   "better-compute reservations pod-requests rsv_01kb7 --devices 1\n",
		.fields = POD_FIELDS,
		.run = pod_requests,
	},
	{
		RESERVATIONS,
		VERB_CHANGES("extend", "ID"),
		.summary = "let a reservation end later",
		.options = END_OPTIONS,
		.more = "Refused when somebody else has booked the devices for that time.",
		.example = "better-compute reservations extend rsv_01kb7 --by 2h\n",
		.check = check_end,
		.run = extend,
	},
	{
		RESERVATIONS,
		VERB_CHANGES("shorten", "ID"),
		.summary = "let a reservation end earlier",
		.options = END_OPTIONS,
		.more = "To end it now: better-compute release.",
		.example = "better-compute reservations shorten rsv_01kb7 --by 1h\n",
		.check = check_end,
		.run = shorten,
	},
	{
		RESERVATIONS,
		VERB_CHANGES("move", "ID"),
		.summary = "let a reservation that waits start at another time",
		.options = MOVE_OPTIONS,
		.example = "better-compute reservations move rsv_01kb7 --start 9h --dry-run\n",
		.run = move,
	},
	{
		RESERVATIONS,
		.verb = "cancel",
		.summary = "drop reservations that are still pending",
		.operands = "ID...",
		.min_operands = 1,
		.max_operands = COMMAND_MANY,
		.flags = COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.more = "Of several each is tried, whatever is refused of another; the exit status "
			"is that of the first refusal.",
		.example = "better-compute reservations cancel rsv_01kb7\n",
		.run = cancel,
	},
	{
		.noun = "reservations",
		.verb = "release",
		RELEASE_ROW,
		.flags = COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute reservations release rsv_01kb7\n",
	},
	{0},
};
