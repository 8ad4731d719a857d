/*
 * manifest: from options to what is applied to a cluster. The one generator (MAN-2): the command's
 * flags, its --options FILE, and whoever else renders bcd for a cluster, come through here.
 *
 * Errors    INVALID_CONFIG naming the option.
 * No effects: nothing is read, fetched or written.
 */
#pragma once

#include "manifest/core/chart.h"
#include "manifest/core/objects.h"
#include "manifest/core/render.h"
#include "manifest/core/settings.h"

/* What the options say, as far as they say it; pins and key are judged. `*ret_settings` must be
 * empty. */
MUST_CHECK bool manifest_read(const json_t *options, struct settings *ret_settings,
			      struct error *error);

/* The objects of complete settings: a new array. */
MUST_CHECK bool manifest_objects(const struct settings *settings, json_t **ret_objects,
				 struct error *error);
