#include "control/core/secrets.h"

const char *secret_refusal(const struct secret_view *view)
{
	if (view->tenants_certificate || view->tenant_controlled)
		return "no secret is given to a tenant's node";
	if (!view->working)
		return "no secret is given to a node that takes no work";
	/* Whether anything of this name exists is not told to whom it isn't for. */
	if (!view->named || !view->own_tenant)
		return "the node's pool names no such secret";
	if (view->for_allocation && !view->allocation_here)
		return "the allocation is not on this node";
	if (view->for_allocation && view->allocation_leaving)
		return "the allocation is being released";
	return NULL;
}
