#include "cli/commands.h"
#include "cli/help.h"
#include "cli/refusal.h"
#include "lib/test.h"

#define MAX_WORDS 32

static struct command_set all_commands(void)
{
	struct command_set set = {CLI_COMMANDS, 0};

	while (CLI_COMMANDS[set.table_count])
		set.table_count++;
	return set;
}

/* Splits one line at spaces, in place. */
static int split(char *line, char **words)
{
	int count = 0;

	for (char *at = strtok_r(line, " ", &line); at; at = strtok_r(NULL, " ", &line)) {
		assert_true(count < MAX_WORDS);
		words[count++] = at;
	}
	return count;
}

/* The example's words after "better-compute" must name this row and be read by its options. */
static void check_example_line(const struct command_set *set, const struct command *row, char *line)
{
	const struct option *tables[COMMAND_MAX_TABLES];
	CLEANUP(options) struct options options = {0};
	const struct command *found = NULL;
	struct error error = {0};
	char *words[MAX_WORDS];
	int count = split(line, words), used;

	if (count > 0 && str_equal(words[0], "source"))
		return; /* a shell's line around one of ours */
	if (count > 0 && words[count - 1][0] == '<')
		count--; /* the shell's */
	assert_true(count > 1);
	assert_string_equal(words[0], "better-compute");
	expect_ok(command_find(set, count - 1, words + 1, &found, &used, &error), &error);
	assert_ptr_equal(found, row);
	expect_ok(options_parse(tables, command_tables(row, tables), count - 1 - used,
				words + 1 + used, &options, &error),
		  &error);
	assert_true((int)options.operand_count >= row->min_operands);
	assert_true(row->max_operands == COMMAND_MANY ||
		    (int)options.operand_count <= row->max_operands);
}

static void test_every_row_is_whole(void **state)
{
	struct command_set set = all_commands();

	(void)state;
	for (size_t i = 0; i < set.table_count; i++) {
		for (const struct command *row = set.tables[i]; row->noun; row++) {
			assert_non_null(row->summary);
			assert_non_null(row->run);
			assert_non_null(row->example);
			assert_true(row->summary[strlen(row->summary) - 1] != '.');
			assert_true((row->min_operands > 0 || row->max_operands != 0) ==
				    (row->operands != NULL));
			assert_true(row->flags & (COMMAND_API | COMMAND_CONTEXT) ||
				    !(row->flags & (COMMAND_CREATES | COMMAND_CHANGES)));
			char *example = mem_strdup(row->example);
			for (char *rest = example, *line; (line = strtok_r(rest, "\n", &rest));)
				check_example_line(&set, row, line);
			free(example);
		}
	}
}

static void test_every_change_can_be_tried_dry(void **state)
{
	static const char *const changing[] = {"create", "update",  "archive", "delete", "revoke",
					       "rotate", "retire",  "label",   "drain",  "undrain",
					       "spot",   "cancel",  "release", "extend", "shorten",
					       "move",   "manifest"};
	struct command_set set = all_commands();

	(void)state;
	for (size_t i = 0; i < set.table_count; i++) {
		for (const struct command *row = set.tables[i]; row->noun; row++) {
			bool changes =
				str_equal(row->noun, "reserve") || str_equal(row->noun, "release");
			for (size_t k = 0; row->verb && k < ARRAY_SIZE(changing); k++)
				changes |= str_equal(row->verb, changing[k]);
			assert_int_equal((row->flags & COMMAND_CHANGES) != 0, changes);
		}
	}
}

/* What "did you mean" points to is there. */
static void check_meant(const struct command_set *set, const char *said)
{
	const char *meant = strstr(said, "did you mean '");
	const struct command *row;
	struct error error = {0};
	char *words[MAX_WORDS];
	int used;

	if (!meant)
		return;
	CLEANUP(free) char *line = mem_strdup(meant + strlen("did you mean '"));
	*strchr(line, '\'') = '\0';
	int count = split(line, words);
	expect_ok(command_find(set, count, words, &row, &used, &error), &error);
	assert_int_equal(used, row->verb ? 2 : 1); /* what follows is an operand or option of it */
}

static void test_finding(void **state)
{
	static const struct {
		const char *words[2], *what;
	} bad[] = {
		{{"resreve", NULL}, "unknown command 'resreve' (did you mean 'reserve'?)"},
		{{"pools", "crate"},
		 "unknown command 'pools crate' (did you mean 'pools create'?)"},
		{{"xyzzy", NULL}, "unknown command 'xyzzy'"},
		{{"pools", "frobnicate"}, "unknown command 'pools frobnicate'"},
		/* words of other programs */
		{{"status", NULL}, "unknown command 'status' (did you mean 'nodes list'?)"},
		{{"status", "x"}, "(did you mean 'nodes list'?)"},
		{{"get", NULL}, "unknown command 'get'"},
		{{"get", "pods"}, "unknown command 'get'"},
		{{"get", "nodes"}, "unknown command 'get nodes' (did you mean 'nodes list'?)"},
		{{"get", "node"}, "(did you mean 'nodes list'?)"},
		{{"describe", "node"}, "(did you mean 'nodes show'?)"},
		{{"delete", "pool"}, "(did you mean 'pools archive'?)"},
		{{"create", "reservation"}, "(did you mean 'reserve'?)"},
		{{"reservations", "create"},
		 "unknown command 'reservations create' (did you mean 'reserve'?)"},
		{{"reservation", "create"}, "(did you mean 'reserve'?)"},
		{{"reservations", "delete"}, "(did you mean 'reservations release'?)"},
		{{"join-tokens", "delete"}, "(did you mean 'join-tokens revoke'?)"},
		{{"keys", "rm"}, "(did you mean 'keys revoke'?)"},
		{{"secrets", "remove"}, "(did you mean 'secrets delete'?)"},
		{{"sites", "delete"}, "(did you mean 'sites archive'?)"},
		{{"nodes", "delete"}, "(did you mean 'nodes retire'?)"},
		{{"nodes", "create"}, "(did you mean 'join-tokens create'?)"},
		{{"pools", "get"}, "(did you mean 'pools show'?)"},
		{{"k8s", NULL}, "(did you mean 'kubernetes manifest'?)"},
		{{"k8s", "manifest"}, "(did you mean 'kubernetes manifest'?)"},
		/* the verb alone, never what only looks like it */
		{{"retire", "vm"}, "unknown command 'retire' (did you mean 'nodes retire'?)"},
		{{"extend", NULL}, "(did you mean 'reservations extend'?)"},
		{{"shorten", "rsv_1"}, "(did you mean 'reservations shorten'?)"},
		{{"move", NULL}, "(did you mean 'reservations move'?)"},
		{{"cancel", NULL}, "(did you mean 'reservations cancel'?)"},
		{{"pod-requests", NULL}, "(did you mean 'reservations pod-requests'?)"},
		{{"drain", "vm"}, "(did you mean 'nodes drain'?)"},
		{{"rotate", NULL}, "(did you mean 'keys rotate'"},
		{{"archive", NULL},
		 "(did you mean 'pools archive', 'sites archive' or 'tenants archive'?)"},
		{{"preview", NULL}, "(did you mean 'capacity --preview'?)"},
		/* a thing where the verb is left out */
		{{"nodes", "vm"}, "unknown command 'nodes vm' (did you mean 'nodes show vm'?)"},
		{{"reservations", "rsv_01kb7"}, "(did you mean 'reservations show rsv_01kb7'?)"},
	};
	struct command_set set = all_commands();
	const struct command *row;
	struct error error = {0};
	int used;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		expect_error(command_find(&set, bad[i].words[1] ? 2 : 1, (char **)bad[i].words,
					  &row, &used, &error),
			     &error, ERROR_INVALID_INPUT, bad[i].what);
		check_meant(&set, error.what);
	}
	/* `kubernetes --help` is of a noun that means nothing alone. */
	assert_true(command_is_noun(&set, "pools") && command_stands_alone(&set, "pools"));
	assert_true(command_is_noun(&set, "kubernetes"));
	assert_false(command_stands_alone(&set, "kubernetes"));
	assert_false(command_is_noun(&set, "kubernetis"));
	expect_ok(command_find(&set, 1, (char *[]){"pools"}, &row, &used, &error), &error);
	assert_string_equal(row->verb, "list");
	assert_int_equal(used, 1);
	expect_ok(command_find(&set, 2, (char *[]){"pools", "-o"}, &row, &used, &error), &error);
	assert_string_equal(row->verb, "list");
	assert_int_equal(used, 1);
	expect_ok(
		command_find(&set, 3, (char *[]){"release", "rsv_1", "rsv_2"}, &row, &used, &error),
		&error);
	assert_int_equal(used, 1);
}

static void test_options_before_the_command(void **state)
{
	static const struct {
		char *words[4];
		int count, leading;
	} cases[] = {
		{{"pools"}, 1, 0},
		{{"--state", "dir", "nodes"}, 3, 2},
		{{"-o", "json", "nodes", "-v"}, 4, 2},
		{{"--state=dir", "-v", "nodes"}, 3, 2},
		{{"-v"}, 1, 1},
		{{"--"}, 1, 1},
		{{"--state"}, 1, 1},
		{{"-o", "json"}, 2, 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(command_leading_options(cases[i].count, cases[i].words),
				 cases[i].leading);
}

/* The API speaks of its fields; who types knows options. */
static void test_a_refused_field_is_named_as_its_option(void **state)
{
	static const struct {
		const char *line, *field, *said;
	} cases[] = {
		{"reserve --start 8h", "startAt", "--start: is wrong"},
		{"reservations shorten r --by 8h", "endAt", "--by: is wrong"},
		{"reservations extend r --until 8h", "endAt", "--until: is wrong"},
		{"reservations extend r --until 8h", "startAt", "startAt: is wrong"},
		{"quotas create --gpu-hours 3", "gpuHoursPerMonth", "--gpu-hours: is wrong"},
		{"quotas create --gpu-hours 3", "maxDevices", "maxDevices: is wrong"},
		{"tenants create x", "name", "name: is wrong"},
	};
	struct command_set set = all_commands();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct option *tables[COMMAND_MAX_TABLES];
		CLEANUP(free) char *line = mem_strdup(cases[i].line);
		CLEANUP(options) struct options options = {0};
		struct cli cli = {.set = &set, .options = &options};
		struct error error = {0};
		char *words[MAX_WORDS];
		int count = split(line, words), used;

		expect_ok(command_find(&set, count, words, &cli.command, &used, &error), &error);
		expect_ok(options_parse(tables, command_tables(cli.command, tables), count - used,
					words + used, &options, &error),
			  &error);
		error_field(&error, cases[i].field, "is wrong");
		refusal_name_option(&cli, &error);
		assert_string_equal(error.what, cases[i].said);
	}
}

/* Usage errors that need no control plane. */
static void test_slips_are_named(void **state)
{
	static const struct {
		const char *line, *what;
	} cases[] = {
		{"capacity --gpus 2", "--gpus needs --preview"},
		{"capacity --preview --mig 1g.10gb --for 8h --kubernetes",
		 "--mig: '1g.10gb' is not PROFILE=N"},
		{"reserve --mig 1g.10gb= --for 8h --kubernetes", "--mig: '1g.10gb=' is not"},
		{"reserve --gpus 2 --for 8h --kubernetes --same rack", "--same needs --nodes"},
		{"reserve --gpus 2 --for 8h --kubernetes --timeout 5s", "--timeout needs --wait"},
		{"release rsv_1 --timeout 5s", "--timeout needs --wait"},
		{"nodes drain n1 --timeout 5s", "--timeout needs --wait"},
		{"reservations extend rsv_1", "by how much, or until when?"},
		{"reservations extend rsv_1 --by 1h --until 2h", "--by and --until exclude"},
		{"nodes label n1 rack", "'rack' is no label"},
		{"nodes label n1 rack=a rack-", "label 'rack' is given twice"},
		{"nodes label n1 =a", "'=a' is no label"},
		{"quotas create --tenant x", "which limit?"},
		{"secrets create x", "--from is needed"},
		{"keys create x", "--role is needed"},
		{"pools create x", "--site and --gpu-model are needed"},
		{"pools create x --site y", "--gpu-model is needed"},
		{"pools create x --gpu-model H100", "--site is needed"},
		{"usage --from yesterday", "--from: 'yesterday' is not a time"},
		{"meter --from 1d --to 2d", "--to: it is not later than --from"},
		{"help reserve extra", "there is no command 'reserve extra'"},
	};
	struct command_set set = all_commands();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct option *tables[COMMAND_MAX_TABLES];
		CLEANUP(free) char *line = mem_strdup(cases[i].line);
		CLEANUP(options) struct options options = {0};
		struct cli cli = {.set = &set, .options = &options};
		struct error error = {0};
		char *words[MAX_WORDS];
		int count = split(line, words), used;

		expect_ok(command_find(&set, count, words, &cli.command, &used, &error), &error);
		expect_ok(options_parse(tables, command_tables(cli.command, tables), count - used,
					words + used, &options, &error),
			  &error);
		command_fn *said = cli.command->check ? cli.command->check : cli.command->run;
		expect_error(said(&cli, &error), &error, ERROR_INVALID_INPUT, cases[i].what);
		assert_true(error.hint[0]);
		arena_deinit(&cli.arena);
	}
}

static void test_help_names_everything(void **state)
{
	struct command_set set = all_commands();
	CLEANUP(buf) struct buf daily = {0}, all = {0}, man = {0}, markdown = {0};

	(void)state;
	help_daily(&daily, &set);
	help_all(&all, &set);
	help_man(&man, &set);
	help_markdown(&markdown, &set);
	for (size_t i = 0; i < set.table_count; i++) {
		for (const struct command *row = set.tables[i]; row->noun; row++) {
			CLEANUP(buf) struct buf name = {0};
			command_name(&name, row);
			assert_non_null(strstr(buf_text(&all), buf_text(&name)));
			assert_non_null(strstr(buf_text(&markdown), buf_text(&name)));
		}
	}
	size_t lines = 0;
	for (const char *at = buf_text(&daily); (at = strstr(at, "\n  ")); at++)
		lines++;
	assert_int_equal(lines, 9); /* and `up`, which the program adds, makes ten */
	/* What a command does stands in one column. */
	assert_non_null(strstr(buf_text(&all), "\n  release ID...               give"));
	assert_non_null(
		strstr(buf_text(&all), "NAME-...\n                              set labels"));
	assert_non_null(strstr(buf_text(&daily), "reserve"));
	assert_null(strstr(buf_text(&daily), "join-tokens"));
	assert_non_null(strstr(buf_text(&man), "\\fB\\-\\-gpus\\fR \\fIN\\fR"));
	for (const char *line = buf_text(&man); line; line = strchr(line, '\n')) {
		line += *line == '\n';
		assert_true(*line != '\'');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row_is_whole),
		cmocka_unit_test(test_every_change_can_be_tried_dry),
		cmocka_unit_test(test_finding),
		cmocka_unit_test(test_options_before_the_command),
		cmocka_unit_test(test_a_refused_field_is_named_as_its_option),
		cmocka_unit_test(test_slips_are_named),
		cmocka_unit_test(test_help_names_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
