/*
 * metering: one row for each allocation that is over, and reports of what was used. Private to this
 * room.
 *
 * Owns      the tables meter and meter_devices. A row is written by the transaction that closes the
 *           allocation, so there is one exactly when it is closed; it never changes afterwards.
 */
#pragma once

#include "control/work.h"

/* The allocation was closed in this transaction: its row says when and why. */
MUST_CHECK bool metering_close(struct store_connection *db, const char *allocation,
			       struct error *error);

/* GPU-seconds of a tenant in [from_ms, to_ms) that are metered; pool and class "" for all. */
MUST_CHECK bool metering_sum(struct store_connection *db, const char *tenant, const char *pool,
			     const char *class, int64_t from_ms, int64_t to_ms,
			     int64_t *ret_seconds, struct error *error);
