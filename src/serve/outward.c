#include "serve/outward.h"

#include "control/control.h"
#include "store/store.h"
#include "sys/log.h"

bool outward(const struct control *control, struct error *error)
{
	if (error_http_status(error->code) < 500 || !control || !control->connection ||
	    !store_is_to_blame(control->connection))
		return false;
	if (store_is_locked(control->connection)) {
		error_set(error, ERROR_UNAVAILABLE,
			  "the database is kept locked by somebody else than the control plane");
		error_hint(error, "Nothing was changed. The control plane's log says who it is.");
		return true;
	}
	if (error->code == ERROR_UNAVAILABLE)
		error_set(error, ERROR_UNAVAILABLE, "the database can't be asked now");
	else
		error_set(error, ERROR_INTERNAL, "the database failed");
	error_hint(error, "The control plane's log says why. Look whether a change happened before "
			  "you try it again.");
	return true;
}

void outward_logged(const struct control *control, const char *kind, const char *who,
		    struct error *error)
{
	struct error told = *error;

	if (outward(control, &told))
		log_error("database.failed", error->what, kind, who, NULL);
	*error = told;
}
