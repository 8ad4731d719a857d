/*
 * pool_policy: what a pool's policy may say (POOL-7 to 20, 29). Pure.
 */
#pragma once

#include "base/error.h"

#include <jansson.h>

/* What the rest of the control plane asks of a policy. Texts belong to the JSON. */
struct pool_policy {
	bool joins; /* apiServer, caCertSha256 and joinTokenRef are there */
	const char *api_server, *ca_cert_sha256, *join_token_ref; /* NULL without `joins` */
	bool platform_operated;
	const char *gpu_api; /* "device-plugin" or "dra"; never NULL */
	bool spread;         /* placement: "spread"; else bin-pack */
};

#define POOL_MODEL_MAX         64 /* characters of gpuModel, printable ASCII */
#define POOL_POLICY_MAX_LABELS 64
#define POOL_POLICY_MAX_TAINTS 64

/* `policy` is the value of the field "policy". */
MUST_CHECK bool pool_policy_parse(const json_t *policy, struct pool_policy *ret_policy,
				  struct error *error);

/* The class of a pool; one is known. */
MUST_CHECK bool pool_policy_check_class(const char *class, struct error *error);

/* May this policy stand on a site? POOL-17: machines of a platform's site join a cluster only where
 * platformOperated counts. */
MUST_CHECK bool pool_policy_check_site(const struct pool_policy *policy, bool site_is_custom,
				       bool platform_counts, struct error *error);
