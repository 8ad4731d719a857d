/* folder_files: one file of a PKI folder, read or written. For this room only. */
#pragma once

#include "pki/folder.h"

#define PKI_PATH_SIZE    4096
#define PKI_DRAFT        "new" /* prefix of the id that a folder has while it is made or goes */
#define PKI_FOLDER_MODE  0700
#define PKI_PRIVATE_MODE 0600
#define PKI_PUBLIC_MODE  0644

MUST_CHECK bool pki_file_path(char out[PKI_PATH_SIZE], const char *folder, const char *name,
			      struct error *error);
/* FORBIDDEN when others may read a private one. */
MUST_CHECK bool pki_file_read(const char *folder, const char *name, bool is_private,
			      struct buf *ret_content, struct error *error);
MUST_CHECK bool pki_file_write(const char *folder, const char *name, const struct buf *content,
			       mode_t mode, struct error *error);

/* New keys of each kind, with the names that docs/internals/layout.md lists. `suffix` goes to the
 * authorities' common names. */
MUST_CHECK bool pki_files_make(const char *folder, const char *suffix, struct wall now,
			       struct error *error);
/* Removes every file that a PKI folder may hold, and the folder. What can't be is left. */
void pki_files_discard(const char *folder);
/* The same with the next keys in it. */
void pki_folder_discard(const char *folder);
