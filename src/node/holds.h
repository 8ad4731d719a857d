/*
 * holds: the CDI specs in /etc/cdi, read back as what is bound. Blocks on disk: a few small files.
 */
#pragma once

#include "base/error.h"
#include "node/core/holds.h"

/* All bcd.dev-*.json of the folder; one that can't be read or isn't a hold fails the whole read. An
 * absent folder holds nothing. `*ret_holds` must be empty. */
MUST_CHECK bool holds_read(const char *folder, struct holds *ret_holds, struct error *error);

/*
 * The same again and again: each call lists the folder and looks at every file; one whose inode,
 * size and times are those of its last good read isn't parsed anew (holds are replaced, never
 * written in place). What can't be read fails the whole read, as above, and is forgotten.
 */
struct holds_cache;
struct holds_cache *holds_cache_create(const char *folder);
void holds_cache_destroy(struct holds_cache *cache); /* takes NULL */
/* Borrowed from the cache, until the next call. */
MUST_CHECK bool holds_cache_read(struct holds_cache *cache, const struct holds **ret_holds,
				 struct error *error);

/* Looks up type and number of the hold's device nodes on this host; what isn't there stays as it was. True
 * when any is another than before. */
bool holds_find_nodes(struct hold *hold);

/* "<folder>/bcd.dev-<allocation>.json"; the caller's to free. */
char *holds_path(const char *folder, const char *allocation);
