#include "cli/noun.h"
#include "base/id.h"
#include "base/vec.h"
#include "cli/output.h"
#include "cli/view.h"
#include "text/suggest.h"

#define MIN_PREFIX  4        /* characters of an id proper that may stand for it */
#define MATCH_SHOWN 4        /* ids listed for an ambiguous text */
#define OWNER_NAME  "tenant" /* put beside tenantId, which the API gives */

#define ALLOCATION_PREFIX "alc" /* of the parts of reservations, which bcd knows alone */

#define NODES_LOOKED_AT 100 /* for a remark about them */
#define NODES_NOTED     3

static const char *item_name(const struct noun *noun, const json_t *item)
{
	return noun->name_key ? view_text(item, noun->name_key) : NULL;
}

static const char *item_other_name(const struct noun *noun, const json_t *item)
{
	return noun->also_key ? view_text(item, noun->also_key) : NULL;
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
	for (int i = NOUN_NONE + 1; i < NOUN_COUNT; i++) {
		const struct noun *noun = noun_get((enum noun_kind)i);
		if (id_valid(text, noun->prefix))
			return noun;
	}
	return NULL;
}

/* Does it begin an id, with too little of it? "rsv_" itself begins all and means none. */
static bool too_short(const struct noun *noun, const json_t *items, const char *text)
{
	size_t index, length = prefix_length(text), prefix = strlen(noun->prefix) + 1;
	json_t *item;

	json_array_foreach(items, index, item)
	{
		const char *id = view_text(item, "id");
		if (id && length > 0 &&
		    ((length > prefix && strncmp(id, text, length) == 0) ||
		     (strlen(id) > prefix && strncmp(id + prefix, text, length) == 0)))
			return true;
	}
	return false;
}

static bool say_too_short(const struct noun *noun, const char *text, struct error *error)
{
	error_set(error, ERROR_INVALID_INPUT, "%s '%s' is too short to name one", noun->word, text);
	return error_hint(error,
			  "Give %d characters or more after '%s_'%s. All %s: better-compute %s",
			  MIN_PREFIX, noun->prefix, noun->name_key ? ", or its name" : "",
			  noun->plural, strrchr(noun->path, '/') + 1);
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
	if (too_short(noun, items, text)) {
		vec_deinit(&names);
		return say_too_short(noun, text, error);
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

/* How many a text names. */
enum several {
	SEVERAL_NOT,
	SEVERAL_OF_ONE,     /* of one tenant, or of none */
	SEVERAL_OF_TENANTS, /* so that a tenant's name can tell which */
};

/* Whose it is: by name, where noun_resolve() has put it there. */
static const char *owner(const json_t *item)
{
	const char *name = view_text(item, OWNER_NAME);

	return name ? name : view_text(item, "tenantId");
}

static bool owners_differ(const json_t *const *found, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const char *first = view_text(found[0], "tenantId");
		const char *other = view_text(found[i], "tenantId");
		if (first && other && !str_equal(first, other))
			return true;
	}
	return false;
}

static bool ambiguous(const struct noun *noun, const json_t *const *found, size_t count,
		      const char *text, bool by_name, bool differ, struct error *error)
{
	CLEANUP(buf) struct buf ids = {0};

	for (size_t i = 0; i < count && i < MATCH_SHOWN; i++) {
		const char *of = differ ? owner(found[i]) : NULL;
		buf_printf(&ids, "%s%s%s%s", i ? ", " : "", view_text(found[i], "id"),
			   of ? " of " : "", of ? of : "");
	}
	if (count > MATCH_SHOWN)
		buf_add_text(&ids, ", …");
	error_set(error, ERROR_INVALID_INPUT, "%s '%s' could be %zu: %s", noun->word, text, count,
		  buf_text(&ids));
	return error_hint(error, by_name ? "Use the id." : "Write more of the id.");
}

/* Of the things that have the name, the only one that isn't over: nobody means the others. NULL: none, or several. */
static const json_t *only_live(const json_t *const *found, size_t count)
{
	const json_t *live = NULL;

	for (size_t i = 0; i < count; i++) {
		if (view_over(found[i]))
			continue;
		if (live)
			return NULL;
		live = found[i];
	}
	return live;
}

/* `whoever`: what isn't over is meant whichever tenant has it, since none is named beside it. */
static bool match(const struct noun *noun, const json_t *items, const char *text, bool whoever,
		  const char **ret_id, enum several *ret_several, struct error *error)
{
	VEC(const json_t *) by_name = {0}, by_id = {0};
	size_t index, length = prefix_length(text);
	json_t *item;
	bool ok = true;

	json_array_foreach(items, index, item)
	{
		const char *id = view_text(item, "id"), *name = item_name(noun, item);
		const char *other = item_other_name(noun, item);
		if (id && ((name && str_equal(name, text)) || (other && str_equal(other, text))))
			*vec_push(&by_name) = item;
		if (id && begins_id(noun, id, text, length))
			*vec_push(&by_id) = item;
	}
	/* A whole name wins over the beginning of an id. */
	size_t count = by_name.count ? by_name.count : by_id.count;
	const json_t *const *found = by_name.count ? by_name.items : by_id.items;
	bool differ = owners_differ(found, count);
	const json_t *live =
		by_name.count > 1 && (whoever || !differ) ? only_live(found, count) : NULL;
	if (live) {
		found = &live;
		count = 1;
	}
	if (count == 0)
		ok = not_found(noun, items, text, error);
	else if (count > 1)
		ok = ambiguous(noun, found, count, text, by_name.count > 0, differ, error);
	else
		*ret_id = view_text(found[0], "id");
	*ret_several = count <= 1 ? SEVERAL_NOT : differ ? SEVERAL_OF_TENANTS : SEVERAL_OF_ONE;
	vec_deinit(&by_name);
	vec_deinit(&by_id);
	return ok;
}

/* bcd, its conditions and events name a reservation's parts alone: the reservation that has one, among those
 * that the key may see. NULL: none of these has it. */
static const char *find_allocation(const json_t *reservations, const char *text)
{
	size_t index, part;
	json_t *item, *allocation;

	json_array_foreach(reservations, index, item)
	{
		json_array_foreach(json_object_get(item, "allocations"), part, allocation)
		{
			const char *id = view_text(allocation, "id");

			if (id && str_equal(id, text))
				return view_text(item, "id");
		}
	}
	return NULL;
}

static bool resolve_allocation(struct cli *cli, const char *text, const char **ret_id,
			       struct error *error)
{
	static const char *const QUERIES[] = {"live=true", NULL}; /* what is over may be much */
	const struct noun *noun = noun_get(NOUN_RESERVATION);

	/* Its beginning is many's. */
	if (!id_valid(text, ALLOCATION_PREFIX)) {
		error_set(error, ERROR_INVALID_INPUT, "'%s' is no whole id of an allocation", text);
		return error_hint(error, "Give it whole, or the reservation's own.");
	}
	for (size_t i = 0; i < ARRAY_SIZE(QUERIES); i++) {
		CLEANUP(tree) json_t *items = NULL;
		const char *id;

		if (!api_list(cli->api, noun->path, QUERIES[i], &items, error))
			return false;
		id = find_allocation(items, text);
		if (!id)
			continue;
		*ret_id = arena_strdup(&cli->arena, id);
		return true;
	}
	error_set(error, ERROR_NOT_FOUND, "no %s has an allocation '%s'", noun->word, text);
	hint_listing(noun, error);
	return false;
}

bool noun_match(const struct noun *noun, const json_t *items, const char *text, const char **ret_id,
		struct error *error)
{
	enum several ignored;

	return match(noun, items, text, true, ret_id, &ignored, error);
}

/* --- what several tenants have --- */

/* Those that belong to one tenant: a new reference. */
static json_t *items_of(const json_t *items, const char *tenant)
{
	json_t *own = json_array(), *item;
	size_t index;

	json_array_foreach(items, index, item)
	{
		const char *id = view_text(item, "tenantId");
		if (id && str_equal(id, tenant))
			json_array_append(own, item);
	}
	return own;
}

static bool takes_tenant(const struct cli *cli)
{
	for (size_t i = 0; i < cli->options->count; i++) {
		if (str_equal(cli->options->values[i].option->name, "tenant"))
			return true;
	}
	return false;
}

/* The tenant that is named beside it: --tenant, or the context's; *ret_id NULL: none. */
static bool tenant_beside(struct cli *cli, const char **ret_id, struct error *error)
{
	const char *text = options_text(cli->options, "tenant");

	if (!text)
		text = cli->context.values[CONTEXT_TENANT].text;
	*ret_id = NULL;
	return !text || noun_resolve(cli, NOUN_TENANT, text, ret_id, error);
}

static void name_owners(struct cli *cli, const json_t *items)
{
	CLEANUP(tree) json_t *names = noun_names(cli, NOUN_TENANT);
	size_t index;
	json_t *item;

	json_array_foreach(items, index, item)
	{
		const char *id = view_text(item, "tenantId");
		const char *name = id ? view_text(names, id) : NULL;
		if (name)
			tree_set(item, OWNER_NAME, tree_string(name));
	}
}

/* The text names what several tenants have: the one beside it tells which, if one is named. */
static bool match_by_tenant(struct cli *cli, enum noun_kind kind, const json_t *items,
			    const char *text, const char **ret_id, struct error *error)
{
	const struct noun *noun = noun_get(kind);
	bool takes = takes_tenant(cli), whoever = true;
	enum several several;
	struct error ignored; /* that of all is told */
	const char *tenant = NULL;

	if (takes && !tenant_beside(cli, &tenant, error))
		return false;
	if (tenant) {
		CLEANUP(tree) json_t *own = items_of(items, tenant);
		if (noun_match(noun, own, text, ret_id, &ignored))
			return true;
		/* That all of its own are over doesn't mean somebody else's. */
		whoever = ignored.code == ERROR_NOT_FOUND;
	}
	if (whoever && match(noun, items, text, true, ret_id, &several, &ignored))
		return true;
	name_owners(cli, items);
	return match(noun, items, text, whoever, ret_id, &several, error) ||
	       (takes && !tenant ? error_hint(error, "Use the id, or --tenant TENANT.") : false);
}

/* `pools archive h100 --tenant acme` is about no pool of anybody else, though only they have one. A join
 * token is its pool's tenant's. Of what other commands use besides (--pool, --site) it decides only where
 * the name doesn't. */
static bool asked_of_tenant(const struct cli *cli, enum noun_kind kind)
{
	enum noun_kind names = cli->command->names;

	return kind != NOUN_TENANT &&
	       (kind == names || (names == NOUN_JOIN_TOKEN && kind == NOUN_POOL)) &&
	       takes_tenant(cli) && options_given(cli->options, "tenant");
}

/* An id names one whoever has it, and --tenant somebody: which of them was meant nobody knows. */
static bool disagree(struct cli *cli, const struct noun *noun, const char *id, const json_t *item,
		     struct error *error)
{
	CLEANUP(tree) json_t *names = noun_names(cli, NOUN_TENANT);
	const char *asked = options_text(cli->options, "tenant"), *of = view_text(item, "tenantId");
	const char *name = of ? view_text(names, of) : NULL;

	if (!of) {
		error_set(error, ERROR_INVALID_INPUT, "%s '%s' is no tenant's, nor that of '%s'",
			  noun->word, id, asked);
		return error_hint(error, "Leave --tenant out, or name what that tenant has.");
	}
	error_set(error, ERROR_INVALID_INPUT, "%s '%s' belongs to tenant '%s', not to '%s'",
		  noun->word, id, name ? name : of, asked);
	return error_hint(error, "If that is the one: --tenant %s. Else name what '%s' has.",
			  name ? name : of, asked);
}

static bool check_owner(struct cli *cli, enum noun_kind kind, const char *id, struct error *error)
{
	const struct noun *noun = noun_get(kind);
	CLEANUP(tree) json_t *item = NULL;
	const char *tenant, *of;

	if (!tenant_beside(cli, &tenant, error))
		return false;
	if (!api_call(cli->api, "GET", arena_printf(&cli->arena, "%s/%s", noun->path, id), NULL,
		      &item, error))
		return noun_missing(kind, error);
	of = view_text(item, "tenantId");
	return (of && str_equal(of, tenant)) || disagree(cli, noun, id, item, error);
}

static bool match_of_tenant(struct cli *cli, enum noun_kind kind, const json_t *items,
			    const char *text, const char **ret_id, struct error *error)
{
	const struct noun *noun = noun_get(kind);
	CLEANUP(tree) json_t *own = NULL;
	const char *tenant;

	if (!tenant_beside(cli, &tenant, error))
		return false;
	own = items_of(items, tenant);
	if (noun_match(noun, own, text, ret_id, error))
		return true;
	if (error->code == ERROR_NOT_FOUND && json_array_size(own) == 0)
		error_set(error, ERROR_NOT_FOUND, "tenant '%s' has no %s",
			  options_text(cli->options, "tenant"), noun->plural);
	if (error->code == ERROR_NOT_FOUND)
		hint_listing(noun, error);
	return false;
}

bool noun_resolve(struct cli *cli, enum noun_kind kind, const char *text, const char **ret_id,
		  struct error *error)
{
	const struct noun *noun = noun_get(kind);
	CLEANUP(tree) json_t *items = NULL;
	enum several several = SEVERAL_NOT;
	const char *id;

	if (id_valid(text, noun->prefix)) {
		if (asked_of_tenant(cli, kind) && !check_owner(cli, kind, text, error))
			return false;
		*ret_id = text;
		return true;
	}
	if (kind == NOUN_RESERVATION && str_starts(text, ALLOCATION_PREFIX "_"))
		return resolve_allocation(cli, text, ret_id, error);
	if (!api_list(cli->api, noun->path, NULL, &items, error))
		return false;
	if (asked_of_tenant(cli, kind)) {
		if (!match_of_tenant(cli, kind, items, text, &id, error))
			return false;
	} else if (!match(noun, items, text, false, &id, &several, error) &&
		   !(several == SEVERAL_OF_TENANTS &&
		     match_by_tenant(cli, kind, items, text, &id, error)))
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
	return noun_missing(kind, error);
}

bool noun_missing(enum noun_kind kind, struct error *error)
{
	if (error->code == ERROR_NOT_FOUND && !error->hint[0])
		hint_listing(noun_get(kind), error);
	return false;
}

json_t *noun_names(struct cli *cli, enum noun_kind kind)
{
	const struct noun *noun = noun_get(kind);
	CLEANUP(tree) json_t *all = NULL;
	json_t *names = json_object();
	struct error ignored = {0}; /* ids are shown instead */
	size_t index;
	json_t *item;

	if (!api_list(cli->api, noun->path, NULL, &all, &ignored))
		return names;
	json_array_foreach(all, index, item)
	{
		const char *id = view_text(item, "id"), *name = item_name(noun, item);
		if (id && name)
			tree_set(names, id, tree_string(name));
	}
	return names;
}

void noun_view_deinit(struct noun_view *view)
{
	for (size_t i = 0; i < NOUN_COUNT; i++)
		json_decref(view->names[i]);
}

const char *noun_view_name(struct noun_view *view, enum noun_kind kind, const json_t *item,
			   const char *key)
{
	const char *id = view_text(item, key), *name;

	if (!id)
		return NULL;
	if (!view->names[kind])
		view->names[kind] = noun_names(view->cli, kind);
	name = view_text(view->names[kind], id);
	return name ? name : id;
}

static void note_simulated(const json_t *node)
{
	const char *reason = view_text(node, "simulatedReason");

	output_note("the %zu GPUs of %s are simulated: %s",
		    json_array_size(json_object_get(node, "gpus")), view_text(node, "id"),
		    reason ? reason : "no reason given");
}

void noun_note_simulated(struct cli *cli, json_t *nodes)
{
	CLEANUP(tree) json_t *read = NULL;
	struct error ignored; /* a remark isn't worth failing for */
	size_t index, count = 0;
	json_t *item;
	bool more;

	if (!nodes && api_list_some(cli->api, noun_get(NOUN_NODE)->path, NULL, NODES_LOOKED_AT,
				    &read, &more, &ignored))
		nodes = read;
	json_array_foreach(nodes, index, item)
	{
		if (json_is_true(json_object_get(item, "simulated")) &&
		    json_array_size(json_object_get(item, "gpus")) > 0 && count++ < NODES_NOTED)
			note_simulated(item);
	}
	if (count > NODES_NOTED)
		output_note("so are those of %zu more nodes", count - NODES_NOTED);
}

static void drop_others(json_t *items, noun_keep *keep)
{
	for (size_t i = json_array_size(items); keep && i-- > 0;) {
		if (!keep(json_array_get(items, i)))
			json_array_remove(items, i);
	}
}

bool noun_list(struct cli *cli, enum noun_kind kind, const char *query, const char *which,
	       noun_keep *keep, struct error *error)
{
	const struct noun *noun = noun_get(kind);
	CLEANUP(tree) json_t *items = NULL;
	CLEANUP(table) struct table table;
	CLEANUP(noun_view) struct noun_view view = {cli, &table, {0}};
	const char *tenant = NULL;
	size_t index;
	json_t *item;

	table_init(&table, noun->columns, noun->column_count);
	if (!api_list(cli->api, noun->path, query, &items, error))
		return false;
	/* The API narrows some lists itself: those have it in the query. */
	if (!(query && strstr(query, "tenantId=")) && takes_tenant(cli) &&
	    options_given(cli->options, "tenant")) {
		if (!tenant_beside(cli, &tenant, error))
			return false;
		json_t *own = items_of(items, tenant);
		json_decref(items);
		items = own;
	}
	drop_others(items, keep);
	if (output_raw_list(cli, items))
		return true;
	if (json_array_size(items) == 0) {
		output_note("no %s %s; make one: %s", noun->plural,
			    which             ? which
			    : query || tenant ? "of this kind"
					      : "yet",
			    noun->make);
		return true;
	}
	json_array_foreach(items, index, item) noun->row(&view, item);
	output_table(cli, &table);
	if (kind == NOUN_NODE)
		noun_note_simulated(cli, items);
	else if (kind == NOUN_RESERVATION)
		noun_note_simulated(cli, NULL);
	return true;
}

/* "tenant  research (ten_…)" instead of "tenantId  ten_…", as the pages and the tables say it. */
static json_t *with_names(struct cli *cli, const json_t *item)
{
	static const struct {
		const char *key, *label;
		enum noun_kind kind;
	} OTHERS[] = {{"tenantId", "tenant", NOUN_TENANT},
		      {"siteId", "site", NOUN_SITE},
		      {"poolId", "pool", NOUN_POOL}};
	CLEANUP(noun_view) struct noun_view view = {.cli = cli};
	json_t *shown = json_object();
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)item, key, value)
	{
		const char *label = key, *text = NULL;
		for (size_t i = 0; i < ARRAY_SIZE(OTHERS); i++) {
			if (!str_equal(key, OTHERS[i].key) || !json_is_string(value))
				continue;
			label = OTHERS[i].label;
			text = noun_view_name(&view, OTHERS[i].kind, item, key);
			if (!str_equal(text, json_string_value(value)))
				text = arena_printf(&cli->arena, "%s (%s)", text,
						    json_string_value(value));
		}
		tree_set(shown, label, text ? tree_string(text) : json_incref(value));
	}
	return shown;
}

void noun_print(struct cli *cli, const json_t *item)
{
	const char *id = view_text(item, "id");
	const struct noun *noun = id ? noun_of_id(id) : NULL;
	CLEANUP(buf) struct buf text = {0};

	if (output_raw(cli, item))
		return;
	if (noun && noun->page) {
		noun->page(cli, item);
		return;
	}
	CLEANUP(tree) json_t *shown = with_names(cli, item);
	view_fields(&text, shown, cli->now, output_width());
	output_text(&text);
}
