/*
 * The schema for PostgreSQL, one list of statements a version. What tables and columns mean stands
 * in docs/internals/store.md; the other driver's file says the same in its own words.
 */
#include "store/driver.h"

/* clang-format off: one column a line. */
static const char *const VERSION_1[] = {
	"CREATE EXTENSION IF NOT EXISTS btree_gist",

	"CREATE TABLE meta ( "
	"name TEXT PRIMARY KEY, "
	"value TEXT NOT NULL)",

	"CREATE TABLE counters ( "
	"name TEXT PRIMARY KEY, "
	"value BIGINT NOT NULL)",

	"CREATE TABLE tenants ( "
	"id TEXT PRIMARY KEY, "
	"name TEXT NOT NULL UNIQUE, "
	"created_ms BIGINT NOT NULL)",

	"CREATE TABLE sites ( "
	"id TEXT PRIMARY KEY, "
	"tenant TEXT NOT NULL REFERENCES tenants (id), "
	"name TEXT NOT NULL, "
	"kind TEXT NOT NULL, "
	"created_ms BIGINT NOT NULL, "
	"UNIQUE (tenant, name))",

	"CREATE TABLE pools ( "
	"id TEXT PRIMARY KEY, "
	"tenant TEXT NOT NULL REFERENCES tenants (id), "
	"site TEXT NOT NULL REFERENCES sites (id), "
	"name TEXT NOT NULL, "
	"class TEXT NOT NULL, "
	"gpu_model TEXT NOT NULL, "
	"policy TEXT NOT NULL, "
	"version BIGINT NOT NULL, "
	"state TEXT NOT NULL, "
	"created_ms BIGINT NOT NULL, "
	"UNIQUE (tenant, name))",

	"CREATE TABLE api_keys ( "
	"id TEXT PRIMARY KEY, "
	"tenant TEXT NOT NULL REFERENCES tenants (id), "
	"role TEXT NOT NULL, "
	"name TEXT NOT NULL, "
	"hash TEXT NOT NULL UNIQUE, "
	"created_ms BIGINT NOT NULL, "
	"revoked_ms BIGINT)",

	"CREATE TABLE audit ( "
	"id TEXT PRIMARY KEY, "
	"at_ms BIGINT NOT NULL, "
	"request TEXT NOT NULL, "
	"api_key TEXT NOT NULL, "
	"tenant TEXT NOT NULL, "
	"action TEXT NOT NULL, "
	"object TEXT NOT NULL, "
	"detail TEXT NOT NULL)",

	"CREATE TABLE idempotency ( "
	"tenant TEXT NOT NULL, "
	"operation TEXT NOT NULL, "
	"idempotency_key TEXT NOT NULL, "
	"input_hash TEXT NOT NULL, "
	"object TEXT NOT NULL, "
	"created_ms BIGINT NOT NULL, "
	"PRIMARY KEY (tenant, operation, idempotency_key))",

	"CREATE TABLE join_tokens ( "
	"id TEXT PRIMARY KEY, "
	"pool TEXT NOT NULL REFERENCES pools (id), "
	"hosted TEXT, "
	"hash TEXT NOT NULL, "
	"max_uses BIGINT NOT NULL, "
	"uses BIGINT NOT NULL, "
	"expires_ms BIGINT NOT NULL, "
	"revoked_ms BIGINT, "
	"created_ms BIGINT NOT NULL, "
	"CHECK (uses <= max_uses))",

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
	"vcpus BIGINT NOT NULL, "
	"memory_bytes BIGINT NOT NULL, "
	"simulated BIGINT NOT NULL, "
	"simulated_reason TEXT NOT NULL, "
	"has_inventory BIGINT NOT NULL, "
	"has_conditions BIGINT NOT NULL, "
	"spec_generation BIGINT NOT NULL, "
	"sent_generation BIGINT NOT NULL, "
	"stored_generation BIGINT NOT NULL, "
	"hello_sequence BIGINT NOT NULL, "
	"acknowledged BIGINT NOT NULL, "
	"created_ms BIGINT NOT NULL)",

	"CREATE TABLE node_streams ( "
	"node TEXT PRIMARY KEY REFERENCES nodes (id), "
	"epoch BIGINT NOT NULL, "
	"replica TEXT NOT NULL, "
	"connected BIGINT NOT NULL, "
	"seen_ms BIGINT NOT NULL)",

	"CREATE TABLE node_conditions ( "
	"node TEXT NOT NULL REFERENCES nodes (id), "
	"type TEXT NOT NULL, "
	"reason TEXT NOT NULL, "
	"message TEXT NOT NULL, "
	"since_ms BIGINT NOT NULL, "
	"PRIMARY KEY (node, type))",

	"CREATE TABLE gpus ( "
	"node TEXT NOT NULL REFERENCES nodes (id), "
	"uuid TEXT NOT NULL, "
	"model TEXT NOT NULL, "
	"pci TEXT NOT NULL, "
	"memory_bytes BIGINT NOT NULL, "
	"numa BIGINT NOT NULL, "
	"healthy BIGINT NOT NULL, "
	"cause TEXT NOT NULL, "
	"PRIMARY KEY (node, uuid))",

	"CREATE TABLE atoms ( "
	"node TEXT NOT NULL, "
	"atom TEXT NOT NULL, "
	"class TEXT NOT NULL, "
	"profile TEXT NOT NULL, "
	"gpu TEXT NOT NULL, "
	"visible_device TEXT NOT NULL, "
	"leaf_lo BIGINT NOT NULL, "
	"leaf_hi BIGINT NOT NULL, "
	"numa BIGINT NOT NULL, "
	"memory_bytes BIGINT NOT NULL, "
	"healthy BIGINT NOT NULL, "
	"cause TEXT NOT NULL, "
	"PRIMARY KEY (node, atom), "
	"FOREIGN KEY (node, gpu) REFERENCES gpus (node, uuid), "
	"CHECK (0 <= leaf_lo AND leaf_lo < leaf_hi AND leaf_hi <= 1024))",

	"CREATE TABLE reservations ( "
	"id TEXT PRIMARY KEY, "
	"tenant TEXT NOT NULL REFERENCES tenants (id), "
	"pool TEXT NOT NULL REFERENCES pools (id), "
	"state TEXT NOT NULL, "
	"state_reason TEXT NOT NULL, "
	"binding TEXT NOT NULL, "
	"devices TEXT NOT NULL, "
	"duration_ms BIGINT NOT NULL, "
	"start_ms BIGINT, "
	"from_ms BIGINT, "
	"end_ms BIGINT, "
	"vcpus BIGINT, "
	"memory_bytes BIGINT, "
	"reasons TEXT NOT NULL, "
	"created_ms BIGINT NOT NULL, "
	"release_ms BIGINT)",

	"CREATE TABLE allocations ( "
	"id TEXT PRIMARY KEY, "
	"reservation TEXT NOT NULL REFERENCES reservations (id), "
	"node TEXT NOT NULL REFERENCES nodes (id), "
	"state TEXT NOT NULL, "
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
	"end_reason TEXT NOT NULL, "
	"end_message TEXT NOT NULL, "
	"created_ms BIGINT NOT NULL, "
	"CHECK (from_ms < to_ms))",

	"CREATE TABLE allocation_devices ( "
	"allocation TEXT NOT NULL REFERENCES allocations (id), "
	"ordinal BIGINT NOT NULL, "
	"atom TEXT NOT NULL, "
	"class TEXT NOT NULL, "
	"profile TEXT NOT NULL, "
	"gpu TEXT NOT NULL, "
	"visible_device TEXT NOT NULL, "
	"PRIMARY KEY (allocation, ordinal))",

	"CREATE TABLE bookings ( "
	"allocation TEXT NOT NULL REFERENCES allocations (id), "
	"gpu TEXT NOT NULL, "
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
	"name TEXT PRIMARY KEY, "
	"holder TEXT NOT NULL, "
	"fence BIGINT NOT NULL, "
	"until_ms BIGINT NOT NULL)",

	"CREATE TABLE outbox ( "
	"seq BIGINT PRIMARY KEY, "
	"at_ms BIGINT NOT NULL, "
	"node TEXT NOT NULL, "
	"generation BIGINT NOT NULL)",

	"CREATE TABLE events ( "
	"seq BIGINT PRIMARY KEY, "
	"at_ms BIGINT NOT NULL, "
	"tenant TEXT NOT NULL, "
	"type TEXT NOT NULL, "
	"subject TEXT NOT NULL, "
	"data TEXT NOT NULL)",

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
/* clang-format on */

const struct store_migration store_postgres_migrations[STORE_MIGRATIONS] = {
	{"first", VERSION_1},
};
