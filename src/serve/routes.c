#include "serve/routes.h"

#define PAGE  ROUTE_QUERY_PAGE
#define STATE ROUTE_QUERY_STATE
#define POOL  ROUTE_QUERY_POOL
#define AFTER ROUTE_QUERY_AFTER

#define NONE   ROUTE_BODY_NONE
#define MAY    ROUTE_BODY_MAY
#define NEEDED ROUTE_BODY_NEEDED

const struct route ROUTES[] = {
	{"POST", "/v1/tenants", control_tenant_create, 0, NEEDED, "make a tenant", "TenantCreate",
	 "Tenant"},
	{"GET", "/v1/tenants", control_tenant_list, PAGE, NONE, "list tenants", NULL, "TenantList"},
	{"GET", "/v1/tenants/{id}", control_tenant_get, 0, NONE, "show a tenant", NULL, "Tenant"},
	{"POST", "/v1/sites", control_site_create, 0, NEEDED, "make a site", "SiteCreate", "Site"},
	{"GET", "/v1/sites", control_site_list, PAGE, NONE, "list sites", NULL, "SiteList"},
	{"GET", "/v1/sites/{id}", control_site_get, 0, NONE, "show a site", NULL, "Site"},
	{"POST", "/v1/pools", control_pool_create, 0, NEEDED, "make a pool", "PoolCreate", "Pool"},
	{"GET", "/v1/pools", control_pool_list, PAGE, NONE, "list pools", NULL, "PoolList"},
	{"GET", "/v1/pools/{id}", control_pool_get, 0, NONE, "show a pool", NULL, "Pool"},
	{"PATCH", "/v1/pools/{id}", control_pool_patch, 0, NEEDED, "change a pool's policy",
	 "PoolPatch", "Pool"},
	{"POST", "/v1/pools/{id}/archive", control_pool_archive, 0, NONE, "archive a pool", NULL,
	 "Pool"},
	{"POST", "/v1/join-tokens", control_join_token_create, 0, NEEDED, "mint a join token",
	 "JoinTokenCreate", "JoinTokenCreated"},
	{"GET", "/v1/join-tokens", control_join_token_list, PAGE | POOL, NONE, "list join tokens",
	 NULL, "JoinTokenList"},
	{"GET", "/v1/join-tokens/{id}", control_join_token_get, 0, NONE, "show a join token", NULL,
	 "JoinToken"},
	{"POST", "/v1/join-tokens/{id}/revoke", control_join_token_revoke, 0, NONE,
	 "revoke a join token", NULL, "JoinToken"},
	{"GET", "/v1/nodes", control_node_list, PAGE | POOL, NONE, "list nodes", NULL, "NodeList"},
	{"GET", "/v1/nodes/{id}", control_node_get, 0, NONE, "show a node", NULL, "Node"},
	{"POST", "/v1/nodes/{id}/retire", control_node_retire, 0, MAY,
	 "retire a node, or declare it lost", "NodeRetire", "Node"},
	{"POST", "/v1/reservations", control_reservation_create, 0, NEEDED, "book GPUs",
	 "ReservationCreate", "Reservation"},
	{"GET", "/v1/reservations", control_reservation_list, PAGE | STATE | POOL, NONE,
	 "list reservations", NULL, "ReservationList"},
	{"GET", "/v1/reservations/{id}", control_reservation_get, 0, NONE, "show a reservation",
	 NULL, "Reservation"},
	{"POST", "/v1/reservations/{id}/release", control_reservation_release, 0, NONE,
	 "give back what is booked", NULL, "Reservation"},
	{"POST", "/v1/reservations/{id}/cancel", control_reservation_cancel, 0, NONE,
	 "cancel a pending reservation", NULL, "Reservation"},
	{"POST", "/v1/capacity/preview", control_capacity_preview, 0, NEEDED,
	 "say whether and where a booking would fit", "CapacityPreview", "CapacityPreviewAnswer"},
	{"GET", "/v1/capacity", control_capacity_get, POOL, NONE, "count what is free and booked",
	 NULL, "CapacityList"},
	{"GET", "/v1/events", control_event_list, AFTER, NONE,
	 "list events after a sequence number", NULL, "EventList"},
	{"GET", "/v1/whoami", control_whoami, 0, NONE, "say whose key this is", NULL, "Principal"},
	{"POST", "/v1/keys", control_key_create, 0, NEEDED, "make an API key", "KeyCreate",
	 "KeyCreated"},
	{"GET", "/v1/keys", control_key_list, PAGE, NONE, "list API keys", NULL, "KeyList"},
	{"POST", "/v1/keys/{id}/revoke", control_key_revoke, 0, NONE, "revoke an API key", NULL,
	 "Key"},
};

const size_t ROUTES_COUNT = sizeof ROUTES / sizeof ROUTES[0];
