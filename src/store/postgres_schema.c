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
/* clang-format on */

const struct store_migration store_postgres_migrations[STORE_MIGRATIONS] = {
	{"first", VERSION_1},
	{"streams", VERSION_2},
};
