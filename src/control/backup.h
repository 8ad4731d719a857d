/*
 * backup: the whole database as one text that either database reads (docs/formats/backup.md).
 *
 * Owns      the format: a line a row, a version, counts, and a checksum over all of it. What the
 *           rows are is store/copy.h's.
 * Secrets   it holds hashes of keys and what is stored encrypted: as secret as the database.
 * Threads   one; blocks.
 * Tests     tests/unit/control/backup_test.c on both databases; fuzz/backup_fuzz.c.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"

struct store;

#define BACKUP_VERSION  1
#define BACKUP_MAX_SIZE ((size_t)8 << 30)
#define BACKUP_MAX_LINE ((size_t)32 << 20)

struct backup_info {
	int schema_version;
	int64_t tables, rows;
	char lineage[ID_SIZE]; /* of the database that it was taken of */
	struct wall made;
};

/* One snapshot of `store`, whoever writes to it meanwhile. `ret_text` must be empty. */
MUST_CHECK bool backup_write(struct store *store, struct buf *ret_text,
			     struct backup_info *ret_info, struct error *error);

/* Is it whole? INVALID_INPUT naming `source` and the line otherwise; INVALID_STATE when a newer
 * program wrote it. Says nothing about whether the rows fit together: the database does, later. */
MUST_CHECK bool backup_check(const struct buf *text, const char *source,
			     struct backup_info *ret_info, struct error *error);

/* Checks it, then store_copy_in(). */
MUST_CHECK bool backup_restore(const char *url, const struct buf *text, const char *source,
			       bool force, struct backup_info *ret_info, struct error *error);
