/*
 * context: which control plane the CLI speaks to, as whom, and what it books for by default.
 *
 * Order     flags (--state, --api, --key-file, --ca-file, --tenant, --pool), then the environment
 *           (BETTER_COMPUTE_STATE or BETTER_COMPUTE_API, never both, with _KEY_FILE, _CA_FILE,
 * _TENANT, _POOL), then ./.better-compute when the caller owns it, then
 * ~/.config/better-compute/config.toml. A state folder gives address, key, tenant and pool
 * together, where nothing before it says another; one that an option names is never used with the
 * key or the authority of a variable. Secrets   the key comes from a file that only its owner can read, never from argv or
 * environment. Format    DIR/context.json, see docs/internals/layout.md.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "text/options.h"

#define CONTEXT_STATE_DEFAULT ".better-compute"
#define CONTEXT_FILE          "context.json"

enum context_field {
	CONTEXT_STATE,
	CONTEXT_API,
	CONTEXT_KEY_FILE,
	CONTEXT_CA_FILE,
	CONTEXT_TENANT,
	CONTEXT_POOL,
	CONTEXT_SERVING_CA_PIN,
	CONTEXT_JOIN_SIGNING_PIN,
	CONTEXT_JOIN_ENCRYPTION_PIN,
	CONTEXT_FIELD_COUNT,
};

struct context_value {
	const char *text;   /* NULL: not set */
	const char *origin; /* such as "--api", "BETTER_COMPUTE_API", a file's path */
};

struct context {
	struct context_value values[CONTEXT_FIELD_COUNT];
	const char *key;            /* secret; NULL when there is none */
	const char *config_ignored; /* config.toml, where another place names the control plane */
	const char *variables_ignored; /* those that are set, where --state names a folder */
};

/* Did the environment say it, not a file? */
bool context_is_from_environment(const struct context *context, enum context_field field);

/* The field's name in config.toml, such as "key_file". */
const char *context_field_name(enum context_field field);

/* An exchange that failed before there was an answer: whose certificate isn't trusted, or who sends
 * elsewhere, isn't the control plane, and has refused nobody anything. */
void context_not_reached(struct error *error);

/* No state is kept in this folder: where it is, or how one is started there. Returns false. */
bool context_hint_state(const char *folder, struct error *error);

/* Strings live in the arena. INVALID_CONFIG with a hint when nothing says where the API is. */
MUST_CHECK bool context_load(const struct options *options, struct arena *arena,
			     struct context *ret_context, struct error *error);

/* The same without demanding an address or reading the key: for `config show`. */
MUST_CHECK bool context_inspect(const struct options *options, struct arena *arena,
				struct context *ret_context, struct error *error);
