#include "serve/schema.h"

#include "base/base.h"
#include "control/control.h"
#include "control/core/body.h"
#include "control/core/pool_policy.h"
#include "control/core/reserve_request.h"
#include "serve/schema_booking.h"
#include "serve/schema_money.h"

#define NEEDED   SCHEMA_REQUIRED
#define LIST     (SCHEMA_REQUIRED | SCHEMA_LIST)
#define MAY_LIST SCHEMA_LIST

#define END   {0}
#define ROLES "viewer|user|owner|operator"

/* clang-format off */

/* Fields that many types have. */
#define FIELD_ID(prefix) {.name = "id", SCHEMA_ID, NEEDED, "its id, never used again", prefix}
#define FIELD_TENANT {.name = "tenantId", SCHEMA_ID, NEEDED, "the tenant it belongs to", "ten"}
#define FIELD_CREATED {.name = "createdAt", SCHEMA_TIME, NEEDED, "when it was made"}
#define FIELD_IDEMPOTENCY {.name = "idempotencyKey", SCHEMA_TEXT, 0, \
	"asking again with the same key and the same input answers the first result", \
	"^[ -~]+$", 1, BODY_IDEMPOTENCY_KEY_MAX, 0, "3f1c9a52"}

/* --- tenants, sites --- */

static const struct schema_field TENANT_CREATE[] = {
	{.name = "name", SCHEMA_NAME, NEEDED, "its name, the only one of its kind", .example = "acme"},
	FIELD_IDEMPOTENCY,
	END,
};

static const struct schema_field RENAME[] = {
	{.name = "name", SCHEMA_NAME, NEEDED, "the new name", .example = "home"},
	END,
};

static const struct schema_field TENANT[] = {
	FIELD_ID("ten"),
	{.name = "name", SCHEMA_NAME, NEEDED, "its name, the only one of its kind", .example = "acme"},
	{.name = "state", SCHEMA_CHOICE, NEEDED, "an archived one makes nothing new", "active|archived"},
	FIELD_CREATED,
	END,
};

static const struct schema_field SITE_CREATE[] = {
	{.name = "tenantId", SCHEMA_ID, NEEDED, "the tenant it belongs to", "ten"},
	{.name = "name", SCHEMA_NAME, NEEDED, "its name, the only one of its tenant", .example = "home"},
	{.name = "kind", SCHEMA_CHOICE, NEEDED, "platform: run by the platform itself, for operators to make", "custom|platform"},
	FIELD_IDEMPOTENCY,
	END,
};

static const struct schema_field SITE[] = {
	FIELD_ID("site"),
	FIELD_TENANT,
	{.name = "name", SCHEMA_NAME, NEEDED, "its name, the only one of its tenant", .example = "home"},
	{.name = "kind", SCHEMA_CHOICE, NEEDED, "who runs it", "custom|platform"},
	{.name = "state", SCHEMA_CHOICE, NEEDED, "an archived one gets no new pools", "active|archived"},
	FIELD_CREATED,
	END,
};

/* --- pools --- */

static const struct schema_field KUBERNETES[] = {
	{.name = "apiServer", SCHEMA_TEXT, 0, "URL of the cluster that the pool's machines join",
	 "^https://[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*(:[1-9][0-9]{0,3})?/?$", 1, 253, 0, "https://k8s.example.com:6443"},
	{.name = "caCertSha256", SCHEMA_TEXT, 0, "pin of the cluster's CA",
	 "^sha256:[0-9a-fA-F]{64}$", 71, 71, 0, "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
	{.name = "joinTokenRef", SCHEMA_TEXT, 0, "reference of the secret that the machines join with",
	 "^secret://ten_[0-7][0-9a-hjkmnp-tv-z]{25}/sec_[0-7][0-9a-hjkmnp-tv-z]{25}$", 1, 128, 0, "secret://ten_01jd4z5x9f0123456789abcdef/sec_01jd4z5x9f0123456789abcdef"},
	{.name = "labels", SCHEMA_LABELS, 0, "labels of each joined machine's Node", .most = POOL_POLICY_MAX_LABELS},
	{.name = "taints", SCHEMA_TEXT, MAY_LIST, "taints that each joined machine registers with",
	 "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?=([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?:(NoSchedule|PreferNoSchedule|NoExecute)$", 1, 253, POOL_POLICY_MAX_TAINTS, "gpu=reserved:NoSchedule"},
	{.name = "kubernetesVersion", SCHEMA_TEXT, 0, "the version that machines join with", "^[0-9]{1,4}\\.[0-9]{1,4}(\\.[0-9]{1,4})?$", 1, 16, 0, "1.34.1"},
	{.name = "gpuApi", SCHEMA_CHOICE, 0, "how GPUs are offered to the kubelet (default device-plugin)", "device-plugin|dra"},
	{.name = "platformOperated", SCHEMA_BOOL, 0, "the platform itself operates the cluster"},
	END,
};

static const struct schema_field POOL_POLICY[] = {
	{.name = "kubernetes", SCHEMA_OBJECT, 0, "the cluster that the machines are for", "KubernetesPolicy"},
	{.name = "placement", SCHEMA_CHOICE, 0, "fill nodes one after the other, or spread (default bin-pack)", "bin-pack|spread"},
	END,
};

static const struct schema_field POOL_CREATE[] = {
	{.name = "tenantId", SCHEMA_ID, NEEDED, "the tenant it belongs to", "ten"},
	{.name = "siteId", SCHEMA_ID, NEEDED, "where its machines stand", "site"},
	{.name = "name", SCHEMA_NAME, NEEDED, "its name, the only one of its tenant", .example = "h100"},
	{.name = "class", SCHEMA_CHOICE, NEEDED, "what its machines are", "metal-host"},
	{.name = "gpuModel", SCHEMA_TEXT, NEEDED, "the model of its GPUs", "^[ -~]+$", 1, POOL_MODEL_MAX, 0, "H100"},
	{.name = "policy", SCHEMA_OBJECT, NEEDED, "how its machines are used", "PoolPolicy"},
	FIELD_IDEMPOTENCY,
	END,
};

static const struct schema_field POOL_PATCH[] = {
	{.name = "name", SCHEMA_NAME, 0, "the new name", .example = "h100"},
	{.name = "policy", SCHEMA_OBJECT, 0, "the whole new policy", "PoolPolicy"},
	{.name = "ifVersion", SCHEMA_INT, 0, "change it only while it has this version", NULL, 1, CONTROL_MAX_SEQUENCE, 0, "1"},
	END,
};

static const struct schema_field POOL[] = {
	FIELD_ID("pool"),
	FIELD_TENANT,
	{.name = "siteId", SCHEMA_ID, NEEDED, "where its machines stand", "site"},
	{.name = "name", SCHEMA_NAME, NEEDED, "its name, the only one of its tenant", .example = "h100"},
	{.name = "class", SCHEMA_CHOICE, NEEDED, "what its machines are", "metal-host"},
	{.name = "gpuModel", SCHEMA_TEXT, NEEDED, "the model of its GPUs", .example = "H100"},
	{.name = "policy", SCHEMA_OBJECT, NEEDED, "how its machines are used", "PoolPolicy"},
	{.name = "version", SCHEMA_INT, NEEDED, "grows with each change", .example = "1"},
	{.name = "state", SCHEMA_CHOICE, NEEDED, "an archived one takes no reservations", "active|archived"},
	{.name = "nodes", SCHEMA_INT, NEEDED, "its nodes, without retired and lost ones", .example = "3"},
	FIELD_CREATED,
	{.name = "notes", SCHEMA_TEXT, MAY_LIST, "what it doesn't do", .example = "Changed taints reach only new machines."},
	END,
};

/* --- join tokens --- */

static const struct schema_field JOIN_TOKEN_CREATE[] = {
	{.name = "poolId", SCHEMA_ID, NEEDED, "the pool that machines join", "pool"},
	{.name = "ttl", SCHEMA_DURATION, 0, "how long it can be used (default 24h)", "1m to 24h", .example = "1h"},
	{.name = "maxUses", SCHEMA_INT, 0, "how many machines may use it (default 1, hosted 100)", NULL, 1, CONTROL_JOIN_MAX_USES, 0, "3"},
	{.name = "hosted", SCHEMA_CHOICE, 0, "machines are nodes of this system already", "kubernetes"},
	FIELD_IDEMPOTENCY,
	END,
};

#define JOIN_TOKEN_FIELDS \
	FIELD_ID("jt"), \
	{.name = "poolId", SCHEMA_ID, NEEDED, "the pool that machines join", "pool"}, \
	{.name = "hosted", SCHEMA_CHOICE, 0, "machines are nodes of this system already", "kubernetes"}, \
	{.name = "maxUses", SCHEMA_INT, NEEDED, "how many machines may use it", .example = "3"}, \
	{.name = "uses", SCHEMA_INT, NEEDED, "how many have", .example = "0"}, \
	{.name = "expiresAt", SCHEMA_TIME, NEEDED, "when it ends"}, \
	{.name = "revokedAt", SCHEMA_TIME, 0, "when it was revoked"}, \
	{.name = "state", SCHEMA_CHOICE, NEEDED, "whether it can be used, and why not", "live|expired|used-up|revoked"}, \
	FIELD_CREATED

static const struct schema_field JOIN_TOKEN[] = {
	JOIN_TOKEN_FIELDS,
	END,
};

static const struct schema_field JOIN_TOKEN_CREATED[] = {
	JOIN_TOKEN_FIELDS,
	{.name = "token", SCHEMA_TEXT, SCHEMA_SECRET, "the token, shown this once; a repeated create doesn't show it", .example = "bcj1_jt_…"},
	END,
};

/* --- nodes --- */

static const struct schema_field NODE_PATCH[] = {
	{.name = "labels", SCHEMA_LABELS, SCHEMA_NULLABLE, "labels to set, or with null to take away; others stay", .most = CONTROL_MAX_LABELS},
	{.name = "spot", SCHEMA_BOOL, 0, "the machine may be taken away: it gets the label bc.dev/capacity=spot, and only reservations that are spot"},
	END,
};

static const struct schema_field NODE_RETIRE[] = {
	{.name = "lost", SCHEMA_BOOL, 0, "the machine is gone for good: what it held ends now; for operators"},
	END,
};

static const struct schema_field GPU[] = {
	{.name = "uuid", SCHEMA_TEXT, NEEDED, "its UUID", .example = "GPU-5a3d1f0e-0000-0000-0000-000000000000"},
	{.name = "model", SCHEMA_TEXT, NEEDED, "its model", .example = "NVIDIA H100 80GB HBM3"},
	{.name = "memoryBytes", SCHEMA_INT, NEEDED, "its memory", .example = "85899345920"},
	{.name = "pci", SCHEMA_TEXT, NEEDED, "its PCI address", .example = "0000:1b:00.0"},
	{.name = "numa", SCHEMA_INT, NEEDED, "its NUMA node, -1 when unknown", NULL, -1, 1024, 0, "0"},
	{.name = "healthy", SCHEMA_BOOL, NEEDED, "whether it can be given"},
	{.name = "cause", SCHEMA_TEXT, 0, "why it isn't", .example = "XID 79"},
	END,
};

static const struct schema_field NODE_DEVICE[] = {
	{.name = "atom", SCHEMA_TEXT, NEEDED, "the device's name on its node", .example = "gpu-0"},
	{.name = "class", SCHEMA_CHOICE, NEEDED, "what it is", "gpu|gpu.mig|gpu.slot"},
	{.name = "profile", SCHEMA_TEXT, 0, "its MIG profile", .example = "1g.10gb"},
	{.name = "gpu", SCHEMA_TEXT, NEEDED, "the GPU that it is, or is a part of", .example = "GPU-5a3d1f0e-0000-0000-0000-000000000000"},
	{.name = "healthy", SCHEMA_BOOL, NEEDED, "whether it can be given"},
	{.name = "cause", SCHEMA_TEXT, 0, "why it isn't", .example = "XID 79"},
	{.name = "reservationId", SCHEMA_ID, 0, "who has it now", "rsv"},
	{.name = "allocationId", SCHEMA_ID, 0, "by which allocation", "alc"},
	END,
};

static const struct schema_field NODE_CONDITION[] = {
	{.name = "type", SCHEMA_TEXT, NEEDED, "what kind of trouble", .example = "DriverMissing"},
	{.name = "reason", SCHEMA_TEXT, NEEDED, "why, in one word", .example = "NotLoaded"},
	{.name = "message", SCHEMA_TEXT, NEEDED, "why, in a sentence", .example = "the NVIDIA driver is not loaded"},
	{.name = "since", SCHEMA_TIME, NEEDED, "since when"},
	{.name = "noSchedule", SCHEMA_BOOL, NEEDED, "while it lasts, the node gets no new work"},
	{.name = "stale", SCHEMA_BOOL, 0, "the node hasn't been heard of since"},
	END,
};

static const struct schema_field NODE[] = {
	FIELD_ID("node"),
	{.name = "poolId", SCHEMA_ID, NEEDED, "its pool", "pool"},
	{.name = "siteId", SCHEMA_ID, NEEDED, "where it stands", "site"},
	FIELD_TENANT,
	{.name = "hostname", SCHEMA_TEXT, NEEDED, "what the machine calls itself", .example = "gpu-1"},
	{.name = "kubernetesNodeName", SCHEMA_TEXT, NEEDED, "its Node's name, empty when it is none", .example = "gpu-1"},
	{.name = "state", SCHEMA_CHOICE, NEEDED, "only ready ones get new work", "joining|adopting|ready|draining|lost|retired"},
	{.name = "trust", SCHEMA_CHOICE, NEEDED, "how far it is trusted", "platform|tenant-owned|tenant-controlled"},
	{.name = "connected", SCHEMA_BOOL, NEEDED, "its stream is open"},
	{.name = "lastSeenAt", SCHEMA_TIME, 0, "when it was last heard of"},
	{.name = "bcdVersion", SCHEMA_TEXT, 0, "the version of its bcd", .example = "0.1.0"},
	{.name = "labels", SCHEMA_LABELS, NEEDED, "what its bcd can do, and what operators say of it"},
	{.name = "spot", SCHEMA_BOOL, NEEDED, "it may be taken away, and takes only reservations that are spot"},
	{.name = "simulated", SCHEMA_BOOL, NEEDED, "its GPUs are simulated"},
	{.name = "simulatedReason", SCHEMA_TEXT, 0, "why", .example = "scenario"},
	{.name = "specGeneration", SCHEMA_INT, NEEDED, "of what it is to have", .example = "7"},
	{.name = "storedGeneration", SCHEMA_INT, NEEDED, "of what it has stored", .example = "7"},
	FIELD_CREATED,
	{.name = "host", SCHEMA_OBJECT, NEEDED, "what it has beside GPUs, less what stays its own", "HostShare"},
	{.name = "hostBooked", SCHEMA_OBJECT, NEEDED, "what is booked of that now", "HostShare"},
	{.name = "gpus", SCHEMA_OBJECT, LIST, "its GPUs", "Gpu"},
	{.name = "devices", SCHEMA_OBJECT, LIST, "what can be booked on it", "NodeDevice"},
	{.name = "conditions", SCHEMA_OBJECT, LIST, "what is wrong with it", "NodeCondition"},
	END,
};

/* --- reservations --- */

static const struct schema_field DEVICE_NEED[] = {
	{.name = "class", SCHEMA_CHOICE, NEEDED, "whole GPUs, MIG instances, or shares", "gpu|gpu.mig|gpu.slot"},
	{.name = "profile", SCHEMA_TEXT, SCHEMA_ASIDE, "the MIG profile; any when absent", "^[a-z0-9.+-]+$", 1, 32, 0, "1g.10gb"},
	{.name = "count", SCHEMA_INT, NEEDED, "how many; all entries together at most 1024", NULL, 1, RESERVE_MAX_DEVICES, 0, "8"},
	END,
};

static const struct schema_field RESOURCES[] = {
	{.name = "vcpu", SCHEMA_INT, 0, "processors", NULL, 1, RESERVE_MAX_VCPU, 0, "32"},
	{.name = "memoryGiB", SCHEMA_INT, 0, "memory", NULL, 1, RESERVE_MAX_GIB, 0, "256"},
	{.name = RESERVE_HUGEPAGES_2MI, SCHEMA_INT, SCHEMA_ASIDE, "huge pages of 2Mi, in GiB (default: none)", NULL, 1, RESERVE_MAX_GIB, 0, "8"},
	{.name = RESERVE_HUGEPAGES_1GI, SCHEMA_INT, SCHEMA_ASIDE, "huge pages of 1Gi, in GiB (default: none)", NULL, 1, RESERVE_MAX_GIB, 0, "8"},
	END,
};

static const struct schema_field HOST_SHARE[] = {
	{.name = "vcpu", SCHEMA_INT, 0, "processors", .example = "32"},
	{.name = "memoryGiB", SCHEMA_INT, 0, "memory, in whole GiB", .example = "256"},
	{.name = "memoryMiB", SCHEMA_INT, 0, "the same memory, in whole MiB", .example = "262144"},
	{.name = RESERVE_HUGEPAGES_2MI, SCHEMA_INT, 0, "huge pages of 2Mi, in GiB", .example = "8"},
	{.name = RESERVE_HUGEPAGES_1GI, SCHEMA_INT, 0, "huge pages of 1Gi, in GiB", .example = "8"},
	END,
};

#define RESERVATION_ASKED \
	{.name = "tenantId", SCHEMA_ID, NEEDED, "the tenant that books: the pool's own", "ten"}, \
	{.name = "poolId", SCHEMA_ID, NEEDED, "the pool to book in", "pool"}, \
	{.name = "devices", SCHEMA_OBJECT, LIST | SCHEMA_FILLED, "what is booked", "DeviceNeed", .most = RESERVE_MAX_NEEDS}, \
	{.name = "duration", SCHEMA_DURATION, NEEDED, "for how long", "1m to 366d", .example = "8h"}, \
	{.name = "startAt", SCHEMA_TIME, 0, "when it begins, at most 366 days ahead (default: as soon as there is room)"}, \
	{.name = "binding", SCHEMA_CHOICE, NEEDED, "who is to use the devices", "kubernetes"}, \
	{.name = "resources", SCHEMA_OBJECT, 0, "the share of the host (default: in proportion to the devices)", "Resources"}, \
	{.name = "spot", SCHEMA_BOOL, 0, "it may be interrupted (default: false)"}, \
	{.name = "gang", SCHEMA_OBJECT, 0, "the same on several nodes", "Gang"}

static const struct schema_field RESERVATION_CREATE[] = {
	RESERVATION_ASKED,
	FIELD_IDEMPOTENCY,
	END,
};

static const struct schema_field CAPACITY_PREVIEW[] = {
	RESERVATION_ASKED,
	END,
};

static const struct schema_field ALLOCATION_DEVICE[] = {
	{.name = "atom", SCHEMA_TEXT, NEEDED, "the device's name on its node", .example = "gpu-0"},
	{.name = "class", SCHEMA_CHOICE, NEEDED, "what it is", "gpu|gpu.mig|gpu.slot"},
	{.name = "gpu", SCHEMA_TEXT, NEEDED, "the GPU that it is, or is a part of", .example = "GPU-5a3d1f0e-0000-0000-0000-000000000000"},
	{.name = "visibleDevice", SCHEMA_TEXT, NEEDED, "what NVIDIA_VISIBLE_DEVICES calls it", .example = "GPU-5a3d1f0e-0000-0000-0000-000000000000"},
	END,
};

static const struct schema_field ALLOCATION[] = {
	FIELD_ID("alc"),
	{.name = "nodeId", SCHEMA_ID, NEEDED, "the node it is on", "node"},
	{.name = "state", SCHEMA_CHOICE, NEEDED, "how far it is", "placed|bound|releasing|released|failed"},
	{.name = "devices", SCHEMA_OBJECT, LIST, "which devices", "AllocationDevice"},
	{.name = "boundAt", SCHEMA_TIME, 0, "when the node offered them"},
	{.name = "releasedAt", SCHEMA_TIME, 0, "when nobody could hold them any more"},
	END,
};

static const struct schema_field DEGRADED_CAUSE[] = {
	{.name = "reason", SCHEMA_TEXT, NEEDED, "why, in one word", .example = "AtomUnhealthy"},
	{.name = "message", SCHEMA_TEXT, NEEDED, "why, in a sentence", .example = "gpu-0: XID 79"},
	{.name = "node", SCHEMA_ID, NEEDED, "on which node", "node"},
	{.name = "device", SCHEMA_TEXT, 0, "which device", .example = "gpu-0"},
	END,
};

static const struct schema_field RESERVATION_CONDITION[] = {
	{.name = "type", SCHEMA_TEXT, NEEDED, "Waiting, ReleaseUnconfirmed, DevicesHeld, Degraded, Unconfirmed", .example = "DevicesHeld"},
	{.name = "reason", SCHEMA_TEXT, NEEDED, "why, in one word", .example = "PodsHoldDevices"},
	{.name = "message", SCHEMA_TEXT, NEEDED, "why, in a sentence", .example = "waiting for pods to end"},
	{.name = "since", SCHEMA_TIME, NEEDED, "since when"},
	{.name = "next", SCHEMA_TEXT, 0, "of DevicesHeld: what ends it should the nodes never say that nobody holds them",
	 .example = "Should node_1 never say that nobody holds the devices, they are free at 2026-12-02 12:00 UTC"},
	{.name = "causes", SCHEMA_OBJECT, MAY_LIST, "of Degraded: everything that is wrong", "DegradedCause"},
	END,
};

static const struct schema_field REASON[] = {
	{.name = "reason", SCHEMA_TEXT, NEEDED, "the first filter that rejected them", .example = "NotEnoughDevices"},
	{.name = "nodes", SCHEMA_INT, NEEDED, "how many nodes", .example = "2"},
	{.name = "largest", SCHEMA_INT, 0, "of devices: the most that one of these nodes could give", .example = "4"},
	{.name = "quotaId", SCHEMA_ID, 0, "QuotaExceeded: the limit that would be passed", "quo"},
	{.name = "unit", SCHEMA_CHOICE, 0, "of the three numbers", "devices|gpuSeconds"},
	{.name = "limit", SCHEMA_INT, 0, "the most that is allowed", .example = "16"},
	{.name = "used", SCHEMA_INT, 0, "what is claimed already", .example = "14"},
	{.name = "asked", SCHEMA_INT, 0, "what was asked for", .example = "4"},
	{.name = "message", SCHEMA_TEXT, 0, "the same in words"},
	END,
};

static const struct schema_field RESERVATION[] = {
	FIELD_ID("rsv"),
	FIELD_TENANT,
	{.name = "poolId", SCHEMA_ID, NEEDED, "the pool it is in", "pool"},
	{.name = "state", SCHEMA_CHOICE, NEEDED, "how far it is", "pending|placed|active|released|denied|failed|cancelled|expired|preempted"},
	{.name = "binding", SCHEMA_CHOICE, NEEDED, "who is to use the devices", "kubernetes"},
	{.name = "devices", SCHEMA_OBJECT, LIST, "what is booked", "DeviceNeed"},
	{.name = "duration", SCHEMA_DURATION, NEEDED, "for how long", "1m to 366d", .example = "8h"},
	{.name = "stateReason", SCHEMA_TEXT, 0, "why it is over", .example = "ReleaseRequested"},
	{.name = "spot", SCHEMA_BOOL, 0, "true: it may be interrupted"},
	{.name = "gang", SCHEMA_OBJECT, 0, "the same on several nodes", "Gang"},
	{.name = "startAt", SCHEMA_TIME, 0, "when it begins: as asked, then as placed"},
	{.name = "endAt", SCHEMA_TIME, 0, "when it ends"},
	{.name = "reasons", SCHEMA_OBJECT, LIST, "why it isn't placed: each node once", "Reason"},
	FIELD_CREATED,
	{.name = "releaseRequestedAt", SCHEMA_TIME, 0, "when it was given back"},
	{.name = "resources", SCHEMA_OBJECT, NEEDED, "the share of the host", "HostShare"},
	{.name = "allocations", SCHEMA_OBJECT, LIST, "what it was given", "Allocation"},
	{.name = "conditions", SCHEMA_OBJECT, LIST, "what is to be known of it", "ReservationCondition"},
	END,
};

#define POD_EXAMPLE "{\"bcd.dev/gpu\":\"2\",\"cpu\":\"32\",\"memory\":\"256Gi\"}"

static const struct schema_field POD_RESOURCES[] = {
	{.name = "requests", SCHEMA_LABELS, NEEDED, "what the scheduler looks for, and the kubelet keeps for the pod", .example = POD_EXAMPLE},
	{.name = "limits", SCHEMA_LABELS, NEEDED, "the same: the most that it gets", .example = POD_EXAMPLE},
	END,
};

static const struct schema_field POD_REQUESTS[] = {
	FIELD_ID("rsv"),
	{.name = "devices", SCHEMA_INT, NEEDED, "of one pod", .example = "2"},
	{.name = "pods", SCHEMA_INT, NEEDED, "such pods that there is room for, on all its nodes", .example = "4"},
	{.name = "resources", SCHEMA_OBJECT, NEEDED, "of a pod's container: to be pasted", "PodResources"},
	END,
};

/* --- capacity --- */

static const struct schema_field PREVIEW_NODE[] = {
	{.name = "id", SCHEMA_ID, NEEDED, "the node", "node"},
	{.name = "devices", SCHEMA_OBJECT, LIST, "which devices", "AllocationDevice"},
	END,
};

static const struct schema_field CAPACITY_PREVIEW_ANSWER[] = {
	{.name = "fits", SCHEMA_BOOL, NEEDED, "it would be placed at once"},
	{.name = "state", SCHEMA_CHOICE, NEEDED, "what it would be", "placed|pending|denied"},
	{.name = "nodes", SCHEMA_OBJECT, LIST, "where", "PreviewNode"},
	{.name = "firstFitAt", SCHEMA_TIME, 0, "when it would fit, as far as is known"},
	{.name = "reasons", SCHEMA_OBJECT, LIST, "why it doesn't fit: each node once", "Reason"},
	END,
};

static const struct schema_field CAPACITY[] = {
	{.name = "poolId", SCHEMA_ID, NEEDED, "the pool", "pool"},
	{.name = "class", SCHEMA_CHOICE, NEEDED, "of these devices", "gpu|gpu.mig|gpu.slot"},
	{.name = "profile", SCHEMA_TEXT, 0, "of this MIG profile", .example = "1g.10gb"},
	{.name = "total", SCHEMA_INT, NEEDED, "all of them", .example = "24"},
	{.name = "free", SCHEMA_INT, NEEDED, "could be booked now", .example = "16"},
	{.name = "spotOnly", SCHEMA_INT, NEEDED, "of the free ones: those that only spot reservations get", .example = "0"},
	{.name = "booked", SCHEMA_INT, NEEDED, "are booked now", .example = "8"},
	{.name = "unhealthy", SCHEMA_INT, NEEDED, "are broken", .example = "0"},
	{.name = "unavailable", SCHEMA_INT, NEEDED, "are of nodes that take no work now", .example = "0"},
	{.name = "nodes", SCHEMA_INT, NEEDED, "of how many nodes", .example = "3"},
	END,
};

static const struct schema_field CAPACITY_LIST[] = {
	{.name = "items", SCHEMA_OBJECT, LIST, "one row a pool, class and profile", "Capacity"},
	END,
};

/* --- events --- */

static const struct schema_field EVENT[] = {
	{.name = "seq", SCHEMA_INT, NEEDED, "its number: grows, without gaps that could be filled later", .example = "42"},
	{.name = "at", SCHEMA_TIME, NEEDED, "when it happened"},
	{.name = "type", SCHEMA_TEXT, NEEDED, "what happened", .example = "reservation.state.changed"},
	{.name = "subject", SCHEMA_TEXT, NEEDED, "the id of what it happened to", .example = "rsv_01jd4z5x9f0123456789abcdef"},
	{.name = "data", SCHEMA_ANY, NEEDED, "how it is now"},
	END,
};

static const struct schema_field EVENT_LIST[] = {
	{.name = "items", SCHEMA_OBJECT, LIST, "in order; ask again after the last one's seq", "Event"},
	{.name = "next", SCHEMA_INT, NEEDED, "ask again after this one", .example = "42"},
	{.name = "last", SCHEMA_INT, NEEDED, "the number of the newest event of all, anybody's", .example = "42"},
	END,
};

/* --- audit --- */

#define HASH_PATTERN "^sha256:[0-9a-f]{64}$"

static const struct schema_field AUDIT[] = {
	FIELD_ID("aud"),
	{.name = "at", SCHEMA_TIME, NEEDED, "when it was changed"},
	{.name = "requestId", SCHEMA_TEXT, NEEDED, "the request, as in its X-Request-Id", .example = "req_01jd4z5x9f0123456789abcdef"},
	{.name = "address", SCHEMA_TEXT, 0, "where it was asked from, as far as trusted proxies say", .example = "192.0.2.7"},
	{.name = "keyId", SCHEMA_TEXT, NEEDED, "the key that asked", .example = "key_01jd4z5x9f0123456789abcdef"},
	{.name = "tenantId", SCHEMA_ID, NEEDED, "whose thing it is", "ten"},
	{.name = "action", SCHEMA_TEXT, NEEDED, "what was done", .example = "compute:pools:patch"},
	{.name = "object", SCHEMA_TEXT, NEEDED, "to what", .example = "pool_01jd4z5x9f0123456789abcdef"},
	{.name = "before", SCHEMA_TEXT, 0, "hash of the thing as it was, as its answers say it; absent when it was made", HASH_PATTERN,
	 71, 71, 0, "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
	{.name = "after", SCHEMA_TEXT, 0, "hash of the thing as it is since; absent when it is gone", HASH_PATTERN,
	 71, 71, 0, "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"},
	{.name = "detail", SCHEMA_ANY, 0, "what else is to be known of it"},
	END,
};

/* --- keys --- */

static const struct schema_field PRINCIPAL[] = {
	{.name = "keyId", SCHEMA_ID, NEEDED, "the key that asks", "key"},
	{.name = "keyName", SCHEMA_TEXT, NEEDED, "how that key is called", .example = "ci"},
	FIELD_TENANT,
	{.name = "tenantName", SCHEMA_TEXT, NEEDED, "how its tenant is called", .example = "acme"},
	{.name = "role", SCHEMA_CHOICE, NEEDED, "what it may do", ROLES},
	END,
};

static const struct schema_field KEY_CREATE[] = {
	{.name = "tenantId", SCHEMA_ID, NEEDED, "the tenant whose things it reaches", "ten"},
	{.name = "role", SCHEMA_CHOICE, NEEDED, "what it may do; no more than the key that makes it", ROLES},
	{.name = "name", SCHEMA_NAME, NEEDED, "what it is for", .example = "ci"},
	END,
};

#define KEY_FIELDS \
	FIELD_ID("key"), \
	FIELD_TENANT, \
	{.name = "role", SCHEMA_CHOICE, NEEDED, "what it may do", ROLES}, \
	{.name = "name", SCHEMA_NAME, NEEDED, "what it is for", .example = "ci"}, \
	FIELD_CREATED, \
	{.name = "revokedAt", SCHEMA_TIME, 0, "when it was revoked"}, \
	{.name = "rotatedAt", SCHEMA_TIME, 0, "when it got its newest secret"}, \
	{.name = "oldSecretEndsAt", SCHEMA_TIME, 0, "until when the one before opens"}

static const struct schema_field KEY[] = {
	KEY_FIELDS,
	END,
};

static const struct schema_field KEY_CREATED[] = {
	KEY_FIELDS,
	{.name = "key", SCHEMA_TEXT, SCHEMA_SECRET, "the key, shown this once", .example = "bck_key_…"},
	END,
};

/* --- errors --- */

static const struct schema_field ERROR_DETAIL[] = {
	{.name = "code", SCHEMA_CHOICE, NEEDED, "what kind of refusal",
	 "INVALID_INPUT|INVALID_CONFIG|UNAUTHENTICATED|FORBIDDEN|NOT_FOUND|CONFLICT|INVALID_STATE|RESOURCES_EXHAUSTED|RATE_LIMITED|UNAVAILABLE|INTERNAL"},
	{.name = "message", SCHEMA_TEXT, NEEDED, "what was refused and why", .example = "name: is missing"},
	{.name = "field", SCHEMA_TEXT, 0, "the field or parameter that is wrong", .example = "devices[0].count"},
	{.name = "hint", SCHEMA_TEXT, 0, "what to do", .example = "Known here: name, idempotencyKey."},
	{.name = "requestId", SCHEMA_ID, NEEDED, "the request, as in X-Request-Id", "req"},
	END,
};

static const struct schema_field ERROR_BODY[] = {
	{.name = "error", SCHEMA_OBJECT, NEEDED, "the refusal", "ErrorDetail"},
	END,
};

/* --- all of them --- */

/* All three or none. */
#define JOIN_FIELDS "{\"dependentRequired\":{" \
	"\"apiServer\":[\"caCertSha256\",\"joinTokenRef\"]," \
	"\"caCertSha256\":[\"apiServer\",\"joinTokenRef\"]," \
	"\"joinTokenRef\":[\"apiServer\",\"caCertSha256\"]}}"
/* Nothing else has profiles. */
#define MIG_PROFILES "{\"if\":{\"required\":[\"profile\"]}," \
	"\"then\":{\"properties\":{\"class\":{\"const\":\"gpu.mig\"}}}}"


const struct schema_type SCHEMA_TYPES[] = {
	{.name = "TenantCreate", "a tenant to make", TENANT_CREATE},
	{.name = "Tenant", "an organisation that owns sites, pools and reservations", TENANT},
	{.name = "TenantList", "tenants, in the order of their making", NULL, "Tenant"},
	{.name = "TenantPatch", "a change of a tenant", RENAME},
	{.name = "SiteCreate", "a site to make", SITE_CREATE},
	{.name = "Site", "a place where machines stand", SITE},
	{.name = "SiteList", "sites, in the order of their making", NULL, "Site"},
	{.name = "SitePatch", "a change of a site", RENAME},
	{.name = "KubernetesPolicy", "the cluster of a pool's machines", KUBERNETES, .rule = JOIN_FIELDS},
	{.name = "PoolPolicy", "how a pool's machines are used", POOL_POLICY},
	{.name = "PoolCreate", "a pool to make", POOL_CREATE},
	{.name = "PoolPatch", "a change of a pool", POOL_PATCH, .rule = SCHEMA_ONE_OF_TWO("name", "policy")},
	{.name = "Pool", "machines of one kind that are booked together", POOL},
	{.name = "PoolList", "pools, in the order of their making", NULL, "Pool"},
	{.name = "JoinTokenCreate", "a join token to mint", JOIN_TOKEN_CREATE},
	{.name = "JoinToken", "what lets machines join a pool", JOIN_TOKEN},
	{.name = "JoinTokenCreated", "a join token with its secret", JOIN_TOKEN_CREATED},
	{.name = "JoinTokenList", "join tokens, in the order of their making", NULL, "JoinToken"},
	{.name = "NodePatch", "a change of a node", NODE_PATCH, .rule = SCHEMA_ONE_OF_TWO("labels", "spot")},
	{.name = "NodeRetire", "how a node ends", NODE_RETIRE},
	{.name = "Gpu", "one GPU of a node", GPU},
	{.name = "NodeDevice", "one thing of a node that can be booked", NODE_DEVICE},
	{.name = "NodeCondition", "trouble of a node", NODE_CONDITION},
	{.name = "Node", "a machine with GPUs", NODE},
	{.name = "NodeList", "nodes, in the order of their joining", NULL, "Node"},
	{.name = "DeviceNeed", "devices of one class", DEVICE_NEED, .rule = MIG_PROFILES},
	{.name = "Resources", "a share of a host that is asked for", RESOURCES},
	{.name = "HostShare", "a share of a host that is given", HOST_SHARE},
	{.name = "ReservationCreate", "a reservation to make", RESERVATION_CREATE},
	{.name = "GangTopology", "where the nodes of a gang are", SCHEMA_GANG_TOPOLOGY},
	{.name = "Gang", "devices on several nodes, all or none", SCHEMA_GANG},
	{.name = "ReservationPatch",
	 "what is to change",
	 SCHEMA_RESERVATION_PATCH,
	 .rule = SCHEMA_NOT_BOTH("duration", "endAt")},
	{.name = "AllocationDevice", "one device that is given", ALLOCATION_DEVICE},
	{.name = "Allocation", "what one node gives to a reservation", ALLOCATION},
	{.name = "DegradedCause", "one thing that is wrong with what is booked", DEGRADED_CAUSE},
	{.name = "ReservationCondition", "what is to be known of a reservation", RESERVATION_CONDITION},
	{.name = "Reason", "why nodes were rejected", REASON},
	{.name = "Reservation", "GPUs booked for a time", RESERVATION},
	{.name = "PodRequests", "what a pod asks for to use its part of a reservation", POD_REQUESTS},
	{.name = "PodResources", "resources as Kubernetes' containers have them", POD_RESOURCES},
	{.name = "ReservationList", "reservations, in the order of their making", NULL, "Reservation"},
	{.name = "CapacityPreview", "a reservation that might be made", CAPACITY_PREVIEW},
	{.name = "PreviewNode", "where it would be placed", PREVIEW_NODE},
	{.name = "CapacityPreviewAnswer", "whether and where it would fit", CAPACITY_PREVIEW_ANSWER},
	{.name = "Capacity", "how many devices there are", CAPACITY},
	{.name = "CapacityList", "capacity of the pools", CAPACITY_LIST},
	{.name = "Event", "something that happened", EVENT},
	{.name = "EventList", "events in order", EVENT_LIST},
	{.name = "Audit", "a change that somebody made", AUDIT},
	{.name = "AuditList", "changes, newest first", NULL, "Audit"},
	{.name = "Principal", "who asks", PRINCIPAL},
	{.name = "KeyCreate", "an API key to make", KEY_CREATE},
	{.name = "Key", "an API key", KEY},
	{.name = "KeyCreated", "an API key with its secret", KEY_CREATED},
	{.name = "KeyPatch", "a change of an API key", SCHEMA_KEY_PATCH, .rule = SCHEMA_SOMETHING},
	{.name = "KeyRotate", "how an API key's secret is replaced", SCHEMA_KEY_ROTATE},
	{.name = "KeyList", "API keys, in the order of their making", NULL, "Key"},
	{.name = "UsageItem", "what was used of one class", SCHEMA_USAGE_ITEM},
	{.name = "Usage", "what was used in a time", SCHEMA_USAGE},
	{.name = "MeterDevice", "what an allocation had of one class", SCHEMA_METER_DEVICE},
	{.name = "MeterRow", "what one allocation that is over used", SCHEMA_METER_ROW},
	{.name = "MeterRowList", "allocations in the order of their closing", NULL, "MeterRow"},
	{.name = "QuotaCreate", "a limit to set", SCHEMA_QUOTA_CREATE,
	 .rule = SCHEMA_ONE_OF_TWO("maxDevices", "gpuHoursPerMonth")},
	{.name = "QuotaPatch", "a change of a limit", SCHEMA_QUOTA_PATCH, .rule = SCHEMA_SOMETHING},
	{.name = "QuotaUsed", "what is used of a limit", SCHEMA_QUOTA_USED},
	{.name = "Quota", "a limit of what a tenant may have", SCHEMA_QUOTA},
	{.name = "QuotaList", "limits, in the order of their making", NULL, "Quota"},
	{.name = "PkiPins", "what nodes are configured with", SCHEMA_PKI_PINS},
	{.name = "PkiAuthority", "one of the control plane's own authorities", SCHEMA_PKI_AUTHORITY},
	{.name = "Pki", "the control plane's keys, as nodes trust them", SCHEMA_PKI},
	{.name = "SecretCreate", "a secret to keep", SCHEMA_SECRET_CREATE},
	{.name = "SecretPatch", "a change of a secret", SCHEMA_SECRET_PATCH, .rule = SCHEMA_SOMETHING},
	{.name = "Secret", "a secret's record, without its value", SCHEMA_STORED_SECRET},
	{.name = "SecretList", "secrets, in the order of their making", NULL, "Secret"},
	{.name = "ErrorDetail", "why a call was refused", ERROR_DETAIL},
	{.name = "Error", "the body of every answer that isn't 200", ERROR_BODY},
};
/* clang-format on */

const size_t SCHEMA_TYPES_COUNT = sizeof SCHEMA_TYPES / sizeof SCHEMA_TYPES[0];

const struct schema_type *schema_type_find(const char *name)
{
	for (size_t i = 0; i < SCHEMA_TYPES_COUNT; i++) {
		if (str_equal(SCHEMA_TYPES[i].name, name))
			return &SCHEMA_TYPES[i];
	}
	return NULL;
}
