/*
 * teller: a unix socket that tells whoever connects one JSON object, and ends.
 *
 * Answered by the loop, from what is known at that moment: a loop that doesn't turn doesn't answer.
 * Bounds    so many connections at a time; further ones are closed.
 * Threads   the loop's.
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

#include <jansson.h>

/* A new reference, which the teller drops. */
typedef json_t *teller_fn(void *arg);

struct teller;
/* On `folder`/`name`, 0600; the folder is made. A socket there that nobody listens on is replaced; one
 * that lives is CONFLICT. */
MUST_CHECK bool teller_create(struct loop *loop, const char *folder, const char *name,
			      teller_fn *fn, void *arg, struct teller **ret_teller,
			      struct error *error);
void teller_destroy(struct teller *teller);
