#include "unit/cli/verbs.h"

#include "cli/commands.h"

#include <fcntl.h>

#define MAX_WORDS 32

static struct command_set all_commands(void)
{
	struct command_set set = {CLI_COMMANDS, 0};

	while (CLI_COMMANDS[set.table_count])
		set.table_count++;
	return set;
}

static int redirect(int fd, const char *path)
{
	int saved = dup(fd), file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(saved >= 0 && file >= 0 && dup2(file, fd) == fd);
	close(file);
	return saved;
}

/* Puts the descriptor back, and gives what was written meanwhile. */
static void collect(int fd, int saved, char *out)
{
	ssize_t got;

	lseek(fd, 0, SEEK_SET);
	got = read(fd, out, TEXT_SIZE - 1);
	out[got > 0 ? got : 0] = '\0';
	dup2(saved, fd);
	close(saved);
}

void run_line(void **state, const char *line, const char *input, const struct fake_answer *answers,
	      size_t count, struct outcome *outcome)
{
	struct command_set set = all_commands();
	struct fake_server *server = fake_server_start(answers, count);
	CLEANUP(free) char *copy = mem_strdup(line);
	char *words[MAX_WORDS + 1] = {"better-compute"}, *rest = copy;
	int argc = 1;

	for (char *word; (word = strtok_r(rest, " ", &rest));)
		words[argc++] = word;
	setenv("BETTER_COMPUTE_API", fake_server_url(server), 1);
	fflush(NULL);
	int in = redirect(STDIN_FILENO, folder_path(state, "in"));
	(void)!write(STDIN_FILENO, input, strlen(input));
	lseek(STDIN_FILENO, 0, SEEK_SET);
	int out = redirect(STDOUT_FILENO, folder_path(state, "out"));
	int err = redirect(STDERR_FILENO, folder_path(state, "err"));
	outcome->status = command_main(&set, argc, words);
	fflush(NULL);
	collect(STDERR_FILENO, err, outcome->err);
	collect(STDOUT_FILENO, out, outcome->out);
	char ignored[TEXT_SIZE];
	collect(STDIN_FILENO, in, ignored);
	clearerr(stdin);
	str_copy(outcome->seen, sizeof outcome->seen, fake_server_finish(server));
	fake_server_destroy(server);
}

void check_has(const char *line, const char *what, const char *text, const char *wanted)
{
	if (wanted && !strstr(text, wanted))
		fail_msg("'%s': %s lacks \"%s\":\n%s", line, what, wanted, text);
}

void check_rows(void **state, const struct row *rows, size_t count)
{
	static struct outcome outcome;

	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		size_t answers = 0;

		while (answers < 4 && row->answers[answers].body)
			answers++;
		run_line(state, row->line, "s3cret\n", row->answers, answers, &outcome);
		for (size_t k = 0; k < 4; k++)
			check_has(row->line, "what was asked", outcome.seen, row->asked[k]);
		check_has(row->line, "stdout", outcome.out, row->out);
		check_has(row->line, "stderr", outcome.err, row->err);
		if (outcome.status != row->status)
			fail_msg("'%s' ended with %d, not %d: %s", row->line, outcome.status,
				 row->status, outcome.err);
	}
}

int verbs_set_up(void **state)
{
	static const char *const names[] = {"STATE", "KEY_FILE", "CA_FILE", "TENANT", "POOL"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(buf) struct buf name = {0};
		buf_printf(&name, "BETTER_COMPUTE_%s", names[i]);
		unsetenv(buf_text(&name));
	}
	return folder_make(state) || setenv("XDG_CONFIG_HOME", *state, 1);
}
