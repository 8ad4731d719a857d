#include "node/status.h"

#include "base/duration.h"
#include "base/vec.h"
#include "bcd/verbs.h"
#include "cli/page.h"
#include "cli/table.h"
#include "cli/when.h"
#include "node/core/conditions.h"
#include "node/identity.h"
#include "node/lock.h"
#include "sys/clock.h"
#include "sys/loop.h"
#include "sys/net.h"
#include "text/tree.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define EXIT_DEGRADED    1
#define EXIT_UNREACHABLE 3
#define HEAD_INDENT      2  /* of what of the first line goes on in a second */
#define LABEL_WIDTH      10 /* of "condition ", behind which a line goes on */
#define TEXT_MIN         16 /* characters of text in a line, however narrow the terminal */
#define TIMEOUT_S        30 /* a loop that hasn't turned for so long is dead (DOC-26) */

static const struct option options_table[] = {
	{.name = "state",
	 .kind = OPTION_TEXT,
	 .value = "DIR",
	 .help = "of better-compute up, to ask the bcd that runs there"},
	{.name = "check",
	 .kind = OPTION_FLAG,
	 .help = "exit 1 when a GPU is sick or gone, or a condition is there"},
	{.name = "timeout",
	 .kind = OPTION_PATIENCE,
	 .value = "D",
	 .help = "how long to wait for the answer, such as 10s (30s)",
	 .min = 1000,
	 .max = 3600 * 1000},
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_TEXT,
	 .value = "FORMAT",
	 .help = "table, wide or json (table)",
	 .choices = (const char *const[]){"table", "wide", "json", NULL}},
	{0},
};

/* --- asking --- */

struct asking {
	struct loop *loop;
	struct net_conn *conn;
	struct buf answer;
	struct error error;
	bool over, good;
};

static void over(struct asking *asking, bool good)
{
	asking->over = true;
	asking->good = good;
	loop_stop(asking->loop);
}

static void on_data(void *arg, const uint8_t *data, size_t length)
{
	struct asking *asking = arg;

	if (asking->answer.length + length > STATUS_MAX_SIZE) {
		error_set(&asking->error, ERROR_RESOURCES_EXHAUSTED, "the answer is too large");
		over(asking, false);
		return;
	}
	buf_add(&asking->answer, data, length);
}

static void on_close(void *arg, const struct error *error)
{
	struct asking *asking = arg;

	asking->conn = NULL;
	if (error)
		asking->error = *error;
	over(asking, !error);
}

static void on_connect(void *arg, struct net_conn *conn, const struct error *error)
{
	static const struct net_handlers handlers = {.on_data = on_data, .on_close = on_close};
	struct asking *asking = arg;

	if (!conn) {
		asking->error = *error;
		over(asking, false);
		return;
	}
	asking->conn = conn;
	net_start(conn, &handlers, asking);
}

static void on_timeout(void *arg)
{
	struct asking *asking = arg;

	error_set(&asking->error, ERROR_UNAVAILABLE, "bcd doesn't answer");
	over(asking, false);
}

static bool ask(const char *path, struct mono until, json_t **ret_tree, struct error *error)
{
	struct asking asking = {.loop = loop_create()};
	struct loop_timer *timer = loop_timer_create(asking.loop, on_timeout, &asking);
	bool ok;

	loop_timer_start(timer, mono_until(clock_mono(), until));
	net_connect_unix(asking.loop, path, on_connect, &asking);
	while (!asking.over)
		loop_run(asking.loop);
	if (asking.conn)
		net_close(asking.conn);
	loop_timer_destroy(timer);
	loop_run(asking.loop);
	loop_destroy(asking.loop);
	ok = asking.good && tree_parse(asking.answer.data, asking.answer.length, STATUS_MAX_SIZE,
				       path, ret_tree, &asking.error);
	buf_deinit(&asking.answer);
	if (ok)
		return true;
	*error = asking.error;
	return error_wrap(error, "ask the bcd that serves '%s'", path);
}

/* --- showing --- */

struct device_list VEC_BODY(json_t *); /* borrowed */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static bool true_of(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

/* "3 d 4 h" since then. */
static void age(char out[DURATION_TEXT_SIZE], const json_t *status, int64_t since_ms)
{
	int64_t ms = number_of(status, "now") - since_ms;

	duration_format_short(out, ms > 0 ? ms : 0);
}

static void show_head(const json_t *status, size_t width, struct buf *out)
{
	const json_t *gateway = json_object_get(status, "gateway");
	CLEANUP(buf) struct buf line = {0};
	char up[DURATION_TEXT_SIZE], since[DURATION_TEXT_SIZE];

	age(up, status, number_of(status, "startedAt"));
	age(since, status, number_of(gateway, "since"));
	buf_printf(&line, "bcd %s   %s   %s   up %s", text_of(status, "bcd"),
		   *text_of(status, "node") ? text_of(status, "node") : "not joined",
		   text_of(status, "hostname"), up);
	buf_printf(&line, "      gateway: %s %s", text_of(gateway, "state"), since);
	if (*text_of(gateway, "address"))
		buf_printf(&line, " (%s)", text_of(gateway, "address"));
	buf_printf(&line, "   api: %s", text_of(status, "api"));
	page_add_wrapped(out, buf_text(&line), HEAD_INDENT,
			 width > HEAD_INDENT ? width - HEAD_INDENT : SIZE_MAX);
}

static void show_source(const json_t *status, struct buf *out)
{
	const json_t *gateway = json_object_get(status, "gateway");

	if (*text_of(gateway, "error"))
		buf_printf(out, "  gateway: %s\n", text_of(gateway, "error"));
	if (true_of(status, "simulated"))
		buf_printf(out, "GPUs are simulated: %s\n", text_of(status, "simulatedReason"));
	else if (*text_of(status, "driver"))
		buf_printf(out, "driver    %s, read by %s\n", text_of(status, "driver"),
			   text_of(status, "gpuSource"));
}

/* What bcd gave up; a bcd of before says nothing of it. */
static void show_confinement(const json_t *status, struct buf *out)
{
	const json_t *confinement = json_object_get(status, "confinement"), *one;
	const json_t *done = json_object_get(confinement, "done");
	size_t i;

	if (!confinement)
		return;
	buf_add_text(out, "confined  ");
	json_array_foreach(done, i, one)
		buf_printf(out, "%s%s", i ? ", " : "", json_string_value(one));
	if (json_array_size(done) == 0)
		buf_add_text(out, "nothing");
	json_array_foreach(json_object_get(confinement, "missing"), i, one) buf_printf(
		out, "%s%s (%s)", i ? ", " : "; not ", text_of(one, "what"), text_of(one, "why"));
	buf_add_char(out, '\n');
}

/* What a released device waits for that nobody is known to hold; "" when others of its release are held. */
static const char *release_waits(const json_t *status, const json_t *device)
{
	const json_t *release, *releases = json_object_get(status, "releases");
	size_t i;

	json_array_foreach(releases, i, release)
	{
		if (!str_equal(text_of(release, "allocation"), text_of(device, "allocation")))
			continue;
		if (json_array_size(json_object_get(release, "holders")) > 0)
			return "";
		return str_equal(text_of(release, "why"), "waits for the kubelet to settle") ||
				       str_equal(text_of(release, "why"),
						 "the kubelet is to be asked")
			       ? "asking the kubelet"
			       : text_of(release, "why");
	}
	return "";
}

static void add_holders(struct table *table, const json_t *status, const json_t *device)
{
	const json_t *held_by = json_object_get(device, "heldBy");
	CLEANUP(buf) struct buf text = {0};
	const json_t *name;
	size_t i;

	json_array_foreach(held_by, i, name)
		buf_printf(&text, "%s%s", i ? ", " : "", json_string_value(name));
	if (text.length == 0 && str_equal(text_of(device, "state"), "releasing"))
		buf_add_text(&text, release_waits(status, device));
	table_cell(table, buf_text(&text));
}

static void add_allocation(struct table *table, const json_t *status, const json_t *device)
{
	char since[DURATION_TEXT_SIZE];

	if (!str_equal(text_of(device, "state"), "releasing")) {
		table_cell(table, text_of(device, "allocation"));
		return;
	}
	age(since, status, number_of(device, "releasingSince"));
	table_cellf(table, "%s releasing %s", text_of(device, "allocation"), since);
}

/* When the booking ends: how long it has yet, and the time itself. */
static void add_end(struct table *table, const json_t *status, const json_t *device)
{
	const struct wall now = {number_of(status, "now")}, end = {number_of(device, "endsAt")};
	char relative[WHEN_SIZE] = "", exact[WHEN_SIZE] = "";

	if (end.ms > 0) {
		when_format_relative(relative, end, now);
		when_format_exact(exact, end);
	}
	table_cell(table, relative);
	table_cell(table, exact);
}

/* GPUs in the order of their numbers, each one's parts together; what is gone comes last. */
static int compare_devices(const void *a, const void *b)
{
	const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
	const json_t *left_number = json_object_get(left, "gpuNumber");
	const json_t *right_number = json_object_get(right, "gpuNumber");
	int64_t l = left_number ? json_integer_value(left_number) : INT64_MAX;
	int64_t r = right_number ? json_integer_value(right_number) : INT64_MAX;

	return l != r ? (l > r) - (l < r) : strcmp(text_of(left, "atom"), text_of(right, "atom"));
}

static void sort_devices(const json_t *devices, struct device_list *list)
{
	for (size_t i = 0; i < json_array_size(devices); i++)
		*vec_push(list) = json_array_get(devices, i);
	vec_sort(list, compare_devices);
}

static void show_devices(const json_t *status, size_t width, bool wide, struct buf *out)
{
	static const struct table_column columns[] = {
		{"GPU", TABLE_RIGHT},
		{"DEVICE", TABLE_DEVICE},
		{"CLASS", 0},
		{"PROFILE", TABLE_WIDE},
		{"NUMA", TABLE_RIGHT | TABLE_SPARE},
		{"HEALTH", TABLE_FLEX},
		{"ALLOCATION", TABLE_ID | TABLE_SPARE},
		{"ENDS", TABLE_SPARSE},
		{"ENDS AT", TABLE_WIDE},
		{"HELD BY", TABLE_FLEX},
		{"VISIBLE AS", TABLE_WIDE},
	};
	struct device_list devices = {0};
	CLEANUP(table) struct table table;

	table_init(&table, columns, ARRAY_SIZE(columns));
	sort_devices(json_object_get(status, "devices"), &devices);
	for (size_t i = 0; i < devices.count; i++) {
		const json_t *device = devices.items[i];

		if (json_object_get(device, "gpuNumber"))
			table_cellf(&table, "%lld", (long long)number_of(device, "gpuNumber"));
		else
			table_cell(&table, "");
		table_cell(&table, text_of(device, "atom"));
		table_cell(&table, text_of(device, "class"));
		table_cell(&table, text_of(device, "profile"));
		if (number_of(device, "numa") >= 0)
			table_cellf(&table, "%lld", (long long)number_of(device, "numa"));
		else
			table_cell(&table, "");
		table_cell(&table, true_of(device, "healthy") ? "ok" : text_of(device, "cause"));
		add_allocation(&table, status, device);
		add_end(&table, status, device);
		add_holders(&table, status, device);
		table_cell(&table, text_of(device, "visibleDevice"));
	}
	vec_deinit(&devices);
	if (table_row_count(&table) > 0)
		table_render(&table, width, wide, out);
	else
		buf_add_text(out, "no GPUs\n");
}

/* What is wrong with a GPU once, however many parts it has. */
static void show_trouble(const json_t *status, struct buf *out)
{
	const json_t *device, *devices = json_object_get(status, "devices");
	char since[DURATION_TEXT_SIZE];
	int64_t shown = -1;
	size_t i;

	json_array_foreach(devices, i, device)
	{
		int64_t number = number_of(device, "gpuNumber");

		if (true_of(device, "healthy") || !*text_of(device, "next") || number == shown)
			continue;
		shown = number;
		buf_printf(out, "GPU %-5lld %s", (long long)number, text_of(device, "cause"));
		if (number_of(device, "unhealthySince") > 0) {
			age(since, status, number_of(device, "unhealthySince"));
			buf_printf(out, ", for %s", since);
		}
		buf_printf(out, ". %s\n", text_of(device, "next"));
	}
}

static bool has_condition(const json_t *status, const char *type)
{
	const json_t *condition, *conditions = json_object_get(status, "conditions");
	size_t i;

	json_array_foreach(conditions, i, condition)
	{
		if (str_equal(text_of(condition, "type"), type))
			return true;
	}
	return false;
}

/* Why no kubelet is served, when that has a reason of its own. */
static const char *why_nothing(const json_t *status)
{
	if (true_of(status, "servesKubelet"))
		return "";
	if (has_condition(status, CONDITION_NODE_UNKNOWN))
		return ": the cluster has no Node of this name (condition " CONDITION_NODE_UNKNOWN
		       ")";
	return ", and nothing will be: config.toml needs [host] units = false and [kubernetes] "
	       "node_name";
}

static void show_resources(const json_t *status, struct buf *out)
{
	const json_t *resource, *resources = json_object_get(status, "resources");
	char since[DURATION_TEXT_SIZE];
	size_t i;

	json_array_foreach(resources, i, resource)
	{
		buf_printf(out, "kubelet   %s: %lld offered, %lld healthy   ",
			   text_of(resource, "resource"), (long long)number_of(resource, "offered"),
			   (long long)number_of(resource, "healthy"));
		if (true_of(resource, "registered")) {
			age(since, status, number_of(resource, "since"));
			buf_printf(out, "registered %s ago\n", since);
		} else {
			buf_printf(out, "not registered: %s\n",
				   *text_of(resource, "error") ? text_of(resource, "error")
							       : text_of(resource, "why"));
		}
	}
	if (json_array_size(resources) == 0)
		buf_printf(out, "kubelet   nothing offered%s\n", why_nothing(status));
}

static bool is_same_holder(const json_t *a, const json_t *b)
{
	return str_equal(text_of(a, "name"), text_of(b, "name")) &&
	       str_equal(text_of(a, "uid"), text_of(b, "uid")) &&
	       str_equal(text_of(a, "state"), text_of(b, "state"));
}

/* It is listed once for each device: how often from here on; 0 when it was listed before. */
static size_t count_devices(const json_t *holders, size_t index)
{
	const json_t *holder = json_array_get(holders, index), *other;
	size_t i, count = 0;

	json_array_foreach(holders, i, other)
	{
		if (!is_same_holder(holder, other))
			continue;
		if (i < index)
			return 0;
		count++;
	}
	return count;
}

static void show_next(const json_t *status, const json_t *holder, struct buf *out)
{
	int64_t left_ms = number_of(holder, "deleteAt") - number_of(status, "now");
	char left[DURATION_TEXT_SIZE];

	if (!json_object_get(holder, "deleteAt"))
		return;
	if (left_ms <= 0) {
		buf_add_text(out, "; tried until the API server takes it");
		return;
	}
	duration_format_short(left, left_ms);
	buf_printf(out, "; %s in %s", true_of(holder, "forced") ? "forced" : "asked to go", left);
}

/* Who is in the way, and what is done to its pod next. */
static void show_holders(const json_t *status, const json_t *release, struct buf *out)
{
	const json_t *holder, *holders = json_object_get(release, "holders");
	size_t i;

	json_array_foreach(holders, i, holder)
	{
		size_t devices = count_devices(holders, i);

		if (devices == 0)
			continue;
		buf_printf(out, "    held by %s", text_of(holder, "name"));
		if (devices > 1)
			buf_printf(out, ", %zu devices", devices);
		buf_printf(out, "%s%s", *text_of(holder, "state") ? ": " : "",
			   text_of(holder, "state"));
		show_next(status, holder, out);
		buf_add_char(out, '\n');
	}
}

static void show_releases(const json_t *status, struct buf *out)
{
	const json_t *release, *releases = json_object_get(status, "releases");
	long long pending = 0, stuck = 0;
	size_t i;

	json_array_foreach(releases, i, release)
	{
		pending += !str_equal(text_of(release, "step"), "done");
		stuck += true_of(release, "stuck");
	}
	buf_printf(out, "releases  %lld pending", pending);
	if (stuck > 0)
		buf_printf(out, ", %lld stuck", stuck);
	buf_add_char(out, '\n');
	json_array_foreach(releases, i, release)
	{
		char since[DURATION_TEXT_SIZE];

		age(since, status, number_of(release, "since"));
		buf_printf(out, "  %s  %s, for %s\n", text_of(release, "allocation"),
			   text_of(release, "why"), since);
		show_holders(status, release, out);
	}
}

/* HostUnsupported says that all is as this machine's owner wants it. */
static void show_conditions(const json_t *status, bool wide, struct buf *out)
{
	const json_t *condition, *conditions = json_object_get(status, "conditions");
	char since[DURATION_TEXT_SIZE];
	size_t i;

	json_array_foreach(conditions, i, condition)
	{
		if (!wide && str_equal(text_of(condition, "type"), "HostUnsupported"))
			continue;
		age(since, status, number_of(condition, "since"));
		buf_printf(out, "condition %s %s: %s\n", text_of(condition, "type"), since,
			   *text_of(condition, "message") ? text_of(condition, "message")
							  : text_of(condition, "reason"));
	}
}

static size_t terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Goes on behind its label, or a bit further in where it is of the line above. */
static void add_line(struct buf *out, const char *line, size_t width)
{
	size_t indent = strspn(line, " "), label = indent > 0 ? indent : LABEL_WIDTH;
	size_t column = indent > 0 ? indent + HEAD_INDENT : LABEL_WIDTH;

	if (strlen(line) < label)
		label = strlen(line);
	buf_add(out, line, label);
	page_add_wrapped(out, line + label, column,
			 width == 0                  ? SIZE_MAX
			 : width < column + TEXT_MIN ? TEXT_MIN
						     : width - column);
}

/* Moves lines over, as wide as the terminal is. */
static void add_lines(struct buf *out, struct buf *lines, size_t width)
{
	CLEANUP(free) char *text = buf_take_text(lines);
	char *rest = text;

	for (char *line; (line = strsep(&rest, "\n")) && rest;)
		add_line(out, line, width);
}

static void show(const json_t *status, bool wide)
{
	CLEANUP(free) char *text = NULL;
	size_t width = terminal_width();
	struct buf out = {0}, lines = {0};

	show_head(status, width, &out);
	show_source(status, &lines);
	show_confinement(status, &lines);
	add_lines(&out, &lines, width);
	show_devices(status, width, wide, &out);
	show_trouble(status, &lines);
	show_resources(status, &lines);
	show_releases(status, &lines);
	show_conditions(status, wide, &lines);
	add_lines(&out, &lines, width);
	text = buf_take_text(&out);
	table_sanitize_lines(text);
	fputs(text, stdout);
}

/* What to do about a bcd that doesn't answer: who can't read the identity may still start one. */
static bool explain(const struct options *options, const struct config *config, struct error *error)
{
	CLEANUP(identity) struct identity identity = {0};
	struct error why;

	if (config->address_count == 0 || identity_load(config->data, &identity, &why) ||
	    why.os == EACCES || why.os == EPERM)
		return verb_start_hint(options, error);
	if (why.code == ERROR_NOT_FOUND)
		return error_hint(error, "This machine hasn't joined a control plane yet: bcd join "
					 "--token-file FILE, then bcd node");
	*error = why;
	return error_wrap(error, "no bcd answers, and none can start");
}

/* The bcd that serves this machine, else one that waits to; within one time for both, so that whoever
 * asks for a probe isn't kept longer than it was told. */
static bool ask_either(const struct options *options, const struct config *config,
		       json_t **ret_status, struct error *error)
{
	CLEANUP(free) char *path = identity_path(config->run, STATUS_SOCKET);
	CLEANUP(free) char *waiting = identity_path(config->run, LOCK_SOCKET);
	struct mono until =
		mono_after(clock_mono(), options_number(options, "timeout", TIMEOUT_S * 1000));
	struct error ignored;

	return ask(path, until, ret_status, error) ||
	       (net_unix_is_socket(waiting) && mono_until(clock_mono(), until) > 0 &&
		ask(waiting, until, ret_status, &ignored));
}

static void show_waiting(const json_t *status)
{
	CLEANUP(buf) struct buf line = {0}, out = {0};
	char since[DURATION_TEXT_SIZE];

	age(since, status, number_of(status, "since"));
	buf_printf(&line,
		   "bcd %s   waits (%s) for %s: another bcd serves this machine; this one takes "
		   "over when it ends",
		   text_of(status, "bcd"), since, text_of(status, "waitingFor"));
	add_line(&out, buf_text(&line), terminal_width());
	fputs(buf_text(&out), stdout);
}

static int run(const struct options *options)
{
	const char *output = options_text(options, "output");
	CLEANUP(config) struct config config = {0};
	CLEANUP(tree) json_t *status = NULL;
	CLEANUP(buf) struct buf text = {0};
	struct error error = {0};
	bool waits;

	if (!verb_config(options, true, &config, &error))
		return verb_fail(&error, EXIT_USAGE);
	if (!ask_either(options, &config, &status, &error)) {
		explain(options, &config, &error);
		return verb_fail(&error, EXIT_UNREACHABLE);
	}
	waits = json_object_get(status, "waitingFor");
	if (output && str_equal(output, "json")) {
		tree_dump_pretty(&text, status);
		fputs(buf_text(&text), stdout);
	} else if (waits) {
		show_waiting(status);
	} else {
		show(status, output && str_equal(output, "wide"));
	}
	return options_given(options, "check") && (waits || true_of(status, "degraded"))
		       ? EXIT_DEGRADED
		       : EXIT_DONE;
}

const struct verb STATUS_VERB = {
	.name = "status",
	.summary = "what the bcd of this machine is doing; also its liveness probe",
	.operands = "",
	.options = options_table,
	.more = "A bcd that waits for another one of the machine to end is alive, too.\n"
		"Exit status: 0 alive, 1 alive but something is wrong (only with --check), 2 "
		"usage,\n"
		"3 not reachable or not answering.\n\n"
		"Example:\n  bcd status\n  bcd status -o json --check\n",
	.run = run,
};
