/*
 * label: names and values of labels, as Kubernetes has them. Pure.
 *
 * A name is "NAME" or "DOMAIN/NAME"; names below some domains are not for everybody to give.
 */
#pragma once

#include "base/base.h"

#define LABEL_PART_MAX 63 /* characters of a name without its domain, and of a value */

/* `length` bytes of `name`. */
bool label_name_valid(const char *name, size_t length);
/* "" is one. */
bool label_value_valid(const char *value, size_t length);
/* A part of a name, and a value that isn't empty: letters, digits, '-', '_', '.', first and last a
 * letter or digit. */
bool label_part_valid(const char *text, size_t length);

/* The domain whose labels only the system gives, such as "bc.dev", or NULL. */
const char *label_reserved_domain(const char *name);

/* Where a machine stands: "bc.dev/topology.rack", ".block" and ".nvlinkDomain" are for operators
 * to say, though the domain is ours (GANG-11). */
bool label_is_topology(const char *name);
