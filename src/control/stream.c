#include "control/stream.h"

#include "base/utf8.h"
#include "control/spec.h"
#include "sys/log.h"

#define MAX_CAPABILITIES    32
#define MAX_CAPABILITY_SIZE 63
#define MAX_HELLO_TEXT      253
#define MAX_BOOT_ID         64
#define MAX_GENERATION      (INT64_C(1) << 53) /* of what a node says; none of ours comes near */

/* How long a Hello may be held up on its way: longer than any connection outlives who made it. After
 * so long a silence even a clock that went back is believed, as a restored machine has it. */
#define HELLO_LATE_MS ((int64_t)120 * 1000)

/* --- who may speak --- */

#define MEMBER_HINT                                                                                \
	"To use the machine, move identity.json of bcd's data folder (/var/lib/bcd) away, join "   \
	"by "                                                                                      \
	"a new token, and start bcd anew."

static bool load_member(struct store_connection *db, const char *id, struct node *ret_node,
			struct error *error)
{
	bool found;

	if (!node_load(db, id, ret_node, &found, error))
		return false;
	if (!found) {
		error_set(error, ERROR_FORBIDDEN, "node '%.40s' is unknown here", id);
		return error_hint(error, MEMBER_HINT);
	}
	if (str_equal(ret_node->state, "retired")) {
		error_set(error, ERROR_FORBIDDEN, "node '%s' was retired", id);
		return error_hint(error, MEMBER_HINT);
	}
	return true;
}

static bool refuse_old_stream(const char *node, struct error *error)
{
	return error_set(error, ERROR_CONFLICT, "a newer stream of node '%s' took this one's place",
			 node);
}

bool stream_check(struct store_connection *db, const char *node, int64_t epoch,
		  struct node *ret_node, struct error *error)
{
	return load_member(db, node, ret_node, error) &&
	       ((ret_node->epoch != 0 && ret_node->epoch == epoch) ||
		refuse_old_stream(node, error));
}

struct identify_work {
	const char *node;
	struct control_node_identity identity;
};

static bool identify_body(struct store_connection *db, void *argument, struct error *error)
{
	struct identify_work *work = argument;
	CLEANUP(node) struct node node = {0};

	if (!load_member(db, work->node, &node, error))
		return false;
	work->identity.trust = node.trust;
	str_copy(work->identity.machine_key, sizeof work->identity.machine_key, node.machine_key);
	return true;
}

bool control_node_identify(struct control *control, const char *node,
			   struct control_node_identity *ret_identity, struct error *error)
{
	struct identify_work work = {.node = node};

	if (!store_run(control->connection, STORE_READ, identify_body, &work, error))
		return false;
	*ret_identity = work.identity;
	return true;
}

/* --- hello --- */

struct hello_work {
	const struct control *control;
	const struct control_hello *hello;
	struct control_welcome welcome;
};

/* Names become labels, so only what a label's name may hold: the rest is left out. */
static bool is_capability(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t length = strnlen(name, MAX_CAPABILITY_SIZE + 1);

	return length > 0 && length <= MAX_CAPABILITY_SIZE && strspn(name, allowed) == length &&
	       name[0] != '-' && name[length - 1] != '-';
}

static json_t *pack_capabilities(const struct control_hello *hello)
{
	json_t *capabilities = json_array();

	for (size_t i = 0; i < hello->capabilities_count && i < MAX_CAPABILITIES; i++) {
		if (is_capability(hello->capabilities[i]) &&
		    !node_has_capability(capabilities, hello->capabilities[i]))
			json_array_append_new(capabilities, json_string(hello->capabilities[i]));
	}
	return capabilities;
}

static char *clean(const char *text, size_t max)
{
	CLEANUP(buf) struct buf out = {0};

	utf8_add_clean(&out, text);
	if (out.length > max) {
		/* Back to where a character begins. */
		while (max > 0 && ((unsigned char)out.data[max] & 0xc0) == 0x80)
			max--;
		out.data[max] = '\0';
		out.length = max;
	}
	return buf_take_text(&out);
}

/* Takes the node's place for this stream, unless a stream that the node opened later has it: the node
 * alone knows which is its newest. Within a boot its clock says so; a boot that ended doesn't come
 * back. */
static bool open_stream(struct store_connection *db, const struct hello_work *work,
			int64_t *ret_epoch, struct error *error)
{
	const struct control_hello *hello = work->hello;
	CLEANUP(free) char *boot_id = clean(hello->boot_id, MAX_BOOT_ID);
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t opened_ms = *boot_id && hello->opened_ms > 0 ? hello->opened_ms : 0;

	if (!store_query(
		    db,
		    "INSERT INTO node_streams (node, epoch, replica, connected, seen_ms, boot_id, "
		    "opened_ms, ended_boot_id) VALUES ($1, 1, $2, 1, $3, $4, $5, '') "
		    "ON CONFLICT (node) DO UPDATE SET epoch = node_streams.epoch + 1, "
		    "replica = excluded.replica, connected = 1, seen_ms = excluded.seen_ms, "
		    "boot_id = excluded.boot_id, opened_ms = excluded.opened_ms, "
		    "ended_boot_id = CASE WHEN node_streams.boot_id = excluded.boot_id "
		    "THEN node_streams.ended_boot_id ELSE node_streams.boot_id END "
		    "WHERE excluded.opened_ms = 0 "
		    "OR excluded.seen_ms - node_streams.seen_ms >= $6 "
		    "OR (excluded.boot_id = node_streams.boot_id "
		    "AND excluded.opened_ms > node_streams.opened_ms) "
		    "OR (excluded.boot_id <> node_streams.boot_id "
		    "AND excluded.boot_id <> node_streams.ended_boot_id) RETURNING epoch",
		    STORE_PARAMS(store_text(hello->node), store_text(work->control->replica),
				 store_int(store_now(db).ms), store_text(boot_id),
				 store_int(opened_ms), store_int(HELLO_LATE_MS)),
		    &rows, error))
		return false;
	if (rows.count == 0)
		return refuse_old_stream(hello->node, error);
	*ret_epoch = store_get_int(&rows, 0, 0);
	return true;
}

/* What the node says about its records. Numbers count within one lineage only. A node that has
 * given out fewer numbers than we committed has lost its records: it begins again from there. */
static void take_records(const struct control_hello *hello, const char *lineage, struct node *node)
{
	bool ours = str_equal(hello->lineage, lineage);

	node->stored_generation = ours && hello->spec_generation > 0 ? hello->spec_generation : 0;
	node->hello_sequence = hello->last_sequence > 0 ? hello->last_sequence : 0;
	if (node->acknowledged > node->hello_sequence)
		node->acknowledged = node->hello_sequence;
}

/* A Spec that this database never sent: it was put back to an earlier moment without `restore`, which
 * would have renewed the lineage. The node takes nothing that isn't newer. */
static bool catch_up(struct store_connection *db, const struct node *node, struct error *error)
{
	int64_t stored = node->stored_generation;

	if (stored <= node->sent_generation || stored > MAX_GENERATION)
		return true;
	log_warn("node.ahead",
		 "it has a Spec that this database never sent, as after a backup was put back "
		 "without `better-compute restore`: the next one is numbered above it",
		 "node", node->id, NULL);
	return store_exec(db,
			  "UPDATE nodes SET spec_generation = $2 WHERE id = $1 AND "
			  "spec_generation <= $2",
			  STORE_PARAMS(store_text(node->id), store_int(stored + 1)), error);
}

static bool update_node(struct store_connection *db, const struct control_hello *hello,
			const struct node *node, const char *capabilities, struct error *error)
{
	CLEANUP(free) char *version = clean(hello->version, MAX_HELLO_TEXT);
	CLEANUP(free) char *boot_id = clean(hello->boot_id, MAX_HELLO_TEXT);
	CLEANUP(free) char *hostname = clean(hello->hostname, MAX_HELLO_TEXT);

	return store_exec(db,
			  "UPDATE nodes SET bcd_version = $2, boot_id = $3, hostname = $4, "
			  "capabilities = $5, stored_generation = $6, hello_sequence = $7, "
			  "acknowledged = $8 WHERE id = $1",
			  STORE_PARAMS(store_text(node->id), store_text(version),
				       store_text(boot_id), store_text(hostname),
				       store_text(capabilities), store_int(node->stored_generation),
				       store_int(node->hello_sequence),
				       store_int(node->acknowledged)),
			  error);
}

/* A pool is there for as long as its nodes. */
static bool load_place(struct store_connection *db, const struct node *node,
		       struct control_welcome *welcome, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT site, name FROM pools WHERE id = $1",
			 STORE_PARAMS(store_text(node->pool)), &rows, error))
		return false;
	assert(rows.count == 1);
	str_copy(welcome->site, sizeof welcome->site, store_get_text(&rows, 0, 0));
	str_copy(welcome->pool, sizeof welcome->pool, store_get_text(&rows, 0, 1));
	return true;
}

static bool hello_body(struct store_connection *db, void *argument, struct error *error)
{
	struct hello_work *work = argument;
	const struct control_hello *hello = work->hello;
	CLEANUP(node) struct node node = {0};
	CLEANUP(json_ref) json_t *capabilities = pack_capabilities(hello);
	CLEANUP(free) char *text = json_dumps(capabilities, JSON_COMPACT);
	int64_t epoch, generation;

	if (!load_member(db, hello->node, &node, error) || !open_stream(db, work, &epoch, error))
		return false;
	take_records(hello, store_connection_lineage(db), &node);
	if (!update_node(db, hello, &node, text, error) || !catch_up(db, &node, error))
		return false;
	/* What it may be sent depends on what it knows. */
	if (!json_equal(capabilities, node.capabilities) &&
	    !spec_changed(db, node.id, &generation, error))
		return false;
	if (str_equal(node.state, "joining") && !node_set_state(db, &node, "adopting", error))
		return false;
	work->welcome = (struct control_welcome){
		.epoch = epoch, .acknowledged = node.acknowledged, .now = store_now(db)};
	str_copy(work->welcome.lineage, sizeof work->welcome.lineage, store_connection_lineage(db));
	return load_place(db, &node, &work->welcome, error);
}

bool control_node_hello(struct control *control, const struct control_hello *hello,
			struct control_welcome *ret_welcome, struct error *error)
{
	struct hello_work work = {.control = control, .hello = hello};

	if (!store_run(control->connection, STORE_WRITE, hello_body, &work, error))
		return false;
	*ret_welcome = work.welcome;
	return true;
}

/* --- heartbeat and gone --- */

struct beat_work {
	const char *node;
	int64_t epoch, spec_generation;
};

/* Its node was heard of on this stream, unless a newer one took its place or the node was retired. */
static bool touch_stream(struct store_connection *db, const char *node, int64_t epoch,
			 bool *ret_known, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(
		    db,
		    "UPDATE node_streams SET seen_ms = $3, connected = 1 "
		    "WHERE node = $1 AND epoch = $2 AND NOT EXISTS (SELECT 1 FROM nodes WHERE "
		    "id = $1 AND state = 'retired') RETURNING node",
		    STORE_PARAMS(store_text(node), store_int(epoch), store_int(store_now(db).ms)),
		    &rows, error))
		return false;
	*ret_known = rows.count > 0;
	return true;
}

static bool refuse_stream(struct store_connection *db, const char *id, struct error *error)
{
	CLEANUP(node) struct node node = {0};

	return load_member(db, id, &node, error) && refuse_old_stream(id, error);
}

static bool heartbeat_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct beat_work *work = argument;
	bool known;

	if (!touch_stream(db, work->node, work->epoch, &known, error))
		return false;
	if (!known)
		return refuse_stream(db, work->node, error);
	/* Most heartbeats say what is known already. */
	return store_exec(db,
			  "UPDATE nodes SET stored_generation = $2 "
			  "WHERE id = $1 AND stored_generation <> $2",
			  STORE_PARAMS(store_text(work->node), store_int(work->spec_generation)),
			  error);
}

bool control_node_heartbeat(struct control *control, const char *node, int64_t epoch,
			    int64_t spec_generation, struct error *error)
{
	struct beat_work work = {node, epoch, spec_generation};

	return store_run(control->connection, STORE_WRITE, heartbeat_body, &work, error);
}

struct seen_work {
	struct control_beat *beats;
	size_t count;
};

static bool seen_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct seen_work *work = argument;

	for (size_t i = 0; i < work->count; i++) {
		struct control_beat *beat = &work->beats[i];

		if (!touch_stream(db, beat->node, beat->epoch, &beat->known, error))
			return false;
	}
	return true;
}

bool control_nodes_seen(struct control *control, struct control_beat *beats, size_t count,
			struct error *error)
{
	struct seen_work work = {beats, count};

	return store_run(control->connection, STORE_WRITE, seen_body, &work, error);
}

static bool gone_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct beat_work *work = argument;

	return store_exec(db,
			  "UPDATE node_streams SET connected = 0 WHERE node = $1 AND epoch = $2",
			  STORE_PARAMS(store_text(work->node), store_int(work->epoch)), error);
}

bool control_node_gone(struct control *control, const char *node, int64_t epoch,
		       struct error *error)
{
	struct beat_work work = {.node = node, .epoch = epoch};

	return store_run(control->connection, STORE_WRITE, gone_body, &work, error);
}
