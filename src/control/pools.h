/* pools: a pool's row and what it decides. Private to this room. */
#pragma once

#include "control/core/pool_policy.h"
#include "control/core/trust.h"
#include "control/work.h"

struct pool {
	char id[ID_SIZE], tenant[ID_SIZE], site[ID_SIZE], site_tenant[ID_SIZE];
	char root_tenant[ID_SIZE]; /* "" when the deployment names none */
	bool site_is_custom;
	char name[64], class[64], gpu_model[128];
	json_t *policy_json;
	struct pool_policy policy; /* its texts belong to policy_json */
	int64_t version, created_ms;
	int64_t nodes; /* 0 from pool_load(): counting them takes a look at each */
	bool archived;
};

/* NOT_FOUND when there is none. `ret_pool` must be {0} or loaded; pool_deinit() it. */
MUST_CHECK bool pool_load(struct store_connection *db, const char *id, struct pool *ret_pool,
			  struct error *error);
void pool_deinit(struct pool *pool);

/* What decides about its nodes' trust; borrows from `pool`. */
struct trust_pool pool_trust(const struct pool *pool);

/* INVALID_STATE for an archived one. */
MUST_CHECK bool pool_check_active(const struct pool *pool, struct error *error);

static inline void pool_cleanup(struct pool *pool)
{
	pool_deinit(pool);
}
