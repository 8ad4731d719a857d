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
