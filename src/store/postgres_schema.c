/*
 * The schema for PostgreSQL, one list of statements a version. What tables and columns mean stands
 * in docs/internals/store.md; the other driver's file says the same in its own words.
 */
#include "store/driver.h"

/* clang-format off: one column a line. */
static const char *const VERSION_1[] = {
	"CREATE EXTENSION IF NOT EXISTS btree_gist",

	"CREATE TABLE meta ( "
	"name TEXT COLLATE \"C\" PRIMARY KEY, "
	"value TEXT COLLATE \"C\" NOT NULL)",

	"CREATE TABLE counters ( "
	"name TEXT COLLATE \"C\" PRIMARY KEY, "
	"value BIGINT NOT NULL)",

	"CREATE TABLE tenants ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"name TEXT COLLATE \"C\" NOT NULL UNIQUE, "
	"created_ms BIGINT NOT NULL)",

	"CREATE TABLE sites ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"tenant TEXT COLLATE \"C\" NOT NULL REFERENCES tenants (id), "
	"name TEXT COLLATE \"C\" NOT NULL, "
	"kind TEXT COLLATE \"C\" NOT NULL, "
	"created_ms BIGINT NOT NULL, "
	"UNIQUE (tenant, name))",

	"CREATE TABLE pools ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"tenant TEXT COLLATE \"C\" NOT NULL REFERENCES tenants (id), "
	"site TEXT COLLATE \"C\" NOT NULL REFERENCES sites (id), "
	"name TEXT COLLATE \"C\" NOT NULL, "
	"class TEXT COLLATE \"C\" NOT NULL, "
	"gpu_model TEXT COLLATE \"C\" NOT NULL, "
	"policy TEXT COLLATE \"C\" NOT NULL, "
	"version BIGINT NOT NULL, "
	"state TEXT COLLATE \"C\" NOT NULL, "
	"created_ms BIGINT NOT NULL, "
	"UNIQUE (tenant, name))",

	"CREATE TABLE api_keys ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"tenant TEXT COLLATE \"C\" NOT NULL REFERENCES tenants (id), "
	"role TEXT COLLATE \"C\" NOT NULL, "
	"name TEXT COLLATE \"C\" NOT NULL, "
	"hash TEXT COLLATE \"C\" NOT NULL UNIQUE, "
	"created_ms BIGINT NOT NULL, "
	"revoked_ms BIGINT)",

	"CREATE TABLE audit ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"at_ms BIGINT NOT NULL, "
	"request TEXT COLLATE \"C\" NOT NULL, "
	"api_key TEXT COLLATE \"C\" NOT NULL, "
	"tenant TEXT COLLATE \"C\" NOT NULL, "
	"action TEXT COLLATE \"C\" NOT NULL, "
	"object TEXT COLLATE \"C\" NOT NULL, "
	"detail TEXT COLLATE \"C\" NOT NULL)",

	"CREATE TABLE idempotency ( "
	"tenant TEXT COLLATE \"C\" NOT NULL, "
	"operation TEXT COLLATE \"C\" NOT NULL, "
	"idempotency_key TEXT COLLATE \"C\" NOT NULL, "
	"input_hash TEXT COLLATE \"C\" NOT NULL, "
	"object TEXT COLLATE \"C\" NOT NULL, "
	"created_ms BIGINT NOT NULL, "
	"PRIMARY KEY (tenant, operation, idempotency_key))",

	"CREATE TABLE join_tokens ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"pool TEXT COLLATE \"C\" NOT NULL REFERENCES pools (id), "
	"hosted TEXT COLLATE \"C\", "
	"hash TEXT COLLATE \"C\" NOT NULL, "
	"max_uses BIGINT NOT NULL, "
	"uses BIGINT NOT NULL, "
	"expires_ms BIGINT NOT NULL, "
	"revoked_ms BIGINT, "
	"created_ms BIGINT NOT NULL, "
	"CHECK (uses <= max_uses))",

	"CREATE TABLE nodes ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"pool TEXT COLLATE \"C\" NOT NULL REFERENCES pools (id), "
	"join_token TEXT COLLATE \"C\" NOT NULL REFERENCES join_tokens (id), "
	"machine_key TEXT COLLATE \"C\" NOT NULL, "
	"smbios_uuid TEXT COLLATE \"C\" NOT NULL, "
	"trust TEXT COLLATE \"C\" NOT NULL, "
	"state TEXT COLLATE \"C\" NOT NULL, "
	"hostname TEXT COLLATE \"C\" NOT NULL, "
	"kubernetes_node_name TEXT COLLATE \"C\" NOT NULL, "
	"boot_id TEXT COLLATE \"C\" NOT NULL, "
	"bcd_version TEXT COLLATE \"C\" NOT NULL, "
	"kernel TEXT COLLATE \"C\" NOT NULL, "
	"driver_version TEXT COLLATE \"C\" NOT NULL, "
	"gpu_api TEXT COLLATE \"C\" NOT NULL, "
	"capabilities TEXT COLLATE \"C\" NOT NULL, "
	"vcpus BIGINT NOT NULL, "
	"memory_bytes BIGINT NOT NULL, "
	"simulated BIGINT NOT NULL, "
	"simulated_reason TEXT COLLATE \"C\" NOT NULL, "
	"has_inventory BIGINT NOT NULL, "
	"has_conditions BIGINT NOT NULL, "
	"spec_generation BIGINT NOT NULL, "
	"sent_generation BIGINT NOT NULL, "
	"stored_generation BIGINT NOT NULL, "
	"hello_sequence BIGINT NOT NULL, "
	"acknowledged BIGINT NOT NULL, "
	"created_ms BIGINT NOT NULL)",

	"CREATE TABLE node_streams ( "
	"node TEXT COLLATE \"C\" PRIMARY KEY REFERENCES nodes (id), "
	"epoch BIGINT NOT NULL, "
	"replica TEXT COLLATE \"C\" NOT NULL, "
	"connected BIGINT NOT NULL, "
	"seen_ms BIGINT NOT NULL)",

	"CREATE TABLE node_conditions ( "
	"node TEXT COLLATE \"C\" NOT NULL REFERENCES nodes (id), "
	"type TEXT COLLATE \"C\" NOT NULL, "
	"reason TEXT COLLATE \"C\" NOT NULL, "
	"message TEXT COLLATE \"C\" NOT NULL, "
	"since_ms BIGINT NOT NULL, "
	"PRIMARY KEY (node, type))",

	"CREATE TABLE gpus ( "
	"node TEXT COLLATE \"C\" NOT NULL REFERENCES nodes (id), "
	"uuid TEXT COLLATE \"C\" NOT NULL, "
	"model TEXT COLLATE \"C\" NOT NULL, "
	"pci TEXT COLLATE \"C\" NOT NULL, "
	"memory_bytes BIGINT NOT NULL, "
	"numa BIGINT NOT NULL, "
	"healthy BIGINT NOT NULL, "
	"cause TEXT COLLATE \"C\" NOT NULL, "
	"seen BIGINT NOT NULL, "
	"PRIMARY KEY (node, uuid))",

	"CREATE TABLE atoms ( "
	"node TEXT COLLATE \"C\" NOT NULL, "
	"atom TEXT COLLATE \"C\" NOT NULL, "
	"class TEXT COLLATE \"C\" NOT NULL, "
	"profile TEXT COLLATE \"C\" NOT NULL, "
	"gpu TEXT COLLATE \"C\" NOT NULL, "
	"visible_device TEXT COLLATE \"C\" NOT NULL, "
	"leaf_lo BIGINT NOT NULL, "
	"leaf_hi BIGINT NOT NULL, "
	"numa BIGINT NOT NULL, "
	"memory_bytes BIGINT NOT NULL, "
	"healthy BIGINT NOT NULL, "
	"cause TEXT COLLATE \"C\" NOT NULL, "
	"since_ms BIGINT NOT NULL, "
	"seen BIGINT NOT NULL, "
	"PRIMARY KEY (node, atom), "
	"FOREIGN KEY (node, gpu) REFERENCES gpus (node, uuid), "
	"CHECK (0 <= leaf_lo AND leaf_lo < leaf_hi AND leaf_hi <= 1024))",

	"CREATE TABLE reservations ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"tenant TEXT COLLATE \"C\" NOT NULL REFERENCES tenants (id), "
	"pool TEXT COLLATE \"C\" NOT NULL REFERENCES pools (id), "
	"state TEXT COLLATE \"C\" NOT NULL, "
	"state_reason TEXT COLLATE \"C\" NOT NULL, "
	"binding TEXT COLLATE \"C\" NOT NULL, "
	"devices TEXT COLLATE \"C\" NOT NULL, "
	"duration_ms BIGINT NOT NULL, "
	"start_ms BIGINT, "
	"from_ms BIGINT, "
	"end_ms BIGINT, "
	"vcpus BIGINT, "
	"memory_bytes BIGINT, "
	"reasons TEXT COLLATE \"C\" NOT NULL, "
	"created_ms BIGINT NOT NULL, "
	"release_ms BIGINT)",

	"CREATE TABLE allocations ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"reservation TEXT COLLATE \"C\" NOT NULL REFERENCES reservations (id), "
	"node TEXT COLLATE \"C\" NOT NULL REFERENCES nodes (id), "
	"state TEXT COLLATE \"C\" NOT NULL, "
	"from_ms BIGINT NOT NULL, "
	"to_ms BIGINT NOT NULL, "
	"vcpus BIGINT NOT NULL, "
	"memory_bytes BIGINT NOT NULL, "
	"limited BIGINT NOT NULL, "
	"assigned_generation BIGINT, "
	"withdrawn_generation BIGINT, "
	"bound_ms BIGINT, "
	"releasing_ms BIGINT, "
	"released_ms BIGINT, "
	"lost_reason TEXT COLLATE \"C\" NOT NULL, "
	"lost_ms BIGINT, "
	"end_reason TEXT COLLATE \"C\" NOT NULL, "
	"created_ms BIGINT NOT NULL, "
	"CHECK (from_ms < to_ms))",

	"CREATE TABLE allocation_devices ( "
	"allocation TEXT COLLATE \"C\" NOT NULL REFERENCES allocations (id), "
	"ordinal BIGINT NOT NULL, "
	"atom TEXT COLLATE \"C\" NOT NULL, "
	"class TEXT COLLATE \"C\" NOT NULL, "
	"profile TEXT COLLATE \"C\" NOT NULL, "
	"gpu TEXT COLLATE \"C\" NOT NULL, "
	"visible_device TEXT COLLATE \"C\" NOT NULL, "
	"PRIMARY KEY (allocation, ordinal))",

	"CREATE TABLE bookings ( "
	"allocation TEXT COLLATE \"C\" NOT NULL REFERENCES allocations (id), "
	"gpu TEXT COLLATE \"C\" NOT NULL, "
	"leaf_lo BIGINT NOT NULL, "
	"leaf_hi BIGINT NOT NULL, "
	"from_ms BIGINT NOT NULL, "
	"to_ms BIGINT NOT NULL, "
	"held BIGINT NOT NULL, "
	"PRIMARY KEY (allocation, gpu, leaf_lo), "
	"CHECK (0 <= leaf_lo AND leaf_lo < leaf_hi AND leaf_hi <= 1024), "
	"CHECK (from_ms < to_ms), "
	"CHECK (held IN (0, 1)), "
	"CONSTRAINT bookings_no_overlap EXCLUDE USING gist ( "
	"gpu WITH =, "
	"int8range(leaf_lo, leaf_hi) WITH &&, "
	"int8range(from_ms, CASE WHEN held = 1 THEN NULL ELSE to_ms END) WITH &&))",

	"CREATE INDEX bookings_gpu ON bookings (gpu, to_ms)",

	"CREATE TABLE leases ( "
	"name TEXT COLLATE \"C\" PRIMARY KEY, "
	"holder TEXT COLLATE \"C\" NOT NULL, "
	"fence BIGINT NOT NULL, "
	"until_ms BIGINT NOT NULL)",

	"CREATE TABLE outbox ( "
	"seq BIGINT PRIMARY KEY, "
	"at_ms BIGINT NOT NULL, "
	"node TEXT COLLATE \"C\" NOT NULL, "
	"generation BIGINT NOT NULL)",

	"CREATE TABLE events ( "
	"seq BIGINT PRIMARY KEY, "
	"at_ms BIGINT NOT NULL, "
	"tenant TEXT COLLATE \"C\" NOT NULL, "
	"type TEXT COLLATE \"C\" NOT NULL, "
	"subject TEXT COLLATE \"C\" NOT NULL, "
	"data TEXT COLLATE \"C\" NOT NULL)",

	"CREATE UNIQUE INDEX nodes_machine_key ON nodes (machine_key) WHERE state NOT IN "
	"('retired', 'lost')",

	"CREATE INDEX nodes_pool ON nodes (pool)",

	"CREATE INDEX join_tokens_pool ON join_tokens (pool)",

	"CREATE INDEX gpus_uuid ON gpus (uuid)",

	"CREATE INDEX reservations_pool ON reservations (pool, state)",

	"CREATE INDEX reservations_state ON reservations (state)",

	"CREATE INDEX allocations_reservation ON allocations (reservation)",

	"CREATE INDEX allocations_node ON allocations (node, state)",

	"CREATE INDEX allocations_state ON allocations (state)",

	"CREATE INDEX idempotency_created ON idempotency (created_ms)",

	"CREATE INDEX idempotency_object ON idempotency (object)",

	"CREATE INDEX audit_at ON audit (at_ms)",

	"CREATE INDEX outbox_at ON outbox (at_ms)",

	"CREATE INDEX events_at ON events (at_ms)",

	"INSERT INTO counters (name, value) VALUES ('outbox', 0), ('events', 0)",
	NULL,
};

/* Which Hello is the newest (gateway.md). */
static const char *const VERSION_2[] = {
	"ALTER TABLE node_streams ADD COLUMN boot_id TEXT COLLATE \"C\" NOT NULL DEFAULT ''",
	"ALTER TABLE node_streams ADD COLUMN opened_ms BIGINT NOT NULL DEFAULT 0",
	"ALTER TABLE node_streams ADD COLUMN ended_boot_id TEXT COLLATE \"C\" NOT NULL DEFAULT ''",
	NULL,
};

/* api */
static const char *const VERSION_3[] = {
	"ALTER TABLE tenants ADD COLUMN state TEXT COLLATE \"C\" NOT NULL DEFAULT 'active'",

	"ALTER TABLE sites ADD COLUMN state TEXT COLLATE \"C\" NOT NULL DEFAULT 'active'",

	"ALTER TABLE audit ADD COLUMN before_hash TEXT COLLATE \"C\"",

	"ALTER TABLE audit ADD COLUMN after_hash TEXT COLLATE \"C\"",

	"CREATE INDEX audit_tenant ON audit (tenant, id)",

	"CREATE INDEX audit_object ON audit (object, id)",

	"CREATE INDEX events_tenant ON events (tenant, seq)",
	NULL,
};

/* reservations */
static const char *const VERSION_4[] = {
	"ALTER TABLE reservations ADD COLUMN spot BIGINT NOT NULL DEFAULT 0",

	"ALTER TABLE reservations ADD COLUMN gang_nodes BIGINT NOT NULL DEFAULT 0",

	"ALTER TABLE reservations ADD COLUMN gang_same TEXT COLLATE \"C\" NOT NULL DEFAULT ''",

	"ALTER TABLE nodes ADD COLUMN roomed BIGINT NOT NULL DEFAULT 0",

	"CREATE TABLE node_labels ( "
	"node TEXT COLLATE \"C\" NOT NULL REFERENCES nodes (id), "
	"name TEXT COLLATE \"C\" NOT NULL, "
	"value TEXT COLLATE \"C\" NOT NULL, "
	"system BIGINT NOT NULL, "
	"PRIMARY KEY (node, name))",

	"CREATE TABLE node_room ( "
	"node TEXT COLLATE \"C\" NOT NULL REFERENCES nodes (id), "
	"class TEXT COLLATE \"C\" NOT NULL, "
	"profile TEXT COLLATE \"C\" NOT NULL, "
	"pool TEXT COLLATE \"C\" NOT NULL, "
	"total BIGINT NOT NULL, "
	"healthy BIGINT NOT NULL, "
	"idle BIGINT NOT NULL, "
	"first_end_ms BIGINT NOT NULL, "
	"last_from_ms BIGINT NOT NULL, "
	"PRIMARY KEY (node, class, profile))",

	"CREATE INDEX node_room_idle ON node_room (pool, class, profile, idle, node)",

	"CREATE INDEX node_room_ends ON node_room (pool, class, profile, first_end_ms)",

	"CREATE INDEX node_room_begins ON node_room (pool, class, profile, last_from_ms)",

	"CREATE INDEX nodes_unroomed ON nodes (id) WHERE roomed = 0 AND has_inventory = 1",

	"CREATE INDEX reservations_waiting ON reservations (pool, created_ms, id) "
	"WHERE state = 'pending' AND gang_nodes > 0",

	"CREATE INDEX allocations_parts ON allocations (reservation, state)",

	"CREATE INDEX allocations_end ON allocations (state, to_ms)",

	"CREATE INDEX allocations_begin ON allocations (state, assigned_generation, from_ms)",

	"CREATE INDEX reservations_turn ON reservations (state, created_ms, id)",
	NULL,
};

/* money */
static const char *const VERSION_5[] = {
	"CREATE TABLE meter ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"allocation TEXT COLLATE \"C\" NOT NULL UNIQUE, "
	"reservation TEXT COLLATE \"C\" NOT NULL, "
	"tenant TEXT COLLATE \"C\" NOT NULL, "
	"pool TEXT COLLATE \"C\" NOT NULL, "
	"node TEXT COLLATE \"C\" NOT NULL, "
	"started_ms BIGINT NOT NULL, "
	"stopped_ms BIGINT NOT NULL, "
	"seconds BIGINT NOT NULL, "
	"reason TEXT COLLATE \"C\" NOT NULL, "
	"CHECK (started_ms <= stopped_ms))",

	"CREATE TABLE meter_devices ( "
	"meter TEXT COLLATE \"C\" NOT NULL REFERENCES meter (id), "
	"class TEXT COLLATE \"C\" NOT NULL, "
	"profile TEXT COLLATE \"C\" NOT NULL, "
	"devices BIGINT NOT NULL, "
	"gpu_seconds BIGINT NOT NULL, "
	"PRIMARY KEY (meter, class, profile))",

	"CREATE INDEX meter_tenant ON meter (tenant, stopped_ms)",

	"CREATE INDEX meter_stopped ON meter (stopped_ms)",

	"CREATE INDEX reservations_tenant ON reservations (tenant, state)",

	"CREATE TABLE quotas ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"tenant TEXT COLLATE \"C\" NOT NULL REFERENCES tenants (id), "
	"pool TEXT COLLATE \"C\" NOT NULL, "
	"class TEXT COLLATE \"C\" NOT NULL, "
	"max_devices BIGINT, "
	"gpu_hours BIGINT, "
	"created_ms BIGINT NOT NULL, "
	"UNIQUE (tenant, pool, class))",

	/* What closed before there was a meter, by the same rule. */
	"INSERT INTO meter (id, allocation, reservation, tenant, pool, node, started_ms, "
	"stopped_ms, seconds, reason) SELECT 'mtr_' || substr(id, 5), id, reservation, tenant, "
	"pool, node, started_ms, stopped_ms, (stopped_ms - started_ms) / 1000, end_reason FROM "
	"(SELECT a.id, a.reservation, r.tenant, r.pool, a.node, a.end_reason, "
	"CASE WHEN a.bound_ms < a.to_ms AND a.bound_ms < a.released_ms THEN a.bound_ms "
	"WHEN a.released_ms < a.to_ms THEN a.released_ms ELSE a.to_ms END AS started_ms, "
	"CASE WHEN a.released_ms < a.to_ms THEN a.released_ms ELSE a.to_ms END AS stopped_ms "
	"FROM allocations a JOIN reservations r ON r.id = a.reservation "
	"WHERE a.state IN ('released', 'failed') AND a.released_ms IS NOT NULL) AS closed",

	"INSERT INTO meter_devices (meter, class, profile, devices, gpu_seconds) "
	"SELECT m.id, d.class, d.profile, count(*), count(*) * m.seconds FROM meter m JOIN "
	"allocation_devices d ON d.allocation = m.allocation "
	"GROUP BY m.id, m.seconds, d.class, d.profile",
	NULL,
};

/* secrets */
static const char *const VERSION_6[] = {
	"CREATE TABLE secrets ( "
	"id TEXT COLLATE \"C\" PRIMARY KEY, "
	"tenant TEXT COLLATE \"C\" NOT NULL REFERENCES tenants (id), "
	"name TEXT COLLATE \"C\" NOT NULL, "
	"sealed_by TEXT COLLATE \"C\" NOT NULL, "
	"sealed TEXT COLLATE \"C\" NOT NULL, "
	"version BIGINT NOT NULL, "
	"created_ms BIGINT NOT NULL, "
	"changed_ms BIGINT NOT NULL, "
	"UNIQUE (tenant, name))",

	"CREATE INDEX secrets_sealed_by ON secrets (sealed_by)",

	/* A key that was rotated: its old secret opens until then. */
	"ALTER TABLE api_keys ADD COLUMN old_hash TEXT COLLATE \"C\"",

	"ALTER TABLE api_keys ADD COLUMN old_until_ms BIGINT",

	"ALTER TABLE api_keys ADD COLUMN rotated_ms BIGINT",

	"CREATE UNIQUE INDEX api_keys_old_hash ON api_keys (old_hash)",
	NULL,
};

/* running */
static const char *const VERSION_7[] = {
	NULL,
};

/* huge pages: what a node has of each size, what was asked for, and what was given; bytes */
static const char *const VERSION_8[] = {
	"ALTER TABLE nodes ADD COLUMN hugepages_2mi BIGINT NOT NULL DEFAULT 0",

	"ALTER TABLE nodes ADD COLUMN hugepages_1gi BIGINT NOT NULL DEFAULT 0",

	"ALTER TABLE reservations ADD COLUMN hugepages_2mi BIGINT NOT NULL DEFAULT 0",

	"ALTER TABLE reservations ADD COLUMN hugepages_1gi BIGINT NOT NULL DEFAULT 0",

	"ALTER TABLE allocations ADD COLUMN hugepages_2mi BIGINT NOT NULL DEFAULT 0",

	"ALTER TABLE allocations ADD COLUMN hugepages_1gi BIGINT NOT NULL DEFAULT 0",  NULL,
};

/* failures after which the node has said of something that may have been in the way */
static const char *const VERSION_9[] = {
	"ALTER TABLE allocations ADD COLUMN excused BIGINT NOT NULL DEFAULT 0",
	NULL,
};
/* clang-format on */

const struct store_migration store_postgres_migrations[STORE_MIGRATIONS] = {
	{"first", VERSION_1},        {"streams", VERSION_2},   {"api", VERSION_3},
	{"reservations", VERSION_4}, {"money", VERSION_5},     {"secrets", VERSION_6},
	{"running", VERSION_7},      {"hugepages", VERSION_8}, {"excused", VERSION_9},
};
