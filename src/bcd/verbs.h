/*
 * verbs: what bcd does: one file a verb, one row a verb (main.c).
 *
 * A verb gets its options parsed and returns the program's exit status.
 */
#pragma once

#include "node/core/config.h"
#include "text/options.h"

#define EXIT_DONE   0
#define EXIT_FAILED 1
#define EXIT_USAGE  2

struct verb {
	const char *name;
	const char *summary;  /* one line, lower case, no full stop */
	const char *operands; /* "" for none */
	size_t min_operands, max_operands;
	const struct option *options; /* ends with a row whose name is NULL */
	const char *more;             /* further lines of help; "" for none */
	int (*run)(const struct options *options);
};

extern const struct verb JOIN_VERB, NODE_VERB, STATUS_VERB, SIM_VERB, COMPLETION_VERB;
extern const struct verb NVML_VERB; /* for bcd itself: no help names it */

/* Those of help, NULL-ended, and what stands beside a verb's own options; without a verb. (main.c) */
extern const struct verb *const VERBS[];
extern const struct option VERB_COMMON_OPTIONS[], VERB_TOP_OPTIONS[];
const struct verb *verb_find(const char *name); /* of VERBS; NULL: none */

/* The configuration: --config, else the state folder's (--state, BETTER_COMPUTE_STATE,
 * ./.better-compute if the caller owns it) when `with_state`, else /etc/bcd/config.toml. Without
 * one a verb ends with EXIT_USAGE. */
MUST_CHECK bool verb_config(const struct options *options, bool with_state,
			    struct config *ret_config, struct error *error);

/* How to start the bcd that verb_config() found with `with_state`. Returns false. */
bool verb_start_hint(const struct options *options, struct error *error);

/* "error: what", the hint below; returns `status`. */
int verb_fail(const struct error *error, int status);
