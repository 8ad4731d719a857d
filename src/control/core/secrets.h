/*
 * secrets: may this node have this secret? Pure.
 *
 * Owns      the rule of the broker (RES-23, JOIN-22, JOIN-29): only to a node that the platform
 *           trusts, only what its own pool names, and never for what is being given back.
 */
#pragma once

#include "base/base.h"

struct secret_view {
	bool tenants_certificate; /* the stream's certificate is a node-tenant's */
	bool tenant_controlled;   /* what the node is now */
	bool working;             /* its state lets it have work: not draining, lost or retired */
	bool named;               /* its pool's policy names this reference */
	bool own_tenant;          /* the reference is to its pool's tenant's */
	bool for_allocation;      /* asked on behalf of one; else of the machine itself */
	bool allocation_here;     /* which this node has been given */
	bool allocation_leaving;  /* and which is releasing, or over */
};

/* Why not, as the node is told: static text; NULL when it may. */
const char *secret_refusal(const struct secret_view *view);
