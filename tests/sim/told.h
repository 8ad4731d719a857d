/*
 * told: what must be told to people while effects fail.
 *
 * Where     bcd's: by a condition, as the control plane has it; while bcd isn't connected, by bcd's status.
 *           The control plane's: by its log.
 * What      the file, folder, socket or server, and why it fails. Where all fail for one reason, a full
 *           disk or no descriptors, that reason.
 * Always    when an effect fails SIM_STREAK times in a row and goes on failing, whatever comes of it. What
 *           is excepted from that, and why, stands in one list.
 */
#pragma once

#include "sim/sim_faults.h"

/* What was wanted isn't there, and something fails: who looks must see what, or the world is broken. Where it is
 * told is named: a condition's type, "log", "status: ...". */
void told_of_undone(const struct sim_process *process, const char *undone, char *ret_where,
		    size_t size);

void told_begin(void);
/* Each second: whatever bcd fails at again and again must be named, or the world is broken. `idle`: nothing is bound and
 * nothing is being released. */
void told_of_streaks(bool idle);

/* A write of bcd's has begun to hang: from soon on its status must say so (RecordsUnwritable), for as long as it does. */
void told_of_hang(void);
