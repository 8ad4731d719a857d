/* schema_booking: the fields of gangs and of changes of a reservation. Private to schema.c. */
#pragma once

#include "serve/schema.h"

extern const struct schema_field SCHEMA_GANG_TOPOLOGY[];
extern const struct schema_field SCHEMA_GANG[];
extern const struct schema_field SCHEMA_RESERVATION_PATCH[];
