#include "serve/schema_money.h"

#include "control/control.h"
#include "control/core/body.h"

#include <stddef.h>

#define NEEDED SCHEMA_REQUIRED
#define LIST   (SCHEMA_REQUIRED | SCHEMA_LIST)
#define END    {0}

#define CLASSES "gpu|gpu.mig|gpu.slot"
#define FIELD_CLASS                                                                                \
	{.name = "class", SCHEMA_CHOICE, NEEDED, "whole GPUs, MIG instances, or shares", CLASSES}
#define FIELD_PROFILE {.name = "profile", SCHEMA_TEXT, 0, "the MIG profile", .example = "1g.10gb"}
#define FIELD_GPU_SECONDS                                                                          \
	{.name = "gpuSeconds", SCHEMA_INT, NEEDED, "devices times whole seconds", .example = "7200"}
#define FIELD_TENANT {.name = "tenantId", SCHEMA_ID, NEEDED, "the tenant it belongs to", "ten"}

/* clang-format off: one field a row. */

/* --- usage --- */

const struct schema_field SCHEMA_USAGE_ITEM[] = {
	FIELD_TENANT,
	{.name = "poolId", SCHEMA_ID, 0, "the pool, when asked by pool", "pool"},
	FIELD_CLASS,
	FIELD_PROFILE,
	FIELD_GPU_SECONDS,
	{.name = "allocations",
	 SCHEMA_INT,
	 NEEDED,
	 "how many allocations this sums up",
	 .example = "3"},
	{.name = "open",
	 SCHEMA_INT,
	 NEEDED,
	 "how many of them aren't over: they count until now",
	 .example = "1"},
	END,
};

const struct schema_field SCHEMA_USAGE[] = {
	{.name = "from", SCHEMA_TIME, NEEDED, "from this time on"},
	{.name = "to", SCHEMA_TIME, NEEDED, "before this time"},
	{.name = "items", SCHEMA_OBJECT, LIST, "one for each class in use", "UsageItem"},
	END,
};

const struct schema_field SCHEMA_METER_DEVICE[] = {
	FIELD_CLASS,
	FIELD_PROFILE,
	{.name = "count", SCHEMA_INT, NEEDED, "how many", .example = "2"},
	FIELD_GPU_SECONDS,
	END,
};

const struct schema_field SCHEMA_METER_ROW[] = {
	{.name = "id", SCHEMA_ID, NEEDED, "its id, in the order of closing", "mtr"},
	{.name = "allocationId", SCHEMA_ID, NEEDED, "the allocation that is over", "alc"},
	{.name = "reservationId", SCHEMA_ID, NEEDED, "the reservation it was of", "rsv"},
	FIELD_TENANT,
	{.name = "poolId", SCHEMA_ID, NEEDED, "the pool it was in", "pool"},
	{.name = "nodeId", SCHEMA_ID, NEEDED, "the node it was on", "node"},
	{.name = "devices", SCHEMA_OBJECT, LIST, "what it had, by class", "MeterDevice"},
	{.name = "startedAt", SCHEMA_TIME, NEEDED, "when its devices were bound"},
	{.name = "stoppedAt",
	 SCHEMA_TIME,
	 NEEDED,
	 "when they were free, or its own end if that was earlier"},
	{.name = "reason", SCHEMA_TEXT, NEEDED, "why it stopped", .example = "ReleaseRequested"},
	FIELD_GPU_SECONDS,
	END,
};

/* --- quotas --- */

#define MAX_DEVICES                                                                                \
	{.name = "maxDevices",                                                                     \
	 SCHEMA_INT,                                                                               \
	 0,                                                                                        \
	 "the most devices at one time",                                                           \
	 .max = CONTROL_QUOTA_MAX_DEVICES,                                                         \
	 .example = "16"}
#define GPU_HOURS                                                                                  \
	{.name = "gpuHoursPerMonth",                                                               \
	 SCHEMA_INT,                                                                               \
	 0,                                                                                        \
	 "the most GPU-hours in a calendar month (UTC)",                                           \
	 .max = CONTROL_QUOTA_MAX_HOURS,                                                           \
	 .example = "2000"}
#define IDEMPOTENCY                                                                                \
	{"idempotencyKey",                                                                         \
	 SCHEMA_TEXT,                                                                              \
	 0,                                                                                        \
	 "asking again with the same key and the same input answers the first result",             \
	 "^[ -~]+$",                                                                               \
	 1,                                                                                        \
	 BODY_IDEMPOTENCY_KEY_MAX,                                                                 \
	 0,                                                                                        \
	 "3f1c9a52"}
#define QUOTA_OF                                                                                   \
	{.name = "poolId", SCHEMA_ID, 0, "of this pool; of all together when absent", "pool"},     \
	{                                                                                          \
		.name = "class", SCHEMA_CHOICE, 0, "of this class; of all together when absent",   \
		CLASSES                                                                            \
	}

const struct schema_field SCHEMA_QUOTA_CREATE[] = {
	{.name = "tenantId", SCHEMA_ID, NEEDED, "the tenant that is limited", "ten"},
	QUOTA_OF,
	MAX_DEVICES,
	GPU_HOURS,
	IDEMPOTENCY,
	END,
};

const struct schema_field SCHEMA_QUOTA_PATCH[] = {
	MAX_DEVICES,
	GPU_HOURS,
	END,
};

const struct schema_field SCHEMA_QUOTA_USED[] = {
	{.name = "devices", SCHEMA_INT, NEEDED, "held now", .example = "6"},
	{.name = "gpuSeconds",
	 SCHEMA_INT,
	 NEEDED,
	 "metered this month until now",
	 .example = "864000"},
	END,
};

const struct schema_field SCHEMA_QUOTA[] = {
	{.name = "id", SCHEMA_ID, NEEDED, "its id, never used again", "quo"},
	FIELD_TENANT,
	QUOTA_OF,
	MAX_DEVICES,
	GPU_HOURS,
	{.name = "used", SCHEMA_OBJECT, NEEDED, "what is used of it", "QuotaUsed"},
	{.name = "createdAt", SCHEMA_TIME, NEEDED, "when it was made"},
	END,
};

/* --- keys --- */

const struct schema_field SCHEMA_KEY_PATCH[] = {
	{.name = "name", SCHEMA_NAME, 0, "what it is for", .example = "ci"},
	{.name = "role",
	 SCHEMA_CHOICE,
	 0,
	 "what it may do; no more than the key that changes it",
	 "viewer|user|owner|operator"},
	END,
};

const struct schema_field SCHEMA_KEY_ROTATE[] = {
	{.name = "overlap",
	 SCHEMA_DURATION,
	 0,
	 "how long the old secret goes on; it ends at once without",
	 "1s to 30d",
	 .example = "1h"},
	END,
};

/* --- pins --- */

#define PINS(field, of)                                                                            \
	{.name = field,                                                                            \
	 SCHEMA_TEXT,                                                                              \
	 NEEDED,                                                                                   \
	 of ": one pin, or two with a comma while keys change",                                    \
	 .example = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}

const struct schema_field SCHEMA_PKI_PINS[] = {
	PINS("caPins", "of the gateway's serving CA"),
	PINS("encryptionPins", "of the join encryption key"),
	PINS("signingPins", "of the join signing key"),
	END,
};

const struct schema_field SCHEMA_PKI_AUTHORITY[] = {
	{.name = "authority", SCHEMA_CHOICE, NEEDED, "whom it signs", "serving|node"},
	{.name = "use", SCHEMA_CHOICE, NEEDED, "when it counts", "current|next|old"},
	{.name = "pin",
	 SCHEMA_TEXT,
	 NEEDED,
	 "of its key",
	 .example = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
	{.name = "notBefore", SCHEMA_TIME, NEEDED, "when its certificate begins"},
	{.name = "notAfter", SCHEMA_TIME, NEEDED, "when it ends"},
	END,
};

const struct schema_field SCHEMA_PKI[] = {
	{.name = "stage",
	 SCHEMA_CHOICE,
	 NEEDED,
	 "whether keys are being changed",
	 "steady|changing|renewing"},
	{.name = "pins", SCHEMA_OBJECT, NEEDED, "what nodes are configured with", "PkiPins"},
	{.name = "authorities", SCHEMA_OBJECT, LIST, "those that count", "PkiAuthority"},
	{.name = "oldNodesUntil",
	 SCHEMA_TIME,
	 0,
	 "until when certificates of the node CA before are good"},
	END,
};

/* --- secrets --- */

#define SECRET_NAME(flags)                                                                         \
	{.name = "name",                                                                           \
	 SCHEMA_NAME,                                                                              \
	 flags,                                                                                    \
	 "its name, the only one of its tenant's",                                                 \
	 .example = "k8s-join"}
#define SECRET_VALUE(flags)                                                                        \
	{.name = "value",                                                                          \
	 SCHEMA_TEXT,                                                                              \
	 (flags) | SCHEMA_SECRET,                                                                  \
	 "what is kept; never shown again",                                                        \
	 NULL,                                                                                     \
	 1,                                                                                        \
	 CONTROL_SECRET_MAX_VALUE,                                                                 \
	 0,                                                                                        \
	 "abcdef.0123456789abcdef"}

const struct schema_field SCHEMA_SECRET_CREATE[] = {
	{.name = "tenantId", SCHEMA_ID, NEEDED, "the tenant whose it is", "ten"},
	SECRET_NAME(NEEDED),
	SECRET_VALUE(NEEDED),
	IDEMPOTENCY,
	END,
};

const struct schema_field SCHEMA_SECRET_PATCH[] = {
	SECRET_NAME(0),
	SECRET_VALUE(0),
	END,
};

const struct schema_field SCHEMA_STORED_SECRET[] = {
	{.name = "id", SCHEMA_ID, NEEDED, "its id, never used again", "sec"},
	FIELD_TENANT,
	SECRET_NAME(NEEDED),
	{.name = "reference",
	 SCHEMA_TEXT,
	 NEEDED,
	 "what a pool's policy names it by",
	 .example = "secret://ten_…/sec_…"},
	{.name = "sealedBy", SCHEMA_ID, NEEDED, "the key of the key file that seals it", "sek"},
	{.name = "version", SCHEMA_INT, NEEDED, "how many values it has had", .example = "1"},
	{.name = "createdAt", SCHEMA_TIME, NEEDED, "when it was made"},
	{.name = "changedAt", SCHEMA_TIME, NEEDED, "when it was last changed"},
	END,
};
/* clang-format on */
