#include "sys/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Opened the wrong way round: its use fails as that of a closed one does. */
void answer_begin(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags) != fd)
			abort();
	}
}

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
