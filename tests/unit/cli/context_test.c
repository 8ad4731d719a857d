#include "cli/command.h"
#include "cli/context.h"
#include "lib/test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each test has a folder of its own as working folder and home, and no variables of ours. */
struct place {
	char folder[64];
	char before[4096];
	struct arena arena;
};

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
}

static int setup(void **state)
{
	static const char *const VARIABLES[] = {"BETTER_COMPUTE_STATE",    "BETTER_COMPUTE_API",
						"BETTER_COMPUTE_KEY_FILE", "BETTER_COMPUTE_CA_FILE",
						"BETTER_COMPUTE_TENANT",   "BETTER_COMPUTE_POOL",
						"BCD_SERVING_CA_PIN",      "BCD_JOIN_SIGNING_PIN",
						"BCD_JOIN_ENCRYPTION_PIN", "XDG_CONFIG_HOME"};
	struct place *place = mem_alloc(sizeof *place);

	strcpy(place->folder, "/tmp/context-test-XXXXXX");
	assert_non_null(mkdtemp(place->folder));
	assert_non_null(getcwd(place->before, sizeof place->before));
	assert_int_equal(chdir(place->folder), 0);
	for (size_t i = 0; i < ARRAY_SIZE(VARIABLES); i++)
		unsetenv(VARIABLES[i]);
	setenv("HOME", place->folder, 1);
	*state = place;
	return 0;
}

static int teardown(void **state)
{
	struct place *place = *state;
	char command[128];

	assert_int_equal(chdir(place->before), 0);
	snprintf(command, sizeof command, "rm -r '%s'", place->folder);
	assert_int_equal(system(command), 0);
	arena_deinit(&place->arena);
	free(place);
	return 0;
}

#define CONTEXT_OK                                                                                 \
	"{\"version\":1,\"api\":\"http://127.0.0.1:7480\",\"key\":\"bck_state\","                  \
	"\"tenant\":\"ten_1\",\"pool\":\"pool_1\",\"bcdConfig\":\"x\"}"

static void make_state(const char *folder, const char *text, mode_t mode)
{
	char path[256];

	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(path, sizeof path, "%s/context.json", folder);
	write_file(path, text, mode);
}

#define LOAD(place, context, error, ...)                                                           \
	load(place, context, error, (int)ARRAY_SIZE(((char *[]){__VA_ARGS__})) - 1,                \
	     (char *[]){__VA_ARGS__})

static bool load(struct place *place, struct context *context, struct error *error, int argc,
		 char **argv)
{
	static const char *const states[] = {"pending", "active", NULL};
	static const struct option filter[] = {
		{"state-is", 0, OPTION_TEXT, "STATE", "only those", 0, 0, states},
		{0},
	};
	const struct option *tables[] = {COMMAND_API_OPTIONS, filter};
	CLEANUP(options) struct options options = {0};

	assert_true(options_parse(tables, 2, argc, argv, &options, error));
	*error = (struct error){0};
	return context_load(&options, &place->arena, context, error);
}

static void test_nothing_named(void **state)
{
	struct context context;
	struct error error;

	expect_error(LOAD(*state, &context, &error, NULL), &error, ERROR_INVALID_CONFIG,
		     "no control plane is named here");
	assert_non_null(strstr(error.hint, "better-compute up"));
}

static void test_a_state_for_a_folder(void **state)
{
	struct context context;
	struct error error;

	expect_error(LOAD(*state, &context, &error, "--state", "active", NULL), &error,
		     ERROR_NOT_FOUND, "active/context.json");
	assert_non_null(strstr(error.hint, "--state-is active"));
	expect_error(LOAD(*state, &context, &error, "--state", "nope", NULL), &error,
		     ERROR_NOT_FOUND, "nope/context.json");
	assert_non_null(strstr(error.hint, "better-compute up"));
}

static void test_state_folder_here(void **state)
{
	struct context context;
	struct error error;

	make_state(".better-compute", CONTEXT_OK, 0600);
	expect_ok(LOAD(*state, &context, &error, NULL), &error);
	assert_string_equal(context.values[CONTEXT_API].text, "http://127.0.0.1:7480");
	assert_string_equal(context.values[CONTEXT_STATE].origin, "this folder");
	assert_string_equal(context.values[CONTEXT_POOL].text, "pool_1");
	assert_string_equal(context.key, "bck_state");
}

/* Another key books for its own tenant, in that one's pools. */
static void test_a_key_of_somebody_else(void **state)
{
	struct context context;
	struct error error;

	make_state(".better-compute", CONTEXT_OK, 0600);
	write_file("key", "bck_file\n", 0600);
	expect_ok(LOAD(*state, &context, &error, "--key-file", "key", NULL), &error);
	assert_string_equal(context.values[CONTEXT_API].text, "http://127.0.0.1:7480");
	assert_string_equal(context.key, "bck_file");
	assert_null(context.values[CONTEXT_TENANT].text);
	assert_null(context.values[CONTEXT_POOL].text);
}

static void test_order(void **state)
{
	struct context context;
	struct error error;

	make_state(".better-compute", CONTEXT_OK, 0600);
	make_state("other", "{\"version\":1,\"api\":\"http://127.0.0.1:2\",\"key\":\"bck_other\"}",
		   0600);
	write_file("key", "bck_file\n", 0600);
	setenv("BETTER_COMPUTE_API", "http://127.0.0.1:3", 1);
	setenv("BETTER_COMPUTE_KEY_FILE", "key", 1);
	expect_ok(LOAD(*state, &context, &error, NULL), &error);
	assert_string_equal(context.values[CONTEXT_API].text, "http://127.0.0.1:3");
	assert_string_equal(context.key, "bck_file");

	/* Two that are named alike: nobody guesses which is meant. */
	setenv("BETTER_COMPUTE_STATE", "other", 1);
	expect_error(LOAD(*state, &context, &error, NULL), &error, ERROR_INVALID_INPUT,
		     "BETTER_COMPUTE_STATE and BETTER_COMPUTE_API exclude each other");

	/* The key that is named with an address is no other's. */
	expect_ok(LOAD(*state, &context, &error, "--state", ".better-compute", NULL), &error);
	assert_string_equal(context.key, "bck_state");
	assert_string_equal(context.variables_ignored,
			    "BETTER_COMPUTE_API, BETTER_COMPUTE_KEY_FILE");

	unsetenv("BETTER_COMPUTE_API");
	unsetenv("BETTER_COMPUTE_KEY_FILE");
	expect_ok(LOAD(*state, &context, &error, NULL), &error);
	assert_string_equal(context.values[CONTEXT_API].text, "http://127.0.0.1:2");
	assert_string_equal(context.key, "bck_other");
	assert_null(context.variables_ignored);

	/* An address by flag never gets the key of another place but the one named with it. */
	expect_ok(LOAD(*state, &context, &error, "--api", "http://127.0.0.1:4", NULL), &error);
	assert_string_equal(context.values[CONTEXT_API].text, "http://127.0.0.1:4");
	assert_null(context.values[CONTEXT_STATE].text);

	expect_error(LOAD(*state, &context, &error, "--api", "http://x", "--state", "y", NULL),
		     &error, ERROR_INVALID_INPUT, "exclude each other");
}

static void expect_variables_win(const struct context *context)
{
	assert_string_equal(context->values[CONTEXT_API].text, "http://127.0.0.1:7480");
	assert_string_equal(context->key, "bck_file");
	assert_string_equal(context->values[CONTEXT_KEY_FILE].origin, "BETTER_COMPUTE_KEY_FILE");
	assert_string_equal(context->values[CONTEXT_CA_FILE].text, "ca.pem");
	assert_null(context->values[CONTEXT_TENANT].text);
	assert_null(context->variables_ignored);
}

/* A variable that is set is what is meant, unless an option says another: whatever that folder's address is, it gets no
 * key of another place. */
static void test_variables_beside_a_folder(void **state)
{
	struct context context;
	struct error error;

	make_state(".better-compute", CONTEXT_OK, 0600);
	write_file("key", "bck_file\n", 0600);
	setenv("BETTER_COMPUTE_KEY_FILE", "key", 1);
	setenv("BETTER_COMPUTE_CA_FILE", "ca.pem", 1);
	expect_ok(LOAD(*state, &context, &error, NULL), &error);
	expect_variables_win(&context);
	setenv("BETTER_COMPUTE_STATE", ".better-compute", 1);
	expect_ok(LOAD(*state, &context, &error, NULL), &error);
	expect_variables_win(&context);
	expect_ok(LOAD(*state, &context, &error, "--state", ".better-compute", NULL), &error);
	assert_string_equal(context.key, "bck_state");
	assert_string_equal(context.values[CONTEXT_KEY_FILE].origin,
			    ".better-compute/context.json");
	assert_null(context.values[CONTEXT_CA_FILE].text);
	assert_string_equal(context.values[CONTEXT_TENANT].text, "ten_1");
	assert_string_equal(context.variables_ignored,
			    "BETTER_COMPUTE_KEY_FILE, BETTER_COMPUTE_CA_FILE");
	expect_ok(LOAD(*state, &context, &error, "--state", ".better-compute", "--key-file", "key",
		       NULL),
		  &error);
	assert_string_equal(context.key, "bck_file");
	assert_null(context.values[CONTEXT_CA_FILE].text);
}

static void test_config_file(void **state)
{
	struct context context;
	struct error error;

	assert_int_equal(mkdir(".config", 0700), 0);
	assert_int_equal(mkdir(".config/better-compute", 0700), 0);
	write_file("key", "bck_file", 0600);
	write_file(".config/better-compute/config.toml",
		   "api = \"https://compute.example.com\"\nkey_file = \"key\"\npool = \"h100\"\n",
		   0644);
	expect_ok(LOAD(*state, &context, &error, NULL), &error);
	assert_string_equal(context.values[CONTEXT_API].text, "https://compute.example.com");
	assert_string_equal(context.values[CONTEXT_POOL].text, "h100");
	assert_string_equal(context.key, "bck_file");

	setenv("BETTER_COMPUTE_POOL", "a100", 1);
	expect_ok(LOAD(*state, &context, &error, NULL), &error);
	assert_string_equal(context.values[CONTEXT_POOL].origin, "BETTER_COMPUTE_POOL");
	assert_null(context.config_ignored);

	/* The file is about one control plane: of another nothing of it is used, and that is known. */
	unsetenv("BETTER_COMPUTE_POOL");
	setenv("BETTER_COMPUTE_API", "https://other.example.com", 1);
	expect_ok(LOAD(*state, &context, &error, NULL), &error);
	assert_null(context.values[CONTEXT_POOL].text);
	assert_true(str_ends(context.config_ignored, "better-compute/config.toml"));
	unsetenv("BETTER_COMPUTE_API");
	setenv("BETTER_COMPUTE_POOL", "a100", 1);

	/* proves: MAN-9 */
	write_file(".config/better-compute/config.toml",
		   "api = \"https://compute.example.com\"\nserving_ca_pin = \"sha256/a\"\n"
		   "join_signing_pin = \"sha256/b\"\n",
		   0644);
	setenv("BCD_JOIN_SIGNING_PIN", "sha256/c", 1);
	expect_ok(LOAD(*state, &context, &error, NULL), &error);
	assert_string_equal(context.values[CONTEXT_SERVING_CA_PIN].text, "sha256/a");
	assert_string_equal(context.values[CONTEXT_JOIN_SIGNING_PIN].text, "sha256/c");
	assert_true(context_is_from_environment(&context, CONTEXT_JOIN_SIGNING_PIN));
	assert_false(context_is_from_environment(&context, CONTEXT_SERVING_CA_PIN));
	assert_false(context_is_from_environment(&context, CONTEXT_JOIN_ENCRYPTION_PIN));
	unsetenv("BCD_JOIN_SIGNING_PIN");

	write_file(".config/better-compute/config.toml", "apo = \"x\"\n", 0644);
	expect_error(LOAD(*state, &context, &error, NULL), &error, ERROR_INVALID_CONFIG, "apo");
	write_file(".config/better-compute/config.toml", "api = 3\n", 0644);
	expect_error(LOAD(*state, &context, &error, NULL), &error, ERROR_INVALID_CONFIG,
		     "api is not a string");
	write_file(".config/better-compute/config.toml", "api = \n", 0644);
	expect_error(LOAD(*state, &context, &error, NULL), &error, ERROR_INVALID_CONFIG,
		     "config.toml:1");
	/* Its place is said once. */
	assert_null(strstr(strstr(error.what, "config.toml") + 1, "config.toml"));
}

static void test_keys_that_others_can_read(void **state)
{
	struct context context;
	struct error error;

	make_state("open", CONTEXT_OK, 0640);
	expect_error(LOAD(*state, &context, &error, "--state", "open", NULL), &error,
		     ERROR_FORBIDDEN, "others may read 'open/context.json' (mode 0640)");
	assert_non_null(strstr(error.hint, "chmod 600"));
	write_file("key", "bck_file", 0604);
	expect_error(LOAD(*state, &context, &error, "--api", "http://127.0.0.1:4", "--key-file",
			  "key", NULL),
		     &error, ERROR_FORBIDDEN, "read the API key: others may read 'key'");
	expect_error(LOAD(*state, &context, &error, "--api", "http://127.0.0.1:4", "--key-file",
			  "nowhere", NULL),
		     &error, ERROR_UNAUTHENTICATED, "read the API key: ");
	expect_error(LOAD(*state, &context, &error, "--api", "http://127.0.0.1:4", "--key-file",
			  ".", NULL),
		     &error, ERROR_INVALID_STATE, "'.': not a file but a folder");
}

static void test_bad_state(void **state)
{
	static const struct {
		const char *text, *what;
	} cases[] = {
		{"", "context.json"},
		{"{", "context.json"},
		{"[]", "context.json"},
		{"{\"version\":2,\"api\":\"x\"}", "version"},
		{"{\"version\":1}", "api"},
		{"{\"version\":1,\"api\":7}", "api"},
		{"{\"version\":1,\"api\":\"x\",\"api\":\"y\"}", "context.json"},
	};
	struct context context;
	struct error error;

	expect_error(LOAD(*state, &context, &error, "--state", "none", NULL), &error,
		     ERROR_NOT_FOUND, "none/context.json");
	assert_non_null(strstr(error.hint, "better-compute up --state 'none'"));
	/* The folder that `up` was started in. */
	assert_int_equal(mkdir("above", 0700), 0);
	assert_int_equal(mkdir("above/.better-compute", 0700), 0);
	expect_error(LOAD(*state, &context, &error, "--state", "above", NULL), &error,
		     ERROR_NOT_FOUND, "above/context.json");
	assert_string_equal(error.hint,
			    "It is one level further down: --state 'above/.better-compute'");
	make_state("bad", "", 0600);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		write_file("bad/context.json", cases[i].text, 0600);
		expect_error(LOAD(*state, &context, &error, "--state", "bad", NULL), &error,
			     ERROR_INVALID_CONFIG, cases[i].what);
		char *named = strstr(error.what, "context.json");
		assert_true(!named || !strstr(named + 1, "context.json"));
	}
}

static void test_keys_that_are_none(void **state)
{
	struct context context;
	struct error error;

	write_file("key", "bck_a\r\nHost: evil\n", 0600);
	expect_error(LOAD(*state, &context, &error, "--api", "http://127.0.0.1:4", "--key-file",
			  "key", NULL),
		     &error, ERROR_INVALID_CONFIG, "'key' holds no key");
	assert_null(strstr(error.what, "evil"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_named, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_state_for_a_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(test_state_folder_here, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_key_of_somebody_else, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_variables_beside_a_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(test_config_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keys_that_others_can_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_state, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keys_that_are_none, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
