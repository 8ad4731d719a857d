/*
 * settings: what is rendered for one deployment of bcd in a cluster, as the options of the manifests
 * say it.
 *
 * Owns      MAN-29..39, 43: every option, its default, its bounds. The command's flags become the
 *           same object of options as a file holds, so there is one reader of them.
 * Form      docs/formats/manifest-options.md
 * Errors    INVALID_CONFIG naming the option: "containerRuntime.files[0]".
 * Lifetimes strings live in the settings' arena; settings_deinit() frees.
 * Pure. Pins and the key are judged by manifest.h, which knows cryptography.
 * Tests     tests/unit/manifest/core/settings_test.c
 */
#pragma once

#include "manifest/core/paths.h"
#include "text/tree.h"

#define SETTINGS_MAX_FILE ((size_t)256 << 10)

struct settings {
	struct arena arena;
	/* NULL when not given; settings_check_complete() says which are needed */
	const char *image, *gateway_url, *gateway_server_name, *site_id;
	const char *serving_ca_pin, *join_signing_pin, *join_encryption_pin;
	const char *join_jwk;          /* JSON text, one line; this or the next one */
	const char *control_plane_url; /* without a slash at its end */
	const char *secret_name;       /* default: the name with "-join" */
	const char *secret_key;

	const char *namespace, *name;
	bool create_namespace;
	json_t *node_selector, *tolerations, *resources, *pull_secrets;
	const char *priority_class, *runtime_class; /* NULL: none */
	bool host_units, dra;
	struct path_set credentials, runtime, toolkit;
	const char *log_level;
};
void settings_deinit(struct settings *settings);

static inline void settings_cleanup(struct settings *settings)
{
	settings_deinit(settings);
}

/* Reads what is there; what is absent has its default, or is NULL. `*ret_settings` must be empty. */
MUST_CHECK bool settings_read(const json_t *options, struct settings *ret_settings,
			      struct error *error);

/* Is there all that manifests need? */
MUST_CHECK bool settings_check_complete(const struct settings *settings, struct error *error);

/* "host:port" of the gateway's URL, 443 when it names none; in the arena. */
const char *settings_gateway_address(const struct settings *settings, struct arena *arena);
/* The name that the gateway's certificate has; of complete settings. */
const char *settings_gateway_name(const struct settings *settings, struct arena *arena);
