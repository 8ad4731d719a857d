#include "cli/booking.h"
#include "base/duration.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/view.h"
#include "cli/when.h"

const char *const BOOKING_SAME[] = {"rack", "block", "nvlinkDomain", NULL};

/* --- the request --- */

static void add_devices(json_t *devices, const char *class, const char *profile, int64_t count)
{
	json_t *item = json_object();

	tree_set(item, "class", tree_string(class));
	if (profile)
		tree_set(item, "profile", tree_string(profile));
	tree_set(item, "count", json_integer(count));
	tree_append(devices, item);
}

/* "1g.10gb=2" */
static bool add_mig(json_t *devices, const char *text, struct error *error)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : strlen(text);
	CLEANUP(free) char *profile = mem_dup(text, length + 1);
	int64_t count = 0;

	profile[length] = '\0';
	for (const char *at = equals ? equals + 1 : ""; *at; at++) {
		if (*at < '0' || *at > '9' || count > BOOKING_MAX_DEVICES) {
			count = 0;
			break;
		}
		count = count * 10 + (*at - '0');
	}
	if (length == 0 || count < 1 || count > BOOKING_MAX_DEVICES) {
		error_set(error, ERROR_INVALID_INPUT, "--mig: '%s' is not PROFILE=N", text);
		return error_hint(error, "Write it as 1g.10gb=2, N from 1 to %d.",
				  BOOKING_MAX_DEVICES);
	}
	add_devices(devices, "gpu.mig", profile, count);
	return true;
}

static bool read_devices(const struct options *options, json_t *devices, struct error *error)
{
	const struct option_value *mig = options_value(options, "mig");

	if (options_given(options, "gpus"))
		add_devices(devices, "gpu", NULL, options_number(options, "gpus", 0));
	for (size_t i = 0; i < mig->list_count; i++) {
		if (!add_mig(devices, mig->list[i], error))
			return false;
	}
	if (options_given(options, "slots"))
		add_devices(devices, "gpu.slot", NULL, options_number(options, "slots", 0));
	if (json_array_size(devices) > 0)
		return true;
	error_set(error, ERROR_INVALID_INPUT, "which devices?");
	return error_hint(error, "Say --gpus N, --mig PROFILE=N or --slots N.");
}

static void add_resources(const struct options *options, json_t *body)
{
	static const struct {
		const char *option, *field;
	} amounts[] = {
		{"cpus", "vcpu"},
		{"memory", "memoryGiB"},
		{"hugepages-2mi", "hugepages2MiGiB"},
		{"hugepages-1gi", "hugepages1GiGiB"},
	};
	json_t *resources = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(amounts); i++)
		if (options_given(options, amounts[i].option))
			tree_set(resources, amounts[i].field,
				 json_integer(options_number(options, amounts[i].option, 0)));
	if (json_object_size(resources) > 0)
		tree_set(body, "resources", json_incref(resources));
	json_decref(resources);
}

static bool add_start(struct cli *cli, json_t *body, struct error *error)
{
	const char *text = options_text(cli->options, "start");
	char start[WHEN_SIZE];
	struct wall time;

	if (!text)
		return true;
	if (!when_parse_start(text, "--start", cli->now, &time, error))
		return false;
	when_format(start, time);
	tree_set(body, "startAt", tree_string(start));
	return true;
}

/* --nodes N --same rack: the devices are those of each node (GANG-8). */
static void add_gang(const struct options *options, json_t *body)
{
	const char *same = options_text(options, "same");
	json_t *gang, *topology;

	if (!options_given(options, "nodes"))
		return;
	gang = json_object();
	tree_set(body, "gang", gang);
	tree_set(gang, "nodes", json_integer(options_number(options, "nodes", 1)));
	if (!same)
		return;
	topology = json_object();
	tree_set(gang, "topology", topology);
	tree_set(topology, "same", tree_string(same));
}

bool booking_check(struct cli *cli, struct error *error)
{
	const struct options *options = cli->options;
	CLEANUP(tree) json_t *devices = json_array();

	if (!read_devices(options, devices, error))
		return false;
	if (!options_given(options, "for")) {
		error_set(error, ERROR_INVALID_INPUT, "for how long?");
		return error_hint(error, "Say --for 8h, from 1m to 366d.");
	}
	if (!options_given(options, "kubernetes")) {
		error_set(error, ERROR_INVALID_INPUT, "where shall the devices go?");
		return error_hint(error,
				  "Say --kubernetes: the node's kubelet offers them to pods.");
	}
	if (options_given(options, "same") && !options_given(options, "nodes")) {
		error_set(error, ERROR_INVALID_INPUT, "--same needs --nodes");
		return error_hint(error, "Say how many nodes shall stand together: --nodes 2");
	}
	return true;
}

bool booking_body(struct cli *cli, json_t **ret_body, struct error *error)
{
	const struct options *options = cli->options;
	CLEANUP(tree) json_t *body = json_object();
	json_t *devices = json_array();
	const char *tenant, *pool;

	tree_set(body, "devices", devices);
	if (!read_devices(options, devices, error) || !add_start(cli, body, error) ||
	    !cli_tenant(cli, &tenant, error) || !cli_pool(cli, &pool, error))
		return false;
	tree_set(body, "tenantId", tree_string(tenant));
	tree_set(body, "poolId", tree_string(pool));
	tree_set(body, "duration", tree_string(options_text(options, "for")));
	tree_set(body, "binding", tree_string("kubernetes"));
	add_resources(options, body);
	add_gang(options, body);
	if (options_given(options, "spot"))
		tree_set(body, "spot", json_true());
	*ret_body = TAKE(body);
	return true;
}

/* --- preview --- */

/* From when until when it would be: "now" is when it is booked. */
static void print_times(struct cli *cli, const json_t *body)
{
	const char *duration = view_text(body, "duration"), *start = view_text(body, "startAt");
	CLEANUP(tree) json_t *times = json_object();
	struct wall begins = cli->now;
	struct error ignored; /* the API took it */
	char text[WHEN_SIZE];
	int64_t ms;

	if (view_start_is_ahead(body, cli->now)) {
		(void)when_parse(start, &begins);
		output_line("  starts    %s", view_when(&cli->arena, body, "startAt", cli->now));
	}
	if (!duration || !duration_parse(duration, "duration", 0, BOOKING_MAX_MS, &ms, &ignored))
		return;
	when_format(text, (struct wall){begins.ms + ms});
	tree_set(times, "endAt", tree_string(text));
	output_line("  ends      %s", view_when(&cli->arena, times, "endAt", cli->now));
}

/* "now", or "then" when it is asked to start later. */
static const char *when_asked(struct cli *cli, const json_t *body)
{
	return view_start_is_ahead(body, cli->now) ? "then" : "now";
}

static void print_fit(struct cli *cli, const json_t *answer, const json_t *body)
{
	size_t index, i;
	json_t *node, *device;

	output_line("fits %s: %s", when_asked(cli, body), view_booking(&cli->arena, body));
	json_array_foreach(json_object_get(answer, "nodes"), index, node)
	{
		CLEANUP(buf) struct buf line = {0};
		const char *id = view_text(node, "id");
		json_array_foreach(json_object_get(node, "devices"), i, device)
		{
			const char *atom = json_is_string(device) ? json_string_value(device)
								  : view_text(device, "atom");
			if (atom)
				buf_printf(&line, " %s", view_atom(&cli->arena, atom));
		}
		output_line("  on        %s %s", id ? id : "?", buf_text(&line));
	}
	print_times(cli, body);
}

static void print_misfit(struct cli *cli, const json_t *answer, const json_t *body)
{
	const json_t *reasons = json_object_get(answer, "reasons");
	CLEANUP(page) struct page page = {0};
	CLEANUP(buf) struct buf text = {0};

	output_line("does not fit %s: %s", when_asked(cli, body), view_booking(&cli->arena, body));
	page_line(&page, "first fit", view_when(&cli->arena, answer, "firstFitAt", cli->now));
	for (size_t i = 0; i < json_array_size(reasons); i++)
		page_line(&page, i ? "" : "why not",
			  view_reason(&cli->arena, reasons, i, json_object_get(body, "devices")));
	page_render(&page, 2, output_width(), &text);
	output_text(&text);
}

const char *booking_first_fit(struct cli *cli, const json_t *body)
{
	CLEANUP(tree) json_t *answer = NULL;
	struct error ignored; /* a line less */

	return api_call(cli->api, "POST", "/v1/capacity/preview", body, &answer, &ignored)
		       ? view_when(&cli->arena, answer, "firstFitAt", cli->now)
		       : NULL;
}

const char *booking_first_fit_of(struct cli *cli, const json_t *reservation)
{
	static const char *const FIELDS[] = {"tenantId", "poolId",    "devices", "duration",
					     "startAt",  "resources", "spot",    "binding"};
	CLEANUP(tree) json_t *body = json_object();

	if (json_object_get(reservation, "gang"))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(FIELDS); i++) {
		json_t *value = json_object_get(reservation, FIELDS[i]);
		if (value)
			json_object_set(body, FIELDS[i], value);
	}
	return booking_first_fit(cli, body);
}

bool booking_preview(struct cli *cli, const json_t *body, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;

	if (!api_call(cli->api, "POST", "/v1/capacity/preview", body, &answer, error))
		return false;
	bool fits = json_is_true(json_object_get(answer, "fits"));
	if (!fits)
		cli->exit_status = error_exit_status(ERROR_RESOURCES_EXHAUSTED);
	else
		cli_would_change(cli); /* when it is asked by reserve --dry-run */
	if (output_raw(cli, answer))
		return true;
	if (fits)
		print_fit(cli, answer, body);
	else
		print_misfit(cli, answer, body);
	noun_note_simulated(cli, NULL);
	return true;
}
