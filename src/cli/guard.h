/*
 * guard: a stretch of a command that a signal doesn't end but is heard of, because something that
 * was made must be taken back first.
 *
 * SIGINT, SIGTERM and SIGHUP are noted, and cut short a write that waits; what was ignored stays so.
 * SIGPIPE is ignored: a reader who went away is an error, not the end. SIGQUIT and SIGKILL still end
 * the process.
 * Threads   one guard a process, begun and ended by its main thread.
 */
#pragma once

#include "base/error.h"

/* `note`, a static line, is told on stderr when the first signal comes: its sender waits. */
void guard_begin(const char *note);
/* INVALID_STATE when a signal came. */
MUST_CHECK bool guard_check(struct error *error);
/* The last check, when there is nothing left to take back: after true, what comes waits for
 * guard_end(). After false it is noted as before, while what was made is taken back. */
MUST_CHECK bool guard_commit(struct error *error);
/* From here on signals end the process again, one that waits at once. What was noted before has been
 * dealt with: by guard_commit(), or by an error that is there already. */
void guard_end(void);
