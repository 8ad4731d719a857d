/*
 * belief: the shell of gpu/core/belief.h: health.json, which carries it over a restart of bcd.
 *
 * Owns      sick stays sick. A file that can't be read is set aside and makes every GPU doubtful:
 *           health.unreadable stands in the data folder until an operator removes it, the driver is
 *           loaded again or the machine boots, and over restarts of bcd.
 * Written   behind what it records: nobody waits for the disk to hear that a GPU is sick. What a
 *           crash leaves out is in the kernel's log, read from the record's number on.
 * Threads   the loop's.
 */
#pragma once

#include "gpu/core/belief.h"
#include "sys/loop.h"

#define BELIEF_FILE   "health.json"
#define BELIEF_MARKER "health.unreadable"

struct belief_file;

/* Reads the record of this boot into `belief`, which must be empty and outlive the file. */
struct belief_file *belief_file_create(struct loop *loop, const char *folder,
				       struct belief *belief);
void belief_file_destroy(
	struct belief_file *file); /* what is left is written as the loop runs on */

/* Writes what changed, and sees whether an operator removed the marker. True when that ended a doubt.
 */
bool belief_file_look(struct belief_file *file);
/* The marker's path while it stands, else NULL. */
const char *belief_file_marker(const struct belief_file *file);
/* Why it could not be read or written; NULL: all is well. */
const struct error *belief_file_error(const struct belief_file *file);
