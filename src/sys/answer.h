/*
 * answer: what a program says on stdout, and whether it got there.
 *
 * stdout may be a full disk or a pipe whose reader left; stdio keeps what was printed and hears of
 * it late, so a program asks once, before it ends.
 */
#pragma once

#include "base/error.h"

/*
 * Call first: each of descriptors 0 to 2 that is closed becomes one that can't be used. Otherwise
 * the next file or socket gets its number, and what is printed goes into it.
 */
void answer_begin(void);

/* Writes what is left. False when any of it, now or before, couldn't be written. */
MUST_CHECK bool answer_flush(struct error *error);
