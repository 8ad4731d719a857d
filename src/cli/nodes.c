#include "cli/commands.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "cli/view.h"
#include "cli/wait.h"

/* A change's answer in one line. */
static bool act(struct cli *cli, const char *id, const char *action, json_t *body,
		struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;

	if (!verb_send(cli, id, action, body, &answer, error))
		return false;
	if (answer && !output_raw(cli, answer))
		output_line("%s  %s", id, view_text(answer, "state"));
	return true;
}

/* "rack=r1" sets a label, "rack-" takes it away. */
static bool read_label(const char *text, json_t *labels, struct error *error)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : strlen(text);
	bool removes = !equals && length > 1 && text[length - 1] == '-';
	CLEANUP(free) char *name = mem_dup(text, length + 1);

	name[removes ? length - 1 : length] = '\0';
	if (!name[0] || (!equals && !removes)) {
		error_set(error, ERROR_INVALID_INPUT, "'%s' is no label", text);
		return error_hint(error, "Write NAME=VALUE to set one, NAME- to take it away.");
	}
	if (json_object_get(labels, name)) {
		error_set(error, ERROR_INVALID_INPUT, "label '%s' is given twice", name);
		return error_hint(error, "Say once what it shall be.");
	}
	tree_set(labels, name, equals ? tree_string(equals + 1) : json_null());
	return true;
}

static bool read_labels(const struct options *options, json_t *labels, struct error *error)
{
	for (size_t i = 1; i < options->operand_count; i++) {
		if (!read_label(options->operands[i], labels, error))
			return false;
	}
	return true;
}

static bool check_label(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *labels = json_object();

	return read_labels(cli->options, labels, error);
}

static bool label(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object();
	json_t *labels = json_object();

	tree_set(body, "labels", labels);
	return read_labels(cli->options, labels, error) && verb_patch(cli, body, "", error);
}

static bool spot(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object();

	tree_set(body, "spot", json_boolean(!options_given(cli->options, "off")));
	return verb_patch(cli, body, "", error);
}

static size_t booked_devices(const json_t *node)
{
	size_t index, count = 0;
	json_t *item;

	json_array_foreach(json_object_get(node, "devices"), index, item) count +=
		view_text(item, "reservationId") != NULL;
	return count;
}

static const char *drain_step(const struct wait_for *wait UNUSED, struct arena *arena,
			      const json_t *node)
{
	const char *state = view_text(node, "state");
	size_t booked = booked_devices(node);

	return booked ? arena_printf(arena, "%s, %zu device%s booked", state ? state : "?", booked,
				     booked == 1 ? "" : "s")
		      : "nothing is booked";
}

/* Somebody else may have ended the drain. */
static enum wait_verdict drain_judge(const struct wait_for *wait UNUSED, const json_t *node)
{
	const char *state = view_text(node, "state");

	if (state && !str_equal(state, "draining") && !str_equal(state, "retired"))
		return WAIT_NEVER;
	return booked_devices(node) ? WAIT_ON : WAIT_REACHED;
}

static bool wait_until_empty(struct cli *cli, const char *id, struct error *error)
{
	const struct wait_for wait = {
		.path = arena_printf(&cli->arena, "/v1/nodes/%s", id),
		.id = id,
		.goes_on = "the drain",
		.see = "nodes show",
		.step = drain_step,
		.judge = drain_judge,
	};
	CLEANUP(tree) json_t *node = NULL;
	bool reached;

	if (!wait_run(cli, &wait, &node, &reached, error))
		return false;
	if (node)
		(void)output_raw(cli, node);
	return true;
}

static bool drain(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	const char *id;

	if (!verb_id(cli, &id, error))
		return false;
	if (!options_given(cli->options, "wait") || cli_is_dry(cli))
		return act(cli, id, "drain", NULL, error);
	return verb_send(cli, id, "drain", NULL, &answer, error) &&
	       wait_until_empty(cli, id, error);
}

static bool undrain(struct cli *cli, struct error *error)
{
	const char *id;

	return verb_id(cli, &id, error) && act(cli, id, "undrain", NULL, error);
}

/* Reservations that have a place on it and don't run yet; what isn't known isn't told. */
static size_t placed_there(struct cli *cli, const char *node)
{
	CLEANUP(tree) json_t *items = NULL;
	size_t index, part, count = 0;
	json_t *item, *allocation;
	struct error ignored;

	if (!api_list(cli->api, noun_get(NOUN_RESERVATION)->path, "live=true", &items, &ignored))
		return 0;
	json_array_foreach(items, index, item)
	{
		bool here = false;

		json_array_foreach(json_object_get(item, "allocations"), part, allocation)
		{
			const char *on = view_text(allocation, "nodeId"),
				   *state = view_text(allocation, "state");

			here |= on && state && str_equal(on, node) && str_equal(state, "placed");
		}
		count += here;
	}
	return count;
}

/* What becomes of what is booked there, for whom it is asked. */
static const char *retire_question(struct cli *cli, const char *id, const json_t *node, bool lost)
{
	bool asked = !cli_is_dry(cli) && !options_given(cli->options, "yes");
	size_t booked = booked_devices(node), placed = asked ? placed_there(cli, id) : 0;
	CLEANUP(buf) struct buf text = {0};

	if (lost)
		buf_printf(&text,
			   "declaring %s lost frees its %zu booked device%s without asking the "
			   "machine: pods there may still use %s",
			   id, booked, booked == 1 ? "" : "s", booked == 1 ? "it" : "them");
	else
		buf_printf(&text,
			   "retiring %s ends its membership for good; %zu of its devices %s booked",
			   id, booked, booked == 1 ? "is" : "are");
	if (placed > 0)
		buf_printf(&text, "; %zu reservation%s placed there for later %s", placed,
			   placed == 1 ? "" : "s",
			   lost ? "is placed on other nodes, or waits until one has room"
				: "has to be moved or cancelled first");
	return arena_strdup(&cli->arena, buf_text(&text));
}

static bool retire(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *node = NULL, *body = json_object();
	bool lost = options_given(cli->options, "lost");

	if (!noun_fetch(cli, NOUN_NODE, cli->options->operands[0], &node, error))
		return false;
	const char *id = view_text(node, "id");
	const char *question = retire_question(cli, id, node, lost);

	if (lost)
		tree_set(body, "lost", json_true());
	if (verb_confirm(cli, id, "retire", body, question, error) &&
	    act(cli, id, "retire", body, error))
		return true;
	/* The API's own hint speaks of a body. */
	if (error->code == ERROR_INVALID_STATE && error->hint[0] && !lost)
		error_hint(error,
			   "Release what is booked there first, or say --lost when the machine is "
			   "gone and will not answer again. What keeps a release that doesn't end: "
			   "better-compute nodes show %s",
			   id);
	return false;
}

static const struct option LIST_OPTIONS[] = {
	{"pool", 0, OPTION_TEXT, "POOL", "only those of this pool", 0, 0, NULL},
	VERB_OWNERS,
	{0},
};

static const struct option DRAIN_OPTIONS[] = {
	WAIT_OPTIONS("until nothing is booked there any more"),
	{0},
};

static const struct option RETIRE_OPTIONS[] = {
	{"lost", 0, OPTION_FLAG, NULL, "the machine is gone and will not answer again", 0, 0, NULL},
	{0},
};

static const struct verb_field LIST_FIELDS[] = {FIELD_ID("poolId", "pool", NOUN_POOL), {0}};

static const struct option SPOT_OPTIONS[] = {
	{"off", 0, OPTION_FLAG, NULL, "it stays: it takes every reservation again", 0, 0, NULL},
	{0},
};

#define NODES .noun = "nodes", .names = NOUN_NODE

const struct command NODE_COMMANDS[] = {
	{
		NODES,
		.verb = "list",
		.summary = "list the machines with their GPUs",
		.flags = COMMAND_DEFAULT | COMMAND_DAILY | COMMAND_API | COMMAND_OUTPUT,
		.options = LIST_OPTIONS,
		.example = "better-compute nodes\n",
		.fields = LIST_FIELDS,
		.run = verb_list,
	},
	{
		NODES,
		VERB_SHOWS("NODE"),
		.summary = "show one node and its devices",
		.example = "better-compute nodes show gpu-node-07\n",
	},
	{
		NODES,
		.verb = "label",
		.summary = "set labels of a node, or take them away",
		.operands = "NODE NAME=VALUE|NAME-...",
		.min_operands = 2,
		.max_operands = COMMAND_MANY,
		.flags = COMMAND_CHANGES | COMMAND_API | COMMAND_OUTPUT,
		.check = check_label,
		.more = "The other labels stay. Gangs find nodes that stand together by "
			"bc.dev/topology.rack, .block and .nvlinkDomain.",
		.example =
			"better-compute nodes label gpu-node-07 bc.dev/topology.rack=r12 team-\n",
		.run = label,
	},
	{
		NODES,
		VERB_CHANGES("spot", "NODE"),
		.summary = "say that a machine may be taken away",
		.options = SPOT_OPTIONS,
		.more = "It then takes only reservations that were made with --spot; what is "
			"booked there goes on.",
		.example = "better-compute nodes spot gpu-node-07 --dry-run\n",
		.run = spot,
	},
	{
		NODES,
		VERB_CHANGES("drain", "NODE"),
		.summary = "give a node no new work",
		.options = DRAIN_OPTIONS,
		.more = "What is booked there goes on to its end; --wait waits for that.",
		.check = wait_check,
		.example = "better-compute nodes drain gpu-node-07\n",
		.run = drain,
	},
	{
		NODES,
		VERB_CHANGES("undrain", "NODE"),
		.summary = "give a node work again",
		.example = "better-compute nodes undrain gpu-node-07\n",
		.run = undrain,
	},
	{
		NODES,
		VERB_ASKS("retire", "NODE"),
		.summary = "take a machine out for good",
		.options = RETIRE_OPTIONS,
		.example = "better-compute nodes retire gpu-node-07 --dry-run\n",
		.run = retire,
	},
	{0},
};
