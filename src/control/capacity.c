#include "base/vec.h"
#include "control/core/gpu_model.h"
#include "control/nodes.h"
#include "control/pools.h"
#include "control/view.h"

/* What a pool has of one class and profile, at this moment. */
struct tally {
	const char *class, *profile;
	int64_t total, free, booked, unhealthy, unavailable, nodes;
	int64_t spot_only;                      /* of those that are free */
	const struct placement_node *last_node; /* counted in `nodes` */
};

struct tallies VEC_BODY(struct tally);

static struct tally *tally_of(struct tallies *tallies, const struct placement_atom *atom)
{
	const char *class = placement_class_name(atom->class);

	for (size_t i = 0; i < tallies->count; i++) {
		struct tally *tally = &tallies->items[i];

		if (str_equal(tally->class, class) && str_equal(tally->profile, atom->profile))
			return tally;
	}
	*vec_push(tallies) = (struct tally){.class = class, .profile = atom->profile};
	return &tallies->items[tallies->count - 1];
}

static bool is_busy_now(const struct placement_node *node, const struct placement_atom *atom,
			int64_t now_ms)
{
	for (size_t i = 0; i < node->busy_count; i++) {
		const struct placement_busy *busy = &node->busy[i];

		if (busy->gpu == atom->gpu && busy->leaf_lo < atom->leaf_hi &&
		    atom->leaf_lo < busy->leaf_hi && busy->from_ms <= now_ms &&
		    now_ms < busy->to_ms)
			return true;
	}
	return false;
}

/* Every device counts once: booked before unhealthy before unavailable before free. */
static void count_atom(struct tally *tally, const struct pool *pool,
		       const struct placement_node *node, const struct placement_atom *atom,
		       int64_t now_ms)
{
	bool dra = str_equal(pool->policy.gpu_api, NODE_API_DRA);
	bool takes_work = node->ready && node->connected && !node->no_schedule &&
			  node->knows_kubernetes && node->dra == dra && (!dra || node->knows_dra);

	tally->total++;
	if (tally->last_node != node)
		tally->nodes++;
	tally->last_node = node;
	if (is_busy_now(node, atom, now_ms))
		tally->booked++;
	else if (!atom->healthy || !node->gpus[atom->gpu].healthy)
		tally->unhealthy++;
	else if (!takes_work)
		tally->unavailable++;
	else
		tally->free++, tally->spot_only += node->spot;
}

static int compare_tallies(const void *a, const void *b)
{
	const struct tally *left = a, *right = b;
	int order = strcmp(left->class, right->class);

	return order != 0 ? order : strcmp(left->profile, right->profile);
}

static json_t *tally_answer(const char *pool, const struct tally *tally)
{
	json_t *answer = json_pack("{s:s, s:s}", "poolId", pool, "class", tally->class);

	if (tally->profile[0] != '\0')
		json_object_set_new(answer, "profile", work_text(tally->profile));
	json_object_set_new(answer, "total", json_integer(tally->total));
	json_object_set_new(answer, "free", json_integer(tally->free));
	json_object_set_new(answer, "spotOnly", json_integer(tally->spot_only));
	json_object_set_new(answer, "booked", json_integer(tally->booked));
	json_object_set_new(answer, "unhealthy", json_integer(tally->unhealthy));
	json_object_set_new(answer, "unavailable", json_integer(tally->unavailable));
	json_object_set_new(answer, "nodes", json_integer(tally->nodes));
	return answer;
}

static bool add_pool(struct store_connection *db, const char *id, json_t *items,
		     struct error *error)
{
	CLEANUP(view) struct view view = {0};
	CLEANUP(pool) struct pool pool = {0};
	struct tallies tallies = {0};

	if (!pool_load(db, id, &pool, error) || !view_load_pool(db, id, NULL, &view, error))
		return false;
	for (size_t i = 0; i < view.count; i++) {
		const struct placement_node *node = &view.nodes[i];

		/* RES-15: such nodes add no capacity. */
		for (size_t j = 0; j < node->atoms_count && !node->tenant_controlled; j++) {
			const struct placement_atom *atom = &node->atoms[j];

			if (gpu_model_matches(pool.gpu_model, node->gpus[atom->gpu].model))
				count_atom(tally_of(&tallies, atom), &pool, node, atom,
					   store_now(db).ms);
		}
	}
	vec_sort(&tallies, compare_tallies);
	vec_each (&tallies, const struct tally *tally)
		json_array_append_new(items, tally_answer(id, tally));
	vec_deinit(&tallies);
	return true;
}

static bool capacity_get(struct store_connection *db, const struct control_call *call,
			 json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(json_ref) json_t *items = json_array();
	const char *pool = call->pool_id ? call->pool_id : "";

	if (!access_check(call->principal, ACCESS_CAPACITY_READ, error) ||
	    !store_query(db,
			 "SELECT id FROM pools WHERE ($1 = '' OR id = $1) AND ($2 = '' OR tenant = "
			 "$2) AND state = 'active' ORDER BY id",
			 STORE_PARAMS(store_text(pool), store_text(work_scope(call->principal))),
			 &rows, error))
		return false;
	if (*pool && rows.count == 0)
		return work_not_found(error, "pool", pool);
	for (size_t i = 0; i < rows.count; i++) {
		if (!add_pool(db, store_get_text(&rows, i, 0), items, error))
			return false;
	}
	*ret_answer = json_pack("{s:o}", "items", TAKE(items));
	return true;
}
WORK_CALL(capacity_get, STORE_READ)

/* --- events --- */

static bool read_end(struct store_connection *db, int64_t *ret_end, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT value FROM counters WHERE name = 'events'", STORE_NO_PARAMS,
			 &rows, error))
		return false;
	*ret_end = store_get_int(&rows, 0, 0);
	return true;
}

/* Who may not read keys and secrets isn't told of them either. */
static bool sees_keys(const struct control_principal *principal)
{
	struct error refused;

	return access_check(principal, ACCESS_KEYS_READ, &refused) &&
	       access_check(principal, ACCESS_SECRETS_READ, &refused);
}

static bool event_list(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t after, limit, last, next;
	json_t *items;

	if (!access_check(call->principal, ACCESS_EVENTS_READ, error) ||
	    !work_query_int(call->after, "after", 0, CONTROL_MAX_SEQUENCE, 0, &after, error) ||
	    !work_query_int(call->limit, "limit", 1, CONTROL_MAX_PAGE, CONTROL_DEFAULT_PAGE, &limit,
			    error) ||
	    !read_end(db, &last, error))
		return false;
	/* A number that was never given is another log's: all of this one is new to whoever has it. */
	after = after > last ? 0 : after;
	if (!store_query(db,
			 "SELECT seq, at_ms, type, subject, data FROM events WHERE seq > $1 AND "
			 "($2 = '' OR tenant = $2) AND ($4 = 1 OR type NOT IN ('key.changed', "
			 "'secret.changed')) ORDER BY seq LIMIT $3",
			 STORE_PARAMS(store_int(after), store_text(work_scope(call->principal)),
				      store_int(limit), store_int(sees_keys(call->principal))),
			 &rows, error))
		return false;
	items = json_array();
	for (size_t i = 0; i < rows.count; i++)
		json_array_append_new(items, json_pack("{s:o, s:o, s:o, s:o, s:o}", "seq",
						       work_int_of(&rows, i, 0), "at",
						       work_time(store_get_int(&rows, i, 1)),
						       "type", work_text_of(&rows, i, 2), "subject",
						       work_text_of(&rows, i, 3), "data",
						       work_parse(store_get_text(&rows, i, 4))));
	/* Whose tenant has few events need not look through the others' again. */
	next = rows.count == (size_t)limit ? store_get_int(&rows, rows.count - 1, 0) : last;
	*ret_answer = json_pack("{s:o, s:I, s:I}", "items", items, "next", next, "last", last);
	return true;
}
WORK_CALL(event_list, STORE_READ)

static bool event_end_body(struct store_connection *db, void *argument, struct error *error)
{
	return read_end(db, argument, error);
}

bool control_event_end(struct control *control, int64_t *ret_end, struct error *error)
{
	return store_run(control->connection, STORE_READ, event_end_body, ret_end, error);
}
