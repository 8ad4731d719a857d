/*
 * The schema for SQLite, one list of statements a version. What tables and columns mean stands in
 * docs/internals/store.md; the other driver's file says the same in its own words.
 */
#include "store/driver.h"

/* clang-format off: one column a line. */
static const char *const VERSION_1[] = {
	"CREATE TABLE meta ( "
	"name TEXT PRIMARY KEY, "
	"value TEXT NOT NULL) STRICT",

	"CREATE TABLE counters ( "
	"name TEXT PRIMARY KEY, "
	"value INTEGER NOT NULL) STRICT",

	"CREATE TABLE tenants ( "
	"id TEXT PRIMARY KEY, "
	"name TEXT NOT NULL UNIQUE, "
	"created_ms INTEGER NOT NULL) STRICT",

	"CREATE TABLE sites ( "
	"id TEXT PRIMARY KEY, "
	"tenant TEXT NOT NULL REFERENCES tenants (id), "
	"name TEXT NOT NULL, "
	"kind TEXT NOT NULL, "
	"created_ms INTEGER NOT NULL, "
	"UNIQUE (tenant, name)) STRICT",

	"CREATE TABLE pools ( "
	"id TEXT PRIMARY KEY, "
	"tenant TEXT NOT NULL REFERENCES tenants (id), "
	"site TEXT NOT NULL REFERENCES sites (id), "
	"name TEXT NOT NULL, "
	"class TEXT NOT NULL, "
	"gpu_model TEXT NOT NULL, "
	"policy TEXT NOT NULL, "
	"version INTEGER NOT NULL, "
	"state TEXT NOT NULL, "
	"created_ms INTEGER NOT NULL, "
	"UNIQUE (tenant, name)) STRICT",

	"CREATE TABLE api_keys ( "
	"id TEXT PRIMARY KEY, "
	"tenant TEXT NOT NULL REFERENCES tenants (id), "
	"role TEXT NOT NULL, "
	"name TEXT NOT NULL, "
	"hash TEXT NOT NULL UNIQUE, "
	"created_ms INTEGER NOT NULL, "
	"revoked_ms INTEGER) STRICT",

	"CREATE TABLE audit ( "
	"id TEXT PRIMARY KEY, "
	"at_ms INTEGER NOT NULL, "
	"request TEXT NOT NULL, "
	"api_key TEXT NOT NULL, "
	"tenant TEXT NOT NULL, "
	"action TEXT NOT NULL, "
	"object TEXT NOT NULL, "
	"detail TEXT NOT NULL) STRICT",

	"CREATE TABLE idempotency ( "
	"tenant TEXT NOT NULL, "
	"operation TEXT NOT NULL, "
	"idempotency_key TEXT NOT NULL, "
	"input_hash TEXT NOT NULL, "
	"object TEXT NOT NULL, "
	"created_ms INTEGER NOT NULL, "
	"PRIMARY KEY (tenant, operation, idempotency_key)) STRICT",

	"CREATE TABLE join_tokens ( "
	"id TEXT PRIMARY KEY, "
	"pool TEXT NOT NULL REFERENCES pools (id), "
	"hosted TEXT, "
	"hash TEXT NOT NULL, "
	"max_uses INTEGER NOT NULL, "
	"uses INTEGER NOT NULL, "
	"expires_ms INTEGER NOT NULL, "
	"revoked_ms INTEGER, "
	"created_ms INTEGER NOT NULL, "
	"CHECK (uses <= max_uses)) STRICT",

	"CREATE TABLE nodes ( "
	"id TEXT PRIMARY KEY, "
	"pool TEXT NOT NULL REFERENCES pools (id), "
	"join_token TEXT NOT NULL REFERENCES join_tokens (id), "
	"machine_key TEXT NOT NULL, "
	"smbios_uuid TEXT NOT NULL, "
	"trust TEXT NOT NULL, "
	"state TEXT NOT NULL, "
	"hostname TEXT NOT NULL, "
	"kubernetes_node_name TEXT NOT NULL, "
	"boot_id TEXT NOT NULL, "
	"bcd_version TEXT NOT NULL, "
	"kernel TEXT NOT NULL, "
	"driver_version TEXT NOT NULL, "
	"gpu_api TEXT NOT NULL, "
	"capabilities TEXT NOT NULL, "
	"vcpus INTEGER NOT NULL, "
	"memory_bytes INTEGER NOT NULL, "
	"simulated INTEGER NOT NULL, "
	"simulated_reason TEXT NOT NULL, "
	"has_inventory INTEGER NOT NULL, "
	"has_conditions INTEGER NOT NULL, "
	"spec_generation INTEGER NOT NULL, "
	"sent_generation INTEGER NOT NULL, "
	"stored_generation INTEGER NOT NULL, "
	"hello_sequence INTEGER NOT NULL, "
	"acknowledged INTEGER NOT NULL, "
	"created_ms INTEGER NOT NULL) STRICT",

	"CREATE TABLE node_streams ( "
	"node TEXT PRIMARY KEY REFERENCES nodes (id), "
	"epoch INTEGER NOT NULL, "
	"replica TEXT NOT NULL, "
	"connected INTEGER NOT NULL, "
	"seen_ms INTEGER NOT NULL) STRICT",

	"CREATE TABLE node_conditions ( "
	"node TEXT NOT NULL REFERENCES nodes (id), "
	"type TEXT NOT NULL, "
	"reason TEXT NOT NULL, "
	"message TEXT NOT NULL, "
	"since_ms INTEGER NOT NULL, "
	"PRIMARY KEY (node, type)) STRICT",

	"CREATE TABLE gpus ( "
	"node TEXT NOT NULL REFERENCES nodes (id), "
	"uuid TEXT NOT NULL, "
	"model TEXT NOT NULL, "
	"pci TEXT NOT NULL, "
	"memory_bytes INTEGER NOT NULL, "
	"numa INTEGER NOT NULL, "
	"healthy INTEGER NOT NULL, "
	"cause TEXT NOT NULL, "
	"seen INTEGER NOT NULL, "
	"PRIMARY KEY (node, uuid)) STRICT",

	"CREATE TABLE atoms ( "
	"node TEXT NOT NULL, "
	"atom TEXT NOT NULL, "
	"class TEXT NOT NULL, "
	"profile TEXT NOT NULL, "
	"gpu TEXT NOT NULL, "
	"visible_device TEXT NOT NULL, "
	"leaf_lo INTEGER NOT NULL, "
	"leaf_hi INTEGER NOT NULL, "
	"numa INTEGER NOT NULL, "
	"memory_bytes INTEGER NOT NULL, "
	"healthy INTEGER NOT NULL, "
	"cause TEXT NOT NULL, "
	"since_ms INTEGER NOT NULL, "
	"seen INTEGER NOT NULL, "
	"PRIMARY KEY (node, atom), "
	"FOREIGN KEY (node, gpu) REFERENCES gpus (node, uuid), "
	"CHECK (0 <= leaf_lo AND leaf_lo < leaf_hi AND leaf_hi <= 1024)) STRICT",

	"CREATE TABLE reservations ( "
	"id TEXT PRIMARY KEY, "
	"tenant TEXT NOT NULL REFERENCES tenants (id), "
	"pool TEXT NOT NULL REFERENCES pools (id), "
	"state TEXT NOT NULL, "
	"state_reason TEXT NOT NULL, "
	"binding TEXT NOT NULL, "
	"devices TEXT NOT NULL, "
	"duration_ms INTEGER NOT NULL, "
	"start_ms INTEGER, "
	"from_ms INTEGER, "
	"end_ms INTEGER, "
	"vcpus INTEGER, "
	"memory_bytes INTEGER, "
	"reasons TEXT NOT NULL, "
	"created_ms INTEGER NOT NULL, "
	"release_ms INTEGER) STRICT",

	"CREATE TABLE allocations ( "
	"id TEXT PRIMARY KEY, "
	"reservation TEXT NOT NULL REFERENCES reservations (id), "
	"node TEXT NOT NULL REFERENCES nodes (id), "
	"state TEXT NOT NULL, "
	"from_ms INTEGER NOT NULL, "
	"to_ms INTEGER NOT NULL, "
	"vcpus INTEGER NOT NULL, "
	"memory_bytes INTEGER NOT NULL, "
	"limited INTEGER NOT NULL, "
	"assigned_generation INTEGER, "
	"withdrawn_generation INTEGER, "
	"bound_ms INTEGER, "
	"releasing_ms INTEGER, "
	"released_ms INTEGER, "
	"lost_reason TEXT NOT NULL, "
	"lost_ms INTEGER, "
	"end_reason TEXT NOT NULL, "
	"created_ms INTEGER NOT NULL, "
	"CHECK (from_ms < to_ms)) STRICT",

	"CREATE TABLE allocation_devices ( "
	"allocation TEXT NOT NULL REFERENCES allocations (id), "
	"ordinal INTEGER NOT NULL, "
	"atom TEXT NOT NULL, "
	"class TEXT NOT NULL, "
	"profile TEXT NOT NULL, "
	"gpu TEXT NOT NULL, "
	"visible_device TEXT NOT NULL, "
	"PRIMARY KEY (allocation, ordinal)) STRICT",

	"CREATE TABLE bookings ( "
	"allocation TEXT NOT NULL REFERENCES allocations (id), "
	"gpu TEXT NOT NULL, "
	"leaf_lo INTEGER NOT NULL, "
	"leaf_hi INTEGER NOT NULL, "
	"from_ms INTEGER NOT NULL, "
	"to_ms INTEGER NOT NULL, "
	"held INTEGER NOT NULL, "
	"PRIMARY KEY (allocation, gpu, leaf_lo), "
	"CHECK (0 <= leaf_lo AND leaf_lo < leaf_hi AND leaf_hi <= 1024), "
	"CHECK (from_ms < to_ms), "
	"CHECK (held IN (0, 1))) STRICT",

	"CREATE INDEX bookings_gpu ON bookings (gpu, to_ms)",

	"CREATE TRIGGER bookings_no_overlap_insert BEFORE INSERT ON bookings "
	"WHEN EXISTS (SELECT 1 FROM bookings b "
	"WHERE b.gpu = NEW.gpu AND b.leaf_lo < NEW.leaf_hi AND NEW.leaf_lo < b.leaf_hi "
	"AND (NEW.held = 1 OR b.from_ms < NEW.to_ms) AND (b.held = 1 OR NEW.from_ms < b.to_ms)) "
	"BEGIN SELECT RAISE(ABORT, 'bookings_no_overlap: devices are booked already'); END",

	"CREATE TRIGGER bookings_no_overlap_update BEFORE UPDATE ON bookings "
	"WHEN EXISTS (SELECT 1 FROM bookings b "
	"WHERE b.gpu = NEW.gpu AND b.leaf_lo < NEW.leaf_hi AND NEW.leaf_lo < b.leaf_hi "
	"AND (NEW.held = 1 OR b.from_ms < NEW.to_ms) AND (b.held = 1 OR NEW.from_ms < b.to_ms) "
	"AND NOT (b.allocation = OLD.allocation AND b.gpu = OLD.gpu AND b.leaf_lo = OLD.leaf_lo)) "
	"BEGIN SELECT RAISE(ABORT, 'bookings_no_overlap: devices are booked already'); END",

	"CREATE TABLE leases ( "
	"name TEXT PRIMARY KEY, "
	"holder TEXT NOT NULL, "
	"fence INTEGER NOT NULL, "
	"until_ms INTEGER NOT NULL) STRICT",

	"CREATE TABLE outbox ( "
	"seq INTEGER PRIMARY KEY, "
	"at_ms INTEGER NOT NULL, "
	"node TEXT NOT NULL, "
	"generation INTEGER NOT NULL) STRICT",

	"CREATE TABLE events ( "
	"seq INTEGER PRIMARY KEY, "
	"at_ms INTEGER NOT NULL, "
	"tenant TEXT NOT NULL, "
	"type TEXT NOT NULL, "
	"subject TEXT NOT NULL, "
	"data TEXT NOT NULL) STRICT",

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
	"ALTER TABLE node_streams ADD COLUMN boot_id TEXT NOT NULL DEFAULT ''",
	"ALTER TABLE node_streams ADD COLUMN opened_ms INTEGER NOT NULL DEFAULT 0",
	"ALTER TABLE node_streams ADD COLUMN ended_boot_id TEXT NOT NULL DEFAULT ''",
	NULL,
};

/* api */
static const char *const VERSION_3[] = {
	"ALTER TABLE tenants ADD COLUMN state TEXT NOT NULL DEFAULT 'active'",

	"ALTER TABLE sites ADD COLUMN state TEXT NOT NULL DEFAULT 'active'",

	"ALTER TABLE audit ADD COLUMN before_hash TEXT",

	"ALTER TABLE audit ADD COLUMN after_hash TEXT",

	"CREATE INDEX audit_tenant ON audit (tenant, id)",

	"CREATE INDEX audit_object ON audit (object, id)",

	"CREATE INDEX events_tenant ON events (tenant, seq)",
	NULL,
};

/* reservations */
static const char *const VERSION_4[] = {
	"ALTER TABLE reservations ADD COLUMN spot INTEGER NOT NULL DEFAULT 0",

	"ALTER TABLE reservations ADD COLUMN gang_nodes INTEGER NOT NULL DEFAULT 0",

	"ALTER TABLE reservations ADD COLUMN gang_same TEXT NOT NULL DEFAULT ''",

	"ALTER TABLE nodes ADD COLUMN roomed INTEGER NOT NULL DEFAULT 0",

	"CREATE TABLE node_labels ( "
	"node TEXT NOT NULL REFERENCES nodes (id), "
	"name TEXT NOT NULL, "
	"value TEXT NOT NULL, "
	"system INTEGER NOT NULL, "
	"PRIMARY KEY (node, name)) STRICT",

	"CREATE TABLE node_room ( "
	"node TEXT NOT NULL REFERENCES nodes (id), "
	"class TEXT NOT NULL, "
	"profile TEXT NOT NULL, "
	"pool TEXT NOT NULL, "
	"total INTEGER NOT NULL, "
	"healthy INTEGER NOT NULL, "
	"idle INTEGER NOT NULL, "
	"first_end_ms INTEGER NOT NULL, "
	"last_from_ms INTEGER NOT NULL, "
	"PRIMARY KEY (node, class, profile)) STRICT",

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
	"id TEXT PRIMARY KEY, "
	"allocation TEXT NOT NULL UNIQUE, "
	"reservation TEXT NOT NULL, "
	"tenant TEXT NOT NULL, "
	"pool TEXT NOT NULL, "
	"node TEXT NOT NULL, "
	"started_ms INTEGER NOT NULL, "
	"stopped_ms INTEGER NOT NULL, "
	"seconds INTEGER NOT NULL, "
	"reason TEXT NOT NULL, "
	"CHECK (started_ms <= stopped_ms)) STRICT",

	"CREATE TABLE meter_devices ( "
	"meter TEXT NOT NULL REFERENCES meter (id), "
	"class TEXT NOT NULL, "
	"profile TEXT NOT NULL, "
	"devices INTEGER NOT NULL, "
	"gpu_seconds INTEGER NOT NULL, "
	"PRIMARY KEY (meter, class, profile)) STRICT",

	"CREATE INDEX meter_tenant ON meter (tenant, stopped_ms)",

	"CREATE INDEX meter_stopped ON meter (stopped_ms)",

	"CREATE INDEX reservations_tenant ON reservations (tenant, state)",

	"CREATE TABLE quotas ( "
	"id TEXT PRIMARY KEY, "
	"tenant TEXT NOT NULL REFERENCES tenants (id), "
	"pool TEXT NOT NULL, "
	"class TEXT NOT NULL, "
	"max_devices INTEGER, "
	"gpu_hours INTEGER, "
	"created_ms INTEGER NOT NULL, "
	"UNIQUE (tenant, pool, class)) STRICT",

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
	"id TEXT PRIMARY KEY, "
	"tenant TEXT NOT NULL REFERENCES tenants (id), "
	"name TEXT NOT NULL, "
	"sealed_by TEXT NOT NULL, "
	"sealed TEXT NOT NULL, "
	"version INTEGER NOT NULL, "
	"created_ms INTEGER NOT NULL, "
	"changed_ms INTEGER NOT NULL, "
	"UNIQUE (tenant, name)) STRICT",

	"CREATE INDEX secrets_sealed_by ON secrets (sealed_by)",

	/* A key that was rotated: its old secret opens until then. */
	"ALTER TABLE api_keys ADD COLUMN old_hash TEXT",

	"ALTER TABLE api_keys ADD COLUMN old_until_ms INTEGER",

	"ALTER TABLE api_keys ADD COLUMN rotated_ms INTEGER",

	"CREATE UNIQUE INDEX api_keys_old_hash ON api_keys (old_hash)",
	NULL,
};

/* running */
static const char *const VERSION_7[] = {
	NULL,
};

/* huge pages: what a node has of each size, what was asked for, and what was given; bytes */
static const char *const VERSION_8[] = {
	"ALTER TABLE nodes ADD COLUMN hugepages_2mi INTEGER NOT NULL DEFAULT 0",

	"ALTER TABLE nodes ADD COLUMN hugepages_1gi INTEGER NOT NULL DEFAULT 0",

	"ALTER TABLE reservations ADD COLUMN hugepages_2mi INTEGER NOT NULL DEFAULT 0",

	"ALTER TABLE reservations ADD COLUMN hugepages_1gi INTEGER NOT NULL DEFAULT 0",

	"ALTER TABLE allocations ADD COLUMN hugepages_2mi INTEGER NOT NULL DEFAULT 0",

	"ALTER TABLE allocations ADD COLUMN hugepages_1gi INTEGER NOT NULL DEFAULT 0",  NULL,
};

/* failures after which the node has said of something that may have been in the way */
static const char *const VERSION_9[] = {
	"ALTER TABLE allocations ADD COLUMN excused INTEGER NOT NULL DEFAULT 0",
	NULL,
};
/* clang-format on */

const struct store_migration store_sqlite_migrations[STORE_MIGRATIONS] = {
	{"first", VERSION_1},        {"streams", VERSION_2},   {"api", VERSION_3},
	{"reservations", VERSION_4}, {"money", VERSION_5},     {"secrets", VERSION_6},
	{"running", VERSION_7},      {"hugepages", VERSION_8}, {"excused", VERSION_9},
};
