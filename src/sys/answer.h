/*
 * answer: what a program says on stdout, and whether it got there.
 *
 * stdout may be a full disk or a pipe whose reader left; stdio keeps what was printed and hears of
 * it late, so a program asks once, before it ends.
 */
#pragma once

#include "base/error.h"

/* Writes what is left. False when any of it, now or before, couldn't be written. */
MUST_CHECK bool answer_flush(struct error *error);
