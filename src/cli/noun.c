#include "cli/noun.h"
#include "base/id.h"
#include "base/vec.h"
#include "cli/output.h"
#include "cli/view.h"
#include "text/suggest.h"

#define MIN_PREFIX  4 /* characters of an id proper that may stand for it */
#define MATCH_SHOWN 4 /* ids listed for an ambiguous text */

static const char *created(const struct noun_view *view, const json_t *item)
{
	return view_relative(&view->cli->arena, item, "createdAt", view->cli->now);
}

static const char *pool_name(const struct noun_view *view, const json_t *item)
{
	const char *id = view_text(item, "poolId");
	const char *name = id ? view_text(view->pools, id) : NULL;

	return name ? name : id;
}

static const struct table_column TENANT_COLUMNS[] = {{"NAME", 0}, {"ID", TABLE_ID}, {"CREATED", 0}};

static void tenant_row(const struct noun_view *view, const json_t *item)
{
	table_cell(view->table, view_text(item, "name"));
	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, created(view, item));
}

static const struct table_column SITE_COLUMNS[] = {{"NAME", 0},
						   {"ID", TABLE_ID},
						   {"KIND", 0},
						   {"TENANT", TABLE_ID | TABLE_WIDE},
						   {"CREATED", 0}};

static void site_row(const struct noun_view *view, const json_t *item)
{
	table_cell(view->table, view_text(item, "name"));
	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, view_text(item, "kind"));
	table_cell(view->table, view_text(item, "tenantId"));
	table_cell(view->table, created(view, item));
}

static const struct table_column POOL_COLUMNS[] = {{"NAME", 0},
						   {"ID", TABLE_ID},
						   {"STATE", 0},
						   {"GPU", 0},
						   {"NODES", TABLE_RIGHT},
						   {"VERSION", TABLE_RIGHT | TABLE_WIDE},
						   {"SITE", TABLE_ID | TABLE_WIDE},
						   {"TENANT", TABLE_ID | TABLE_WIDE},
						   {"CREATED", 0}};

static void pool_row(const struct noun_view *view, const json_t *item)
{
	table_cell(view->table, view_text(item, "name"));
	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, view_text(item, "state"));
	table_cell(view->table, view_text(item, "gpuModel"));
	table_cellf(view->table, "%lld", (long long)view_number(item, "nodes"));
	table_cellf(view->table, "%lld", (long long)view_number(item, "version"));
	table_cell(view->table, view_text(item, "siteId"));
	table_cell(view->table, view_text(item, "tenantId"));
	table_cell(view->table, created(view, item));
}

static const struct table_column JOIN_TOKEN_COLUMNS[] = {
	{"ID", TABLE_ID}, {"POOL", 0},   {"STATE", 0},  {"USES", TABLE_RIGHT},
	{"EXPIRES", 0},   {"HOSTED", 0}, {"CREATED", 0}};

static void join_token_row(const struct noun_view *view, const json_t *item)
{
	struct cli *cli = view->cli;

	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, pool_name(view, item));
	table_cell(view->table, view_text(item, "state"));
	table_cellf(view->table, "%lld/%lld", (long long)view_number(item, "uses"),
		    (long long)view_number(item, "maxUses"));
	table_cell(view->table, view_relative(&cli->arena, item, "expiresAt", cli->now));
	table_cell(view->table, view_text(item, "hosted"));
	table_cell(view->table, created(view, item));
}

static const struct table_column NODE_COLUMNS[] = {
	{"ID", TABLE_ID},     {"HOSTNAME", TABLE_FLEX}, {"STATE", 0},        {"POOL", 0},
	{"GPUS", TABLE_FLEX}, {"BOOKED", TABLE_RIGHT},  {"LINK", 0},         {"TRUST", TABLE_WIDE},
	{"BCD", TABLE_WIDE},  {"SPEC", TABLE_WIDE},     {"NOTE", TABLE_FLEX}};

static size_t booked_devices(const json_t *node)
{
	size_t index, count = 0;
	json_t *item;

	json_array_foreach(json_object_get(node, "devices"), index, item) count +=
		view_text(item, "reservationId") != NULL;
	return count;
}

static const char *joined(struct arena *arena, const char *first, const char *second)
{
	return first && second ? arena_printf(arena, "%s · %s", first, second)
	       : first         ? first
			       : second;
}

static void node_row(const struct noun_view *view, const json_t *item)
{
	struct arena *arena = &view->cli->arena;
	const char *seen = view_relative(arena, item, "lastSeenAt", view->cli->now);
	const char *note = view_conditions(arena, json_object_get(item, "conditions"));
	const char *sick = view_sick_gpus(arena, item);
	bool connected = json_is_true(json_object_get(item, "connected"));

	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, view_text(item, "hostname"));
	table_cell(view->table, view_text(item, "state"));
	table_cell(view->table, pool_name(view, item));
	table_cell(view->table, view_gpus(arena, item));
	table_cellf(view->table, "%zu", booked_devices(item));
	table_cell(view->table, connected ? "connected"
				: seen    ? arena_printf(arena, "seen %s", seen)
					  : "never seen");
	table_cell(view->table, view_text(item, "trust"));
	table_cell(view->table, view_text(item, "bcdVersion"));
	table_cellf(view->table, "%lld/%lld", (long long)view_number(item, "storedGeneration"),
		    (long long)view_number(item, "specGeneration"));
	table_cell(view->table,
		   joined(arena, view_gone_devices(arena, item), joined(arena, sick, note)));
}

static const struct table_column RESERVATION_COLUMNS[] = {
	{"ID", TABLE_ID},        {"STATE", 0},        {"POOL", 0},
	{"DEVICES", 0},          {"NODES", TABLE_ID}, {"ENDS", 0},
	{"ENDS AT", TABLE_WIDE}, {"NOTE", TABLE_FLEX}};

static void reservation_row(const struct noun_view *view, const json_t *item)
{
	struct arena *arena = &view->cli->arena;
	const char *state = view_text(item, "state");
	const char *note = view_conditions(arena, json_object_get(item, "conditions"));
	const json_t *devices = json_object_get(item, "devices");

	/* What kept a reservation waiting is past when it has a place or has ended. */
	if (!note && state && str_equal(state, "pending"))
		note = view_reasons(arena, json_object_get(item, "reasons"), devices);
	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, state);
	table_cell(view->table, pool_name(view, item));
	table_cell(view->table, view_devices(arena, devices));
	table_cell(view->table, view_nodes(arena, item));
	table_cell(view->table, view_ends(arena, item, view->cli->now));
	table_cell(view->table, view_ends_exact(arena, item));
	table_cell(view->table, note);
}

static const struct table_column KEY_COLUMNS[] = {{"NAME", 0},  {"ID", TABLE_ID},
						  {"ROLE", 0},  {"TENANT", TABLE_ID},
						  {"STATE", 0}, {"CREATED", 0}};

static void key_row(const struct noun_view *view, const json_t *item)
{
	table_cell(view->table, view_text(item, "name"));
	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, view_text(item, "role"));
	table_cell(view->table, view_text(item, "tenantId"));
	table_cell(view->table, view_text(item, "revokedAt") ? "revoked" : "live");
	table_cell(view->table, created(view, item));
}

#define COLUMNS(columns) columns, ARRAY_SIZE(columns)

static const struct noun NOUNS[NOUN_COUNT] = {
	[NOUN_TENANT] = {"tenant", "tenants", "/v1/tenants", "ten", "name",
			 "better-compute tenants create NAME", false, COLUMNS(TENANT_COLUMNS),
			 tenant_row},
	[NOUN_SITE] = {"site", "sites", "/v1/sites", "site", "name",
		       "better-compute sites create NAME", false, COLUMNS(SITE_COLUMNS), site_row},
	[NOUN_POOL] = {"pool", "pools", "/v1/pools", "pool", "name",
		       "better-compute pools create NAME --site SITE --gpu-model MODEL", false,
		       COLUMNS(POOL_COLUMNS), pool_row},
	[NOUN_JOIN_TOKEN] = {"join token", "join tokens", "/v1/join-tokens", "jt", NULL,
			     "better-compute join-tokens create --out FILE", true,
			     COLUMNS(JOIN_TOKEN_COLUMNS), join_token_row},
	[NOUN_NODE] = {"node", "nodes", "/v1/nodes", "node", "hostname",
		       "bcd join on the machine, with a join token", true, COLUMNS(NODE_COLUMNS),
		       node_row},
	[NOUN_RESERVATION] = {"reservation", "reservations", "/v1/reservations", "rsv", NULL,
			      "better-compute reserve --gpus 1 --for 8h --kubernetes", true,
			      COLUMNS(RESERVATION_COLUMNS), reservation_row},
	[NOUN_KEY] = {"key", "keys", "/v1/keys", "key", "name",
		      "better-compute keys create NAME --role user --out FILE", false,
		      COLUMNS(KEY_COLUMNS), key_row},
};

const struct noun *noun_get(enum noun_kind kind)
{
	assert((size_t)kind < NOUN_COUNT);
	return &NOUNS[kind];
}

static const char *item_name(const struct noun *noun, const json_t *item)
{
	return noun->name_key ? view_text(item, noun->name_key) : NULL;
}

/* What people paste from a table may end in "…". */
static size_t prefix_length(const char *text)
{
	size_t length = strlen(text);

	if (str_ends(text, "…"))
		return length - strlen("…");
	while (length && text[length - 1] == '.')
		length--;
	return length;
}

/* Text may be an id's beginning, with or without "pool_". A slip of the hand names nothing, also
 * where there is only one thing to name. */
static bool begins_id(const struct noun *noun, const char *id, const char *text, size_t length)
{
	size_t prefix = strlen(noun->prefix) + 1;

	if (length >= prefix && strncmp(id, text, prefix) == 0) {
		text += prefix;
		length -= prefix;
	}
	return length >= MIN_PREFIX && strlen(id) > prefix &&
	       strncmp(id + prefix, text, length) == 0;
}

/* "better-compute join-tokens": the path's end is the command's noun. */
static void hint_listing(const struct noun *noun, struct error *error)
{
	error_hint(error, "All %s: better-compute %s", noun->plural, strrchr(noun->path, '/') + 1);
}

/* An id of another noun names nothing here; NULL when the text is none. */
static const struct noun *noun_of_id(const char *text)
{
	for (size_t i = 0; i < NOUN_COUNT; i++) {
		if (id_valid(text, NOUNS[i].prefix))
			return &NOUNS[i];
	}
	return NULL;
}

static bool not_found(const struct noun *noun, const json_t *items, const char *text,
		      struct error *error)
{
	VEC(const char *) names = {0};
	size_t index;
	json_t *item;

	json_array_foreach(items, index, item)
	{
		const char *name = item_name(noun, item);
		if (name)
			*vec_push(&names) = name;
	}
	const struct noun *other = noun_of_id(text);
	if (other && other != noun) {
		vec_deinit(&names);
		error_set(error, ERROR_NOT_FOUND, "'%s' is a %s, not a %s", text, other->word,
			  noun->word);
		hint_listing(noun, error);
		return false;
	}
	const char *nearest = suggest_nearest(text, names.items, names.count);
	error_set(error, ERROR_NOT_FOUND, "%s '%s' not found", noun->word, text);
	if (nearest)
		error_set(error, ERROR_NOT_FOUND, "%s '%s' not found (did you mean '%s'?)",
			  noun->word, text, nearest);
	else if (json_array_size(items) == 0)
		error_hint(error, "There are no %s yet. Make one: %s", noun->plural, noun->make);
	else
		hint_listing(noun, error);
	vec_deinit(&names);
	return false;
}

static bool ambiguous(const struct noun *noun, const json_t *const *found, size_t count,
		      const char *text, struct error *error)
{
	CLEANUP(buf) struct buf ids = {0};

	for (size_t i = 0; i < count && i < MATCH_SHOWN; i++)
		buf_printf(&ids, "%s%s", i ? ", " : "", view_text(found[i], "id"));
	if (count > MATCH_SHOWN)
		buf_add_text(&ids, ", …");
	error_set(error, ERROR_INVALID_INPUT, "%s '%s' could be %zu: %s", noun->word, text, count,
		  buf_text(&ids));
	return error_hint(error, "Write more of the id.");
}

bool noun_match(const struct noun *noun, const json_t *items, const char *text, const char **ret_id,
		struct error *error)
{
	VEC(const json_t *) by_name = {0}, by_id = {0};
	size_t index, length = prefix_length(text);
	json_t *item;
	bool ok = true;

	json_array_foreach(items, index, item)
	{
		const char *id = view_text(item, "id"), *name = item_name(noun, item);
		if (id && name && str_equal(name, text))
			*vec_push(&by_name) = item;
		if (id && begins_id(noun, id, text, length))
			*vec_push(&by_id) = item;
	}
	/* A whole name wins over the beginning of an id. */
	size_t count = by_name.count ? by_name.count : by_id.count;
	const json_t *const *found = by_name.count ? by_name.items : by_id.items;
	if (count == 0)
		ok = not_found(noun, items, text, error);
	else if (count > 1)
		ok = ambiguous(noun, found, count, text, error);
	else
		*ret_id = view_text(found[0], "id");
	vec_deinit(&by_name);
	vec_deinit(&by_id);
	return ok;
}

bool noun_resolve(struct cli *cli, enum noun_kind kind, const char *text, const char **ret_id,
		  struct error *error)
{
	const struct noun *noun = noun_get(kind);
	CLEANUP(tree) json_t *items = NULL;
	const char *id;

	if (id_valid(text, noun->prefix)) {
		*ret_id = text;
		return true;
	}
	if (!api_list(cli->api, noun->path, NULL, &items, error) ||
	    !noun_match(noun, items, text, &id, error))
		return false;
	*ret_id = arena_strdup(&cli->arena, id);
	return true;
}

bool noun_fetch(struct cli *cli, enum noun_kind kind, const char *text, json_t **ret_item,
		struct error *error)
{
	const char *id, *path;

	if (!noun_resolve(cli, kind, text, &id, error))
		return false;
	path = arena_printf(&cli->arena, "%s/%s", noun_get(kind)->path, id);
	if (api_call(cli->api, "GET", path, NULL, ret_item, error))
		return true;
	if (error->code == ERROR_NOT_FOUND && !error->hint[0])
		hint_listing(noun_get(kind), error);
	return false;
}

json_t *noun_pool_names(struct cli *cli)
{
	CLEANUP(tree) json_t *pools = NULL;
	json_t *names = json_object();
	struct error ignored = {0}; /* ids are shown instead */
	size_t index;
	json_t *item;

	if (!api_list(cli->api, noun_get(NOUN_POOL)->path, NULL, &pools, &ignored))
		return names;
	json_array_foreach(pools, index, item)
	{
		const char *id = view_text(item, "id");
		if (id)
			json_object_set(names, id, json_object_get(item, "name"));
	}
	return names;
}

void noun_note_simulated(struct cli *cli, json_t *nodes)
{
	CLEANUP(tree) json_t *read = NULL;
	struct error ignored; /* a remark isn't worth failing for */
	size_t index;
	json_t *item;

	if (!nodes && api_list(cli->api, noun_get(NOUN_NODE)->path, NULL, &read, &ignored))
		nodes = read;
	json_array_foreach(nodes, index, item)
	{
		const char *reason = view_text(item, "simulatedReason");
		CLEANUP(free) char *text = NULL;
		if (!json_is_true(json_object_get(item, "simulated")))
			continue;
		text = mem_strdup(reason ? reason : "no reason given");
		table_sanitize(text);
		output_note("the %zu GPUs of %s are simulated: %s",
			    json_array_size(json_object_get(item, "gpus")), view_text(item, "id"),
			    text);
	}
}

bool noun_list(struct cli *cli, enum noun_kind kind, const char *query, struct error *error)
{
	const struct noun *noun = noun_get(kind);
	CLEANUP(tree) json_t *items = NULL, *pools = NULL;
	CLEANUP(table) struct table table;
	size_t index;
	json_t *item;

	table_init(&table, noun->columns, noun->column_count);
	if (!api_list(cli->api, noun->path, query, &items, error))
		return false;
	if (output_raw_list(cli, items))
		return true;
	if (json_array_size(items) == 0) {
		output_note("no %s%s; make one: %s", noun->plural, query ? " of this kind" : " yet",
			    noun->make);
		return true;
	}
	if (noun->pool_names)
		pools = noun_pool_names(cli);
	struct noun_view view = {cli, &table, pools};
	json_array_foreach(items, index, item) noun->row(&view, item);
	output_table(cli, &table);
	if (kind == NOUN_NODE)
		noun_note_simulated(cli, items);
	else if (kind == NOUN_RESERVATION)
		noun_note_simulated(cli, NULL);
	return true;
}

void noun_print(struct cli *cli, const json_t *item)
{
	CLEANUP(buf) struct buf text = {0};

	if (output_raw(cli, item))
		return;
	view_fields(&text, item, cli->now);
	output_text(&text);
}
