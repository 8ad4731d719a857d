/*
 * nouns: the table of the things the API keeps, with what a row of each looks like.
 */
#include "cli/noun.h"
#include "cli/pages.h"
#include "cli/view.h"

static const char *created(const struct noun_view *view, const json_t *item)
{
	return view_relative(&view->cli->arena, item, "createdAt", view->cli->now);
}

static const char *pool_name(struct noun_view *view, const json_t *item)
{
	return noun_view_name(view, NOUN_POOL, item, "poolId");
}

static const char *tenant_name(struct noun_view *view, const json_t *item)
{
	return noun_view_name(view, NOUN_TENANT, item, "tenantId");
}

static const struct table_column TENANT_COLUMNS[] = {
	{"NAME", 0}, {"ID", TABLE_ID}, {"STATE", TABLE_SPARSE}, {"CREATED", 0}};

static void tenant_row(struct noun_view *view, const json_t *item)
{
	table_cell(view->table, view_text(item, "name"));
	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, view_text(item, "state"));
	table_cell(view->table, created(view, item));
}

static const struct table_column SITE_COLUMNS[] = {
	{"NAME", 0}, {"ID", TABLE_ID}, {"STATE", TABLE_SPARSE},
	{"KIND", 0}, {"TENANT", 0},    {"CREATED", 0}};

static void site_row(struct noun_view *view, const json_t *item)
{
	table_cell(view->table, view_text(item, "name"));
	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, view_text(item, "state"));
	table_cell(view->table, view_text(item, "kind"));
	table_cell(view->table, tenant_name(view, item));
	table_cell(view->table, created(view, item));
}

static const struct table_column POOL_COLUMNS[] = {
	{"NAME", 0},          {"ID", TABLE_ID},        {"STATE", 0},
	{"GPU", 0},           {"NODES", TABLE_RIGHT},  {"VERSION", TABLE_RIGHT | TABLE_WIDE},
	{"SITE", TABLE_WIDE}, {"TENANT", TABLE_ALIKE}, {"CREATED", 0}};

static void pool_row(struct noun_view *view, const json_t *item)
{
	table_cell(view->table, view_text(item, "name"));
	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, view_text(item, "state"));
	table_cell(view->table, view_text(item, "gpuModel"));
	table_cellf(view->table, "%lld", (long long)view_number(item, "nodes"));
	table_cellf(view->table, "%lld", (long long)view_number(item, "version"));
	table_cell(view->table, view->cli->output == CLI_WIDE
					? noun_view_name(view, NOUN_SITE, item, "siteId")
					: NULL);
	table_cell(view->table, tenant_name(view, item));
	table_cell(view->table, created(view, item));
}

static const struct table_column JOIN_TOKEN_COLUMNS[] = {
	{"ID", TABLE_ID}, {"POOL", 0},   {"STATE", 0},  {"USES", TABLE_RIGHT},
	{"EXPIRES", 0},   {"HOSTED", 0}, {"CREATED", 0}};

static void join_token_row(struct noun_view *view, const json_t *item)
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

static const struct table_column NODE_COLUMNS[] = {{"ID", TABLE_ID},
						   {"HOSTNAME", TABLE_FLEX},
						   {"STATE", 0},
						   {"POOL", 0},
						   {"GPUS", TABLE_FLEX},
						   {"BOOKED", TABLE_RIGHT},
						   {"SPOT", TABLE_SPARSE},
						   {"LINK", 0},
						   {"AS NODE", TABLE_WIDE},
						   {"TRUST", TABLE_WIDE},
						   {"BCD", TABLE_WIDE},
						   {"SPEC", TABLE_WIDE},
						   {"NOTE", TABLE_FLEX}};

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

static void node_row(struct noun_view *view, const json_t *item)
{
	struct arena *arena = &view->cli->arena;
	const char *note = view_conditions(arena, json_object_get(item, "conditions"));
	const char *sick = view_sick_gpus(arena, item);

	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, view_text(item, "hostname"));
	table_cell(view->table, view_text(item, "state"));
	table_cell(view->table, pool_name(view, item));
	table_cell(view->table, view_gpus(arena, item));
	table_cellf(view->table, "%zu", booked_devices(item));
	table_cell(view->table, json_is_true(json_object_get(item, "spot")) ? "spot" : NULL);
	table_cell(view->table, view_contact(arena, item, view->cli->now));
	table_cell(view->table, view_text(item, "kubernetesNodeName"));
	table_cell(view->table, view_text(item, "trust"));
	table_cell(view->table, view_text(item, "bcdVersion"));
	table_cellf(view->table, "%lld/%lld", (long long)view_number(item, "storedGeneration"),
		    (long long)view_number(item, "specGeneration"));
	table_cell(view->table,
		   joined(arena, view_gone_devices(arena, item), joined(arena, sick, note)));
}

static const struct table_column RESERVATION_COLUMNS[] = {{"ID", TABLE_ID},
							  {"STATE", 0},
							  {"POOL", 0},
							  {"DEVICES", 0},
							  {"NODES", TABLE_ID},
							  {"STARTS", TABLE_SPARSE},
							  {"ENDS", 0},
							  {"ENDS AT", TABLE_WIDE},
							  {"TENANT", TABLE_ALIKE},
							  {"NOTE", TABLE_FLEX}};

static void reservation_row(struct noun_view *view, const json_t *item)
{
	struct arena *arena = &view->cli->arena;
	const char *state = view_text(item, "state");
	const char *note = view_conditions(arena, json_object_get(item, "conditions"));
	const json_t *devices = json_object_get(item, "devices");

	/* What kept a reservation waiting is past when it has a place or has ended otherwise. */
	if (!note && state && (str_equal(state, "pending") || str_equal(state, "denied")))
		note = view_reasons(arena, json_object_get(item, "reasons"), devices);
	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, view_state(item));
	table_cell(view->table, pool_name(view, item));
	table_cell(view->table, view_booking(arena, item));
	table_cell(view->table, view_nodes(arena, item));
	table_cell(view->table, view_starts(arena, item, view->cli->now));
	table_cell(view->table, view_ends(arena, item, view->cli->now));
	table_cell(view->table, view_ends_exact(arena, item));
	table_cell(view->table, tenant_name(view, item));
	table_cell(view->table, note);
}

static const struct table_column KEY_COLUMNS[] = {{"NAME", 0},   {"ID", TABLE_ID}, {"ROLE", 0},
						  {"TENANT", 0}, {"STATE", 0},     {"CREATED", 0}};

static void key_row(struct noun_view *view, const json_t *item)
{
	table_cell(view->table, view_text(item, "name"));
	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, view_text(item, "role"));
	table_cell(view->table, tenant_name(view, item));
	table_cell(view->table, view_text(item, "revokedAt") ? "revoked" : "live");
	table_cell(view->table, created(view, item));
}

static const struct table_column QUOTA_COLUMNS[] = {{"ID", TABLE_ID},
						    {"TENANT", 0},
						    {"POOL", 0},
						    {"CLASS", 0},
						    {"DEVICES", TABLE_RIGHT},
						    {"GPU HOURS", TABLE_RIGHT}};

static void quota_row(struct noun_view *view, const json_t *item)
{
	struct arena *arena = &view->cli->arena;

	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, tenant_name(view, item));
	table_cell(view->table, pool_name(view, item));
	table_cell(view->table, view_text(item, "class"));
	table_cell(view->table, view_quota_devices(arena, item));
	table_cell(view->table, view_quota_hours(arena, item));
}

static const struct table_column SECRET_COLUMNS[] = {{"NAME", 0},
						     {"ID", TABLE_ID},
						     {"TENANT", 0},
						     {"VERSION", TABLE_RIGHT},
						     {"CHANGED", 0},
						     {"CREATED", TABLE_WIDE},
						     {"REFERENCE", TABLE_WIDE}};

static void secret_row(struct noun_view *view, const json_t *item)
{
	struct cli *cli = view->cli;

	table_cell(view->table, view_text(item, "name"));
	table_cell(view->table, view_text(item, "id"));
	table_cell(view->table, tenant_name(view, item));
	table_cellf(view->table, "%lld", (long long)view_number(item, "version"));
	table_cell(view->table, view_relative(&cli->arena, item, "changedAt", cli->now));
	table_cell(view->table, created(view, item));
	table_cell(view->table, view_text(item, "reference"));
}

#define COLUMNS(table) .columns = (table), .column_count = ARRAY_SIZE(table)

static const struct noun NOUNS[NOUN_COUNT] = {
	[NOUN_TENANT] = {"tenant", "tenants", "/v1/tenants", "ten", "name",
			 "better-compute tenants create NAME", COLUMNS(TENANT_COLUMNS),
			 .row = tenant_row},
	[NOUN_SITE] = {"site", "sites", "/v1/sites", "site", "name",
		       "better-compute sites create NAME", COLUMNS(SITE_COLUMNS), .row = site_row},
	[NOUN_POOL] = {"pool", "pools", "/v1/pools", "pool", "name",
		       "better-compute pools create NAME --site SITE --gpu-model MODEL",
		       COLUMNS(POOL_COLUMNS), .row = pool_row},
	[NOUN_JOIN_TOKEN] = {"join token", "join tokens", "/v1/join-tokens", "jt", NULL,
			     "better-compute join-tokens create --out FILE",
			     COLUMNS(JOIN_TOKEN_COLUMNS), .row = join_token_row},
	[NOUN_NODE] = {"node", "nodes", "/v1/nodes", "node", "hostname",
		       "bcd join on the machine, with a join token", COLUMNS(NODE_COLUMNS),
		       .row = node_row, .page = page_of_node, .also_key = "kubernetesNodeName"},
	[NOUN_RESERVATION] = {"reservation", "reservations", "/v1/reservations", "rsv", NULL,
			      "better-compute reserve --gpus 1 --for 8h --kubernetes",
			      COLUMNS(RESERVATION_COLUMNS), .row = reservation_row,
			      .page = page_of_reservation},
	[NOUN_KEY] = {"key", "keys", "/v1/keys", "key", "name",
		      "better-compute keys create NAME --role user --out FILE",
		      COLUMNS(KEY_COLUMNS), .row = key_row},
	[NOUN_QUOTA] = {"quota", "quotas", "/v1/quotas", "quo", NULL,
			"better-compute quotas create --tenant TENANT --max-devices N",
			COLUMNS(QUOTA_COLUMNS), .row = quota_row},
	[NOUN_SECRET] = {"secret", "secrets", "/v1/secrets", "sec", "name",
			 "better-compute secrets create NAME --from FILE", COLUMNS(SECRET_COLUMNS),
			 .row = secret_row},
};

const struct noun *noun_get(enum noun_kind kind)
{
	assert(kind > NOUN_NONE && kind < NOUN_COUNT);
	return &NOUNS[kind];
}
