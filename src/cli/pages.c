#include "cli/pages.h"
#include "cli/booking.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/view.h"

#define INDENT 2

static void print(const struct page *page, size_t indent)
{
	CLEANUP(buf) struct buf text = {0};

	page_render(page, indent, output_width(), &text);
	output_text(&text);
}

/* A booking that waits is told in the words of one that has no place yet. */
static const char *label_of(const char *type)
{
	return !type ? "?" : str_equal(type, "Waiting") ? "waits" : type;
}

static void add_conditions(struct cli *cli, struct page *page, const json_t *conditions)
{
	size_t index;
	json_t *item;

	json_array_foreach(conditions, index, item)
	{
		const char *type = view_text(item, "type"), *message = view_text(item, "message");
		const char *reason = view_text(item, "reason");
		const char *since = view_relative(&cli->arena, item, "since", cli->now);
		const char *next = view_text(item, "next");
		const char *text = message && message[0] ? message : reason;
		bool sentence = text && str_ends(text, ".");

		/* All is as this machine's owner wants it. */
		if (cli->output != CLI_WIDE && type && str_equal(type, "HostUnsupported"))
			continue;
		page_linef(page, label_of(type), "%s%s%s%s%s%s", text ? text : "true",
			   next ? " " : "", next ? next : "",
			   !since     ? ""
			   : sentence ? " (Since "
				      : " (since ",
			   since ? since : "",
			   !since     ? ""
			   : sentence ? ".)"
				      : ")");
	}
}

static void add_named(struct page *page, const char *label, const char *name, const char *id)
{
	if (id && name && !str_equal(id, name))
		page_linef(page, label, "%s (%s)", name, id);
	else
		page_line(page, label, id);
}

static void add_name(struct cli *cli, struct page *page, enum noun_kind kind, const char *label,
		     const json_t *item, const char *key)
{
	CLEANUP(noun_view) struct noun_view view = {.cli = cli};

	add_named(page, label, noun_view_name(&view, kind, item, key), view_text(item, key));
}

/* --- a reservation --- */

const char *page_pods_ask(struct arena *arena, const json_t *reservation)
{
	const json_t *resources = json_object_get(reservation, "resources");
	int64_t cpus = view_number(resources, "vcpu"), memory = view_number(resources, "memoryMiB");
	const char *state = view_text(reservation, "state");
	bool whole = memory % 1024 == 0;
	static const char *const CLASSES[] = {"gpu", "gpu.mig", "gpu.slot"};
	CLEANUP(buf) struct buf out = {0};
	const char *separator = "";
	size_t index;
	json_t *item;

	buf_add_text(&out, "resources: {limits: {");
	for (size_t i = 0; i < ARRAY_SIZE(CLASSES); i++) {
		int64_t count = 0;
		json_array_foreach(json_object_get(reservation, "devices"), index, item)
		{
			const char *class = view_text(item, "class");
			if (class && str_equal(class, CLASSES[i]))
				count += view_number(item, "count");
		}
		if (count == 0)
			continue;
		buf_printf(&out, "%sbcd.dev/%s: %lld", separator, CLASSES[i], (long long)count);
		separator = ", ";
	}
	if (cpus > 0)
		buf_printf(&out, ", cpu: %lld", (long long)cpus);
	if (memory > 0)
		buf_printf(&out, ", memory: %lld%s", (long long)(whole ? memory / 1024 : memory),
			   whole ? "Gi" : "Mi");
	if (view_number(resources, "hugepages2MiGiB") > 0)
		buf_printf(&out, ", hugepages-2Mi: %lldGi",
			   (long long)view_number(resources, "hugepages2MiGiB"));
	if (view_number(resources, "hugepages1GiGiB") > 0)
		buf_printf(&out, ", hugepages-1Gi: %lldGi",
			   (long long)view_number(resources, "hugepages1GiGiB"));
	buf_add_text(&out, "}}");
	if (state && str_equal(state, "pending") && memory == 0)
		buf_add_text(&out, "; cpu and memory too, once it is placed");
	return arena_strdup(arena, buf_text(&out));
}

static const struct table_column ALLOCATION_COLUMNS[] = {{"ALLOCATION", TABLE_ID},
							 {"NODE", TABLE_ID},
							 {"STATE", 0},
							 {"CLASS", 0},
							 {"DEVICE", TABLE_DEVICE}};

static void print_allocations(const struct cli *cli, const json_t *allocations)
{
	CLEANUP(table) struct table table;
	size_t index, i;
	json_t *allocation, *device;

	table_init(&table, ALLOCATION_COLUMNS, ARRAY_SIZE(ALLOCATION_COLUMNS));
	json_array_foreach(allocations, index, allocation)
	{
		json_array_foreach(json_object_get(allocation, "devices"), i, device)
		{
			table_cell(&table, view_text(allocation, "id"));
			table_cell(&table, view_text(allocation, "nodeId"));
			table_cell(&table, view_text(allocation, "state"));
			table_cell(&table, view_text(device, "class"));
			table_cell(&table, view_text(device, "atom"));
		}
	}
	if (table_row_count(&table) == 0)
		return;
	puts("");
	output_table(cli, &table);
}

/* Has a node ever bound it? Its time alone starts nothing. */
static bool begun(const json_t *reservation)
{
	const char *state = view_text(reservation, "state");
	size_t index;
	json_t *item;

	json_array_foreach(json_object_get(reservation, "allocations"), index, item)
	{
		if (view_text(item, "boundAt"))
			return true;
	}
	return !state || (!view_terminal(state) && !str_equal(state, "pending") &&
			  !str_equal(state, "placed"));
}

/* When it starts, how long it lasts, when it ends: one line each, as far as it has come. */
static void add_times(struct cli *cli, struct page *page, const json_t *item, bool over)
{
	struct arena *arena = &cli->arena;
	const char *given = view_when(arena, item, "releaseRequestedAt", cli->now);
	const char *ends = view_when(arena, item, "endAt", cli->now);

	page_line(page, "for", view_text(item, "duration"));
	if (view_start_is_ahead(item, cli->now))
		page_line(page, over ? "was to start" : "starts",
			  view_when(arena, item, "startAt", cli->now));
	else
		page_line(page,
			  begun(item) ? "started"
			  : over      ? "was due"
				      : "due",
			  view_when(arena, item, "startAt", cli->now));
	page_line(page, over ? "ended" : "ends", over && given ? given : ends);
	page_line(page, "made", view_when(arena, item, "createdAt", cli->now));
}

/* Each node once, in the order of the allocations. */
static void add_nodes(struct page *page, const json_t *reservation)
{
	const json_t *allocations = json_object_get(reservation, "allocations");
	CLEANUP(buf) struct buf nodes = {0};
	size_t index;
	json_t *item;

	json_array_foreach(allocations, index, item)
	{
		if (view_is_place(reservation, index))
			buf_printf(&nodes, "%s%s", nodes.length ? ", " : "",
				   view_text(item, "nodeId"));
	}
	page_line(page, "nodes", nodes.length ? buf_text(&nodes) : NULL);
}

static void add_place(struct cli *cli, struct page *page, const json_t *item)
{
	const json_t *gang = json_object_get(item, "gang");
	const char *same = view_text(json_object_get(gang, "topology"), "same");

	page_line(page, "devices", view_booking(&cli->arena, item));
	if (same)
		page_linef(page, "together", "all %lld nodes in one %s",
			   (long long)view_number(gang, "nodes"), same);
	add_nodes(page, item);
	add_name(cli, page, NOUN_POOL, "pool", item, "poolId");
	add_name(cli, page, NOUN_TENANT, "tenant", item, "tenantId");
}

void page_of_reservation(struct cli *cli, const json_t *item)
{
	const char *state = view_text(item, "state"), *id = view_text(item, "id");
	const json_t *reasons = json_object_get(item, "reasons");
	bool pending = state && str_equal(state, "pending"), over = state && view_terminal(state);
	CLEANUP(page) struct page page = {0};

	output_line("%s  %s", id ? id : "?", state ? view_state(item) : "?");
	if (json_array_size(reasons) == 0 || !over) /* else they say it */
		page_line(&page, "because", view_text(item, "stateReason"));
	add_place(cli, &page, item);
	add_times(cli, &page, item, over);
	/* What kept a reservation waiting is past when it has a place. */
	for (size_t i = 0; (pending || over) && i < json_array_size(reasons); i++)
		page_line(&page,
			  i         ? ""
			  : pending ? "waits"
				    : "why",
			  view_reason(&cli->arena, reasons, i, json_object_get(item, "devices")));
	if (pending)
		page_line(&page, "first fit", booking_first_fit_of(cli, item));
	add_conditions(cli, &page, json_object_get(item, "conditions"));
	if (!over)
		page_line(&page, "pods ask", page_pods_ask(&cli->arena, item));
	print(&page, INDENT);
	print_allocations(cli, json_object_get(item, "allocations"));
	noun_note_simulated(cli, NULL);
}

/* --- whoever asks --- */

void page_of_principal(const json_t *item)
{
	CLEANUP(page) struct page page = {0};

	add_named(&page, "key", view_text(item, "keyName"), view_text(item, "keyId"));
	add_named(&page, "tenant", view_text(item, "tenantName"), view_text(item, "tenantId"));
	page_line(&page, "role", view_text(item, "role"));
	print(&page, 0);
}

/* --- a node --- */

static const struct table_column DEVICE_COLUMNS[] = {{"DEVICE", TABLE_DEVICE},
						     {"CLASS", 0},
						     {"HEALTH", TABLE_FLEX},
						     {"RESERVATION", TABLE_ID},
						     {"ALLOCATION", TABLE_ID | TABLE_WIDE}};

/* "96 (32 booked)"; nothing of what it hasn't. */
static void add_host(struct page *page, const char *label, const json_t *node, const char *field,
		     const char *unit)
{
	int64_t all = view_number(json_object_get(node, "host"), field);
	int64_t booked = view_number(json_object_get(node, "hostBooked"), field);

	if (all > 0 || booked > 0)
		page_linef(page, label, "%lld%s (%lld%s booked)", (long long)all, unit,
			   (long long)booked, unit);
}

static void print_devices(const struct cli *cli, const json_t *devices)
{
	CLEANUP(table) struct table table;
	size_t index;
	json_t *item;

	table_init(&table, DEVICE_COLUMNS, ARRAY_SIZE(DEVICE_COLUMNS));
	json_array_foreach(devices, index, item)
	{
		const char *class = view_text(item, "class"), *profile = view_text(item, "profile");
		const char *cause = view_text(item, "cause");
		bool healthy = json_is_true(json_object_get(item, "healthy"));
		table_cell(&table, view_text(item, "atom"));
		table_cellf(&table, "%s%s%s", class ? class : "?", profile ? " " : "",
			    profile ? profile : "");
		table_cell(&table, healthy ? "ok" : cause ? cause : "unhealthy");
		table_cell(&table, view_text(item, "reservationId"));
		table_cell(&table, view_text(item, "allocationId"));
	}
	if (table_row_count(&table) == 0)
		return;
	puts("");
	output_table(cli, &table);
}

void page_of_node(struct cli *cli, const json_t *item)
{
	const char *state = view_text(item, "state"), *id = view_text(item, "id");
	CLEANUP(page) struct page page = {0};

	output_line("%s  %s, %s", id ? id : "?", state ? state : "?",
		    view_contact(&cli->arena, item, cli->now));
	page_line(&page, "hostname", view_text(item, "hostname"));
	page_line(&page, "as Node", view_text(item, "kubernetesNodeName"));
	page_line(&page, "GPUs", view_gpus(&cli->arena, item));
	page_line(&page, "sick", view_sick_gpus(&cli->arena, item));
	page_line(&page, "gone", view_gone_devices(&cli->arena, item));
	add_host(&page, "vCPU", item, "vcpu", "");
	add_host(&page, "memory", item, "memoryGiB", " GiB");
	add_host(&page, "pages 2Mi", item, "hugepages2MiGiB", " GiB");
	add_host(&page, "pages 1Gi", item, "hugepages1GiGiB", " GiB");
	if (json_is_true(json_object_get(item, "spot")))
		page_line(&page, "spot", "takes only reservations made with --spot");
	add_name(cli, &page, NOUN_POOL, "pool", item, "poolId");
	add_name(cli, &page, NOUN_SITE, "site", item, "siteId");
	add_name(cli, &page, NOUN_TENANT, "tenant", item, "tenantId");
	page_line(&page, "trust", view_text(item, "trust"));
	page_line(&page, "bcd", view_text(item, "bcdVersion"));
	page_line(&page, "labels", view_map(&cli->arena, json_object_get(item, "labels")));
	add_conditions(cli, &page, json_object_get(item, "conditions"));
	page_linef(&page, "spec", "%lld stored of %lld",
		   (long long)view_number(item, "storedGeneration"),
		   (long long)view_number(item, "specGeneration"));
	page_line(&page, "joined", view_when(&cli->arena, item, "createdAt", cli->now));
	print(&page, INDENT);
	print_devices(cli, json_object_get(item, "devices"));
}
