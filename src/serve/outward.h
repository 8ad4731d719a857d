/*
 * outward: what an error may say to those who ask. One that the database is to blame for speaks of its
 * hosts, users and statements: that is for the log.
 *
 * Tests     tests/unit/serve/outward_test.c
 */
#pragma once

#include "base/error.h"

struct control;

/* After a call that failed; false: there was nothing to hide. The code stays. */
bool outward(const struct control *control, struct error *error);
/* The same; what is hidden is logged, with who asked as the field `kind`. */
void outward_logged(const struct control *control, const char *kind, const char *who,
		    struct error *error);
