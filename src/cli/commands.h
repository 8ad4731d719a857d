/*
 * commands: the CLI's tables of commands, one a noun, each in the file of its name.
 */
#pragma once

#include "cli/cli.h"
#include "cli/command.h"

extern const struct command RESERVE_COMMANDS[];     /* reserve.c */
extern const struct command RESERVATION_COMMANDS[]; /* reservations.c, release too */
extern const struct command CAPACITY_COMMANDS[];    /* capacity.c */
extern const struct command NODE_COMMANDS[];        /* nodes.c */
extern const struct command POOL_COMMANDS[];        /* pools.c */
extern const struct command JOIN_TOKEN_COMMANDS[];  /* join_tokens.c */
extern const struct command KUBERNETES_COMMANDS[];  /* kubernetes.c */
extern const struct command SITE_COMMANDS[];        /* sites.c */
extern const struct command TENANT_COMMANDS[];      /* tenants.c */
extern const struct command KEY_COMMANDS[];         /* keys.c, whoami too */
extern const struct command QUOTA_COMMANDS[];       /* quotas.c */
extern const struct command SECRET_COMMANDS[];      /* secrets.c */
extern const struct command USAGE_COMMANDS[];       /* usage.c: usage, meter */
extern const struct command AUDIT_COMMANDS[];       /* audit.c */
extern const struct command EVENT_COMMANDS[];       /* events.c */
extern const struct command PKI_STATUS_COMMANDS[];  /* pki.c */
extern const struct command CONFIG_COMMANDS[];      /* config.c */
extern const struct command COMPLETION_COMMANDS[];  /* completion.c */
extern const struct command ABOUT_COMMANDS[];       /* about.c: version, openapi */
extern const struct command HELP_COMMANDS[];        /* help.c */
