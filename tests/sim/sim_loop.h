/* sim_loop: what the engine asks of a simulated loop. */
#pragma once

#include "sys/loop.h"

void sim_loop_run_deferred(struct loop *loop);
