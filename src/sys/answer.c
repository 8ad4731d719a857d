#include "sys/answer.h"

#include <errno.h>
#include <stdio.h>

bool answer_flush(struct error *error)
{
	if (fflush(stdout) != 0)
		error_os(error, "write to stdout");
	else if (ferror(stdout)) /* earlier, and why isn't known any more */
		error_set(error, ERROR_INTERNAL, "write to stdout: some of it was lost");
	else
		return true;
	return error_hint(error, "If something was to be changed, that is done: look before you "
				 "try again.");
}
