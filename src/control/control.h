/*
 * control: everything the control plane does, each thing one function and one transaction.
 *
 * Owns      what tenants, sites, pools, keys, tokens, nodes and reservations may do to each other.
 *           The rules are in core/; here rows are loaded, a rule is asked, the answer is committed.
 * Shape     a function loads, decides and commits in one store_run(); a lost race runs it again
 *           whole. True means committed: only then may anyone be told (an Ack, a 200).
 * Threads   none of its own and no globals: a struct control and its connection belong to one
 *           worker at a time. Every call blocks.
 * Time      the transaction's (store_now()); nobody passes a time in.
 * Secrets   a token or key is in an answer once, when it is made; only its hash is stored.
 * Tests     tests/unit/control, on both databases.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/hugepages.h"
#include "base/id.h"
#include "control/core/access.h"
#include "control/core/trust.h"

#include <jansson.h>

struct store_connection;

/* One worker's way in. Plain data of the caller's; `{0}` but for the connection is fine. */
struct control {
	struct store_connection *connection; /* borrowed */
	char replica[ID_SIZE];               /* this process: any text that no other one has */
	/* Read each time they are used, so what they hold now counts; NULL: none. */
	const char *secret_key_file; /* of pki/seal.h */
	const char *pki_folder;      /* of pki/folder.h */
};

/* --- who asks: struct control_principal, in core/access.h --- */

/* Who has this key ("bck_...", without "Bearer ")? UNAUTHENTICATED for none (NULL or ""), an
 * unknown or a revoked one, with the same message. Leaves `request` empty for the caller to fill.
 */
MUST_CHECK bool control_authenticate(struct control *control, const char *key,
				     struct control_principal *ret_principal, struct error *error);

/* `serve --init`: the first tenant ("platform") and operator key, once per database. `ret_key` is
 * the key's text, or "" when an operator key exists already and nothing was done. */
#define CONTROL_KEY_SIZE 96
MUST_CHECK bool control_init(struct control *control, char ret_key[CONTROL_KEY_SIZE],
			     struct error *error);
/* Another operator key, for whoever has the database itself: the way back when all are lost.
 * `ret_key` is its text; NOT_FOUND before control_init(). */
MUST_CHECK bool control_another_key(struct control *control, char ret_key[CONTROL_KEY_SIZE],
				    struct error *error);

/* --- the HTTP API: one function a call of docs/internals/http-api.md --- */

/* What a call may carry. Borrowed for the call. Query values are the raw texts, NULL when absent;
 * a wrong one is INVALID_INPUT naming it. A body that is missing or not an object is refused. */
struct control_call {
	const struct control_principal *principal;
	const char *id;     /* {id} of the path, NULL if none */
	const json_t *body; /* parsed with duplicates refused; NULL if none */
	const char *limit, *cursor;
	const char *state,
		*pool_id;  /* lists of reservations; pool_id also nodes, tokens, capacity */
	const char *after; /* events */
	const char *tenant_id, *key_id, *object, *action, *from, *to, *by; /* audit, usage, meter */
	const char *devices, *class;                                       /* pod requests */
	const char *live;    /* "true": reservations that aren't over; "false": those that are */
	const char *dry_run; /* "true": changes of a thing that is there are only tried */
};

/* A list's pages: most items, and without a limit; the largest sequence number to ask after. */
#define CONTROL_MAX_PAGE     1000
#define CONTROL_DEFAULT_PAGE 100
#define CONTROL_MAX_SEQUENCE 999999999999999999
/* What a quota may allow. */
#define CONTROL_QUOTA_MAX_DEVICES 1000000
#define CONTROL_QUOTA_MAX_HOURS   1000000000
/* How long a rotated key's old secret may go on. */
#define CONTROL_KEY_MIN_OVERLAP_MS ((int64_t)1000)
#define CONTROL_KEY_MAX_OVERLAP_MS ((int64_t)30 * 24 * 60 * 60 * 1000)
/* Bytes of a secret. */
#define CONTROL_SECRET_MAX_VALUE 32768
#define CONTROL_MAX_LABELS       64 /* that operators give to one node */

/*
 * Each: *ret_answer is a new reference, the body of a 200. Errors carry code and field as they go
 * to the caller. A name's list form is the plural's. Another tenant's thing is NOT_FOUND; a role
 * that doesn't reach is FORBIDDEN.
 */
#define CONTROL_CALL(name)                                                                         \
	MUST_CHECK bool control_##name(struct control *control, const struct control_call *call,   \
				       json_t **ret_answer, struct error *error)

CONTROL_CALL(tenant_create); /* POST /v1/tenants */
CONTROL_CALL(tenant_get);
CONTROL_CALL(tenant_list);
CONTROL_CALL(tenant_patch);
CONTROL_CALL(tenant_archive);
CONTROL_CALL(site_create);
CONTROL_CALL(site_get);
CONTROL_CALL(site_list);
CONTROL_CALL(site_patch);
CONTROL_CALL(site_archive);
CONTROL_CALL(pool_create);
CONTROL_CALL(pool_get);
CONTROL_CALL(pool_list);
CONTROL_CALL(pool_patch);
CONTROL_CALL(pool_archive);
CONTROL_CALL(join_token_create);
CONTROL_CALL(join_token_get);
CONTROL_CALL(join_token_list);
CONTROL_CALL(join_token_revoke);
CONTROL_CALL(node_get);
CONTROL_CALL(node_list);
CONTROL_CALL(node_retire);
CONTROL_CALL(node_patch);
CONTROL_CALL(node_drain);
CONTROL_CALL(node_undrain);
CONTROL_CALL(reservation_create);
CONTROL_CALL(reservation_get);
CONTROL_CALL(reservation_list);
CONTROL_CALL(reservation_pod_requests); /* GET /v1/reservations/{id}/pod-requests */
CONTROL_CALL(reservation_patch);        /* PATCH /v1/reservations/{id} */
CONTROL_CALL(reservation_release);
CONTROL_CALL(reservation_cancel);
CONTROL_CALL(capacity_preview); /* POST /v1/capacity/preview */
CONTROL_CALL(capacity_get);     /* GET /v1/capacity */
CONTROL_CALL(event_list);       /* GET /v1/events */
CONTROL_CALL(audit_list);       /* GET /v1/audit */
CONTROL_CALL(whoami);
CONTROL_CALL(key_create);
CONTROL_CALL(key_list);
CONTROL_CALL(key_get);
CONTROL_CALL(key_patch);
CONTROL_CALL(key_rotate);
CONTROL_CALL(key_revoke);
CONTROL_CALL(usage_get);  /* GET /v1/usage */
CONTROL_CALL(meter_list); /* GET /v1/meter */
CONTROL_CALL(quota_create);
CONTROL_CALL(quota_get);
CONTROL_CALL(quota_list);
CONTROL_CALL(quota_patch);
CONTROL_CALL(quota_delete);
CONTROL_CALL(pki_get);       /* GET /v1/pki */
CONTROL_CALL(secret_create); /* the value is in no answer */
CONTROL_CALL(secret_get);
CONTROL_CALL(secret_list);
CONTROL_CALL(secret_patch);
CONTROL_CALL(secret_delete);

/* The last event's number: whoever listens has something new when it has grown. */
MUST_CHECK bool control_event_end(struct control *control, int64_t *ret_end, struct error *error);

/* --- joining --- */

#define CONTROL_JOIN_MIN_TTL_MS ((int64_t)60 * 1000)
#define CONTROL_JOIN_MAX_TTL_MS ((int64_t)24 * 60 * 60 * 1000)
#define CONTROL_JOIN_MAX_USES   10000

/*
 * Makes the node's certificate inside the transaction that spends the use, so that the two happen
 * together or not at all. May run more than once; a certificate whose transaction fell through is
 * never given out. *ret_certificate is heap text (PEM chain).
 */
typedef bool control_issue_fn(void *context, const char *node_id, enum control_trust trust,
			      struct wall now, char **ret_certificate, struct error *error);

struct control_join_request {
	const char *token;       /* as presented */
	const char *machine_key; /* the request's public key: its pin, "sha256/..." */
	const char *smbios_uuid; /* NULL or "" when unknown */
	const char *hostname;
	const char *boot_id;
	control_issue_fn *issue;
	void *issue_context;
	/* Set on failure too, unless NULL: is the whole token ours, live or not? Then nobody guesses. */
	bool *ret_known;
};

struct control_joined {
	char node[ID_SIZE];
	enum control_trust trust;
	bool rejoined;     /* this key had joined before: no use was spent */
	char *certificate; /* heap; control_joined_deinit() frees */
};

/* UNAUTHENTICATED for a token that is unknown, expired, used up or revoked; the reason is told only
 * to who has the whole secret. */
MUST_CHECK bool control_join(struct control *control, const struct control_join_request *request,
			     struct control_joined *ret_joined, struct error *error);
void control_joined_deinit(struct control_joined *joined);

/* What a node is now, for the renewal of its certificate. FORBIDDEN when unknown or retired. */
struct control_node_identity {
	enum control_trust trust;
	char machine_key[64]; /* the pin it joined with */
};
MUST_CHECK bool control_node_identify(struct control *control, const char *node,
				      struct control_node_identity *ret_identity,
				      struct error *error);

/* --- the gateway: what a node says --- */

/*
 * A stream's life: hello (gives its epoch), then reports and heartbeats with that epoch, in the
 * stream's order and one at a time per node, then gone. A newer hello, on any replica, makes the
 * older epoch void: everything said with it is answered CONFLICT and the stream is to be closed.
 * Newer is what the node opened later, not what is heard later: a hello that was held up on its
 * way, of a stream that has ended meanwhile, is answered CONFLICT too and changes nothing.
 */
struct control_hello {
	const char *node; /* from the certificate */
	const char *boot_id, *version, *hostname;
	const char *const *capabilities;
	size_t capabilities_count;
	const char *lineage;     /* of the node's stored Spec, "" when it has none */
	int64_t spec_generation; /* of the stored Spec */
	int64_t last_sequence;
	int64_t opened_ms; /* the stream, by the clock of `boot_id`; 0: not said */
};

#define CONTROL_NAME_SIZE 256 /* longer than any name */

struct control_welcome {
	int64_t epoch;
	int64_t acknowledged;
	struct wall now;
	char lineage[ID_SIZE];
	char site[ID_SIZE];           /* that the node's pool is at */
	char pool[CONTROL_NAME_SIZE]; /* its name */
};

/* FORBIDDEN for a node that is unknown or retired, as all that it says afterwards. Send the Welcome,
 * then the Spec, always. */
MUST_CHECK bool control_node_hello(struct control *control, const struct control_hello *hello,
				   struct control_welcome *ret_welcome, struct error *error);

MUST_CHECK bool control_node_heartbeat(struct control *control, const char *node, int64_t epoch,
				       int64_t spec_generation, struct error *error);

/* Heartbeats that say nothing new, of many nodes at once: one transaction instead of one each.
 * `known` is false afterwards where the epoch is void, or the node was retired. */
struct control_beat {
	char node[ID_SIZE];
	int64_t epoch;
	bool known;
};
MUST_CHECK bool control_nodes_seen(struct control *control, struct control_beat *beats,
				   size_t count, struct error *error);

/* The stream ended. An epoch that is void already: nothing happens. */
MUST_CHECK bool control_node_gone(struct control *control, const char *node, int64_t epoch,
				  struct error *error);

struct control_health {
	bool healthy;
	const char *cause; /* "" when healthy */
};

struct control_gpu {
	const char *uuid, *model, *pci;
	int64_t memory_bytes;
	int32_t numa; /* -1 unknown */
	struct control_health health;
};

struct control_atom {
	const char *atom, *class, *gpu, *profile, *visible_device;
	int32_t leaf_lo, leaf_hi; /* [lo, hi) of [0, 1024) */
	int32_t numa;
	int64_t memory_bytes;
	struct control_health health;
};

struct control_inventory {
	const char *kubernetes_node_name, *hostname, *kernel;
	int32_t vcpus;
	int64_t memory_bytes;
	struct hugepages hugepages;
	bool simulated;
	const char *simulated_reason, *driver_version, *gpu_api;
	const struct control_gpu *gpus;
	size_t gpus_count;
	const struct control_atom *atoms;
	size_t atoms_count;
};

struct control_condition {
	const char *type, *reason, *message;
	struct wall since;
};

enum control_report_kind {
	CONTROL_REPORT_INVENTORY,
	CONTROL_REPORT_CONDITIONS,
	CONTROL_REPORT_BOUND,
	CONTROL_REPORT_FAILED,
	CONTROL_REPORT_RELEASED,
	CONTROL_REPORT_KUBERNETES_RELEASED,
	CONTROL_REPORT_OPERATION_RESULT,
	CONTROL_REPORT_UNKNOWN, /* of a newer bcd: acknowledged without effect */
};

struct control_report {
	const char *node;
	int64_t epoch;
	int64_t sequence;
	int64_t spec_generation; /* of the Spec it acted on */
	enum control_report_kind kind;
	union {
		struct control_inventory inventory;
		struct {
			const struct control_condition *items;
			size_t count;
		} conditions;
		struct {
			const char *allocation;
			const char *const *atoms;
			size_t atoms_count;
		} bound;
		struct {
			const char *allocation, *reason, *message;
		} failed;
		struct {
			const char *allocation;
		} released;
	};
};

struct control_report_result {
	int64_t acknowledged; /* send as Ack: every report up to it is committed */
	bool look_again;      /* something changed that control_tick() may act on: run it soon */
};

/*
 * Commits a report's effect once: a sequence that is acknowledged already is answered so and does
 * nothing. A report whose content is wrong beyond use (unknown allocation, broken bounds) is
 * acknowledged without effect and logged: a node must not be stuck behind it.
 */
MUST_CHECK bool control_node_report(struct control *control, const struct control_report *report,
				    struct control_report_result *ret_result, struct error *error);

/* Bounds of what a node may report; more is refused with RESOURCES_EXHAUSTED before any of it is
 * looked at. */
#define CONTROL_MAX_GPUS       256
#define CONTROL_MAX_ATOMS      8192
#define CONTROL_MAX_CONDITIONS 64
#define CONTROL_MAX_WITHDRAWN  1024 /* named in one Spec */
#define CONTROL_MAX_TEXT       1024 /* one text of a report */

/* --- the secret broker --- */

struct control_secret_request {
	const char *node;
	int64_t epoch;
	bool tenants_certificate; /* the stream's certificate is a node-tenant's (JOIN-22) */
	const char *reference;    /* "secret://<tenant>/<id>" */
	const char *allocation;   /* on whose behalf; "": the machine's own */
};

struct control_secret {
	const char *refusal; /* why it isn't given, as the node is told: static; NULL: it is */
	struct buf value;    /* control_secret_deinit() wipes it */
};

/* Gives a secret to a node whose pool names it and whose trust allows it, never for what is being
 * released (RES-23). A refusal is an answer. An epoch that is void: CONFLICT. */
MUST_CHECK bool control_secret_give(struct control *control,
				    const struct control_secret_request *request,
				    struct control_secret *ret_secret, struct error *error);
void control_secret_deinit(struct control_secret *secret);

/* Seals under the newest key what an older one sealed; in passes, after control_tick(). Nothing
 * happens while another replica leads. */
MUST_CHECK bool control_secrets_reseal(struct control *control, struct error *error);

/* --- what a node is to have --- */

struct control_spec_device {
	const char *atom, *class, *visible_device;
};

struct control_spec_assignment {
	const char *allocation, *reservation;
	const struct control_spec_device *devices;
	size_t devices_count;
	int64_t end_ms;
	bool limited; /* what is booked of the host was asked for: limits, too */
	int32_t vcpus;
	int64_t memory_bytes;
	struct hugepages hugepages;
};

struct control_spec {
	char lineage[ID_SIZE];
	int64_t generation;
	const char *gpu_api;                               /* "device-plugin" or "dra" */
	const struct control_spec_assignment *assignments; /* binding kubernetes, all of them */
	size_t assignments_count;
	const char *const *withdrawn; /* allocations whose release the node has yet to report */
	size_t withdrawn_count;
	struct arena arena; /* holds all of the above; control_spec_deinit() frees */
};

/* The whole Spec, with every assignment whose time has come. Never holds an assignment that the
 * node's bcd didn't announce the capability for. Remembers that this generation was handed out.
 * An epoch that is void: CONFLICT. */
MUST_CHECK bool control_spec_load(struct control *control, const char *node, int64_t epoch,
				  struct control_spec *ret_spec, struct error *error);
void control_spec_deinit(struct control_spec *spec);

/* --- the outbox: which nodes have something new --- */

struct control_outbox_item {
	int64_t seq;
	char node[ID_SIZE];
	int64_t generation; /* the node's Spec has at least this generation now */
};

struct control_outbox {
	int64_t last; /* ask with this next time */
	struct control_outbox_item *items;
	size_t count, capacity;
};
#define CONTROL_OUTBOX_MAX 1000 /* items an answer; ask again at once when it is full */

/* `ret_outbox` must be {0} or hold an old answer. Items after `after`, for all nodes: the caller
 * skips those whose stream it doesn't hold. With after < 0 it answers no item and where the end is:
 * ask so once, before the first hello. */
MUST_CHECK bool control_outbox_poll(struct control *control, int64_t after,
				    struct control_outbox *ret_outbox, struct error *error);
void control_outbox_deinit(struct control_outbox *outbox);

/* --- passes --- */

#define CONTROL_TICK_MS 5000

/*
 * One pass of the leader: starts what is due, ends what is over, carries or finishes releases that
 * are stuck, tries pending reservations again, forgets what is old. Every CONTROL_TICK_MS, and soon
 * after a report that says look_again. On a replica that doesn't lead it does nothing and is true.
 * Each reservation is its own transaction: one that fails is logged and the pass goes on.
 */
MUST_CHECK bool control_tick(struct control *control, struct error *error);

/*
 * Takes or keeps the lead, which control_tick() needs: call it every CONTROL_LEAD_MS. A leader that
 * is not heard of for CONTROL_LEASE_MS has lost it, so another one leads within 5 s.
 */
#define CONTROL_LEAD_MS  1000
#define CONTROL_LEASE_MS 3500
MUST_CHECK bool control_lead(struct control *control, bool *ret_leads, struct error *error);
/* Gives it up, so that the next one need not wait. */
MUST_CHECK bool control_resign(struct control *control, struct error *error);

/* For readiness: the database answers, and takes writes as far as is known. */
MUST_CHECK bool control_ping(struct control *control, struct error *error);
