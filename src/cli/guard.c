#include "cli/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

static struct sigaction before[ARRAY_SIZE(SIGNALS)];
static sigset_t mask_before;
static const char *_Atomic said_first; /* the handler reads it: no lock may be in it */
static volatile sig_atomic_t came;     /* which, or 0 */

static_assert(ATOMIC_POINTER_LOCK_FREE == 2, "a handler may use it");

static void note(int number)
{
	const char *text = said_first;
	int kept = errno;
	ssize_t written = came ? 0 : write(STDERR_FILENO, text, strlen(text));

	(void)written; /* or nobody is there to be told */
	came = number;
	errno = kept;
}

/* Without SA_RESTART: a write to a pipe that nobody reads ends. */
void guard_begin(const char *text)
{
	said_first = text;
	came = 0;
	sigprocmask(SIG_SETMASK, NULL, &mask_before);
	for (size_t i = 0; i < ARRAY_SIZE(SIGNALS); i++) {
		struct sigaction action = {.sa_handler = SIGNALS[i] == SIGPIPE ? SIG_IGN : note};

		sigemptyset(&action.sa_mask);
		sigaction(SIGNALS[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(SIGNALS[i], &action, NULL);
	}
}

bool guard_check(struct error *error)
{
	return !came || error_set(error, ERROR_INVALID_STATE, "ended by SIG%s", sigabbrev_np(came));
}

/* What is blocked first can't come between the look and its answer. */
bool guard_commit(struct error *error)
{
	sigset_t ours;

	sigemptyset(&ours);
	for (size_t i = 0; i < ARRAY_SIZE(SIGNALS); i++)
		sigaddset(&ours, SIGNALS[i]);
	sigprocmask(SIG_BLOCK, &ours, NULL);
	if (guard_check(error))
		return true;
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
	return false;
}

void guard_end(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(SIGNALS); i++)
		sigaction(SIGNALS[i], &before[i], NULL);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
}
