/*
 * sim_fs: a file system in memory that forgets what was not synced when the power is cut.
 *
 * For       sys/durable*.c, which is compiled against sim_posix.h: its calls come here.
 * Keeps     per file what was written and what was synced; per folder the changes of its entries
 *           since its last sync, in order.
 * Power cut per folder a random first part of those changes stays; a file with unsynced writes has
 *           all of them, none, or a torn first part.
 */
#pragma once

#include "sim/sim.h"

void sim_fs_begin(void);
void sim_fs_end(void);
void sim_fs_power_cut(void);
void sim_fs_process_died(struct sim_process *process); /* its descriptors and locks go */

/* Sockets are files: their inode says which listener they are. 0: no socket there. */
MUST_CHECK bool sim_fs_socket_make(const char *path, uint64_t *ret_inode); /* false: exists */
void sim_fs_socket_remove(const char *path, uint64_t inode); /* if it is still that one */
uint64_t sim_fs_socket(const char *path);

/* For the world: looks around and writes without being a process. */
bool sim_fs_exists(const char *path);
const struct buf *sim_fs_content(const char *path);  /* NULL: no such file */
void sim_fs_put(const char *path, const char *text); /* with its folders */
void sim_fs_sync(void);                              /* everything is on disk */

/* Called with a folder and an entry's name at each change; sim_watch.c's. */
void sim_watch_notify(const char *folder, const char *name);

/* The same for the world. */
void sim_world_changed(const char *folder);
