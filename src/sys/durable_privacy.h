/*
 * durable_privacy: whether a file may be trusted with, or for, what it holds: its kind, whose it is and who else may
 * read it. For durable's files; nobody else includes it.
 */
#pragma once

#include "base/error.h"

#include <sys/stat.h>

/* Each asks for what those before it do. */
enum privacy {
	PRIVACY_NONE,    /* anybody may read it */
	PRIVACY_HIDDEN,  /* its owner and a group */
	PRIVACY_PRIVATE, /* nobody but its owner */
	PRIVACY_OWN,     /* and that is us */
	PRIVACY_ALONE,   /* and it has no second name: what is put into it is nowhere else */
};

/* `doing` ("read") is what is tried with it. INVALID_STATE when it is no file, or has a second name, FORBIDDEN
 * otherwise; the hint says what to do, unless that is the caller's to say: of what only is read, whoever knows what it
 * is for. */
MUST_CHECK bool privacy_check(const char *doing, const char *path, const struct stat *now,
			      enum privacy privacy, struct error *error);
/* FORBIDDEN, without a hint, when it isn't ours. */
MUST_CHECK bool privacy_check_owner(const char *path, const struct stat *now, struct error *error);
