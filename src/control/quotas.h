/*
 * quotas: what a tenant may have at one time, and in a month (ADM-3). Private to this room.
 *
 * Owns      the table quotas. A limit counts the tenant's devices, of one pool or of all, of one
 *           class or of all.
 * Claims    at create, reservations that wait count with those that are placed, so that what was
 *           accepted can't be taken away by what comes later; when a waiting one is placed, only
 *           those that are placed count. A claim ends with the allocation, once.
 * Races     a check reads every claim in the transaction that adds another: of two requests that
 *           only fit one by one, the database lets one pass and the other looks again.
 */
#pragma once

#include "control/core/placement.h"
#include "control/work.h"

struct quota_question {
	const char *tenant, *pool;
	const struct placement_need *needs;
	size_t needs_count;
	int64_t copies;          /* nodes of a gang, each with these needs; 1 otherwise */
	int64_t from_ms, to_ms;  /* the time that is asked for */
	const char *reservation; /* who asks, whose own claims don't count; NULL in a preview */
	bool placing;            /* it was accepted before: only what is placed counts */
};

/* *ret_within is false when a limit would be passed; then `reasons` (a JSON array) has gained one
 * {"reason": "QuotaExceeded", "nodes": 0, …} with the numbers for each such limit. */
MUST_CHECK bool quota_check(struct store_connection *db, const struct quota_question *question,
			    json_t *reasons, bool *ret_within, struct error *error);
