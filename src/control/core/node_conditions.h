/*
 * node_conditions: what a node's conditions mean, and what changed between two full sets.
 *
 * Pure      texts are borrowed.
 */
#pragma once

#include "base/base.h"
#include "base/vec.h"

/* A node not heard of for so long is unreachable (GW-27), and its conditions stale (GW-28). */
#define NODE_UNREACHABLE_MS      30000
#define NODE_CONDITIONS_STALE_MS 60000

struct node_condition {
	const char *type, *reason, *message;
	int64_t since_ms;
};

/* Does it keep new work away while it is true (GW-6)? On a tenant-controlled node none does (GW-7).
 */
/* The types for which it may be true, for SQL's IN. */
#define NODE_CONDITIONS_NO_SCHEDULE                                                                \
	"'ForeignGpuExposure', 'KubernetesReleaseStuck', 'KubernetesReleasesUnreadable', "         \
	"'PodResourcesUnavailable', 'RecordsUnwritable'"
bool node_condition_no_schedule(const char *type, bool tenant_controlled);

/* A type that this program knows; others are advisory (GW-30). */
bool node_condition_is_known(const char *type);

struct node_condition_change {
	const struct node_condition *before; /* NULL: it is new */
	const struct node_condition *now;    /* NULL: it cleared */
};
struct node_condition_changes VEC_BODY(struct node_condition_change);

/* What differs in type, reason or message; a repeat of the same values is no change (GW-5). Of a
 * type that stands twice in a set the first counts. `changes` is appended to, in order of type. */
void node_conditions_diff(const struct node_condition *before, size_t before_count,
			  const struct node_condition *now, size_t now_count,
			  struct node_condition_changes *changes);
