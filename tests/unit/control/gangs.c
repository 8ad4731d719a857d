#include "unit/control/gangs.h"

json_t *reserve_gang(struct world *world, int nodes, int gpus, const char *duration,
		     const char *more)
{
	database_advance(1); /* the order in which they came */
	return world_call(world, control_reservation_create, NULL,
			  "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			  "\"count\":%d}],\"duration\":\"%s\",\"binding\":\"kubernetes\",\"gang\":{"
			  "\"nodes\":%d%s}}",
			  world->tenant, world->pool, gpus, duration, nodes, more);
}

json_t *reserve_for(struct world *world, int gpus, const char *duration)
{
	database_advance(1);
	return world_call(world, control_reservation_create, NULL,
			  "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			  "\"count\":%d}],\"duration\":\"%s\",\"binding\":\"kubernetes\"}",
			  world->tenant, world->pool, gpus, duration);
}

const char *state_of(struct world *world, const json_t *reservation)
{
	return world_text(world_reservation(world, world_text(reservation, "id")), "state");
}

struct world_node *node_of(struct world_node *nodes, size_t count, const char *id)
{
	for (size_t i = 0; i < count; i++) {
		if (str_equal(nodes[i].id, id))
			return &nodes[i];
	}
	fail_msg("no node %s", id);
	return NULL;
}

static bool count_bookings_body(struct store_connection *db, void *argument, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t *count = argument;

	if (!store_query(db, "SELECT count(*) FROM bookings", STORE_NO_PARAMS, &rows, error))
		return false;
	*count = store_get_int(&rows, 0, 0);
	return true;
}

int64_t count_bookings(struct world *world)
{
	int64_t count = 0;
	struct error error;

	expect_ok(store_run(world->control.connection, STORE_READ, count_bookings_body, &count,
			    &error),
		  &error);
	return count;
}

struct label {
	const char *node, *name, *value;
	int64_t system;
};

static bool label_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct label *label = argument;

	return store_exec(db,
			  "INSERT INTO node_labels (node, name, value, system) VALUES ($1, $2, $3, "
			  "$4)",
			  STORE_PARAMS(store_text(label->node), store_text(label->name),
				       store_text(label->value), store_int(label->system)),
			  error);
}

void set_label(struct world *world, const char *node, const char *name, const char *value,
	       bool by_system)
{
	struct label label = {node, name, value, by_system};
	struct error error;

	expect_ok(store_run(world->control.connection, STORE_WRITE, label_body, &label, &error),
		  &error);
}

void set_rack(struct world *world, const struct world_node *node, const char *rack)
{
	set_label(world, node->id, "bc.dev/topology.rack", rack, false);
}
