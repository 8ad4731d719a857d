/*
 * schema_money: the types of usage, quotas, secrets, keys and pins, for the table in schema.c.
 */
#pragma once

#include "serve/schema.h"

extern const struct schema_field SCHEMA_USAGE_ITEM[];
extern const struct schema_field SCHEMA_USAGE[];
extern const struct schema_field SCHEMA_METER_DEVICE[];
extern const struct schema_field SCHEMA_METER_ROW[];
extern const struct schema_field SCHEMA_QUOTA_CREATE[];
extern const struct schema_field SCHEMA_QUOTA_PATCH[];
extern const struct schema_field SCHEMA_QUOTA_USED[];
extern const struct schema_field SCHEMA_QUOTA[];
extern const struct schema_field SCHEMA_KEY_PATCH[];
extern const struct schema_field SCHEMA_KEY_ROTATE[];
extern const struct schema_field SCHEMA_PKI_PINS[];
extern const struct schema_field SCHEMA_PKI_AUTHORITY[];
extern const struct schema_field SCHEMA_PKI[];
extern const struct schema_field SCHEMA_SECRET_CREATE[];
extern const struct schema_field SCHEMA_SECRET_PATCH[];
extern const struct schema_field SCHEMA_STORED_SECRET[];
