#include "serve/routes.h"

#include "control/core/reserve_request.h"

#define PAGE   ROUTE_QUERY_PAGE
#define LIMIT  ROUTE_QUERY_LIMIT
#define STATE  ROUTE_QUERY_STATE
#define POOL   ROUTE_QUERY_POOL
#define AFTER  ROUTE_QUERY_AFTER
#define TENANT ROUTE_QUERY_TENANT
#define FROM   ROUTE_QUERY_FROM
#define TO     ROUTE_QUERY_TO
#define BY     ROUTE_QUERY_BY
#define DRY    ROUTE_QUERY_DRY

#define NONE   ROUTE_BODY_NONE
#define MAY    ROUTE_BODY_MAY
#define NEEDED ROUTE_BODY_NEEDED

/* control_NAME(), under the operation's id NAME. */
#define CALL(name) #name, control_##name

const struct route ROUTES[] = {
	{"POST", "/v1/tenants", CALL(tenant_create), 0, NEEDED, "make a tenant", "TenantCreate",
	 "Tenant"},
	{"GET", "/v1/tenants", CALL(tenant_list), PAGE, NONE, "list tenants", NULL, "TenantList"},
	{"GET", "/v1/tenants/{id}", CALL(tenant_get), 0, NONE, "show a tenant", NULL, "Tenant"},

	{"PATCH", "/v1/tenants/{id}", CALL(tenant_patch), DRY, NEEDED, "rename a tenant",
	 "TenantPatch", "Tenant"},
	{"POST", "/v1/tenants/{id}/archive", CALL(tenant_archive), DRY, NONE, "archive a tenant",
	 NULL, "Tenant"},

	{"POST", "/v1/sites", CALL(site_create), 0, NEEDED, "make a site", "SiteCreate", "Site"},
	{"GET", "/v1/sites", CALL(site_list), PAGE, NONE, "list sites", NULL, "SiteList"},
	{"GET", "/v1/sites/{id}", CALL(site_get), 0, NONE, "show a site", NULL, "Site"},

	{"PATCH", "/v1/sites/{id}", CALL(site_patch), DRY, NEEDED, "rename a site", "SitePatch",
	 "Site"},
	{"POST", "/v1/sites/{id}/archive", CALL(site_archive), DRY, NONE, "archive a site", NULL,
	 "Site"},

	{"POST", "/v1/pools", CALL(pool_create), 0, NEEDED, "make a pool", "PoolCreate", "Pool"},
	{"GET", "/v1/pools", CALL(pool_list), PAGE, NONE, "list pools", NULL, "PoolList"},
	{"GET", "/v1/pools/{id}", CALL(pool_get), 0, NONE, "show a pool", NULL, "Pool"},
	{"PATCH", "/v1/pools/{id}", CALL(pool_patch), DRY, NEEDED, "change a pool's name or policy",
	 "PoolPatch", "Pool"},
	{"POST", "/v1/pools/{id}/archive", CALL(pool_archive), DRY, NONE, "archive a pool", NULL,
	 "Pool"},

	{"POST", "/v1/join-tokens", CALL(join_token_create), 0, NEEDED, "mint a join token",
	 "JoinTokenCreate", "JoinTokenCreated"},
	{"GET", "/v1/join-tokens", CALL(join_token_list), PAGE | POOL, NONE, "list join tokens",
	 NULL, "JoinTokenList"},
	{"GET", "/v1/join-tokens/{id}", CALL(join_token_get), 0, NONE, "show a join token", NULL,
	 "JoinToken"},
	{"POST", "/v1/join-tokens/{id}/revoke", CALL(join_token_revoke), DRY, NONE,
	 "revoke a join token", NULL, "JoinToken"},

	{"GET", "/v1/nodes", CALL(node_list), PAGE | POOL, NONE, "list nodes", NULL, "NodeList"},
	{"GET", "/v1/nodes/{id}", CALL(node_get), 0, NONE, "show a node", NULL, "Node"},
	{"PATCH", "/v1/nodes/{id}", CALL(node_patch), DRY, NEEDED,
	 "change a node's labels, or whether it is spot", "NodePatch", "Node"},
	{"POST", "/v1/nodes/{id}/drain", CALL(node_drain), DRY, NONE,
	 "give a node no new work; what runs goes on", NULL, "Node"},
	{"POST", "/v1/nodes/{id}/undrain", CALL(node_undrain), DRY, NONE,
	 "give a node new work again", NULL, "Node"},
	{"POST", "/v1/nodes/{id}/retire", CALL(node_retire), DRY, MAY,
	 "retire a node, or declare it lost", "NodeRetire", "Node"},

	{"POST", "/v1/reservations", CALL(reservation_create), 0, NEEDED, "book GPUs",
	 "ReservationCreate", "Reservation"},
	{"GET", "/v1/reservations", CALL(reservation_list),
	 PAGE | STATE | POOL | TENANT | FROM | TO | ROUTE_QUERY_LIVE, NONE,
	 "list reservations, by when they were made", NULL, "ReservationList"},
	{"GET", "/v1/reservations/{id}", CALL(reservation_get), 0, NONE, "show a reservation", NULL,
	 "Reservation"},
	{"GET", "/v1/reservations/{id}/pod-requests", CALL(reservation_pod_requests),
	 ROUTE_QUERY_DEVICES | ROUTE_QUERY_CLASS, NONE,
	 "say what a pod asks for to use its part of a reservation", NULL, "PodRequests"},
	{"PATCH", "/v1/reservations/{id}", CALL(reservation_patch), DRY, NEEDED,
	 "extend, shorten or move a reservation", "ReservationPatch", "Reservation"},
	{"POST", "/v1/reservations/{id}/release", CALL(reservation_release), DRY, NONE,
	 "give back what is booked", NULL, "Reservation"},
	{"POST", "/v1/reservations/{id}/cancel", CALL(reservation_cancel), DRY, NONE,
	 "cancel a pending reservation", NULL, "Reservation"},

	{"POST", "/v1/capacity/preview", CALL(capacity_preview), 0, NEEDED,
	 "say whether and where a booking would fit", "CapacityPreview", "CapacityPreviewAnswer"},
	{"GET", "/v1/capacity", CALL(capacity_get), POOL, NONE, "count what is free and booked",
	 NULL, "CapacityList"},

	{"GET", "/v1/events", CALL(event_list), AFTER | LIMIT, NONE,
	 "list events after a sequence number", NULL, "EventList"},

	{"GET", "/v1/usage", CALL(usage_get), TENANT | POOL | FROM | TO | BY, NONE,
	 "sum up GPU-seconds by tenant or pool", NULL, "Usage"},
	{"GET", "/v1/meter", CALL(meter_list), PAGE | TENANT | POOL | FROM | TO, NONE,
	 "list what each allocation that is over used", NULL, "MeterRowList"},

	{"POST", "/v1/quotas", CALL(quota_create), 0, NEEDED, "limit what a tenant may have",
	 "QuotaCreate", "Quota"},
	{"GET", "/v1/quotas", CALL(quota_list), PAGE | TENANT, NONE, "list quotas", NULL,
	 "QuotaList"},
	{"GET", "/v1/quotas/{id}", CALL(quota_get), 0, NONE, "show a quota", NULL, "Quota"},
	{"PATCH", "/v1/quotas/{id}", CALL(quota_patch), DRY, NEEDED, "change a quota's limits",
	 "QuotaPatch", "Quota"},
	{"DELETE", "/v1/quotas/{id}", CALL(quota_delete), DRY, NONE, "take a quota away", NULL,
	 "Quota"},

	{"POST", "/v1/secrets", CALL(secret_create), 0, NEEDED, "keep a secret", "SecretCreate",
	 "Secret"},
	{"GET", "/v1/secrets", CALL(secret_list), PAGE | TENANT, NONE, "list secrets", NULL,
	 "SecretList"},
	{"GET", "/v1/secrets/{id}", CALL(secret_get), 0, NONE, "show a secret's record", NULL,
	 "Secret"},
	{"PATCH", "/v1/secrets/{id}", CALL(secret_patch), DRY, NEEDED,
	 "give a secret another value or name", "SecretPatch", "Secret"},
	{"DELETE", "/v1/secrets/{id}", CALL(secret_delete), DRY, NONE, "forget a secret", NULL,
	 "Secret"},

	{"GET", "/v1/audit", CALL(audit_list),
	 PAGE | TENANT | ROUTE_QUERY_KEY | ROUTE_QUERY_OBJECT | ROUTE_QUERY_ACTION | FROM | TO,
	 NONE, "list who changed what, newest first", NULL, "AuditList"},

	{"GET", "/v1/pki", CALL(pki_get), 0, NONE,
	 "show the pins, the authorities and a change of keys under way", NULL, "Pki"},

	{"GET", "/v1/whoami", CALL(whoami), 0, NONE, "say whose key this is", NULL, "Principal"},
	{"POST", "/v1/keys", CALL(key_create), 0, NEEDED, "make an API key", "KeyCreate",
	 "KeyCreated"},
	{"GET", "/v1/keys", CALL(key_list), PAGE, NONE, "list API keys", NULL, "KeyList"},
	{"GET", "/v1/keys/{id}", CALL(key_get), 0, NONE, "show an API key", NULL, "Key"},
	{"PATCH", "/v1/keys/{id}", CALL(key_patch), DRY, NEEDED, "change an API key's name or role",
	 "KeyPatch", "Key"},
	{"POST", "/v1/keys/{id}/rotate", CALL(key_rotate), DRY, MAY,
	 "give an API key a new secret; the old one ends after the overlap", "KeyRotate",
	 "KeyCreated"},
	{"POST", "/v1/keys/{id}/revoke", CALL(key_revoke), DRY, NONE, "revoke an API key", NULL,
	 "Key"},
};

const size_t ROUTES_COUNT = sizeof ROUTES / sizeof ROUTES[0];

/* --- queries --- */

#define SLOT(name) offsetof(struct control_call, name)

const struct route_parameter ROUTE_PARAMETERS[] = {
	{ROUTE_QUERY_LIMIT,
	 SLOT(limit),
	 {.name = "limit",
	  SCHEMA_INT,
	  0,
	  "the most items of an answer (default 100)",
	  NULL,
	  1,
	  CONTROL_MAX_PAGE,
	  0,
	  "100"}},
	{ROUTE_QUERY_CURSOR,
	 SLOT(cursor),
	 {.name = "cursor", SCHEMA_TEXT, 0, "the nextCursor of the page before", NULL, 1, 128}},
	{ROUTE_QUERY_STATE,
	 SLOT(state),
	 {.name = "state",
	  SCHEMA_CHOICE,
	  0,
	  "only those in this state",
	  "pending|placed|active|released|denied|failed|cancelled|expired|preempted"}},
	{ROUTE_QUERY_POOL,
	 SLOT(pool_id),
	 {.name = "poolId", SCHEMA_ID, 0, "only of this pool", "pool"}},
	{ROUTE_QUERY_AFTER,
	 SLOT(after),
	 {.name = "after",
	  SCHEMA_INT,
	  0,
	  "only events after this sequence number (default 0)",
	  NULL,
	  0,
	  CONTROL_MAX_SEQUENCE,
	  0,
	  "0"}},
	{ROUTE_QUERY_TENANT,
	 SLOT(tenant_id),
	 {.name = "tenantId", SCHEMA_ID, 0, "only of this tenant", "ten"}},
	{ROUTE_QUERY_KEY,
	 SLOT(key_id),
	 {.name = "keyId", SCHEMA_ID, 0, "only what this key did", "key"}},
	{ROUTE_QUERY_OBJECT,
	 SLOT(object),
	 {.name = "object", SCHEMA_ID, 0, "only changes of the thing with this id", ""}},
	{ROUTE_QUERY_ACTION,
	 SLOT(action),
	 {.name = "action",
	  SCHEMA_TEXT,
	  0,
	  "only this action, such as compute:pools:patch",
	  "^compute:[a-z-]+:[a-z-]+$",
	  1,
	  80}},
	{ROUTE_QUERY_FROM, SLOT(from), {.name = "from", SCHEMA_TIME, 0, "from this time on"}},
	{ROUTE_QUERY_TO, SLOT(to), {.name = "to", SCHEMA_TIME, 0, "before this time"}},
	{ROUTE_QUERY_BY,
	 SLOT(by),
	 {.name = "by", SCHEMA_CHOICE, 0, "what a row sums up (default tenant)", "tenant|pool"}},
	{ROUTE_QUERY_LIVE,
	 SLOT(live),
	 {.name = "live",
	  SCHEMA_CHOICE,
	  0,
	  "true: only those that aren't over, or still hold devices; false: only the others",
	  "true|false"}},
	{ROUTE_QUERY_DEVICES,
	 SLOT(devices),
	 {.name = "devices",
	  SCHEMA_INT,
	  0,
	  "of one pod (default: all that are booked on one node)",
	  NULL,
	  1,
	  RESERVE_MAX_DEVICES,
	  0,
	  "1"}},
	{ROUTE_QUERY_CLASS,
	 SLOT(class),
	 {.name = "class",
	  SCHEMA_CHOICE,
	  0,
	  "devices of this class alone; needed with devices when several are booked",
	  "gpu|gpu.mig|gpu.slot"}},
	{ROUTE_QUERY_DRY,
	 SLOT(dry_run),
	 {.name = "dryRun",
	  SCHEMA_CHOICE,
	  0,
	  "true: the answer, or the refusal, and nothing is changed",
	  "true|false"}},
};

const size_t ROUTE_PARAMETERS_COUNT = sizeof ROUTE_PARAMETERS / sizeof ROUTE_PARAMETERS[0];
_Static_assert(sizeof ROUTE_PARAMETERS / sizeof ROUTE_PARAMETERS[0] <= ROUTE_PARAMETERS_MAX,
	       "more query parameters than the router has room for");

/* --- what needs no key --- */

const struct route_open ROUTES_OPEN[] = {
	{"/healthz", "healthz", "say that the program runs", "text/plain", false},
	{"/readyz", "readyz", "say that it can answer: the database is there", "text/plain", false},
	{"/.well-known/better-compute", "well_known", "where nodes join", "application/json",
	 false},
	{"/metrics", "metrics", "figures for Prometheus; for operators, or from this machine",
	 "text/plain", true},
	{"/v1/openapi.json", "openapi", "this document", "application/json", false},
};

const size_t ROUTES_OPEN_COUNT = sizeof ROUTES_OPEN / sizeof ROUTES_OPEN[0];
