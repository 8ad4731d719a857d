"""What schemathesis can't know from the document: times that lie ahead, and the key it asks with."""

import datetime
import os
import re

import schemathesis
from hypothesis import strategies

OWN_KEY = os.environ["BC_OWN_KEY_ID"]


def soon(minutes):
    time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


schemathesis.openapi.format("date-time", strategies.integers(1, 300 * 24 * 60).map(soon))
schemathesis.openapi.format(
    "bc-duration", strategies.sampled_from(["1m", "60s", "90m", "1h30m", "8h", "24h"]))


@schemathesis.hook
def before_call(context, case, kwargs):
    """Whoever ends the key that all calls are made with learns nothing more."""
    if (case.path_parameters or {}).get("id") == OWN_KEY:
        case.path_parameters["id"] = OWN_KEY[:-4] + "0000"


# What JSON Schema can't say, so that a body it allows is refused all the same: the code, the field, and why.
BEYOND_SCHEMA = [
    ("cursor", "is not one of this list"),  # it is opaque
    ("to", "is not after from"),
    ("gang.nodes", "asks for .* devices in all"),
    ("devices", "asks for .* devices, at most"),
    ("ttl|duration|overlap", "is not between"),
    ("startAt|endAt", "lies |is not a time"),
    ("policy.kubernetes.platformOperated", "machines of a platform's site"),
    (".*", r"^request body:\d+:\d+: "),  # half a surrogate pair
    (".*", "must be a whole number"),  # 2.0 is one in JSON Schema, and not here
]


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if "RejectedPositiveData" not in type(failure).__name__:
        return True
    error = response.json()["error"]
    return not any(re.fullmatch(field, error.get("field", "")) and re.search(why, error["message"])
                   for field, why in BEYOND_SCHEMA)
