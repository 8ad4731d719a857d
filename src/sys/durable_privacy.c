#include "sys/durable_privacy.h"

#include "sys/fd.h"

#include <unistd.h>

bool privacy_check_owner(const char *path, const struct stat *now, struct error *error)
{
	return now->st_uid == geteuid() ||
	       error_set(error, ERROR_FORBIDDEN, "'%s' belongs to another user (uid %u)", path,
			 (unsigned)now->st_uid);
}

static bool check_kind(const char *doing, const char *path, const struct stat *now,
		       struct error *error)
{
	return S_ISREG(now->st_mode) ||
	       error_set(error, ERROR_INVALID_STATE, "%s '%s': not a file but %s", doing, path,
			 fd_kind(now->st_mode));
}

static bool check_hidden(const char *path, unsigned mode, struct error *error)
{
	if ((mode & S_IROTH) == 0)
		return true;
	error_set(error, ERROR_FORBIDDEN, "everybody may read '%s' (mode %04o)", path, mode);
	return error_hint(error, "chmod 600 it, or 640 for a group, and replace what it holds if "
				 "others could have read it.");
}

static bool check_private(const char *path, unsigned mode, struct error *error)
{
	if ((mode & 077) == 0)
		return true;
	error_set(error, ERROR_FORBIDDEN, "others may read '%s' (mode %04o)", path, mode);
	return error_hint(error,
			  "Make it private (chmod 600 '%s'), and replace what it holds if others "
			  "could have read it.",
			  path);
}

static bool check_alone(const char *doing, const char *path, const struct stat *now,
			struct error *error)
{
	if (!check_kind(doing, path, now, error))
		return error_hint(error, "Remove it or move it away, or name another file.");
	if (!privacy_check_owner(path, now, error))
		return error_hint(error,
				  "Remove it, make it yours (chown %u), or name another file.",
				  (unsigned)geteuid());
	if (!check_private(path, now->st_mode & 07777, error))
		return false;
	if (now->st_nlink <= 1)
		return true;
	error_set(error, ERROR_INVALID_STATE, "%s '%s': the file has %lu names (hard links)", doing,
		  path, (unsigned long)now->st_nlink);
	return error_hint(error, "Who finds it by another one would find that there: remove this "
				 "name, or give another file.");
}

bool privacy_check(const char *doing, const char *path, const struct stat *now,
		   enum privacy privacy, struct error *error)
{
	unsigned mode = now->st_mode & 07777;

	switch (privacy) {
	case PRIVACY_NONE:
		return check_kind(doing, path, now, error);
	case PRIVACY_HIDDEN:
		return check_kind(doing, path, now, error) && check_hidden(path, mode, error);
	case PRIVACY_PRIVATE:
		return check_kind(doing, path, now, error) && check_private(path, mode, error);
	case PRIVACY_OWN:
		return check_kind(doing, path, now, error) &&
		       privacy_check_owner(path, now, error) && check_private(path, mode, error);
	case PRIVACY_ALONE:
		return check_alone(doing, path, now, error);
	}
	return false;
}
