#include "serve/schema_booking.h"

#include "control/core/reserve_request.h"

#include <stddef.h>

#define NEEDED SCHEMA_REQUIRED
#define END    {0}

/* clang-format off: one field a row. */

const struct schema_field SCHEMA_GANG_TOPOLOGY[] = {
	{.name = "same",
	 SCHEMA_CHOICE,
	 NEEDED,
	 "what all its nodes have in common, by their labels bc.dev/topology.*",
	 "rack|block|nvlinkDomain"},
	END,
};

const struct schema_field SCHEMA_GANG[] = {
	{.name = "nodes",
	 SCHEMA_INT,
	 NEEDED,
	 "on how many nodes, the devices on each of them; all or none",
	 .min = 1,
	 .max = RESERVE_MAX_DEVICES,
	 .example = "3"},
	{.name = "topology", SCHEMA_OBJECT, 0, "how near to each other", "GangTopology"},
	END,
};

const struct schema_field SCHEMA_RESERVATION_PATCH[] = {
	{"duration", SCHEMA_DURATION, 0, "how long it is to be, from its beginning", "1m to 366d",
	 .example = "10h"},
	{.name = "endAt",
	 SCHEMA_TIME,
	 SCHEMA_ASIDE,
	 "when it is to end; not together with duration"},
	{.name = "startAt", SCHEMA_TIME, 0, "when it is to begin: while it is pending"},
	END,
};
