/*
 * nodeconfig: bcd's config.toml for the nodes of a cluster that exists already.
 *
 * Owns      which keys of bcd's configuration (docs/internals/layout.md) a manifest writes, and how
 *           TOML strings are escaped.
 * Pure.
 * Tests     tests/unit/manifest/core/nodeconfig_test.c; tests/unit/manifest/contract_test.c has bcd
 *           read it.
 */
#pragma once

#include "manifest/core/settings.h"

#define NODECONFIG_FOLDER "/etc/bcd"
#define NODECONFIG_FILE   "config.toml"
#define NODECONFIG_JWK    "join.jwk" /* beside it, when the settings have the key */

/* Of complete settings. */
void nodeconfig_write(const struct settings *settings, struct buf *out);

/* `text` (UTF-8) as a basic string of TOML 1.0, quotes and all. */
void nodeconfig_quote(struct buf *out, const char *text);
