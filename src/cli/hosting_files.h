/*
 * hosting_files: the new files of one `kubernetes manifest`. All are there before a token exists, and
 * none stays when there is no token (MAN-63).
 */
#pragma once

#include "manifest/manifest.h"

/* Paths are NULL where none was asked for, and without a slash at the end. All is borrowed. */
struct hosting_files {
	const char *out;
	const struct buf *manifests;
	const char *helm; /* a folder */
	const struct chart *chart;
	const char *options_out;
	const json_t *options;
	const char *secret_out, *placeholder; /* what stands there until the Secret does */
	bool made_out, made_helm, made_options, made_secret;
	size_t made_chart_files; /* half a chart, too */
};

/* Are they all new, and in places where one can write? */
MUST_CHECK bool hosting_files_check(const struct hosting_files *files, struct error *error);

/* On failure some may be there. */
MUST_CHECK bool hosting_files_make(struct hosting_files *files, struct error *error);

/* Those that this run made, and nothing of anybody else. What can't be removed stays: no token in it is good for anything. */
void hosting_files_remove(const struct hosting_files *files);

/* In the placeholder's place: in its own file, so that a run that is killed leaves the token there or
 * nowhere. */
MUST_CHECK bool hosting_files_secret(const struct hosting_files *files, const json_t *secret,
				     struct error *error);
