#include "control/forget.h"

#include "control/lead.h"

#define DAY_MS ((int64_t)24 * 60 * 60 * 1000)

/* Those that come first: $1 is the time before which they are forgotten, $2 how many. */
#define FAILED                                                                                     \
	"(SELECT id FROM allocations WHERE state = 'failed' AND released_ms < $1 ORDER BY id "     \
	"LIMIT $2)"

/* POOL-27: keys of live objects stay as long as they do. Of those that end, reservations and tokens
 * have many; the others stay. */
#define KEYS                                                                                       \
	"(SELECT tenant, operation, idempotency_key FROM idempotency WHERE created_ms < $1 AND "   \
	"(EXISTS (SELECT 1 FROM reservations r WHERE r.id = idempotency.object AND r.state NOT "   \
	"IN ('pending', 'placed', 'active', 'releasing')) OR EXISTS (SELECT 1 FROM join_tokens t " \
	"WHERE t.id = idempotency.object AND t.expires_ms < $1)) LIMIT $2)"

static const struct rule {
	int64_t kept_ms;
	const char *parts; /* what refers to them; NULL: nothing */
	const char *sql;   /* answers a row for each that went */
} RULES[] = {
	{(int64_t)60 * 60 * 1000, NULL,
	 "DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE at_ms < $1 LIMIT $2) "
	 "RETURNING 1"},
	{7 * DAY_MS, NULL,
	 "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE at_ms < $1 LIMIT $2) "
	 "RETURNING 1"},
	{400 * DAY_MS, NULL,
	 "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at_ms < $1 LIMIT $2) "
	 "RETURNING 1"},
	/* They were never bound. */
	{30 * DAY_MS, "DELETE FROM allocation_devices WHERE allocation IN " FAILED,
	 "DELETE FROM allocations WHERE id IN " FAILED " RETURNING 1"},
	{7 * DAY_MS, NULL,
	 "DELETE FROM idempotency WHERE (tenant, operation, idempotency_key) IN " KEYS
	 " RETURNING 1"},
};

static bool forget_some(struct store_connection *db, const struct rule *rule, bool *more,
			struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct store_value before = store_int(store_now(db).ms - rule->kept_ms);
	struct store_value most = store_int(FORGET_BATCH);

	if (rule->parts && !store_exec(db, rule->parts, STORE_PARAMS(before, most), error))
		return false;
	if (!store_query(db, rule->sql, STORE_PARAMS(before, most), &rows, error))
		return false;
	*more |= rows.count == FORGET_BATCH;
	return true;
}

static bool forget_body(struct store_connection *db, void *argument, struct error *error)
{
	bool *more = argument;

	*more = false;
	for (size_t i = 0; i < ARRAY_SIZE(RULES); i++) {
		if (!forget_some(db, &RULES[i], more, error))
			return false;
	}
	return true;
}

bool forget_old(struct control *control, int64_t fence, bool *leads, struct error *error)
{
	bool more = true;

	for (int i = 0; *leads && more && i < FORGET_BATCHES; i++) {
		if (!lead_run(control, fence, forget_body, &more, leads, error))
			return false;
	}
	return true;
}
