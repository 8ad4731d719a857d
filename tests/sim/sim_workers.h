/* sim_workers: what the world asks of the simulated workers. */
#pragma once

/* The store is about to be closed: no worker runs, and the connections kept for the next ones go. */
void sim_workers_forget_store(void);
