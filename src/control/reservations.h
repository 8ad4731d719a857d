/* reservations: what several calls about them share. Private to this room. */
#pragma once

#include "control/core/reserve_request.h"
#include "control/pools.h"

/* RES-6: a pool is booked by the tenant that owns it, and by nobody else. */
MUST_CHECK bool reservation_check_owner(const struct control_call *call,
					const struct reserve_request *request,
					const struct pool *pool, struct error *error);

/* The conditions that it shows now. */
MUST_CHECK bool reservation_conditions(struct store_connection *db, const char *id,
				       json_t **ret_conditions, struct error *error);

/* The reservation as it is now, if the principal may see it. */
MUST_CHECK bool reservation_answer(struct store_connection *db, const struct control_call *call,
				   const char *id, json_t **ret_answer, struct error *error);
