/*
 * resources: what a container asks of its node, by the rules of Kubernetes' API server: what is let
 * pass here and refused there would be found out only when the manifests are applied.
 *
 * Owns      MAN-33, 43: the option "resources"
 * Source    ValidateContainerResourceRequirements in kubernetes/pkg/apis/core/validation
 * Errors    INVALID_INPUT naming the field: "resources.requests"
 * Pure.
 * Tests     tests/unit/manifest/core/resources_test.c
 */
#pragma once

#include "base/error.h"

#include <jansson.h>

MUST_CHECK bool resources_check(const json_t *resources, struct error *error);
