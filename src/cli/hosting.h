/*
 * hosting: the options of `kubernetes manifest`, as flags, environment and configuration give them,
 * and what the control plane adds.
 */
#pragma once

#include "cli/cli.h"
#include "cli/verb.h"
#include "manifest/manifest.h"

/* The flags that are options of the manifests: their names there, for errors too. */
extern const struct verb_field HOSTING_FIELDS[];

/* Adds the flags that nothing says, neither they nor the environment or a configuration: the image, the pins, and
 * the public address where the context's is none. Without --options. */
void hosting_missing(struct cli *cli, struct buf *names, size_t *count);
/* "--a, --b": adds one, and counts it. */
void hosting_name(struct buf *names, size_t *count, const char *option);

/* What is wrong with a pin is said of the variable or the configuration that has it, where it is no flag's. */
void hosting_name_pin(struct cli *cli, struct error *error);

/* The object of options that --options FILE holds, or that the flags mean. */
MUST_CHECK bool hosting_options(struct cli *cli, json_t **ret_options, struct error *error);

/* Fills in what only the control plane knows: the gateway, the join key (which must be pinned), and
 * the pool's site. Asks it. */
MUST_CHECK bool hosting_ask(struct cli *cli, const struct settings *settings, const json_t *pool,
			    json_t *options, struct error *error);

/* Of options that are whole: does each pin name a key that the control plane has?
 * A token is no good to nodes that refuse it. Asks it. */
MUST_CHECK bool hosting_check_pins(struct cli *cli, const struct settings *settings,
				   struct error *error);

/* The public address of the API, https; without asking anybody. */
MUST_CHECK bool hosting_control_plane(struct cli *cli, const char **ret_url, struct error *error);
