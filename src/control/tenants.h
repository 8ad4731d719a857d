/* tenants: what hangs on a tenant asks whether it lives. Private to this room. */
#pragma once

#include "control/work.h"

/* NOT_FOUND when there is none, INVALID_STATE when it is archived. */
MUST_CHECK bool tenant_check_active(struct store_connection *db, const char *id,
				    struct error *error);
